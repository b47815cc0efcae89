//! Whether a requested rate was achieved.

use super::stage::StageRecord;
use crate::plan::Schedule;
use crate::units::{count, percent};

/// With fewer of the intended starts, the rate was not reached.
const STARTED_SHARE_MIN: f64 = 0.99;
/// Scheduling delay of the client that does not matter in any case, in microseconds.
const DELAY_US_MIN: f64 = 1_000.0;
/// Scheduling delay of the client, as a share of the median response time, from which on it matters.
const DELAY_SHARE_MAX: f64 = 0.1;

/// How a requested rate was achieved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateVerdict {
    /// All intended starts took place on time and succeeded.
    Reached,
    /// All but a few of the intended starts succeeded, or the client started them late.
    Incomplete,
    /// Less than 99% of the intended starts took place and succeeded.
    NotReached,
}

impl StageRecord {
    /// Returns how the rate was achieved; `None` without a rate.
    #[must_use]
    pub fn rate_verdict(&self) -> Option<RateVerdict> {
        let schedule = self.session_loop.schedule.as_ref()?;
        let failed =
            self.session_loop.outcomes.map_or(0, |outcomes| outcomes.failed + outcomes.unknown);
        let missing = schedule.waiting + schedule.skipped + failed;
        let done = schedule.intended.saturating_sub(missing) as f64;
        Some(if done < STARTED_SHARE_MIN * schedule.intended as f64 {
            RateVerdict::NotReached
        } else if missing > 0 || self.starts_late() {
            RateVerdict::Incomplete
        } else {
            RateVerdict::Reached
        })
    }

    /// Returns the achieved and the requested rate: `3,161 of 20,000 transactions/s (16%)`.
    #[must_use]
    pub fn rate_text(&self, schedule: Schedule) -> String {
        let (achieved, per_s) =
            (self.throughput.transactions_per_s, schedule.per_s().unwrap_or_default());
        let share = achieved / per_s.max(f64::MIN_POSITIVE);
        format!("{} of {} transactions/s ({})", number(achieved), number(per_s), percent(share))
    }

    /// Whether the client started the transactions too late.
    #[must_use]
    pub fn starts_late(&self) -> bool {
        let delay = self.session_loop.schedule.as_ref().and_then(|each| each.start_lag_us.as_ref());
        let response = self.session_loop.response_us.as_ref().map_or(0.0, |latency| latency.p50);
        delay.is_some_and(|delay| delay.p99 > DELAY_US_MIN.max(DELAY_SHARE_MAX * response))
    }
}

/// A rate as a whole number from 100 on, else with the decimals that it needs.
fn number(per_s: f64) -> String {
    if per_s >= 100.0 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
        return count(per_s.round() as u64);
    }
    let text = format!("{per_s:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LatencySummary, Outcomes, ScheduleRecord};

    fn stage(waiting: u64, skipped: u64, failed: u64, delay_us: f64) -> StageRecord {
        let latency = |us: f64| LatencySummary::for_test(us, us);
        let mut stage = StageRecord::default();
        let intended = 10_000;
        stage.session_loop.schedule = Some(ScheduleRecord {
            lag_max_us: None,
            intended,
            sent: intended - waiting - skipped,
            skipped,
            waiting,
            oldest_wait_us: 0.0,
            backlog_at_start: 0,
            start_lag_us: Some(latency(delay_us)),
        });
        let attempted = intended - waiting - skipped;
        stage.session_loop.outcomes =
            Some(Outcomes { attempted, succeeded: attempted - failed, failed, unknown: 0 });
        stage.session_loop.response_us = Some(latency(30_000.0));
        stage
    }

    #[test]
    fn a_rate_is_reached_if_nothing_waits_is_skipped_failed_or_starts_late() {
        let verdict = |stage: StageRecord| stage.rate_verdict().unwrap();
        assert_eq!(verdict(stage(0, 0, 0, 2_900.0)), RateVerdict::Reached);
        assert_eq!(verdict(stage(1, 0, 0, 10.0)), RateVerdict::Incomplete);
        assert_eq!(verdict(stage(0, 1, 0, 10.0)), RateVerdict::Incomplete);
        assert_eq!(verdict(stage(0, 0, 1, 10.0)), RateVerdict::Incomplete);
        assert_eq!(verdict(stage(0, 0, 0, 3_100.0)), RateVerdict::Incomplete);
        assert_eq!(verdict(stage(60, 30, 11, 10.0)), RateVerdict::NotReached);
        assert_eq!(StageRecord::default().rate_verdict(), None);
    }
}
