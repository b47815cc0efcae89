use crate::render::fill::columns;
use crate::{example_cbc, example_load, example_oltp, example_record};
use riops_model::plan::ping::PingRun;
use riops_model::plan::{LoadDataset, Method, PointRun, Schedule};
use riops_model::record::{ErrorEntry, LoopRecord, ScheduleRecord};

use super::*;

const STORED: &str =
    "01a20193-3edc-7672-b560-d68d0f92d378 in /home/me/.local/share/riops/runs.sqlite";

/// Compares the text at 80 columns with a snapshot, and checks that no line of other widths is longer than its
/// terminal unless it is one word.
fn assert_texts(name: &str, record: &Record) {
    for width in 40..=200 {
        for line in run_text(record, STORED, width).lines() {
            let is_one_word = !line.trim_start().contains(' ');
            assert!(columns(line) <= width || is_one_word, "{name} at {width}: {line}");
        }
    }
    insta::assert_snapshot!(name, run_text(record, STORED, 80));
}

/// Changes the loop of the first stage.
fn with_loop(mut record: Record, change: impl FnOnce(&mut LoopRecord)) -> Record {
    change(&mut record.stages[0].session_loop);
    record
}

fn invalid(mut record: Record, reasons: &[&str]) -> Record {
    record.verdict.valid = false;
    record.verdict.reasons = reasons.iter().map(|&reason| reason.to_owned()).collect();
    record
}

#[test]
fn text_of_a_rows_run() {
    assert_texts("rows", &example_record());
}

#[test]
fn text_of_a_rows_run_with_a_rate_and_a_backlog() {
    let mut record = with_loop(example_record(), |session_loop| {
        session_loop.response_us = session_loop.service_us.clone();
        session_loop.schedule = Some(ScheduleRecord {
            intended: 20_000,
            sent: 12_000,
            waiting: 8_000,
            oldest_wait_us: 4_100_000.0,
            start_lag_us: session_loop.service_us.clone(),
            ..ScheduleRecord::default()
        });
    });
    record.plan.schedule = Schedule::Poisson { per_s: 2_000.0 };
    record.label = Some("new disks".to_owned());
    assert_texts("rate", &record);
}

#[test]
fn text_of_a_rows_run_with_several_stages() {
    let mut record = example_record();
    let stage = |batch: u64, factor: f64| {
        let mut stage = record.stages[0].clone();
        stage.session_loop.batch = Some(batch);
        stage.throughput.rows_per_s *= factor;
        stage
    };
    record.stages = vec![stage(1, 0.01), stage(1_000, 0.8), stage(1_000_000, 1.0)];
    assert_texts("stages", &record);
}

#[test]
fn text_of_a_run_with_a_changed_access_path() {
    let mut record = example_record();
    record.accesses[1].held = false;
    record.accesses[1].found =
        "Aggregate\n  Seq Scan on rows_0001, filter ((mykey >= 1) AND (mykey <= 1000))".to_owned();
    let reason = "the access path of read_rows_0001 was not as expected during the run";
    assert_texts(
        "invalid",
        &invalid(record, &[reason, "the client was the bottleneck (--strict)"]),
    );
}

#[test]
fn text_of_a_failed_run() {
    let mut record = with_loop(example_record(), |session_loop| {
        session_loop.errors = vec![ErrorEntry {
            sqlstate: "53100".to_owned(),
            count: 1,
            sample: "could not extend file \"base/5/16421\": No space left on device".to_owned(),
            ..ErrorEntry::default()
        }];
    });
    record.status = Status::Failed;
    let reason = "statement failed: ERROR: could not extend file \"base/5/16421\": No space left on device (SQLSTATE 53100)";
    assert_texts("failed", &invalid(record, &[reason]));
}

#[test]
fn text_of_loads() {
    assert_texts("load", &example_load(&[Method::CopyBinary]));
    assert_texts("load_methods", &example_load(&[Method::Insert, Method::CopyFile]));
    let failed = invalid(example_load(&[Method::Copy]), &["statement failed: no space left"]);
    assert!(run_text(&failed, "no", 80).contains("riops verify load"));
}

#[test]
fn text_of_a_point_run() {
    let mut record = example_record();
    record.workload = "point".to_owned();
    record.plan.work = PointRun::default().into();
    record.target.dataset.as_mut().unwrap().parameters = LoadDataset::default().into();
    assert_texts("point", &record);
}

#[test]
fn text_of_a_ping_run() {
    let mut record = example_record();
    record.workload = "ping".to_owned();
    record.plan.work = PingRun::default().into();
    record.target.dataset = None;
    record.accesses.clear();
    assert_texts("ping", &record);
}

#[test]
fn text_of_an_oltp_run_on_several_nodes() {
    assert_texts("oltp", &example_oltp());
}

#[test]
fn text_of_a_cbc_run() {
    assert_texts("cbc", &example_cbc());
}

#[test]
fn with_a_rate_a_threshold_names_the_time_that_it_limits() {
    let mut record = example_record();
    let judged = |threshold: &str| riops_model::record::ThresholdRecord {
        stage: None,
        threshold: threshold.parse().unwrap(),
        found: Some(2_850_000.0),
        at_least: false,
        held: false,
        ended_run: false,
    };
    record.thresholds = vec![judged("p99<10ms"), judged("service.p99<10ms")];
    let text = run_text(&record, STORED, usize::MAX);
    assert!(text.contains("BREACHED: p99<10ms (measured 2.85 s)"), "{text}");
    record.plan.schedule = Schedule::Constant { per_s: 500.0 };
    let text = run_text(&record, STORED, usize::MAX);
    assert!(text.contains("BREACHED: p99<10ms (measured response time 2.85 s)"), "{text}");
    assert!(text.contains("service.p99<10ms (measured service time 2.85 s)"), "{text}");
}

#[test]
fn commands_to_try_repeat_the_options_of_server_and_store() {
    let record = example_record();
    let extras = Extras::new(STORED, usize::MAX)
        .with_options(Some(" -d bench"), Some(" --store runs.sqlite"));
    let text = text(&run_document(&record, &extras), usize::MAX);
    assert!(text.contains("riops report last --store runs.sqlite "), "{text}");
    assert!(text.contains(" -d bench --store runs.sqlite --batch 1 "), "{text}");
    assert!(!text.contains("-d …"), "{text}");
}

#[test]
fn the_page_of_a_run_that_is_not_stored_is_not_suggested() {
    let record = example_record();
    let extras = Extras::new("no (--no-store)", usize::MAX);
    assert!(text(&run_document(&record, &extras), usize::MAX).contains("riops report last"));
    let text = text(&run_document(&record, &extras.with_options(Some(""), None)), 80);
    assert!(text.contains("try next") && !text.contains("riops report"), "{text}");
}
