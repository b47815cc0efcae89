//! The nodes of a target in the record, and how they come there. Pure.

use serde::{Deserialize, Serialize};

use crate::engine::{SessionTally, StageResult};
use crate::metrics::{Counter, LatencySummary, imbalance};
use crate::probe::yugabytedb::NodeUse;
use crate::server::nodes::{Node, Role};

/// One node of the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Host and port.
    pub node: String,
    /// What it is for.
    pub role: Role,
    /// `cloud.region.zone`, where the cluster says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Whether it did not answer at the end.
    #[serde(default)]
    pub down: bool,
    /// The longest time without a success on it, whatever the reason, in seconds; only where there are
    /// several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_pause_s: Option<f64>,
    /// Sessions that were on it at the end.
    pub sessions: u64,
    /// Transactions that ended on it within the measurement.
    pub transactions: u64,
    /// The same per second.
    pub transactions_per_s: f64,
    /// Its share of all transactions, 0 to 1.
    pub share: f64,
    /// From the first send to the end of the last reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<LatencySummary>,
    /// Errors on it within the measurement.
    pub errors: u64,
    /// Transactions that were sent again.
    pub retries: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions whose outcome is unknown, in all phases.
    pub unknown_commits: u64,
    /// Broken connections that were replaced by one to it.
    pub reconnects: u64,
    /// What errors did to it, by SQLSTATE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageRecord>,
    /// What it tells of itself.
    #[serde(flatten)]
    pub usage: Option<NodeUse>,
}

/// A time around errors in which nothing succeeded on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutageRecord {
    /// The errors' code.
    pub sqlstate: String,
    /// How long nothing succeeded.
    pub without_success_s: f64,
    /// How long intervals stayed below 90 % of the former rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_90_percent_s: Option<f64>,
    /// From the last success until the former rate was back; absent where it did not come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_90_percent_s: Option<f64>,
}

/// The nodes of a cluster; where there is only one, the totals are its own.
pub(super) fn nodes(
    result: &StageResult,
    usage: &[Option<NodeUse>],
    (all, in_server): (u64, bool),
) -> Vec<NodeRecord> {
    let counters = result.recorder.counters();
    let seconds = result.seconds.max(f64::MIN_POSITIVE);
    let of_sessions = |node: usize| -> u64 {
        let here = result.sessions.iter().filter(|session| session.node == node);
        here.map(SessionTally::transactions).sum()
    };
    let record = |(number, node): (usize, &Node)| {
        let totals = result.recorder.nodes.get(number);
        // Loops in the server are counted by session, and a single node by the stage.
        let transactions = match totals {
            Some(totals) if !in_server => totals.counters.get(Counter::Transactions),
            _ => of_sessions(number),
        };
        let outages = result.node_outages.get(number).into_iter().flatten();
        let alone = result.nodes.len() == 1;
        let count = |counter| match totals {
            Some(totals) => totals.counters.get(counter),
            None if alone => counters.get(counter),
            None => 0,
        };
        let unknown: u64 = result.acknowledged.iter().map(|each| each.transactions_unknown).sum();
        NodeRecord {
            node: node.name.clone(),
            role: node.role,
            placement: node.placement.clone(),
            down: node.down,
            longest_pause_s: totals.and_then(|totals| totals.gaps.longest_s()),
            sessions: result.sessions.iter().filter(|each| each.node == number).count() as u64,
            transactions,
            transactions_per_s: transactions as f64 / seconds,
            share: transactions as f64 / all.max(1) as f64,
            service_us: totals.and_then(|totals| totals.service.summary()),
            errors: count(Counter::Errors),
            retries: count(Counter::Retries),
            failed: count(Counter::Failed),
            // Those of a node are counted in all phases, those of the stage only within the measurement.
            unknown_commits: match totals {
                None if alone => unknown,
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
            usage: usage.get(number).copied().flatten(),
        }
    };
    // A node that the spread does not allow is none of this run's, unless it was until a while ago.
    let counts = |(node, record): &(&Node, NodeRecord)| {
        node.allowed || record.transactions + record.errors > 0
    };
    let all = result.nodes.iter().zip(result.nodes.iter().enumerate().map(record));
    all.filter(counts).map(|(_, record)| record).collect()
}

pub(super) fn imbalance_of(nodes: &[NodeRecord]) -> Option<f64> {
    // One that is down cannot have its share.
    let answering = nodes.iter().filter(|node| !node.down);
    let counts: Vec<u64> = answering.map(|node| node.transactions).collect();
    imbalance(&counts).filter(|_| counts.len() > 1)
}
