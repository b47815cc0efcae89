//! Limits of the numbers of an experiment. A file, the command line or a store may contain any number, and riops plans all runs
//! before the first one.

use std::ops::RangeInclusive;

use super::definition::{Experiment, Goal};
use crate::plan::SESSIONS_MAX;

/// Runs of each cell.
pub const REPEATS: RangeInclusive<u32> = 1..=1_000;
/// Maximum number of blocks of an A/B test.
pub const BLOCKS: RangeInclusive<u32> = 4..=100;
/// Disturbed runs of a gate that may be repeated.
const DISTURBED: RangeInclusive<u32> = 0..=1_000;
/// Machines of a gate.
pub const MACHINES: RangeInclusive<u32> = 2..=1_000;
/// Highest number of sessions of a search.
const SESSIONS: RangeInclusive<u32> = 2..=SESSIONS_MAX;
/// Runs of all cells.
const RUNS_MAX: u64 = 1_000_000;

/// A number of an experiment that is outside its limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A given number.
    #[error("{name} must be between {first} and {last}, not {value}")]
    Number {
        /// Its name in a file.
        name: &'static str,
        /// The number.
        value: u32,
        /// The lowest allowed value.
        first: u32,
        /// The highest allowed value.
        last: u32,
    },
    /// The number of all runs.
    #[error("{cells} cells with {repeats} runs each: at most {RUNS_MAX} runs are possible")]
    Runs {
        /// Number of cells.
        cells: usize,
        /// Runs of each cell.
        repeats: u32,
    },
}

impl Experiment {
    /// Fails if one of its numbers is outside its limits.
    ///
    /// # Errors
    /// [`LimitError`] with the name, the value and the limit of the first one.
    pub fn require_limits(&self) -> Result<(), LimitError> {
        let within = |name, value: u32, limits: RangeInclusive<u32>| {
            let (first, last) = limits.into_inner();
            match value {
                _ if (first..=last).contains(&value) => Ok(()),
                _ => Err(LimitError::Number { name, value, first, last }),
            }
        };
        within("repeat", self.repeats, REPEATS)?;
        match &self.goal {
            Goal::Sweep { .. } => {}
            Goal::Ab(settings) => {
                within("rounds-max", settings.blocks_max, BLOCKS)?;
                within("repeat-disturbed", settings.repeats_max, DISTURBED)?;
                if let Some(machine) = &settings.machine {
                    within("machines", machine.machines, MACHINES)?;
                    within("machine", machine.index, 0..=machine.machines - 1)?;
                }
            }
            Goal::Saturation(settings) => within("sessions-max", settings.last, SESSIONS)?,
        }
        let (cells, repeats) = (self.cells.len(), self.repeats);
        if (cells as u64).saturating_mul(repeats.into()) > RUNS_MAX {
            return Err(LimitError::Runs { cells, repeats });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::{AbSettings, SaturationSettings, Search};
    use super::super::example;
    use super::*;

    #[test]
    fn each_number_outside_its_limits_is_named_with_its_value_and_the_limit() {
        let sweep = example::sweep(2);
        let error = |experiment: Experiment| experiment.require_limits().unwrap_err().to_string();
        assert_eq!(sweep.require_limits(), Ok(()));
        for repeats in [0, 4_000_000_000] {
            let text = error(Experiment { repeats, ..sweep.clone() });
            assert_eq!(text, format!("repeat must be between 1 and 1000, not {repeats}"));
        }
        let settings = AbSettings {
            costs: Vec::new(),
            blocks_max: 10,
            alpha: 0.05,
            repeats_max: 0,
            one_sided: false,
            machine: None,
        };
        let ab = |settings| Experiment { goal: Goal::Ab(settings), ..sweep.clone() };
        assert_eq!(ab(settings.clone()).require_limits(), Ok(()));
        let text = error(ab(AbSettings { blocks_max: u32::MAX, ..settings.clone() }));
        assert_eq!(text, "rounds-max must be between 4 and 100, not 4294967295");
        let text = error(ab(AbSettings { repeats_max: u32::MAX, ..settings.clone() }));
        assert!(text.starts_with("repeat-disturbed must be between 0 and 1000"), "{text}");
        let settings = SaturationSettings { search: Search::Sessions, first: 1, last: u32::MAX };
        let text = error(Experiment { goal: Goal::Saturation(settings), ..sweep.clone() });
        assert!(text.starts_with("sessions-max must be between 2 and 10000"), "{text}");
        let cells = vec![sweep.cells[0].clone(); 1_001];
        let text = error(Experiment { repeats: 1_000, cells, ..sweep });
        assert_eq!(text, "1001 cells with 1000 runs each: at most 1000000 runs are possible");
    }
}
