//! Why a transaction takes longer or shorter in B: the change of its time as a sum of parts, and what else differs beside each.

use std::collections::BTreeSet;

use serde::Serialize;

use super::changes::{Change, Topic};
use crate::figure::{Figure, Summary, TransactionTime};
use crate::record::{Record, StageRecord, StatementUse, TimePart};
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
/// A part that changed by less than this share of the time of a transaction is no cause.
const CAUSE_SHARE: f64 = 0.01;

/// Maximum number of characters of a statement.
const STATEMENT_MAX: usize = 40;

/// A run and one of its stages.
pub(crate) type RunStage<'a> = (&'a Record, &'a StageRecord);

/// The runs of A and of B in each block.
pub(crate) type RunBlocks<'a> = [(Vec<RunStage<'a>>, Vec<RunStage<'a>>)];

/// The change of the time of a transaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeChange {
    /// The time in A, in microseconds: the mean of the runs.
    pub a_us: f64,
    /// The time in B.
    pub b_us: f64,
    /// Its parts, those that changed most first.
    pub parts: Vec<PartChange>,
    /// Differences that may be the reason, if no part changed by more than chance: too few runs may hide their effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

/// The change of a part of the time of a transaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartChange {
    /// What the sessions did.
    pub part: TimePart,
    /// The part in A, in microseconds.
    pub a_us: f64,
    /// The part in B.
    pub b_us: f64,
    /// B minus A, within blocks.
    pub change_us: f64,
    /// The 95% interval of the change; absent with too few runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Whether the part changed more than by chance, and by enough to matter.
    pub is_cause: bool,
    /// What else differs and may be the reason, the most likely first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// Returns the change of the time of a transaction; `None` if it is not known of runs of both. `changes` is what differs
/// between them.
pub(crate) fn time_change(blocks: &RunBlocks<'_>, changes: &[Change]) -> Option<TimeChange> {
    let times = |runs: &[RunStage<'_>]| -> Vec<TransactionTime> {
        let time = |&(record, stage): &RunStage<'_>| Summary { record, stage }.transaction_time();
        runs.iter().filter_map(time).collect()
    };
    // A run that was sampled too rarely is left out.
    let of_times: Vec<_> = blocks
        .iter()
        .map(|(a, b)| (times(a), times(b)))
        .filter(|(a, b)| !a.is_empty() && !b.is_empty())
        .collect();
    if of_times.is_empty() {
        return None;
    }
    let mean = |pick: &dyn Fn(&TransactionTime) -> f64, is_b: bool| {
        let side = of_times.iter().flat_map(|(a, b)| if is_b { b } else { a });
        let values: Vec<f64> = side.map(pick).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let (a_us, b_us) = (mean(&|time| time.us, false), mean(&|time| time.us, true));
    let runs = |is_b: bool| -> Vec<RunStage<'_>> {
        blocks.iter().flat_map(|(a, b)| if is_b { b.clone() } else { a.clone() }).collect()
    };
    let evidence = Evidence { a: runs(false), b: runs(true), changes };
    let part = |part: TimePart| {
        let values = |times: &[TransactionTime]| -> Vec<f64> {
            times.iter().map(|time| time.of(part)).collect()
        };
        let of_blocks: Vec<_> = of_times.iter().map(|(a, b)| (values(a), values(b))).collect();
        let found = difference(&of_blocks, ALPHA)?;
        let interval = found
            .reach
            .map(|reach| Interval { low: found.value - reach, high: found.value + reach });
        // One of all parts would be beyond its 95% interval by chance.
        let strict = difference(&of_blocks, ALPHA / TimePart::COUNT as f64)?;
        let is_beyond_chance = strict.reach.is_some_and(|reach| strict.value.abs() > reach);
        let is_cause = is_beyond_chance && found.value.abs() >= CAUSE_SHARE * a_us;
        let (a_us, b_us) = (mean(&|time| time.of(part), false), mean(&|time| time.of(part), true));
        (a_us != 0.0 || b_us != 0.0).then(|| PartChange {
            part,
            a_us,
            b_us,
            change_us: found.value,
            interval,
            is_cause,
            beside: evidence.beside(part, found.value),
        })
    };
    let mut parts: Vec<PartChange> = TimePart::ALL.into_iter().filter_map(part).collect();
    parts.sort_by(|one, other| other.change_us.abs().total_cmp(&one.change_us.abs()));
    let is_explained = parts.iter().any(|part| part.is_cause);
    let candidates = if is_explained { Vec::new() } else { evidence.candidates() };
    Some(TimeChange { a_us, b_us, parts, candidates })
}

/// What is known about two groups of runs beside their times.
struct Evidence<'a> {
    a: Vec<RunStage<'a>>,
    b: Vec<RunStage<'a>>,
    changes: &'a [Change],
}

