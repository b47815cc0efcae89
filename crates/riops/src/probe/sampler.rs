//! The counters over time: a point each interval, and what one process of the server waits for, five times
//! a second.
//!
//! A thread of its own, with a connection of its own where the server is asked. What cannot be read is
//! absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cpu::{self, MachineCpu, process_cpu_s};
use super::database::LOG_POSITION;
use super::device::{Device, DeviceCounters};
use super::memory::Memory;
pub use super::sampled::{ProbePoint, Sampled, ServerProgress, WaitShare};
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};

/// Between two looks at what the process waits for.
const LOOK: Duration = Duration::from_millis(200);
/// The look is parsed and planned once.
const PREPARE_LOOK: &str = "prepare riops_look (integer) as
    select state, wait_event_type, wait_event from pg_stat_get_activity($1)";
/// A server that does not answer for so long is asked no more: what it says later would be taken for the answer
/// to something else.
const PATIENCE: Duration = Duration::from_secs(5);
/// A last point shorter than this share of an interval says nothing, unless it is the only one.
const LAST_SHARE_MIN: f64 = 0.2;
/// Points that are kept: a day of seconds.
const POINTS_MAX: usize = 100_000;
/// What a process does that waits for nothing.
const RUNNING: &str = "CPU";

/// Hears each point as it is made.
pub type OnPoint = Arc<dyn Fn(&ProbePoint) + Send + Sync>;

/// What shows how far a statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Nothing.
    Unknown,
    /// This query: phase, done, total.
    Query(String),
    /// The size of the database's files.
    DatabaseSize,
}

/// The server's part of what is watched.
#[derive(Debug)]
struct ServerEye {
    connection: Connection,
    /// Its own process there, where that is on this machine.
    own_process: Option<i32>,
    /// The process whose waits and CPU are watched.
    watched: Option<i32>,
    progress: Progress,
    checkpoints_sql: &'static str,
    /// Whether it has failed to answer.
    is_lost: bool,
    /// What the server has refused once: an older one does not know it, and would note each time in its log.
    refused: BTreeSet<String>,
}

/// Looks from the start of a measurement to its end.
pub struct Sampler {
    interval: Duration,
    is_local: bool,
    server: Option<ServerEye>,
    on_point: Option<OnPoint>,
    running: Option<Running>,
    seen: Sampled,
}

/// A thread that looks, and how it is told to end. It gives the server's part back.
struct Running {
    stop: SyncSender<()>,
    thread: JoinHandle<(Sampled, Option<ServerEye>)>,
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sampler").field("interval", &self.interval).finish_non_exhaustive()
    }
}

