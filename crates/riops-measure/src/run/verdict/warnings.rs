//! Warnings about a stage: what makes a number less reliable than it looks.
//!
//! docs/reading-results.md explains each of them; a test compares the two.

use crate::run::results::client::has_shared_loops;
use riops_model::plan::Plan;
use riops_model::record::{ClockStep, MachineFacts, Record, StageRecord, Warning, WarningKind};
use riops_model::units::format::{count, duration_us, joined, number_of, rate};
use riops_model::units::percent;

/// Smallest share of other load that matters. It changes a result that depends on the same resource by about
/// as much, which is the smallest difference that users of benchmarks act on.
const FOREIGN_SHARE: f64 = 0.05;
/// Fewer active sessions do not matter, however few of the run are active.
const FOREIGN_SESSIONS_MIN: f64 = 0.05;
/// Smallest number of requests per second that matters on a device that is busy: a tenth of what a disk with heads serves.
const FOREIGN_REQUESTS_PER_S: f64 = 20.0;
/// A snapshot that is older than the stage by this factor was held for all of it. Fewer transactions leave few row versions.
const OLD_SNAPSHOT_SHARE: f64 = 0.5;
const OLD_SNAPSHOT_TRANSACTIONS_MIN: u64 = 1_000;
/// Smallest share of TCP segments sent again that matters: each delays a transaction by 200 ms or more, which
/// changes a p99.
const RETRANSMITTED_SHARE: f64 = 0.002;
const RETRANSMITTED_MIN: u64 = 10;
/// Smallest device traffic that matters, in MB per second: less is log files and journals.
const FOREIGN_MB_S: f64 = 5.0;
/// A processor with less than this share of its initial speed is slow.
const SLOW_SPEED: f64 = 0.9;
/// Share of the intervals with a slow processor that changes the mean by as much as other differences that matter.
const SLOW_SHARE: f64 = 0.2;
/// One or two intervals may be slow by chance.
const SLOW_INTERVALS_MIN: usize = 3;
/// From this share of the latency at the same percentile on, stalls of the poll loop are part of it.
const STALL_SHARE: f64 = 0.1;

/// Returns the warnings about a stage.
pub(in crate::run) fn warnings(
    stage: &StageRecord,
    plan: &Plan,
    machine: &MachineFacts,
) -> Vec<Warning> {
    let candidates = [
        (WarningKind::Outage, outage(stage)),
        (WarningKind::Stalls, stalls(stage, plan)),
        (WarningKind::ForeignCpu, foreign_cpu(stage, machine)),
        (WarningKind::StolenCpu, stolen_cpu(stage, machine)),
        (WarningKind::SlowProcessor, slow_processor(stage)),
        (WarningKind::ForeignSessions, foreign_sessions(stage)),
        (WarningKind::ForeignLocks, foreign_locks(stage)),
        (WarningKind::ForeignIo, foreign_io(stage)),
        (WarningKind::OldSnapshot, old_snapshot(stage)),
        (WarningKind::Network, network(stage)),
        (WarningKind::Clock, clock(stage)),
        (WarningKind::Statement, without_rows(stage, plan)),
    ];
    let candidates = candidates.into_iter().filter_map(|(kind, text)| Some((kind, text?)));
    candidates.map(|(kind, text)| Warning { kind, stage: None, text }).collect()
}

/// Settings without which a commit waits for nothing.
const DURABLE: [&str; 2] = ["fsync", "synchronous_commit"];
/// Transactions with less WAL than a commit record, in bytes, changed nothing.
const COMMIT_BYTES: f64 = 30.0;