impl Evidence<'_> {
    /// What may be the reason that a part changed by `change_us`: what was changed, then what follows from it.
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

    /// The differences that may change any part, the plans first.
    fn candidates(&self) -> Vec<String> {
        let topics = [Topic::AccessPath, Topic::Schema, Topic::Setting, Topic::Version];
        let of = |topic| self.changes.iter().filter(move |change| change.topic == topic);
        topics.into_iter().flat_map(of).map(Change::text).take(BESIDE_MAX).collect()
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
        let changed = |of: fn(&StatementUse) -> f64, query: Option<&str>| {
            let (a, b) = (per_transaction(&self.a, of, query), per_transaction(&self.b, of, query));
            let is_same_way = (b - a).is_sign_positive() == change_us.is_sign_positive();
            ((b - a).abs() >= least && is_same_way).then_some((a, b))
        };
        let text = |name: &str, (a, b): (f64, f64)| {
            format!("{name} per transaction: {} → {}", duration_us(a), duration_us(b))
        };
        let jit = changed(|each| each.jit_us, None).map(|both| text("JIT compilation", both));
        let runs = self.a.iter().chain(&self.b);
        let own =
            runs.flat_map(|(_, stage)| stage.database.iter()).flat_map(|each| &each.statements);
        let queries: BTreeSet<&str> =
            own.filter(|each| each.is_own).map(|each| each.query.as_str()).collect();
        let time = |each: &StatementUse| each.exec_us + each.plan_us;
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
    runs: &[RunStage<'_>],
    of: fn(&StatementUse) -> f64,
    query: Option<&str>,
) -> f64 {
    let of_run = |(_, stage): &RunStage<'_>| {
        let statements = stage.database.iter().flat_map(|database| &database.statements);
        let own =
            statements.filter(|each| each.is_own && query.is_none_or(|query| each.query == query));
        let operations = &stage.session_loop.operations;
        let transactions: u64 = operations.iter().map(|each| each.acknowledged_transactions).sum();
        own.map(of).sum::<f64>() / transactions.max(1) as f64
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
    ("CPU withheld", &[Cpu, Client, Network], true),
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
const NAMES: [(&str, &[TimePart]); 33] = [
    ("synchronous_commit", &[Wal, Ipc]),
    ("synchronous_standby_names", &[Ipc]),
    ("fsync", &[Wal, Write]),
    ("full_page_writes", &[Wal, Cpu]),
    ("wal_", &[Wal, Cpu]),
    ("commit_", &[Wal]),
    ("max_wal_size", &[Wal, Write]),
    ("checkpoint_", &[Wal, Write]),
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
mod tests {
    use super::*;
    use crate::record::{
        CostRecord, DatabaseUse, OperationRecord, Sampled, SessionTime, WaitShare,
    };
    use crate::report::example_record;

    /// A run of 10 s whose two sessions spend this time of each transaction in CPU and WAL, in µs, and 1 ms elsewhere.
    fn run(cpu_us: f64, wal_us: f64) -> Record {
        let mut record = example_record();
        let stage = &mut record.stages[0];
        let whole_us = cpu_us + wal_us + 1_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number"
        )]
        let transactions = (20e6 / whole_us) as u64;
        stage.transactions = transactions;
        stage.database_s = Some(19.8);
        let (cpu, wal) = (cpu_us / whole_us, wal_us / whole_us);
        let shares = [(TimePart::Cpu, cpu), (TimePart::Wal, wal)];
        stage.probes = Some(Sampled {
            waits: vec![WaitShare { event: "CPU".to_owned(), share: cpu }],
            looks: 50,
            session_time: shares
                .map(|(part, share)| SessionTime { part, share, reach: Some(0.03) })
                .to_vec(),
            ..Sampled::default()
        });
        record
    }

    fn blocks<'a>(a: &'a [Record], b: &'a [Record]) -> Vec<(Vec<RunStage<'a>>, Vec<RunStage<'a>>)> {
        let stages = |runs: &'a [Record]| runs.iter().map(|run| (run, &run.stages[0])).collect();
        vec![(stages(a), stages(b))]
    }

    fn setting(name: &str, a: &str, b: &str) -> Change {
        let [name, a, b] = [name, a, b].map(str::to_owned);
        Change { topic: Topic::Setting, name, a, b, is_more: None }
    }

    #[test]
    fn another_address_explains_only_a_change_of_the_network() {
        let address =
            Change { topic: Topic::Environment, ..setting("address", "a:5432", "b:5432") };
        assert_eq!([Cpu, Network].map(|part| is_cause(&address, part)), [false, true]);
    }

    #[test]
    fn the_part_that_changed_most_is_first_and_has_its_setting_beside_it() {
        let a = [run(500.0, 100.0), run(510.0, 110.0), run(490.0, 90.0)];
        let b = [run(500.0, 800.0), run(520.0, 820.0), run(490.0, 780.0)];
        let changes = [setting("jit", "off", "on"), setting("synchronous_commit", "off", "on")];
        let found = time_change(&blocks(&a, &b), &changes).unwrap();
        let wal = &found.parts[0];
        assert_eq!((wal.part, wal.is_cause), (TimePart::Wal, true));
        assert!((wal.change_us - 700.0).abs() < 1.0, "{wal:?}");
        assert_eq!(wal.beside, ["setting synchronous_commit: off → on", "setting jit: off → on"]);
        let cpu = found.parts.iter().find(|part| part.part == TimePart::Cpu).unwrap();
        assert!(!cpu.is_cause, "{cpu:?}");
        let sum: f64 = found.parts.iter().map(|part| part.change_us).sum();
        assert!((sum - (found.b_us - found.a_us)).abs() < 1e-6);
    }

    #[test]
    fn what_follows_from_a_cause_is_named_after_it() {
        let with = |mut record: Record, images: f64, exec_us: f64| {
            let stage = &mut record.stages[0];
            stage.cost =
                Some(CostRecord { wal_full_page_images: Some(images), ..CostRecord::default() });
            stage.database = Some(DatabaseUse {
                statements: vec![StatementUse {
                    query: "update t".to_owned(),
                    is_own: true,
                    calls: 100,
                    exec_us,
                    ..StatementUse::default()
                }],
                ..DatabaseUse::default()
            });
            stage.session_loop.operations = vec![OperationRecord {
                acknowledged_transactions: 100,
                ..OperationRecord::default()
            }];
            record
        };
        let a = [(); 3].map(|()| with(run(500.0, 100.0), 0.1, 1_000.0));
        let b = [(); 3].map(|()| with(run(500.0, 800.0), 0.9, 60_000.0));
        let changes = [setting("full_page_writes", "off", "on")];
        let found = time_change(&blocks(&a, &b), &changes).unwrap();
        assert_eq!(
            found.parts[0].beside,
            [
                "setting full_page_writes: off → on",
                "full-page images per transaction: 0.100 → 0.900",
                "update t per transaction: 10.0 µs → 600 µs"
            ]
        );
        // Without a cause, what follows from it is what is known.
        let found = time_change(&blocks(&a, &b), &[]).unwrap();
        assert_eq!(found.parts[0].beside.len(), 2);
    }

    #[test]
    fn what_changed_the_other_way_or_costs_too_little_explains_nothing() {
        let with = |mut record: Record, images: f64| {
            record.stages[0].cost =
                Some(CostRecord { wal_full_page_images: Some(images), ..CostRecord::default() });
            record
        };
        let beside = |images_b: f64, changes: &[Change]| {
            let a = [(); 3].map(|()| with(run(500.0, 100.0), 0.0));
            let b = [(); 3].map(|()| with(run(500.0, 10_800.0), images_b));
            let found = time_change(&blocks(&a, &b), changes).unwrap();
            assert_eq!(found.parts[0].part, TimePart::Wal);
            found.parts[0].beside.clone()
        };
        // At most 11 µs of 10.7 ms.
        assert_eq!(beside(0.00135, &[]), [""; 0]);
        assert_eq!(beside(2.0, &[]).len(), 1);
        let condition = |name: &str, is_more| Change {
            topic: Topic::Condition,
            is_more: Some(is_more),
            ..setting(name, "1", "2")
        };
        for (name, explains) in [
            ("checkpoints", true),
            ("CPU used by other processes", true),
            ("order of the rows", false),
        ] {
            assert_eq!(!beside(0.0, &[condition(name, true)]).is_empty(), explains, "{name}");
            assert_eq!(!beside(0.0, &[condition(name, false)]).is_empty(), !explains, "{name}");
        }
    }

    #[test]
    fn a_changed_plan_is_a_candidate_although_no_part_changed_by_more_than_chance() {
        let a = [run(500.0, 100.0), run(600.0, 200.0), run(400.0, 50.0)];
        let b = [run(510.0, 110.0), run(590.0, 190.0), run(420.0, 70.0)];
        let path = Change { topic: Topic::AccessPath, ..setting("command 1", "Index", "Seq") };
        let client = Change { topic: Topic::Environment, ..setting("client", "x", "y") };
        let changes = [setting("jit", "off", "on"), client, path];
        let found = time_change(&blocks(&a, &b), &changes).unwrap();
        assert_eq!(
            found.candidates,
            ["access path command 1: Index → Seq", "setting jit: off → on"]
        );
    }

    #[test]
    fn equal_groups_and_single_runs_have_no_cause() {
        let a = [run(500.0, 100.0), run(600.0, 200.0), run(400.0, 50.0)];
        let b = [run(510.0, 110.0), run(590.0, 190.0), run(420.0, 70.0)];
        let found = time_change(&blocks(&a, &b), &[]).unwrap();
        assert!(found.parts.iter().all(|part| !part.is_cause), "{found:?}");
        let single = time_change(&blocks(&a[..1], &b[..1]), &[]).unwrap();
        assert!(single.parts.iter().all(|part| part.interval.is_none() && !part.is_cause));
        let mut unsampled = a.clone();
        unsampled[1].stages[0].probes = None;
        assert!(time_change(&blocks(&unsampled, &b), &[]).is_some());
        assert_eq!(time_change(&blocks(&unsampled[1..2], &b), &[]), None);
    }
}
