//! Judges the time series of a stage.

use crate::metrics::steadiness;
use crate::record::{Point, SteadinessRecord};

/// Returns how the rate changed over the series: by rows if the transactions have rows, otherwise by transactions.
/// `None` for a series that is too short.
pub(super) fn steadiness_of(series: &[Point]) -> Option<SteadinessRecord> {
    let by = |count: fn(&Point) -> u64| {
        let intervals: Vec<_> = series.iter().map(|point| (point.seconds, count(point))).collect();
        steadiness(&intervals)
    };
    let (rows, transactions) = (by(|point| point.rows)?, by(|point| point.transactions)?);
    let has_rows = series.iter().any(|point| point.rows > 0);
    let judged = if has_rows { rows } else { transactions };
    Some(SteadinessRecord {
        intervals: judged.intervals,
        first_fifth_transactions_per_s: transactions.first_fifth_per_s,
        last_fifth_transactions_per_s: transactions.last_fifth_per_s,
        first_fifth_rows_per_s: rows.first_fifth_per_s,
        last_fifth_rows_per_s: rows.last_fifth_per_s,
        truncated_share: judged.truncated_share,
        steady: judged.steady,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_rows_or_else_transactions() {
        let series = |rows_each: u64| -> Vec<Point> {
            (1..=20)
                .map(|second| {
                    let transactions = 100 * second;
                    let rows = rows_each * transactions;
                    Point { seconds: 1.0, transactions, rows, ..Point::default() }
                })
                .collect()
        };
        let with_rows = steadiness_of(&series(10)).unwrap();
        assert!(!with_rows.steady);
        assert_eq!(with_rows.first_fifth_rows_per_s, 2_500.0);
        assert_eq!(with_rows.last_fifth_rows_per_s, 18_500.0);
        assert_eq!(with_rows.last_fifth_transactions_per_s, 1_850.0);
        let without = steadiness_of(&series(0)).unwrap();
        assert_eq!((without.steady, without.last_fifth_rows_per_s), (false, 0.0));
        assert_eq!(steadiness_of(&[]), None);
    }
}
