//! Tests of whole pages.

use super::*;
use crate::record::{Sampled, WaitShare, Warning, WarningKind};
use crate::report::{example_cbc, example_record};

/// Returns the page between head and scripts: neither style nor uPlot.
fn page(records: &[Record]) -> String {
    let page = html(records, None).unwrap();
    let start = page.find("<body>").unwrap();
    let end = page.find("</footer>").unwrap();
    page[start..end].to_owned()
}

#[test]
fn the_page_of_a_cbc_run() {
    insta::assert_snapshot!(page(&[example_cbc()]));
}

#[test]
fn the_page_of_two_cbc_runs_has_the_best_rates_of_both() {
    let mut second = example_cbc();
    second.stages[0].io.as_mut().unwrap().device.as_mut().unwrap().write_mb_s = 500.0;
    let page = page(&[example_cbc(), second]);
    assert!(page.contains("Best rates") && page.contains(">500.0<"), "{page}");
    assert!(page.contains("id=\"run-1\"") && page.contains("id=\"run-2\""));
}

#[test]
fn warnings_and_wait_events_are_on_the_page() {
    let mut record = example_record();
    let text = "other processes used 48% of the CPU of this machine".to_owned();
    let kind = WarningKind::ForeignCpu;
    record.verdict.warnings = vec![Warning { kind, stage: None, text }];
    let wait = WaitShare { event: "IO:WalSync".to_owned(), share: 0.625 };
    record.stages[0].probes = Some(Sampled { waits: vec![wait], looks: 50, ..Sampled::default() });
    let page = page(&[record]);
    assert!(page.contains("<dt>DISTURBED</dt><dd>other processes used 48%"), "{page}");
    assert!(page.contains("Wait events") && page.contains("IO:WalSync"), "{page}");
    assert!(page.contains("62%") || page.contains("63%"), "{page}");
}

#[test]
fn with_a_rate_the_page_shows_labeled_response_times_and_service_times() {
    let mut record = example_record();
    assert!(!page(&[record.clone()]).contains("response p50"));
    let each = &mut record.stages[0].session_loop;
    let mut response = each.service_us.clone().unwrap();
    response.p99 = 3_100_000.0;
    each.response_us = Some(response);
    for point in &mut each.series {
        point.response_p50_us = Some(2_850_000.0);
        point.response_p99_us = Some(3_100_000.0);
    }
    let page = page(&[record]);
    assert!(page.contains(">response p99</th>") && page.contains(">service p99</th>"), "{page}");
    assert!(page.contains("Response time") && page.contains("\"response p99\""), "{page}");
    assert!(page.contains(">3.10 s<"), "{page}");
}

#[test]
fn user_input_is_escaped() {
    let mut record = example_record();
    record.label = Some("</script><b>bold".to_owned());
    record.stages[0].name = "</script><i>".to_owned();
    let page = page(&[record]);
    assert!(!page.contains("<b>bold") && !page.contains("<i>"), "{page}");
}
