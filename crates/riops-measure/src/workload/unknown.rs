//! Transactions whose connection was lost before their outcome was known: what they write, and whether the
//! rows in the database prove that they were applied or not. Pure.
//!
//! A row version carries the id of the transaction that wrote it (`xmin`). All rows of a transaction are
//! written together or not at all. Two findings are proofs, provided that only this run has written since it
//! began, and that its sessions have ended:
//!
//! - A row that the transaction would have written has a version from before the run: it was not applied.
//! - A version of the run can only come from this transaction, because no other transaction of the run writes
//!   all rows of that version: it was applied.
//!
//! Anything else remains unresolved.

use super::effects::TransactionEffects;

/// Maximum number of transactions with an unknown outcome that are stored for each worker. Others remain
/// unresolved.
pub const UNKNOWN_MAX: usize = 1_000;

/// Rows of one table that a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Number of the table, from 1.
    pub table: u32,
    /// First key.
    pub first: i64,
    /// Last key. All keys between exist, unless the transaction inserts them.
    pub last: i64,
    /// Whether the rows are new, and no other transaction inserts or deletes them.
    pub inserts: bool,
}

/// A transaction of a stage. Its generator repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionId {
    /// Number of the stage, from 0.
    pub stage: usize,
    /// Number of the session, from 0.
    pub session: u64,
    /// Position of the transaction in the session, from 0.
    pub position: u64,
    /// Number of the step if each step commits separately.
    pub step: Option<usize>,
}

/// A transaction with an unknown outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The transaction.
    pub origin: TransactionId,
    /// Position of its operation in the operations of the stage.
    pub operation: usize,
    /// Number of rows that it was expected to change.
    pub rows: u64,
    /// Expected effects.
    pub effects: TransactionEffects,
    /// Whether it has exactly these effects if it was committed. Otherwise they are a maximum.
    pub has_exact_effects: bool,
    /// Rows that it writes.
    pub marks: Vec<Mark>,
}

/// Rows of a mark that one transaction wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// First key.
    pub first: i64,
    /// Last key.
    pub last: i64,
    /// `xmin` of the rows.
    pub writer: u32,
}

/// Evidence in the database about a transaction with an unknown outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It was committed.
    Applied,
    /// It was not committed.
    NotApplied,
    /// The rows prove neither.
    Unresolved,
}

/// Versions of the rows of one transaction that only it may have written.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// Position of the transaction in the list.
    position: usize,
    table: u32,
    version: Version,
    /// Whether another transaction of the run writes the same rows.
    is_shared: bool,
}

/// The evidence for each of several transactions with an unknown outcome.
#[derive(Debug)]
pub struct Evidence<'a> {
    transactions: &'a [Unknown],
    /// Whether a row has a version from before the run, or rows that it would have inserted are missing.
    untouched: Vec<bool>,
    /// Sorted by table and first key.
    candidates: Vec<Candidate>,
}

impl<'a> Evidence<'a> {
    /// Collects the evidence. `all_versions` are the versions of the rows of each mark of each transaction. `start`
    /// is the first transaction id that was assigned after the run began.
    pub fn new(unknown: &'a [Unknown], all_versions: &[Vec<Vec<Version>>], start: u32) -> Self {
        let mut untouched = vec![false; unknown.len()];
        let mut candidates = Vec::new();
        for (position, (transaction, versions)) in unknown.iter().zip(all_versions).enumerate() {
            for (mark, versions) in transaction.marks.iter().zip(versions) {
                let is_old = |version: &&Version| !is_since(version.writer, start);
                let missing = mark.inserts && versions.is_empty();
                if let Some(untouched) = untouched.get_mut(position) {
                    *untouched |= missing || versions.iter().any(|version| is_old(&version));
                }
                candidates.extend(versions.iter().filter(|version| !is_old(version)).map(
                    |&version| Candidate { position, table: mark.table, version, is_shared: false },
                ));
            }
        }
        candidates.sort_by_key(|candidate| (candidate.table, candidate.version.first));
        Self { transactions: unknown, untouched, candidates }
    }

