//! Errors, their cost, and how a rate was achieved.

use crate::document::{Document, Tone};
use crate::latency::latency_cell;
use crate::latency::latency_text;
use crate::sections::{items_of_stages, seconds, stage_name};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::Summary;
use riops_model::record::Record;
use riops_model::record::StageRecord;
use riops_model::units::format::{count, duration_us, joined, number_of};

/// Errors with their outages, transactions without success, and reconnects.
pub(crate) fn failures(document: &mut Document, summary: &Summary<'_>) {
    let session_loop = &summary.stage.session_loop;
    let errors = session_loop.errors.iter().flat_map(|error| {
        let retried = nonzero(" (", error.retried, " retried)");
        let times = count(error.count);
        let text = format!("{times} × {}{retried}: {}", error.sqlstate, error.sample);
        let outage = error.without_success_s.map(|seconds| {
            outage_text(seconds, error.below_90_percent_s, error.until_90_percent_s)
        });
        [Some(text), outage]
    });
    document.lines("errors", errors.flatten());
    if let Some(outcomes) =
        session_loop.outcomes.filter(|outcomes| outcomes.failed + outcomes.unknown > 0)
    {
        let attempted = number_of(outcomes.attempted, "transaction");
        let [succeeded, failed, unknown] =
            [outcomes.succeeded, outcomes.failed, outcomes.unknown].map(count);
        document.line(
            "",
            format!(
                "{attempted} attempted: {succeeded} succeeded, {failed} failed, {unknown} with unknown outcome"
            ),
        );
    }
    if session_loop.reconnects > 0 {
        let broken = number_of(session_loop.reconnects, "broken connection");
        document.line("", format!("{broken} replaced"));
    }
    if let Some(connect) = &session_loop.connect_us {
        let connections = number_of(connect.count, "connection");
        document.line("connect", format!("{connections}: {}", latency_text(connect)));
    }
}

/// A time without success, how long the rate was low, and when it was back.
pub(super) fn outage_text(without_s: f64, below_s: Option<f64>, until_s: Option<f64>) -> String {
    let time = |seconds: f64| duration_us(seconds * 1e6);
    let below_s = below_s.filter(|&seconds| seconds > 0.0);
    let below = below_s.map_or_else(String::new, |seconds| {
        format!(", {} below 90% of the previous rate", time(seconds))
    });
    let back = until_s.filter(|_| below_s.is_some());
    let back = back.map_or_else(String::new, |until| format!(", recovered after {}", time(until)));
    format!("{} without a successful transaction{below}{back}", time(without_s))
}

/// A number between two texts; nothing if it is zero.
fn nonzero(before: &str, value: u64, after: &str) -> String {
    if value > 0 { format!("{before}{}{after}", count(value)) } else { String::new() }
}

/// How many of the intended starts took place, and how late.
pub(crate) fn schedule(document: &mut Document, stage: &StageRecord) {
    let Some(schedule) = &stage.session_loop.schedule else {
        return;
    };
    if schedule.backlog_at_start > 0 {
        let text = format!(
            "{} of the warm-up still waited when the measurement started: the latency includes their delay",
            number_of(schedule.backlog_at_start, "start")
        );
        document.toned("backlog", text, Tone::Warn);
    }
    let oldest = duration_us(schedule.oldest_wait_us);
    let waiting = format!(" NOT STARTED at the end, the oldest due {oldest} before");
    let others = [
        nonzero(", ", schedule.skipped, " skipped"),
        nonzero("; ", schedule.unanswered, " in flight at the end"),
        nonzero("; ", schedule.waiting, &waiting),
    ];
    let [sent, intended] = [schedule.sent, schedule.intended].map(count);
    document.line("schedule", format!("{sent} of {intended} intended starts{}", others.concat()));
    if let Some(lag) = &schedule.start_lag_us {
        let [p50, p99, max] = [lag.p50, lag.p99, lag.max].map(duration_us);
        let text = format!("scheduling delay of the client p50 {p50} · p99 {p99} · max {max}");
        document.line("", text);
    }
}

/// Transactions above the latency limit.
pub(crate) fn late(document: &mut Document, stage: &StageRecord) {
    let late = stage.session_loop.late;
    if let Some((limit_us, transactions)) =
        late.and_then(|late| late.limit_us.zip(late.transactions))
    {
        let transactions = number_of(transactions, "transaction");
        let limit = duration_us(limit_us);
        document.line("late", format!("{transactions} took longer than {limit}"));
    }
}

/// From this share of the counted transactions on, those in flight at the end are shown: without them, the rate is too low.
const IN_FLIGHT_SHARE: f64 = 0.01;

/// Transactions that were in flight at the end of the measurement.
pub(crate) fn drained(document: &mut Document, stage: &StageRecord) {
    let drained = &stage.session_loop.drained;
    let share = drained.transactions as f64 / stage.transactions.max(1) as f64;
    let uncounted = drained.max_us.filter(|_| share >= IN_FLIGHT_SHARE).map(|longest_us| {
        let (transactions, longest) =
            (number_of(drained.transactions, "transaction"), duration_us(longest_us));
        format!("{transactions} at the end took up to {longest} and did not count")
    });
    let lost = (drained.lost > 0).then(|| {
        let lost = number_of(drained.lost, "transaction");
        format!("{lost} at the end failed or did not finish")
    });
    let texts = [uncounted, lost].into_iter().flatten();
    let text = joined(texts, "; ");
    if !text.is_empty() {
        document.line("in flight", text);
    }
}

