//! A stage of a record, with the shares of machine and devices that its counters show.

use crate::plan::{Protocol, Spread, Stop};
use crate::record::{
    DeviceUse, DiskLimit, Record, StageKind, StageRecord, THROTTLED_SHARE, WaitShare,
};
use crate::units::format::{count, joined, number_of, rate};

/// With fewer samples of all sessions together, a share of the session time in percent means nothing.
const WAIT_SAMPLES_MIN: f64 = 20.0;

/// From this share of its measured maximum on, a device counts as fully used. The share is lower than for CPU,
/// because the maximum was measured with another mix of requests.
pub(super) const DEVICE_SHARE: f64 = 0.8;

/// A device of the server and its load.
#[derive(Debug, Clone, Copy)]
pub struct DeviceLoad<'a> {
    /// Its rates.
    pub usage: &'a DeviceUse,
    /// Kinds of data that the server stores on it.
    pub roles: &'a [String],
    /// Load as a share of its measured maximum; absent if that was not measured.
    pub load: Option<f64>,
    /// Its largest rate as a share of the measured maximum of this rate: of reads or of writes, of requests or of bytes; absent as `load`.
    pub highest_rate: Option<f64>,
    /// Synchronizations of the WAL per second, if it is on this device, and as a share of their measured maximum.
    pub wal_syncs: Option<(f64, Option<f64>)>,
}

impl DeviceLoad<'_> {
    /// Returns the higher one of its loads as shares of measured maxima; 0 if none was measured.
    pub fn highest_load(&self) -> f64 {
        let syncs = self.wal_syncs.and_then(|(_, load)| load).unwrap_or_default();
        self.load.unwrap_or_default().max(syncs)
    }
}

/// A stage of a record, with the conclusions drawn from it.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    /// The record.
    pub record: &'a Record,
    /// The stage.
    pub stage: &'a StageRecord,
}

