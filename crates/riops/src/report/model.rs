//! What a report says, before it has a form: the judgements that are made from a record's numbers.

use crate::plan::{Protocol, Schedule, Spread, Stop};
use crate::record::{DeviceUse, Record, StageRecord};

/// From here on a resource counts as used up.
const FULL_SHARE: f64 = 0.9;

/// From here on waiting for locks is what most of the time went into.
const LOCKED_SHARE: f64 = 0.5;

/// What kept the figure from being higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// riops itself.
    Client,
    /// The sessions waited for locks of each other.
    Locks,
    /// The processors that server and client share.
    SharedCpu,
    /// The device of the server's data.
    Device,
    /// The rate that was asked for, which was kept.
    Rate,
    /// Nothing that was seen: the sessions waited for replies.
    Waiting,
    /// The server is on another machine, and the client was not the limit.
    ServerOrNetwork,
}

/// The parts of a record that people ask for, in the order in which they ask.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    /// The record.
    pub record: &'a Record,
    /// Its stage.
    pub stage: &'a StageRecord,
}

impl<'a> Summary<'a> {
    /// `None` for a record without a stage.
    #[must_use]
    pub fn of(record: &'a Record) -> Option<Self> {
        Self::of_each(record).into_iter().next()
    }

    /// One for each stage.
    #[must_use]
    pub fn of_each(record: &'a Record) -> Vec<Self> {
        record.stages.iter().map(|stage| Self { record, stage }).collect()
    }

    /// The database in a line.
    #[must_use]
    pub fn target(&self) -> String {
        let target = &self.record.target;
        let embedded = if target.embedded { " (embedded)" } else { "" };
        format!(
            "{} {}{embedded}, database {} on {}",
            target.flavor, target.server_version, target.database, target.address
        )
    }

    /// How the sessions were driven.
    #[must_use]
    pub fn setup(&self) -> String {
        let plan = &self.record.plan;
        let stop = match plan.stop {
            Stop::DurationS(_) => format!("{:.1} s", self.stage.seconds),
            Stop::Transactions(count) => format!(
                "{} of {} transactions in {:.3} s",
                super::count(self.stage.transactions),
                super::count(count),
                self.stage.seconds
            ),
            Stop::Rows(count) if self.record.stages.len() > 1 => {
                format!("{} rows each time", super::count(count))
            }
            Stop::Rows(count) => format!(
                "{} of {} rows in {:.3} s",
                super::count(self.stage.rows),
                super::count(count),
                self.stage.seconds
            ),
        };
        let driven = if self.stage.kind == "server_loop" && plan.work.stages().len() == 1 {
            ", each one call of a loop in the server".to_owned()
        } else {
            format!(" on {} worker{}", plan.workers, if plan.workers == 1 { "" } else { "s" })
        };
        format!(
            "{} session{}{driven}, {stop}",
            plan.sessions,
            if plan.sessions == 1 { "" } else { "s" },
        )
    }

