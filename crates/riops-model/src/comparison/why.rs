//! Why a transaction takes longer or shorter in B: the change of its time as a sum of parts, and what else differs beside each.

use std::collections::BTreeSet;

use serde::Serialize;

use super::changes::{Change, Topic};
use crate::figure::{Figure, Summary, TransactionTime};
use crate::record::{StatementUse, TimePart};
use crate::stats::{Interval, difference};
use crate::units::format::duration_us;
use crate::units::text::shortened;

/// The interval of a part misses the true change with this probability.
const ALPHA: f64 = 0.05;
/// Maximum number of properties that are named beside a part.
const BESIDE_MAX: usize = 3;
/// A cost that differs by less than this factor explains nothing.
const COST_FACTOR: f64 = 1.1;
/// A cost whose longest time is less than this share of the change explains nothing.
const COST_SHARE: f64 = 0.2;
/// A statement whose time per transaction differs by less than this share of the change explains nothing.
const STATEMENT_SHARE: f64 = 0.2;
/// A part that changed by less than this share of the time of a transaction is not a cause.
const CAUSE_SHARE: f64 = 0.01;

/// Maximum number of characters of a statement.
const STATEMENT_MAX: usize = 40;

/// The runs of A and of B in a block.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunBlock<'a> {
    pub(crate) a: Vec<Summary<'a>>,
    pub(crate) b: Vec<Summary<'a>>,
}

/// The change of the time of a transaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeChange {
    /// The time in A, in microseconds: the mean of the runs; without parts only the time of the statements.
    pub a_us: f64,
    /// The time in B.
    pub b_us: f64,
    /// Its parts, those that changed most first; empty if the sessions were sampled too rarely.
    pub parts: Vec<PartChange>,
    /// Differences that may be the reason, if no part changed by more than chance: too few runs may hide their effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

impl TimeChange {
    /// Returns whether a part changed by more than chance.
    pub fn has_cause(&self) -> bool {
        self.parts.iter().any(|part| part.is_cause)
    }
}

/// The change of a part of the time of a transaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartChange {
    /// Activity of the sessions.
    pub part: TimePart,
    /// The part in A, in microseconds.
    pub a_us: f64,
    /// The part in B.
    pub b_us: f64,
    /// B minus A, within blocks.
    pub change_us: f64,
    /// The interval of the change; absent with too few runs. All intervals together cover the changes of their parts with a
    /// probability of 95%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Whether the part changed more than by chance, and by enough to matter.
    pub is_cause: bool,
    /// Other differences that may be the reason, the most likely first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// No round trip is shorter. The network has the rest of the time: if less is left, the other parts were estimated too long.
const ROUND_TRIP_US_MIN: f64 = 5.0;

/// Returns the change of the time of a transaction; `None` if it is not known of runs of both. `changes` is what differs
/// between them.
pub(crate) fn time_change(blocks: &[RunBlock<'_>], changes: &[Change]) -> Option<TimeChange> {
    let runs = |is_b: bool| -> Vec<Summary<'_>> {
        blocks.iter().flat_map(|block| if is_b { &block.b } else { &block.a }).copied().collect()
    };
    let evidence = Evidence { a: runs(false), b: runs(true), changes };
    let times = |runs: &[Summary<'_>]| -> Vec<TransactionTime> {
        runs.iter().filter_map(Summary::transaction_time).collect()
    };
    // A run that was sampled too rarely is left out.
    let of_times: Vec<_> = blocks
        .iter()
        .map(|block| (times(&block.a), times(&block.b)))
        .filter(|(a, b)| !a.is_empty() && !b.is_empty())
        .collect();
    if of_times.is_empty() {
        return evidence.without_parts();
    }
    let mean = |pick: &dyn Fn(&TransactionTime) -> f64, is_b: bool| {
        let side = of_times.iter().flat_map(|(a, b)| if is_b { b } else { a });
        let values: Vec<f64> = side.map(pick).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let (a_us, b_us) = (mean(&|time| time.us, false), mean(&|time| time.us, true));
    let part = |part: TimePart| {
        let values = |times: &[TransactionTime]| -> Vec<f64> {
            times.iter().map(|time| time.part_us(part)).collect()
        };
        let of_blocks: Vec<_> = of_times.iter().map(|(a, b)| (values(a), values(b))).collect();
        // With 95% for each part, one of all parts would be beyond its interval by chance.
        let change = difference(&of_blocks, ALPHA / TimePart::COUNT as f64)?;
        let interval = change
            .reach
            .map(|reach| Interval { low: change.value - reach, high: change.value + reach });
        let is_beyond_chance = change.reach.is_some_and(|reach| change.value.abs() > reach);
        let is_large = is_beyond_chance && change.value.abs() >= CAUSE_SHARE * a_us;
        let (a_us, b_us) =
            (mean(&|time| time.part_us(part), false), mean(&|time| time.part_us(part), true));
        let is_known = part != TimePart::Network || a_us.min(b_us) >= ROUND_TRIP_US_MIN;
        let is_cause = is_large && is_known;
        (a_us != 0.0 || b_us != 0.0).then(|| PartChange {
            part,
            a_us,
            b_us,
            change_us: change.value,
            interval,
            is_cause,
            beside: evidence.beside(part, change.value),
        })
    };
    let mut parts: Vec<PartChange> = TimePart::ALL.into_iter().filter_map(part).collect();
    parts.sort_by(|one, other| other.change_us.abs().total_cmp(&one.change_us.abs()));
    let is_explained = parts.iter().any(|part| part.is_cause);
    let candidates = if is_explained { Vec::new() } else { evidence.candidates(b_us - a_us) };
    Some(TimeChange { a_us, b_us, parts, candidates })
}

/// Evidence about two groups of runs besides their times.
struct Evidence<'a> {
    a: Vec<Summary<'a>>,
    b: Vec<Summary<'a>>,
    changes: &'a [Change],
}

