//! When a measurement starts and ends: on the clock, or after a number of transactions or rows.
//!
//! The one thing that the workers of a stage share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::plan::Stop;
use crate::units::Nanos;

/// How long transactions may take to end after the measurement has.
const DRAIN: Duration = Duration::from_mins(1);
/// The same after a failure: sessions of a server that was killed may never answer.
const DRAIN_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Whether a session may start a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    /// Yes. `claimed` says that it is one of those that are counted by number.
    Start { claimed: bool },
    /// No, and none after it.
    End,
}

/// The bounds of one measurement.
#[derive(Debug)]
pub(super) struct Limit {
    stop: Stop,
    measure_start: Nanos,
    /// On the clock; `u64::MAX` while a number decides.
    end: AtomicU64,
    /// Transactions claimed, or rows done, where a number decides.
    done: AtomicU64,
    /// A session has failed: what else is under way is not worth a long wait.
    failed: AtomicBool,
    /// Seconds after which the drain was given up, plus one; 0 as long as it was not.
    aborted: AtomicU64,
}

impl Limit {
    pub(super) fn new(stop: Stop, measure_start: Nanos) -> Self {
        let end = match stop {
            Stop::DurationS(seconds) => {
                measure_start.after(Duration::try_from_secs_f64(seconds).unwrap_or_default().into())
            }
            Stop::Transactions(_) | Stop::Rows(_) => Nanos::MAX,
        };
        Self {
            stop,
            measure_start,
            end: AtomicU64::new(end.0),
            done: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            aborted: AtomicU64::new(0),
        }
    }

    pub(super) fn measure_start(&self) -> Nanos {
        self.measure_start
    }

    pub(super) fn end(&self) -> Nanos {
        Nanos(self.end.load(Ordering::Relaxed))
    }

    /// Where the window ends in which everything is measured: a number decides only with its last
    /// transaction, which may end long after the last one has started.
    pub(super) fn window_end(&self) -> Nanos {
        if self.is_by_number() { Nanos::MAX } else { self.end() }
    }

    /// Ends the measurement now, unless it has ended already.
    pub(super) fn end_now(&self, now: Nanos) {
        self.end.fetch_min(now.0, Ordering::Relaxed);
    }

    /// Ends the measurement since a session has failed.
    pub(super) fn fail(&self, now: Nanos) {
        self.failed.store(true, Ordering::Relaxed);
        self.end_now(now);
    }

    /// How long what is under way at the end may still take.
    pub(super) fn patience(&self) -> Duration {
        if self.failed.load(Ordering::Relaxed) { DRAIN_AFTER_FAILURE } else { DRAIN }
    }

    /// Gives up the transactions that are still under way.
    pub(super) fn abort(&self, waited: Duration) {
        let seconds = waited.as_secs() + 1;
        let _ = self.aborted.compare_exchange(0, seconds, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// How long was waited before, where it was given up.
    pub(super) fn aborted_after_s(&self) -> Option<u64> {
        self.aborted.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether a session has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

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

    /// Whether a transaction that ended at `ended` counts; one that was claimed always does.
    pub(super) fn counts(&self, claimed: bool, ended: Nanos, rows: u64) -> bool {
        match self.stop {
            Stop::DurationS(_) => ended >= self.measure_start && ended < self.end(),
            Stop::Transactions(_) => claimed,
            Stop::Rows(_) => {
                if claimed {
                    self.done.fetch_add(rows, Ordering::Relaxed);
                }
                claimed
            }
        }
    }

    /// Whether what happens now is part of the measurement.
    pub(super) fn is_measured(&self, now: Nanos) -> bool {
        now >= self.measure_start && now < self.window_end()
    }

    /// Whether half of the measurement is over.
    pub(super) fn half_is_over(&self, now: Nanos) -> bool {
        match self.stop {
            Stop::DurationS(_) => {
                now.since(self.measure_start).0 >= self.end().since(self.measure_start).0 / 2
                    && now >= self.measure_start
            }
            Stop::Transactions(count) | Stop::Rows(count) => {
                self.done.load(Ordering::Relaxed) > count / 2 && now >= self.measure_start
            }
        }
    }

    /// Whether a number decides, and not the clock.
    pub(super) fn is_by_number(&self) -> bool {
        !matches!(self.stop, Stop::DurationS(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Nanos = Nanos(1_000);

    #[test]
    fn on_the_clock_what_ends_within_the_window_counts() {
        let limit = Limit::new(Stop::DurationS(1e-6), START);
        assert_eq!(limit.end(), Nanos(2_000));
        for (ended, counts) in [(999, false), (1_000, true), (1_999, true), (2_000, false)] {
            assert_eq!(limit.counts(false, Nanos(ended), 1), counts, "{ended}");
        }
        assert_eq!(limit.permit(Nanos(0)), Permission::Start { claimed: false });
        assert_eq!(limit.permit(Nanos(2_000)), Permission::End);
        assert!(!limit.half_is_over(Nanos(500)) && !limit.half_is_over(Nanos(1_499)));
        assert!(limit.half_is_over(Nanos(1_500)));
    }

    #[test]
    fn a_number_of_transactions_is_kept_exactly_and_the_warm_up_is_free() {
        let limit = Limit::new(Stop::Transactions(3), START);
        assert_eq!(limit.permit(Nanos(5)), Permission::Start { claimed: false });
        let started =
            (0..10).filter(|_| limit.permit(START) == Permission::Start { claimed: true }).count();
        assert_eq!(started, 3);
        assert_eq!(limit.end(), START);
        assert!(limit.counts(true, Nanos(9_999), 1));
        assert!(!limit.counts(false, Nanos(1_500), 1));
    }

    #[test]
    fn a_number_of_rows_ends_with_the_transaction_that_reaches_it() {
        let limit = Limit::new(Stop::Rows(25), START);
        let mut started = 0;
        while limit.permit(START) == (Permission::Start { claimed: true }) {
            started += 1;
            assert!(limit.counts(true, START, 10));
        }
        assert_eq!(started, 3);
    }

    #[test]
    fn ending_early_never_moves_the_end_back() {
        let limit = Limit::new(Stop::DurationS(1e-6), START);
        limit.end_now(Nanos(1_500));
        limit.end_now(Nanos(1_800));
        assert_eq!(limit.end(), Nanos(1_500));
    }
}
