//! Counters around a stage: what client, machine, device and database did while it ran.
//!
//! Reads counters and decides nothing; `caches` alone changes something, before a stage. What cannot
//! be read is absent.

pub mod caches;
pub mod cpu;
pub mod database;
pub mod device;
pub mod disk;
pub mod memory;
pub mod process;
mod sampled;
pub mod sampler;
pub mod storage;
pub mod waits;
pub mod yugabytedb;

use std::path::Path;
use std::time::Instant;

use jiff::Timestamp;

pub use device::DeviceUse;

use cpu::MachineCpu;
use database::{DatabaseProbe, DatabaseUse};
use device::{Device, DeviceCounters};
use memory::{Memory, Pressure, Waits};
use process::{Accounts, ReadBytes};
use sampler::{Sampled, Sampler};
use waits::{LockSampler, LockWaits};
use yugabytedb::{ClusterProbe, NodeUse};

/// All counters at one moment.
#[derive(Debug, Clone)]
struct Sample {
    at: Instant,
    time: Timestamp,
    process_cpu_s: Option<f64>,
    machine: Option<MachineCpu>,
    device: Option<DeviceCounters>,
    waits: Option<Waits>,
    sessions: Option<Accounts>,
    /// CPU seconds of the processes that are watched.
    processes_cpu_s: Option<f64>,
}

/// Reads the counters at the start and at the end of a measurement.
#[derive(Debug)]
pub struct Probe<'a> {
    device: Option<Device>,
    database: Option<DatabaseProbe<'a>>,
    locks: Option<LockSampler>,
    cluster: Option<ClusterProbe>,
    sampler: Option<&'a mut Sampler>,
    /// The server's processes of the sessions.
    processes: Vec<i32>,
    /// Whether these were named beforehand.
    processes_known: bool,
    start: Option<Sample>,
    end: Option<Sample>,
}

/// What happened on the machine while a stage was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineUse {
    /// The time over which it was counted; 0 where nothing was.
    pub seconds: f64,
    /// When that began.
    pub started_at: Option<Timestamp>,
    /// CPU seconds of riops itself, user and system.
    pub client_cpu_s: Option<f64>,
    /// Share of all processors of this machine that was busy, 0 to 1.
    pub machine_busy_share: Option<f64>,
    /// The device of the server's data, where the server is local.
    pub device: Option<DeviceUse>,
    /// Memory of this machine at the end.
    pub memory: Option<Memory>,
    /// How much of the time something on this machine had to wait.
    pub pressure: Option<Pressure>,
    /// What the server's processes of the sessions have read, where they run on this machine and may
    /// be looked at.
    pub session_reads: Option<ReadBytes>,
    /// What the database counted.
    pub database: Option<DatabaseUse>,
    /// How many sessions waited for locks.
    pub lock_waits: Option<LockWaits>,
    /// What the nodes of a cluster tell of themselves, by their numbers.
    pub nodes: Vec<Option<NodeUse>>,
    /// CPU seconds of the server's processes that were named, where they are here.
    pub processes_cpu_s: Option<f64>,
    /// The counters over time, where somebody looked.
    pub sampled: Option<Sampled>,
}

impl<'a> Probe<'a> {
    /// Watches this machine and, where the server's data lie on it, their device.
    #[must_use]
    pub fn machine(local_data: Option<&Path>) -> Self {
        let device = local_data.and_then(Device::of_path);
        Self {
            device,
            database: None,
            locks: None,
            cluster: None,
            sampler: None,
            processes: Vec::new(),
            processes_known: false,
            start: None,
            end: None,
        }
    }

    /// Watches how many sessions wait for locks too.
    #[must_use]
    pub fn with_locks(self, locks: Option<LockSampler>) -> Self {
        Self { locks, ..self }
    }

    /// Asks the nodes of a cluster too.
    #[must_use]
    pub fn with_cluster(self, cluster: Option<ClusterProbe>) -> Self {
        Self { cluster, ..self }
    }

    /// Watches the counters over time too.
    #[must_use]
    pub fn with_sampler(self, sampler: &'a mut Sampler) -> Self {
        Self { sampler: Some(sampler), ..self }
    }

    /// The server's processes that are to be watched, instead of those of all sessions: none where they
    /// are not on this machine.
    #[must_use]
    pub fn with_processes(self, processes: Vec<i32>) -> Self {
        Self { processes, processes_known: true, ..self }
    }

