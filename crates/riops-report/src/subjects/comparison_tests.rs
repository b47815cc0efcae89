use std::ops::Range;
use std::slice::from_ref;

use super::*;
use crate::answer::answers;
use crate::chart::{Chart, Content};
use crate::render::png::chart_png;
use crate::{example_oltp, example_record};
use crate::{findings_markdown, findings_text};
use riops_model::comparison::{
    ComparisonError, PartChange, ROUND_TAG, RUNS_MAX, TimeChange, require_comparable,
};
use riops_model::figure::Figure;
use riops_model::plan::ImportedRun;
use riops_model::record::{CommandRecord, ImportRecord, LatencySummary, StartSource, TimePart};
use riops_model::record::{Histogram, Neighbors, Warning, WarningKind};
use riops_model::stats::Outcome;
use riops_model::summary::RunKey;
use riops_model::units::Nanos;

/// A run with this rate in thousands of rows per second and latencies around `us`.
fn run(position: u32, thousands: f64, us: u64) -> Record {
    let mut record = example_record();
    record.id = uuid::Uuid::from_u128(position.into());
    record.started_at =
        jiff::Timestamp::from_second(1_700_000_000 + i64::from(position) * 60).unwrap();
    let stage = &mut record.stages[0];
    stage.throughput.rows_per_s = thousands * 1e3;
    let mut histogram = Histogram::new().unwrap();
    for step in 0..10_000_u64 {
        histogram.record(Nanos((us * 1_000) * (10_000 + step) / 10_000));
    }
    let session_loop = &mut stage.session_loop;
    session_loop.histogram = Some(histogram.stored().unwrap());
    session_loop.service_us = Some(histogram.summary().unwrap());
    record
}

fn shown(result: &Comparison) -> String {
    findings_text(&comparison(result), 100)
}

fn in_block(mut record: Record, block: usize) -> Record {
    record.tags.insert(ROUND_TAG.to_owned(), block.to_string());
    record
}

fn compared(a: &[Record], b: &[Record]) -> Comparison {
    let (a, b) = (Group { name: "before", records: a }, Group { name: "after", records: b });
    compare(a, b, &Settings::default()).unwrap()
}

/// Noise of the runs in percent.
const NOISE: [f64; 8] = [0.3, -0.4, 0.1, 0.5, -0.2, -0.5, 0.2, 0.4];

/// Eight runs of each group in blocks; B has `factor` times the rate of A.
fn interleaved(factor: f64) -> (Vec<Record>, Vec<Record>) {
    let group = |start: u32, factor: f64, shift: usize| -> Vec<Record> {
        (0..NOISE.len())
            .zip((start..).step_by(2))
            .map(|(block, position)| {
                let noise = 1.0 + NOISE[(block + shift) % NOISE.len()] / 100.0;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "about 500"
                )]
                let us = (500.0 / factor * noise) as u64;
                in_block(run(position, 100.0 * factor * noise, us), block)
            })
            .collect()
    };
    (group(1, 1.0, 0), group(2, factor, 3))
}

#[test]
fn a_lower_bound_keeps_only_a_verdict_that_a_higher_value_could_not_change() {
    let (mut a, mut b) = interleaved(1.1);
    let p99 = |a: &[Record], b: &[Record]| {
        let result = compared(a, b);
        let outcome = |figure| {
            let row = result.figures().find(|row| row.figure == figure).unwrap();
            row.effect.as_ref().unwrap().outcome
        };
        ((outcome(Figure::P50Us), outcome(Figure::P99Us)), shown(&result))
    };
    let bound = |record: &mut Record| {
        let session_loop = &mut record.stages[0].session_loop;
        session_loop.service_us.as_mut().unwrap().lower_bound_from = Some(99.0);
    };
    // B has the lower latency, and A's latency may be higher than shown.
    bound(&mut a[2]);
    let (outcomes, text) = p99(&a, &b);
    assert_eq!(outcomes, (Outcome::Faster, Outcome::Faster));
    assert!(text.contains("≥ 995 µs") && text.contains("≤ -9."), "{text}");
    // B's latency is a lower bound, too: the comparison is inconclusive.
    bound(&mut b[5]);
    let (outcomes, text) = p99(&a, &b);
    assert_eq!(outcomes, (Outcome::Faster, Outcome::Inconclusive));
    assert_eq!(text.matches('≥').count(), 4, "{text}");
}

