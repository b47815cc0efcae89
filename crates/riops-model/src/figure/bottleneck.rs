//! Bottleneck of a stage: the resource or the wait that limited its result.

use super::summary::DEVICE_SHARE;
use super::{DeviceLoad, Summary, TransactionTime};
use crate::record::{ClientCpu, RateVerdict, Status, TimePart};
use crate::units::texts;

/// From this share on, a resource counts as fully used.
pub const FULL_SHARE: f64 = 0.9;

/// A device that does more than this share of its measured maximum was measured wrongly, or has changed since.
const OUTDATED_SHARE: f64 = 1.1;

/// From this share of the session time on, locks, or other waits of the server, are the bottleneck.
pub const WAITING_SHARE: f64 = 0.5;

/// From this share of the session time on, one wait dominates: it is named if nothing else is fully used.
const DOMINANT_SHARE: f64 = 0.3;

/// From this share of a transaction on, the CPU time of server and client, including waits for a processor, may be the
/// bottleneck. A machine that other processes keep busy does not limit sessions that wait for something else.
const CPU_SHARE: f64 = 0.2;

/// Normal duration of a round trip. A longer wait for a reply is a delay of the network.
const ROUND_TRIP_US: f64 = 200.0;

/// A pooler has too few connections if the sessions use at least this share of them on average: a pooler that waits for a
/// processor leaves its connections idle meanwhile.
const POOL_SHARE: f64 = 0.2;

/// The waits in the server for anything but locks.
const WAITS: [TimePart; 10] = [
    TimePart::Read,
    TimePart::Write,
    TimePart::Wal,
    TimePart::Temporary,
    TimePart::OtherIo,
    TimePart::LwLock,
    TimePart::Ipc,
    TimePart::Timeout,
    TimePart::Other,
    TimePart::Active,
];

/// The bottleneck of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// riops itself.
    Client,
    /// Locks that the sessions held.
    Locks,
    /// The CPU quota of the server, or the processors that it may use.
    ServerCpu,
    /// The processors that server and client share, and that they used.
    SharedCpu,
    /// The same processors. Other processes used a part of them.
    ForeignCpu,
    /// The device of the server's data, at its measured maximum.
    Device,
    /// Unknown: the device was busy, and its maximum was not measured. A device that is always busy may be far
    /// from its maximum, because it serves many requests at once.
    BusyDevice,
    /// None: the requested rate was achieved.
    Rate,
    /// Waits of the server's processes for anything but locks.
    Waits,
    /// The connections of a pooler to the server.
    Pool,
    /// The network, or a proxy, between client and server.
    Network,
    /// None: the script waits.
    ThinkTime,
    /// None found: the sessions waited for replies.
    Waiting,
    /// Not the client. The server is on another machine, which is not observed.
    ServerOrNetwork,
}

texts!(
    // The most specific ones are first.
    /// Returns the spelling in exports, which is stable across releases.
    Bottleneck::as_str {
        Client: "client",
        Locks: "locks",
        ServerCpu: "server_cpu",
        Device: "device",
        SharedCpu: "cpu",
        Rate: "requested_rate",
        Waits: "waits",
        Pool: "pool",
        Network: "network",
        ThinkTime: "think_time",
        ForeignCpu: "cpu_used_by_others",
        BusyDevice: "device_unknown_maximum",
        Waiting: "none_found",
        ServerOrNetwork: "server_or_network",
    }
);

impl DeviceLoad<'_> {
    /// Whether the measurement of its maximum is outdated.
    pub fn is_outdated(&self) -> bool {
        let syncs = self.wal_syncs.and_then(|(_, share)| share);
        self.highest_rate.into_iter().chain(syncs).any(|share| share > OUTDATED_SHARE)
    }
}

