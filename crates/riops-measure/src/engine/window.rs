//! Start and end of a measurement: after a duration, or after a number of transactions or rows.
//!
//! The workers of a stage share no other mutable state.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use riops_model::plan::{Drain, Schedule, Stop};
use riops_model::units::{Nanos, Span};

/// Maximum time for transactions in flight to finish after the end of the measurement.
const DRAIN: Duration = Duration::from_mins(1);
/// The same after a failure. Sessions of a killed server may never receive a reply.
const DRAIN_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Whether a session may start a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    /// Yes. `claimed`: the transaction counts toward the requested number of transactions or rows.
    Start { claimed: bool },
    /// No, and no later one either.
    End,
}

/// The bounds of one measurement.
#[derive(Debug)]
pub(super) struct Window {
    stop: Stop,
    drain: Drain,
    measure_start: Nanos,
    /// Latest end of a measurement that stops by count; `u64::MAX` if it has no maximum duration.
    latest_end: Nanos,
    /// Earliest end of a measurement that stops by count: the last interval between two starts belongs to it.
    earliest_end: Nanos,
    /// End of the measurement; `u64::MAX` if the run stops by count, has not reached it, and has no maximum duration.
    end: AtomicU64,
    /// From when on transactions that end do not count; `u64::MAX` if all that were started count.
    planned_end: AtomicU64,
    /// Transactions claimed or rows completed, if the run stops by count.
    done: AtomicU64,
    /// Whether a session has failed. The drain then has the shorter timeout.
    failed: AtomicBool,
    /// Seconds after which the drain was aborted, plus one; 0 if it was not aborted.
    aborted: AtomicU64,
    /// Number of workers whose last transaction has ended.
    finished: AtomicUsize,
}

impl Window {
    pub(super) fn new(stop: Stop, max_duration_s: Option<f64>, measure_start: Nanos) -> Self {
        let end = stop
            .seconds()
            .or(max_duration_s)
            .map_or(Nanos::MAX, |seconds| measure_start.after(Span::of_seconds(seconds).0.into()));
        Self {
            stop,
            drain: Drain::Uncounted,
            measure_start,
            latest_end: end,
            earliest_end: measure_start,
            end: AtomicU64::new(end.0),
            planned_end: AtomicU64::new(end.0),
            done: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            aborted: AtomicU64::new(0),
            finished: AtomicUsize::new(0),
        }
    }

    /// Sets the schedule of the starts. `n` evenly spaced starts take `n / rate`; without the interval after the last one,
    /// the achieved rate would be above the requested one.
    pub(super) fn with_schedule(self, schedule: &Schedule) -> Self {
        match (self.stop, schedule) {
            (Stop::Transactions(count), Schedule::Constant { per_s }) => {
                let length = Span::of_seconds(count as f64 / per_s).0;
                Self { earliest_end: self.measure_start.after(length.into()), ..self }
            }
            _ => self,
        }
    }

    /// Sets whether the transactions in flight at the end count.
    pub(super) fn with_drain(mut self, drain: Drain) -> Self {
        self.drain = drain;
        if drain != Drain::Uncounted {
            self.planned_end = AtomicU64::new(u64::MAX);
        }
        self
    }

    pub(super) fn measure_start(&self) -> Nanos {
        self.measure_start
    }

    #[inline]
    pub(super) fn end(&self) -> Nanos {
        Nanos(self.end.load(Ordering::Relaxed))
    }

    /// Whether the measurement ends with its last counted transaction: the run stops by count, and its maximum duration
    /// has not ended it before.
    pub(super) fn has_ended_by_count(&self) -> bool {
        self.stops_by_count() && (self.latest_end == Nanos::MAX || self.is_complete())
    }

    /// Whether the transactions or rows of a run that stops by count are done.
    fn is_complete(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.stop.count()
    }

