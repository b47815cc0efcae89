//! Runs on a prepared dataset, or without one.

use super::active::ActiveRun;
use super::conductor::{FinishedStage, Runner};
use super::error::{Context as _, RunError};
use super::find::{self, RunDataset};
use super::resolve::next_xid;
use super::settle::{Settlement, settle, settle_open_runs};
use super::stage::LoopStage;
use crate::dataset::prepare::require_supported;
use crate::dataset::{Changes, Entry, Holders, Registry, Unreported, verify};
use crate::host::Interrupt;
use crate::run::parts::{Ending, Part};
use crate::server::capabilities::optional;
use crate::server::{Connection, ConnectionError, Feature};
use crate::workload::access::Access;
use crate::workload::{Answers, Build, BuildFor, Questions, Statement};
use riops_model::plan::{Spec, WorkPlan};
use riops_model::record::{Check, ConditionRecord, DatasetRecord};

/// A run whose stages are loops of sessions.
pub(super) struct OnDataset<T> {
    run: T,
    stages: Vec<LoopStage>,
    dataset: Option<OwnDataset>,
    /// Connection that holds the lock on the dataset if the control connection cannot.
    guard: Option<Connection>,
    /// Whether a stage may have changed rows without reporting how many.
    unreported: bool,
    /// Other sessions that held a lock on the dataset.
    other_users: Holders,
    /// Whether riops has changed the tables itself before the run.
    is_maintained: bool,
    /// First transaction id that was assigned after the run began.
    first_xid: Option<u32>,
}

/// The dataset of the run.
struct OwnDataset {
    name: &'static str,
    tables: RunDataset,
    /// State of the tables before the run.
    condition: Option<ConditionRecord>,
}

impl<T: Build + Spec + Clone + Into<WorkPlan>> OnDataset<T> {
    pub(super) fn new(run: &T) -> Self {
        Self {
            run: run.clone(),
            stages: Vec::new(),
            dataset: None,
            guard: None,
            unreported: false,
            other_users: Holders::default(),
            is_maintained: false,
            first_xid: None,
        }
    }

    fn find(&mut self, name: &'static str, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        // Through a transaction-mode pool, the lock needs a dedicated connection with an open transaction.
        if active.environment.is_transaction_pooled() {
            let conninfo = &active.server.conninfo;
            self.guard = Some(Connection::open(conninfo, active.interrupt)?);
        }
        let tables = find::find(name, active, self.guard.as_mut())?;
        self.guard.take_if(|_| !tables.is_registered);
        active.has_guard = self.guard.is_some();
        self.dataset = Some(OwnDataset { name, tables, condition: None });
        self.note_other_users(active);
        // The other clients of a fleet are among them.
        if !self.other_users.0.is_empty() && active.plan.share.is_none() {
            let text = format!("warning: others use the dataset{}", self.other_users);
            active.hooks.notice(&text);
        }
        Ok(())
    }

    /// Notes who else holds a lock on the dataset. Skips this through a pooler, where another session holds the lock of
    /// riops.
    fn note_other_users(&mut self, active: &mut ActiveRun<'_>) {
        if let (Some(dataset), None) = (&self.dataset, &self.guard) {
            let users = Registry::new(&mut active.control, dataset.name).other_users();
            self.other_users.merge(users);
        }
    }

    fn build_stages(&mut self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        let dialect = active.control.dialect();
        for run in self.run.stages() {
            let tables = self.dataset.as_ref().map(|dataset| &dataset.tables);
            let target = BuildFor {
                dataset: tables.map(|tables| &tables.dataset),
                used: tables.map(|tables| &tables.used),
                dialect,
                protocol: active.plan.protocol,
            };
            let mut workload = run.build(target)?;
            require_supported(workload.as_ref(), dialect)?;
            let answers = answers(&mut active.control, &workload.questions())?;
            workload.set_answers(&answers);
            self.stages.push(LoopStage { workload, work: run.into() });
        }
        Ok(())
    }