#[test]
fn two_single_runs_have_no_verdict() {
    let result = compared(&[run(1, 100.0, 500)], &[run(2, 200.0, 250)]);
    assert!(result.is_of_single_runs() && !result.is_slower());
    assert!(result.figures().all(|figure| figure.effect.is_none()));
    let text = shown(&result);
    assert!(text.contains("verdict      none: at least 4 runs of each are needed"), "{text}");
    assert!(text.contains("one run per side is not enough for a verdict"), "{text}");
    assert!(text.contains("repeat both with --repeat 4"), "{text}");
    assert!(text.contains("×2.00"), "{text}");
}

#[test]
fn a_difference_of_repeated_runs_is_faster_or_slower() {
    let (a, b) = interleaved(1.1);
    let result = compared(&a, &b);
    assert_eq!(result.blocks, NOISE.len());
    let main = result.figures().next().unwrap();
    assert!(main.main && main.figure == Figure::RowsPerS);
    assert_eq!(main.effect.as_ref().unwrap().outcome, Outcome::Faster);
    assert!(!result.is_slower());
    let reversed = compared(&b, &a);
    assert!(reversed.is_slower());
    assert!(shown(&reversed).contains("B is SLOWER: rows/s -9."), "{}", shown(&reversed));
}

#[test]
fn runs_that_differ_by_less_than_the_smallest_relevant_effect_are_equivalent() {
    let (a, b) = interleaved(1.001);
    let result = compared(&a, &b);
    let outcome = result.figures().next().unwrap().effect.as_ref().unwrap().outcome;
    assert_eq!(outcome, Outcome::Equivalent, "{}", shown(&result));
}

#[test]
fn four_blocks_have_a_verdict_and_a_note_that_they_were_merged() {
    let (a, b) = interleaved(0.03);
    let result = compared(&a[..4], &b[..4]);
    assert!(result.is_slower() && !result.is_inconclusive(), "{}", shown(&result));
    let note = "4 rounds are too few for a comparison within them";
    assert!(result.notes.iter().any(|line| line.starts_with(note)), "{:?}", result.notes);
    assert!(!compared(&a, &b).notes.iter().any(|line| line.contains("within them")));
    // Too few for a verdict, with and without blocks.
    let result = compared(&a[..3], &b[..3]);
    assert!(!result.is_slower() && result.is_inconclusive());
    let text = shown(&result);
    assert!(
        text.contains("verdict      inconclusive: too few runs\n")
            && text.contains("to decide    about 1 more run of each ("),
        "{text}"
    );
}

#[test]
fn an_inconclusive_verdict_shows_no_effect() {
    let (mut a, mut b) = interleaved(1.0);
    let levels = [90.0, 140.0, 80.0, 130.0, 70.0, 150.0, 85.0, 120.0, 100.0];
    for (run, thousands) in a.iter_mut().chain(&mut b).zip(levels.iter().cycle().step_by(2)) {
        run.stages[0].throughput.rows_per_s = thousands * 1e3;
    }
    let groups = compared(&a, &b);
    let lines = verdict_lines(&groups);
    assert!(lines[0].0.starts_with("inconclusive: rows/s may differ by -"), "{lines:?}");
    let undecided = groups.undecided.unwrap();
    assert!(undecided.further_runs.unwrap() > 1 && undecided.certain.is_empty(), "{undecided:?}");
    // Both sides, each run with its warm-up and the time around it.
    let run = &a[0];
    let both_s = 2.0 * (run.plan.warmup_s + run.stages[0].seconds + 1.5);
    let each_s = undecided.further_s.unwrap() / undecided.further_runs.unwrap() as f64;
    assert!((each_s - both_s).abs() < 1e-9, "{undecided:?}");
}

