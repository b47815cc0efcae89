//! Outcomes of the transactions that were due in each step of a rate profile.

use riops_model::record::{HistogramError, Latencies};
use riops_model::units::Nanos;

/// Outcome of a transaction that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It succeeded within the measurement.
    Answered,
    /// It failed within the measurement, or its outcome is unknown.
    Failed,
    /// It was not sent, because it would have been late.
    Skipped,
    /// It was in flight at the end of the measurement, and succeeded later.
    Drained,
    /// It was in flight at the end of the measurement, and did not succeed.
    Lost,
    /// No session had begun it at the end of the measurement.
    NotStarted,
}

/// The transactions that were due in a step.
#[derive(Debug, Clone)]
pub struct StepTotals {
    /// Number of each [`Fate`].
    counts: [u64; 6],
    /// Their response times.
    pub response: Latencies,
}

impl StepTotals {
    /// Returns the number of transactions with this fate.
    pub fn count(&self, fate: Fate) -> u64 {
        self.counts.get(fate as usize).copied().unwrap_or(0)
    }
}

/// The steps of a profile; none without one.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    start: Nanos,
    /// Ends of the steps, since the start of the measurement.
    ends: Vec<Nanos>,
    /// The steps.
    pub totals: Vec<StepTotals>,
}

impl Steps {
    /// Creates steps that end at these times since the start of the measurement.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created.
    pub fn new(ends: Vec<Nanos>) -> Result<Self, HistogramError> {
        let step = |_| Ok(StepTotals { counts: [0; 6], response: Latencies::new()? });
        let totals = ends.iter().map(step).collect::<Result<_, _>>()?;
        Ok(Self { start: Nanos(0), ends, totals })
    }

    /// The measurement starts.
    pub fn begin(&mut self, start: Nanos) {
        self.start = start;
    }

    /// Adds a transaction whose response time, or the time that it has waited, ended at `now`.
    pub fn add(&mut self, fate: Fate, response: Nanos, now: Nanos) {
        let intended = now.since(response);
        if intended < self.start {
            return;
        }
        let position = self.ends.partition_point(|end| *end <= intended.since(self.start));
        let Some(step) = self.totals.get_mut(position) else {
            return;
        };
        if let Some(count) = step.counts.get_mut(fate as usize) {
            *count += 1;
        }
        match fate {
            Fate::Answered => step.response.observed.record(response),
            Fate::Drained => step.response.drained(response),
            Fate::Failed | Fate::Skipped | Fate::Lost | Fate::NotStarted => {
                step.response.unfinished(response);
            }
        }
    }

    /// Adds the transactions of another worker.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be merged.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        for (mine, theirs) in self.totals.iter_mut().zip(&other.totals) {
            mine.counts.iter_mut().zip(theirs.counts).for_each(|(mine, theirs)| *mine += theirs);
            mine.response.merge(&theirs.response)?;
        }
        Ok(())
    }
}
