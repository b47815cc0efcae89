//! Checks of the data after a run against the acknowledged changes. Pure.

use super::effects::{EffectsByTable, UNATTRIBUTED};
use riops_model::record::{Check, Effects};

/// Stands for an unbounded number of rows with an unknown outcome: a loop in the server may have continued
/// after its connection was lost.
pub const ROWS_UNBOUNDED: u64 = 1_000_000_000_000_000;

/// Results of the contents queries of a workload, one list each.
pub type Integers = [Vec<i128>];

/// Changes of all runs on a dataset, as acknowledged by the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Acknowledged row changes, and those that were proved by the rows.
    pub rows_changed: i128,
    /// Maximum number of row changes with an unknown outcome.
    pub rows_unknown: i128,
    /// Runs that did not report their changes: they may have changed any number of rows.
    pub open_runs: u64,
    /// Effects of the acknowledged changes by table. Runs of earlier versions did not store the tables.
    pub effects: EffectsByTable,
    /// Maximum effects of the changes with an unknown outcome.
    pub effects_unknown: EffectsByTable,
    /// First and last id of each batch of a load with an unknown outcome.
    pub batches_unknown: Vec<(i64, i64)>,
}

impl Ledger {
    /// Returns the bounds of the number of changes in the data.
    pub fn bounds(&self) -> Bounds {
        Bounds::new(self.rows_changed, 0, self.rows_unknown, self.open_runs)
    }

    /// Returns the effects on a table of `tables`, and the maximum effects of changes with an unknown
    /// outcome; `None` if earlier versions of riops changed rows without storing the table.
    pub fn of_table(&self, table: u32, tables: u32) -> Option<(Effects, Effects)> {
        let (done, unknown) = (&self.effects, &self.effects_unknown);
        if tables <= 1 {
            return Some((done.total(), unknown.total()));
        }
        let is_attributed =
            done.on_table(UNATTRIBUTED).is_none() && unknown.on_table(UNATTRIBUTED).is_none();
        is_attributed.then(|| (done.on_table(table), unknown.on_table(table)))
    }
}

/// The range in which a number must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Minimum; `None` if a run did not report its changes, which may have decreased the number.
    pub least: Option<i128>,
    /// Maximum, if there is one.
    pub most: Option<i128>,
    /// Why there is no maximum.
    open: Open,
}

/// Why a number has no maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    No,
    Runs,
    Loops,
}

impl Bounds {
    /// Returns the bounds of `expected`, which changes with an unknown outcome may have decreased by `fewer`
    /// or increased by `more`, and `open_runs` by any number.
    pub fn new(expected: i128, fewer: i128, more: i128, open_runs: u64) -> Self {
        let open = match open_runs {
            0 if more >= i128::from(ROWS_UNBOUNDED) => Open::Loops,
            0 => Open::No,
            _ => Open::Runs,
        };
        let most = (open == Open::No).then_some(expected + more);
        Self { least: Some(expected - fewer), most, open }
    }

    /// Returns the bounds of a number that the changes of open runs may also have decreased.
    pub fn without_least_if_open(self) -> Self {
        Self { least: self.least.filter(|_| self.open != Open::Runs), ..self }
    }
}

/// Returns a failed check.
pub fn failed(name: &str, expected: &str, actual: &str) -> Check {
    Check {
        name: name.to_owned(),
        expected: expected.to_owned(),
        found: actual.to_owned(),
        ..Check::default()
    }
}

/// Returns a check of something that cannot be verified.
pub fn unknown(name: &str, why: &str) -> Check {
    let expected = format!("not known, because {why}");
    let check = failed(name, &expected, "nothing that could be compared");
    Check { unknown: true, ..check }
}

/// Checks for an exact number.
pub fn exact(name: String, expected: i128, actual: i128) -> Check {
    Check {
        name,
        expected: expected.to_string(),
        found: actual.to_string(),
        held: expected == actual,
        ..Check::default()
    }
}

/// Checks for a number within bounds.
pub fn between(name: String, bounds: Bounds, actual: i128) -> Check {
    let Bounds { least, most, open } = bounds;
    let unresolved = match (least, most) {
        (Some(least), Some(most)) => u64::try_from(most - least).unwrap_or(u64::MAX),
        _ => 0,
    };
    let why = match open {
        Open::No => "",
        Open::Runs => "a run did not report its changes",
        Open::Loops => "a loop in the server may have continued after its connection was lost",
    };
    let expected = match (least, most) {
        (Some(least), Some(most)) if most == least => least.to_string(),
        (Some(least), Some(most)) => {
            format!("{least} to {most} ({unresolved} unresolved: ±{unresolved})")
        }
        (Some(least), None) => format!("at least {least} ({why})"),
        (None, _) => format!("unknown ({why})"),
    };
    let contradicts =
        least.is_some_and(|least| actual < least) || most.is_some_and(|most| actual > most);
    Check {
        name,
        expected,
        found: actual.to_string(),
        // Without any bound nothing was verified.
        held: !contradicts && least.is_some(),
        unresolved,
        unknown: !contradicts && open != Open::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ledger: &Ledger, actual: i128) -> Check {
        between("sum".to_owned(), ledger.bounds(), actual)
    }

    #[test]
    fn accepts_any_number_of_the_unknown_changes_and_names_them() {
        let ledger = Ledger { rows_changed: 100, rows_unknown: 10, ..Ledger::default() };
        for (actual, held) in [(99, false), (100, true), (110, true), (111, false)] {
            let check = check(&ledger, actual);
            assert_eq!((check.held, check.unresolved), (held, 10), "{actual}");
            assert_eq!(check.expected, "100 to 110 (10 unresolved: ±10)");
        }
    }

    #[test]
    fn an_open_run_removes_the_upper_bound_and_the_certainty() {
        let ledger = Ledger { rows_changed: 100, open_runs: 1, ..Ledger::default() };
        let above = check(&ledger, 1_000);
        assert!(above.held && above.unknown);
        assert_eq!(above.expected, "at least 100 (a run did not report its changes)");
        let below = check(&ledger, 99);
        assert!(!below.held && !below.unknown);
    }

    #[test]
    fn a_loop_that_may_have_continued_removes_the_upper_bound() {
        let rows_unknown = i128::from(ROWS_UNBOUNDED);
        let ledger = Ledger { rows_changed: 100, rows_unknown, ..Ledger::default() };
        let above = check(&ledger, 1_000);
        assert!(above.held && above.unknown && above.expected.starts_with("at least 100 (a loop"));
    }

    #[test]
    fn a_number_that_an_open_run_may_have_decreased_is_unknown_and_not_wrong() {
        let bounds = Bounds::new(100, 0, 0, 1).without_least_if_open();
        let check = between("rows".to_owned(), bounds, 7);
        assert!(!check.held && check.unknown);
        assert_eq!(check.expected, "unknown (a run did not report its changes)");
    }

    #[test]
    fn changes_without_a_table_prevent_the_attribution_unless_there_is_only_one() {
        let added = |added| Effects { added, ..Effects::default() };
        let mut ledger = Ledger::default();
        ledger.effects.add_to(2, added(5));
        assert_eq!(ledger.of_table(2, 3), Some((added(5), added(0))));
        ledger.effects.add_to(UNATTRIBUTED, added(1));
        assert_eq!(
            (ledger.of_table(2, 3), ledger.of_table(1, 1)),
            (None, Some((added(6), added(0))))
        );
    }
}
