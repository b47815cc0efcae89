//! Conclusions drawn from a record, independent of the output form.

use super::paths::CheckedPath;
use crate::plan::{Protocol, Schedule, Spread, Stop};
use crate::record::{DeviceUse, DiskLimit, RateVerdict, Record, StageRecord, Status};

/// From this share on, a resource counts as fully used.
const FULL_SHARE: f64 = 0.9;

/// From this share of its measured maximum on, a device counts as fully used. Lower than for CPU, because the
/// maximum is that of another mix of requests.
const DEVICE_SHARE: f64 = 0.8;

/// From this share of the session time on, locks are the bottleneck.
const LOCKED_SHARE: f64 = 0.5;

/// What limited the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// riops itself.
    Client,
    /// Locks that the sessions held.
    Locks,
    /// The processors that server and client share.
    SharedCpu,
    /// The device of the server's data, at its measured maximum.
    Device,
    /// Unknown: the device was busy, and its maximum was not measured. A device that is always busy may be far
    /// from its maximum, because it serves many requests at once.
    BusyDevice,
    /// None: the requested rate was achieved.
    Rate,
    /// None found: the sessions waited for replies.
    Waiting,
    /// Not the client. The server is on another machine, which is not observed.
    ServerOrNetwork,
}

/// A device of the server and its load.
#[derive(Debug, Clone, Copy)]
pub struct DeviceLoad<'a> {
    /// Its rates.
    pub usage: &'a DeviceUse,
    /// What the server stores on it.
    pub roles: &'a [String],
    /// Load as a share of its measured maximum; absent if that was not measured.
    pub load: Option<f64>,
}

/// A stage of a record, with the conclusions drawn from it.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    /// The record.
    pub record: &'a Record,
    /// The stage.
    pub stage: &'a StageRecord,
}

impl<'a> Summary<'a> {
    /// Returns the first stage; `None` for a record without one.
    #[must_use]
    pub fn of(record: &'a Record) -> Option<Self> {
        Self::of_each(record).into_iter().next()
    }

    /// Returns all stages.
    #[must_use]
    pub fn of_each(record: &'a Record) -> Vec<Self> {
        record.stages.iter().map(|stage| Self { record, stage }).collect()
    }

    /// Server and database in one line.
    #[must_use]
    pub fn target(&self) -> String {
        let target = &self.record.target;
        // An imported run may not know its server.
        if target.server_version.is_empty() {
            return "unknown server".to_owned();
        }
        if self.record.imported.is_some() && target.address.is_empty() {
            return format!("{} {}", target.flavor, target.server_version);
        }
        let (flavor, version, database) =
            (&target.flavor, &target.server_version, &target.database);
        // The address of the embedded server is a long path that the user does not need.
        if target.embedded {
            format!("{flavor} {version} (embedded), database {database}")
        } else {
            format!("{flavor} {version}, database {database} on {}", target.address)
        }
    }

    /// Sessions, workers and duration.
    #[must_use]
    pub fn setup(&self) -> String {
        let plan = &self.record.plan;
        let stop = match plan.stop {
            Stop::DurationS(_) if self.record.stages.len() > 1 => {
                format!("{:.1} s per stage", self.stage.seconds)
            }
            Stop::DurationS(_) => format!("{:.1} s", self.stage.seconds),
            Stop::Transactions(count) => format!(
                "{} of {} transactions in {:.3} s",
                super::count(self.stage.transactions),
                super::count(count),
                self.stage.seconds
            ),
            Stop::Rows(count) if self.record.stages.len() > 1 => {
                format!("{} rows per stage", super::count(count))
            }
            Stop::Rows(count) => format!(
                "{} of {} rows in {:.3} s",
                super::count(self.stage.rows),
                super::count(count),
                self.stage.seconds
            ),
        };
        let driven = if self.stage.kind == "server_loop" && plan.work.stages().len() == 1 {
            ", one call of the server loop each".to_owned()
        } else {
            format!(" on {} worker{}", plan.workers, if plan.workers == 1 { "" } else { "s" })
        };
        format!(
            "{} session{}{driven}, {stop}",
            plan.sessions,
            if plan.sessions == 1 { "" } else { "s" },
        )
    }

