//! The thresholds of all agents while they run: whether one is breached, from the intervals of all.

use crate::metrics::{Figures, IntervalPart};
use crate::plan::{Plan, Schedule, Threshold};
use crate::record::{HistogramError, Point};

/// The sum of the intervals so far.
#[derive(Debug)]
pub(super) struct Watch {
    thresholds: Vec<Threshold>,
    sum: IntervalPart,
    seconds: f64,
}

impl Watch {
    /// Returns that of a plan that ends with a breach; `None` for another one.
    pub(super) fn of(plan: &Plan) -> Result<Option<Self>, HistogramError> {
        if !plan.abort_on_threshold {
            return Ok(None);
        }
        let sum = IntervalPart::new(plan.schedule != Schedule::Closed)?;
        Ok(Some(Self { thresholds: plan.thresholds.clone(), sum, seconds: 0.0 }))
    }

    /// Adds an interval of all agents. Returns a threshold that is breached since its start.
    pub(super) fn add<'a>(
        &mut self,
        points: impl Iterator<Item = &'a Point>,
    ) -> Result<Option<&Threshold>, HistogramError> {
        let mut seconds: f64 = 0.0;
        for point in points {
            self.sum.add_point(point)?;
            seconds = seconds.max(point.seconds);
        }
        self.seconds += seconds;
        Ok(Figures::so_far(&self.sum, self.seconds).breached(&self.thresholds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Counter, Timeline};
    use crate::plan::Share;
    use crate::units::Nanos;

    /// Returns an interval of one second with transactions of these latencies in milliseconds.
    fn point(latencies_ms: &[u64]) -> Point {
        let mut part = IntervalPart::new(false).unwrap();
        part.counters
            .add([(Counter::Transactions, latencies_ms.len() as u64), (Counter::Errors, 1)]);
        for latency in latencies_ms {
            part.service.record(Nanos(latency * 1_000_000));
        }
        let share = Some(Share { agent: 0, agents: 1 });
        let plan = Plan { share, percentile: 0.0, interval_s: 1.0, ..Plan::default() };
        let mut timeline = Timeline::new(1, &plan).unwrap();
        timeline.add(&part).unwrap().remove(0)
    }

    #[test]
    fn thresholds_apply_to_all_agents_since_the_start() {
        let found = |threshold: &str, intervals: &[&[Point]]| {
            let thresholds = vec![threshold.parse().unwrap()];
            let plan = Plan { thresholds, abort_on_threshold: true, ..Plan::default() };
            let mut watch = Watch::of(&plan).unwrap().unwrap();
            let mut breached = |each: &&[Point]| watch.add(each.iter()).unwrap().is_some();
            intervals.iter().map(&mut breached).collect::<Vec<_>>()
        };
        let fast = || point(&[1, 1, 1]);
        // Each agent has 3 transactions per second and one error, all together twice as many.
        assert_eq!(found("tps>5", &[&[fast()], &[fast()]]), [true, true]);
        assert_eq!(found("tps>5", &[&[fast(), fast()], &[fast(), fast()]]), [false, false]);
        assert_eq!(found("errors<4", &[&[fast(), fast()], &[fast(), fast()]]), [false, true]);
        // The median of 3 of 1 ms and 5 of 9 ms is not that of either agent.
        assert_eq!(found("p50<8ms", &[&[fast(), fast()]]), [false]);
        assert_eq!(found("p50<8ms", &[&[fast(), point(&[9; 5])]]), [true]);
        assert!(Watch::of(&Plan::default()).unwrap().is_none());
    }
}
