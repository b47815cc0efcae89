//! Samples the counters over time: one point per interval, and the wait events of one server process, or of
//! all sessions of a run, up to five times per second.
//!
//! Uses a dedicated thread and, for server counters, a dedicated connection. Unavailable values are
//! absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::clock::ClockWatch;
use super::cpu::{self, MachineCpu, process_cpu_s};
use super::database::LOG_POSITION;
use super::device::{Device, DeviceCounters};
use super::memory::memory_of_server;
pub use super::profile::AUTOVACUUM;
use super::profile::{self, Profile, active_event};
use super::reading::{column, integers, leave_untracked, prepared};
use super::wait_sampling::WaitSampling;
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};
use riops_model::plan::PointLength;
use riops_model::record::{DeviceUse, ProbePoint, Sampled, ServerProgress};

/// The wait events of all sessions of a run.
const SESSIONS_SAMPLE: &str = include_str!("../../sql/probe/sessions.sql");
/// The condition for the sessions of a run, which are in one database.
const OF_RUN: &str = "a.application_name = current_setting('application_name')";
const NO_PLACE: &str = "''";
/// The database of a session.
const DATABASE: &str =
    "coalesce((select d.datname::text from pg_database as d where d.oid = a.datid), '')";
/// Sessions that hold the locks for which sessions of the run wait.
const BLOCKERS: &str = include_str!("../../sql/probe/blockers.sql");
/// Timeout of a query. After a timeout the connection is not used again, because a late reply would be
/// taken for the reply to the next query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum length of the last point, as a share of the interval. A shorter one is dropped unless it is
/// the only point.
const LAST_SHARE_MIN: f64 = 0.2;
/// Callback for each new point.
pub type OnPoint = Arc<dyn Fn(&ProbePoint) + Send + Sync>;

/// Source of a statement's progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// No progress information.
    Unknown,
    /// A query that returns phase, done and total.
    Query(String),
    /// The size of the database's files.
    DatabaseSize,
}

/// Processes or sessions that are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Watched {
    Nothing,
    /// One process of the server.
    Process(i32, Progress),
    /// This number of sessions, which share the `application_name`; 0: all sessions that the query returns, including
    /// idle ones.
    Sessions(u32),
}

/// State of sampling on the server.
struct ServerSampler {
    connection: Connection,
    /// Backend process of this connection, if it runs on this machine.
    own_process: Option<i32>,
    /// Whether no other client gets the session.
    is_dedicated: bool,
    watched: Watched,
    /// The extension `pg_wait_sampling`, if it is installed.
    wait_sampling: Option<WaitSampling>,
    checkpoints_sql: &'static str,
    /// The query of all sessions.
    sessions_sql: String,
    /// Whether the connection failed.
    has_failed: bool,
    /// Queries that failed before. An older server does not support them and would log an error each
    /// time.
    failed_queries: BTreeSet<String>,
}

/// Samples from the start of a measurement to its end.
pub struct Sampler {
    interval: Duration,
    length: PointLength,
    server: Option<ServerSampler>,
    on_point: Option<OnPoint>,
    /// The stop channel of the sampling thread.
    running: Option<(SyncSender<()>, JoinHandle<Sampling>)>,
    sampled: Sampled,
}

impl Sampler {
    /// Creates a sampler of this machine with one point per `interval`; the stored ones have this `length`.
    pub fn new(interval: Duration, length: PointLength) -> Self {
        let sampled = Sampled::default();
        Self { interval, length, server: None, on_point: None, running: None, sampled }
    }

    /// Adds the server. `is_local` states whether its processes run on this machine, `is_dedicated` whether no other client gets
    /// the session of a connection.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the connection cannot be established or prepared.
    pub fn with_server(
        mut self,
        conninfo: &ConnInfo,
        is_local: bool,
        checkpoints_sql: &'static str,
        is_dedicated: bool,
        interrupt: &Interrupt,
    ) -> Result<Self, ConnectionError> {
        let mut connection = Connection::open(conninfo, interrupt)?;
        // An interruption applies to the watched statement, not to this connection.
        connection.set_interrupt(&Interrupt::new());
        if is_dedicated {
            leave_untracked(&mut connection)?;
        }
        let sessions = sessions_sample(OF_RUN, NO_PLACE);
        let sessions_sql = prepared(&mut connection, is_dedicated, "riops_sessions", &sessions)?;
        let wait_sampling = WaitSampling::new(&mut connection)?;
        let own_process = (is_local && is_dedicated).then_some(connection.session_info().process);
        self.server = Some(ServerSampler {
            connection,
            own_process,
            is_dedicated,
            watched: Watched::Nothing,
            wait_sampling,
            has_failed: false,
            failed_queries: BTreeSet::new(),
            checkpoints_sql,
            sessions_sql,
        });
        Ok(self)
    }