    /// Returns the end of the measurement, whose last counted transaction ended at `last_end`.
    pub(super) fn measured_end(&self, last_end: Nanos) -> Nanos {
        if self.has_ended_by_count() {
            let counts_starts = matches!(self.stop, Stop::Transactions(_));
            if counts_starts && self.is_complete() && !self.has_failed() {
                last_end.max(self.earliest_end.min(self.latest_end))
            } else {
                last_end
            }
        } else if self.is_once() && last_end > self.measure_start {
            last_end
        } else if self.counts_in_flight() {
            // An interrupt ends it before, but not the transactions in flight.
            last_end.max(self.end())
        } else {
            self.end()
        }
    }

    /// Whether transactions count that are in flight at the end.
    pub(super) fn counts_in_flight(&self) -> bool {
        self.stops_by_count() || self.drain != Drain::Uncounted
    }

    /// Whether a measurement by duration ends with its last transaction, before its time if no other start is due.
    fn is_once(&self) -> bool {
        self.drain == Drain::CountedOnce && !self.stops_by_count()
    }

    /// Whether a session ends whose next start is `intended`, instead of waiting for the end of the measurement.
    pub(super) fn ends_before(&self, intended: Nanos) -> bool {
        self.is_once() && intended >= self.end()
    }

    /// Whether a transaction with a failed attempt may be repeated and, if it is not, counts as failed.
    pub(super) fn is_open(&self, claimed: bool, now: Nanos) -> bool {
        claimed || now < self.end() || self.drain == Drain::Counted
    }

    /// Returns the end of the measured window. If the transactions in flight count, there is none in advance: the last
    /// one may finish long after it has started.
    pub(super) fn planned_end(&self) -> Nanos {
        Nanos(self.planned_end.load(Ordering::Relaxed))
    }

    /// Ends the measurement now. Has no effect if it has ended already.
    pub(super) fn end_now(&self, now: Nanos) {
        self.end.fetch_min(now.0, Ordering::Relaxed);
        if !self.counts_in_flight() {
            self.planned_end.fetch_min(now.0, Ordering::Relaxed);
        }
    }

    /// Ends the measurement after the failure of a session.
    pub(super) fn fail(&self, now: Nanos) {
        self.failed.store(true, Ordering::Relaxed);
        self.end_now(now);
    }

    /// Returns the maximum time for transactions in flight at the end to finish; none if they count and the
    /// measurement was not interrupted.
    pub(super) fn drain_timeout(&self, interrupted: bool) -> Duration {
        if self.has_failed() {
            DRAIN_AFTER_FAILURE
        } else if self.drain == Drain::Uncounted || interrupted {
            DRAIN
        } else {
            Duration::MAX
        }
    }