    /// Executes what the workload wants to be done to the tables before the run.
    fn maintain(&mut self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        if !active.plan.is_first() {
            return Ok(());
        }
        let wanted: Vec<_> = self.stages.iter().map(|stage| stage.workload.maintenance()).collect();
        let sql: Vec<_> = wanted.iter().flat_map(|wanted| &wanted.sql).collect();
        for sql in &sql {
            match active.control.execute(sql) {
                Ok(()) => {}
                Err(ConnectionError::Server(error)) => {
                    active.hooks.notice(&format!("warning: `{sql}` failed: {}", error.message));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.is_maintained = !sql.is_empty();
        if self.is_maintained && active.plan.work.traits().shows_messages {
            // pgbench prints this message.
            (active.hooks.on_message())("starting vacuum...end.");
        }
        let is_uncounted = wanted.iter().any(|wanted| wanted.forgets_baseline);
        self.forget_baseline(is_uncounted, active)
    }

    /// Forgets the baseline of tables that the run may change without counting the changes.
    fn forget_baseline(
        &self,
        is_uncounted: bool,
        active: &mut ActiveRun<'_>,
    ) -> Result<(), RunError> {
        let traits = active.plan.work.traits();
        let changes = self.is_maintained || traits.writes;
        match &self.dataset {
            // Which tables it changes is not known.
            _ if is_uncounted => {
                Registry::new(&mut active.control, traits.name).forget_baseline(None)?;
            }
            Some(dataset) if changes && !dataset.tables.is_registered => {
                let schema = dataset.tables.entry.parameters.get("schema");
                let schema = schema.and_then(|schema| schema.as_str()).unwrap_or_default();
                Registry::new(&mut active.control, dataset.name).forget_baseline(Some(schema))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the tables of the dataset, and creates the routines that the workload needs.
    fn set_up(&mut self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        let dedicated_sessions = !active.environment.is_transaction_pooled();
        let (Some(dataset), Some(first)) = (&mut self.dataset, self.stages.first()) else {
            return Ok(());
        };
        let mut registry = Registry::new(&mut active.control, dataset.name);
        let is_foreign = dataset.tables.entry.is_adopted() || !dataset.tables.is_registered;
        registry.require(&first.workload.table_names(), is_foreign)?;
        // It reads the tables, which the counters of the first of several clients would include.
        if registry.connection().dialect().has(Feature::Heap) && active.plan.is_first() {
            dataset.condition = Some(registry.condition(first.workload.as_ref())?);
        }
        if dataset.tables.is_registered {
            let workload = first.workload.as_ref();
            let mut on_wait = |text: &str| active.hooks.notice(text);
            let tables = &dataset.tables;
            find::note_changes(&mut registry, tables, workload, dedicated_sessions, &mut on_wait)?;
        }
        // The first of several clients has created them for all.
        let stages = self.stages.iter().filter(|_| active.plan.is_first());
        for routines in stages.filter_map(|stage| stage.workload.routines()) {
            registry
                .install(&routines)
                .with_context(|| "cannot create the routines of the server-side loop".to_owned())?;
        }
        Ok(())
    }

    /// Enters the run into the ledger before it changes rows.
    fn open_ledger(&mut self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        let traits = active.plan.work.traits();
        let (Some(dataset), true) = (&mut self.dataset, traits.writes) else {
            return Ok(());
        };
        let OwnDataset { name, tables: RunDataset { entry, is_registered, .. }, .. } = dataset;
        if !*is_registered {
            return Ok(());
        }
        let mut registry = Registry::new(&mut active.control, name);
        settle_open_runs(&mut registry, entry, active.hooks.history)?;
        // Advisory locks reveal other runs in progress.
        let locks_are_reliable = registry.connection().dialect().has(Feature::AdvisoryLocks)
            && !active.environment.is_transaction_pooled();
        let verifies = locks_are_reliable && active.plan.verify && active.plan.is_first();
        let mut unreported = None;
        if let Some(stage) = self.stages.first()
            && traits.adds_changes
            && verifies
            && registry.history(&entry.id)?.bounds().most.is_none()
        {
            let (workload, run) = (stage.workload.as_ref(), active.id.to_string());
            let events = active.hooks.events.clone();
            let mut notice = |text: &str| events.notice(text);
            let outcome = registry.reset_unreported(entry, workload, &run, &mut notice)?;
            match outcome {
                Unreported::Reset => notice(
                    "its changes are unknown, and the current contents become the new baseline",
                ),
                // Other programs may have changed shared tables.
                Unreported::Contradicted if !traits.shares_its_tables => notice(
                    "warning: acknowledged changes of earlier runs are missing in the tables: find the cause, then prepare the dataset again",
                ),
                Unreported::Contradicted | Unreported::InUse => {}
            }
            unreported = Some(outcome);
        }
        // Adopted tables have just been examined, and so have the tables of a run that did not report its changes.
        let is_examined = entry.is_adopted() && !self.is_maintained
            || matches!(unreported, Some(Unreported::Reset | Unreported::InUse));
        if let Some(stage) = self.stages.first()
            && traits.shares_its_tables
            && verifies
            && !is_examined
            && rebase(&mut registry, stage, entry)?
            && !self.is_maintained
        {
            active.hooks.notice("the tables have changed since the last verified run: the current contents become the new baseline");
        }
        registry
            .begin_run(&active.id.to_string(), &entry.id)
            .with_context(|| "cannot insert the run into table \"riops.run\"".to_owned())?;
        self.first_xid = next_xid(&mut active.control);
        Ok(())
    }
}

/// Makes the current contents the baseline if they differ from the contents that the last run left.
fn rebase(
    registry: &mut Registry<'_>,
    stage: &LoopStage,
    entry: &mut Entry,
) -> Result<bool, RunError> {
    let checks = verify(registry, stage.workload.as_ref(), entry)?;
    if checks.iter().all(|check| check.held) {
        return Ok(false);
    }
    Ok(registry.reset_baseline(entry, &stage.workload.contents_sql())?)
}

/// Asks the server what a workload wants to know before the run.
fn answers(connection: &mut Connection, questions: &Questions) -> Result<Answers, RunError> {
    let integers = find::query_integers(connection, &questions.integers)?;
    let prepared = questions
        .statements
        .iter()
        .map(|statement| can_be_prepared(connection, &questions.settings, statement));
    Ok(Answers { integers, can_be_prepared: prepared.collect::<Result<_, _>>()? })
}

/// Returns whether a statement can be prepared now. It gets no name, so that nothing of it is left behind a pooler.
fn can_be_prepared(
    connection: &mut Connection,
    settings: &[String],
    statement: &Statement,
) -> Result<bool, ConnectionError> {
    connection.with_path(settings, |connection| {
        let prepared = connection.prepare("", &statement.sql, &statement.parameter_types);
        Ok(optional(prepared)?.is_some())
    })
}

impl<T: Build + Spec + Clone + Into<WorkPlan>> Runner for OnDataset<T> {
    fn begin(&mut self, active: &mut ActiveRun<'_>) -> Result<usize, RunError> {
        if let Some(name) = active.plan.work.traits().dataset {
            self.find(name, active)?;
        }
        self.build_stages(active)?;
        self.maintain(active)?;
        self.set_up(active)?;
        self.open_ledger(active)?;
        Ok(self.stages.len())
    }

    fn stage(
        &mut self,
        position: usize,
        active: &mut ActiveRun<'_>,
    ) -> Result<FinishedStage, RunError> {
        let several = self.stages.len() > 1;
        let stage = self.stages.get(position).ok_or_else(|| {
            RunError::Unsuitable(format!("the run has no stage {}", position + 1))
        })?;
        let measured = active.run_loop(stage, several)?;
        Ok(FinishedStage::new(Part::Loop(Box::new(measured))))
    }

    fn handle_failed_stage(
        &mut self,
        error: &RunError,
        nothing_measured: bool,
        active: &mut ActiveRun<'_>,
    ) {
        self.unreported = !error.precedes_any_statement();
        let Some(dataset) = &self.dataset else {
            return;
        };
        let is_counted = active.plan.work.traits().writes && dataset.tables.is_registered;
        if nothing_measured && !self.unreported && is_counted {
            // A new connection, because the control connection may have been interrupted.
            let _ =
                Connection::open(&active.server.conninfo, &Interrupt::new()).map(|mut fresh| {
                    let mut registry = Registry::new(&mut fresh, dataset.name);
                    registry.end_run(&active.id.to_string(), &Changes::default())
                });
        }
    }

    fn end(
        &mut self,
        active: &mut ActiveRun<'_>,
        parts: &[Part],
        ending: &mut Ending,
    ) -> Vec<Check> {
        self.note_other_users(active);
        let mut checks = Vec::new();
        // A stage without a report leaves the ledger entry open.
        let registered = self.dataset.as_ref().filter(|dataset| dataset.tables.is_registered);
        if let (Some(dataset), false) = (registered, self.unreported) {
            let settlement = Settlement {
                dataset: dataset.name,
                entry: &dataset.tables.entry,
                stages: &self.stages,
                parts,
                first_xid: self.first_xid,
            };
            checks = settle(active, &settlement, ending);
        }
        if let Some(mut guard) = self.guard.take()
            && let Err(error) = guard.query_value("select 1")
        {
            let expected = "held until the end of the run";
            checks.push(crate::workload::check::failed(
                "lock on the dataset",
                expected,
                &error.to_string(),
            ));
        }
        checks
    }

    fn dataset(&self) -> Option<DatasetRecord> {
        let OwnDataset { tables, condition, .. } = self.dataset.as_ref()?;
        Some(DatasetRecord {
            id: tables.entry.id.clone(),
            other_users: self.other_users.0.clone(),
            condition: condition.clone(),
            parameters: tables.dataset.clone(),
        })
    }

    fn accesses(&self) -> Vec<Access> {
        self.stages.first().map(|stage| stage.workload.accesses()).unwrap_or_default()
    }
}
