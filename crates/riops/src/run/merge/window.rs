//! The time in which the clients of a merged run measured.

use super::fit::MergeError;
use crate::plan::Plan;
use crate::record::StageRecord;
use crate::units::format::duration_us;

/// The windows of the clients are one if they have at least this share in common: repeated runs differ by more.
const ONE_WINDOW_SHARE: f64 = 0.99;
/// With a smaller common share, the latencies are those of another load for a relevant part of the time.
pub(super) const VALID_SHARE: f64 = 0.9;

/// The windows of all clients of a stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Window {
    /// By how much each client started before the last one, in seconds.
    pub(super) before_s: Vec<f64>,
    /// Length of the time in which all measured, in seconds.
    pub(super) common_s: f64,
    /// Time from the first start to the last end, in seconds.
    pub(super) whole_s: f64,
    /// Length of the longest window, in seconds.
    longest_s: f64,
    /// Whether each client ends on its own, after its share of the transactions.
    ends_by_count: bool,
}

impl Window {
    /// Returns the windows of a stage.
    ///
    /// # Errors
    /// [`MergeError::Unfit`] if no time is common to all.
    pub(super) fn of(stages: &[&StageRecord], plan: &Plan) -> Result<Self, MergeError> {
        let starts = stages.iter().map(|stage| {
            let at = stage.started_at.map(|at| at.as_nanosecond() as f64 / 1e9);
            let missing = || format!("stage {} has no start time", stage.name);
            at.ok_or_else(|| MergeError::Unfit(missing()))
        });
        let starts: Vec<f64> = starts.collect::<Result<_, _>>()?;
        let ends = || starts.iter().zip(stages).map(|(start, stage)| start + stage.seconds);
        let last_start = starts.iter().copied().fold(f64::MIN, f64::max);
        let first_start = starts.iter().copied().fold(f64::MAX, f64::min);
        let common_s = ends().fold(f64::MAX, f64::min) - last_start;
        if common_s <= 0.0 {
            let apart = duration_us(-common_s * 1e6);
            return Err(MergeError::Unfit(format!(
                "they did not take place at the same time: one ended {apart} before another started to measure"
            )));
        }
        Ok(Self {
            before_s: starts.iter().map(|start| last_start - start).collect(),
            common_s,
            whole_s: ends().fold(f64::MIN, f64::max) - first_start,
            longest_s: stages.iter().map(|stage| stage.seconds).fold(0.0, f64::max),
            ends_by_count: plan.stop.seconds().is_none(),
        })
    }

    /// Returns the share of the time of the measurements in which all clients measured, 0 to 1.
    pub(super) fn common_share(&self) -> f64 {
        let start_s = self.before_s.iter().copied().fold(0.0, f64::max);
        let whole_s = if self.ends_by_count { self.common_s + start_s } else { self.whole_s };
        self.common_s / whole_s.max(f64::MIN_POSITIVE)
    }

    /// Whether the windows are so similar that they are one.
    pub(super) fn is_one(&self) -> bool {
        self.common_share() >= ONE_WINDOW_SHARE
    }

    /// Returns the length of the measurement, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        match (self.is_one(), self.ends_by_count) {
            (true, false) => self.longest_s,
            (_, true) => self.whole_s,
            (false, false) => self.common_s,
        }
    }

    /// Returns the start of the common window in a series with intervals of this length: the number of intervals that each
    /// client had before.
    pub(super) fn intervals_before(&self, interval_s: f64) -> Vec<usize> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small number"
        )]
        let number = |before: &f64| (before / interval_s.max(f64::MIN_POSITIVE)).round() as usize;
        self.before_s.iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Stop;

    fn stage(start_s: f64, seconds: f64) -> StageRecord {
        #[expect(clippy::cast_possible_truncation, reason = "a small number")]
        let at = jiff::Timestamp::from_nanosecond((start_s * 1e9) as i128).unwrap();
        StageRecord { started_at: Some(at), seconds, ..StageRecord::default() }
    }

    fn window(stages: &[StageRecord], stop: Stop) -> Result<Window, MergeError> {
        let stages: Vec<_> = stages.iter().collect();
        Window::of(&stages, &Plan { stop, ..Plan::default() })
    }

    #[test]
    fn windows_that_differ_by_little_are_one() {
        let duration = Stop::DurationS(10.0);
        let found = window(&[stage(100.0, 10.0), stage(100.02, 10.0)], duration).unwrap();
        assert!(found.is_one());
        assert!((found.seconds() - 10.0).abs() < 1e-6);
        let found = window(&[stage(100.0, 10.0), stage(102.0, 10.0)], duration).unwrap();
        assert!(!found.is_one());
        assert!((found.common_share() - 8.0 / 12.0).abs() < 1e-6);
        assert!((found.seconds() - 8.0).abs() < 1e-6);
        assert_eq!(found.intervals_before(1.0), [2, 0]);
        let apart = window(&[stage(100.0, 10.0), stage(110.5, 10.0)], duration).unwrap_err();
        assert!(apart.to_string().contains("one ended 500 ms before another"), "{apart}");
    }

    #[test]
    fn clients_that_end_by_count_may_end_at_different_times() {
        let stages = [stage(100.0, 10.0), stage(100.0, 7.0)];
        let found = window(&stages, Stop::Transactions(100)).unwrap();
        assert!(found.is_one());
        assert!((found.seconds() - 10.0).abs() < 1e-6);
    }
}