    /// Returns whether [`Self::note`] must be called for all transactions of the run.
    pub fn needs_all_transactions(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// Notes a transaction of the run: versions of rows that it writes too prove nothing.
    pub fn note(&mut self, stage: usize, session: u64, position: u64, marks: &[(usize, Mark)]) {
        for (_, mark) in marks {
            let from = (mark.table, mark.first);
            let start = self
                .candidates
                .partition_point(|candidate| (candidate.table, candidate.version.first) < from);
            for candidate in self.candidates.get_mut(start..).unwrap_or_default() {
                if (candidate.table, candidate.version.first) > (mark.table, mark.last) {
                    break;
                }
                let Some(Unknown { origin, .. }) = self.transactions.get(candidate.position) else {
                    continue;
                };
                let is_same =
                    (origin.stage, origin.session, origin.position) == (stage, session, position);
                let last = candidate.version.last;
                // The rows of one version may be written by several statements of a transaction.
                candidate.is_shared |= marks.iter().any(|(step, mark)| {
                    let is_own = is_same && origin.step.is_none_or(|own| own == *step);
                    !is_own
                        && mark.table == candidate.table
                        && (mark.first..=mark.last).contains(&last)
                });
            }
        }
    }

    /// Returns the outcome of each transaction, in the order of the list.
    pub fn outcomes(&self) -> Vec<Resolution> {
        let untouched = self.transactions.iter().zip(&self.untouched);
        let resolve = |(position, (unknown, untouched)): (usize, (&Unknown, &bool))| {
            self.outcome(position, unknown.has_exact_effects, *untouched)
        };
        untouched.enumerate().map(resolve).collect()
    }

    fn outcome(&self, position: usize, is_exact: bool, untouched: bool) -> Resolution {
        let own = |candidate: &&Candidate| candidate.position == position && !candidate.is_shared;
        let mut writers =
            self.candidates.iter().filter(own).map(|candidate| candidate.version.writer);
        let writer = writers.next();
        // Both proofs, or two writers: something else has written the rows.
        let is_contradictory =
            writer.is_some_and(|first| untouched || writers.any(|other| other != first));
        match writer {
            _ if is_contradictory => Resolution::Unresolved,
            None if untouched => Resolution::NotApplied,
            Some(_) if is_exact => Resolution::Applied,
            // A transaction may be committed, but with effects of which only the maximum is known.
            _ => Resolution::Unresolved,
        }
    }
}

/// Returns whether a transaction id was assigned at or after `start`. Ids wrap around at 2^32; half of them are
/// in the past.
fn is_since(id: u32, start: u32) -> bool {
    id.wrapping_sub(start) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u32 = 1_000;

    fn mark(first: i64, last: i64) -> Mark {
        Mark { table: 1, first, last, inserts: false }
    }

    fn unknown(position: u64, marks: Vec<Mark>) -> Unknown {
        let origin = TransactionId { stage: 0, session: 0, position, step: None };
        let effects = TransactionEffects::default();
        Unknown { origin, operation: 1, rows: 10, effects, has_exact_effects: true, marks }
    }

    fn version(first: i64, last: i64, writer: u32) -> Version {
        Version { first, last, writer }
    }

    /// Returns the outcome of transaction 7, which writes the keys 11 to 20, while the others of the run write
    /// these ranges.
    fn outcome(versions: Vec<Version>, others: &[(i64, i64)]) -> Resolution {
        let list = [unknown(7, vec![mark(11, 20)])];
        let mut evidence = Evidence::new(&list, &[vec![versions]], START);
        evidence.note(0, 0, 7, &[(0, mark(11, 20))]);
        for (position, (first, last)) in (8..).zip(others) {
            evidence.note(0, 0, position, &[(0, mark(*first, *last))]);
        }
        evidence.outcomes()[0]
    }

    #[test]
    fn a_row_from_before_the_run_proves_that_nothing_was_applied() {
        let versions = vec![version(11, 15, 900), version(16, 20, 1_200)];
        assert_eq!(outcome(versions, &[(16, 25)]), Resolution::NotApplied);
        // Ids from before a wraparound are old.
        assert_eq!(outcome(vec![version(11, 20, u32::MAX)], &[]), Resolution::NotApplied);
    }

    #[test]
    fn a_version_that_no_other_transaction_writes_proves_that_it_was_applied() {
        let versions = || vec![version(11, 15, 1_100), version(16, 20, 1_200)];
        assert_eq!(outcome(versions(), &[(16, 25)]), Resolution::Applied);
        // Another transaction may have written the first rows, but not all rows of the version.
        assert_eq!(outcome(versions(), &[(5, 14), (16, 25)]), Resolution::Applied);
        assert_eq!(outcome(versions(), &[(6, 15), (16, 25)]), Resolution::Unresolved);
        assert_eq!(outcome(versions(), &[(16, 25), (11, 20)]), Resolution::Unresolved);
    }

    #[test]
    fn the_effects_of_an_applied_transaction_that_may_miss_rows_remain_unknown() {
        let mut list = [unknown(7, vec![mark(11, 20)])];
        list[0].has_exact_effects = false;
        let outcome = |writer| {
            let evidence = Evidence::new(&list, &[vec![vec![version(11, 20, writer)]]], START);
            evidence.outcomes()[0]
        };
        assert_eq!(
            (outcome(1_100), outcome(900)),
            (Resolution::Unresolved, Resolution::NotApplied)
        );
    }

    #[test]
    fn contradictory_rows_prove_nothing() {
        assert_eq!(
            outcome(vec![version(11, 15, 1_100), version(16, 20, 1_200)], &[]),
            Resolution::Unresolved
        );
        assert_eq!(
            outcome(vec![version(11, 15, 900), version(16, 20, 1_200)], &[]),
            Resolution::Unresolved
        );
        assert_eq!(outcome(Vec::new(), &[]), Resolution::Unresolved);
    }

    #[test]
    fn inserted_rows_exist_if_and_only_if_the_transaction_was_applied() {
        let inserts = Mark { inserts: true, ..mark(-5, -5) };
        let list =
            [unknown(0, vec![inserts]), unknown(1, vec![Mark { first: -6, last: -6, ..inserts }])];
        let versions = [vec![vec![version(-5, -5, 1_001)]], vec![Vec::new()]];
        let evidence = Evidence::new(&list, &versions, START);
        assert_eq!(evidence.outcomes(), [Resolution::Applied, Resolution::NotApplied]);
    }

    #[test]
    fn other_steps_of_the_same_transaction_count_if_each_commits_separately() {
        let of_step = |step| {
            let mut list = [unknown(3, vec![mark(4, 4)])];
            list[0].origin.step = step;
            let mut evidence = Evidence::new(&list, &[vec![vec![version(4, 4, 1_001)]]], START);
            evidence.note(0, 0, 3, &[(1, mark(4, 4)), (2, mark(4, 4))]);
            evidence.outcomes()[0]
        };
        assert_eq!(of_step(None), Resolution::Applied);
        assert_eq!(of_step(Some(2)), Resolution::Unresolved);
    }

    #[test]
    fn a_transaction_with_several_statements_may_write_all_rows_of_a_version() {
        let list = [unknown(7, vec![mark(11, 20)])];
        let mut evidence = Evidence::new(&list, &[vec![vec![version(11, 20, 1_100)]]], START);
        evidence.note(0, 1, 0, &[(0, mark(11, 11)), (1, mark(20, 20))]);
        assert_eq!(evidence.outcomes(), [Resolution::Unresolved]);
    }
}
