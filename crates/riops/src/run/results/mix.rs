//! Compares the executed mix of transactions with the requested one.

use crate::plan::Mix;
use crate::record::{MixRecord, OperationRecord};

/// Number of standard errors that chance does not exceed: in 1 of 16,000 stages.
const STANDARD_ERRORS: f64 = 4.0;

/// Returns the requested and the executed share; `None` if nothing was executed.
pub(in crate::run) fn mix_of(
    asked: &Mix,
    operations: &[OperationRecord],
    sessions: u32,
) -> Option<MixRecord> {
    let transactions: u64 = operations.iter().map(|each| each.transactions).sum();
    if transactions == 0 {
        return None;
    }
    let amount = |each: &OperationRecord| if asked.of_rows { each.rows } else { each.transactions };
    let all: u64 = operations.iter().map(amount).sum();
    let own = operations.iter().filter(|each| each.name == asked.operation).map(amount);
    let share = own.sum::<u64>() as f64 / all.max(1) as f64;
    let (own_weight, other_weight) = if asked.of_rows { asked.rows_each } else { (1, 1) };
    let one_each = own_weight.max(other_weight) as f64 * f64::from(sessions) / all.max(1) as f64;
    let asked_share = f64::from(asked.percent) / 100.0;
    let error =
        standard_error(asked_share, (own_weight as f64, other_weight as f64), transactions as f64);
    Some(MixRecord {
        operation: asked.operation.to_owned(),
        unit: if asked.of_rows { "rows" } else { "transactions" }.to_owned(),
        asked_percent: f64::from(asked.percent),
        executed_percent: 100.0 * share,
        chance_points: 100.0 * (STANDARD_ERRORS * error).max(one_each),
    })
}

/// Returns the standard error of the share of an operation in the sum of weights, if each of `transactions` is
/// chosen at random: the binomial error, multiplied by the derivative of the share (delta method).
fn standard_error(share: f64, (own, other): (f64, f64), transactions: f64) -> f64 {
    let chance = share / own / (share / own + (1.0 - share) / other);
    let mean = chance * own + (1.0 - chance) * other;
    own * other / (mean * mean) * (chance * (1.0 - chance) / transactions).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(percent: u8, of_rows: bool, reads: u64, updates: u64) -> MixRecord {
        let operation = |name: &str, transactions, rows| OperationRecord {
            name: name.to_owned(),
            transactions,
            rows,
            ..OperationRecord::default()
        };
        let asked = Mix { operation: "update", percent, of_rows, rows_each: (10, 100) };
        let operations =
            [operation("read", reads, 100 * reads), operation("update", updates, 10 * updates)];
        mix_of(&asked, &operations, 4).unwrap()
    }

    #[test]
    fn counts_rows_or_transactions() {
        let rows = executed(10, true, 900, 1_000);
        assert!((rows.executed_percent - 10.0).abs() < 1e-9 && rows.is_kept(), "{rows:?}");
        let transactions = executed(10, false, 900, 100);
        assert_eq!(
            (transactions.executed_percent, transactions.unit.as_str()),
            (10.0, "transactions")
        );
    }

    #[test]
    fn a_mix_is_missed_only_if_chance_is_excluded() {
        // One point off is accepted however many transactions there are.
        let near = executed(10, false, 910_000, 90_000);
        assert!(near.is_kept() && !near.is_missed());
        let missed = executed(10, false, 9_500, 500);
        assert!(!missed.is_kept() && missed.is_missed(), "{missed:?}");
        // 24 transactions explain no update at all; 1,000 do not.
        let short = executed(10, false, 24, 0);
        assert!(!short.is_kept() && !short.is_missed(), "{short:?}");
        assert!(executed(10, false, 1_000, 0).is_missed());
        // 5 transactions of each of 4 sessions, none of them an update.
        assert!(!executed(10, true, 20, 0).is_missed());
    }

    #[test]
    fn the_standard_error_is_binomial_for_equal_weights() {
        let error = standard_error(0.1, (1_000.0, 1_000.0), 900.0);
        assert!((error - 0.01).abs() < 1e-12, "{error}");
        // With rare updates of many rows, one transaction more or less changes the share more.
        assert!(standard_error(0.1, (1_000.0, 10.0), 900.0) > error);
    }

    #[test]
    fn a_stage_without_transactions_has_no_mix() {
        let asked = Mix { operation: "update", percent: 10, of_rows: true, rows_each: (1, 1) };
        assert_eq!(mix_of(&asked, &[], 1), None);
    }
}
