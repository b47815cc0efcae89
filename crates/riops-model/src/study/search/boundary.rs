//! The highest load that meets a condition, from runs that contradict each other near it.

/// Runs at one load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally<L> {
    /// The load.
    pub(super) load: L,
    /// Runs that met the condition.
    pub(super) met: u32,
    /// All runs.
    pub(super) runs: u32,
}

/// Runs at one load after which its majority is accepted.
const RUNS_ENOUGH: u32 = 3;

impl<L> Tally<L> {
    /// Whether a further run is not needed: the majority of [`RUNS_ENOUGH`] runs is known.
    pub(super) fn is_decided(&self) -> bool {
        let missed = self.runs - self.met;
        self.met > RUNS_ENOUGH / 2 || missed > RUNS_ENOUGH / 2
    }
}

/// Adds a run.
pub(super) fn add<L: PartialEq>(tallies: &mut Vec<Tally<L>>, load: L, met: bool) {
    let met = u32::from(met);
    match tallies.iter_mut().find(|tally| tally.load == load) {
        Some(tally) => {
            tally.met += met;
            tally.runs += 1;
        }
        None => tallies.push(Tally { load, met, runs: 1 }),
    }
}

/// Returns how many of the loads, sorted from low to high, meet the condition: the boundary that the fewest runs
/// contradict, and of several the lowest. A single wrong run far from the boundary does not move it.
pub(super) fn boundary<L>(tallies: &[Tally<L>]) -> usize {
    let missed_below = |at: usize| tallies.iter().take(at).map(|one| one.runs - one.met);
    let met_above = |at: usize| tallies.iter().skip(at).map(|one| one.met);
    let contradicting = |at: &usize| missed_below(*at).sum::<u32>() + met_above(*at).sum::<u32>();
    (0..=tallies.len()).min_by_key(contradicting).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(runs: &[(u32, bool)]) -> Vec<Tally<u32>> {
        let mut tallies = Vec::new();
        for (load, met) in runs {
            add(&mut tallies, *load, *met);
        }
        tallies
    }

    #[test]
    fn the_boundary_is_between_loads_that_meet_the_condition_and_loads_that_do_not() {
        let clear = tallies(&[(1, true), (2, true), (3, false), (4, false)]);
        assert_eq!(boundary(&clear), 2);
        assert_eq!(boundary(&tallies(&[(1, true), (2, true)])), 2);
        assert_eq!(boundary(&tallies(&[(1, false)])), 0);
        assert_eq!(boundary::<u32>(&[]), 0);
    }

    #[test]
    fn one_contradicting_run_does_not_move_the_boundary() {
        let low_miss = tallies(&[(1, false), (2, true), (3, true), (4, true), (5, false)]);
        assert_eq!(boundary(&low_miss), 4);
        let repeated = tallies(&[(1, true), (2, false), (2, true), (2, true), (3, false)]);
        assert_eq!(boundary(&repeated), 2);
    }

    #[test]
    fn runs_that_are_divided_evenly_do_not_meet_the_condition() {
        assert_eq!(boundary(&tallies(&[(1, true), (2, true), (2, false)])), 1);
    }

    #[test]
    fn two_equal_runs_or_three_runs_decide() {
        let decided = |met, runs| Tally { load: 1, met, runs }.is_decided();
        assert!(decided(2, 2) && decided(0, 2) && decided(2, 3) && decided(1, 3));
        assert!(!decided(1, 1) && !decided(0, 1) && !decided(1, 2));
    }
}