    /// Aborts the transactions that are still in flight.
    pub(super) fn abort(&self, waited: Duration) {
        let seconds = waited.as_secs() + 1;
        let _ = self.aborted.compare_exchange(0, seconds, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the seconds after which the drain was aborted; `None` if it was not.
    pub(super) fn aborted_after_s(&self) -> Option<u64> {
        self.aborted.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Counts a worker whose last transaction has ended.
    pub(super) fn finish_worker(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of workers whose last transaction has ended. They may still check plans.
    pub(super) fn finished_workers(&self) -> usize {
        self.finished.load(Ordering::Relaxed)
    }

    /// Returns whether a session has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn permit(&self, now: Nanos) -> Permission {
        if now >= self.end() {
            return Permission::End;
        }
        let allowed = match self.stop {
            Stop::DurationS(_) => return Permission::Start { claimed: false },
            _ if now < self.measure_start => return Permission::Start { claimed: false },
            Stop::Transactions(count) => self.done.fetch_add(1, Ordering::Relaxed) < count,
            Stop::Rows(count) => self.done.load(Ordering::Relaxed) < count,
        };
        if allowed {
            return Permission::Start { claimed: true };
        }
        self.end_now(now);
        Permission::End
    }

    /// Returns whether a transaction that ended at `ended` is part of the measurement. A claimed
    /// transaction always is, up to the maximum duration.
    #[inline]
    pub(super) fn counts(&self, claimed: bool, ended: Nanos, rows: u64) -> bool {
        let in_time = ended < self.planned_end();
        let claimed = claimed && in_time;
        match self.stop {
            Stop::DurationS(_) => ended >= self.measure_start && in_time,
            Stop::Transactions(_) => claimed,
            Stop::Rows(_) => {
                if claimed {
                    self.done.fetch_add(rows, Ordering::Relaxed);
                }
                claimed
            }
        }
    }

    /// Returns whether an event at `now` is part of the measurement.
    #[inline]
    pub(super) fn is_measured(&self, now: Nanos) -> bool {
        now >= self.measure_start && now < self.planned_end()
    }

    /// Returns whether the first half of the measurement has passed.
    #[inline]
    pub(super) fn is_past_half(&self, now: Nanos) -> bool {
        let is_past_half = if self.stops_by_count() {
            self.done.load(Ordering::Relaxed) > self.stop.count() / 2
        } else {
            now.since(self.measure_start).0 >= self.end().since(self.measure_start).0 / 2
        };
        is_past_half && now >= self.measure_start
    }

    /// Returns whether the run stops after a number of transactions or rows instead of a duration.
    pub(super) fn stops_by_count(&self) -> bool {
        !matches!(self.stop, Stop::DurationS(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Nanos = Nanos(1_000);

    #[test]
    fn counts_transactions_that_end_within_the_time_window() {
        let window = Window::new(Stop::DurationS(1e-6), None, START);
        assert_eq!(window.end(), Nanos(2_000));
        for (ended, counts) in [(999, false), (1_000, true), (1_999, true), (2_000, false)] {
            assert_eq!(window.counts(false, Nanos(ended), 1), counts, "{ended}");
        }
        assert_eq!(window.permit(Nanos(0)), Permission::Start { claimed: false });
        assert_eq!(window.permit(Nanos(2_000)), Permission::End);
        assert!(!window.is_past_half(Nanos(500)) && !window.is_past_half(Nanos(1_499)));
        assert!(window.is_past_half(Nanos(1_500)));
    }

    #[test]
    fn permits_exactly_the_requested_transactions_after_an_unlimited_warmup() {
        let window = Window::new(Stop::Transactions(3), None, START);
        assert_eq!(window.permit(Nanos(5)), Permission::Start { claimed: false });
        let started =
            (0..10).filter(|_| window.permit(START) == Permission::Start { claimed: true }).count();
        assert_eq!(started, 3);
        assert_eq!(window.end(), START);
        assert!(window.counts(true, Nanos(9_999), 1));
        assert!(!window.counts(false, Nanos(1_500), 1));
    }

    #[test]
    fn stops_after_the_transaction_that_reaches_the_row_limit() {
        let window = Window::new(Stop::Rows(25), None, START);
        let mut started = 0;
        while window.permit(START) == (Permission::Start { claimed: true }) {
            started += 1;
            assert!(window.counts(true, START, 10));
        }
        assert_eq!(started, 3);
    }

    #[test]
    fn a_count_ends_after_the_maximum_duration_at_the_latest() {
        let window = Window::new(Stop::Transactions(3), Some(1e-6), START);
        assert_eq!(window.permit(START), Permission::Start { claimed: true });
        assert_eq!(window.permit(Nanos(2_000)), Permission::End);
        assert!(window.counts(true, Nanos(1_999), 1) && !window.counts(true, Nanos(2_000), 1));
        assert!(window.stops_by_count() && !window.has_ended_by_count());
        // Without a transaction at the end, the time until then is part of the measurement.
        assert_eq!(window.measured_end(Nanos(1_100)), Nanos(2_000));
        let reached = Window::new(Stop::Transactions(1), Some(1e-6), START);
        assert_eq!(reached.permit(START), Permission::Start { claimed: true });
        assert_eq!(reached.measured_end(Nanos(1_100)), Nanos(1_100));
    }

    #[test]
    fn the_interval_after_the_last_start_of_a_rate_belongs_to_the_measurement() {
        let paced = |count, schedule: &Schedule| {
            Window::new(Stop::Transactions(count), None, START).with_schedule(schedule)
        };
        let constant = Schedule::Constant { per_s: 2e6 };
        let window = paced(2, &constant);
        assert_eq!(window.permit(START), Permission::Start { claimed: true });
        // Interrupted before the second start.
        assert_eq!(window.measured_end(Nanos(1_100)), Nanos(1_100));
        assert_eq!(window.permit(Nanos(1_500)), Permission::Start { claimed: true });
        assert_eq!(window.permit(Nanos(2_000)), Permission::End);
        assert_eq!(window.measured_end(Nanos(1_600)), Nanos(2_000));
        assert_eq!(window.measured_end(Nanos(2_300)), Nanos(2_300));
        for schedule in [Schedule::Closed, Schedule::Poisson { per_s: 2e6 }] {
            let window = paced(1, &schedule);
            assert_eq!(window.permit(START), Permission::Start { claimed: true });
            assert_eq!(window.measured_end(Nanos(1_100)), Nanos(1_100));
        }
    }

    #[test]
    fn transactions_in_flight_count_until_the_last_one_if_the_plan_says_so() {
        let window = |drain| Window::new(Stop::DurationS(1e-6), None, START).with_drain(drain);
        for (drain, counts, last, early) in [
            (Drain::Uncounted, false, 2_000, 2_000),
            (Drain::Counted, true, 2_700, 2_000),
            (Drain::CountedOnce, true, 2_700, 1_900),
        ] {
            let window = window(drain);
            assert_eq!(window.permit(Nanos(1_999)), Permission::Start { claimed: false });
            assert_eq!(window.permit(Nanos(2_000)), Permission::End, "{drain}");
            assert_eq!(window.counts(false, Nanos(2_700), 1), counts, "{drain}");
            assert_eq!(window.is_measured(Nanos(2_700)), counts, "{drain}");
            assert_eq!(window.measured_end(Nanos(2_700)), Nanos(last), "{drain}");
            assert_eq!(window.measured_end(Nanos(1_900)), Nanos(early), "{drain}");
            assert_eq!(window.measured_end(START), Nanos(2_000), "{drain}: no transaction");
            // The last one of an interrupted measurement counts too.
            window.end_now(Nanos(1_500));
            assert_eq!(window.counts(false, Nanos(1_600), 1), counts, "{drain}");
            // A failure after the time is retried only if the transaction must be completed.
            let is_open = window.is_open(false, Nanos(2_700));
            assert_eq!(is_open, drain == Drain::Counted, "{drain}");
        }
    }

    #[test]
    fn counted_transactions_in_flight_have_no_timeout_without_an_interrupt_or_a_failure() {
        let window = |drain| Window::new(Stop::DurationS(1e-6), None, START).with_drain(drain);
        assert_eq!(window(Drain::Uncounted).drain_timeout(false), DRAIN);
        let counted = window(Drain::Counted);
        assert_eq!(counted.drain_timeout(false), Duration::MAX);
        assert_eq!(counted.drain_timeout(true), DRAIN);
        counted.fail(Nanos(1_500));
        assert_eq!(counted.drain_timeout(false), DRAIN_AFTER_FAILURE);
    }

    #[test]
    fn the_maximum_duration_of_a_count_permits_its_transactions_in_flight_to_finish() {
        let window =
            Window::new(Stop::Transactions(3), Some(1e-6), START).with_drain(Drain::Counted);
        assert_eq!(window.permit(START), Permission::Start { claimed: true });
        assert_eq!(window.permit(Nanos(2_000)), Permission::End);
        assert!(window.counts(true, Nanos(2_700), 1));
        assert_eq!(window.measured_end(Nanos(2_700)), Nanos(2_700));
    }

    #[test]
    fn a_second_early_end_does_not_extend_the_measurement() {
        let window = Window::new(Stop::DurationS(1e-6), None, START);
        window.end_now(Nanos(1_500));
        window.end_now(Nanos(1_800));
        assert_eq!(window.end(), Nanos(1_500));
    }
}
