//! Counters around a stage: activity of the client, machine, device and database while it ran.
//!
//! Only reads counters; `caches` alone changes state, before a stage. Unavailable counters are absent.

pub mod active_sessions;
pub mod async_io;
mod batches;
pub mod caches;
mod clock;
pub mod cpu;
pub mod database;
pub mod device;
pub mod disk;
mod fio;
mod identity;
pub mod instructions;
pub mod locations;
pub mod memory;
mod network;
pub mod perf;
pub mod process;
pub mod processes;
mod profile;
pub mod queries;
mod reading;
mod relations;
pub mod sampler;
pub mod scans;
mod statements;
pub mod threads;
pub mod topology;
mod wait_sampling;
pub mod yugabytedb;

use std::path::Path;
use std::time::Instant;

use jiff::Timestamp;

use crate::host::cgroup::{Cgroup, Throttling};
use async_io::AsyncIo;
use cpu::MachineCpu;
use database::DatabaseProbe;
use device::{Device, DeviceCounters};
use instructions::Instructions;
use locations::Devices;
use memory::PressureTotals;
use network::NetworkTotals;
use perf::Perf;
use process::ProcessesIo;
use processes::ProcessTable;
pub use processes::{Place, ProcessesUse};
use queries::QueryProbe;
use riops_model::record::{
    ActivityRecord, DatabaseUse, DeviceUse, DiskUse, Memory, NetworkUse, NodeUse, Pressure,
    ProfileRecord, QuerySeries, ReadBytes, Sampled,
};
use sampler::Sampler;
use threads::{Threads, ThreadsUse};
use topology::Topology;
use yugabytedb::ClusterProbe;

/// All counters at one point in time.
struct Sample {
    at: Instant,
    time: Timestamp,
    process_cpu_s: f64,
    machine: Option<MachineCpu>,
    device: Option<DeviceCounters>,
    /// In the order of the disks.
    disks: Vec<Option<DeviceCounters>>,
    pressure: Option<PressureTotals>,
    network: Option<NetworkTotals>,
    processes_io: Option<ProcessesIo>,
    io_workers_io: Option<ProcessesIo>,
    /// Processes of this machine.
    table: Option<ProcessTable>,
    /// CPU seconds of the watched processes.
    processes_cpu_s: Option<f64>,
    threads: Option<Threads>,
    throttling: Option<Throttling>,
    server_throttling: Option<Throttling>,
}

/// Reads the counters at the start and at the end of a measurement.
#[derive(Default)]
pub struct Probe<'a> {
    device: Option<Device>,
    /// With what the server stores on each.
    disks: Vec<(Device, Vec<String>)>,
    /// The counters of the database.
    pub database: Option<DatabaseProbe<'a>>,
    /// The counters of the cluster's nodes.
    pub cluster: Option<ClusterProbe>,
    /// Samples the counters over time.
    pub sampler: Option<&'a mut Sampler>,
    /// The queries of the user.
    pub queries: Option<&'a mut QueryProbe>,
    /// Profiles the server.
    pub perf: Option<&'a mut Perf>,
    /// Counts the instructions of the server.
    pub instructions: Option<&'a mut Instructions>,
    /// Backend processes of the sessions.
    processes: Vec<i32>,
    /// Whether the caller set the processes.
    processes_known: bool,
    server: Place,
    cgroup: Cgroup,
    /// Control group of a server on this machine.
    server_cgroup: Cgroup,
    /// Whether the processes of this machine are read.
    reads_processes: bool,
    /// Whether the sessions use a network interface other than loopback.
    pub uses_network: bool,
    /// I/O workers of the server.
    io_workers: Vec<i32>,
    start: Option<Sample>,
    end: Option<Sample>,
}

