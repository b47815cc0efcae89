//! Errors, their cost, and how a rate was achieved.

use crate::figure::Summary;
use crate::record::StageRecord;
use crate::report::document::{Document, Tone};
use crate::report::latency::latency_text;
use crate::units::format::{count, duration_us, number_of};

/// Errors with their outages, transactions without success, and reconnects.
pub(in crate::report) fn failures(document: &mut Document, summary: &Summary<'_>) {
    let stage = summary.stage;
    for (position, error) in stage.session_loop.errors.iter().enumerate() {
        let retried = match error.retried {
            0 => String::new(),
            retried => format!(" ({} retried)", count(retried)),
        };
        let text =
            format!("{} × {}{retried}: {}", count(error.count), error.sqlstate, error.sample);
        document.line(if position == 0 { "errors" } else { "" }, &text);
        if let Some(seconds) = error.without_success_s {
            let fell = error.below_90_percent_s.filter(|&seconds| seconds > 0.0);
            let below = fell.map_or_else(String::new, |seconds| {
                format!(", {} below 90% of the previous rate", duration_us(seconds * 1e6))
            });
            let back = error.until_90_percent_s.filter(|_| fell.is_some());
            let recovery = back.map_or_else(String::new, |seconds| {
                format!(", recovered after {}", duration_us(seconds * 1e6))
            });
            let without = duration_us(seconds * 1e6);
            document
                .line("", format!("{without} without a successful transaction{below}{recovery}"));
        }
    }
    if let Some(outcomes) =
        stage.session_loop.outcomes.filter(|outcomes| outcomes.failed + outcomes.unknown > 0)
    {
        document.line(
            "",
            format!(
                "{} attempted: {} succeeded, {} failed, {} with unknown outcome",
                number_of(outcomes.attempted, "transaction"),
                count(outcomes.succeeded),
                count(outcomes.failed),
                count(outcomes.unknown)
            ),
        );
    }
    if stage.session_loop.reconnects > 0 {
        let broken = number_of(stage.session_loop.reconnects, "broken connection");
        let text = format!("{broken} replaced");
        document.line("", &text);
    }
    if let Some(connect) = &stage.session_loop.connect_us {
        let connections = number_of(connect.count, "connection");
        document.line("connect", format!("{connections}: {}", latency_text(connect)));
    }
}

/// How many of the intended starts took place, and how late.
pub(in crate::report) fn schedule(document: &mut Document, stage: &StageRecord) {
    if let Some(schedule) = &stage.session_loop.schedule {
        let skipped = match schedule.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", count(skipped)),
        };
        let waiting = match schedule.waiting {
            0 => String::new(),
            waiting => format!(
                "; {} NOT STARTED at the end, the oldest {} late",
                count(waiting),
                duration_us(schedule.oldest_wait_us)
            ),
        };
        let unanswered = match schedule.unanswered {
            0 => String::new(),
            unanswered => format!("; {} in flight at the end", count(unanswered)),
        };
        let intended = count(schedule.intended);
        if schedule.backlog_at_start > 0 {
            let text = format!(
                "{} of the warm-up still waited when the measurement started: the latency includes their delay",
                number_of(schedule.backlog_at_start, "start")
            );
            document.toned("backlog", text, Tone::Warn);
        }
        document.line(
            "schedule",
            format!(
                "{} of {intended} intended starts{skipped}{unanswered}{waiting}",
                count(schedule.sent)
            ),
        );
        if let Some(lag) = &schedule.start_lag_us {
            let text = format!(
                "scheduling delay of the client p50 {} · p99 {} · max {}",
                duration_us(lag.p50),
                duration_us(lag.p99),
                duration_us(lag.max)
            );
            document.line("", &text);
        }
    }
}

/// Transactions above the latency limit.
pub(in crate::report) fn late(document: &mut Document, stage: &StageRecord) {
    if let Some(late) = &stage.session_loop.late {
        document.line(
            "late",
            format!(
                "{} took longer than {}",
                number_of(late.transactions, "transaction"),
                duration_us(late.limit_us)
            ),
        );
    }
}

/// Transactions that were in flight at the end of the measurement.
pub(in crate::report) fn drained(document: &mut Document, stage: &StageRecord) {
    let drained = &stage.session_loop.drained;
    if drained.lost > 0 {
        let lost = number_of(drained.lost, "transaction");
        document.line("in flight", format!("{lost} at the end failed or did not finish"));
    }
}

/// The longest time without a successful transaction, error or not.
pub(in crate::report) fn pause(document: &mut Document, stage: &StageRecord) {
    if let Some(seconds) = stage.session_loop.longest_pause_s {
        let longest = duration_us(seconds * 1e6);
        document.line("pause", format!("at most {longest} without a successful transaction"));
    }
}

/// Why latencies are lower bounds: the transactions that did not succeed within the measurement.
pub(in crate::report) fn missing(document: &mut Document, stage: &StageRecord) {
    let each = &stage.session_loop;
    if each.latency_us().is_none_or(|latency| latency.lower_bound_from.is_none()) {
        return;
    }
    let outcomes = each.outcomes.unwrap_or_default();
    let (skipped, waiting) =
        each.schedule.as_ref().map_or((0, 0), |schedule| (schedule.skipped, schedule.waiting));
    let missing = [
        (outcomes.failed, "failed"),
        (outcomes.unknown, "with an unknown outcome"),
        (skipped, "skipped"),
        (each.drained.transactions + each.drained.lost, "in flight at the end"),
        (waiting, "not started"),
    ];
    let found = missing.into_iter().filter(|(number, _)| *number > 0);
    let texts: Vec<_> = found.map(|(number, what)| format!("{} {what}", count(number))).collect();
    let longest = duration_us(each.drained.max_us);
    let drained = match each.drained.transactions {
        0 => String::new(),
        _ => format!("; the longest of those in flight took {longest}"),
    };
    document.line(
        "≥",
        format!(
            "a lower bound: transactions that did not succeed within the measurement ({}) may have taken longer{drained}",
            texts.join(", ")
        ),
    );
}
