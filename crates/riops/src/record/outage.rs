//! Whether the server was available: the longest outage of a stage, and whether the stage ended in one.

use super::ErrorEntry;
use super::stage::StageRecord;

/// A shorter time without success at the end may be that of one slow transaction, in seconds.
const OUTAGE_S_MIN: f64 = 1.0;
/// From this share of the measurement on, a time without success changes the result by as much as other differences that
/// matter.
const PAUSE_SHARE: f64 = 0.01;
/// A shorter time without success may be that of one time slice of another process, in seconds.
const PAUSE_S_MIN: f64 = 0.1;
/// A time without success that is this much longer than the usual one, or than the median service time, is none of those
/// that occur by chance.
const PAUSE_FACTOR: f64 = 10.0;
/// Tolerance for a sum of interval lengths, in seconds: far below the shortest interval.
const ROUNDING_S: f64 = 1e-6;

impl StageRecord {
    /// Returns the longest time without a successful transaction, in seconds, if it is far longer than usual and a
    /// relevant part of the measurement, whether there was an error or not.
    #[must_use]
    pub fn long_pause_s(&self) -> Option<f64> {
        let longest = self.session_loop.longest_pause_s;
        let seconds = longest.into_iter().chain(self.longest_outage_s()).max_by(f64::total_cmp)?;
        let between_s = self.seconds / self.transactions.max(1) as f64;
        let service_s = self.session_loop.service_us.as_ref().map_or(0.0, |us| us.p50 / 1e6);
        let is_long = seconds >= PAUSE_S_MIN.max(PAUSE_FACTOR * between_s.max(service_s));
        // With a rate, a transaction that was due in the first half waits for at least half of it.
        let waited_us = self.session_loop.response_us.as_ref().map_or(f64::INFINITY, |of| of.max);
        let is_long = is_long && waited_us >= seconds * 1e6 / 2.0;
        Some(seconds).filter(|_| is_long && seconds >= PAUSE_SHARE * self.seconds)
    }

    /// Returns the longest time without a successful transaction after an error, in seconds.
    #[must_use]
    pub fn longest_outage_s(&self) -> Option<f64> {
        let outages = self.session_loop.errors.iter().filter_map(|error| error.without_success_s);
        outages.max_by(f64::total_cmp)
    }

    /// Whether the measurement ended in an outage: a connection was lost or refused, there was an error, and from its
    /// interval on at least one second of intervals without a successful transaction. An earlier outage from which the server recovered does not
    /// count, nor does a slow transaction at the end.
    #[must_use]
    pub fn ended_in_an_outage(&self) -> bool {
        let series = &self.session_loop.series;
        let empty = series.iter().rev().take_while(|point| point.transactions == 0).count();
        let (before, trailing) = series.split_at(series.len() - empty);
        // `fold` from 0.0: the sum of an empty iterator is a negative zero.
        let without_success_s = trailing.iter().fold(0.0, |sum, point| sum + point.seconds);
        let has_failed = before.last().into_iter().chain(trailing).any(|point| point.errors > 0);
        let is_lost = |error: &ErrorEntry| {
            let sqlstate = error.sqlstate.as_str();
            sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate == "53300"
        };
        let was_lost = self.session_loop.errors.iter().any(is_lost);
        was_lost && has_failed && without_success_s + ROUNDING_S >= OUTAGE_S_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Point;

    /// A stage with an outage of 2.5 s somewhere, and points of a length, transactions and errors.
    fn stage(points: &[(f64, u64, u64)]) -> StageRecord {
        let mut stage = StageRecord::default();
        stage.session_loop.errors =
            vec![ErrorEntry { without_success_s: Some(2.5), ..entry("08006") }];
        let points = points.iter().map(|&(seconds, transactions, errors)| Point {
            seconds,
            transactions,
            errors,
            ..Point::default()
        });
        stage.session_loop.series = points.collect();
        stage
    }

    #[test]
    fn empty_intervals_of_a_second_after_an_error_at_the_end_are_an_outage() {
        let ended = |points: &[(f64, u64, u64)]| stage(points).ended_in_an_outage();
        assert!(ended(&[(1.0, 50, 0), (1.0, 20, 2), (1.0, 0, 0)]));
        assert!(ended(&[(1.0, 50, 0), (1.0, 0, 2)]));
        // Ten intervals of 0.1 s add up to less than 1 s in floating-point arithmetic.
        let mut short = vec![(0.1, 5, 1)];
        short.extend([(0.1, 0, 0); 10]);
        assert!(ended(&short));
        assert!(!ended(&short[..10]));
    }

    fn entry(sqlstate: &str) -> ErrorEntry {
        ErrorEntry { sqlstate: sqlstate.to_owned(), ..ErrorEntry::default() }
    }

    #[test]
    fn waits_for_locks_after_a_deadlock_are_no_outage() {
        let mut waiting = stage(&[(1.0, 50, 1), (1.0, 0, 0), (1.0, 0, 0)]);
        assert!(waiting.ended_in_an_outage());
        for sqlstate in ["40P01", "22012", "55P03", "57014"] {
            waiting.session_loop.errors = vec![entry(sqlstate)];
            assert!(!waiting.ended_in_an_outage(), "{sqlstate}");
        }
        for sqlstate in ["57P01", "53300", "08001"] {
            waiting.session_loop.errors = vec![entry("40P01"), entry(sqlstate)];
            assert!(waiting.ended_in_an_outage(), "{sqlstate}");
        }
    }

    #[test]
    fn a_recovered_outage_and_a_short_last_interval_are_not_an_outage_at_the_end() {
        let recovered = [(1.0, 50, 0), (1.0, 20, 2), (1.0, 0, 0), (1.0, 0, 0), (1.0, 40, 0)];
        let mut points = recovered.to_vec();
        points.push((0.02, 0, 0));
        assert!(!stage(&points).ended_in_an_outage());
        // Without an error since the last success, the transactions are slow.
        points.push((2.0, 0, 0));
        assert!(!stage(&points).ended_in_an_outage());
        assert_eq!(stage(&points).longest_outage_s(), Some(2.5));
        assert!(!StageRecord::default().ended_in_an_outage());
    }
}
