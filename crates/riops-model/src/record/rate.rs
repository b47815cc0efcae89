//! Whether a requested rate was achieved.

use super::schedule::StepRecord;
use super::stage::StageRecord;
use crate::plan::Schedule;
use crate::units::format::requested_rate;
use crate::units::{percent, texts};

/// From this share of missing transactions on, the rate was not reached.
const MISSING_SHARE_MAX: f64 = 0.01;
/// Scheduling delay of the client that does not matter in any case, in microseconds.
const DELAY_US_MIN: f64 = 1_000.0;
/// Smallest scheduling delay of the client that matters, as a share of the median response time.
const DELAY_SHARE_MAX: f64 = 0.1;

/// How a requested rate was achieved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateVerdict {
    /// All intended starts took place on time and succeeded within the measurement.
    Reached,
    /// The same, but the response time grows.
    Growing,
    /// All but a few of the intended starts succeeded, or the client started them late.
    Incomplete,
    /// Less than 99% of the transactions that were due succeeded within the measurement.
    NotReached,
}

texts!(
    /// Returns the name in comparisons.
    RateVerdict::as_str {
        Reached: "reached",
        Growing: "not sustained",
        Incomplete: "almost reached",
        NotReached: "not reached",
    }
);

impl StageRecord {
    /// Returns how the rate was achieved; `None` without a rate.
    pub fn rate_verdict(&self) -> Option<RateVerdict> {
        let schedule = self.session_loop.schedule.as_ref()?;
        let grows = self.session_loop.steadiness.and_then(|steadiness| steadiness.shift);
        // A rate with a profile is reached if it is in each step.
        let steps = self.session_loop.steps.iter().filter_map(StepRecord::missing_share);
        let missing = steps.chain(self.missing_share()).fold(0.0, f64::max);
        Some(if missing > MISSING_SHARE_MAX {
            RateVerdict::NotReached
        } else if schedule.waiting + schedule.skipped + self.failed() > 0 || self.starts_late() {
            RateVerdict::Incomplete
        } else if grows.is_some_and(|shift| shift.grows()) {
            RateVerdict::Growing
        } else {
            RateVerdict::Reached
        })
    }

    /// Returns the share of the transactions due in the measurement that did not succeed in it, 0 to 1; without a rate,
    /// the share of the transactions that ended in it. `None` without any.
    pub fn missing_share(&self) -> Option<f64> {
        let failed = self.failed();
        let (due, succeeded) = match &self.session_loop.schedule {
            // Transactions in flight at the end are not answered. Transactions in flight at the start are answered,
            // although they were due before: both numbers are equal unless a backlog grows.
            Some(schedule) => {
                let missing = schedule.waiting + schedule.skipped + failed;
                let answered = schedule.intended.saturating_sub(missing).min(self.transactions);
                (schedule.intended, answered)
            }
            None => (self.transactions + failed, self.transactions),
        };
        (due > 0).then(|| 1.0 - succeeded as f64 / due as f64)
    }

    fn failed(&self) -> u64 {
        self.session_loop.outcomes.map_or(0, |outcomes| outcomes.failed + outcomes.unknown)
    }

    /// Returns the achieved and the requested rate: `3,161 of 20,000 transactions/s (16%)`.
    pub fn rate_text(&self, schedule: &Schedule) -> String {
        let (achieved, per_s) =
            (self.throughput.transactions_per_s, schedule.per_s().unwrap_or_default());
        let share = achieved / per_s.max(f64::MIN_POSITIVE);
        format!(
            "{} of {} transactions/s ({})",
            requested_rate(achieved),
            requested_rate(per_s),
            percent(share)
        )
    }

    /// Whether the client started the transactions too late.
    pub fn starts_late(&self) -> bool {
        let delay =
            self.session_loop.schedule.as_ref().and_then(|schedule| schedule.start_lag_us.as_ref());
        let response = self.session_loop.response_us.as_ref().map_or(0.0, |latency| latency.p50);
        delay.is_some_and(|delay| delay.p99 > DELAY_US_MIN.max(DELAY_SHARE_MAX * response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LatencySummary, Outcomes, ScheduleRecord, Shift, SteadinessRecord};

    fn stage(waiting: u64, skipped: u64, failed: u64, delay_us: f64) -> StageRecord {
        let latency = |us: f64| LatencySummary::for_test(us, us);
        let mut stage = StageRecord::default();
        let intended = 10_000;
        stage.session_loop.schedule = Some(ScheduleRecord {
            intended,
            sent: intended - waiting - skipped,
            skipped,
            waiting,
            start_lag_us: Some(latency(delay_us)),
            ..ScheduleRecord::default()
        });
        let attempted = intended - waiting - skipped;
        stage.transactions = attempted - failed;
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

    #[test]
    fn a_profile_is_reached_if_each_of_its_steps_is() {
        let mut stage = stage(50, 0, 0, 10.0);
        assert_eq!(stage.rate_verdict(), Some(RateVerdict::Incomplete));
        // Half a percent of all transactions did not start, but half of the transactions of one step.
        let step = |due: u64, answered: u64| StepRecord {
            step: "100:1s".parse().unwrap(),
            start_s: 0.0,
            due,
            answered,
            failed: 0,
            skipped: 0,
            unanswered: 0,
            not_started: due - answered,
            response_us: None,
        };
        stage.session_loop.steps = vec![step(9_900, 9_900), step(100, 50)];
        assert_eq!(stage.rate_verdict(), Some(RateVerdict::NotReached));
    }

    #[test]
    fn a_rate_that_is_only_sent_is_not_reached() {
        // 1,100 transactions/s for 10 s with a capacity of 1,000: 2,000 sessions send all of them.
        let mut stage = stage(0, 0, 0, 10.0);
        let schedule = stage.session_loop.schedule.as_mut().unwrap();
        (schedule.intended, schedule.sent, schedule.unanswered) = (11_000, 11_000, 1_000);
        assert_eq!(stage.rate_verdict(), Some(RateVerdict::NotReached));
        // As many in flight at the start as at the end.
        stage.transactions = 11_000;
        assert_eq!(stage.rate_verdict(), Some(RateVerdict::Reached));
        let shift = Shift { inside: 9e3, outside: 1e3, is_at_end: true, ..Shift::default() };
        let mut with = |shift: Shift| {
            let steadiness = SteadinessRecord { shift: Some(shift), ..SteadinessRecord::default() };
            stage.session_loop.steadiness = Some(steadiness);
            stage.rate_verdict().unwrap()
        };
        let growing = Shift { of_response: true, ..shift };
        assert_eq!((with(growing), with(shift)), (RateVerdict::Growing, RateVerdict::Reached));
        let at_start = Shift { is_at_end: false, inside: 1e3, outside: 9e3, ..growing };
        assert_eq!(with(at_start), RateVerdict::Growing);
    }
}