impl Evidence<'_> {
    /// Returns possible reasons why a part changed by `change_us`: first the changes, then their consequences.
    fn beside(&self, part: TimePart, change_us: f64) -> Vec<String> {
        let causes = self
            .changes
            .iter()
            .filter(|change| is_cause(change, part) && agrees(change, change_us));
        let (mut specific, others): (Vec<_>, Vec<_>) =
            causes.partition(|change| concerns(change, part));
        // A condition differs a little between any two groups.
        specific.sort_by_key(|change| change.topic == Topic::Condition);
        let causes = specific.into_iter().chain(others).map(Change::text);
        let (jit, statement) = self.statements(part, change_us);
        let follows = jit.into_iter().chain(self.costs(part, change_us)).chain(statement);
        causes.take(BESIDE_MAX - 1).chain(follows).take(BESIDE_MAX).collect()
    }

    /// The change of a time whose parts are not known, if something may be its reason.
    fn without_parts(&self) -> Option<TimeChange> {
        let mean = |runs: &[Summary<'_>]| {
            let time_us = |Summary { stage, .. }: &Summary<'_>| {
                let transactions = Some(stage.transactions).filter(|&count| count > 0)?;
                Some(stage.database_s? * 1e6 / transactions as f64)
            };
            let times: Vec<f64> = runs.iter().filter_map(time_us).collect();
            (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
        };
        let (a_us, b_us) = (mean(&self.a)?, mean(&self.b)?);
        let candidates = self.candidates(b_us - a_us);
        let change = TimeChange { a_us, b_us, parts: Vec::new(), candidates };
        Some(change).filter(|change| !change.candidates.is_empty())
    }

    /// The differences that may be the reason for this change of the whole time: the options of the run first, which a person
    /// changed, then the plans of its statements.
    fn candidates(&self, change_us: f64) -> Vec<String> {
        let topics = [
            Topic::Plan,
            Topic::AccessPath,
            Topic::Schema,
            Topic::Setting,
            Topic::Version,
            Topic::Dataset,
            Topic::Condition,
            Topic::Environment,
        ];
        let may_be = |change: &&Change| {
            TimePart::ALL.into_iter().any(|part| is_cause(change, part))
                && agrees(change, change_us)
        };
        let of_topic = |topic| self.changes.iter().filter(move |change| change.topic == topic);
        let all = topics.into_iter().flat_map(of_topic).filter(may_be);
        all.map(Change::text).take(BESIDE_MAX).collect()
    }

    /// The costs that belong to a part, changed in the same direction, and may take as long.
    fn costs(&self, part: TimePart, change_us: f64) -> Vec<String> {
        let text = |&figure: &Figure| {
            let (a, b) = (figure.of_all(&self.a)?.value, figure.of_all(&self.b)?.value);
            let (less, more) = if change_us > 0.0 { (a, b) } else { (b, a) };
            let most_us = (more - less) * longest_us(figure);
            let is_enough = most_us >= COST_SHARE * change_us.abs();
            (more > 0.0 && more >= less * COST_FACTOR && is_enough).then(|| {
                format!(
                    "{} per transaction: {} → {}",
                    figure.name(),
                    figure.text(a),
                    figure.text(b)
                )
            })
        };
        costs_of(part).iter().filter_map(text).collect()
    }

    /// Just-in-time compilation, and the statement whose time per transaction changed most.
    fn statements(&self, part: TimePart, change_us: f64) -> (Option<String>, Option<String>) {
        if matches!(part, TimePart::Client | TimePart::Connecting | TimePart::Network) {
            return (None, None);
        }
        let least = STATEMENT_SHARE * change_us.abs();
        let changed = |counter: fn(&StatementUse) -> f64, query: Option<&str>| {
            let (a, b) = (
                per_transaction(&self.a, counter, query),
                per_transaction(&self.b, counter, query),
            );
            let is_same_way = (b - a).is_sign_positive() == change_us.is_sign_positive();
            ((b - a).abs() >= least && is_same_way).then_some((a, b))
        };
        let text = |name: &str, (a, b): (f64, f64)| {
            format!("{name} per transaction: {} → {}", duration_us(a), duration_us(b))
        };
        let jit =
            changed(|statement| statement.jit_us, None).map(|both| text("JIT compilation", both));
        let runs = self.a.iter().chain(&self.b);
        let own =
            runs.flat_map(|run| &run.stage.database).flat_map(|database| &database.statements);
        let queries: BTreeSet<&str> = own
            .filter(|statement| statement.is_own)
            .map(|statement| statement.query.as_str())
            .collect();
        let time = |statement: &StatementUse| statement.exec_us + statement.plan_us;
        let most = queries
            .into_iter()
            .filter_map(|query| Some((query, changed(time, Some(query))?)))
            .max_by(|(_, one), (_, other)| {
                (one.1 - one.0).abs().total_cmp(&(other.1 - other.0).abs())
            });
        let most = most.map(|(query, both)| text(&shortened(query, STATEMENT_MAX), both));
        (jit, most)
    }
}