impl Summary<'_> {
    /// The bottleneck of the stage.
    pub fn bottleneck(&self) -> Bottleneck {
        let (stage, devices) = (self.stage, self.devices());
        let client = &self.record.client;
        let shared = client.shares_machine_with_server;
        let full = |share: Option<f64>| share.is_some_and(|share| share >= FULL_SHARE);
        let waiting = |share: Option<f64>| share.is_some_and(|share| share >= WAITING_SHARE);
        // On the machine of the server, workers that wait for a processor show that the server waits as well.
        let cpu = stage.client_cpu.as_ref();
        // Unless the sessions wait for something else most of the time.
        let sessions_wait = waiting(self.server_waits().map(|(share, _)| share));
        let cpu_is_full = full(stage.machine_busy_share)
            || cpu.is_some_and(ClientCpu::is_contended) && !sessions_wait;
        let is_foreign = self.foreign_machine_share().is_some_and(|share| share > 1.0 - FULL_SHARE);
        // On a full machine, the server or the client is the limit, whichever uses more of it.
        let is_servers = shared && self.server_machine_share() > self.client_machine_share();
        // The processors of a client that may not use all of them are full because of it, whatever else the machine does.
        let is_confined = client.machine.cpus < client.machine.counted_cpus();
        let is_client = |cpu: &ClientCpu| {
            let is_of_machine = cpu.limits.iter().all(|limit| limit.is_of_machine());
            // Records of earlier releases have no list.
            let is_servers = is_servers && !cpu.limits.is_empty();
            cpu.limited && !(is_of_machine && (is_foreign && !is_confined || is_servers))
        };
        let time = self.transaction_time();
        let busy = |parts: &[TimePart]| time.as_ref().map(|time| time.busy_share(parts));
        let cpu_is_full = cpu_is_full && self.uses_cpu(time.as_ref());
        let waits = self.server_waits().is_some_and(|(share, events)| {
            let most = events.first().map_or(0.0, |event| event.share);
            share >= WAITING_SHARE || most >= DOMINANT_SHARE
        }) || waiting(busy(&WAITS));
        let lock_share = stage.lock_share();
        let is_locked = lock_share.is_some_and(|share| share >= DOMINANT_SHARE)
            || waiting(busy(&[TimePart::Lock]));
        let thinks = time
            .as_ref()
            .is_some_and(|time| time.part_us(TimePart::Think) >= WAITING_SHARE * time.us);
        let is_delayed = waiting(busy(&[TimePart::Network]))
            && time.as_ref().is_some_and(|time| self.round_trip_us(time) >= ROUND_TRIP_US);
        let is_at_rate = match stage.rate_verdict() {
            // A client that starts transactions late changes the response time, but not the rate.
            Some(RateVerdict::Incomplete) => stage.starts_late(),
            verdict => verdict == Some(RateVerdict::Reached),
        };
        let is_here = shared || client.server_may_be_here;
        let is_busy = |device: &DeviceLoad<'_>| {
            device.is_outdated() || device.load.is_none() && full(Some(device.usage.busy_share))
        };
        let is_full = |device: &DeviceLoad<'_>| {
            device.highest_load() >= DEVICE_SHARE && !device.is_outdated()
        };
        // The first one that applies.
        let candidates = [
            (Bottleneck::Client, cpu.is_some_and(is_client)),
            (Bottleneck::Locks, waiting(lock_share)),
            (Bottleneck::ServerCpu, self.is_server_throttled() || full(self.server_cpus_share())),
            (Bottleneck::Device, devices.iter().any(is_full)),
            (Bottleneck::SharedCpu, cpu_is_full && is_here && !is_foreign),
            (Bottleneck::Rate, is_at_rate),
            (Bottleneck::ThinkTime, thinks),
            (Bottleneck::Locks, is_locked),
            (Bottleneck::Waits, waits),
            (Bottleneck::ForeignCpu, cpu_is_full && is_foreign),
            (Bottleneck::Pool, is_delayed && self.is_pool_used()),
            (Bottleneck::Network, is_delayed),
            (Bottleneck::BusyDevice, devices.iter().any(is_busy)),
            (Bottleneck::Waiting, shared),
        ];
        let first = candidates.into_iter().find(|(_, applies)| *applies);
        first.map_or(Bottleneck::ServerOrNetwork, |(bottleneck, _)| bottleneck)
    }

    /// Whether the CPU time of a transaction, in the server and in the client, is enough of its time to limit it.
    fn uses_cpu(&self, time: Option<&TransactionTime>) -> bool {
        let stage = self.stage;
        let cpu = stage.client_cpu.as_ref();
        let client_us = cpu.and_then(|cpu| cpu.us_per_transaction).unwrap_or_default();
        let measured = || {
            let cost = stage.cost.as_ref()?;
            let server_us = cost.server_cpu_us? + cost.server_run_queue_us?;
            Some((server_us, stage.database_s? * 1e6 / stage.transactions as f64))
        };
        // Too few samples of the sessions hide what else they did, but not the CPU time.
        let spent = match time {
            Some(time) => Some((
                time.part_us(TimePart::Cpu) + time.part_us(TimePart::RunQueue),
                time.busy_us(),
            )),
            None => measured(),
        };
        spent.is_none_or(|(server_us, busy_us)| server_us + client_us >= CPU_SHARE * busy_us)
            || cpu.is_some_and(ClientCpu::is_contended)
    }

    /// Returns the number of connections of a pooler to the server, if it is smaller than the number of sessions. The sampler uses
    /// one of them.
    pub fn pool(&self) -> Option<u64> {
        self.record.target.pooler.as_ref()?;
        Some(self.stage.probes.as_ref()?.backends_max? + 1)
    }

    /// Whether sessions use so many connections of a pool that others wait for one.
    fn is_pool_used(&self) -> bool {
        let Some((pool, waits)) = self.pool().zip(self.waits()) else {
            return false;
        };
        let active = waits.iter().filter(|wait| TimePart::of_event(&wait.event).is_some());
        let share: f64 = active.map(|wait| wait.share).sum();
        share * f64::from(self.stage.sessions) >= POOL_SHARE * (pool - 1) as f64
    }

    /// The time of the network of each statement.
    fn round_trip_us(&self, time: &TransactionTime) -> f64 {
        let statements = self.stage.statements as f64 / self.stage.transactions.max(1) as f64;
        time.part_us(TimePart::Network) / statements.max(1.0)
    }

    /// The bottleneck in a word or two; empty if there is none.
    pub fn bottleneck_word(&self) -> &'static str {
        if !self.has_bottleneck() {
            return "";
        }
        match self.bottleneck() {
            Bottleneck::Client => "client",
            Bottleneck::Locks => "locks",
            Bottleneck::ServerCpu => "CPU of the server",
            Bottleneck::SharedCpu => "CPU",
            Bottleneck::ForeignCpu => "CPU, used by others",
            Bottleneck::Waits => "waits",
            Bottleneck::Pool => "pool",
            Bottleneck::Network => "network",
            Bottleneck::ThinkTime => "none (think time)",
            Bottleneck::Device => "device",
            Bottleneck::BusyDevice => "device?",
            Bottleneck::Rate => "none (rate)",
            Bottleneck::Waiting => "none found",
            Bottleneck::ServerOrNetwork => "not the client",
        }
    }

    /// Whether the bottleneck is of interest: not after a failure, which ended the stage before a limit was
    /// reached, or without a transaction.
    pub fn has_bottleneck(&self) -> bool {
        let is_last = self.record.stages.last().is_some_and(|last| std::ptr::eq(last, self.stage));
        let has_failed = self.record.status == Status::Failed && is_last;
        // Whether others wait for their client is their business.
        let of_others = [Bottleneck::Client, Bottleneck::Waiting, Bottleneck::ServerOrNetwork];
        self.record.imported.is_none()
            && (self.stage.observed.is_none() || !of_others.contains(&self.bottleneck()))
            && self.stage.transactions > 0
            && !has_failed
            && !self.stage.ended_in_an_outage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example::example_record;
    use crate::record::{
        Blocker, ClientLimit, CommandRecord, CostRecord, DiskLimit, DiskRate, LatencySummary,
        Moments, Record, Sampled, ScheduleRecord, ServerLimits, SessionTime, WaitShare,
    };

    fn bottleneck_with(change: impl Fn(&mut Record)) -> Bottleneck {
        let mut record = example_record();
        change(&mut record);
        Summary::first_stage(&record).unwrap().bottleneck()
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
        let with_rate = |waiting: u64, lag_us: f64| {
            bottleneck_with(move |record| {
                idle(record);
                let intended = 12_000;
                record.stages[0].session_loop.schedule = Some(ScheduleRecord {
                    intended,
                    sent: intended - waiting,
                    waiting,
                    start_lag_us: Some(LatencySummary::for_test(lag_us, lag_us)),
                    ..ScheduleRecord::default()
                });
            })
        };
        assert_eq!((with_rate(0, 0.0), with_rate(9, 0.0)), (Bottleneck::Rate, Bottleneck::Waiting));
        assert_eq!(with_rate(0, 100_000.0), Bottleneck::Rate);
        assert_eq!(
            bottleneck_with(|record| record.client.shares_machine_with_server = false),
            Bottleneck::ServerOrNetwork
        );
    }

    /// Sets the wait events of the sessions, sampled often enough.
    fn wait(record: &mut Record, shares: &[(&str, f64)]) {
        let wait = |&(event, share): &(&str, f64)| WaitShare { event: event.to_owned(), share };
        record.stages[0].probes = Some(Sampled {
            waits: shares.iter().map(wait).collect(),
            looks: 1_000,
            ..Sampled::default()
        });
    }

    #[test]
    fn a_machine_that_others_use_is_the_bottleneck_only_if_the_sessions_do_not_wait() {
        let foreign = |record: &mut Record, share: f64| {
            record.stages[0].neighbors.as_mut().unwrap().cpu_share = Some(share);
        };
        assert_eq!(bottleneck_with(|record| foreign(record, 0.09)), Bottleneck::SharedCpu);
        assert_eq!(bottleneck_with(|record| foreign(record, 0.11)), Bottleneck::ForeignCpu);
        let reads = |record: &mut Record| wait(record, &[("IO:DataFileRead", 0.99), ("CPU", 0.01)]);
        assert_eq!(bottleneck_with(reads), Bottleneck::SharedCpu);
        let bottleneck = bottleneck_with(|record| {
            foreign(record, 0.9);
            reads(record);
        });
        assert_eq!(bottleneck, Bottleneck::Waits);
        let bottleneck = bottleneck_with(|record| {
            foreign(record, 0.8);
            wait(record, &[("LWLock:WALWrite", 0.63), ("IO:WalSync", 0.22), ("CPU", 0.1)]);
        });
        assert_eq!(bottleneck, Bottleneck::Waits);
        // The sessions that wait for their client or for each other do not wait for the server.
        let bottleneck = bottleneck_with(|record| {
            foreign(record, 0.8);
            wait(record, &[("idle", 0.5), ("Lock:tuple", 0.3), ("Client:ClientRead", 0.2)]);
        });
        assert_eq!(bottleneck, Bottleneck::ForeignCpu);
    }

    /// Sets the parts of the session time, and the CPU time of the server for a transaction.
    fn spend(record: &mut Record, shares: &[(TimePart, f64)], server_cpu_us: f64) {
        let time =
            |&(part, share): &(TimePart, f64)| SessionTime { part, share, reach: Some(0.01) };
        wait(record, &[("CPU", 0.01)]);
        let stage = &mut record.stages[0];
        stage.probes.as_mut().unwrap().session_time = shares.iter().map(time).collect();
        stage.cost = Some(CostRecord {
            server_cpu_us: Some(server_cpu_us),
            server_run_queue_us: Some(0.0),
            ..CostRecord::default()
        });
    }

    #[test]
    fn waits_of_the_own_sessions_do_not_explain_locks_of_other_sessions() {
        let holders_wait = |is_own| {
            let mut record = example_record();
            spend(&mut record, &[(TimePart::Lock, 0.5), (TimePart::Wal, 0.4)], 30.0);
            let (name, state) = ("psql".to_owned(), "active".to_owned());
            record.stages[0].probes.as_mut().unwrap().blockers =
                vec![Blocker { name, state, is_own, share: 0.9 }];
            let wait = Summary::first_stage(&record).unwrap().lock_holders_wait();
            wait.map(|(part, _)| part)
        };
        assert_eq!((holders_wait(true), holders_wait(false)), (Some(TimePart::Wal), None));
    }

    #[test]
    fn a_full_machine_does_not_limit_sessions_that_wait_for_something_else() {
        let bottleneck = |shares: &[(TimePart, f64)], server_cpu_us| {
            bottleneck_with(|record| {
                record.stages[0].neighbors.as_mut().unwrap().cpu_share = Some(0.93);
                spend(record, shares, server_cpu_us);
            })
        };
        let network = Bottleneck::Network;
        assert_eq!(bottleneck(&[(TimePart::Cpu, 0.03)], 50.0), network);
        assert_eq!(bottleneck(&[(TimePart::Cpu, 0.3)], 500.0), Bottleneck::ForeignCpu);
        assert_eq!(
            bottleneck(&[(TimePart::Lock, 0.6), (TimePart::Cpu, 0.02)], 30.0),
            Bottleneck::Locks
        );
        assert_eq!(
            bottleneck(&[(TimePart::Wal, 0.6), (TimePart::Cpu, 0.02)], 30.0),
            Bottleneck::Waits
        );
        // Asleep in the server without a wait event.
        assert_eq!(bottleneck(&[(TimePart::Cpu, 0.9)], 50.0), Bottleneck::Waits);
        // Also if the sessions were sampled too rarely to know what else they did.
        let rarely = |server_cpu_us| {
            bottleneck_with(|record| {
                record.stages[0].neighbors.as_mut().unwrap().cpu_share = Some(0.93);
                spend(record, &[], server_cpu_us);
                record.stages[0].probes.as_mut().unwrap().looks = 1;
            })
        };
        assert_eq!((rarely(50.0), rarely(500.0)), (Bottleneck::Waiting, Bottleneck::ForeignCpu));
        // Workers that waited for a processor delayed the transactions.
        let contended = bottleneck_with(|record| {
            spend(record, &[(TimePart::Cpu, 0.03)], 50.0);
            record.stages[0].client_cpu.as_mut().unwrap().run_queue_share = Some(0.2);
        });
        assert_eq!(contended, Bottleneck::SharedCpu);
    }

    #[test]
    fn shares_exclude_the_time_of_idle_sessions() {
        let bottleneck = bottleneck_with(|record| {
            record.plan.schedule = crate::plan::Schedule::Constant { per_s: 1_400.0 };
            // A transaction of 200 µs, and sessions that are idle 88% of the time.
            record.stages[0].database_s = Some(2.4);
            spend(record, &[(TimePart::Lock, 0.11), (TimePart::Cpu, 0.01)], 10.0);
        });
        assert_eq!(bottleneck, Bottleneck::Locks);
    }

    #[test]
    fn the_pool_is_the_limit_if_the_sessions_use_its_connections() {
        let bottleneck_and_pool = |backends_max: Option<u64>, active: f64| {
            let mut record = example_record();
            let stage = &mut record.stages[0];
            (stage.machine_busy_share, stage.sessions) = (Some(0.2), 8);
            (stage.transactions, stage.statements) = (12_000, 12_000);
            spend(&mut record, &[(TimePart::Cpu, 0.1)], 1.0);
            let probes = record.stages[0].probes.as_mut().unwrap();
            (probes.backends_max, probes.waits[0].share) = (backends_max, active / 8.0);
            record.target.pooler = Some("a pooler".to_owned());
            let summary = Summary::first_stage(&record).unwrap();
            (summary.bottleneck(), summary.pool())
        };
        assert_eq!(bottleneck_and_pool(Some(1), 0.7), (Bottleneck::Pool, Some(2)));
        // Opened at a peak, and seldom used since then.
        assert_eq!(bottleneck_and_pool(Some(5), 0.7), (Bottleneck::Network, Some(6)));
        assert_eq!(bottleneck_and_pool(None, 0.7), (Bottleneck::Network, None));
    }

    #[test]
    fn short_round_trips_and_think_time_are_no_limit_of_the_network() {
        let with = |think_us: f64, transactions: u64, foreign: f64| {
            bottleneck_with(|record| {
                let stage = &mut record.stages[0];
                stage.machine_busy_share = Some(foreign);
                stage.neighbors.as_mut().unwrap().cpu_share = Some(foreign);
                (stage.transactions, stage.statements) = (transactions, transactions);
                spend(record, &[(TimePart::Cpu, 0.05)], 1.0);
                record.stages[0].session_loop.commands = vec![CommandRecord {
                    title: "\\sleep 1 ms".to_owned(),
                    service_us: LatencySummary::new(
                        transactions,
                        think_us,
                        Moments { mean: think_us, stdev: 0.0 },
                        |_| Some(think_us),
                    ),
                    ..CommandRecord::default()
                }];
            })
        };
        let bottleneck = |think_us, transactions| with(think_us, transactions, 0.2);
        assert_eq!(bottleneck(0.0, 12_000), Bottleneck::Network);
        assert_eq!(bottleneck(0.0, 120_000), Bottleneck::Waiting);
        assert_eq!(bottleneck(1_000.0, 12_000), Bottleneck::ThinkTime);
        // The rest is CPU time, on a machine that others fill.
        assert_eq!(with(1_600.0, 12_000, 0.95), Bottleneck::ThinkTime);
    }

    #[test]
    fn a_server_that_uses_more_of_a_full_machine_than_the_client_is_not_limited_by_it() {
        let bottleneck = |client_s: f64| {
            bottleneck_with(|record| {
                let stage = &mut record.stages[0];
                stage.server_cpu_s = Some(15.6);
                let cpu = stage.client_cpu.as_mut().unwrap();
                (cpu.limited, cpu.limits) = (true, vec![ClientLimit::Machine]);
                cpu.seconds = client_s;
            })
        };
        assert_eq!(
            (bottleneck(3.6), bottleneck(16.0)),
            (Bottleneck::SharedCpu, Bottleneck::Client)
        );
    }

    #[test]
    fn a_machine_that_others_use_does_not_make_the_client_the_bottleneck() {
        let bottleneck_on = |cpus: usize, foreign: f64, limits: &[ClientLimit]| {
            bottleneck_with(|record| {
                record.client.shares_machine_with_server = false;
                (record.client.machine.cpus, record.client.machine.machine_cpus) = (cpus, Some(2));
                let stage = &mut record.stages[0];
                stage.neighbors.as_mut().unwrap().cpu_share = Some(foreign);
                let cpu = stage.client_cpu.as_mut().unwrap();
                (cpu.limited, cpu.limits) = (true, limits.to_vec());
            })
        };
        let bottleneck = |foreign, limits: &[ClientLimit]| bottleneck_on(2, foreign, limits);
        let machine = [ClientLimit::Machine, ClientLimit::RunQueue, ClientLimit::PollLoop];
        assert_eq!(bottleneck(0.05, &machine), Bottleneck::Client);
        assert_eq!(bottleneck(0.96, &machine), Bottleneck::ForeignCpu);
        // riops may use one processor only, and needs more than is left of it.
        assert_eq!(bottleneck_on(1, 0.5, &[ClientLimit::RunQueue]), Bottleneck::Client);
        // A worker without idle time had a processor for itself.
        assert_eq!(
            bottleneck(0.4, &[ClientLimit::Worker, ClientLimit::Machine]),
            Bottleneck::Client
        );
    }

    #[test]
    fn workers_that_wait_for_a_processor_show_that_the_server_does_too() {
        let contended = |local: bool| {
            bottleneck_with(move |record| {
                record.client.shares_machine_with_server = local;
                let stage = &mut record.stages[0];
                stage.machine_busy_share = Some(0.85);
                stage.client_cpu.as_mut().unwrap().run_queue_share = Some(0.2);
            })
        };
        assert_eq!(contended(true), Bottleneck::SharedCpu);
        // The sessions wait for the WAL most of the time, and now and then for a processor.
        let commits = bottleneck_with(|record| {
            let stage = &mut record.stages[0];
            stage.machine_busy_share = Some(0.85);
            stage.client_cpu.as_mut().unwrap().run_queue_share = Some(0.38);
            wait(record, &[("LWLock:WALWrite", 0.63), ("idle", 0.37)]);
        });
        assert_eq!(commits, Bottleneck::Waits);
        // On a separate machine, riops is the bottleneck, which its record says.
        assert_eq!(contended(false), Bottleneck::ServerOrNetwork);
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
            synchronized_write: None,
            others_busy_share: None,
        };
        let bottleneck = |reads_per_s: f64, limit: Option<DiskLimit>| {
            bottleneck_with(move |record| {
                record.stages[0].machine_busy_share = Some(0.5);
                let device = record.stages[0].io.as_mut().unwrap().device.as_mut().unwrap();
                (device.busy_share, device.reads_per_s) = (1.0, reads_per_s);
                (device.writes_per_s, device.read_mb_s) = (10_000.0, reads_per_s * 0.008);
                record.target.disk_limit = limit.clone();
            })
        };
        // 8 sessions keep a device busy at a fifth of its maximum.
        assert_eq!(bottleneck(20_000.0, Some(limit.clone())), Bottleneck::Waiting);
        assert_eq!(bottleneck(60_000.0, Some(limit.clone())), Bottleneck::Device);
        assert_eq!(bottleneck(20_000.0, None), Bottleneck::BusyDevice);
        // More than the measured maximum: it is not the limit.
        assert_eq!(bottleneck(150_000.0, Some(limit.clone())), Bottleneck::BusyDevice);
        let other = DiskLimit { device: "vdb".to_owned(), ..limit.clone() };
        assert_eq!(bottleneck(60_000.0, Some(other)), Bottleneck::BusyDevice);
        // It comes before a machine that others keep busy.
        let bottleneck = bottleneck_with(|record| {
            let device = record.stages[0].io.as_mut().unwrap().device.as_mut().unwrap();
            device.reads_per_s = 99_000.0;
            record.target.disk_limit = Some(limit.clone());
        });
        assert_eq!(bottleneck, Bottleneck::Device);
    }

    #[test]
    fn a_server_with_a_part_of_the_processors_is_limited_by_them() {
        let limits =
            |cpus: usize| ServerLimits { cpus, cgroup_cpus: None, cgroup_memory_bytes: None };
        let bottleneck = |cpus: usize, server_cpu_s: f64, throttled: Option<f64>| {
            bottleneck_with(move |record| {
                record.client.machine.machine_cpus = Some(4);
                record.target.limits = Some(limits(cpus));
                let stage = &mut record.stages[0];
                stage.machine_busy_share = Some(0.5);
                stage.server_cpu_s = Some(server_cpu_s * stage.counters_s.unwrap_or(stage.seconds));
                stage.server_throttled_share = throttled;
            })
        };
        assert_eq!(bottleneck(2, 1.9, None), Bottleneck::ServerCpu);
        assert_eq!(bottleneck(2, 1.7, None), Bottleneck::Waiting);
        assert_eq!(bottleneck(4, 1.9, None), Bottleneck::Waiting);
        assert_eq!(bottleneck(4, 1.9, Some(0.09)), Bottleneck::Waiting);
        assert_eq!(bottleneck(4, 1.9, Some(0.1)), Bottleneck::ServerCpu);
    }

    #[test]
    fn a_failed_stage_has_no_bottleneck() {
        let mut record = example_record();
        assert!(Summary::first_stage(&record).unwrap().has_bottleneck());
        record.status = Status::Failed;
        assert!(!Summary::first_stage(&record).unwrap().has_bottleneck());
        // The stages before the failed one have.
        record.stages.push(record.stages[0].clone());
        assert!(Summary::first_stage(&record).unwrap().has_bottleneck());
    }
}
