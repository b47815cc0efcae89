//! The nodes of a cluster.

use crate::engine::{SessionTally, StageResult};
use crate::metrics::{Counter, imbalance};
use crate::server::nodes::Node;
use riops_model::record::{NodeRecord, NodeUse, OutageRecord};

/// Returns the nodes of the target. A single node gets the totals of the stage.
pub(super) fn nodes(
    result: &StageResult,
    usage: &[Option<NodeUse>],
    all: u64,
    in_server: bool,
) -> Vec<NodeRecord> {
    let counters = result.workers.recorder.counters();
    let seconds = result.seconds.max(f64::MIN_POSITIVE);
    let sessions_on =
        |node: usize| result.workers.sessions.iter().filter(move |session| session.node == node);
    let record = |(position, node): (usize, &Node)| {
        let totals = result.workers.recorder.nodes.get(position);
        // Transactions of loops in the server, and of a single node, are counted per session only.
        let transactions = match totals {
            Some(totals) if !in_server => totals.counters.get(Counter::Transactions),
            _ => sessions_on(position).map(SessionTally::transactions).sum(),
        };
        let outages = result.node_outages.get(position).into_iter().flatten();
        let single_node = result.nodes.len() == 1;
        let count = |counter| match totals {
            Some(totals) => totals.counters.get(counter),
            None if single_node => counters.get(counter),
            None => 0,
        };
        NodeRecord {
            node: node.name.clone(),
            role: node.role,
            placement: node.placement.clone(),
            down: node.down,
            longest_pause_s: totals.and_then(|totals| totals.gaps.longest_s()),
            sessions: sessions_on(position).count() as u64,
            transactions,
            transactions_per_s: transactions as f64 / seconds,
            share: transactions as f64 / all.max(1) as f64,
            service_us: totals.and_then(|totals| totals.service.summary()),
            errors: count(Counter::Errors),
            retries: count(Counter::Retries),
            failed: count(Counter::Failed),
            // Counted in all phases for a node; the counter of the stage covers only the measurement.
            unknown_commits: match totals {
                None if single_node => result.workers.unknown_transactions(),
                _ => count(Counter::Unknown),
            },
            reconnects: count(Counter::Reconnects),
            outages: outages
                .map(|(sqlstate, outage)| OutageRecord {
                    sqlstate: sqlstate.clone(),
                    without_success_s: outage.without_success_s,
                    below_90_percent_s: outage.below_90_percent_s,
                    until_90_percent_s: outage.until_90_percent_s,
                })
                .collect(),
            usage: usage.get(position).copied().flatten(),
        }
    };
    // A node that --spread excludes is left out, unless it was used earlier in the run.
    let is_used = |(node, record): &(&Node, NodeRecord)| {
        node.allowed || record.transactions + record.errors > 0
    };
    let all = result.nodes.iter().zip(result.nodes.iter().enumerate().map(record));
    all.filter(is_used).map(|(_, record)| record).collect()
}

pub(in crate::run) fn imbalance_of(nodes: &[NodeRecord]) -> Option<f64> {
    // A node that is down is excluded: it cannot take its share.
    let up = nodes.iter().filter(|node| !node.down);
    let counts: Vec<u64> = up.map(|node| node.transactions).collect();
    imbalance(&counts).filter(|_| counts.len() > 1)
}