impl Sampler {
    /// Watches this machine, with a point each `interval`.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            is_local: false,
            server: None,
            on_point: None,
            running: None,
            seen: Sampled::default(),
        }
    }

    /// Watches the server too, whose processes are on this machine or not.
    ///
    /// # Errors
    /// [`ConnectionError`] where there is no session for it.
    pub fn with_server(
        mut self,
        conninfo: &ConnInfo,
        checkpoints_sql: &'static str,
        is_local: bool,
        interrupt: &Interrupt,
    ) -> Result<Self, ConnectionError> {
        let mut connection = Connection::open(conninfo, interrupt)?;
        // The wish to end is for the statement that is watched.
        connection.set_interrupt(&Interrupt::new());
        connection.execute(PREPARE_LOOK)?;
        let own_process = is_local.then_some(connection.greeting().process);
        self.is_local = is_local;
        self.server = Some(ServerEye {
            connection,
            own_process,
            watched: None,
            progress: Progress::Unknown,
            is_lost: false,
            refused: BTreeSet::new(),
            checkpoints_sql,
        });
        Ok(self)
    }

    /// From now on this process is watched, and how far it is.
    pub fn watch(&mut self, process: i32, progress: Progress, on_point: Option<OnPoint>) {
        self.on_point = on_point;
        if let Some(server) = &mut self.server {
            (server.watched, server.progress) = (Some(process), progress);
        }
    }

    /// From now on no process is watched.
    pub fn watch_none(&mut self) {
        self.on_point = None;
        if let Some(server) = &mut self.server {
            (server.watched, server.progress) = (None, Progress::Unknown);
        }
    }

    pub(super) fn start(&mut self, device: Option<Device>) {
        let (stop, stopped) = sync_channel(1);
        let mut watch = Watch {
            interval: self.interval,
            device,
            is_local: self.is_local,
            server: self.server.take(),
            on_point: self.on_point.clone(),
            start: Instant::now(),
            workers: WorkerCpu::default(),
            own_before_s: 0.0,
            stopped,
        };
        // Here and now: what is short shall not be disturbed at its start.
        let process = watch.server.as_ref().and_then(|server| server.own_process);
        let before_s = cpu::thread_seconds();
        watch.own_before_s = process.and_then(process_cpu_s).unwrap_or(0.0);
        let first = watch.counters();
        watch.own_before_s -= cpu::thread_seconds() - before_s;
        watch.start = first.at;
        let thread = std::thread::Builder::new().name("riops-sampler".to_owned());
        self.running =
            thread.spawn(move || watch.run(first)).ok().map(|thread| Running { stop, thread });
    }

    /// The last point ends here.
    pub(super) fn end(&mut self) {
        if let Some(running) = &self.running {
            let _ = running.stop.try_send(());
        }
    }

    pub(super) fn close(&mut self) {
        self.end();
        if let Some((sampled, server)) =
            self.running.take().and_then(|running| running.thread.join().ok())
        {
            (self.seen, self.server) = (sampled, server);
        }
    }

    /// What was seen of the last stage.
    #[must_use]
    pub fn seen(&self) -> &Sampled {
        &self.seen
    }
}

/// The thread's side.
struct Watch {
    interval: Duration,
    device: Option<Device>,
    is_local: bool,
    server: Option<ServerEye>,
    on_point: Option<OnPoint>,
    start: Instant,
    workers: WorkerCpu,
    /// CPU of the connection's process before, less what the first look has cost on this side.
    own_before_s: f64,
    stopped: Receiver<()>,
}

/// Counters that only grow, at one moment.
#[derive(Debug, Clone)]
struct Counters {
    at: Instant,
    device: Option<DeviceCounters>,
    machine: Option<MachineCpu>,
    server_cpu_s: Option<f64>,
    log_position: Option<u64>,
    /// Checkpoints, and buffers that they have written.
    checkpoints: Option<(u64, u64)>,
}

