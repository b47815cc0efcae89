//! Repeated runs of one plan: a line for each, then the median, the spread and the interval of each figure.

use crate::document::{Document, Hint};
use crate::form::Extras;
use crate::latency::latency_named;
use crate::render::fill::wrapped;
use crate::sections::stage_prefix;
use crate::setup::badge;
use crate::subjects::run::threshold_text;
use crate::table::{Cell, Table, number_column, text_column};
use crate::words;
use riops_model::comparison::{FigureValues, group_figures};
use riops_model::figure::{Figure, Summary};
use riops_model::record::{Record, Status};
use riops_model::stats::summary;
use riops_model::units::format::{joined, number_of, rate, short_id};
use riops_model::units::text::one_line;

/// The number of a run among `count` repeated ones, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// The number.
    pub ordinal: u32,
    /// Number of runs.
    pub count: u32,
}

/// One of several runs in a line.
pub fn repeat_line(record: &Record, repetition: Repetition, extras: &Extras<'_>) -> String {
    let Repetition { ordinal, count } = repetition;
    let stages = record.stages.iter().filter(|stage| stage.statement.is_none());
    let stages = stages.map(|stage| {
        let name = stage_prefix(record, stage);
        let throughput = match Figure::throughput_of(&record.plan.work) {
            Figure::RowsPerS => format!("{} rows/s", rate(stage.throughput.rows_per_s)),
            _ => format!("{} transactions/s", rate(stage.throughput.transactions_per_s)),
        };
        let latency = stage.session_loop.latency_us();
        let p99 = latency.and_then(|latency| latency_named(latency, "p99"));
        let p99 = p99.map_or_else(String::new, |p99| format!(", p99 {p99}"));
        format!("{name}{throughput}{p99}")
    });
    let marks = record.marks().join(", ");
    let state = match record.verdict.reasons.as_slice() {
        [] => badge(record.validity(), record.status.as_str(), &marks).text,
        reasons => format!("NOT VALID: {}", reasons.join(", and ")),
    };
    let id = short_id(&record.id.to_string()).to_owned();
    let text = format!("run {ordinal} of {count}  {}", joined(stages.chain([state, id]), " · "));
    wrapped(&one_line(&text), 4, extras.lines.columns) + "\n"
}

/// The summary of repeated runs. `selection` is the tag that selects them in other commands, `store_options` are the options that
/// select the store, with a leading space.
pub fn repeats_document(records: &[Record], selection: &str, store_options: &str) -> Document {
    let is_usable = |record: &&Record| record.status == Status::Done && record.verdict.valid;
    let usable: Vec<&Record> = records.iter().filter(is_usable).collect();
    let mut document = Document::default();
    document.gap();
    let count = format!("{} of {}", number_of(usable.len() as u64, "valid run"), records.len());
    let first = usable.first().copied().or(records.first());
    let title = first.and_then(|record| {
        let target = Summary::first_stage(record)?.target();
        Some(format!("{} · {target}", words::for_work(&record.plan.work).report_title(record)))
    });
    document.title(joined(title.into_iter().chain([count]), " · "));
    if let Some(record) = first {
        let words = words::for_work(&record.plan.work);
        let setup = Summary::first_stage(record).and_then(|summary| words.setup(&summary));
        document.line("workload", joined([words.work()].into_iter().chain(setup), " · "));
    }
    document.gap();
    for (stage, figures) in group_figures(&usable) {
        document.table(table(stage.as_deref().unwrap_or("figures"), &figures));
    }
    document.gap();
    let breached = records.iter().flat_map(|record| {
        let breached = record.thresholds.iter().filter(|threshold| !threshold.held);
        breached.map(move |threshold| {
            let run = short_id(&record.id.to_string()).to_owned();
            format!("run {run} {}", threshold_text(record, threshold))
        })
    });
    let breached: Vec<String> = breached.collect();
    if !breached.is_empty() {
        document.lines("threshold", breached);
        document.gap();
    }
    let hints = vec![
        Hint::new(format!("riops runs list --tag {selection}"), "these runs"),
        Hint::new(format!("riops compare {selection} OTHER"), "with another run, label or tag"),
    ];
    document.commands("try next", hints);
    document.add_to_commands(store_options);
    document
}

/// The median, spread and interval of each figure.
fn table(title: &str, figures: &[FigureValues]) -> Table {
    let figures = figures.iter().filter_map(|figure| Some((figure, summary(&figure.2)?)));
    Table::from_items(title, figures, |((name, figure, values), summary)| {
        let text = |value: f64| figure.text(value);
        let end = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).map(text);
        let interval = summary.interval.map_or_else(
            || "needs more runs".to_owned(),
            |interval| format!("{} to {}", text(interval.low), text(interval.high)),
        );
        [
            (text_column("figure"), name.as_str().into()),
            (number_column("median"), text(summary.median).into()),
            (number_column("min"), end(f64::min).into()),
            (number_column("max"), end(f64::max).into()),
            (number_column("spread"), Cell::share(summary.stdev_share)),
            (text_column("95% interval of the mean"), interval.into()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document_text;
    use crate::example_record;
    use riops_model::record::ThresholdRecord;

    #[test]
    fn runs_that_breach_a_threshold_are_named_with_its_value() {
        let mut record = example_record();
        let second = Repetition { ordinal: 2, count: 3 };
        let line = |record: &Record| repeat_line(record, second, &Extras::new("", 200));
        assert!(line(&record).contains(" · valid · 456789ab"), "{}", line(&record));
        record.thresholds.push(ThresholdRecord {
            stage: None,
            threshold: "tps>700".parse().unwrap(),
            found: Some(612.0),
            at_least: false,
            held: false,
            ended_run: false,
        });
        assert!(line(&record).contains(" · valid, breached · 456789ab"), "{}", line(&record));
        let text =
            document_text(&repeats_document(&[example_record(), record], "repeat=1", ""), 200);
        let expected = "threshold    run 456789ab BREACHED: tps>700 (measured 612)";
        assert_eq!(text.matches(expected).count(), 1, "{text}");
    }

    #[test]
    fn no_interval_of_repeated_runs_is_negative() {
        let records: Vec<Record> = [100.0, 100.0, 900.0]
            .into_iter()
            .map(|p99| {
                let mut record = example_record();
                record.stages[0].session_loop.service_us.as_mut().unwrap().p99 = p99;
                record.stages[0].session_loop.series.clear();
                record
            })
            .collect();
        let text = document_text(&repeats_document(&records, "repeat=1", " --store s"), 200);
        let p99 = text.lines().find(|line| line.trim_start().starts_with("p99  ")).unwrap();
        assert!(p99.contains("0.00 µs to 1.51 ms"), "{text}");
        let title =
            "riops run rows · PostgreSQL 18.6 (embedded), database postgres · 3 valid runs of 3\n";
        assert!(text.starts_with(&format!("\n{title}  workload     ")), "{text}");
        assert!(text.contains("try next     riops runs list --tag repeat=1 --store s  "), "{text}");
    }
}
