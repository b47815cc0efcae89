//! The document of a run: the result with its latency, bottleneck and validity, then the details, then where the record
//! is stored and what to try next.

use super::access_paths;
use crate::document::{Document, Tone};
use crate::form::Extras;
use crate::imported::{not_verified, started};
use crate::render::text::text;
use crate::sections::{
    agents, bottleneck, condition, cost, failures, mix, nodes, operations, profile, proof, queries,
    sources, stage_prefix, statements, steadiness, tables, time, waits, window,
};
use crate::words::next::{Commands, Known};
use crate::words::{self, Words};
use riops_model::figure::{Figure, Summary};
use riops_model::plan::{CleanStart, LatencyKind, Metric, Schedule, Vacuum};
use riops_model::record::{Note, RateVerdict, Record, Status, ThresholdRecord, Validity};
use riops_model::units::Span;
use riops_model::units::format::{bounded, duration_us, joined, rate};

/// The text of a run in lines of at most `width` columns, if its words allow it.
pub fn run_text(record: &Record, stored: &str, width: usize) -> String {
    text(&run_document(record, &Extras::new(stored, width)), width)
}

/// Returns the document of a run.
pub fn run_document(record: &Record, extras: &Extras<'_>) -> Document {
    let mut document = Document::default();
    let Some(summary) = Summary::first_stage(record) else {
        document.title(format!("{}: nothing was measured", record.id));
        return document;
    };
    let words = words::for_work(&record.plan.work);
    document.title(format!("{} · {}", words.report_title(record), summary.target()));
    document.gap();
    let stages = Summary::of_each(record);
    rate_verdicts(&mut document, &stages);
    words.results(&mut document, record);
    if let [summary] = stages.as_slice() {
        limits(&mut document, summary);
    }
    judgment(&mut document, record, words);
    document.gap();
    if let Some(steps) = failures::steps_table(record).filled() {
        document.table(steps);
        document.gap();
    }
    what(&mut document, record, words);
    access_paths::lines(&mut document, &summary, words);
    words.details(&mut document, record);
    agents::agents(&mut document, record);
    if stages.len() == 1 && summary.stage.statement.is_none() {
        details(&mut document, &summary, words);
    }
    document.gap();
    document.line("started", started(record));
    document.line("stored", extras.stored);
    names(&mut document, record);
    next_steps(&mut document, &summary, words, extras);
    document
}

/// Writes how the rate was achieved, the bottleneck, the time and the cost of a transaction.
pub(super) fn limits(document: &mut Document, summary: &Summary<'_>) {
    if summary.stage.statement.is_none() {
        failures::schedule(document, summary.stage);
        bottleneck::bottleneck(document, summary);
    }
    time::time(document, summary);
    cost::cost(document, summary);
}

/// The state of the server before the warm-up.
fn clean_start(wanted: CleanStart) -> String {
    let vacuum = wanted.vacuum.map(|kind| match kind {
        Vacuum::Plain => "VACUUM".to_owned(),
        kind => format!("VACUUM ({kind})"),
    });
    let checkpoint = wanted.checkpoint.then(|| "CHECKPOINT".to_owned());
    let settle = wanted.settle_s.map(|seconds| format!("pause of {}", Span::of_seconds(seconds)));
    joined(vacuum.into_iter().chain(checkpoint).chain(settle), ", ")
}

/// The settings of the server that the plan changes, with the values that the sessions had.
pub(super) fn changed_settings(record: &Record) -> impl Iterator<Item = String> {
    record.plan.settings.iter().map(|(name, value)| {
        let effective = record.target.settings.get(name).unwrap_or(value);
        format!("{name} = {effective}")
    })
}

/// Writes how reliable the result is: too few transactions, an unsteady rate, validity and warnings, thresholds.
pub(super) fn judgment(document: &mut Document, record: &Record, words: &dyn Words) {
    mix::few_transactions(document, record);
    steadiness::steadiness(document, record, words);
    verdict(document, record, words);
    for threshold in &record.thresholds {
        let tone = (!threshold.held).then_some(Tone::Bad);
        document.push_line("threshold", threshold_text(record, threshold), tone);
    }
}

/// Writes the work, the sessions and the dataset.
pub(super) fn what(document: &mut Document, record: &Record, words: &dyn Words) {
    document.line("workload", words.work());
    let summary = Summary::first_stage(record);
    if let Some(summary) = &summary {
        document.lines("", [words.setup(summary), summary.drive()].into_iter().flatten());
    }
    document.lines("dataset", words::dataset_text(record));
    document.lines("setting", changed_settings(record));
    document.known("before", clean_start(record.plan.clean_start));
    let facts = record.plan.facts.iter().map(|(name, value)| format!("{name} {value}"));
    document.known("facts", joined(facts, " · "));
    if let Some(summary) = &summary {
        let prices = Figure::OF_FACTS.into_iter().filter_map(|figure| {
            let value = figure.value(record, summary.stage)?;
            Some(format!("{} {}", figure.text(value), figure.name()))
        });
        document.known("", joined(prices, " · "));
        condition::condition(document, summary);
    }
    mix::mix(document, record);
}

/// Writes label, tags and notes.
pub(super) fn names(document: &mut Document, record: &Record) {
    document.known("label", record.label.clone().unwrap_or_default());
    let tags = record.tags.iter().map(|(name, value)| format!("{name}={value}"));
    document.known("tags", joined(tags, ", "));
    document.lines("notes", record.notes.iter().flat_map(Note::lines));
}

