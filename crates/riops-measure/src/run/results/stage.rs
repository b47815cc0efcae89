//! The fields that all kinds of stages have, with the load that neither riops nor the server caused.

use crate::probe::{MachineUse, ProcessesUse};
use riops_model::plan::{PROMQL, SERVER_THROTTLED};
use riops_model::record::{
    CacheState, ClientRecord, NeighborProcess, Neighbors, QuerySeries, Sampled, StageRecord,
};
use riops_model::units::BLOCK_BYTES;

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
        instructions_per_s,
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
    // On a busy machine, the processes are read for a longer or a shorter time than the other counters.
    // Without scheduler statistics, less than a tick of 10 ms is not counted.
    let of_processes = |pick: fn(&ProcessesUse) -> Option<f64>| {
        let processes = processes.as_ref()?;
        let counted = pick(processes).filter(|&counted_s| counted_s > 0.0)?;
        Some(counted * seconds / processes.seconds)
    };
    StageRecord {
        caches,
        started_at,
        counters_s: (seconds > 0.0).then_some(seconds),
        database,
        memory: memory.filter(|_| is_local),
        pressure: pressure.filter(|_| is_local),
        server_cpu_s: of_processes(|processes| processes.server_cpu_s),
        server_run_queue_s: of_processes(|processes| processes.server_run_queue_s),
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
        server_instructions_per_s: instructions_per_s,
        activity,
        ..StageRecord::default()
    }
}

/// Returns the share of the periods in which the quota of a server on another machine was exhausted.
fn throttled(queries: &[QuerySeries]) -> Option<f64> {
    let is_throttled =
        |series: &&QuerySeries| series.name == SERVER_THROTTLED && series.sql.starts_with(PROMQL);
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

/// The kernel counts CPU time of processes in ticks of 10 ms. From this CPU time on, one tick is at most 1%.
const CPU_S_MIN: f64 = 1.0;

/// Returns the load of the neighbors; `None` if no process could be observed. `cpus` is the number of CPUs of the whole
/// machine, because its processes can run on all of them. If the server may be on this machine, invisible processes may
/// belong to it.
fn neighbors(usage: &MachineUse, cpus: usize, server_may_be_here: bool) -> Option<Neighbors> {
    let processes = usage.processes.as_ref()?;
    let available_s = processes.seconds * cpus.max(1) as f64;
    let is_long = available_s >= CPU_S_MIN;
    let mb_s = |bytes: u64| bytes as f64 / 1e6 / processes.seconds;
    let device = usage.device.as_ref();
    let of_reads = device.zip(processes.own_read_bytes).map(|(device, own)| {
        // Reads of the device beyond the requests of server and client, and at most the bytes that the other processes
        // requested from all devices.
        let beyond = (device.read_mb_s - mb_s(own)).max(0.0);
        let read = processes.neighbors_read_bytes.map_or(beyond, |others| beyond.min(mb_s(others)));
        // The server reads whole blocks.
        let own_per_s = own as f64 / BLOCK_BYTES as f64 / processes.seconds;
        (read, (device.reads_per_s - own_per_s).max(0.0))
    });
    let (read, reads) = of_reads.unzip();
    // A device writes more than the processes requested (journal), so their requests must be known.
    let write = device
        .zip(processes.own_written_bytes)
        .zip(processes.neighbors_written_bytes)
        .map(|((device, own), others)| (device.write_mb_s - mb_s(own)).max(0.0).min(mb_s(others)));
    let sessions = usage.sampled.as_ref().map_or(&[][..], |sampled| &sampled.others);
    Some(Neighbors {
        cpu_share: is_long.then(|| (processes.neighbors_cpu_s / available_s).min(1.0)),
        unseen_cpu_share: processes
            .unseen_cpu_s
            .filter(|_| is_long && !server_may_be_here)
            .map(|cpu_s| (cpu_s / available_s).min(1.0)),
        processes: processes
            .neighbors
            .iter()
            .filter(|_| is_long)
            .map(|(name, cpus)| NeighborProcess { name: name.clone(), cpus: *cpus })
            .collect(),
        steal_share: usage.steal_share,
        device_read_mb_s: read,
        device_reads_per_s: reads.filter(|_| read.is_some_and(|mb_s| mb_s > 0.0)),
        device_write_mb_s: write,
        sessions: sessions.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::record::{DeviceUse, MachineFacts};

    #[test]
    fn relates_the_cpu_share_of_neighbors_to_the_entire_machine() {
        let processes =
            ProcessesUse { seconds: 10.0, neighbors_cpu_s: 10.0, ..ProcessesUse::default() };
        let usage = MachineUse { processes: Some(processes), ..MachineUse::default() };
        let machine = MachineFacts { cpus: 1, machine_cpus: Some(4), ..MachineFacts::default() };
        let client =
            ClientRecord { machine, shares_machine_with_server: true, ..ClientRecord::default() };
        let stage = with_counters(usage, None, &client);
        assert_eq!(stage.neighbors.unwrap().cpu_share, Some(0.25));
    }

    #[test]
    fn attributes_device_traffic_beyond_own_requests_to_the_neighbors() {
        let processes = ProcessesUse {
            seconds: 10.0,
            neighbors_cpu_s: 5.0,
            own_read_bytes: Some(200_000_000),
            own_written_bytes: Some(100_000_000),
            neighbors_read_bytes: Some(900_000_000),
            neighbors_written_bytes: Some(30_000_000),
            unseen_cpu_s: Some(4.0),
            ..ProcessesUse::default()
        };
        let device = DeviceUse {
            read_mb_s: 100.0,
            reads_per_s: 10_000.0,
            write_mb_s: 20.0,
            ..DeviceUse::default()
        };
        let mut usage = MachineUse {
            processes: Some(processes),
            device: Some(device),
            ..MachineUse::default()
        };
        let record = neighbors(&usage, 4, false).unwrap();
        assert!((record.cpu_share.unwrap() - 0.125).abs() < 1e-9);
        assert!((record.device_read_mb_s.unwrap() - 80.0).abs() < 1e-9);
        // 20 MB/s of server and client are at most 2,441 blocks per second.
        assert_eq!(record.device_reads_per_s.map(f64::round), Some(7_559.0));
        // The device wrote 10 MB/s beyond the server's requests; others requested only 3 MB/s.
        assert!((record.device_write_mb_s.unwrap() - 3.0).abs() < 1e-9);
        assert!((record.all_cpu_share().unwrap() - 0.225).abs() < 1e-9);
        assert_eq!(neighbors(&usage, 4, true).unwrap().unseen_cpu_share, None);
        let processes = usage.processes.as_mut().unwrap();
        (processes.neighbors_read_bytes, processes.neighbors_written_bytes) = (None, None);
        let record = neighbors(&usage, 4, false).unwrap();
        assert_eq!(record.device_read_mb_s.map(f64::round), Some(80.0));
        assert_eq!(record.device_write_mb_s, None);
        // One tick of a stage of 20 ms is an eighth of the CPU of four processors.
        usage.processes.as_mut().unwrap().seconds = 0.02;
        assert_eq!(neighbors(&usage, 4, false).unwrap().cpu_share, None);
        assert_eq!(neighbors(&MachineUse::default(), 4, false), None);
    }
}