#[test]
fn an_undecided_main_figure_hides_no_certain_difference() {
    let (mut a, mut b) = interleaved(2.0);
    let levels = [90.0, 140.0, 80.0, 130.0, 70.0, 150.0, 85.0, 120.0, 100.0];
    for (run, thousands) in a.iter_mut().chain(&mut b).zip(levels.iter().cycle().step_by(2)) {
        run.stages[0].throughput.rows_per_s = thousands * 1e3;
    }
    for run in &mut b[..2] {
        run.verdict.warnings = vec![Warning {
            kind: WarningKind::ForeignCpu,
            stage: None,
            text: "other processes used the CPU".to_owned(),
        }];
        let neighbors = Neighbors { cpu_share: Some(0.4), ..Neighbors::default() };
        run.stages[0].neighbors = Some(neighbors);
    }
    let groups = compared(&a, &b);
    let undecided = groups.undecided.as_ref().unwrap();
    assert!(groups.is_inconclusive() && undecided.others_cpus == Some(0.8), "{undecided:?}");
    let p50 = undecided.certain.iter().find(|certain| certain.name == "p50").unwrap();
    assert!(!p50.is_worse, "{p50:?}");
    let text = shown(&groups);
    assert!(text.contains("certain      p50 -50.0%"), "{text}");
    assert!(text.contains("(other processes used 80% of one CPU)"), "{text}");
    insta::assert_snapshot!(answers(&comparison(&groups)));
}

#[test]
fn changes_that_round_to_zero_have_no_sign() {
    let texts = [0.9996, 1.0004, 0.9994, 2.0, 12.34, 3_000.0].map(change_text);
    assert_eq!(texts, ["0.0%", "0.0%", "-0.1%", "×2.00", "×12.3", "×3,000"]);
}

#[test]
fn the_text_of_a_comparison() {
    let (a, mut b) = interleaved(1.1);
    for record in &mut b {
        record.target.settings.insert("shared_buffers".to_owned(), "2GB".to_owned());
    }
    let result = compared(&a, &b);
    insta::assert_snapshot!(shown(&result));
    insta::assert_snapshot!(answers(&comparison(&result)));
}

#[test]
fn the_markdown_of_a_comparison() {
    let (a, b) = interleaved(1.1);
    insta::assert_snapshot!(findings_markdown(&comparison(&compared(&a, &b))));
}

#[test]
fn percentiles_of_a_group_match_the_ratio_or_its_merged_histograms() {
    let a = [run(1, 100.0, 100), run(3, 100.0, 300)];
    let p50 = |b: &[Record]| {
        let result = compared(&a, b);
        let p50 = result.figures().find(|figure| figure.name == "p50").unwrap();
        (p50.a.unwrap(), p50.b.unwrap(), p50.effect.as_ref().map(|effect| effect.ratio))
    };
    let (value, other, ratio) = p50(&[run(2, 100.0, 100), run(4, 100.0, 500)]);
    assert!((other / value - ratio.unwrap()).abs() < 1e-9, "{value} {other} {ratio:?}");
    // A single run has no ratio. One half of all values is below 200 µs and the other at 300 µs or more; the mean of the
    // medians is 300 µs.
    let (value, _, ratio) = p50(&[run(2, 100.0, 100)]);
    assert!((199.0..202.0).contains(&value) && ratio.is_none(), "{value} {ratio:?}");
}

#[test]
fn a_percentile_with_too_few_samples_is_not_shown() {
    let few = |position| {
        let mut record = run(position, 100.0, 500);
        let mut histogram = Histogram::new().unwrap();
        for _ in 0..300 {
            histogram.record(Nanos(500_000));
        }
        let session_loop = &mut record.stages[0].session_loop;
        session_loop.histogram = Some(histogram.stored().unwrap());
        session_loop.service_us = Some(histogram.summary().unwrap());
        record
    };
    let result = compared(&[few(1)], &[few(2)]);
    let names: Vec<_> = result.figures().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["rows/s", "p50"]);
}