/// Writes whether the requested rate was achieved, before anything else: a result at another rate has another meaning.
/// With several stages, names only the stages that did not achieve it.
pub(super) fn rate_verdicts(document: &mut Document, stages: &[Summary<'_>]) {
    for summary in stages {
        let stage = summary.stage;
        let (text, tone) = match stage.rate_verdict() {
            None => continue,
            Some(RateVerdict::Reached) if stages.len() > 1 => continue,
            Some(RateVerdict::Reached) => ("reached:", None),
            Some(RateVerdict::Incomplete) if stage.starts_late() => {
                ("reached, but the client started transactions late:", None)
            }
            Some(RateVerdict::Incomplete) => ("target rate not reached:", None),
            Some(RateVerdict::Growing) => {
                ("NOT sustained: the response time grows at", Some(Tone::Bad))
            }
            Some(RateVerdict::NotReached) => ("NOT reached:", Some(Tone::Bad)),
        };
        let name = stage_prefix(summary.record, stage);
        let achieved = stage.rate_text(&summary.record.plan.schedule);
        document.push_line("rate", format!("{name}{text} {achieved}"), tone);
    }
}

/// Whether the result is valid, and what makes the number less reliable than it looks.
fn verdict(document: &mut Document, record: &Record, words: &dyn Words) {
    match record.validity() {
        Validity::NotVerified => document.toned("valid", not_verified(record), Tone::Warn),
        Validity::Valid => {
            let interrupted = match record.status {
                Status::Interrupted => " (interrupted: shorter than planned)",
                _ => "",
            };
            let text = format!("yes: {}{interrupted}", proof::proof(record, words));
            document.toned("valid", text, Tone::Good);
        }
        Validity::Invalid => {
            let starts = std::iter::once("NO: ").chain(std::iter::repeat("and "));
            let reasons = starts.zip(&record.verdict.reasons);
            let reasons = reasons.map(|(start, text)| (format!("{start}{text}"), Some(Tone::Bad)));
            document.toned_lines("valid", reasons);
        }
    }
    for warning in &record.verdict.warnings {
        let text = warning.text_of_stage();
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        document.toned(warning.label(), first, Tone::Warn);
        // The line of a script with a caret.
        if !rest.is_empty() {
            document.verbatim(rest);
        }
    }
}

/// A threshold with the measured value: `BREACHED: p99<10ms (measured 12.1 ms)`.
pub fn threshold_text(record: &Record, threshold: &ThresholdRecord) -> String {
    let has_rate = record.plan.schedule != Schedule::Closed;
    let latency = |us| bounded(duration_us(us), threshold.at_least);
    let figure = match (threshold.found, threshold.threshold.metric) {
        (None, _) => "no value".to_owned(),
        (Some(us), Metric::Time(Some(LatencyKind::Service), _)) if has_rate => {
            format!("service time {}", latency(us))
        }
        (Some(us), Metric::Time(..)) if has_rate => format!("response time {}", latency(us)),
        (Some(us), Metric::Time(..)) => latency(us),
        (Some(value), Metric::RowsPerS | Metric::TransactionsPerS | Metric::ErrorPercent) => {
            rate(value)
        }
        (Some(value), Metric::Figure) => match Figure::required(&threshold.threshold) {
            Ok(Some(Figure::Seconds)) => duration_us(value),
            Ok(Some(figure)) => bounded(figure.text(value), threshold.at_least),
            Ok(None) | Err(_) => rate(value),
        },
        (Some(value), _) => format!("{value:.0}"),
    };
    let verdict = match threshold.held {
        true => "met",
        false if threshold.is_undecided() => "UNDECIDED",
        false => "BREACHED",
    };
    let ended = if threshold.ended_run { "; ended the run" } else { "" };
    let stage = threshold.stage.as_ref().map_or_else(String::new, |stage| format!("{stage}: "));
    format!("{verdict}: {stage}{} (measured {figure}{ended})", threshold.threshold)
}

/// What happened in the only stage, and what server, client and device did meanwhile.
fn details(document: &mut Document, summary: &Summary<'_>, words: &dyn Words) {
    let stage = summary.stage;
    failures::failures(document, summary);
    operations::operations(document, summary);
    words.contention(document, summary);
    failures::late(document, stage);
    failures::drained(document, stage);
    failures::missing(document, stage);
    failures::pause(document, stage);
    window::window(document, summary);
    sources::sources(document, stage);
    if stage.transactions > 0 {
        queries::queries(document, stage);
        statements::statements(document, stage);
        tables::tables(document, stage);
        waits::waits(document, summary);
        profile::profile(document, stage);
        bottleneck::resources(document, summary);
    }
    nodes::nodes(document, stage);
    nodes::activity(document, stage);
    words.totals(document, summary);
}

fn next_steps(
    document: &mut Document,
    summary: &Summary<'_>,
    words: &dyn Words,
    extras: &Extras<'_>,
) {
    let known = Known {
        server: extras.server_options,
        store: extras.store_options,
        words: extras.run_words,
    };
    let commands = Commands::new(summary, known);
    match summary.record.validity() {
        Validity::NotVerified => {}
        Validity::Valid => {
            document.commands("try next", words.next_steps(summary, &commands));
            if extras.omits_password {
                let text = "the commands omit it: set PGPASSWORD or use a password file";
                document.line("password", text);
            }
        }
        Validity::Invalid => {
            let is_empty = summary.stage.transactions == 0 && summary.stage.observed.is_none();
            let result = if is_empty { "nothing was measured;" } else { "result unusable:" };
            document.line("try next", format!("{result} fix the cause and rerun"));
            document.commands("", words.after_failure(&commands));
        }
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
