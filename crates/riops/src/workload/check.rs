//! Facts about the data after a run: what was acknowledged, and what is there. Pure.

use super::transaction::Effects;

/// What all runs on a dataset were told by the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Row changes that were acknowledged.
    pub rows_changed: i128,
    /// Row changes whose outcome is unknown, at most.
    pub rows_unknown: i128,
    /// Runs that never reported: they may have changed any number of rows.
    pub open_runs: u64,
    /// What the acknowledged changes come to, for workloads that count it.
    pub effects: Effects,
    /// What those of unknown outcome come to, at most.
    pub effects_unknown: Effects,
}

impl Ledger {
    /// The least and, where it is known, the largest number of changes that can be there.
    #[must_use]
    pub fn bounds(&self) -> (i128, Option<i128>) {
        let most = (self.open_runs == 0).then_some(self.rows_changed + self.rows_unknown);
        (self.rows_changed, most)
    }
}

/// One fact about the data, asked and answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// What has to be there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// Whether the two agree.
    pub held: bool,
}

impl Check {
    /// A number that has to be exactly right.
    #[must_use]
    pub fn exact(name: String, expected: i128, found: i128) -> Self {
        Self {
            name,
            expected: expected.to_string(),
            found: found.to_string(),
            held: expected == found,
        }
    }

    /// A number that has to lie between two bounds, of which the upper may be open.
    #[must_use]
    pub fn between(name: String, (least, most): (i128, Option<i128>), found: i128) -> Self {
        let expected = match most {
            Some(most) if most == least => least.to_string(),
            Some(most) => format!("{least} to {most}"),
            None => format!("at least {least}, since a run did not report"),
        };
        let held = found >= least && most.is_none_or(|most| found <= most);
        Self { name, expected, found: found.to_string(), held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_changes_may_or_may_not_be_there() {
        let ledger = Ledger { rows_changed: 100, rows_unknown: 10, ..Ledger::default() };
        for (found, held) in [(99, false), (100, true), (110, true), (111, false)] {
            let check = Check::between("sum".to_owned(), ledger.bounds(), found);
            assert_eq!(check.held, held, "{found}");
        }
    }

    #[test]
    fn a_run_that_did_not_report_opens_the_upper_bound() {
        let ledger = Ledger { rows_changed: 100, open_runs: 1, ..Ledger::default() };
        assert!(Check::between("sum".to_owned(), ledger.bounds(), 1_000).held);
        assert!(!Check::between("sum".to_owned(), ledger.bounds(), 99).held);
    }
}
