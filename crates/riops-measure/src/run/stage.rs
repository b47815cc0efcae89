//! A stage whose sessions repeat transactions: sets up caches and probes, and runs the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::active::{ActiveRun, connect_with_retries};
use super::error::RunError;
use crate::dataset::Registry;
use crate::engine::run_stage;
use crate::probe::database::{DatabaseProbe, checkpoints_sql};
use crate::probe::sampler::{OnPoint, Sampler};
use crate::probe::yugabytedb::ClusterProbe;
use crate::probe::{MachineUse, active_sessions, caches};
use crate::run::parts::Measured;
use crate::server::{ConnectionError, Feature};
use crate::workload::{OnMessage, Stage, Workload};
use riops_model::plan::{Caches, Plan, WorkPlan};
use riops_model::record::{ActivityRecord, CacheState, RunEvent};
use riops_model::units::sql;

/// Number of notices of the server that are shown.
const NOTICES_SHOWN: u64 = 20;

/// A stage to be run.
pub(super) struct LoopStage {
    pub(super) workload: Box<dyn Workload>,
    /// Work of this stage in the plan.
    pub(super) work: WorkPlan,
}

/// Maximum wait for the processes of connections that were closed to make room, and the pause between two attempts.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
const EXIT_PAUSE: Duration = Duration::from_millis(100);

/// Number of connections that the server permits the role in this database.
const CONNECTION_LIMIT: &str = "select case when r.rolsuper then m.connections else least(m.connections, nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1)) end
from (select current_setting('max_connections')::int connections) m, pg_catalog.pg_roles r, pg_catalog.pg_database d
where r.rolname = session_user and d.datname = current_database()";

/// Connections of a stage besides its sessions. A role, a pool or the server may permit no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connections {
    /// One that reads counters, and one that samples the wait events.
    All,
    /// Only the connection that reads counters.
    WithoutSampler,
    /// No other connection while the stage runs.
    OfSessions,
}

/// Whether a stage can do without the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// It is needed.
    Never,
    /// The dataset is not locked then.
    Unlocks,
    /// Nothing depends on it.
    Allowed,
}

impl Connections {
    /// Number of connections in addition to the sessions.
    fn count(self) -> u64 {
        match self {
            Self::All => 2,
            Self::WithoutSampler => 1,
            Self::OfSessions => 0,
        }
    }

    /// Returns the next smaller number and what is missing with it, if there is one.
    fn next_smaller(self, closing: Closing) -> Option<(Self, &'static str)> {
        match self {
            Self::All => Some((
                Self::WithoutSampler,
                "the sessions need the connection that samples wait events: they are not sampled",
            )),
            Self::WithoutSampler if closing != Closing::Never => Some((
                Self::OfSessions,
                if closing == Closing::Unlocks {
                    "the sessions need all connections: the counters of the database are not read, and the dataset is not locked"
                } else {
                    "the sessions need all connections: the counters of the database are not read"
                },
            )),
            _ => None,
        }
    }
}