impl Watch {
    fn run(mut self, first: Counters) -> (Sampled, Option<ServerEye>) {
        let mut sampled = Sampled::default();
        let mut waits: BTreeMap<String, u64> = BTreeMap::new();
        let mut last = first;
        let mut due = self.start + self.interval;
        loop {
            let now = Instant::now();
            let watching = self.server.as_ref().is_some_and(|server| server.watched.is_some());
            let rest = due.saturating_duration_since(now);
            let pause = if watching { rest.min(LOOK) } else { rest };
            let over = !matches!(self.stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
            if over {
                let seconds = last.at.elapsed().as_secs_f64();
                if seconds >= LAST_SHARE_MIN * self.interval.as_secs_f64()
                    || sampled.points.is_empty()
                {
                    let now = self.counters();
                    sampled.points.extend(self.point(&last, &now));
                }
                break;
            }
            if let Some(event) = self.look() {
                sampled.looks += 1;
                *waits.entry(event).or_default() += 1;
            }
            if Instant::now() >= due {
                let now = self.counters();
                if let Some(point) = self.point(&last, &now) {
                    if let Some(on_point) = &self.on_point {
                        on_point(&point);
                    }
                    if sampled.points.len() < POINTS_MAX {
                        sampled.points.push(point);
                    }
                }
                last = now;
                due = (due + self.interval).max(Instant::now());
            }
        }
        sampled.waits = shares(waits, sampled.looks);
        sampled.cpu_s = self.own_cpu_s() - self.own_before_s;
        (sampled, self.server)
    }

    /// The thread is new at each stage, the connection's process is not.
    fn own_cpu_s(&self) -> f64 {
        let process = self.server.as_ref().and_then(|server| server.own_process);
        cpu::thread_seconds() + process.and_then(process_cpu_s).unwrap_or(0.0)
    }

    fn counters(&mut self) -> Counters {
        let is_local = self.is_local;
        let mut counters = Counters {
            at: Instant::now(),
            device: self.device.as_ref().and_then(Device::read),
            machine: MachineCpu::read(),
            server_cpu_s: None,
            log_position: None,
            checkpoints: None,
        };
        let Some(server) = &mut self.server else {
            return counters;
        };
        counters.log_position = server.numbers(LOG_POSITION).and_then(|row| row.first().copied());
        let checkpoints = server.numbers(server.checkpoints_sql);
        counters.checkpoints = checkpoints.and_then(|row| match row.as_slice() {
            [timed, requested, buffers] => Some((timed + requested, *buffers)),
            _ => None,
        });
        if let Some(watched) = server.watched.filter(|_| is_local) {
            let sql = format!("select pid from pg_stat_activity where leader_pid = {watched}");
            let parallel = server.query(&sql).into_iter().flatten().flatten().flatten();
            let parallel: Vec<i32> = parallel.filter_map(|pid| pid.parse().ok()).collect();
            counters.server_cpu_s =
                process_cpu_s(watched).map(|own| own + self.workers.seen(&parallel));
        }
        counters
    }

    fn point(&mut self, last: &Counters, now: &Counters) -> Option<ProbePoint> {
        let seconds = now.at.duration_since(last.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let device = self
            .device
            .as_ref()
            .and_then(|device| Some(device.usage(now.device?.since(last.device?), seconds)));
        let checkpoints = now.checkpoints.zip(last.checkpoints);
        let mb_s = |bytes: u64| bytes as f64 / 1e6 / seconds;
        let mut point = ProbePoint {
            t_s: now.at.duration_since(self.start).as_secs_f64(),
            seconds,
            read_mb_s: device.as_ref().map(|device| device.read_mb_s),
            write_mb_s: device.as_ref().map(|device| device.write_mb_s),
            reads_per_s: device.as_ref().map(|device| device.reads_per_s),
            writes_per_s: device.as_ref().map(|device| device.writes_per_s),
            busy_share: device.as_ref().map(|device| device.busy_share),
            machine_busy_share: now
                .machine
                .zip(last.machine)
                .and_then(|(now, last)| now.busy_share_since(last)),
            server_cpus: now
                .server_cpu_s
                .zip(last.server_cpu_s)
                .map(|(now, last)| ((now - last) / seconds).max(0.0)),
            dirty_bytes: Memory::read().map(|memory| memory.dirty_bytes),
            wal_mb_s: now
                .log_position
                .zip(last.log_position)
                .and_then(|(now, last)| now.checked_sub(last))
                .map(mb_s),
            checkpoints: checkpoints.map(|(now, last)| now.0.saturating_sub(last.0)),
            checkpoint_mb_s: checkpoints
                .map(|(now, last)| mb_s(now.1.saturating_sub(last.1) * crate::units::BLOCK_BYTES)),
            database_bytes: None,
            progress: None,
        };
        if let Some(server) = &mut self.server {
            match server.progress.clone() {
                Progress::Unknown => {}
                Progress::Query(sql) => point.progress = server.progress(&sql),
                Progress::DatabaseSize => {
                    let size = server.numbers("select pg_database_size(current_database())");
                    point.database_bytes = size.and_then(|row| row.first().copied());
                }
            }
        }
        Some(point)
    }

    /// What the watched process is doing; `None` where it is idle, gone or not shown.
    fn look(&mut self) -> Option<String> {
        let server = self.server.as_mut()?;
        let sql = format!("execute riops_look({})", server.watched?);
        match server.query(&sql)?.into_iter().next()?.as_slice() {
            [Some(state), kind, event] if state == "active" => Some(
                kind.as_ref()
                    .zip(event.as_ref())
                    .map_or_else(|| RUNNING.to_owned(), |(kind, event)| format!("{kind}:{event}")),
            ),
            _ => None,
        }
    }
}

impl ServerEye {
    /// `None` where the server refuses, or does not answer.
    fn query(&mut self, sql: &str) -> Option<Vec<Vec<Option<String>>>> {
        if self.is_lost || self.refused.contains(sql) {
            return None;
        }
        self.connection.set_deadline(Some(Instant::now() + PATIENCE));
        let answer = self.connection.query(sql);
        match &answer {
            Ok(_) => {}
            Err(ConnectionError::Server(_)) => drop(self.refused.insert(sql.to_owned())),
            Err(_) => self.is_lost = true,
        }
        answer.ok()
    }

    fn numbers(&mut self, sql: &str) -> Option<Vec<u64>> {
        let row = self.query(sql)?.into_iter().next()?;
        row.into_iter().map(|value| value?.parse().ok()).collect()
    }

    fn progress(&mut self, sql: &str) -> Option<ServerProgress> {
        match self.query(sql)?.into_iter().next()?.as_slice() {
            [Some(phase), Some(done), Some(total)] => Some(ServerProgress {
                phase: phase.clone(),
                done: done.parse().ok()?,
                total: total.parse().ok()?,
            }),
            _ => None,
        }
    }
}

/// CPU of parallel workers, which come and go: of one that has gone, what it had when last seen.
#[derive(Debug, Default)]
struct WorkerCpu(BTreeMap<i32, f64>);

impl WorkerCpu {
    fn seen(&mut self, processes: &[i32]) -> f64 {
        for &process in processes {
            if let Some(seconds) = process_cpu_s(process) {
                self.0.insert(process, seconds);
            }
        }
        self.0.values().sum()
    }
}

fn shares(waits: BTreeMap<String, u64>, looks: u64) -> Vec<WaitShare> {
    let mut shares: Vec<WaitShare> = waits
        .into_iter()
        .map(|(event, count)| WaitShare { event, share: count as f64 / looks.max(1) as f64 })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_wait_comes_first_and_all_shares_make_one() {
        let waits = BTreeMap::from([("CPU".to_owned(), 3), ("IO:WALWrite".to_owned(), 1)]);
        let found = shares(waits, 4);
        assert_eq!((found[0].event.as_str(), found[0].share), ("CPU", 0.75));
        assert_eq!(found.iter().map(|wait| wait.share).sum::<f64>(), 1.0);
    }

    #[test]
    fn points_follow_each_other_without_gaps() {
        let mut sampler = Sampler::new(Duration::from_millis(1));
        let (sender, receiver) = std::sync::mpsc::channel();
        let sender = std::sync::Mutex::new(sender);
        sampler.watch(
            0,
            Progress::Unknown,
            Some(Arc::new(move |point: &ProbePoint| {
                let _ = sender.lock().unwrap().send(point.clone());
            })),
        );
        sampler.start(None);
        let first = receiver.recv().unwrap();
        let second = receiver.recv().unwrap();
        sampler.close();
        let points = &sampler.seen().points;
        assert_eq!((&points[0], &points[1]), (&first, &second));
        assert!((first.t_s + second.seconds - second.t_s).abs() < 1e-9);
        assert_eq!((first.read_mb_s, first.wal_mb_s, first.server_cpus), (None, None, None));
    }
}