    /// The settings of the session loop that are not the default.
    #[must_use]
    pub fn drive(&self) -> Option<String> {
        let plan = &self.record.plan;
        let mut parts = Vec::new();
        match plan.schedule {
            Schedule::Closed => {}
            Schedule::Constant { per_s } => {
                parts.push(format!("constant rate of {} transactions/s", super::rate(per_s)));
            }
            Schedule::Poisson { per_s } => {
                parts.push(format!("Poisson rate of {} transactions/s", super::rate(per_s)));
            }
        }
        if plan.protocol != Protocol::Prepared {
            parts.push(format!("{} protocol", plan.protocol.as_str()));
        }
        if plan.pipeline > 1 {
            parts.push(format!("up to {} transactions in flight per session", plan.pipeline));
        }
        if let Some(every) = plan.reconnect_every {
            parts.push(format!("a new connection every {every} transactions"));
        }
        if let Some(nodes) = plan.nodes {
            let s = if nodes == 1 { "" } else { "s" };
            parts.push(format!("only the first {nodes} node{s}"));
        }
        if plan.spread != Spread::default() || plan.rebalance {
            let back = if plan.rebalance { ", sessions return to recovered nodes" } else { "" };
            parts.push(format!("spread {}{back}", plan.spread));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Each expected access path once, as `name` shows it.
    #[must_use]
    pub fn access_paths(&self, name: impl Fn(&str) -> String) -> Vec<CheckedPath<'a>> {
        CheckedPath::of(&self.record.accesses, name)
    }

    /// The bottleneck of the stage.
    #[must_use]
    pub fn bottleneck(&self) -> Bottleneck {
        let (stage, devices) = (self.stage, self.devices());
        let shared = self.record.client.shares_machine_with_server;
        let full = |share: Option<f64>| share.is_some_and(|share| share >= FULL_SHARE);
        if stage.client_cpu.as_ref().is_some_and(|cpu| cpu.limited) {
            Bottleneck::Client
        } else if self.lock_share().is_some_and(|share| share >= LOCKED_SHARE) {
            Bottleneck::Locks
        } else if shared && full(stage.machine_busy_share) {
            Bottleneck::SharedCpu
        } else if devices.iter().any(|device| device.load.is_some_and(|load| load >= DEVICE_SHARE))
        {
            Bottleneck::Device
        } else if stage.rate_verdict() == Some(RateVerdict::Reached) {
            Bottleneck::Rate
        } else if devices
            .iter()
            .any(|device| device.load.is_none() && full(Some(device.usage.busy_share)))
        {
            Bottleneck::BusyDevice
        } else if shared {
            Bottleneck::Waiting
        } else {
            Bottleneck::ServerOrNetwork
        }
    }

    /// Whether the bottleneck is of interest: not after a failure, which ended the stage before a limit was
    /// reached, or without a transaction.
    #[must_use]
    pub fn has_bottleneck(&self) -> bool {
        let is_last = self.record.stages.last().is_some_and(|last| std::ptr::eq(last, self.stage));
        let has_failed = self.record.status == Status::Failed && is_last;
        let is_measured = self.record.imported.is_none();
        is_measured
            && self.stage.transactions > 0
            && !has_failed
            && !self.stage.ended_in_an_outage()
    }

    /// The devices of the server with their load; only that of the data in records of earlier releases.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceLoad<'a>> {
        let Some(io) = &self.stage.io else {
            return Vec::new();
        };
        let target = &self.record.target;
        let load = |usage: &DeviceUse, limit: Option<&DiskLimit>| {
            limit.filter(|limit| limit.device == usage.name).map(|limit| device_load(usage, limit))
        };
        if io.devices.is_empty() {
            let of_data = io.device.iter();
            let limit = target.disk_limit.as_ref();
            return of_data
                .map(|usage| DeviceLoad { usage, roles: &[], load: load(usage, limit) })
                .collect();
        }
        io.devices
            .iter()
            .map(|disk| {
                let known = target.devices.iter().find(|known| known.name == disk.usage.name);
                let limit = known.and_then(|known| known.disk_limit.as_ref());
                DeviceLoad {
                    usage: &disk.usage,
                    roles: &disk.roles,
                    load: load(&disk.usage, limit),
                }
            })
            .collect()
    }

    /// Share of the session time spent waiting for locks, 0 to 1, if it was sampled.
    #[must_use]
    pub fn lock_share(&self) -> Option<f64> {
        let waits = self.stage.session_loop.lock_waits?;
        let samples = waits.samples as f64 * f64::from(self.stage.sessions);
        (samples > 0.0).then(|| waits.waiting as f64 / samples)
    }

    /// Share of all processors of the client's machine that riops used, 0 to 1.
    #[must_use]
    pub fn client_machine_share(&self) -> Option<f64> {
        self.machine_share(self.stage.client_cpu.as_ref()?.seconds)
    }

    /// Share of all processors of the client's machine that the server used, 0 to 1.
    #[must_use]
    pub fn server_machine_share(&self) -> Option<f64> {
        self.machine_share(self.stage.server_cpu_s?)
    }

    fn machine_share(&self, cpu_s: f64) -> Option<f64> {
        // The CPU time is that between the readings of the counters.
        let seconds = self.stage.counters_s.unwrap_or(self.stage.seconds);
        let available_s = seconds * self.record.client.machine.counted_cpus() as f64;
        (available_s > 0.0).then(|| cpu_s / available_s)
    }

    /// Number of errors of all kinds.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.stage.session_loop.errors.iter().map(|error| error.count).sum()
    }
}

/// Number and model of the CPUs; with both numbers if riops may not use all of the machine.
pub(super) fn cpu_text(record: &Record) -> String {
    let machine = &record.client.machine;
    if machine.cpus == 0 {
        return "unknown".to_owned();
    }
    let model = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    match machine.machine_cpus.filter(|&all| all > machine.cpus) {
        Some(all) => format!("{} of {all} × {model}", machine.cpus),
        None => format!("{} × {model}", machine.cpus),
    }
}