impl Summary<'_> {
    /// Server and database in one line.
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
    pub fn setup(&self) -> String {
        let plan = &self.record.plan;
        let part = |done, all, noun| {
            format!("{} of {} {noun} in {:.3} s", count(done), count(all), self.stage.seconds)
        };
        let stop = match plan.stop {
            Stop::DurationS(_) if self.record.stages.len() > 1 => {
                format!("{:.1} s per stage", self.stage.seconds)
            }
            Stop::DurationS(_) => format!("{:.1} s", self.stage.seconds),
            Stop::Transactions(transactions) => {
                part(self.stage.transactions, transactions, "transactions")
            }
            Stop::Rows(rows) if self.record.stages.len() > 1 => {
                format!("{} rows per stage", count(rows))
            }
            Stop::Rows(rows) => part(self.stage.rows, rows, "rows"),
        };
        let driven = if self.stage.kind == StageKind::ServerLoop && plan.work.stages().len() == 1 {
            ", one call of the server loop each".to_owned()
        } else {
            format!(" on {}", number_of(plan.workers.into(), "worker"))
        };
        format!("{}{driven}, {stop}", number_of(plan.sessions.into(), "session"))
    }

    /// The settings of the session loop that are not the default.
    pub fn drive(&self) -> Option<String> {
        let plan = &self.record.plan;
        let mut parts = Vec::new();
        if let Some(per_s) = plan.schedule.per_s() {
            let kind = if plan.schedule.is_poisson() { "Poisson" } else { "constant" };
            let steps = plan.schedule.steps();
            parts.push(if steps.is_empty() {
                format!("{kind} rate of {} transactions/s", rate(per_s))
            } else {
                let poisson = if kind == "Poisson" { "Poisson " } else { "" };
                format!(
                    "{poisson}rate of {}: {} transactions/s on average",
                    joined(steps, ", "),
                    rate(per_s)
                )
            });
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
            parts.push(format!("only the first {}", number_of(nodes.into(), "node")));
        }
        if plan.spread != Spread::default() || plan.rebalance {
            let back = if plan.rebalance { ", sessions return to recovered nodes" } else { "" };
            parts.push(format!("spread {}{back}", plan.spread));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl<'a> Summary<'a> {
    /// Returns the first stage; `None` for a record without one.
    pub fn first_stage(record: &'a Record) -> Option<Self> {
        Self::of_each(record).into_iter().next()
    }

    /// Returns all stages.
    pub fn of_each(record: &'a Record) -> Vec<Self> {
        record.stages.iter().map(|stage| Self { record, stage }).collect()
    }

    /// How long the stage must be for enough samples of the wait events of its sessions, in seconds; `None` if it has
    /// enough of them, or none.
    pub fn seconds_for_samples(&self) -> Option<f64> {
        let probes = self.stage.probes.as_ref().filter(|probes| !probes.waits.is_empty())?;
        let samples = probes.looks as f64 * f64::from(self.stage.sessions);
        (samples > 0.0 && samples < WAIT_SAMPLES_MIN)
            .then(|| self.stage.seconds * WAIT_SAMPLES_MIN / samples)
    }

    /// The sampled wait events of the sessions, the most frequent first; `None` with too few samples.
    pub fn waits(&self) -> Option<&'a [WaitShare]> {
        let probes = self.stage.probes.as_ref().filter(|probes| !probes.waits.is_empty())?;
        let samples = probes.looks as f64 * f64::from(self.stage.sessions);
        (samples >= WAIT_SAMPLES_MIN).then_some(&probes.waits)
    }

    /// Waits of the server's processes for anything but locks and their client: their share of the session
    /// time, 0 to 1, and the events.
    pub fn server_waits(&self) -> Option<(f64, Vec<&'a WaitShare>)> {
        let of_server = |wait: &&WaitShare| wait.is_of_server() && !wait.event.starts_with("Lock:");
        let events: Vec<_> = self.waits()?.iter().filter(of_server).collect();
        Some((events.iter().map(|wait| wait.share).sum(), events))
    }

    /// The devices of the server with their load. Records of earlier releases have only the device of the data.
    pub fn devices(&self) -> Vec<DeviceLoad<'a>> {
        let Some(io) = &self.stage.io else {
            return Vec::new();
        };
        let target = &self.record.target;
        let syncs_per_s = self.stage.database.as_ref().and_then(|counted| counted.wal_syncs_per_s);
        let device = |usage: &'a DeviceUse, roles: &'a [String], limit: Option<&DiskLimit>| {
            let limit = limit.filter(|limit| limit.device == usage.name);
            let has_wal = roles.iter().any(|role| role == "wal");
            let most = limit.and_then(|limit| Some(limit.synchronized_write?.requests_per_s));
            let shares = limit.map(|limit| rate_shares(usage, limit));
            DeviceLoad {
                usage,
                roles,
                // The device has to serve both reads and writes.
                load: shares.map(|shares| {
                    shares.map(|[reads, writes]| reads + writes).into_iter().fold(0.0, f64::max)
                }),
                highest_rate: shares.map(|shares| {
                    let [requests, bytes] =
                        shares.map(|of_both| of_both.into_iter().fold(0.0, f64::max));
                    // More small sequential requests than random ones are possible, up to the maximum of bytes.
                    if bytes >= DEVICE_SHARE { bytes } else { bytes.max(requests) }
                }),
                wal_syncs: syncs_per_s
                    .filter(|_| has_wal)
                    .map(|per_s| (per_s, most.map(|most| per_s / most.max(f64::MIN_POSITIVE)))),
            }
        };
        if io.devices.is_empty() {
            let limit = target.disk_limit.as_ref();
            return io.device.iter().map(|usage| device(usage, &[], limit)).collect();
        }
        io.devices
            .iter()
            .map(|disk| {
                let known = target.devices.iter().find(|known| known.name == disk.usage.name);
                device(&disk.usage, &disk.roles, known.and_then(|known| known.disk_limit.as_ref()))
            })
            .collect()
    }

    /// Share of all processors of the client's machine that riops used, 0 to 1.
    pub fn client_machine_share(&self) -> Option<f64> {
        self.machine_share(self.stage.client_cpu.as_ref()?.seconds)
    }

    /// Share of all processors of the client's machine that an observed command used, 0 to 1.
    pub fn command_machine_share(&self) -> Option<f64> {
        self.machine_share(self.stage.observed.as_ref()?.command_cpu_s?)
    }

    /// Share of all processors of the client's machine that neither riops nor the server used, 0 to 1.
    pub fn foreign_machine_share(&self) -> Option<f64> {
        let neighbors = self.stage.neighbors.as_ref()?;
        Some(neighbors.all_cpu_share()? + neighbors.steal_share.unwrap_or_default())
    }

    /// Share of all processors of the client's machine that the server used, 0 to 1.
    pub fn server_machine_share(&self) -> Option<f64> {
        self.machine_share(self.stage.server_cpu_s?)
    }

    /// Whether the CPU quota of the server was exhausted.
    pub fn is_server_throttled(&self) -> bool {
        self.stage.server_throttled_share.is_some_and(|share| share >= THROTTLED_SHARE)
    }

    /// Share of the processors that the server may use and used, 0 to 1; `None` if it may use all of the machine.
    pub fn server_cpus_share(&self) -> Option<f64> {
        let allowed = self.record.target.limits.as_ref()?.cpus as f64;
        let machine = self.record.client.machine.counted_cpus() as f64;
        (allowed < machine).then(|| Some(self.server_machine_share()? * machine / allowed))?
    }

    fn machine_share(&self, cpu_s: f64) -> Option<f64> {
        // The CPU time covers the time between the readings of the counters.
        let seconds = self.stage.counters_s.unwrap_or(self.stage.seconds);
        let available_s = seconds * self.record.client.machine.counted_cpus() as f64;
        (available_s > 0.0).then(|| cpu_s / available_s)
    }
}

/// Returns the reads and the writes of a device as shares of their maxima: requests, then bytes per second.
fn rate_shares(device: &DeviceUse, limit: &DiskLimit) -> [[f64; 2]; 2] {
    let share = |rate: f64, most: f64| if most > 0.0 { rate / most } else { 0.0 };
    let requests = [
        share(device.reads_per_s, limit.random_read.requests_per_s),
        share(device.writes_per_s, limit.random_write.requests_per_s),
    ];
    let bytes = [
        share(device.read_mb_s, limit.sequential_read.mb_s),
        share(device.write_mb_s, limit.sequential_write.mb_s),
    ];
    [requests, bytes]
}

/// Use of the device of the server's data, if it was observed.
pub fn device(stage: &StageRecord) -> Option<&DeviceUse> {
    stage.io.as_ref()?.device.as_ref()
}