/// Activity on the machine during the measurement of a stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineUse {
    /// Length of the measurement, in seconds; 0 without a measurement.
    pub seconds: f64,
    /// Start of the measurement.
    pub started_at: Option<Timestamp>,
    /// CPU seconds of riops itself, user and system.
    pub client_cpu_s: Option<f64>,
    /// Share of all processors of this machine that was busy, 0 to 1.
    pub machine_busy_share: Option<f64>,
    /// Share of all processors that the hypervisor withheld, 0 to 1.
    pub steal_share: Option<f64>,
    /// Context switches of this machine.
    pub context_switches: Option<u64>,
    /// Threads of riops.
    pub threads: Option<ThreadsUse>,
    /// Share of the periods of the CPU quota in which riops's control group had to wait, 0 to 1.
    pub throttled_share: Option<f64>,
    /// The same for the control group of a server on this machine.
    pub server_throttled_share: Option<f64>,
    /// The server and its neighbors on this machine.
    pub processes: Option<ProcessesUse>,
    /// Device of the measured tables, for a local server.
    pub device: Option<DeviceUse>,
    /// Disks that the server uses, for a local server.
    pub disks: Vec<DiskUse>,
    /// Memory of this machine at the end.
    pub memory: Option<Memory>,
    /// Share of the time in which tasks on this machine had to wait.
    pub pressure: Option<Pressure>,
    /// Traffic of the network of this machine.
    pub network: Option<NetworkUse>,
    /// Bytes read by the backend processes of the sessions, if they run on this machine and are
    /// accessible.
    pub session_reads: Option<ReadBytes>,
    /// How the server reads blocks outside of the sessions' processes.
    pub async_io: Option<AsyncIo>,
    /// Bytes read by the I/O workers of the server, for all its sessions.
    pub io_worker_reads: Option<ReadBytes>,
    /// Counters of the database.
    pub database: Option<DatabaseUse>,
    /// Counters of the cluster's nodes, by node number.
    pub nodes: Vec<Option<NodeUse>>,
    /// CPU seconds of the server processes set by the caller, if they run on this machine.
    pub processes_cpu_s: Option<f64>,
    /// Counters over time, if sampled.
    pub sampled: Option<Sampled>,
    /// Values of the queries of the user.
    pub queries: Vec<QuerySeries>,
    /// The active session history of the nodes of a cluster, which the caller reads after the stage.
    pub activity: Vec<ActivityRecord>,
    /// CPU profile of the server.
    pub profile: Option<ProfileRecord>,
    /// Instructions of the server per second.
    pub instructions_per_s: Option<f64>,
}

