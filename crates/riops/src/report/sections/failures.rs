//! What did not end well, what it cost, and how a rate was kept.

use super::super::block::Block;
use super::super::format::{count, duration_us};
use super::super::latency::latency_text;
use super::super::model::Summary;
use crate::record::StageRecord;

/// What did not end well, and what it cost.
pub(in crate::report) fn failures(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    for error in &stage.session_loop.errors {
        let retried = match error.retried {
            0 => String::new(),
            retried => format!(" ({} sent again)", count(retried)),
        };
        let text =
            format!("{} × {}{retried}: {}", count(error.count), error.sqlstate, error.sample);
        block.line("", &text);
        if let Some(seconds) = error.without_success_s {
            let fell = error.below_90_percent_s.filter(|&seconds| seconds > 0.0);
            let below = fell.map_or_else(String::new, |seconds| {
                format!(", {} below 90 % of the former rate", duration_us(seconds * 1e6))
            });
            let back = error.until_90_percent_s.filter(|_| fell.is_some());
            let recovery = back.map_or_else(String::new, |seconds| {
                format!(", back at it after {}", duration_us(seconds * 1e6))
            });
            let without = duration_us(seconds * 1e6);
            block.line("", &format!("  {without} without a success{below}{recovery}"));
        }
    }
    if let Some(outcomes) =
        stage.session_loop.outcomes.filter(|outcomes| outcomes.failed + outcomes.unknown > 0)
    {
        block.line(
            "",
            &format!(
                "{} transactions attempted: {} succeeded, {} failed, {} of unknown outcome",
                count(outcomes.attempted),
                count(outcomes.succeeded),
                count(outcomes.failed),
                count(outcomes.unknown)
            ),
        );
    }
    if stage.session_loop.reconnects > 0 {
        let text =
            format!("{} broken connections were replaced", count(stage.session_loop.reconnects));
        block.line("", &text);
    }
    if let Some(connect) = &stage.session_loop.connect_us {
        block.line("connect", &format!("{} × {}", count(connect.count), latency_text(connect)));
    }
}

/// How the rate was kept.
pub(in crate::report) fn schedule(block: &mut Block, stage: &StageRecord) {
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
        let intended = count(schedule.intended);
        block.line(
            "schedule",
            &format!("{} of {intended} intended starts{skipped}{waiting}", count(schedule.sent)),
        );
        if let Some(lag) = &schedule.start_lag_us {
            let text = format!(
                "the client started p50 {} · p99 {} · max {} late where a session was free",
                duration_us(lag.p50),
                duration_us(lag.p99),
                duration_us(lag.max)
            );
            block.line("", &text);
        }
    }
    if let Some(late) = &stage.session_loop.late {
        block.line(
            "late",
            &format!(
                "{} transactions took longer than {}",
                count(late.transactions),
                duration_us(late.limit_us)
            ),
        );
    }
}