    /// Starts watching this process and its progress.
    pub fn watch(&mut self, process: i32, progress: Progress, on_point: Option<OnPoint>) {
        self.on_point = on_point;
        if let Some(server) = &mut self.server {
            server.watched = Watched::Process(process, progress);
        }
    }

    /// Starts watching this number of sessions, which have the `application_name` of the sampler.
    pub fn watch_sessions(&mut self, sessions: u32, on_point: OnPoint) {
        self.on_point = Some(on_point);
        if let Some(server) = &mut self.server {
            server.watched = Watched::Sessions(sessions);
        }
    }

    /// Starts watching the sessions that fulfill a condition on `pg_stat_get_activity`, instead of the sessions of the
    /// run.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the query cannot be prepared.
    pub fn observe(&mut self, own: &str, on_point: OnPoint) -> Result<(), ConnectionError> {
        if let Some(server) = &mut self.server {
            let sql = sessions_sample(&format!("({own} and not {OF_RUN})"), DATABASE);
            let name = "riops_observed";
            let ServerSampler { connection, is_dedicated, sessions_sql, .. } = server;
            *sessions_sql = prepared(connection, *is_dedicated, name, &sql)?;
        }
        self.watch_sessions(0, on_point);
        Ok(())
    }

    pub(super) fn start(&mut self, device: Option<Device>) {
        let (stop, stopped) = sync_channel(1);
        let mut state = SamplerThread {
            interval: self.interval,
            length: self.length,
            device,
            server: self.server.take(),
            on_point: self.on_point.clone(),
            start: Instant::now(),
            workers: BTreeMap::new(),
            work_us: f64::INFINITY,
            own_before_s: 0.0,
            stopped,
        };
        // Read the first counters in this thread, before the measurement: a short statement must not be
        // disturbed at its start.
        state.own_before_s = state.own_cpu_s();
        if let Some(sampling) =
            state.server.as_mut().and_then(|server| server.wait_sampling.as_mut())
        {
            sampling.start();
        }
        let first = state.counters();
        state.own_before_s -= cpu::thread_seconds();
        state.start = first.at;
        let thread = std::thread::Builder::new().name("riops-sampler".to_owned());
        self.running = thread.spawn(move || state.run(first)).ok().map(|thread| (stop, thread));
    }

    /// Ends the last point.
    pub(super) fn end(&mut self) {
        if let Some((stop, _)) = &self.running {
            let _ = stop.try_send(());
        }
    }

    pub(super) fn close(&mut self) {
        self.end();
        if let Some((sampled, server)) =
            self.running.take().and_then(|(_, thread)| thread.join().ok())
        {
            (self.sampled, self.server) = (sampled, server);
        }
    }

    /// Returns the samples of the last stage.
    pub fn seen(&self) -> &Sampled {
        &self.sampled
    }
}

/// Result of the sampling thread: the samples, and the state of the server.
type Sampling = (Sampled, Option<ServerSampler>);

/// State of the sampling thread.
struct SamplerThread {
    interval: Duration,
    length: PointLength,
    device: Option<Device>,
    server: Option<ServerSampler>,
    on_point: Option<OnPoint>,
    start: Instant,
    /// CPU time of parallel workers. An exited worker counts with its last known value.
    workers: BTreeMap<i32, f64>,
    /// Shortest CPU time of the fixed piece of work in the interval: another thread on the same core, such as one of the
    /// server, makes single readings longer.
    work_us: f64,
    /// CPU time of the connection's backend before sampling, minus the client-side cost of the first
    /// sample, in seconds.
    own_before_s: f64,
    stopped: Receiver<()>,
}

/// Monotonic counters at one point in time.
#[derive(Debug, Clone)]
struct Counters {
    at: Instant,
    device: Option<DeviceCounters>,
    machine: Option<MachineCpu>,
    server_cpu_s: Option<f64>,
    log_position: Option<u64>,
    server_memory_bytes: Option<u64>,
    /// Number of checkpoints, and of buffers written by them.
    checkpoints: Option<(u64, u64)>,
    /// CPU time of a fixed piece of work.
    work_us: f64,
}