/// The longest time without a successful transaction, error or not.
pub(crate) fn pause(document: &mut Document, stage: &StageRecord) {
    if let Some(seconds) = stage.session_loop.longest_pause_s {
        let longest = duration_us(seconds * 1e6);
        document.line("stall", format!("longest {longest} without a successful transaction"));
    }
}

/// Why latencies are lower bounds: the transactions that did not succeed within the measurement.
pub(crate) fn missing(document: &mut Document, stage: &StageRecord) {
    let session_loop = &stage.session_loop;
    if session_loop.latency_us().is_none_or(|latency| latency.lower_bound_from.is_none()) {
        return;
    }
    let outcomes = session_loop.outcomes.unwrap_or_default();
    let waiting = session_loop.schedule.as_ref().map_or(0, |schedule| schedule.waiting);
    let skipped = session_loop.skipped_starts().unwrap_or_default();
    let missing = counts_text(&[
        (outcomes.failed, "failed"),
        (outcomes.unknown, "with an unknown outcome"),
        (skipped, "skipped"),
        (session_loop.drained.transactions + session_loop.drained.lost, "in flight at the end"),
        (waiting, "not started"),
    ]);
    let longest = session_loop
        .drained
        .max_us
        .filter(|_| session_loop.drained.transactions > 0)
        .map(duration_us);
    let drained = longest.map_or_else(String::new, |longest| {
        format!("; the longest of those in flight took {longest}")
    });
    document.line(
        "≥",
        format!(
            "a lower bound: transactions that did not succeed within the measurement ({missing}) may have taken longer{drained}"
        ),
    );
}

/// The numbers that are not zero, each with what was counted.
pub(crate) fn counts_text(counts: &[(u64, &str)]) -> String {
    let occurred = counts.iter().filter(|(value, _)| *value > 0);
    joined(occurred.map(|(value, what)| format!("{} {what}", count(*value))), ", ")
}

/// Errors by SQLSTATE.
pub(crate) fn errors_table(record: &Record) -> Table {
    let errors = items_of_stages(record, |stage| &stage.session_loop.errors);
    Table::from_items("errors", errors, |(stage, error)| {
        let message = match error.more_samples.len() {
            0 => error.sample.clone(),
            more => format!("{} (and {more} other messages)", error.sample),
        };
        let in_attempts = Some(error.attempts_s).filter(|&seconds| seconds > 0.0);
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("SQLSTATE"), error.sqlstate.as_str().into()),
            (text_column("message"), message.into()),
            (number_column("errors"), count(error.count).into()),
            (number_column("retried"), count(error.retried).into()),
            (number_column("time in attempts"), seconds(in_attempts)),
            (number_column("longest without success"), seconds(error.without_success_s)),
            (number_column("until 90% of the rate"), seconds(error.until_90_percent_s)),
        ]
    })
}

/// The steps of the profile of a rate.
pub(crate) fn steps_table(record: &Record) -> Table {
    let steps = items_of_stages(record, |stage| &stage.session_loop.steps);
    let table = Table::from_items("steps of the rate", steps, |(stage, step)| {
        let missing = counts_text(&[
            (step.failed, "failed"),
            (step.skipped, "skipped"),
            (step.unanswered, "in flight at the end"),
            (step.not_started, "not started"),
        ]);
        let latency = |key| latency_cell(step.response_us.as_ref(), key);
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (number_column("from"), format!("{:.1} s", step.start_s).into()),
            (text_column("transactions"), step.step.to_string().into()),
            (number_column("due"), count(step.due).into()),
            (
                number_column("succeeded"),
                Cell::share(step.missing_share().map(|missing| 1.0 - missing)),
            ),
            (text_column("missing"), missing.into()),
            (number_column("p50"), latency("p50")),
            (number_column("p99"), latency("p99")),
            (number_column("max"), latency("max")),
        ]
    });
    table.with_note(
        "response times of the transactions that were due in the step; the steadiness of a rate that changes is not judged",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::record::DrainedRecord;

    #[test]
    fn transactions_in_flight_at_the_end_are_shown_if_the_rate_is_too_low_without_them() {
        let text = |counted, transactions, lost| {
            let mut stage = StageRecord { transactions: counted, ..StageRecord::default() };
            stage.session_loop.drained = DrainedRecord { transactions, max_us: Some(1.4e6), lost };
            let mut document = Document::default();
            drained(&mut document, &stage);
            crate::document_text(&document, 160)
        };
        let shown = text(24, 4, 1);
        assert!(
            shown.contains("4 transactions at the end took up to 1.40 s and did not count"),
            "{shown}"
        );
        assert!(shown.contains("1 transaction at the end failed or did not finish"), "{shown}");
        assert!(text(0, 1, 0).contains("1 transaction at the end took"));
        assert!(!text(401, 4, 0).contains("in flight"));
    }
}
