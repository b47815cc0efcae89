//! Per-session results, and the fairness among sessions.

use crate::engine::{SessionTally, StageResult};
use crate::record::{Execution, Fairness, SessionOperation, SessionRecord};

/// Maximum number of sessions for which per-session results are stored.
pub(in crate::run) const SESSIONS_STORED_MAX: usize = 1_000;

pub(super) fn session_details(result: &StageResult) -> Vec<SessionRecord> {
    if result.sessions.len() > SESSIONS_STORED_MAX {
        return Vec::new();
    }
    let record = |session: &SessionTally| SessionRecord {
        number: session.number + 1,
        server_process: session.process,
        node: (result.nodes.len() > 1)
            .then(|| result.nodes.get(session.node).map(|node| node.name.clone()))
            .flatten(),
        operations: result
            .operations
            .iter()
            .zip(&session.operations)
            .map(|(name, tally)| SessionOperation {
                name: name.clone().into_owned(),
                transactions: tally.transactions,
                rows: tally.rows,
                max_us: tally.longest.as_micros(),
                execution_s: tally.busy.as_seconds(),
            })
            .collect(),
    };
    result.sessions.iter().map(record).collect()
}

pub(super) fn fairness(transactions: &[u64]) -> Fairness {
    let count = transactions.len().max(1) as f64;
    let mean = transactions.iter().sum::<u64>() as f64 / count;
    let variance =
        transactions.iter().map(|&each| (each as f64 - mean).powi(2)).sum::<f64>() / count;
    Fairness {
        min: transactions.iter().copied().min().unwrap_or(0),
        mean,
        max: transactions.iter().copied().max().unwrap_or(0),
        stdev: variance.sqrt(),
    }
}

pub(super) fn execution(sessions: &[SessionTally]) -> Execution {
    let busy = |session: &SessionTally| {
        session.operations.iter().map(|tally| tally.busy.as_seconds()).sum::<f64>()
    };
    let count = sessions.len().max(1) as f64;
    let mean = sessions.iter().map(busy).sum::<f64>() / count;
    let variance = sessions.iter().map(|each| (busy(each) - mean).powi(2)).sum::<f64>() / count;
    Execution { mean, stdev: variance.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_min_mean_max_and_stdev_over_the_sessions() {
        let found = fairness(&[10, 20, 30]);
        assert_eq!((found.min, found.max), (10, 30));
        assert!((found.mean - 20.0).abs() < 1e-9 && (found.stdev - 8.165).abs() < 1e-3);
    }
}