#[test]
fn invalid_runs_are_left_out_and_named() {
    let (a, mut b) = interleaved(1.1);
    b[2].verdict.valid = false;
    let result = compared(&a, &b);
    assert_eq!(result.b.left_out, [b[2].id.to_string()]);
    assert_eq!(result.b.runs.len(), NOISE.len() - 1);
    assert!(
        result.notes.iter().any(|note| note.starts_with("1 run of B left out")),
        "{:?}",
        result.notes
    );
}

#[test]
fn groups_measured_one_after_the_other_have_a_note() {
    let runs = |first: u32| -> Vec<Record> {
        (first..first + 4)
            .map(|position| run(position, 100.0 + f64::from(position) / 10.0, 500))
            .collect()
    };
    let one_after_the_other = compared(&runs(1), &runs(5));
    let note = "the groups were measured one after the other";
    assert!(one_after_the_other.notes.iter().any(|line| line.starts_with(note)));
    let (a, b) = interleaved(1.0);
    assert!(!compared(&a, &b).notes.iter().any(|line| line.starts_with(note)));
}

#[test]
fn keys_of_runs_show_what_cannot_be_compared() {
    let key = |position: usize| RunKey { id: position.to_string(), workload: "rows".to_owned() };
    let keys = |numbers: Range<usize>| numbers.map(key).collect::<Vec<_>>();
    assert_eq!(require_comparable(&keys(0..1), &keys(1..RUNS_MAX)).unwrap(), "rows");
    let error = require_comparable(&keys(0..1), &keys(1..RUNS_MAX + 1)).unwrap_err();
    assert!(error.to_string().starts_with("10,001 runs are too many"), "{error}");
    let error = require_comparable(&keys(0..RUNS_MAX), &keys(7..8)).unwrap_err();
    assert!(matches!(error, ComparisonError::Common(id) if id == "7"));
    let oltp = [RunKey { workload: "oltp".to_owned(), ..key(1) }];
    let error = require_comparable(&keys(0..1), &oltp).unwrap_err();
    assert!(matches!(error, ComparisonError::Workloads(names) if names == "oltp, rows"));
    let imported = [RunKey { workload: "imported".to_owned(), ..key(1) }];
    assert_eq!(require_comparable(&keys(0..1), &imported).unwrap(), "imported, rows");
}

#[test]
fn groups_that_cannot_be_compared_are_refused() {
    let error = |a: &[Record], b: &[Record]| {
        let (a, b) = (Group { name: "a", records: a }, Group { name: "b", records: b });
        compare(a, b, &Settings::default()).unwrap_err().to_string()
    };
    let one = run(1, 100.0, 500);
    assert!(error(from_ref(&one), from_ref(&one)).contains("in both groups"));
    let mut oltp = example_oltp();
    oltp.id = uuid::Uuid::from_u128(9);
    assert!(
        error(from_ref(&one), &[oltp]).contains("rows") && !error(from_ref(&one), &[]).is_empty()
    );
    let mut invalid = [run(2, 100.0, 500), run(3, 100.0, 500)];
    for record in &mut invalid {
        record.verdict.valid = false;
    }
    assert!(error(&[one], &invalid).contains("no run of \"b\" is valid"));
}

#[test]
fn a_page_compares_two_selections_or_two_labels() {
    let (a, b) = interleaved(1.1);
    let lead = |selections: &[(String, Vec<Record>)]| {
        let facts = comparison_of(selections)?.conclusion.facts();
        facts.into_iter().find(|fact| fact.label == "verdict").map(|fact| fact.texts.join(". "))
    };
    let of_two = lead(&[("x".to_owned(), a.clone()), ("y".to_owned(), b.clone())]);
    assert!(of_two.unwrap().starts_with("B is FASTER"));
    let one_by_one = |label: &str, runs: &[Record]| -> Vec<(String, Vec<Record>)> {
        let named = |run: &Record| Record { label: Some(label.to_owned()), ..run.clone() };
        runs.iter().map(|run| (run.id.to_string(), vec![named(run)])).collect()
    };
    // Ticked in any order.
    let ticked = [one_by_one("new", &b), one_by_one("old", &a)].concat();
    assert!(lead(&ticked).unwrap().starts_with("B is FASTER"));
    let three =
        [one_by_one("new", &b), one_by_one("old", &a[..4]), one_by_one("other", &a[4..])].concat();
    assert_eq!(lead(&three), None);
}