/// Load of a device as a share of its maximum: of requests or of bytes per second, whichever is closer.
/// Shares of reads and of writes add up, because the device has to serve both.
fn device_load(device: &DeviceUse, limit: &DiskLimit) -> f64 {
    let share = |rate: f64, most: f64| if most > 0.0 { rate / most } else { 0.0 };
    let requests = share(device.reads_per_s, limit.random_read.requests_per_s)
        + share(device.writes_per_s, limit.random_write.requests_per_s);
    let bytes = share(device.read_mb_s, limit.sequential_read.mb_s)
        + share(device.write_mb_s, limit.sequential_write.mb_s);
    requests.max(bytes)
}

/// Use of the device of the server's data, if it was observed.
pub(super) fn device(stage: &StageRecord) -> Option<&DeviceUse> {
    stage.io.as_ref()?.device.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DiskRate, ScheduleRecord};
    use crate::report::example_record;

    fn bottleneck_with(change: impl Fn(&mut Record)) -> Bottleneck {
        let mut record = example_record();
        change(&mut record);
        Summary::of(&record).unwrap().bottleneck()
    }

    #[test]
    fn the_bottleneck_is_the_first_resource_that_is_fully_used() {
        let idle = |record: &mut Record| record.stages[0].machine_busy_share = Some(0.5);
        assert_eq!(bottleneck_with(|_| {}), Bottleneck::SharedCpu);
        assert_eq!(bottleneck_with(idle), Bottleneck::Waiting);
        assert_eq!(
            bottleneck_with(|record| record.stages[0].client_cpu.as_mut().unwrap().limited = true),
            Bottleneck::Client
        );
        let with_rate = |waiting: u64| {
            bottleneck_with(move |record| {
                idle(record);
                let intended = 12_000;
                record.stages[0].session_loop.schedule = Some(ScheduleRecord {
                    lag_max_us: None,
                    intended,
                    sent: intended - waiting,
                    skipped: 0,
                    waiting,
                    oldest_wait_us: 0.0,
                    backlog_at_start: 0,
                    start_lag_us: None,
                });
            })
        };
        assert_eq!((with_rate(0), with_rate(9)), (Bottleneck::Rate, Bottleneck::Waiting));
        assert_eq!(
            bottleneck_with(|record| record.client.shares_machine_with_server = false),
            Bottleneck::ServerOrNetwork
        );
    }

    #[test]
    fn a_busy_device_is_the_bottleneck_only_near_its_measured_maximum() {
        let rate = |requests_per_s: f64, mb_s: f64| DiskRate {
            mb_s,
            requests_per_s,
            p99_us: None,
            jobs: None,
        };
        let limit = DiskLimit {
            device: "vda".to_owned(),
            identity: None,
            measured_at: jiff::Timestamp::UNIX_EPOCH,
            tool: "fio-3.39".to_owned(),
            file_bytes: 1,
            seconds: 1.0,
            sequential_read: rate(2_000.0, 2_000.0),
            sequential_write: rate(1_000.0, 1_000.0),
            random_read: rate(100_000.0, 800.0),
            random_write: rate(50_000.0, 400.0),
        };
        let found = |reads_per_s: f64, limit: Option<DiskLimit>| {
            bottleneck_with(move |record| {
                record.stages[0].machine_busy_share = Some(0.5);
                let device = record.stages[0].io.as_mut().unwrap().device.as_mut().unwrap();
                (device.busy_share, device.reads_per_s) = (1.0, reads_per_s);
                (device.writes_per_s, device.read_mb_s) = (10_000.0, reads_per_s * 0.008);
                record.target.disk_limit = limit.clone();
            })
        };
        // 8 sessions keep a device busy at a fifth of its maximum.
        assert_eq!(found(20_000.0, Some(limit.clone())), Bottleneck::Waiting);
        assert_eq!(found(60_000.0, Some(limit.clone())), Bottleneck::Device);
        assert_eq!(found(20_000.0, None), Bottleneck::BusyDevice);
        let other = DiskLimit { device: "vdb".to_owned(), ..limit };
        assert_eq!(found(60_000.0, Some(other)), Bottleneck::BusyDevice);
    }

    #[test]
    fn a_failed_stage_has_no_bottleneck() {
        let mut record = example_record();
        assert!(Summary::of(&record).unwrap().has_bottleneck());
        record.status = Status::Failed;
        assert!(!Summary::of(&record).unwrap().has_bottleneck());
        // The stages before the failed one have.
        record.stages.push(record.stages[0].clone());
        assert!(Summary::of(&record).unwrap().has_bottleneck());
    }

    #[test]
    fn an_access_path_that_changed_once_is_not_as_expected() {
        let mut record = example_record();
        record.accesses[1].held = false;
        let summary = Summary::of(&record).unwrap();
        let paths = summary.access_paths(str::to_owned);
        assert_eq!((paths.len(), paths[0].verdict()), (1, "CHANGED"));
        assert_eq!(paths[0].checked(), "checked before, during and after the run");
    }
}