/// Settings because of which a crash may lose commits, if there were any.
pub(super) fn durability(record: &Record) -> Option<Warning> {
    let writes = |stage: &StageRecord| {
        let wal = stage.cost.as_ref().and_then(|cost| cost.wal_bytes);
        wal.map_or(record.plan.work.traits().writes, |bytes| bytes >= COMMIT_BYTES)
    };
    let is_off =
        |name: &&str| record.target.settings.get(*name).is_some_and(|value| value == "off");
    let off = joined(DURABLE.into_iter().filter(is_off).map(|name| format!("{name} off")), ", ");
    (!off.is_empty() && record.stages.iter().any(writes)).then(|| Warning {
        kind: WarningKind::Durability,
        stage: None,
        text: format!("commits are not durable: {off}"),
    })
}

/// The longest time without success, with or without an error.
fn outage(stage: &StageRecord) -> Option<String> {
    let seconds = stage.long_pause_s()?;
    let share = percent(seconds / stage.seconds.max(f64::MIN_POSITIVE));
    let cause = match stage.has_outage() {
        _ if stage.has_lost_connections() => "in which connections were lost",
        true => "after errors",
        false => "without an error",
    };
    Some(format!(
        "no transaction succeeded for {seconds:.2} s, {share} of the measurement, {cause}: the rate is lower by as much"
    ))
}

/// Stalls of the poll loop, compared with the latency that is shown beside them.
fn stalls(stage: &StageRecord, plan: &Plan) -> Option<String> {
    let cpu = stage.client_cpu.as_ref()?;
    let stalls = cpu.away_us.as_ref()?;
    let latency = stage.session_loop.latency_us()?;
    if !has_shared_loops(stage.sessions, plan, cpu.worker_shares.len()) {
        return None;
    }
    let shares = [("p50", stalls.p50, latency.p50), ("p99", stalls.p99, latency.p99)];
    let above: Vec<_> = shares
        .into_iter()
        .filter(|&(_, stall, latency)| stall > STALL_SHARE * latency)
        .map(|(name, stall, latency)| {
            format!("{} of the {name}", percent(stall / latency.max(f64::MIN_POSITIVE)))
        })
        .collect();
    (!above.is_empty()).then(|| {
        format!("the latency includes stalls of the client's poll loop, {}", above.join(" and "))
    })
}

fn foreign_cpu(stage: &StageRecord, machine: &MachineFacts) -> Option<String> {
    let neighbors = stage.neighbors.as_ref()?;
    let is_relevant = |share: &f64| *share >= FOREIGN_SHARE;
    let share = neighbors.all_cpu_share().filter(is_relevant)?;
    let unseen = neighbors.unseen_cpu_share.filter(is_relevant);
    let unseen = unseen.map(|share| machine.cpu_text(share));
    let unseen = unseen.map(|share| format!("{share} by processes that are not visible here"));
    let names = neighbors.processes.iter().take(3);
    let names = names.map(|process| format!("{} {}", process.name, percent(process.cpus)));
    let names = names.chain(unseen).collect::<Vec<_>>().join(", ");
    let names = if names.is_empty() { "short-lived ones" } else { &names };
    let used = machine.cpu_of_all_text(share);
    Some(format!("other processes used {used} CPU of this machine: {names}"))
}

fn stolen_cpu(stage: &StageRecord, machine: &MachineFacts) -> Option<String> {
    let share = stage.neighbors.as_ref()?.steal_share.filter(|share| *share >= FOREIGN_SHARE)?;
    let stolen = machine.cpu_of_all_text(share);
    Some(format!("the hypervisor stole {stolen} CPU of this machine (steal time)"))
}

/// The speed of the processor, compared with its speed in the first interval, which has the same load.
fn slow_processor(stage: &StageRecord) -> Option<String> {
    let speeds = stage.probes.as_ref()?.processor_speeds();
    let slow: Vec<f64> = speeds.iter().copied().filter(|speed| *speed < SLOW_SPEED).collect();
    let share = slow.len() as f64 / speeds.len().max(1) as f64;
    let mean = slow.iter().sum::<f64>() / slow.len().max(1) as f64;
    let (speed, part) = (percent(mean), percent(share));
    (slow.len() >= SLOW_INTERVALS_MIN && share >= SLOW_SHARE).then(|| {
        format!("the processor was at {speed} of its initial speed in {part} of the intervals: its frequency, heat, or a neighbor on the same core")
    })
}

