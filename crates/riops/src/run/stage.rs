//! A stage whose sessions repeat transactions: sets up caches and probes, and runs the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::active::ActiveRun;
use super::error::RunError;
use crate::engine::run_stage;
use crate::plan::{Caches, WorkPlan};
use crate::probe::Probe;
use crate::probe::caches::{self, CacheState};
use crate::probe::database::{DatabaseProbe, checkpoints_sql};
use crate::probe::sampler::Sampler;
use crate::probe::yugabytedb::ClusterProbe;
use crate::record::Measured;
use crate::server::{ConnectionError, Flavor};
use crate::workload::{OnMessage, Stage, Work, Workload};

/// Number of notices of the server that are shown.
const NOTICES_SHOWN: u64 = 20;

/// A stage to be run.
pub(super) struct LoopStage {
    pub(super) workload: Box<dyn Workload>,
    /// Work of this stage in the plan.
    pub(super) work: WorkPlan,
}

impl ActiveRun<'_> {
    /// Runs a stage. If it is one of several, the observer receives its name first.
    pub(super) fn run_loop(
        &mut self,
        loop_stage: &LoopStage,
        one_of_several: bool,
    ) -> Result<Measured, RunError> {
        let LoopStage { workload, work } = loop_stage;
        let mut stage = workload.stages(&self.plan).pop().ok_or_else(|| {
            RunError::Unsuitable(format!("the workload {} has no stages", workload.name()))
        })?;
        if one_of_several {
            self.observer.notice(&format!("stage: {}", stage.name));
        }
        for sql in workload.before_stage_sql() {
            self.control.execute(&sql)?;
        }
        let tables = workload.table_names();
        let used = workload.used_table_names();
        let caches = self.set_caches(work.spec().caches(), (&tables, &used))?;
        let settings = self.settings_of(&mut stage);
        let cluster = self.cluster_probe();
        let mut sampler = self.sampler()?;
        sampler.watch_sessions(u32::try_from(stage.sessions.len()).unwrap_or(u32::MAX));
        let devices = self.devices(&tables)?;
        let mut probe = Probe::machine(self.environment.local_data())
            .with_server(self.environment.local().map(|local| local.process))
            .with_devices(&devices);
        // With several nodes, the counters of one node are not those of the cluster.
        if self.nodes.allowed().len() == 1 {
            let database = DatabaseProbe::new(&mut self.control, &tables)?;
            let explained = workload.read_samples();
            probe = probe.with_database(match settings {
                Some(settings) => database.with_read_explains(settings, explained),
                None => database,
            });
        }
        let mut probe = probe.with_cluster(cluster).with_sampler(&mut sampler);
        let on_message = self.observer.messages();
        let notices = Arc::new(AtomicU64::new(0));
        let shows_all = self.plan.work.spec().allows_no_transactions();
        let on_notice = counted(&notices, &on_message, shows_all);
        for session in &mut stage.sessions {
            if let Work::Client(generator) = &mut session.work {
                generator.show_with(&on_message);
                generator.notify_with(&on_notice);
            }
        }
        self.observer.stage(&stage.name, &self.plan);
        let mut result = run_stage(
            stage,
            workload.accesses(),
            &self.plan,
            &self.nodes,
            self.interrupt,
            &mut probe,
            self.observer,
        )?;
        let usage = probe.usage();
        drop(probe);
        result.notices = notices.load(Ordering::Relaxed);
        if result.notices > NOTICES_SHOWN && !shows_all {
            let count = crate::units::count(result.notices);
            self.observer.notice(&format!("{count} notices and warnings of the server"));
        }
        let row_bytes = if self.plan.row_size { self.row_bytes(workload.as_ref()) } else { None };
        Ok(Measured { work: work.clone(), result, usage, caches, row_bytes })
    }

    /// Brings the caches into the requested state: empties them of all tables, or fills them with the used ones.
    fn set_caches(
        &mut self,
        wanted: Caches,
        (tables, used): (&[String], &[String]),
    ) -> Result<Option<CacheState>, RunError> {
        if wanted != Caches::AsFound && self.nodes.allowed().len() > 1 {
            let text = "--cold and --warm are not supported with several nodes: specify one host, or use --spread off";
            return Err(RunError::Unsuitable(text.to_owned()));
        }
        let state = match wanted {
            Caches::AsFound => return Ok(None),
            Caches::Cold | Caches::ColdTry => {
                caches::cool(&mut self.control, tables, self.environment.local_data())?
            }
            Caches::Warm => caches::warm(&mut self.control, used)?,
        };
        self.report_caches(&state);
        Ok(Some(state))
    }

    /// Warns if the caches are not in the requested state.
    pub(super) fn report_caches(&mut self, state: &CacheState) {
        if !state.reached {
            self.observer.notice(&format!(
                "warning: the caches are not as {} as requested: shared buffers: {}; page cache: {}",
                state.wanted, state.shared_buffers, state.page_cache
            ));
        }
    }

    /// Returns the session settings of a stage, or `None` if it has none because a pooler would leak them
    /// to other sessions.
    fn settings_of(&self, stage: &mut Stage) -> Option<Vec<String>> {
        if self.environment.is_transaction_pooled() {
            stage.sessions.iter_mut().for_each(|session| session.settings.clear());
            stage.explain_by_name = false;
            return None;
        }
        Some(stage.sessions.first().map(|session| session.settings.clone()).unwrap_or_default())
    }

    /// Returns a sampler of this machine and, if one PostgreSQL server sees all sessions, of that server.
    fn sampler(&mut self) -> Result<Sampler, RunError> {
        let sampler = Sampler::new(self.plan.interval());
        let visible = self.nodes.allowed().len() == 1
            && !self.environment.is_transaction_pooled()
            && self.environment.facts.flavor == Flavor::PostgreSql;
        if !visible {
            return Ok(sampler);
        }
        let checkpoints = checkpoints_sql(&mut self.control)?;
        let is_local = self.environment.local().is_some();
        match sampler.with_server(&self.server.conninfo, checkpoints, is_local, self.interrupt) {
            Ok(sampler) => Ok(sampler),
            Err(ConnectionError::Interrupted) => Err(ConnectionError::Interrupted.into()),
            // The run itself may still be possible, with the last free connections.
            Err(error) => {
                self.observer.notice(&format!("wait events are not sampled: {error}"));
                Ok(Sampler::new(self.plan.interval()))
            }
        }
    }

    /// Returns a probe for the metrics of the YugabyteDB nodes.
    fn cluster_probe(&self) -> Option<ClusterProbe> {
        let nodes = self.nodes.list();
        let hosts = nodes.iter().map(|node| node.host.as_str());
        self.nodes.are_discovered().then(|| ClusterProbe::new(hosts, self.plan.metrics_port))
    }

    fn row_bytes(&mut self, workload: &dyn Workload) -> Option<u64> {
        let sql = workload.row_size_sql()?;
        self.control.query_value(&sql).ok().flatten()?.parse().ok()
    }
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