/// The stored points, and the intervals that the next one covers.
struct Series {
    points: Vec<ProbePoint>,
    first: Counters,
    intervals: usize,
    /// The shortest of them.
    work_us: f64,
}

impl Series {
    fn new(first: Counters) -> Self {
        Self { points: Vec::new(), first, intervals: 0, work_us: f64::INFINITY }
    }

    fn cover(&mut self, end: &Counters) {
        self.intervals += 1;
        self.work_us = self.work_us.min(end.work_us);
    }

    fn store(&mut self, point: ProbePoint, end: Counters) {
        self.points.push(ProbePoint { processor_work_us: Some(self.work_us), ..point });
        (self.first, self.intervals, self.work_us) = (end, 0, f64::INFINITY);
    }
}

impl SamplerThread {
    fn run(mut self, first: Counters) -> Sampling {
        let mut sampled = Sampled::default();
        let mut profile = Profile::default();
        let mut fastest = Duration::MAX;
        let mut sample_due = self.start + profile::SAMPLE_INTERVAL;
        let mut clock = ClockWatch::default();
        let mut series = Series::new(first.clone());
        let mut last = first;
        let mut due = self.start + self.interval;
        loop {
            clock.read(self.start.elapsed().as_secs_f64());
            let now = Instant::now();
            let next = if self.is_watching() { due.min(sample_due) } else { due };
            let pause = next.saturating_duration_since(now);
            let over = !matches!(self.stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
            if over {
                self.end_last(last, &mut series);
                break;
            }
            if self.is_watching() && Instant::now() >= sample_due {
                let asked = Instant::now();
                self.sample_waits(&mut profile);
                fastest = fastest.min(asked.elapsed());
                self.work_us = self.work_us.min(cpu::work_us());
                sample_due = Instant::now() + profile::pause_after(fastest);
            }
            if Instant::now() >= due {
                let now = self.counters();
                self.end_interval(&last, &now, &profile, &mut series);
                last = now;
                due = (due + self.interval).max(Instant::now());
            }
        }
        clock.read(self.start.elapsed().as_secs_f64());
        (sampled.points, sampled.clock_steps) = (series.points, clock.steps);
        sampled.waits = profile.waits();
        sampled.others = profile.others();
        sampled.blockers = profile.blockers();
        let watched = self.server.as_ref().map(|server| &server.watched);
        if let Some(&Watched::Sessions(sessions)) = watched {
            sampled.observed_sessions = (sessions == 0).then(|| profile.sessions());
            sampled.backends_max = profile.backends_max(sessions);
        }
        sampled.databases = profile.databases();
        sampled.session_time = profile.batches.shares();
        let extension = self.server.as_ref().and_then(|server| server.wait_sampling.as_ref());
        let finer = extension.map(WaitSampling::session_time).unwrap_or_default();
        if !finer.is_empty() {
            sampled.session_time = finer;
            sampled.session_time_source = Some("pg_wait_sampling".to_owned());
        }
        sampled.lock_waits = profile.lock_waits();
        sampled.looks = profile.samples;
        // A lost connection has another process afterwards, whose CPU time began at 0.
        sampled.cpu_s = (self.own_cpu_s() - self.own_before_s).max(cpu::thread_seconds());
        (sampled, self.server)
    }

    /// Shows an interval, and stores the point that ends with it.
    fn end_interval(
        &mut self,
        last: &Counters,
        now: &Counters,
        profile: &Profile,
        series: &mut Series,
    ) {
        let Some(mut point) = self.point(last, now) else {
            return;
        };
        if let Some(on_point) = &self.on_point {
            point.waits = profile.waits();
            on_point(&point);
        }
        series.cover(now);
        if series.intervals >= self.length.after(series.points.len())
            && let Some(counted) = self.counted(&series.first, now)
        {
            let (database_bytes, progress) = (point.database_bytes, point.progress);
            series.store(ProbePoint { database_bytes, progress, ..counted }, now.clone());
        }
    }

    /// Stores the last point.
    fn end_last(&mut self, mut last: Counters, series: &mut Series) {
        let seconds = last.at.elapsed().as_secs_f64();
        let is_first = series.points.is_empty() && series.intervals == 0;
        if is_first || seconds >= LAST_SHARE_MIN * self.interval.as_secs_f64() {
            last = self.counters();
            series.cover(&last);
        }
        if series.intervals > 0
            && let Some(point) = self.point(&series.first, &last)
        {
            series.store(point, last);
        }
    }

    /// Returns the CPU time of this thread, which is new in each stage, and of the connection's
    /// backend, which is not.
    fn own_cpu_s(&self) -> f64 {
        let process = self.server.as_ref().and_then(|server| server.own_process);
        cpu::thread_seconds() + process.and_then(process_cpu_s).unwrap_or(0.0)
    }

    fn counters(&mut self) -> Counters {
        let mut counters = Counters {
            at: Instant::now(),
            device: self.device.as_ref().and_then(Device::read),
            machine: MachineCpu::read(),
            server_cpu_s: None,
            server_memory_bytes: None,
            log_position: None,
            checkpoints: None,
            work_us: std::mem::replace(&mut self.work_us, f64::INFINITY).min(cpu::work_us()),
        };
        let Some(server) = &mut self.server else {
            return counters;
        };
        server.sample_extension();
        counters.server_memory_bytes = server.own_process.and_then(memory_of_server);
        counters.log_position = server.numbers(LOG_POSITION).map(|[bytes]| bytes);
        let checkpoints = server.numbers(server.checkpoints_sql);
        counters.checkpoints =
            checkpoints.map(|[timed, requested, buffers]| (timed + requested, buffers));
        if let (Some(_), &Watched::Process(watched, _)) = (server.own_process, &server.watched) {
            let sql = format!("select pid from pg_stat_activity where leader_pid = {watched}");
            let parallel = column(server.query(&sql).unwrap_or_default()).into_iter();
            self.workers.extend(parallel.filter_map(|pid| Some((pid, process_cpu_s(pid)?))));
            counters.server_cpu_s =
                process_cpu_s(watched).map(|own| own + self.workers.values().sum::<f64>());
        }
        counters
    }

    fn point(&mut self, last: &Counters, now: &Counters) -> Option<ProbePoint> {
        let mut point = self.counted(last, now)?;
        if let Some(server) = &mut self.server
            && let Watched::Process(_, progress) = &server.watched
        {
            match progress.clone() {
                Progress::Unknown => {}
                Progress::Query(sql) => point.progress = server.progress(&sql),
                Progress::DatabaseSize => {
                    let size = server.numbers("select pg_database_size(current_database())");
                    point.database_bytes = size.map(|[bytes]| bytes);
                }
            }
        }
        Some(point)
    }

    /// Returns the differences of the counters.
    fn counted(&self, last: &Counters, now: &Counters) -> Option<ProbePoint> {
        let seconds = now.at.duration_since(last.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let device = || {
            let change = now.device.as_ref()?.since(last.device.as_ref()?);
            Some(self.device.as_ref()?.usage(&change, seconds))
        };
        let device = device();
        let of_device = |figure: fn(&DeviceUse) -> f64| device.as_ref().map(figure);
        let checkpoints = now.checkpoints.zip(last.checkpoints);
        let mb_s = |bytes: u64| bytes as f64 / 1e6 / seconds;
        let machine_busy_share = || now.machine?.busy_share_since(last.machine?);
        let server_cpus = || Some(((now.server_cpu_s? - last.server_cpu_s?) / seconds).max(0.0));
        let wal_mb_s = || now.log_position?.checked_sub(last.log_position?).map(mb_s);
        Some(ProbePoint {
            t_s: now.at.duration_since(self.start).as_secs_f64(),
            seconds,
            read_mb_s: of_device(|device| device.read_mb_s),
            write_mb_s: of_device(|device| device.write_mb_s),
            reads_per_s: of_device(|device| device.reads_per_s),
            writes_per_s: of_device(|device| device.writes_per_s),
            busy_share: of_device(|device| device.busy_share),
            machine_busy_share: machine_busy_share(),
            server_cpus: server_cpus(),
            processor_work_us: Some(now.work_us),
            dirty_bytes: crate::probe::memory::memory().map(|memory| memory.dirty_bytes),
            server_memory_bytes: now.server_memory_bytes,
            wal_mb_s: wal_mb_s(),
            checkpoints: checkpoints.map(|(now, last)| now.0.saturating_sub(last.0)),
            checkpoint_mb_s: checkpoints.map(|(now, last)| {
                mb_s(now.1.saturating_sub(last.1) * riops_model::units::BLOCK_BYTES)
            }),
            database_bytes: None,
            progress: None,
            waits: Vec::new(),
        })
    }

    fn is_watching(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.watched != Watched::Nothing)
    }

    /// Samples the wait events. A process that is idle, has exited or is not visible is not counted.
    fn sample_waits(&mut self, profile: &mut Profile) {
        let Some(server) = &mut self.server else {
            return;
        };
        match server.watched {
            Watched::Nothing => {}
            Watched::Process(process, _) => {
                let rows = server.query(&format!(
                    "select state, wait_event_type, wait_event from pg_stat_get_activity({process})"
                ));
                if let Some(event) = rows.as_deref().and_then(<[_]>::first).and_then(active_event) {
                    profile.add_process(event);
                }
            }
            Watched::Sessions(sessions) => {
                if let Some(rows) = server.query(&server.sessions_sql.clone())
                    && profile.add_sessions(sessions, &rows)
                    && let Some(rows) = server.query(BLOCKERS)
                {
                    profile.add_blockers(&rows);
                }
            }
        }
    }
}

fn sessions_sample(own: &str, place: &str) -> String {
    SESSIONS_SAMPLE.replace("{own}", own).replace("{place}", place)
}

impl ServerSampler {
    /// Returns `None` if the query fails or times out.
    fn query(&mut self, sql: &str) -> Option<Vec<Vec<Option<String>>>> {
        if self.has_failed || self.failed_queries.contains(sql) {
            return None;
        }
        self.connection.set_deadline(Some(Instant::now() + QUERY_TIMEOUT));
        let answer = self.connection.query(sql);
        match &answer {
            Ok(_) => {}
            Err(ConnectionError::Server(_)) => drop(self.failed_queries.insert(sql.to_owned())),
            Err(_) => self.has_failed = true,
        }
        answer.ok()
    }