/// Other sessions of the server, compared with the active sessions of the run.
fn foreign_sessions(stage: &StageRecord) -> Option<String> {
    let neighbors = stage.neighbors.as_ref()?;
    let others = || neighbors.sessions.iter().filter(|session| !session.is_replication());
    let active = others().map(|session| session.active).sum::<f64>();
    let waits = stage.probes.as_ref().map_or(&[][..], |probes| &probes.waits);
    let idle = waits.iter().filter(|wait| wait.event == "idle").map(|wait| wait.share).sum::<f64>();
    let own_active = (1.0 - idle) * f64::from(stage.sessions.max(1));
    let names = others().take(3).map(|session| format!("{} {:.2}", session.name, session.active));
    let names = names.collect::<Vec<_>>().join(", ");
    (active >= FOREIGN_SESSIONS_MIN.max(FOREIGN_SHARE * own_active)).then(|| {
        format!("{active:.2} other sessions of the server were active on average: {names}")
    })
}

/// A snapshot that was held during the whole stage, so that no VACUUM could remove row versions of its updates.
fn old_snapshot(stage: &StageRecord) -> Option<String> {
    let database = stage.database.as_ref()?;
    let oldest = database.oldest_snapshot.as_ref()?;
    let is_old = oldest.transactions as f64 >= OLD_SNAPSHOT_SHARE * oldest.of_stage as f64;
    let has_updates = database.row_versions.is_some_and(|versions| versions.updated > 0);
    let (transactions, holder) = (count(oldest.transactions), &oldest.holder);
    (is_old && has_updates && oldest.of_stage >= OLD_SNAPSHOT_TRANSACTIONS_MIN).then(|| {
        format!("VACUUM can remove no row version of the last {transactions} transactions: {holder} has a snapshot of that age")
    })
}

/// Segments that TCP had to send again.
fn network(stage: &StageRecord) -> Option<String> {
    let used = stage.network?;
    let share = used.retransmitted as f64 / used.segments.max(1) as f64;
    let part = percent(share);
    (used.retransmitted >= RETRANSMITTED_MIN && share >= RETRANSMITTED_SHARE).then(|| {
        format!("{part} of the TCP segments were sent again: each delays a transaction by 200 ms or more")
    })
}

/// Steps of the clock of this machine: a server on it waits by that much longer or shorter for a time to pass.
fn clock(stage: &StageRecord) -> Option<String> {
    let steps = &stage.probes.as_ref()?.clock_steps;
    let text = |step: &ClockStep| {
        let sign = if step.step_s < 0.0 { "-" } else { "+" };
        format!("{sign}{} at {:.1} s", duration_us(step.step_s.abs() * 1e6), step.t_s)
    };
    let shown = joined(steps.iter().take(3).map(text), ", ");
    let more =
        if steps.len() > 3 { format!(" and {} more", steps.len() - 3) } else { String::new() };
    (!steps.is_empty()).then(|| {
        format!("the clock of this machine was set, or the machine was suspended: {shown}{more}")
    })
}

/// Fewer executions may find no row by chance.
const EXECUTIONS_MIN: u64 = 100;
/// First words of statements that are meant to find rows.
const SEARCHING: [&str; 5] = ["select", "update", "delete", "merge", "with"];

