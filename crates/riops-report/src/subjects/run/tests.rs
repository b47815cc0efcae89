//! Tests of whole pages.

use super::*;
use crate::Link;
use crate::chart::{Content, Series};
use crate::{example_cbc, example_load, example_oltp, example_record};
use riops_model::plan::Method;
use riops_model::record::{
    AgentPoint, AgentRecord, AgentStage, Point, Sampled, ServerProgress, WaitShare, Warning,
    WarningKind,
};

/// Text that would be markup or script if it were not escaped, in every context of a page.
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><!--";

/// Returns the page between head and scripts: neither style nor uPlot.
fn page(records: &[Record]) -> String {
    let page = html(records, None).unwrap();
    let start = page.find("<body>").unwrap();
    let end = page.find("</footer>").unwrap();
    page[start..end].to_owned()
}

/// Returns the texts between tags, without the data of charts.
fn texts(records: &[Record]) -> String {
    let page = page(records);
    let mut text = String::new();
    for part in page.split("<script type=\"application/json\"").enumerate() {
        let shown = match part {
            (0, first) => first,
            (_, chart) => chart.split_once("</script>").unwrap().1,
        };
        for piece in shown.split('<') {
            let inner = piece.split_once('>').map_or(piece, |(_, inner)| inner).trim();
            if !inner.is_empty() {
                text.push_str(inner);
                text.push('\n');
            }
        }
    }
    text
}

#[test]
fn the_page_of_a_cbc_run() {
    insta::assert_snapshot!(texts(&[example_cbc()]));
}

#[test]
fn the_page_of_an_oltp_run_with_errors_on_several_nodes() {
    insta::assert_snapshot!(texts(&[example_oltp()]));
}

#[test]
fn the_first_screen_has_the_result_the_bottleneck_and_the_validity_in_words() {
    let mut record = example_record();
    let first = |record: &Record| {
        let text = texts(std::slice::from_ref(record));
        text.split("\nRun and environment\n").next().unwrap().to_owned()
    };
    insta::assert_snapshot!(first(&record));
    record.verdict.valid = false;
    record.verdict.reasons = vec!["the plan of read_rows_0001 changed".to_owned()];
    let text = first(&record);
    assert!(text.contains("not valid\n"), "{text}");
    assert!(text.contains("NO: the plan of read_rows_0001 changed"), "{text}");
}

#[test]
fn the_agents_of_a_fleet_are_drawn_over_time() {
    let drawn = |agents: u32| {
        let mut record = example_record();
        let agent = |position: u32| {
            let point = |point: &Point| AgentPoint {
                t_s: point.t_s,
                seconds: 2.0,
                transactions: u64::from(position + 1) * 200,
            };
            let series = record.stages[0].session_loop.series.iter().map(point).collect();
            let stages = vec![AgentStage { series, ..AgentStage::default() }];
            AgentRecord { number: position, stages, ..AgentRecord::default() }
        };
        record.agents = (0..agents).map(agent).collect();
        let charts = charts(&record);
        let chart = charts.iter().find(|chart| chart.title == "Transactions of each agent")?;
        let Content::Lines { series, xs } = &chart.plot.content else { panic!() };
        assert_eq!(xs.len(), record.stages[0].session_loop.series.len());
        let line = |line: &Series| (line.label.clone(), line.values[0].unwrap());
        Some(series.iter().map(line).collect::<Vec<_>>())
    };
    let expected = |lines: &[(&str, f64)]| {
        Some(lines.iter().map(|(label, rate)| ((*label).to_owned(), *rate)).collect())
    };
    assert_eq!(drawn(0), None);
    assert_eq!(drawn(2), expected(&[("agent 0", 100.0), ("agent 1", 200.0)]));
    let three = [("slowest agent", 100.0), ("median", 500.0), ("fastest agent", 900.0)];
    assert_eq!(drawn(9), expected(&three));
}

