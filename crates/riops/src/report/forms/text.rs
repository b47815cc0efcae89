//! Text for a terminal or a pipe: the closing text of a run.

use super::super::block::Block;
use super::super::format::{duration_us, number_of, rate};
use super::super::imported::{not_verified, reported_latency, started};
use super::super::latency::latency_text;
use super::super::model::Summary;
use super::super::proof::proof;
use super::super::sections::bottleneck::{bottleneck, resources};
use super::super::sections::condition::condition;
use super::super::sections::failures::{drained, failures, late, schedule};
use super::super::sections::mix::{few_transactions, mix};
use super::super::sections::next::Commands;
use super::super::sections::nodes::nodes;
use super::super::sections::sources::sources;
use super::super::sections::steadiness::steadiness;
use super::super::sections::study::study;
use super::super::sections::waits::waits;
use super::super::sections::window::window;
use super::super::words::{self, Words};
use super::form::{Extras, Form, FormError};
use crate::plan::{Metric, Schedule, TimeKind};
use crate::record::{
    AccessRecord, RateVerdict, Record, Status, ThresholdRecord, Validity, moment_text,
};

/// Text for people; the default.
pub(super) struct Text;

impl Form for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn print(&self, record: &Record, extras: &Extras<'_>) -> Result<String, FormError> {
        Ok(closing_text(record, extras) + &extras.histogram_below(record))
    }
}

/// The closing text of a run: the result with its latency, bottleneck and validity, then the details, then
/// where the record is stored and what to try next. Lines have at most `width` columns, if their words allow it.
#[must_use]
pub fn run_text(record: &Record, stored: &str, width: usize) -> String {
    closing_text(record, &Extras::new(stored, width))
}

fn closing_text(record: &Record, extras: &Extras<'_>) -> String {
    let Some(summary) = Summary::of(record) else {
        return format!("{}: nothing was measured\n", record.id);
    };
    let words = words::of(&record.plan.work);
    let mut block = Block::new(extras.width);
    block.title(&format!("{} · {}", words.report_title(record), summary.target()));
    block.gap();
    headline(&mut block, &summary, words);
    few_transactions(&mut block, record);
    steadiness(&mut block, record, words);
    verdict(&mut block, record, words);
    thresholds(&mut block, record);
    block.gap();
    details(&mut block, &summary, words);
    block.gap();
    block.line("started", &started(record));
    block.line("stored", extras.stored);
    if let Some(label) = &record.label {
        block.line("label", label);
    }
    if !record.tags.is_empty() {
        let tags = record.tags.iter().map(|(name, value)| format!("{name}={value}"));
        block.line("tags", &tags.collect::<Vec<_>>().join(", "));
    }
    next_steps(&mut block, &summary, words, extras);
    block.finish()
}

/// The result, its latency and the bottleneck.
fn headline(block: &mut Block, summary: &Summary<'_>, words: &dyn Words) {
    let stages = Summary::of_each(summary.record);
    if words.own_headline(block, summary.record) {
        return;
    }
    if stages.len() > 1 {
        rate_verdicts(block, &stages);
        return study(block, &stages, words.headline());
    }
    rate_verdicts(block, &stages);
    throughput(block, summary, words);
    let stage = summary.stage;
    match (&stage.session_loop.service_us, &stage.session_loop.response_us) {
        (Some(service), Some(response)) => {
            let text = format!("{} (from the intended start)", latency_text(response));
            block.line("response", &text);
            block.line("service", &format!("{} (from the send)", latency_text(service)));
        }
        (Some(service), None) => block.line("latency", &latency_text(service)),
        // Another tool may measure only the response time.
        (None, Some(response)) => block.line("response", &latency_text(response)),
        (None, None) => {}
    }
    reported_latency(block, stage);
    schedule(block, stage);
    bottleneck(block, summary);
}