/// Statements of a script that never found a row: their values are probably outside of the table.
fn without_rows(stage: &StageRecord, plan: &Plan) -> Option<String> {
    let is_script = plan.work.traits().tolerates_changed_plans;
    let queries = stage.session_loop.queries;
    let statements = stage.database.as_ref().map_or(&[][..], |database| &database.statements);
    let is_searching = |query: &str| {
        let word = query.split_whitespace().next().unwrap_or_default().to_lowercase();
        SEARCHING.contains(&word.as_str())
    };
    let mut never = statements.iter().filter(|statement| {
        statement.is_own
            && statement.calls >= EXECUTIONS_MIN
            && statement.rows == 0
            && is_searching(&statement.query)
    });
    let text = match never.next() {
        Some(first) => {
            let others = match never.count() as u64 {
                0 => String::new(),
                more => format!(" (and {} without a row)", number_of(more, "more statement")),
            };
            format!("{} executions found no row: {}{others}", count(first.calls), first.query)
        }
        None if stage.rows == 0 && queries.write == 0 && queries.read >= EXECUTIONS_MIN => {
            format!("{} queries found no row", count(queries.read))
        }
        None => return None,
    };
    is_script.then_some(text)
}

/// Locks of other sessions that sessions of the run waited for.
fn foreign_locks(stage: &StageRecord) -> Option<String> {
    let waiting = stage.lock_share()?;
    let blockers = &stage.probes.as_ref()?.blockers;
    let others = || blockers.iter().filter(|blocker| !blocker.is_own);
    let share = waiting * others().map(|blocker| blocker.share).sum::<f64>();
    let names = others().take(3).map(|blocker| format!("{} ({})", blocker.name, blocker.state));
    let names = names.collect::<Vec<_>>().join(", ");
    let part = percent(share);
    (share >= FOREIGN_SHARE).then(|| {
        format!("the sessions waited {part} of their time for locks of other sessions: {names}")
    })
}