    /// What is not the default in how the sessions were driven.
    #[must_use]
    pub fn drive(&self) -> Option<String> {
        let plan = &self.record.plan;
        let mut parts = Vec::new();
        match plan.schedule {
            Schedule::Closed => {}
            Schedule::Constant { per_s } => {
                parts.push(format!("{} starts/s at even distances", super::rate(per_s)));
            }
            Schedule::Poisson { per_s } => {
                parts.push(format!("{} starts/s at random distances", super::rate(per_s)));
            }
        }
        if plan.protocol != Protocol::Prepared {
            parts.push(format!("{} protocol", plan.protocol.as_str()));
        }
        if plan.pipeline > 1 {
            parts.push(format!("up to {} under way on each session", plan.pipeline));
        }
        if let Some(every) = plan.reconnect_every {
            parts.push(format!("a new connection after every {every} transactions"));
        }
        if plan.spread != Spread::default() || plan.rebalance {
            let back = if plan.rebalance { ", sessions go back to nodes that return" } else { "" };
            parts.push(format!("spread {}{back}", plan.spread));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Each access path that was promised, once, as `name` names it, and whether it was kept at every check.
    #[must_use]
    pub fn access_paths(&self, name: impl Fn(&str) -> String) -> Vec<(String, bool)> {
        let mut paths: Vec<(String, bool)> = Vec::new();
        for access in &self.record.accesses {
            let expected = name(&access.expected);
            match paths.iter_mut().find(|(known, _)| *known == expected) {
                Some((_, held)) => *held &= access.held,
                None => paths.push((expected, access.held)),
            }
        }
        paths
    }

    /// The moments at which somebody looked, in order.
    #[must_use]
    pub fn access_moments(&self) -> Vec<&'a str> {
        ["before", "middle", "after"]
            .into_iter()
            .filter(|moment| self.record.accesses.iter().any(|access| access.moment == *moment))
            .collect()
    }

    /// What limited the run.
    #[must_use]
    pub fn limit(&self) -> Limit {
        let stage = self.stage;
        let shared = self.record.client.shares_machine_with_server;
        let full = |share: Option<f64>| share.is_some_and(|share| share >= FULL_SHARE);
        if stage.client_cpu.as_ref().is_some_and(|cpu| cpu.limited) {
            Limit::Client
        } else if self.lock_share().is_some_and(|share| share >= LOCKED_SHARE) {
            Limit::Locks
        } else if shared && full(stage.machine_busy_share) {
            Limit::SharedCpu
        } else if full(
            stage.io.as_ref().and_then(|io| io.device.as_ref()).map(|device| device.busy_share),
        ) {
            Limit::Device
        } else if stage.session_loop.schedule.as_ref().is_some_and(|schedule| schedule.waiting == 0)
        {
            Limit::Rate
        } else if shared {
            Limit::Waiting
        } else {
            Limit::ServerOrNetwork
        }
    }

    /// Share of the sessions' time in which they waited for locks, 0 to 1, where somebody looked.
    #[must_use]
    pub fn lock_share(&self) -> Option<f64> {
        let waits = self.stage.session_loop.lock_waits?;
        let looks = waits.samples as f64 * f64::from(self.stage.sessions);
        (looks > 0.0).then(|| waits.waiting as f64 / looks)
    }

    /// Share of this machine's processors that riops used, 0 to 1.
    #[must_use]
    pub fn client_machine_share(&self) -> Option<f64> {
        let cpu = self.stage.client_cpu.as_ref()?;
        let available = self.stage.seconds * self.record.client.machine.cpus as f64;
        (available > 0.0).then(|| cpu.seconds / available)
    }

    /// Errors of all kinds.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.stage.session_loop.errors.iter().map(|error| error.count).sum()
    }
}

/// What CPU the machine has, in a few words.
pub(super) fn cpu_text(record: &Record) -> String {
    let machine = &record.client.machine;
    let model = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    format!("{} × {model}", machine.cpus)
}

/// The figures of the device of the server's data, where it was seen.
pub(super) fn device(stage: &StageRecord) -> Option<&DeviceUse> {
    stage.io.as_ref()?.device.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ScheduleRecord;
    use crate::report::example_record;

    fn limit_with(change: impl Fn(&mut Record)) -> Limit {
        let mut record = example_record();
        change(&mut record);
        Summary::of(&record).unwrap().limit()
    }

    #[test]
    fn the_limit_is_the_first_thing_that_is_used_up() {
        let idle = |record: &mut Record| record.stages[0].machine_busy_share = Some(0.5);
        assert_eq!(limit_with(|_| {}), Limit::SharedCpu);
        assert_eq!(limit_with(idle), Limit::Waiting);
        assert_eq!(
            limit_with(|record| {
                idle(record);
                record.stages[0].io.as_mut().unwrap().device.as_mut().unwrap().busy_share = 0.97;
            }),
            Limit::Device
        );
        assert_eq!(
            limit_with(|record| record.stages[0].client_cpu.as_mut().unwrap().limited = true),
            Limit::Client
        );
        let with_rate = |waiting: u64| {
            limit_with(move |record| {
                idle(record);
                let intended = 12_000;
                record.stages[0].session_loop.schedule = Some(ScheduleRecord {
                    intended,
                    sent: intended - waiting,
                    skipped: 0,
                    waiting,
                    oldest_wait_us: 0.0,
                    start_lag_us: None,
                });
            })
        };
        assert_eq!((with_rate(0), with_rate(9)), (Limit::Rate, Limit::Waiting));
        assert_eq!(
            limit_with(|record| record.client.shares_machine_with_server = false),
            Limit::ServerOrNetwork
        );
    }

    #[test]
    fn a_path_that_was_left_once_was_not_kept() {
        let mut record = example_record();
        record.accesses[1].held = false;
        let summary = Summary::of(&record).unwrap();
        assert_eq!(summary.access_paths(str::to_owned).len(), 1);
        assert!(!summary.access_paths(str::to_owned)[0].1);
        assert_eq!(summary.access_moments(), ["before", "middle", "after"]);
    }
}
