//! The fields that all kinds of stages have.

use super::neighbors::neighbors;
use crate::plan::{PROMQL, SERVER_THROTTLED};
use crate::probe::MachineUse;
use crate::record::{CacheState, ClientRecord, QuerySeries, Sampled, StageRecord, Throughput};

/// Returns the rates over `seconds`.
pub(in crate::run) fn throughput(
    seconds: f64,
    transactions: u64,
    rows: u64,
    statements: u64,
) -> Throughput {
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    Throughput {
        transactions_per_s: per_second(transactions),
        rows_per_s: per_second(rows),
        statements_per_s: per_second(statements),
    }
}

/// Returns a stage with only the counters of the probes. A new counter in the probes fails to compile here
/// until someone decides whether the record stores it.
pub(super) fn with_counters(
    usage: MachineUse,
    caches: Option<CacheState>,
    client: &ClientRecord,
) -> StageRecord {
    let is_local = client.shares_machine_with_server;
    let neighbors = neighbors(&usage, client.machine.counted_cpus(), client.server_may_be_here);
    let MachineUse {
        started_at,
        machine_busy_share,
        context_switches,
        memory,
        pressure,
        network,
        session_reads,
        io_worker_reads,
        database,
        sampled,
        queries,
        profile,
        activity,
        processes,
        seconds,
        // Stored elsewhere: as client CPU, device, loop or statement.
        client_cpu_s: _,
        device: _,
        threads: _,
        server_throttled_share,
        throttled_share: _,
        steal_share: _,
        disks: _,
        async_io: _,
        nodes: _,
        processes_cpu_s: _,
    } = usage;
    StageRecord {
        caches,
        started_at,
        counters_s: (seconds > 0.0).then_some(seconds),
        database,
        memory: memory.filter(|_| is_local),
        pressure: pressure.filter(|_| is_local),
        server_cpu_s: processes.as_ref().and_then(|processes| processes.server_cpu_s),
        server_run_queue_s: processes.and_then(|processes| processes.server_run_queue_s),
        server_throttled_share: server_throttled_share.or_else(|| throttled(&queries)),
        network,
        neighbors,
        machine_busy_share,
        context_switches,
        process_io: session_reads,
        io_worker_io: io_worker_reads,
        probes: probes(sampled, is_local),
        query_series: queries,
        profile,
        activity,
        ..StageRecord::default()
    }
}

/// Returns the share of the periods in which the quota of a server on another machine was exhausted.
fn throttled(queries: &[QuerySeries]) -> Option<f64> {
    let is_throttled =
        |each: &&QuerySeries| each.name == SERVER_THROTTLED && each.sql.starts_with(PROMQL);
    queries.iter().find(is_throttled)?.mean()
}

/// Converts the samples. Counters of this machine are left out if the server runs on another one.
fn probes(sampled: Option<Sampled>, is_local: bool) -> Option<Sampled> {
    let mut sampled = sampled?;
    for point in sampled.points.iter_mut().filter(|_| !is_local) {
        (point.machine_busy_share, point.dirty_bytes) = (None, None);
    }
    Some(sampled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::processes::ProcessesUse;
    use crate::record::MachineFacts;

    #[test]
    fn the_cpu_share_of_neighbors_is_that_of_the_whole_machine() {
        let processes =
            ProcessesUse { seconds: 10.0, neighbors_cpu_s: 10.0, ..ProcessesUse::default() };
        let usage = MachineUse { processes: Some(processes), ..MachineUse::default() };
        let machine = MachineFacts { cpus: 1, machine_cpus: Some(4), ..MachineFacts::default() };
        let client = ClientRecord {
            riops_version: String::new(),
            machine,
            workers: 1,
            driver: None,
            shares_machine_with_server: true,
            server_may_be_here: false,
        };
        let stage = with_counters(usage, None, &client);
        assert_eq!(stage.neighbors.unwrap().cpu_share, Some(0.25));
    }
}