    /// Reads the samples of the extension for the sessions of a run.
    fn sample_extension(&mut self) {
        let sql = self.wait_sampling.as_ref().map(|sampling| sampling.sql.clone());
        if let (&Watched::Sessions(sessions @ 1..), Some(sql)) = (&self.watched, sql)
            && let Some(rows) = self.query(&sql)
            && let Some(sampling) = &mut self.wait_sampling
        {
            sampling.add(sessions, &rows);
        }
    }

    fn numbers<const COUNT: usize>(&mut self, sql: &str) -> Option<[u64; COUNT]> {
        integers(self.query(sql)?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::plan::{Plan, Stop};

    /// Samples until this number of intervals has been shown. Returns them, and what is stored.
    fn sampled(length: PointLength, intervals: usize) -> (Vec<ProbePoint>, Vec<ProbePoint>) {
        let mut sampler = Sampler::new(Duration::from_millis(1), length);
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
        let shown = receiver.iter().take(intervals).collect();
        sampler.close();
        (shown, sampler.seen().points.clone())
    }

    #[test]
    fn points_are_contiguous() {
        let (shown, points) = sampled(PointLength::default(), 2);
        let [first, second] = &shown[..] else { panic!("{shown:?}") };
        assert_eq!((&points[0], &points[1]), (first, second));
        assert!((first.t_s + second.seconds - second.t_s).abs() < 1e-9);
        assert_eq!((first.read_mb_s, first.wal_mb_s, first.server_cpus), (None, None, None));
    }

    #[test]
    fn a_stored_point_of_a_long_run_covers_several_intervals() {
        let stop = Stop::DurationS(12.0);
        let length = Plan { stop, interval_s: 0.001, ..Plan::default() }.point_length();
        let (shown, points) = sampled(length, 7);
        let seconds =
            |from: usize| -> f64 { shown[from..from + 3].iter().map(|point| point.seconds).sum() };
        assert!((points[0].seconds - seconds(0)).abs() < 1e-9, "{points:?}");
        assert!((points[1].seconds - seconds(3)).abs() < 1e-9, "{points:?}");
        let work_us = |point: &ProbePoint| point.processor_work_us.unwrap();
        let least = shown[..3].iter().map(work_us).fold(f64::INFINITY, f64::min);
        assert_eq!((work_us(&points[0]), points[1].t_s), (least, shown[5].t_s));
        // The last point has the rest.
        let end_s = points.last().unwrap().t_s;
        assert!((points.iter().map(|point| point.seconds).sum::<f64>() - end_s).abs() < 1e-9);
    }
}
