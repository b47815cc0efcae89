//! Checks of the data after a run against the acknowledged changes. Pure.

use super::transaction::Effects;

/// Changes of all runs on a dataset, as acknowledged by the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Acknowledged row changes.
    pub rows_changed: i128,
    /// Maximum number of row changes with an unknown outcome.
    pub rows_unknown: i128,
    /// Runs that did not report their changes: they may have changed any number of rows.
    pub open_runs: u64,
    /// Effects of the acknowledged changes, for workloads that count them.
    pub effects: Effects,
    /// Maximum effects of the changes with an unknown outcome.
    pub effects_unknown: Effects,
}

impl Ledger {
    /// Returns the minimum and, if known, the maximum number of changes in the data.
    #[must_use]
    pub fn bounds(&self) -> (i128, Option<i128>) {
        let most = (self.open_runs == 0).then_some(self.rows_changed + self.rows_unknown);
        (self.rows_changed, most)
    }
}

/// One check of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Description of the checked number.
    pub name: String,
    /// Expected value.
    pub expected: String,
    /// Value found in the database.
    pub found: String,
    /// Whether the value found is as expected.
    pub held: bool,
}

impl Check {
    /// Checks for an exact number.
    #[must_use]
    pub fn exact(name: String, expected: i128, found: i128) -> Self {
        Self {
            name,
            expected: expected.to_string(),
            found: found.to_string(),
            held: expected == found,
        }
    }

    /// Checks for a number within a lower bound and an optional upper bound.
    #[must_use]
    pub fn between(name: String, (least, most): (i128, Option<i128>), found: i128) -> Self {
        let expected = match most {
            Some(most) if most == least => least.to_string(),
            Some(most) => format!("{least} to {most}"),
            None => format!("at least {least} (a run did not report its changes)"),
        };
        let held = found >= least && most.is_none_or(|most| found <= most);
        Self { name, expected, found: found.to_string(), held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_any_number_of_the_unknown_changes() {
        let ledger = Ledger { rows_changed: 100, rows_unknown: 10, ..Ledger::default() };
        for (found, held) in [(99, false), (100, true), (110, true), (111, false)] {
            let check = Check::between("sum".to_owned(), ledger.bounds(), found);
            assert_eq!(check.held, held, "{found}");
        }
    }

    #[test]
    fn an_open_run_removes_the_upper_bound() {
        let ledger = Ledger { rows_changed: 100, open_runs: 1, ..Ledger::default() };
        assert!(Check::between("sum".to_owned(), ledger.bounds(), 1_000).held);
        assert!(!Check::between("sum".to_owned(), ledger.bounds(), 99).held);
    }
}