impl Probe<'_> {
    /// Creates a probe of this machine and, if the server's data is local, of its device.
    pub fn machine(local_data: Option<&Path>) -> Self {
        let volume = local_data.and_then(|path| Topology::of_this_machine().volume(path));
        let device = volume.and_then(|volume| Device::of_blocks(volume.members));
        Self {
            device,
            cgroup: Cgroup::for_process("self"),
            reads_processes: true,
            ..Self::default()
        }
    }

    /// Creates a probe that does not read the processes of this machine: tests of the engine repeat a stage thousands of
    /// times, and would spend most of their time there.
    #[cfg(test)]
    pub(crate) fn without_processes() -> Self {
        Self { reads_processes: false, ..Self::machine(None) }
    }

    /// Sets the devices of the server, with their roles.
    pub fn with_devices(self, devices: &Devices) -> Self {
        let disk = |entry: &locations::RoleDisk| {
            Some((Device::of_blocks(vec![entry.disk.clone()])?, entry.roles.clone()))
        };
        let disks = devices.disks.iter().filter_map(disk).collect();
        Self { device: devices.of_tables().or(self.device), disks, ..self }
    }

    /// Sets where the server is, to separate its load from the load of its neighbors.
    pub fn with_server(self, server: Place) -> Self {
        let server_cgroup = server.first_process().map(Cgroup::for_process).unwrap_or_default();
        Self { server, server_cgroup, ..self }
    }

    /// Sets the server processes to watch instead of the processes of all sessions; empty if they are not on this
    /// machine.
    pub fn with_processes(self, processes: Vec<i32>) -> Self {
        Self { processes, processes_known: true, ..self }
    }

    /// Reads the counters before the sessions connect.
    pub fn open(&mut self) {
        (self.start, self.end) = (None, None);
        self.queries.iter_mut().for_each(|queries| queries.open());
        self.database.iter_mut().for_each(DatabaseProbe::open);
    }

    /// Reads the counters at the start of the measurement.
    pub fn start(&mut self) {
        // Only a known device shows that the server is local.
        match (&mut self.database, &self.device) {
            _ if self.processes_known => {}
            (Some(database), Some(_)) => {
                self.processes = database.processes();
                self.io_workers = database.io_workers();
            }
            _ => (self.processes, self.io_workers) = (Vec::new(), Vec::new()),
        }
        self.cluster.iter_mut().for_each(ClusterProbe::start);
        self.sampler.iter_mut().for_each(|sampler| sampler.start(self.device.clone()));
        self.queries.iter_mut().for_each(|queries| queries.start());
        self.database.iter_mut().for_each(DatabaseProbe::start);
        // After the other probes, and before them in `end`: excludes their work.
        self.start = Some(self.sample());
        // Last: perf may need a second on a busy machine, and would delay the counters.
        self.perf.iter_mut().for_each(|perf| perf.start());
        self.instructions.iter_mut().for_each(|count| count.start());
    }

    /// Returns whether a session can flush its pending statistics on request.
    pub fn can_flush(&self) -> bool {
        self.database.as_ref().is_some_and(|database| database.can_flush)
    }

    /// Reads the counters at the end of the measurement.
    pub fn end(&mut self) {
        let mut end = self.sample();
        if let (Some(database), false) = (&mut self.database, self.io_workers.is_empty())
            && database.io_workers() != self.io_workers
        {
            // The reads of workers that were started or stopped meanwhile are unknown.
            end.io_workers_io = None;
        }
        self.end = Some(end);
        self.sampler.iter_mut().for_each(|sampler| sampler.end());
        self.queries.iter_mut().for_each(|queries| queries.end());
        self.instructions.iter_mut().for_each(|count| count.end());
        self.perf.iter_mut().for_each(|perf| perf.end());
        self.cluster.iter_mut().for_each(ClusterProbe::end);
        self.database.iter_mut().for_each(DatabaseProbe::end);
    }

    /// Reads the counters after the sessions have disconnected; `processes` were their backends.
    pub fn close(&mut self, processes: &[i32]) {
        self.database.iter_mut().for_each(|database| database.await_counters(processes));
        self.queries.iter_mut().for_each(|queries| queries.close());
        self.cluster.iter_mut().for_each(ClusterProbe::close);
        self.sampler.iter_mut().for_each(|sampler| sampler.close());
        self.perf.iter_mut().for_each(|perf| perf.close());
        self.instructions.iter_mut().for_each(|count| count.close());
        self.database.iter_mut().for_each(DatabaseProbe::close);
    }

    fn sample(&self) -> Sample {
        // First, because at the end of the measurement the sessions are about to exit; then the table, because their I/O can no
        // longer be read when they do.
        let processes_io = ProcessesIo::read(&self.processes);
        let io_workers_io = ProcessesIo::read(&self.io_workers);
        let table = self.reads_processes.then(|| ProcessTable::read(self.server)).flatten();
        let cpu_s = || self.processes.iter().map(|&process| cpu::process_cpu_s(process)).sum();
        let is_watched = self.processes_known && !self.processes.is_empty();
        let processes_cpu_s: Option<f64> = if is_watched { cpu_s() } else { None };
        let network = || {
            let server = self.server.first_process();
            self.uses_network.then(|| NetworkTotals::read(server)).flatten()
        };
        let (at, time) = (Instant::now(), Timestamp::now());
        // Read once: the device of the tables and its disk have the same counters.
        let stats = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
        Sample {
            processes_io,
            io_workers_io,
            table,
            processes_cpu_s,
            at,
            time,
            device: self.device.as_ref().and_then(|device| device.counters(&stats)),
            disks: self.disks.iter().map(|(disk, _)| disk.counters(&stats)).collect(),
            process_cpu_s: cpu::process_seconds(),
            machine: MachineCpu::read(),
            pressure: PressureTotals::read(),
            network: network(),
            threads: Threads::read(),
            throttling: self.cgroup.throttling(),
            server_throttling: self.server_cgroup.throttling(),
        }
    }

    /// Returns the changes between start and end. Rates are relative to the time between the two
    /// readings, which may exceed the measurement if its end was detected late.
    pub fn usage(&self) -> MachineUse {
        let (Some(start), Some(end)) = (&self.start, &self.end) else {
            let database = self.database.as_ref().map(DatabaseProbe::usage);
            return MachineUse { database, ..MachineUse::default() };
        };
        let seconds = end.at.duration_since(start.at).as_secs_f64().max(f64::MIN_POSITIVE);
        let machine =
            |share: fn(MachineCpu, MachineCpu) -> Option<f64>| share(end.machine?, start.machine?);
        let device = || {
            let change = end.device.as_ref()?.since(start.device.as_ref()?);
            Some(self.device.as_ref()?.usage(&change, seconds))
        };
        let disks = self.disks.iter().zip(start.disks.iter().zip(&end.disks));
        let disks = disks.filter_map(|((disk, roles), (start, end))| {
            let change = end.as_ref()?.since(start.as_ref()?);
            Some(DiskUse { roles: roles.clone(), usage: disk.usage(&change, seconds) })
        });
        let bytes = |pick: fn(&Sample) -> Option<&ProcessesIo>| pick(end)?.since(pick(start)?);
        let throttled =
            |pick: fn(&Sample) -> Option<Throttling>| pick(end)?.share_since(pick(start)?);
        let processes = || {
            let client = i32::try_from(std::process::id()).ok()?;
            end.table.as_ref()?.since(start.table.as_ref()?, (client, self.server))
        };
        let context_switches = || end.machine?.switches_since(start.machine?);
        let threads = || Some(end.threads.as_ref()?.since(start.threads.as_ref()?, seconds));
        let pressure = || Some(end.pressure?.share_since(start.pressure?, seconds));
        let network = || Some(end.network?.since(start.network?, seconds));
        let processes_cpu_s = || Some(end.processes_cpu_s? - start.processes_cpu_s?);
        MachineUse {
            seconds,
            started_at: Some(start.time),
            client_cpu_s: Some(end.process_cpu_s - start.process_cpu_s),
            machine_busy_share: machine(MachineCpu::busy_share_since),
            steal_share: machine(MachineCpu::steal_share_since),
            context_switches: context_switches(),
            threads: threads(),
            throttled_share: throttled(|sample| sample.throttling),
            server_throttled_share: throttled(|sample| sample.server_throttling),
            processes: processes(),
            device: device(),
            disks: disks.collect(),
            memory: crate::probe::memory::memory(),
            pressure: pressure(),
            network: network(),
            session_reads: bytes(|sample| sample.processes_io.as_ref()),
            async_io: self.database.as_ref().and_then(|database| database.async_io),
            io_worker_reads: bytes(|sample| sample.io_workers_io.as_ref()),
            database: self.database.as_ref().map(DatabaseProbe::usage),
            nodes: self.cluster.as_ref().map_or_else(Vec::new, |cluster| cluster.node_uses.clone()),
            processes_cpu_s: processes_cpu_s(),
            sampled: self.sampler.as_ref().map(|sampler| sampler.seen().clone()),
            activity: Vec::new(),
            profile: self.perf.as_ref().and_then(|perf| perf.profile.clone()),
            instructions_per_s: self.instructions.as_ref().and_then(|count| count.per_s),
            queries: self.queries.as_ref().map_or_else(Vec::new, |probe| probe.series.clone()),
        }
    }
}
