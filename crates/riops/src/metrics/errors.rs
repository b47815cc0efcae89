//! Errors by SQLSTATE, with a few messages of each kind; bounded.

use riops_wire::sqlstate::SqlState;

use crate::units::Nanos;

/// Different SQLSTATEs that are told apart; the rest is counted together under the last one.
const ERRORS_MAX: usize = 64;

/// Further messages of one kind that are kept, beside the first.
const SAMPLES_MAX: usize = 4;

/// One kind of error: how often, and what the server said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorEntry {
    /// Five characters.
    pub sqlstate: String,
    /// How often.
    pub count: u64,
    /// How often the transaction was then sent again.
    pub retried: u64,
    /// Time of all sessions that went into attempts which ended so, in seconds.
    pub attempts_s: f64,
    /// The first message of this kind.
    pub sample: String,
    /// Up to four more that differ.
    pub more_samples: Vec<String>,
    /// The longest time around such an error in which no transaction succeeded, in seconds.
    pub without_success_s: Option<f64>,
    /// How long intervals around that time stayed below 90 % of the former rate, in seconds.
    pub below_90_percent_s: Option<f64>,
    /// From the last success before that time to the end of the first interval that reached 90 %
    /// of the former rate, in seconds; absent where none did.
    pub until_90_percent_s: Option<f64>,
}

impl ErrorEntry {
    fn keep_sample(&mut self, sample: &str) {
        let known = self.sample == sample || self.more_samples.iter().any(|known| known == sample);
        if !known && self.more_samples.len() < SAMPLES_MAX {
            self.more_samples.push(sample.to_owned());
        }
    }
}

/// Errors by SQLSTATE, in the order of their first appearance; bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorCounts(Vec<ErrorEntry>);

impl ErrorCounts {
    /// Counts one error, and the time of the attempt that ended so; `retried` says that the
    /// transaction is sent again.
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
        let full = self.0.len() == ERRORS_MAX;
        let known = self.0.iter().position(|entry| entry.sqlstate == new.sqlstate);
        let Some(position) = known.or_else(|| full.then_some(ERRORS_MAX - 1)) else {
            return self.0.push(new.clone());
        };
        if let Some(entry) = self.0.get_mut(position) {
            entry.count += new.count;
            entry.retried += new.retried;
            entry.attempts_s += new.attempts_s;
            for sample in std::iter::once(&new.sample).chain(&new.more_samples) {
                entry.keep_sample(sample);
            }
        }
    }

    /// Adds all errors of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|entry| self.merge_entry(entry));
    }

    /// The kinds, to be completed with what only the whole stage knows.
    pub fn entries_mut(&mut self) -> &mut [ErrorEntry] {
        &mut self.0
    }

    /// The kinds, in the order of their first appearance.
    #[must_use]
    pub fn entries(&self) -> &[ErrorEntry] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_code_and_bounded() {
        let mut counts = ErrorCounts::default();
        for number in 0..200 {
            let code = format!("{number:05}");
            counts.add(SqlState::parse(&code), "no", false, Nanos(500_000_000));
            counts.add(SqlState::parse(&code), "again", true, Nanos(0));
        }
        assert_eq!(counts.entries().len(), ERRORS_MAX);
        assert_eq!(counts.entries().iter().map(|entry| entry.count).sum::<u64>(), 400);
        assert_eq!((counts.entries()[0].count, counts.entries()[0].attempts_s), (2, 0.5));
        assert_eq!(counts.entries()[0].sample, "no");
        assert_eq!((counts.entries()[0].retried, counts.entries()[0].more_samples.len()), (1, 1));
        for number in 0..100 {
            counts.add(SqlState::parse("00000"), &format!("sample {number}"), false, Nanos(0));
        }
        assert_eq!(counts.entries()[0].more_samples.len(), SAMPLES_MAX);
    }
}