#[test]
fn a_build_that_costs_speed_is_noted_if_the_servers_differ() {
    let (mut a, mut b) = interleaved(1.1);
    let noted = |a: &[Record], b: &[Record]| {
        compared(a, b).notes.into_iter().find(|note| note.contains("was built with"))
    };
    let build = |runs: &mut [Record], flags: &str| {
        for run in runs {
            run.target.compiler_flags = Some(flags.to_owned());
        }
    };
    build(&mut a, "-Wall -Os");
    build(&mut b, "-Wall -O2 -g");
    let note = noted(&a, &b).unwrap();
    assert!(
        note.starts_with("the server of A was built with -Os, which makes it slower"),
        "{note}"
    );
    build(&mut b, "-Os -Wall");
    assert_eq!(noted(&a, &b), None);
}

#[test]
fn runs_that_include_a_warm_up_have_a_note() {
    let (mut a, b) = interleaved(1.0);
    let cold = |position: u64| riops_model::record::Point {
        seconds: 1.0,
        rows: if position < 4 { 50_000 } else { 100_000 + position * 37 % 500 },
        ..riops_model::record::Point::default()
    };
    a[0].stages[0].session_loop.series = (0..20).map(cold).collect();
    let notes = compared(&a, &b).notes;
    let note = "in 1 of 8 runs of A, the measurement includes a warm-up that changes the rate by more than 2.0%";
    assert!(notes.iter().any(|line| line.starts_with(note)), "{notes:?}");
}

/// Returns a run of another tool with the same results.
fn imported(mut record: Record) -> Record {
    let run = ImportedRun { tool: "pgbench".to_owned(), ..ImportedRun::default() };
    record.id = uuid::Uuid::from_u128(record.id.as_u128() + 100);
    (record.workload, record.plan.work) = ("imported".to_owned(), run.into());
    record.stages[0].name = "imported, pgbench".to_owned();
    record.verdict.valid = false;
    record.imported = Some(ImportRecord {
        format: "pgbench".to_owned(),
        files: Vec::new(),
        imported_at: record.started_at,
        start: StartSource::ImportTime,
        unreported: Vec::new(),
    });
    record
}

#[test]
fn an_imported_run_is_compared_with_one_that_counts_the_same() {
    let measured = example_oltp();
    let other = imported(measured.clone());
    let comparison = compared(from_ref(&other), from_ref(&measured));
    assert_eq!(comparison.workload, "imported, oltp");
    let figures = &comparison.stages[0].figures;
    let per_s = measured.stages[0].throughput.transactions_per_s;
    assert_eq!((figures[0].figure, figures[0].a, figures[0].b), {
        let rounded = Some(per_s.ln().exp());
        (Figure::TransactionsPerS, rounded, rounded)
    });
    assert!(comparison.notes[0].contains("runs of A are imported"), "{:?}", comparison.notes);
    // The settings of the server, for example, are unknown.
    let mut other = other;
    (other.plan.seed, other.target.settings) = (0, std::collections::BTreeMap::new());
    other.plan.sessions += 1;
    let changes = compared(from_ref(&other), from_ref(&measured)).changes;
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(names, ["sessions"]);
    let rows = run(1, 100.0, 500);
    let groups = |a, b| (Group { name: "before", records: a }, Group { name: "after", records: b });
    let (a, b) = groups(from_ref(&other), from_ref(&rows));
    let error = compare(a, b, &Settings::default()).unwrap_err().to_string();
    assert!(error.contains("no figure in common"), "{error}");
    let (a, b) = groups(from_ref(&measured), from_ref(&rows));
    let error = compare(a, b, &Settings::default()).unwrap_err().to_string();
    assert!(error.contains("several workloads (oltp, rows)"), "{error}");
}