    /// Watches the database too.
    #[must_use]
    pub fn with_database(self, database: DatabaseProbe<'a>) -> Self {
        Self { database: Some(database), ..self }
    }

    /// The sessions are about to connect.
    pub fn open(&mut self) {
        (self.start, self.end) = (None, None);
        if let Some(database) = &mut self.database {
            database.open();
        }
    }

    /// Counting starts.
    pub fn start(&mut self) {
        // Only where the device is known is the server known to be here.
        match (&mut self.database, &self.device) {
            _ if self.processes_known => {}
            (Some(database), Some(_)) => self.processes = database.processes(),
            _ => self.processes = Vec::new(),
        }
        if let Some(locks) = &mut self.locks {
            locks.start();
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.start();
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.start(self.device.clone());
        }
        if let Some(database) = &mut self.database {
            database.start();
        }
        // Last, as it comes first at the end: what the probes do themselves is not in between.
        self.start = Some(self.sample());
    }

    /// Whether a session of the server can hand in its counters when it is asked to.
    #[must_use]
    pub fn can_flush(&self) -> bool {
        self.database.as_ref().is_some_and(DatabaseProbe::can_flush)
    }

    /// Counting ends.
    pub fn end(&mut self) {
        self.end = Some(self.sample());
        if let Some(sampler) = &mut self.sampler {
            sampler.end();
        }
        if let Some(locks) = &mut self.locks {
            locks.end();
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.end();
        }
        if let Some(database) = &mut self.database {
            database.end();
        }
    }

    /// The sessions have said goodbye; these were their processes on the server.
    pub fn close(&mut self, processes: &[i32]) {
        if let Some(locks) = &mut self.locks {
            locks.close();
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.close();
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.close();
        }
        if let Some(database) = &mut self.database {
            database.close(processes);
        }
    }

    fn sample(&self) -> Sample {
        Sample {
            // First: at the end the sessions are about to go.
            sessions: Accounts::read(&self.processes),
            processes_cpu_s: self.named_processes_cpu_s(),
            at: Instant::now(),
            time: Timestamp::now(),
            process_cpu_s: cpu::process_seconds(),
            machine: MachineCpu::read(),
            device: self.device.as_ref().and_then(Device::read),
            waits: Waits::read(),
        }
    }

    fn named_processes_cpu_s(&self) -> Option<f64> {
        if !self.processes_known || self.processes.is_empty() {
            return None;
        }
        self.processes.iter().map(|&process| cpu::process_cpu_s(process)).sum()
    }

    /// What happened in between. Rates are over the time between the counters themselves, which may be
    /// longer than the measurement where that is known to have ended only later.
    #[must_use]
    pub fn usage(&self) -> MachineUse {
        let (Some(start), Some(end)) = (&self.start, &self.end) else {
            let database = self.database.as_ref().map(DatabaseProbe::usage);
            return MachineUse { database, ..MachineUse::default() };
        };
        let seconds = end.at.duration_since(start.at).as_secs_f64().max(f64::MIN_POSITIVE);
        let both = |pick: fn(&Sample) -> Option<f64>| Some((pick(start)?, pick(end)?));
        let device = || {
            let change = end.device?.since(start.device?);
            Some(self.device.as_ref()?.usage(change, seconds))
        };
        MachineUse {
            seconds,
            started_at: Some(start.time),
            client_cpu_s: both(|sample| sample.process_cpu_s).map(|(start, end)| end - start),
            machine_busy_share: start
                .machine
                .zip(end.machine)
                .and_then(|(start, end)| end.busy_share_since(start)),
            device: device(),
            memory: Memory::read(),
            pressure: start
                .waits
                .zip(end.waits)
                .map(|(start, end)| end.share_since(start, seconds)),
            session_reads: start
                .sessions
                .as_ref()
                .zip(end.sessions.as_ref())
                .and_then(|(start, end)| end.since(start)),
            database: self.database.as_ref().map(DatabaseProbe::usage),
            lock_waits: self.locks.as_ref().and_then(LockSampler::seen),
            nodes: self.cluster.as_ref().map_or_else(Vec::new, |cluster| cluster.found().to_vec()),
            processes_cpu_s: both(|sample| sample.processes_cpu_s).map(|(start, end)| end - start),
            sampled: self.sampler.as_ref().map(|sampler| sampler.seen().clone()),
        }
    }
}
