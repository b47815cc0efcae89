//! The list of counters. To add a counter, add one line; all users of [`Counters`] then merge and clear
//! it.

use riops_model::record::Queries;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Kind of count within the measurement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter { $($(#[$doc])* $name,)+ }

        impl Counter {
            /// All counters.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

counters! {
    /// Successful transactions.
    Transactions,
    /// Rows read or written by them, counted from the replies.
    Rows,
    /// Statements of successful transactions.
    Statements,
    /// Answered statements that return rows, in all attempts of all transactions.
    ReadQueries,
    /// Answered statements that changed at least one row.
    WriteQueries,
    /// Other answered statements: BEGIN, COMMIT, and data changes that affected no row.
    OtherQueries,
    /// Failed transactions that were not retried.
    Failed,
    /// Transactions with an unknown outcome: the connection was lost before the reply.
    Unknown,
    /// Successful transactions whose response time exceeds the limit.
    Late,
    /// Starts that were skipped because they could only become late.
    Skipped,
    /// Errors.
    Errors,
    /// Retries of transactions.
    Retries,
    /// Transactions with at least one retry, regardless of their outcome.
    Retried,
    /// Lost connections that were replaced.
    Reconnects,
}

/// A number for each [`Counter`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    /// Returns the count of one kind.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter as usize).copied().unwrap_or_default()
    }

    /// Adds to the counts of these kinds. With constant kinds, these are plain additions.
    #[inline]
    pub fn add<const KINDS: usize>(&mut self, counts: [(Counter, u64); KINDS]) {
        for (counter, count) in counts {
            if let Some(total) = self.0.get_mut(counter as usize) {
                *total += count;
            }
        }
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Sets all counts to 0.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Statements by kind, derived from the command tag as in sysbench.
/// Returns the number of statements of each kind, with its counter.
#[inline]
pub fn counts_of(queries: Queries) -> [(Counter, u64); 3] {
    [
        (Counter::ReadQueries, queries.read),
        (Counter::WriteQueries, queries.write),
        (Counter::OtherQueries, queries.other),
    ]
}

impl From<&Counters> for Queries {
    fn from(counters: &Counters) -> Self {
        Self {
            read: counters.get(Counter::ReadQueries),
            write: counters.get(Counter::WriteQueries),
            other: counters.get(Counter::OtherQueries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_and_clears_every_counter_independently() {
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

    #[test]
    fn classifies_statements_by_their_command_tag() {
        let mut queries = Queries::default();
        for tag in ["SELECT 1", "SELECT 0", "UPDATE 1", "UPDATE 10", "UPDATE 0", "INSERT 0 1"] {
            queries.note(tag);
        }
        for tag in ["DELETE 1", "DELETE 0", "COPY 7", "BEGIN", "COMMIT", "ROLLBACK", "CALL", ""] {
            queries.note(tag);
        }
        assert_eq!(queries, Queries { read: 2, write: 5, other: 7 });
        assert_eq!(queries.total(), 14);
        let mut counters = Counters::default();
        counters.add(counts_of(queries));
        assert_eq!(Queries::from(&counters), queries);
    }
}
