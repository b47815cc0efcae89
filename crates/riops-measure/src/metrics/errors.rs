//! Error counts by SQLSTATE, with a few sample messages of each; bounded.

use riops_wire::sqlstate::SqlState;

use riops_model::record::ErrorEntry;
use riops_model::units::Nanos;

/// Maximum number of distinct SQLSTATEs; further ones are added to the last entry.
const ERRORS_MAX: usize = 64;

/// Maximum number of sample messages per SQLSTATE, besides the first.
const SAMPLES_MAX: usize = 4;

/// Error counts by SQLSTATE, in order of first appearance; bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorCounts {
    /// The entries, in order of first appearance.
    pub entries: Vec<ErrorEntry>,
}

impl ErrorCounts {
    /// Counts one error and the duration of the failed attempt. `retried` states whether the
    /// transaction is retried.
    pub fn add(&mut self, sqlstate: SqlState, message: &str, retried: bool, attempt: Nanos) {
        self.merge_entry(&ErrorEntry {
            sqlstate: sqlstate.as_str().to_owned(),
            count: 1,
            retried: u64::from(retried),
            attempts_s: attempt.as_seconds(),
            sample: message.to_owned(),
            ..ErrorEntry::default()
        });
    }

    fn merge_entry(&mut self, new: &ErrorEntry) {
        let full = self.entries.len() == ERRORS_MAX;
        let known = self.entries.iter().position(|entry| entry.sqlstate == new.sqlstate);
        let Some(position) = known.or_else(|| full.then_some(ERRORS_MAX - 1)) else {
            return self.entries.push(new.clone());
        };
        if let Some(entry) = self.entries.get_mut(position) {
            entry.count += new.count;
            entry.retried += new.retried;
            entry.attempts_s += new.attempts_s;
            for sample in std::iter::once(&new.sample).chain(&new.more_samples) {
                add_sample(entry, sample);
            }
        }
    }

    /// Adds all errors of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.entries.iter().for_each(|entry| self.merge_entry(entry));
    }
}

/// Adds an error message, unless it is known.
fn add_sample(entry: &mut ErrorEntry, sample: &str) {
    let known = entry.sample == sample || entry.more_samples.iter().any(|known| known == sample);
    if !known && entry.more_samples.len() < SAMPLES_MAX {
        entry.more_samples.push(sample.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_errors_by_sqlstate_and_limits_entries_and_samples() {
        let mut counts = ErrorCounts::default();
        for position in 0..200 {
            let code = format!("{position:05}");
            counts.add(SqlState::parse(&code), "no", false, Nanos(500_000_000));
            counts.add(SqlState::parse(&code), "again", true, Nanos(0));
        }
        assert_eq!(counts.entries.len(), ERRORS_MAX);
        assert_eq!(counts.entries.iter().map(|entry| entry.count).sum::<u64>(), 400);
        assert_eq!((counts.entries[0].count, counts.entries[0].attempts_s), (2, 0.5));
        assert_eq!(counts.entries[0].sample, "no");
        assert_eq!((counts.entries[0].retried, counts.entries[0].more_samples.len()), (1, 1));
        for position in 0..100 {
            counts.add(SqlState::parse("00000"), &format!("sample {position}"), false, Nanos(0));
        }
        assert_eq!(counts.entries[0].more_samples.len(), SAMPLES_MAX);
    }
}
