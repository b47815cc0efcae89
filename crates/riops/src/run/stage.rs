//! One stage whose sessions repeat transactions: caches, counters, the engine.

use super::error::RunError;
use super::scene::Scene;
use crate::engine::run_stage;
use crate::plan::{Caches, WorkPlan};
use crate::probe::Probe;
use crate::probe::caches::{self, CacheState};
use crate::probe::database::DatabaseProbe;
use crate::probe::sampler::Sampler;
use crate::probe::waits::LockSampler;
use crate::probe::yugabytedb::ClusterProbe;
use crate::record::Measured;
use crate::server::Flavor;
use crate::workload::{Stage, Workload};

/// A stage that is to be run.
pub(super) struct LoopStage {
    pub(super) workload: Box<dyn Workload>,
    /// The part of the plan that is this stage's.
    pub(super) work: WorkPlan,
}

impl Scene<'_> {
    /// Runs a stage. One of several is announced by its name.
    pub(super) fn run_loop(
        &mut self,
        loop_stage: &LoopStage,
        one_of_several: bool,
    ) -> Result<Measured, RunError> {
        let LoopStage { workload, work } = loop_stage;
        let mut stage = workload.stages(&self.plan).pop().ok_or_else(|| {
            RunError::Unsuitable(format!("the workload {} has no stage", workload.name()))
        })?;
        if one_of_several {
            self.observer.notice(&format!("stage: {}", stage.name));
        }
        for sql in workload.settle_sql() {
            self.control.execute(&sql)?;
        }
        let tables = workload.table_names();
        let caches = self.set_caches(work.spec().caches(), &tables)?;
        let settings = self.settings_of(&mut stage);
        let (locks, cluster) = (self.lock_sampler(work), self.cluster_probe());
        let mut sampler = Sampler::new(self.plan.interval());
        let local_data = self.environment.local_data();
        let mut probe = Probe::machine(local_data);
        // What one server of several has counted says nothing about all.
        if self.nodes.allowed().len() == 1 {
            let database = DatabaseProbe::new(&mut self.control, &tables)?;
            let explained = workload.read_samples();
            probe = probe.with_database(match settings {
                Some(settings) => database.with_read_looks(settings, explained),
                None => database,
            });
        }
        let mut probe = probe.with_locks(locks).with_cluster(cluster).with_sampler(&mut sampler);
        self.observer.stage(&self.plan);
        let result = run_stage(
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
        let row_bytes = if self.plan.row_size { self.row_bytes(workload.as_ref()) } else { None };
        Ok(Measured { work: work.clone(), result, usage, caches, row_bytes })
    }

    /// Brings the caches into the state that the plan wants.
    fn set_caches(
        &mut self,
        wanted: Caches,
        tables: &[String],
    ) -> Result<Option<CacheState>, RunError> {
        if wanted != Caches::AsFound && self.nodes.allowed().len() > 1 {
            let text = "--cold and --warm know the caches of one server: name one host, or use --spread off";
            return Err(RunError::Unsuitable(text.to_owned()));
        }
        let state = match wanted {
            Caches::AsFound => return Ok(None),
            Caches::Cold => caches::cool(&mut self.control, tables, self.environment.local_data())?,
            Caches::Warm => caches::warm(&mut self.control, tables)?,
        };
        self.report_caches(&state);
        Ok(Some(state))
    }

    /// Warns where the caches are not as they were wanted.
    pub(super) fn report_caches(&mut self, state: &CacheState) {
        if !state.reached {
            self.observer.notice(&format!(
                "warning: the caches are not as {} as wanted: shared buffers: {}; page cache: {}",
                state.wanted, state.shared_buffers, state.page_cache
            ));
        }
    }

    /// The settings of a stage's sessions; `None` where they have none because a pooler would keep them for
    /// everybody.
    fn settings_of(&self, stage: &mut Stage) -> Option<Vec<String>> {
        if self.environment.by_transaction() {
            stage.sessions.iter_mut().for_each(|session| session.settings.clear());
            stage.explain_by_name = false;
            return None;
        }
        Some(stage.sessions.first().map(|session| session.settings.clone()).unwrap_or_default())
    }

    /// Counts lock waits where sessions can wait for each other and one server knows all of them.
    fn lock_sampler(&self, work: &WorkPlan) -> Option<LockSampler> {
        let spec = work.spec();
        let contended = spec.counts_effects() && spec.writes();
        let known =
            self.nodes.allowed().len() == 1 && self.environment.facts.flavor == Flavor::PostgreSql;
        (contended && known).then(|| LockSampler::new(&self.server.conninfo))
    }

    /// Asks the nodes of YugabyteDB for their own figures.
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