#[test]
fn throughput_is_charted_in_the_unit_of_the_result() {
    let title = |record: &Record| match &charts(record)[0].plot.content {
        Content::Lines { series, .. } => series[0].label.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(title(&example_record()), "rows/s");
    assert_eq!(title(&example_load(&[Method::Insert])), "rows/s");
    assert_eq!(title(&example_oltp()), "transactions/s");
    let mut ping = example_record();
    ping.plan.work = riops_model::plan::ping::PingRun::default().into();
    assert_eq!(title(&ping), "transactions/s");
}

#[test]
fn a_run_of_several_stages_has_the_best_stage_and_marks_in_the_charts() {
    let record = example_load(&[Method::Insert, Method::Copy]);
    let text = texts(std::slice::from_ref(&record));
    assert!(text.contains("load, insert: the best of 2 stages"), "{text}");
    let charts = charts(&record);
    let marks: Vec<_> = charts[0].plot.marks.iter().map(|mark| (mark.x, &mark.label)).collect();
    assert_eq!(marks, [(0.0, &"load, insert".to_owned()), (1.0, &"load, copy".to_owned())]);
    assert_eq!(charts[0].plot.x.range, Some((0.0, 2.0)));
}

#[test]
fn the_page_of_two_cbc_runs_has_the_best_rates_of_both() {
    let mut second = example_cbc();
    second.stages[0].io.as_mut().unwrap().device.as_mut().unwrap().write_mb_s = 500.0;
    let page = page(&[example_cbc(), second]);
    assert!(page.contains("Best rates") && page.contains(">500.0<"), "{page}");
    assert!(page.contains("id=\"run-1\"") && page.contains("id=\"run-2\""));
    assert!(page.contains("none: the runs are shown side by side"));
}

#[test]
fn a_given_comparison_replaces_the_figures_side_by_side() {
    let mut comparison = Findings::new("A against B");
    comparison.conclusion.line("verdict", "B is faster");
    let page = html(&[example_record(), example_record()], Some(&comparison)).unwrap();
    assert!(page.contains("A against B") && page.contains("B is faster"));
    assert!(!page.contains("side by side"));
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
    assert!(page.contains("DISTURBED</a></dt><dd>other processes used 48%"), "{page}");
    assert!(page.contains("Wait events") && page.contains("IO:WalSync"), "{page}");
    assert!(page.contains("62%") || page.contains("63%"), "{page}");
}

#[test]
fn with_a_rate_the_page_shows_labeled_response_times_and_service_times() {
    let mut record = example_record();
    assert!(!page(&[record.clone()]).contains("response p50"));
    let session_loop = &mut record.stages[0].session_loop;
    let mut response = session_loop.service_us.clone().unwrap();
    response.p99 = 3_100_000.0;
    session_loop.response_us = Some(response);
    for point in &mut session_loop.series {
        point.response_p50_us = Some(2_850_000.0);
        point.response_p99_us = Some(3_100_000.0);
    }
    let page = page(&[record]);
    assert!(page.contains(">response p99</th>") && page.contains(">service p99</th>"), "{page}");
    assert!(page.contains("Response time") && page.contains("\"response p99\""), "{page}");
    assert!(page.contains(">3.10 s<"), "{page}");
}

/// Replaces every text that a user, a server or an imported file can choose.
fn hostile() -> Record {
    let text = || HOSTILE.to_owned();
    let mut record = example_oltp();
    record.label = Some(text());
    record.tags.insert(text(), text());
    record.failure = Some(text());
    record.verdict.valid = false;
    record.verdict.reasons = vec![text()];
    record.verdict.warnings =
        vec![Warning { kind: WarningKind::Stalls, stage: Some(text()), text: text() }];
    record.target.server_version = text();
    record.target.address = text();
    record.target.database = text();
    record.target.settings.insert(text(), text());
    record.client.machine.host = text();
    record.client.machine.cpu_model = Some(text());
    for access in &mut record.accesses {
        (access.statement, access.expected, access.found) = (text(), text(), text());
    }
    for check in &mut record.checks {
        (check.name, check.expected, check.found) = (text(), text(), text());
    }
    let mut statement = example_cbc().stages.remove(0);
    statement.name = text();
    statement.statement.as_mut().unwrap().sql = text();
    for point in &mut statement.probes.as_mut().unwrap().points {
        point.progress = Some(ServerProgress { phase: text(), done: 0, total: 1 });
    }
    for wait in &mut statement.probes.as_mut().unwrap().waits {
        wait.event = text();
    }
    for stage in &mut record.stages {
        stage.name = text();
        for error in &mut stage.session_loop.errors {
            (error.sqlstate, error.sample) = (text(), text());
        }
        for node in &mut stage.session_loop.nodes {
            (node.node, node.placement) = (text(), Some(text()));
        }
    }
    let again = record.stages[0].clone();
    record.stages.extend([again, statement]);
    record
}

#[test]
fn texts_of_a_record_are_never_markup() {
    let records = [hostile(), hostile()];
    let page = html(&records, None).unwrap();
    assert!(!page.contains("<img") && !page.contains("alert(1)</script>"));
    assert!(!page.contains("<script>alert") && !page.contains("onerror=alert(1)>"));
    // Two scripts belong to riops; all others are data of charts.
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, page.matches("<script type=\"application/json\"").count() + 2);
    let markdown = markdown(&records, None);
    assert!(!markdown.contains("<img") && !markdown.contains("<script"), "{markdown}");
}

