//! Statements by kind, derived from the command tag as in sysbench.

use super::counters::{Counter, Counters};
use crate::record::Queries;

impl Queries {
    /// Counts a statement by its command tag: `SELECT 1`, `UPDATE 5`, `COMMIT`.
    #[inline]
    pub fn note(&mut self, tag: &str) {
        match tag.as_bytes() {
            [b'S', ..] => self.read += 1,
            [b'U' | b'I' | b'D', .., b' ', b'0'] => self.other += 1,
            // `COPY 5` writes rows; `COMMIT` does not.
            [b'U' | b'I' | b'D', ..] | [b'C', b'O', b'P', b'Y', b' ', ..] => self.write += 1,
            _ => self.other += 1,
        }
    }

    /// Returns the number of statements of each kind, with its counter.
    #[inline]
    #[must_use]
    pub fn counts(self) -> [(Counter, u64); 3] {
        [
            (Counter::ReadQueries, self.read),
            (Counter::WriteQueries, self.write),
            (Counter::OtherQueries, self.other),
        ]
    }
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
        counters.add(queries.counts());
        assert_eq!(Queries::from(&counters), queries);
    }
}
