//! Measurements of the single commands of scripts.

use riops_wire::sqlstate::SqlState;

use riops_model::record::{Histogram, HistogramError};
use riops_model::units::Nanos;

/// Number of commands up to which their histograms have the precision of operations.
const PRECISE_MAX: usize = 64;
/// Maximum number of distinct SQLSTATEs of a command; further ones are added to the last.
const SQLSTATES_MAX: usize = 16;

/// Measurements of one command.
#[derive(Debug, Clone, Default)]
pub struct CommandTotals {
    /// Times from the send to the end of the reply; `None` if it was never executed.
    pub service: Option<Box<Histogram>>,
    /// Number of failed executions.
    pub failures: u64,
    /// Number of them after which the transaction was retried.
    pub retries: u64,
    /// Number of failed executions by SQLSTATE.
    pub errors: Vec<(SqlState, u64)>,
}

impl CommandTotals {
    fn add_errors(&mut self, sqlstate: SqlState, count: u64) {
        let known = self.errors.iter().position(|(known, _)| *known == sqlstate);
        let full = (self.errors.len() == SQLSTATES_MAX).then_some(SQLSTATES_MAX - 1);
        match known.or(full).and_then(|position| self.errors.get_mut(position)) {
            Some(entry) => entry.1 += count,
            None => self.errors.push((sqlstate, count)),
        }
    }
}

/// Number of executions after which they are added to the histograms: between two of them, the server uses the same caches.
const PENDING_MAX: usize = 256;

/// Measurements of all commands of the scripts of a stage, by their number.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    /// The measurements, in the order of the commands.
    pub totals: Vec<CommandTotals>,
    /// Executions that are not added yet, oldest first.
    pending: Vec<(usize, Nanos)>,
}

impl Commands {
    /// Creates counters for this many commands. Each allocates its histogram at its first execution.
    pub fn new(count: usize) -> Self {
        let pending = if count == 0 { 0 } else { PENDING_MAX };
        Self { totals: vec![CommandTotals::default(); count], pending: Vec::with_capacity(pending) }
    }

    /// Counts a successful execution. Complete after [`Self::finish`].
    #[inline]
    pub fn record(&mut self, command: usize, took: Nanos) {
        self.pending.push((command, took));
        if self.pending.len() >= PENDING_MAX {
            self.finish();
        }
    }

    /// Adds everything that is still to be counted.
    pub fn finish(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.drain(..).for_each(|(command, took)| self.add(command, took));
        self.pending = pending;
    }

    fn add(&mut self, command: usize, took: Nanos) {
        let precise = self.totals.len() <= PRECISE_MAX;
        let Some(totals) = self.totals.get_mut(command) else {
            return;
        };
        if totals.service.is_none() {
            let new = if precise { Histogram::new() } else { Histogram::for_interval() };
            // The bounds are valid.
            totals.service = new.ok().map(Box::new);
        }
        if let Some(service) = &mut totals.service {
            service.record(took);
        }
    }

    /// Counts a failed execution.
    pub fn count_failure(&mut self, command: usize, sqlstate: SqlState, retried: bool) {
        if let Some(totals) = self.totals.get_mut(command) {
            totals.failures += 1;
            totals.retries += u64::from(retried);
            totals.add_errors(sqlstate, 1);
        }
    }

    /// Adds the measurements of another worker.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the histograms have different bounds.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        if self.totals.len() < other.totals.len() {
            self.totals.resize(other.totals.len(), CommandTotals::default());
        }
        for (mine, theirs) in self.totals.iter_mut().zip(&other.totals) {
            mine.failures += theirs.failures;
            mine.retries += theirs.retries;
            theirs.errors.iter().for_each(|(sqlstate, count)| mine.add_errors(*sqlstate, *count));
            match (&mut mine.service, &theirs.service) {
                (Some(mine), Some(theirs)) => mine.merge(theirs)?,
                (mine @ None, theirs) => mine.clone_from(theirs),
                (Some(_), None) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_the_measurements_of_two_workers() {
        let (mut one, mut other) = (Commands::new(2), Commands::new(2));
        one.record(0, Nanos(1_000));
        other.record(0, Nanos(3_000));
        other.record(1, Nanos(5_000));
        other.record(7, Nanos(5_000));
        one.count_failure(1, SqlState::DEADLOCK_DETECTED, true);
        other.count_failure(1, SqlState::DEADLOCK_DETECTED, false);
        one.finish();
        other.finish();
        one.merge(&other).unwrap();
        let counts: Vec<_> = one
            .totals
            .iter()
            .map(|command| (command.service.as_ref().map(|times| times.count()), command.failures))
            .collect();
        assert_eq!(counts, [(Some(2), 0), (Some(1), 2)]);
        assert_eq!(one.totals[1].errors, [(SqlState::DEADLOCK_DETECTED, 2)]);
        assert_eq!(one.totals[1].retries, 1);
    }

    #[test]
    fn the_number_of_sqlstates_is_limited() {
        let mut commands = Commands::new(1);
        for code in 0..50 {
            commands.count_failure(0, SqlState::parse(&format!("{code:05}")), false);
        }
        let errors = &commands.totals[0].errors;
        assert_eq!(errors.len(), SQLSTATES_MAX);
        assert_eq!(errors.iter().map(|(_, count)| count).sum::<u64>(), 50);
    }
}