#[test]
fn the_data_of_a_chart_is_json_after_escaping() {
    let page = html(&[hostile()], None).unwrap();
    let mut marked = 0;
    for part in page.split("<script type=\"application/json\"").skip(1) {
        let json = part.split_once('>').unwrap().1.split_once("</script>").unwrap().0;
        let plot: serde_json::Value = serde_json::from_str(json).unwrap();
        marked += usize::from(plot["marks"][0]["label"] == HOSTILE);
    }
    assert!(marked > 0);
}

#[test]
fn a_page_names_the_hashes_of_its_scripts_and_its_style() {
    use base64::Engine as _;
    use sha2::Digest as _;

    let page = html(&[example_record()], None).unwrap();
    let policy = page.split_once("Content-Security-Policy\" content=\"").unwrap().1;
    let policy = policy.split_once("\">").unwrap().0.replace("&#x27;", "'").replace("&#x2f;", "/");
    let hash = |text: &str| {
        let digest = sha2::Sha256::digest(text);
        format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
    };
    let mut contents: Vec<_> = page
        .split("<script>")
        .skip(1)
        .map(|rest| rest.split_once("</script>").unwrap().0)
        .collect();
    contents
        .extend(page.split("<style>").skip(1).map(|rest| rest.split_once("</style>").unwrap().0));
    assert_eq!(contents.len(), 3);
    for text in contents {
        assert!(policy.contains(&hash(text)), "{policy}");
    }
    assert!(!page.contains(" style=\"") && !page.contains(" onclick="));
}

#[test]
fn a_linked_page_has_neither_inline_scripts_nor_styles() {
    let mut layout = Layout::new("riops", Delivery::Linked);
    layout.nav = vec![Link { text: "Runs".to_owned(), href: "/".to_owned(), current: true }];
    let page = html_in(&layout, &[hostile()], None).unwrap();
    assert!(page.contains("<script src=\"/assets/charts.js\" defer></script>"));
    assert!(!page.contains("<script>") && !page.contains("<style") && !page.contains(" style="));
    assert!(page.contains("aria-current=\"page\">Runs</a>"), "{page}");
}

#[test]
fn every_chart_has_a_text_alternative_and_its_data_as_a_table() {
    let page = page(&[example_oltp(), example_cbc()]);
    let charts = page.matches("data-chart=").count();
    assert!(charts >= 8, "{charts}");
    assert_eq!(page.matches("role=\"img\" aria-label=\"").count(), charts);
    assert_eq!(page.matches("<details class=\"data\">").count(), charts);
}

#[test]
fn the_summary_of_a_run_with_errors() {
    insta::assert_snapshot!(markdown(&[example_oltp()], None));
}

#[test]
fn several_runs_are_shown_side_by_side_without_a_verdict() {
    let text = markdown(&[example_record(), example_cbc()], None);
    assert!(
        text.contains("### Comparison\n\n- **verdict**: none: the runs are shown side by side"),
        "{text}"
    );
    assert!(text.contains("### Run 1: rows") && text.contains("### Run 2: cbc"), "{text}");
}

#[test]
fn texts_of_a_record_have_no_meaning_in_markdown() {
    let hostile = "a|b `c` <img src=x> **d** [e](f) @g\n| h & #1 \\";
    let mut record = example_record();
    record.label = Some(hostile.to_owned());
    record.tags.insert("note".to_owned(), hostile.to_owned());
    let text = markdown(&[record], None);
    let expected =
        "a\\|b \\`c\\` &lt;img src=x&gt; \\*\\*d\\*\\* \\[e\\](f) &#64;g \\| h &amp; \\#1 \\\\";
    assert_eq!(text.matches(expected).count(), 3, "{text}");
    assert!(!text.contains("<img"), "{text}");
}

#[test]
fn a_section_without_contents_is_not_on_the_page() {
    let mut record = example_record();
    record.plan.work = riops_model::plan::ImportedRun::default().into();
    record.stages[0].session_loop.session_details.clear();
    let page = page(&[record]);
    assert!(page.contains("run-1-results") || page.contains("run-1-latency"), "{page}");
    assert!(!page.contains("run-1-totals-and-sessions"), "{page}");
}