impl ActiveRun<'_> {
    /// Runs a stage. If it is one of several, its name is announced first.
    pub(super) fn run_loop(
        &mut self,
        loop_stage: &LoopStage,
        one_of_several: bool,
    ) -> Result<Measured, RunError> {
        let workload = &loop_stage.workload;
        let mut stage = stage_of(workload.as_ref(), &self.plan);
        if one_of_several {
            self.hooks.notice(&format!("stage: {}", stage.name));
        }
        for sql in &stage.before {
            self.control.execute(sql)?;
        }
        let caches = self.set_caches(loop_stage)?;
        let (mut connections, mut since) = (Connections::All, Instant::now());
        // Once, because it may print the start of a report.
        self.hooks.events.send(&RunEvent::Stage { name: stage.name.clone() });
        let on_point = self.hooks.on_point();
        loop {
            match self.run_with(loop_stage, stage, &mut connections, Arc::clone(&on_point)) {
                Ok(measured) => return Ok(Measured { caches, ..measured }),
                // The server counts a closed connection until its process has ended.
                Err(error)
                    if error.is_for_want_of_connections()
                        && connections != Connections::All
                        && since.elapsed() < EXIT_TIMEOUT
                        && !self.are_too_many(connections)
                        && self.interrupt.pause(EXIT_PAUSE) => {}
                Err(error) if error.is_for_want_of_connections() => {
                    let closing = self.closing();
                    let (fewer, missing) = connections.next_smaller(closing).ok_or_else(|| {
                        let others = [closing == Closing::Never, self.has_guard];
                        let others: u64 = others.into_iter().map(u64::from).sum();
                        let needed = u64::from(self.plan.own_sessions()) + others;
                        RunError::TooFewConnections { needed, source: Box::new(error) }
                    })?;
                    (connections, since) = (fewer, Instant::now());
                    self.hooks.notice(missing);
                }
                Err(error) => return Err(error),
            }
            stage = stage_of(workload.as_ref(), &self.plan);
        }
    }

    /// Runs a stage with these connections besides its sessions.
    fn run_with(
        &mut self,
        LoopStage { workload, work }: &LoopStage,
        mut stage: Stage,
        connections: &mut Connections,
        on_point: OnPoint,
    ) -> Result<Measured, RunError> {
        let tables = workload.table_names();
        let row_size_sql = stage.row_size_sql.take().filter(|_| self.plan.row_size);
        let settings = self.settings_of(&mut stage);
        let cluster = self.cluster_probe();
        let mut sampler = self.sampler(connections)?;
        let sessions = u32::try_from(stage.sessions.len()).unwrap_or(u32::MAX);
        sampler.watch_sessions(sessions, on_point);
        let mut queries = self.query_probe(&[]);
        let mut probe = self.machine_probe(&tables)?;
        let is_closed = *connections == Connections::OfSessions;
        if is_closed {
            self.control.close();
        }
        // With several nodes, the counters of one node do not cover the cluster.
        if self.nodes.allowed().len() == 1
            && self.control.dialect().has(Feature::Catalogs)
            && !is_closed
        {
            let database = DatabaseProbe::new(&mut self.control, &tables)?;
            let is_dedicated = !self.environment.is_transaction_pooled();
            let mut database = database.with_statements(&stage.statement_texts(), is_dedicated)?;
            // The plans of a script are observed, not expected: the server counts the scans that it executed.
            database.counts_scans = workload.accesses().is_empty();
            let explained = std::mem::take(&mut stage.read_samples);
            if let Some(settings) = settings {
                database.read_explains = (settings, explained);
            }
            probe.database = Some(database);
        }
        (probe.cluster, probe.perf) = (cluster, self.perf.as_mut());
        probe.instructions = self.instructions.as_mut();
        (probe.sampler, probe.queries) = (Some(&mut sampler), Some(&mut queries));
        let on_message = self.hooks.on_message();
        let notices = Arc::new(AtomicU64::new(0));
        let shows_all = self.plan.work.traits().shows_messages;
        let on_notice = counted(&notices, &on_message, shows_all);
        stage.show_with(&on_message, &on_notice);
        let result = run_stage(
            stage,
            workload.accesses(),
            &self.plan,
            &self.nodes,
            self.interrupt,
            &mut probe,
            &mut self.hooks,
        );
        let mut usage = probe.usage();
        drop(probe);
        usage.activity = self.activity(&usage);
        if is_closed {
            self.reopen_control();
        }
        let mut result = result?;
        result.notices = notices.load(Ordering::Relaxed);
        if result.notices > NOTICES_SHOWN && !shows_all {
            let count = riops_model::units::count(result.notices);
            self.hooks.notice(&format!("{count} notices and warnings of the server"));
        }
        let row_bytes =
            row_size_sql.and_then(|sql| self.control.query_value(&sql).ok()??.parse().ok());
        Ok(Measured { work: work.clone(), result, usage, caches: None, row_bytes })
    }

    /// Returns whether the sessions may have the place of the control connection, which holds the lock on the dataset.
    fn closing(&self) -> Closing {
        match self.locked {
            _ if self.plan.work.traits().needs_dedicated_sessions => Closing::Never,
            None => Closing::Allowed,
            Some(locked) if locked.is_shared => Closing::Unlocks,
            Some(_) => Closing::Never,
        }
    }

    /// Returns whether the run needs more connections than the server permits the role. `false` if the limit is unknown.
    fn are_too_many(&mut self, connections: Connections) -> bool {
        if self.environment.is_transaction_pooled() {
            return false;
        }
        let limit = self.control.query_value(CONNECTION_LIMIT).ok().flatten();
        let limit = limit.and_then(|limit| limit.parse::<u64>().ok());
        let needed = u64::from(self.plan.own_sessions()) + connections.count();
        limit.is_some_and(|limit| limit < needed)
    }

    fn reopen_control(&mut self) {
        match connect_with_retries(&self.server, &self.plan) {
            Ok(control) => self.control = control,
            Err(error) => return self.hooks.notice(&format!("warning: {error}")),
        }
        if let Some(locked) = self.locked {
            let mut notice = |text: &str| self.hooks.notice(text);
            let locked = Registry::new(&mut self.control, locked.name).lock(false, &mut notice);
            if let Err(error) = locked {
                self.hooks.notice(&format!("warning: {error}"));
            }
        }
    }

    /// Brings the caches into the requested state: empties them of all tables, or fills them with the used ones.
    fn set_caches(&mut self, loop_stage: &LoopStage) -> Result<Option<CacheState>, RunError> {
        let (wanted, workload) = (loop_stage.work.traits().caches, &loop_stage.workload);
        if wanted != Caches::AsFound && self.nodes.allowed().len() > 1 {
            let text = "--cold and --warm are not supported with several nodes: specify one host, or use --spread off";
            return Err(RunError::Unsuitable(text.to_owned()));
        }
        let state = match wanted {
            Caches::AsFound => return Ok(None),
            Caches::Cold | Caches::ColdTry => {
                let tables = workload.table_names();
                caches::cool(&mut self.control, &tables, self.environment.local_data())?
            }
            Caches::Warm => caches::warm(&mut self.control, &workload.used_table_names())?,
        };
        self.report_caches(&state);
        Ok(Some(state))
    }

    /// Warns if the caches are not in the requested state.
    pub(super) fn report_caches(&mut self, state: &CacheState) {
        if !state.reached {
            self.hooks.notice(&format!(
                "warning: the caches are not as {} as requested: shared buffers: {}; page cache: {}",
                state.wanted, state.shared_buffers, state.page_cache
            ));
        }
    }

    /// Returns the session settings of a stage, or `None` if it has none: a pooler would leak them to other sessions, and a
    /// server that is not PostgreSQL does not have them.
    fn settings_of(&self, stage: &mut Stage) -> Option<Vec<String>> {
        for session in &mut stage.sessions {
            session.settings.extend(self.session_sql.iter().cloned());
        }
        if self.environment.is_transaction_pooled()
            || !self.control.dialect().has(Feature::Catalogs)
        {
            stage.sessions.iter_mut().for_each(|session| session.settings.clear());
            stage.explain_by_name = false;
            return None;
        }
        Some(stage.sessions.first().map(|session| session.settings.clone()).unwrap_or_default())
    }

    /// Returns a sampler of this machine and, if one PostgreSQL server sees all sessions, of that server.
    fn sampler(&mut self, connections: &mut Connections) -> Result<Sampler, RunError> {
        let sampler = Sampler::new(self.plan.interval(), self.plan.point_length());
        let visible = *connections == Connections::All
            && self.nodes.allowed().len() == 1
            && self.control.dialect().has(Feature::WaitEvents);
        if !visible {
            return Ok(sampler);
        }
        let checkpoints = checkpoints_sql(&mut self.control)?;
        match sampler.with_server(
            &self.server.conninfo,
            self.environment.shares_files,
            checkpoints,
            !self.environment.is_transaction_pooled(),
            self.interrupt,
        ) {
            Ok(sampler) => Ok(sampler),
            Err(ConnectionError::Interrupted) => Err(ConnectionError::Interrupted.into()),
            // The run itself may still be possible, with the last free connections.
            Err(error) => {
                *connections = Connections::WithoutSampler;
                self.hooks.notice(&format!("wait events are not sampled: {error}"));
                Ok(Sampler::new(self.plan.interval(), self.plan.point_length()))
            }
        }
    }

    /// Returns a sampler of the sessions that have an application name, or of all other sessions of the database.
    pub(super) fn observing_sampler(
        &mut self,
        application: Option<&str>,
        on_point: OnPoint,
    ) -> Result<Sampler, RunError> {
        let mut sampler = self.sampler(&mut Connections::All.clone())?;
        let own = match application {
            Some(name) => format!("a.application_name = {}", sql::literal(name)),
            None => "a.backend_type = 'client backend' and a.datid = (select oid from pg_database where datname = current_database())".to_owned(),
        };
        sampler.observe(&own, on_point)?;
        Ok(sampler)
    }

    /// Returns a probe for the metrics of the YugabyteDB nodes.
    fn cluster_probe(&self) -> Option<ClusterProbe> {
        let nodes = self.nodes.list();
        let hosts = nodes.iter().map(|node| node.host.as_str());
        self.nodes.are_discovered().then(|| ClusterProbe::new(hosts, self.plan.metrics_port))
    }

    /// Returns the active session history of the nodes; none if they have none, which is said once.
    fn activity(&mut self, usage: &MachineUse) -> Vec<ActivityRecord> {
        let Some(started_at) = usage.started_at.filter(|_| self.nodes.are_discovered()) else {
            return Vec::new();
        };
        match active_sessions::read(&self.nodes.list(), started_at, usage.seconds) {
            Ok(records) => records,
            Err(error) => {
                self.hooks.notice(&format!(
                    "the active session history of the nodes is not available: {error}"
                ));
                Vec::new()
            }
        }
    }
}

/// Returns a stage with the sessions of this client. All are created, because their keys depend on the number of all.
fn stage_of(workload: &dyn Workload, plan: &Plan) -> Stage {
    let mut stage = workload.stage(plan);
    if let Some(share) = plan.share {
        let mut numbers = 0..plan.sessions;
        stage.sessions.retain(|_| numbers.next().is_some_and(|position| share.has(position)));
    }
    stage
}

/// Returns the callback that counts the notices of the server and shows the first, or all of them as pgbench does.
fn counted(count: &Arc<AtomicU64>, on_message: &OnMessage, shows_all: bool) -> OnMessage {
    let (count, on_message) = (Arc::clone(count), Arc::clone(on_message));
    Arc::new(move |text| {
        if count.fetch_add(1, Ordering::Relaxed) < NOTICES_SHOWN || shows_all {
            on_message(text);
        }
    })
}