/// The mean of a counter of the statements of the run, for each of all acknowledged transactions.
fn per_transaction(
    runs: &[Summary<'_>],
    counter: fn(&StatementUse) -> f64,
    query: Option<&str>,
) -> f64 {
    let of_run = |Summary { stage, .. }: &Summary<'_>| {
        let statements = stage.database.iter().flat_map(|database| &database.statements);
        let own = statements.filter(|statement| {
            statement.is_own && query.is_none_or(|query| statement.query == query)
        });
        let operations = &stage.session_loop.operations;
        let transactions: u64 =
            operations.iter().map(|operation| operation.acknowledged_transactions).sum();
        own.map(counter).sum::<f64>() / transactions.max(1) as f64
    };
    runs.iter().map(of_run).sum::<f64>() / runs.len().max(1) as f64
}

/// Whether a difference may be the reason of another one, and not only follow from the same reason.
fn is_cause(change: &Change, part: TimePart) -> bool {
    match change.topic {
        // Two servers have two addresses.
        Topic::Environment if change.name == "address" => part == Network,
        Topic::Plan | Topic::Dataset => change.name != "seed",
        Topic::Schema
        | Topic::Setting
        | Topic::Version
        | Topic::Environment
        | Topic::AccessPath => true,
        Topic::Condition => known_condition(change).is_some(),
        Topic::Bottleneck | Topic::WaitEvent => false,
    }
}

use TimePart::{
    Client, Cpu, Ipc, Lock, LwLock, Network, OtherIo, Read, RunQueue, Temporary, Timeout, Wal,
    Write,
};

/// Conditions that are reasons, by a part of their name, with the parts that they change, and whether more of it takes longer.
const CONDITIONS: [(&str, &[TimePart], bool); 9] = [
    ("locks of other sessions", &[Lock], true),
    ("processor speed", &[Cpu, Client, Network], true),
    ("CPU used by other", &[Cpu, Client, Network], true),
    ("CPU stolen", &[Cpu, Client, Network], true),
    ("dead rows", &[Cpu, Read], true),
    ("order of the rows", &[Cpu, Read], false),
    ("neighboring rows", &[Cpu, Read], false),
    ("size, relative", &[Cpu, Read], true),
    ("checkpoints", &[Wal, Write, Read], true),
];

/// The condition that a change is about, if it is a reason.
fn known_condition(change: &Change) -> Option<&'static (&'static str, &'static [TimePart], bool)> {
    CONDITIONS.iter().find(|(name, ..)| change.name.contains(name))
}

/// Whether a condition changed in the direction that explains this change of a part.
fn agrees(change: &Change, change_us: f64) -> bool {
    let known = change.is_more.zip(known_condition(change));
    known.is_none_or(|(is_more, (.., is_longer))| (is_more == *is_longer) == (change_us > 0.0))
}

