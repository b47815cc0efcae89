//! Steps of the system clock: it was set, or the machine was suspended. The times of riops do not depend on it, but timeouts and sleeps
//! of a server on this machine do.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use riops_model::record::ClockStep;

/// Smaller differences are errors of the two readings.
const STEP_MIN_S: f64 = 0.01;
/// Readings that took longer do not belong to one time.
const READING_MAX: Duration = Duration::from_millis(1);
/// Maximum number of stored steps.
const STEPS_MAX: usize = 100;

/// Compares the system clock with the monotonic one, which is never set. The correction of their speed by NTP concerns both
/// (`clock_gettime`(2)).
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    offset_s: Option<f64>,
    pub(super) steps: Vec<ClockStep>,
}

impl ClockWatch {
    /// Compares the clocks now, `t_s` seconds after the start.
    pub(super) fn read(&mut self, t_s: f64) {
        let seconds = |time: Timespec| time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        let before = clock_gettime(ClockId::Monotonic);
        let system = clock_gettime(ClockId::Realtime);
        let after = clock_gettime(ClockId::Monotonic);
        if seconds(after) - seconds(before) <= READING_MAX.as_secs_f64() {
            self.add(t_s, seconds(system) - seconds(before));
        }
    }

    fn add(&mut self, t_s: f64, offset_s: f64) {
        let before_s = self.offset_s.replace(offset_s).unwrap_or(offset_s);
        let step_s = offset_s - before_s;
        if step_s.abs() >= STEP_MIN_S && self.steps.len() < STEPS_MAX {
            self.steps.push(ClockStep { t_s, step_s });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_and_forth_has_two_steps() {
        let mut watch = ClockWatch::default();
        for (t_s, offset_s) in
            [(0.0, 100.0), (1.0, 100.0005), (2.0, 98.0), (3.0, 98.0), (4.0, 100.0)]
        {
            watch.add(t_s, offset_s);
        }
        let steps: Vec<_> =
            watch.steps.iter().map(|step| (step.t_s, step.step_s.round())).collect();
        assert_eq!(steps, [(2.0, -2.0), (4.0, 2.0)]);
        let mut watch = ClockWatch::default();
        (0..3).for_each(|second| watch.read(f64::from(second)));
        assert_eq!(watch.steps, []);
    }
}
