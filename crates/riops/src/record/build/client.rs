//! CPU use of riops itself.

use crate::record::client::ClientCpu;

/// A worker with at least this share of one processor may be the bottleneck: it has no idle time left.
const WORKER_BUSY_SHARE: f64 = 0.9;

pub(super) fn client_cpu(
    process_s: Option<f64>,
    workers_s: &[f64],
    seconds: f64,
    transactions: u64,
) -> Option<ClientCpu> {
    let process_s = process_s?;
    if seconds <= 0.0 {
        return None;
    }
    let share_of_client = workers_s.iter().copied().fold(0.0, f64::max) / seconds;
    Some(ClientCpu {
        seconds: process_s,
        us_per_transaction: (transactions > 0).then(|| process_s * 1e6 / transactions as f64),
        share_of_client,
        worker_shares: workers_s.iter().map(|worker| worker / seconds).collect(),
        away_us: None,
        limited: share_of_client >= WORKER_BUSY_SHARE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_without_idle_time_limits_the_run() {
        let free = client_cpu(Some(5.0), &[2.0, 3.0], 10.0, 1_000).unwrap();
        assert!(!free.limited);
        assert_eq!(free.us_per_transaction, Some(5_000.0));
        let busy = client_cpu(Some(12.0), &[2.0, 9.5], 10.0, 0).unwrap();
        assert!(busy.limited);
        assert_eq!(busy.us_per_transaction, None);
    }
}