/// The longest time that one unit of a cost may plausibly take, in microseconds: a byte at 1 MB/s, a request to a disk in
/// 100 ms, a block in memory in 10 µs.
fn longest_us(figure: Figure) -> f64 {
    const REQUEST_US: f64 = 100_000.0;
    const BLOCK_BYTES: f64 = 8_192.0;
    match figure {
        Figure::BlocksReadPerTransaction
        | Figure::DeviceReadsPerTransaction
        | Figure::BlocksWrittenPerTransaction
        | Figure::DeviceWritesPerTransaction => REQUEST_US,
        Figure::WalFullPageImagesPerTransaction => BLOCK_BYTES,
        // A block; a microsecond of CPU time may delay several sessions.
        Figure::BlocksHitPerTransaction
        | Figure::ServerCpuUsPerTransaction
        | Figure::ServerRunQueueUsPerTransaction
        | Figure::ClientCpuUsPerTransaction => 10.0,
        _ => 1.0,
    }
}

/// Starts of the names of settings and properties of the environment, with the parts that they change.
const NAMES: [(&str, &[TimePart]); 34] = [
    // Other statements may take longer in any way, with other access paths.
    ("script.scripts", &TimePart::ALL),
    // A flush costs CPU time in the kernel, too, and so do full-page images after a checkpoint.
    ("synchronous_commit", &[Wal, Ipc, Cpu]),
    ("synchronous_standby_names", &[Ipc]),
    ("fsync", &[Wal, Write, Cpu]),
    ("full_page_writes", &[Wal, Cpu]),
    ("wal_", &[Wal, Cpu]),
    ("commit_", &[Wal]),
    ("max_wal_size", &[Wal, Write, Cpu]),
    ("checkpoint_", &[Wal, Write, Cpu]),
    ("bgwriter_", &[Write]),
    ("shared_buffers", &[Read, Write, LwLock, Cpu]),
    ("effective_io_concurrency", &[Read]),
    ("io_", &[Read]),
    ("work_mem", &[Temporary, Cpu]),
    ("temp_", &[Temporary]),
    ("jit", &[Cpu]),
    ("enable_", &[Cpu, Read]),
    ("random_page_cost", &[Cpu, Read]),
    ("seq_page_cost", &[Cpu, Read]),
    ("plan_cache_mode", &[Cpu]),
    ("track_", &[Cpu]),
    ("huge_pages", &[Cpu]),
    ("deadlock_timeout", &[Lock]),
    ("vacuum_", &[Timeout, Cpu]),
    ("max_parallel", &[Ipc, Cpu]),
    ("encryption", &[Network, Client, Cpu]),
    ("pooler", &[Network]),
    ("driver of the client", &[Client, Network]),
    ("client", &[Client, Network]),
    // A process that receives or sends a message is not active: short statements spend their CPU time in this part.
    ("CPU", &[Cpu, Client, Network]),
    ("processors", &[Cpu, Client, Network]),
    ("kernel", &[Cpu, Client, Network]),
    ("device", &[Read, Write, Wal, OtherIo]),
    ("memory", &[Read]),
];

/// Whether a change is known to affect a part.
fn concerns(change: &Change, part: TimePart) -> bool {
    // More CPU time also means a longer wait for a processor.
    let part = if part == RunQueue { Cpu } else { part };
    match change.topic {
        Topic::AccessPath => matches!(part, Cpu | Read | Temporary | LwLock),
        // Reads and changes of rows; foreign keys and triggers also lock rows of other tables.
        Topic::Schema => !matches!(part, Client | Network | Timeout | Ipc),
        Topic::Version => part == Cpu,
        Topic::Condition => {
            known_condition(change).is_some_and(|(_, parts, _)| parts.contains(&part))
        }
        _ => {
            let known = NAMES.iter().find(|(start, _)| change.name.starts_with(start));
            known.is_some_and(|(_, parts)| parts.contains(&part))
        }
    }
}

/// The costs that belong to a part.
fn costs_of(part: TimePart) -> &'static [Figure] {
    match part {
        RunQueue => &[Figure::ServerRunQueueUsPerTransaction, Figure::ServerCpuUsPerTransaction],
        Cpu => &[
            Figure::ServerCpuUsPerTransaction,
            Figure::BlocksHitPerTransaction,
            Figure::BlocksReadPerTransaction,
            Figure::WalBytesPerTransaction,
        ],
        Read => &[Figure::BlocksReadPerTransaction, Figure::DeviceReadsPerTransaction],
        Write => &[Figure::BlocksWrittenPerTransaction, Figure::DeviceWritesPerTransaction],
        Wal => &[Figure::WalFullPageImagesPerTransaction, Figure::WalBytesPerTransaction],
        Temporary => &[Figure::TemporaryBytesPerTransaction],
        Client => &[Figure::ClientCpuUsPerTransaction],
        Network => &[
            Figure::ServerCpuUsPerTransaction,
            Figure::ClientCpuUsPerTransaction,
            Figure::ReceivedBytesPerTransaction,
            Figure::SentBytesPerTransaction,
        ],
        _ => &[],
    }
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
