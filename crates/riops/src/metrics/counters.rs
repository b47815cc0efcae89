//! What is counted, as one list. A new counter is one line in it; whatever holds [`Counters`] then
//! merges and clears it.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// What is counted within the measurement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter { $($(#[$doc])* $name,)+ }

        impl Counter {
            /// All counters.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

counters! {
    /// Transactions that succeeded.
    Transactions,
    /// Rows that they read or wrote, counted from the replies.
    Rows,
    /// Their statements.
    Statements,
    /// Answered statements that return rows, in all attempts of all transactions.
    ReadQueries,
    /// Answered statements that changed at least one row.
    WriteQueries,
    /// All other answered statements: BEGIN, COMMIT, and changes that met no row.
    OtherQueries,
    /// Transactions that failed, and were not sent again.
    Failed,
    /// Transactions whose connection broke before their outcome was known.
    Unknown,
    /// Transactions that succeeded with a response time beyond the limit.
    Late,
    /// Starts that were left out since they could only become late.
    Skipped,
    /// Errors.
    Errors,
    /// Transactions that were sent again.
    Retries,
    /// Broken connections that were replaced.
    Reconnects,
}

/// A number for each [`Counter`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    /// The number of one kind.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter as usize).copied().unwrap_or_default()
    }

    /// Adds so many of each kind. With constant kinds these are plain additions.
    #[inline]
    pub fn add<const KINDS: usize>(&mut self, counts: [(Counter, u64); KINDS]) {
        for (counter, count) in counts {
            if let Some(number) = self.0.get_mut(counter as usize) {
                *number += count;
            }
        }
    }

    /// Adds all numbers of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Sets all numbers to 0.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_number_of_its_own_that_is_merged_and_cleared() {
        for &counter in Counter::ALL {
            let mut five = Counters::default();
            five.add([(counter, 5)]);
            let mut counters = Counters::default();
            counters.add([(counter, 2), (counter, 3)]);
            counters.merge(&five);
            for &other in Counter::ALL {
                assert_eq!(counters.get(other), if other == counter { 10 } else { 0 }, "{other:?}");
            }
            counters.clear();
            assert_eq!(counters, Counters::default(), "{counter:?}");
        }
    }
}