/// Whether the requested rate was achieved, before anything else: a result at another rate has another meaning.
/// Of several stages, only those that did not achieve it are named.
pub(in crate::report) fn rate_verdicts(block: &mut Block, stages: &[Summary<'_>]) {
    for summary in stages {
        let stage = summary.stage;
        let achieved = stage.rate_text(summary.record.plan.schedule);
        let text = match stage.rate_verdict() {
            None => continue,
            Some(RateVerdict::Reached) if stages.len() > 1 => continue,
            Some(RateVerdict::Reached) => format!("reached: {achieved}"),
            Some(RateVerdict::Incomplete) if stage.starts_late() => {
                format!("reached, but the client started transactions late: {achieved}")
            }
            Some(RateVerdict::Incomplete) => format!("not all starts: {achieved}"),
            Some(RateVerdict::NotReached) => format!("NOT reached: {achieved}"),
        };
        let name = if stages.len() > 1 { format!("{}: ", stage.name) } else { String::new() };
        block.line("rate", &format!("{name}{text}"));
    }
}

fn throughput(block: &mut Block, summary: &Summary<'_>, words: &dyn Words) {
    let stage = summary.stage;
    let (rows_per_s, tx_per_s) =
        (rate(stage.throughput.rows_per_s), rate(stage.throughput.transactions_per_s));
    let mut lines = [format!("{rows_per_s} rows/s"), format!("{tx_per_s} transactions/s")];
    if words.counts_transactions() {
        lines.reverse();
    }
    let [first, second] = lines;
    let errors = match summary.errors() {
        // Another tool may not count them.
        0 if summary.record.imported.is_some() => String::new(),
        0 => ", no errors".to_owned(),
        errors => format!(", {}", number_of(errors, "error")),
    };
    block.line(words.headline(), &first);
    let transactions = number_of(stage.transactions, "transaction");
    if words.has_rows() {
        let rows = number_of(stage.rows, "row");
        block.line("", &format!("{second} ({transactions}, {rows}{errors})"));
    } else {
        block.line("", &format!("{transactions}{errors}"));
    }
}

pub(in crate::report) fn verdict(block: &mut Block, record: &Record, words: &dyn Words) {
    if record.validity() == Validity::NotVerified {
        block.line("valid", &not_verified(record));
        return warnings(block, record);
    }
    if record.verdict.valid {
        let interrupted = match record.status {
            Status::Interrupted => " (interrupted: shorter than planned)",
            _ => "",
        };
        block.line("valid", &format!("yes: {}{interrupted}", proof(record, words)));
        return warnings(block, record);
    }
    for (position, reason) in record.verdict.reasons.iter().enumerate() {
        let (label, start) = if position == 0 { ("valid", "NO: ") } else { ("", "and ") };
        block.line(label, &format!("{start}{reason}"));
    }
    warnings(block, record);
}

/// What makes a number less reliable than it looks.
fn warnings(block: &mut Block, record: &Record) {
    for warning in &record.verdict.warnings {
        block.line(warning.label(), &warning.text_of_stage());
    }
}

pub(in crate::report) fn thresholds(block: &mut Block, record: &Record) {
    for found in &record.thresholds {
        block.line("threshold", &threshold_text(record, found));
    }
}

/// A threshold with the measured value: `BREACHED: p99<10ms (measured 12.1 ms)`.
#[must_use]
pub fn threshold_text(record: &Record, found: &ThresholdRecord) -> String {
    let has_rate = record.plan.schedule != Schedule::Closed;
    let figure = match (found.found, found.threshold.metric) {
        (None, _) => "no value".to_owned(),
        (Some(us), Metric::Time(TimeKind::Service, _)) if has_rate => {
            format!("service time {}", duration_us(us))
        }
        (Some(us), Metric::Time(..)) if has_rate => {
            format!("response time {}", duration_us(us))
        }
        (Some(us), Metric::Time(..)) => duration_us(us),
        (Some(number), Metric::RowsPerS | Metric::TransactionsPerS | Metric::ErrorPercent) => {
            rate(number)
        }
        (Some(number), _) => format!("{number:.0}"),
    };
    let verdict = if found.held { "met" } else { "BREACHED" };
    let ended = if found.ended_run { "; ended the run" } else { "" };
    let stage = found.stage.as_ref().map_or_else(String::new, |stage| format!("{stage}: "));
    format!("{verdict}: {stage}{} (measured {figure}{ended})", found.threshold)
}

/// What ran, along which access path, and what server, client and device did meanwhile.
fn details(block: &mut Block, summary: &Summary<'_>, words: &dyn Words) {
    block.line("workload", &words.work());
    for line in [words.setup(summary), summary.drive()].into_iter().flatten() {
        block.line("", &line);
    }
    if let Some(dataset) = words::dataset_text(summary.record) {
        block.line("dataset", &dataset);
    }
    condition(block, summary);
    mix(block, summary.record);
    access_paths(block, summary, words);
    if words.own_details(block, summary.record) || summary.record.stages.len() > 1 {
        return;
    }
    let stage = summary.stage;
    failures(block, summary);
    operations(block, summary);
    words.contention(block, summary);
    late(block, stage);
    drained(block, stage);
    window(block, summary);
    sources(block, stage);
    if stage.transactions > 0 {
        waits(block, summary);
        resources(block, summary);
    }
    nodes(block, stage);
    words.totals(block, summary);
}

/// The latency of each kind of transaction, if there are several.
fn operations(block: &mut Block, summary: &Summary<'_>) {
    let operations = &summary.stage.session_loop.operations;
    if operations.len() < 2 {
        return;
    }
    for (position, operation) in operations.iter().enumerate() {
        let (response, service) = (operation.response_us.as_ref(), operation.service_us.as_ref());
        let kind = if response.is_some() { "response " } else { "" };
        if let Some(latency) = response.or(service) {
            let label = if position == 0 { "operations" } else { "" };
            let mut text = format!("{}: {kind}{}", operation.name, latency_text(latency));
            if let Some(service) = service.filter(|_| response.is_some()) {
                text = format!("{text}; service p99 {}", duration_us(service.p99));
            }
            block.line(label, &text);
        }
    }
}

fn access_paths(block: &mut Block, summary: &Summary<'_>, words: &dyn Words) {
    let name = |expected: &str| words.access_path(expected, summary.record);
    let paths = summary.access_paths(name);
    let mut shown = None;
    for checked_path in &paths {
        let (path, verdict) = (&checked_path.path, checked_path.verdict());
        // Usually all paths are checked at the same moments, which are shown once.
        let checked = checked_path.checked();
        let moments =
            if shown.as_ref() == Some(&checked) { String::new() } else { format!("; {checked}") };
        let unchecked =
            checked_path.unchecked().map_or_else(String::new, |text| format!("; {text}"));
        let label = if shown.is_none() { "access path" } else { "" };
        block.line(label, &format!("{path} ({verdict}{moments}{unchecked})"));
        shown.get_or_insert(checked);
    }
    let is_changed = |access: &&AccessRecord| !access.held && access.error.is_none();
    if let Some(changed) = summary.record.accesses.iter().find(is_changed) {
        let earlier = summary
            .record
            .accesses
            .iter()
            .find(|access| access.statement == changed.statement && access.held);
        for access in earlier.into_iter().chain([changed]) {
            block.verbatim(&format!("plan {} the run:", moment_text(&access.moment)));
            let indented = access.found.lines().map(|line| format!("  {line}\n"));
            block.verbatim(&indented.collect::<String>());
        }
    }
}

fn next_steps(block: &mut Block, summary: &Summary<'_>, words: &dyn Words, extras: &Extras<'_>) {
    if summary.record.validity() == Validity::NotVerified {
        return;
    }
    let commands = Commands::of(summary, extras.server_options, extras.store_options);
    let hints = if summary.record.verdict.valid {
        words.next_steps(summary, &commands)
    } else {
        let advice = if summary.stage.transactions == 0 {
            "nothing was measured; fix the cause and rerun"
        } else {
            "do not use these results; fix the cause and rerun"
        };
        block.line("try next", advice);
        words.after_failure(&commands)
    };
    let label = if summary.record.verdict.valid { "try next" } else { "" };
    let hints: Vec<_> = hints.iter().map(|hint| (hint.command(), hint.purpose())).collect();
    block.commands(label, &hints);
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