/// Traffic of other processes on the device of the server's data.
fn foreign_io(stage: &StageRecord) -> Option<String> {
    let neighbors = stage.neighbors.as_ref()?;
    let device = stage.io.as_ref()?.device.as_ref()?;
    let name = &device.name;
    let read = neighbors.device_read_mb_s.unwrap_or(0.0);
    let write = neighbors.device_write_mb_s.unwrap_or(0.0);
    let (foreign, all) = (read + write, device.read_mb_s + device.write_mb_s);
    let bytes = (foreign >= FOREIGN_MB_S && foreign >= FOREIGN_SHARE * all).then(|| {
        let share = percent(foreign / all);
        format!("{share} of the traffic of {name}: {read:.1} MB/s read, {write:.1} MB/s written")
    });
    let requests = || {
        let foreign = neighbors.device_reads_per_s?;
        let share = foreign / device.reads_per_s.max(f64::MIN_POSITIVE);
        let is_busy = device.busy_share >= FOREIGN_SHARE;
        (is_busy && foreign >= FOREIGN_REQUESTS_PER_S && share >= FOREIGN_SHARE).then(|| {
            format!("{} of the reads of {name}: {} per second", percent(share), rate(foreign))
        })
    };
    Some(format!("other processes caused {}", bytes.or_else(requests)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::plan::{ScriptRun, WorkPlan};
    use riops_model::record::{
        Blocker, ClientCpu, CostRecord, DatabaseUse, DeviceUse, ErrorEntry, IoRecord,
        LatencySummary, LockWaits, NeighborProcess, Neighbors, NetworkUse, OldestSnapshot,
        OtherSessions, RowVersions, Sampled, StatementUse, WaitShare,
    };

    fn warnings_with(change: impl FnOnce(&mut StageRecord)) -> Vec<(WarningKind, String)> {
        let mut stage = StageRecord { sessions: 8, ..StageRecord::default() };
        stage.session_loop.service_us = Some(LatencySummary::for_test(1_600.0, 2_900.0));
        stage.neighbors = Some(Neighbors::default());
        stage.client_cpu = Some(ClientCpu {
            seconds: 0.2,
            us_per_transaction: None,
            share_of_client: 0.01,
            worker_shares: vec![0.01, 0.01],
            run_queue_share: None,
            connector_share: None,
            throttled_share: None,
            away_us: Some(LatencySummary::for_test(10.0, 20.0)),
            limits: Vec::new(),
            limited: false,
        });
        let device = DeviceUse { name: "vda".to_owned(), read_mb_s: 100.0, ..DeviceUse::default() };
        stage.io = Some(IoRecord { device: Some(device), ..IoRecord::default() });
        change(&mut stage);
        let machine = MachineFacts { cpus: 2, ..MachineFacts::default() };
        let warnings = warnings(&stage, &Plan::default(), &machine);
        warnings.into_iter().map(|warning| (warning.kind, warning.text)).collect()
    }

    #[test]
    fn a_quiet_stage_has_no_warnings() {
        assert_eq!(warnings_with(|_| {}), []);
    }

    #[test]
    fn commits_without_durability_are_named() {
        let warned = |settings: &[(&str, &str)], wal_bytes: Option<f64>| {
            let mut record = riops_model::record::example::example_record();
            record.target.settings = settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            for stage in &mut record.stages {
                stage.cost = Some(CostRecord { wal_bytes, ..CostRecord::default() });
            }
            durability(&record).map(|warning| warning.text)
        };
        let both = [("fsync", "off"), ("synchronous_commit", "off")];
        let text = "commits are not durable: fsync off, synchronous_commit off";
        assert_eq!(warned(&both, Some(500.0)).as_deref(), Some(text));
        // Hint bits of transactions that only read.
        assert_eq!(warned(&both, Some(0.4)), None);
        assert_eq!(warned(&[("fsync", "on"), ("synchronous_commit", "local")], Some(500.0)), None);
    }

    #[test]
    fn steps_of_the_clock_are_named() {
        let warned = |steps: &[(f64, f64)]| {
            let steps = steps.iter().map(|&(t_s, step_s)| ClockStep { t_s, step_s });
            let clock_steps = steps.collect();
            let probes = Some(Sampled { clock_steps, ..Sampled::default() });
            clock(&StageRecord { probes, ..StageRecord::default() })
        };
        assert_eq!(warned(&[]), None);
        let text = "the clock of this machine was set, or the machine was suspended: -2.00 s at 3.1 s, +2.00 s at 5.0 s";
        assert_eq!(warned(&[(3.1, -2.0), (5.0, 2.0)]).as_deref(), Some(text));
        assert!(warned(&[(1.0, 1.0); 5]).unwrap().ends_with(" and 2 more"));
    }

    #[test]
    fn statements_of_a_script_that_never_find_a_row_are_named() {
        let script = Plan { work: WorkPlan::Script(ScriptRun::default()), ..Plan::default() };
        let warned = |plan: &Plan, statements: &[(&str, u64, u64)], rows: u64, read: u64| {
            let mut stage = StageRecord { rows, ..StageRecord::default() };
            stage.session_loop.queries.read = read;
            let statement = |&(query, calls, rows): &(&str, u64, u64)| StatementUse {
                query: query.to_owned(),
                is_own: true,
                calls,
                rows,
                ..StatementUse::default()
            };
            let statements = statements.iter().map(statement).collect();
            stage.database = Some(DatabaseUse { statements, ..DatabaseUse::default() });
            without_rows(&stage, plan)
        };
        let missing = ("UPDATE a SET b = $1 WHERE id = $2", 500, 0);
        let hit = ("select 1", 500, 500);
        let text = "500 executions found no row: UPDATE a SET b = $1 WHERE id = $2";
        assert_eq!(warned(&script, &[hit, missing], 500, 500).as_deref(), Some(text));
        let text = "500 executions found no row: UPDATE a SET b = $1 WHERE id = $2 (and 1 more statement without a row)";
        assert_eq!(warned(&script, &[missing, missing], 500, 500).as_deref(), Some(text));
        assert_eq!(warned(&script, &[], 0, 500).as_deref(), Some("500 queries found no row"));
        // A few misses, statements that find nothing by design, and other workloads, whose replies are checked.
        assert_eq!(warned(&script, &[("select 1", 99, 0), ("BEGIN", 500, 0), hit], 1, 500), None);
        assert_eq!(warned(&Plan::default(), &[missing], 0, 500), None);
    }

    #[test]
    fn names_errors_as_the_cause_of_a_pause_with_an_outage() {
        let pause_with = |outage_s: Option<f64>, sqlstate: &str| {
            let warnings = warnings_with(|stage| {
                (stage.seconds, stage.transactions) = (10.0, 10_000);
                stage.session_loop.longest_pause_s = Some(2.0);
                let without_success_s = outage_s;
                stage.session_loop.errors = vec![ErrorEntry {
                    sqlstate: sqlstate.to_owned(),
                    count: 1,
                    without_success_s,
                    ..ErrorEntry::default()
                }];
            });
            warnings.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ")
        };
        let pause = |outage_s| pause_with(outage_s, "40001");
        let text = |cause: &str| {
            format!(
                "no transaction succeeded for 2.00 s, 20% of the measurement, {cause}: the rate is lower by as much"
            )
        };
        assert_eq!(pause(None), text("without an error"));
        assert_eq!(pause(Some(0.5)), text("without an error"));
        // The clock of an outage begins with its error, after the last success.
        assert_eq!(pause(Some(1.99)), text("after errors"));
        for sqlstate in ["08006", "57P01"] {
            assert_eq!(pause_with(Some(0.5), sqlstate), text("in which connections were lost"));
        }
    }

    #[test]
    fn foreign_load_is_named_with_its_share() {
        let warnings = warnings_with(|stage| {
            let neighbors = stage.neighbors.as_mut().unwrap();
            neighbors.cpu_share = Some(0.48);
            neighbors.steal_share = Some(0.06);
            neighbors.processes = vec![NeighborProcess { name: "stress".to_owned(), cpus: 0.96 }];
            neighbors.sessions = vec![OtherSessions { name: "pgbench".to_owned(), active: 0.8 }];
            neighbors.device_read_mb_s = Some(50.0);
            stage.session_loop.lock_waits = Some(LockWaits { samples: 100, waiting: 400 });
            let blocker = |name: &str, is_own: bool, share: f64| Blocker {
                name: name.to_owned(),
                state: "idle in transaction".to_owned(),
                is_own,
                share,
            };
            let blockers = vec![blocker("riops", true, 0.4), blocker("psql", false, 0.6)];
            stage.probes = Some(Sampled { blockers, ..Sampled::default() });
        });
        let lines: Vec<_> =
            warnings.iter().map(|(kind, text)| format!("{kind:?}: {text}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        ForeignCpu: other processes used 96% of 200% CPU of this machine: stress 96%
        StolenCpu: the hypervisor stole 12% of 200% CPU of this machine (steal time)
        ForeignSessions: 0.80 other sessions of the server were active on average: pgbench 0.80
        ForeignLocks: the sessions waited 30% of their time for locks of other sessions: psql (idle in transaction)
        ForeignIo: other processes caused 50% of the traffic of vda: 50.0 MB/s read, 0.0 MB/s written
        ");
    }

    #[test]
    fn warns_about_requests_for_small_blocks_despite_few_bytes() {
        let warned = |reads_per_s: f64| {
            warnings_with(move |stage| {
                let device = stage.io.as_mut().unwrap().device.as_mut().unwrap();
                (device.reads_per_s, device.busy_share) = (4_000.0, 0.4);
                stage.neighbors.as_mut().unwrap().device_reads_per_s = Some(reads_per_s);
            })
        };
        assert_eq!(warned(150.0), []);
        let text = "other processes caused 25% of the reads of vda: 1,000 per second".to_owned();
        assert_eq!(warned(1_000.0), [(WarningKind::ForeignIo, text)]);
    }

    #[test]
    fn other_sessions_are_compared_with_the_active_ones() {
        let warned = |idle: f64| {
            warnings_with(move |stage| {
                let sessions = vec![OtherSessions { name: "pgbench".to_owned(), active: 0.3 }];
                stage.neighbors.as_mut().unwrap().sessions = sessions;
                let waits = vec![WaitShare { event: "idle".to_owned(), share: idle }];
                stage.probes = Some(Sampled { waits, ..Sampled::default() });
            })
        };
        let replication = warnings_with(|stage| {
            let name = "replication to standby1".to_owned();
            stage.neighbors.as_mut().unwrap().sessions = vec![OtherSessions { name, active: 2.0 }];
        });
        assert_eq!(replication, []);
        // The stage has 8 sessions.
        assert_eq!(warned(0.0), []);
        assert_eq!(warned(0.5)[0].0, WarningKind::ForeignSessions);
    }

    #[test]
    fn a_snapshot_that_is_as_old_as_the_stage_keeps_its_row_versions() {
        let warned = |transactions: u64| {
            warnings_with(move |stage| {
                let holder = "psql (idle in transaction)".to_owned();
                let oldest = OldestSnapshot { transactions, of_stage: 50_000, holder };
                let row_versions = Some(RowVersions { updated: 50_000, ..RowVersions::default() });
                let oldest_snapshot = Some(oldest);
                stage.database =
                    Some(DatabaseUse { row_versions, oldest_snapshot, ..DatabaseUse::default() });
            })
        };
        assert_eq!(warned(20_000), []);
        let text = "VACUUM can remove no row version of the last 51,000 transactions: psql (idle in transaction) has a snapshot of that age".to_owned();
        assert_eq!(warned(51_000), [(WarningKind::OldSnapshot, text)]);
    }

    #[test]
    fn warns_about_retransmitted_segments_from_a_share_on() {
        let warned = |retransmitted: u64| {
            warnings_with(move |stage| {
                let segments = 100_000;
                stage.network =
                    Some(NetworkUse { segments, retransmitted, ..NetworkUse::default() });
            })
        };
        assert_eq!(warned(199), []);
        assert_eq!(warned(200)[0].0, WarningKind::Network);
    }

    #[test]
    fn an_outage_is_compared_with_the_measurement() {
        let with_outage = |seconds: f64| {
            warnings_with(move |stage| {
                (stage.seconds, stage.transactions) = (8.0, 8_000);
                stage.session_loop.errors =
                    vec![ErrorEntry { without_success_s: Some(seconds), ..ErrorEntry::default() }];
            })
        };
        assert_eq!(with_outage(0.05), []);
        let warnings = with_outage(5.0);
        assert_eq!(warnings[0].0, WarningKind::Outage);
        assert!(warnings[0].1.contains("5.00 s, 62% of the measurement"), "{}", warnings[0].1);
        // With a rate, nothing was due in a pause after which no transaction is late.
        let paused = |response_us: f64| {
            warnings_with(move |stage| {
                (stage.seconds, stage.transactions) = (8.0, 8_000);
                stage.session_loop.longest_pause_s = Some(5.0);
                let response = LatencySummary::for_test(response_us, response_us);
                stage.session_loop.response_us = Some(response);
            })
        };
        assert_eq!(paused(1_600.0), []);
        assert_eq!(paused(4_999_000.0)[0].0, WarningKind::Outage);
    }

    #[test]
    fn warns_about_stalls_above_a_tenth_of_the_latency() {
        let with_stalls = |sessions: u32| {
            warnings_with(move |stage| {
                stage.sessions = sessions;
                stage.client_cpu.as_mut().unwrap().away_us =
                    Some(LatencySummary::for_test(10.0, 580.0));
            })
        };
        let warnings = with_stalls(8);
        assert_eq!(warnings[0].0, WarningKind::Stalls);
        assert!(warnings[0].1.ends_with("poll loop, 20% of the p99"), "{}", warnings[0].1);
        assert_eq!(with_stalls(2), []);
    }
}