#[test]
fn the_commands_of_the_same_script_are_compared() {
    let command = |position: usize, title: &str, mean: f64| CommandRecord {
        script: 1,
        number: position,
        title: title.to_owned(),
        is_measured: true,
        service_us: Some(LatencySummary { mean, ..example_latency() }),
        ..CommandRecord::default()
    };
    let with_commands = |position: u32, mean: f64| {
        let mut record = run(position, 100.0, 500);
        record.stages[0].session_loop.commands = vec![
            command(2, "update accounts set balance = 1;", mean),
            command(3, "end;", 50.0 + f64::from(position)),
        ];
        record
    };
    let a: Vec<_> = (0..4)
        .map(|position| with_commands(1 + 2 * position, 100.0 + f64::from(position)))
        .collect();
    let mut b: Vec<_> = (0..4)
        .map(|position| with_commands(2 + 2 * position, 400.0 + f64::from(position)))
        .collect();
    let result = compared(&a, &b);
    let names: Vec<_> = result.figures().map(|figure| figure.name.clone()).skip(4).collect();
    assert_eq!(names, ["command 2 mean: update accounts set bala…", "command 3 mean: end;"]);
    let first = result.figures().nth(4).unwrap();
    assert_eq!(first.effect.as_ref().unwrap().outcome, Outcome::Slower);
    // Another script: its commands are others.
    b[0].stages[0].session_loop.commands[0].title = "delete from accounts;".to_owned();
    assert!(compared(&a, &b).figures().all(|figure| !figure.name.starts_with("command")));
}

fn example_latency() -> LatencySummary {
    example_record().stages[0].session_loop.service_us.clone().unwrap()
}

#[test]
fn a_page_draws_the_runs_the_time_and_the_percentiles_and_a_text_does_not() {
    let (a, b) = interleaved(1.1);
    let mut result = compared(&a, &b);
    let part = |part, change_us| {
        let (a_us, b_us) = (100.0, 100.0 + change_us);
        PartChange { part, a_us, b_us, change_us, interval: None, is_cause: true, beside: vec![] }
    };
    let parts =
        vec![part(TimePart::Lock, -250.0), part(TimePart::Cpu, 40.0), part(TimePart::Wal, 2.0)];
    result.stages[0].time =
        Some(TimeChange { a_us: 1_000.0, b_us: 800.0, parts, candidates: vec![] });
    let findings = comparison(&result);
    let charts: Vec<_> = findings.results.charts().collect();
    let titles: Vec<_> = charts.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(titles, ["Runs", "Time of a transaction", "Latency by percentile"]);
    let points = |chart: &Chart| match &chart.plot.content {
        Content::Points { series, names, .. } => (series.clone(), names.clone()),
        content => panic!("{content:?}"),
    };
    // The third block, left and right of its number.
    let (runs, _) = points(charts[0]);
    let third =
        |side: usize| (runs[side].points.len(), runs[side].points[2].x, runs[side].points[2].y);
    assert_eq!(third(0), (8, 2.88, 100_100.0));
    assert_eq!(third(1), (8, 3.12, 109_450.0));
    let (low, high) = charts[0].plot.y.range.unwrap();
    assert!(low > 90_000.0 && high < 120_000.0, "{low} {high}");
    // Each bar begins where the previous one ended. The rest is the change that the named parts do not explain.
    let (time, names) = points(charts[1]);
    let ends: Vec<f64> = time[0].points.iter().map(|point| point.y).collect();
    assert_eq!(ends, [1_000.0, 750.0, 790.0, 800.0, 800.0]);
    assert_eq!(names, ["A", "lock", "CPU", "rest", "B"]);
    assert_eq!(time[0].points[1].label.as_deref(), Some("-250 µs"));
    for chart in charts {
        chart_png(chart, "").unwrap();
    }
    let text = shown(&result);
    assert!(titles.iter().all(|title| !text.contains(title)), "{text}");
}
