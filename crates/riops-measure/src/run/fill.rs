//! Loads: each method creates, fills and verifies the table.

use super::active::{ActiveRun, connect_with_retries};
use super::conductor::{FinishedStage, Runner};
use super::error::{Context as _, RunError};
use super::find::plan_of;
use super::settle::{changes, checks_or_reason, interrupt_after, not_verified};
use super::stage::LoopStage;
use crate::dataset::prepare::require_supported;
use crate::dataset::{DatasetError, Entry, Holders, Registry, State};
use crate::engine::SessionError;
use crate::host::Interrupt;
use crate::run::parts::{Ending, Measured, Part};
use crate::server::{Connection, ConnectionError, Feature, Server};
use crate::workload::Workload;
use crate::workload::access::Access;
use crate::workload::check::Ledger;
use crate::workload::fill;
use crate::workload::load::{FILE_RIGHTS, Load, NAME};
use riops_model::plan::{DatasetPlan, LoadDataset, LoadRun, Method, PlanError, Spec as _};
use riops_model::record::{Check, DatasetRecord};
use riops_model::units::count;
use riops_model::units::sql::literal;

/// A run in which each stage creates and fills the table.
pub(super) struct Fill {
    run: LoadRun,
    stages: Vec<Load>,
    /// Parameters of the table that was filled last, or of the plan before the first stage.
    table: LoadDataset,
    /// Dataset generation id of the table that was filled last.
    id: String,
}

impl Fill {
    pub(super) fn new(run: &LoadRun) -> Self {
        let table = LoadDataset::default();
        Self { run: run.clone(), stages: Vec::new(), table, id: String::new() }
    }

    /// Checks all preconditions before a table is dropped, and locks the dataset.
    fn check_preconditions(&self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        let sessions = active.plan.sessions;
        let most = active.control.query_value("show max_connections")?;
        if let Some(most) = most.filter(|most| most.parse().is_ok_and(|most: u32| sessions > most))
        {
            return Err(RunError::Unsuitable(format!(
                "--sessions {sessions} exceeds max_connections of the server, {most}"
            )));
        }
        for load in &self.stages {
            require_supported(load, load.table.dialect)?;
            require_files(&mut active.control, &load.files(sessions), &active.server)?;
        }
        let mut registry = Registry::new(&mut active.control, NAME);
        registry.lock(true, &mut |text| active.hooks.notice(text))?;
        registry.ensure()?;
        self.install(&mut registry).inspect_err(|_| {
            // The registry may have been created only for this load.
            let _ = registry.drop_registry_if_empty();
        })
    }

    fn install(&self, registry: &mut Registry<'_>) -> Result<(), RunError> {
        require_no_loaded_table(registry, &self.run, &self.table)?;
        for routines in self.stages.iter().filter_map(Workload::routines) {
            registry
                .install(&routines)
                .with_context(|| "cannot create the load procedure".to_owned())?;
        }
        Ok(())
    }
}

impl Runner for Fill {
    fn begin(&mut self, active: &mut ActiveRun<'_>) -> Result<usize, RunError> {
        let wanted = active.plan.prepared()?;
        let table: Option<&LoadDataset> = wanted.as_ref().and_then(DatasetPlan::get);
        self.table = table
            .cloned()
            .ok_or_else(|| PlanError("invalid plan: the load has no table".to_owned()))?;
        let dialect = active.control.dialect();
        let stages = self.run.stages().into_iter().map(|run| {
            let table = LoadDataset {
                contents: run.method.contents(),
                non_transactional: run.non_transactional,
                ..self.table.clone()
            };
            Load::new(table, run).on(dialect)
        });
        self.stages = stages.collect();
        if active.plan.is_first() {
            self.check_preconditions(active)?;
        }
        Ok(self.stages.len())
    }

    fn stage(
        &mut self,
        position: usize,
        active: &mut ActiveRun<'_>,
    ) -> Result<FinishedStage, RunError> {
        let several = self.stages.len() > 1;
        let load = self.stages.get(position).cloned().ok_or_else(|| {
            RunError::Unsuitable(format!("the load has no stage {}", position + 1))
        })?;
        let entry =
            if active.plan.is_first() { begin_table(active, &load) } else { join_table(active) }?;
        Registry::new(&mut active.control, NAME)
            .begin_run(&active.id.to_string(), &entry.id)
            .with_context(|| "cannot insert the load into table \"riops.run\"".to_owned())?;
        let stage = LoopStage { workload: Box::new(load.clone()), work: load.run.clone().into() };
        let mut measured = active.run_loop(&stage, several).inspect_err(|error| {
            if error.precedes_any_statement() && active.plan.is_first() {
                drop_empty(active, &entry);
            }
        })?;
        // The record describes the table that was filled last.
        self.table = load.table.dataset.clone();
        self.id.clone_from(&entry.id);
        add_hint(&mut measured, &load, &active.server);
        let mut checks = settle(active, &load, &entry, &mut measured);
        let all_held = checks.iter().all(|check| check.held);
        if several {
            let method = load.run.method.as_str();
            for check in &mut checks {
                check.name = format!("{method}: {}", check.name);
            }
        }
        let part = Part::Loop(Box::new(measured));
        let is_last = part.has_ended_early() || !all_held;
        Ok(FinishedStage { part, checks, is_last })
    }

    fn dataset(&self) -> Option<DatasetRecord> {
        Some(DatasetRecord {
            other_users: Vec::new(),
            id: self.id.clone(),
            condition: None,
            parameters: self.table.clone().into(),
        })
    }

    fn accesses(&self) -> Vec<Access> {
        self.stages.iter().flat_map(Workload::accesses).collect()
    }
}

/// Creates the empty table and registers it as being loaded.
fn begin_table(active: &mut ActiveRun<'_>, load: &Load) -> Result<Entry, RunError> {
    let mut registry = Registry::new(&mut active.control, NAME);
    // The table of the previous stage has been measured and verified.
    registry.drop_dataset()?;
    let dataset = load.dataset(load.table.dialect);
    let id = uuid::Uuid::now_v7().to_string();
    registry
        .begin(&id, &dataset)
        .inspect_err(|_| {
            let _ = registry.drop_unfinished(&id);
        })
        .with_context(|| "cannot create the table".to_owned())?;
    let entry = registry.entry()?.filter(|entry| entry.id == id);
    Ok(entry.ok_or(DatasetError::InUse { workload: NAME, holders: Holders::default() })?)
}

/// Returns the table that the first of several clients has created.
fn join_table(active: &mut ActiveRun<'_>) -> Result<Entry, RunError> {
    let entry = Registry::new(&mut active.control, NAME).entry()?;
    let entry = entry.filter(|entry| entry.state == State::Loading);
    Ok(entry.ok_or(DatasetError::Incomplete(NAME))?)
}

/// Drops an empty table and its entry. If the server is not available, they remain, registered as "loading".
fn drop_empty(active: &ActiveRun<'_>, entry: &Entry) {
    let _ = connect_with_retries(&active.server, &active.plan)
        .map(|mut connection| Registry::new(&mut connection, NAME).drop_unfinished(&entry.id));
}

/// Enters a finished load into the ledger, then finishes and verifies the table and registers it as
/// complete. The table of an unfinished load is kept for `verify`.
fn settle(
    active: &mut ActiveRun<'_>,
    load: &Load,
    entry: &Entry,
    measured: &mut Measured,
) -> Vec<Check> {
    let result = &mut measured.result;
    let changed = changes(&active.plan.work.traits(), result);
    let interrupt = interrupt_after(result.interrupted, active.interrupt);
    let is_complete = result.workers.failure.is_none()
        && !result.interrupted
        && result.workers.wrong_replies == 0;
    let id = active.id.to_string();
    if result.workers.failure.is_some() {
        active.hooks.notice("waiting for the server, to store the acknowledged changes");
    }
    let settled = (|| -> Result<Vec<Check>, RunError> {
        let mut connection = connect_with_retries(&active.server, &active.plan)?;
        Registry::new(&mut connection, NAME).end_run(&id, &changed)?;
        if is_complete && active.hooks.settled() {
            complete(active, load, entry, &interrupt)
        } else {
            Ok(Vec::new())
        }
    })();
    if settled.is_err() && interrupt.is_requested() && is_complete {
        // The load had finished, but the table was not verified.
        result.interrupted = true;
        return vec![not_verified("interrupted")];
    }
    let mut ending = Ending::default();
    let checks = checks_or_reason(settled, &interrupt, result, &mut ending);
    result.interrupted |= ending.interrupted;
    checks
}

/// Analyzes and verifies a table that has all its rows, and registers it as complete.
fn complete(
    active: &mut ActiveRun<'_>,
    load: &Load,
    entry: &Entry,
    interrupt: &Interrupt,
) -> Result<Vec<Check>, RunError> {
    active.hooks.notice(if active.plan.verify {
        "analyzing and verifying the table"
    } else {
        "analyzing the table"
    });
    let mut connection = Connection::open(&active.server.conninfo, interrupt)?;
    connection.execute(&load.table.finish_sql())?;
    let mut registry = Registry::new(&mut connection, NAME);
    let (mut baseline, mut checks) = (Vec::new(), Vec::new());
    if active.plan.verify {
        baseline = registry.contents(&load.contents_sql())?;
        // Texts not generated by riops have no baseline yet, so their contents are not compared.
        checks = load.checks(&baseline, &[], &Ledger::default());
    }
    if checks.iter().all(|check| check.held) {
        if registry.connection().dialect().has(Feature::Heap) {
            registry.note_fresh(&entry.id, load)?;
        }
        registry.complete(&entry.id, &baseline)?;
        // The loaded rows are the dataset itself, not a change of it.
        registry.forget_runs_on(&entry.id)?;
    }
    Ok(checks)
}

/// Adds a hint to the error of a load.
fn add_hint(measured: &mut Measured, load: &Load, server: &Server) {
    let Some(SessionError::Server(error)) = &mut measured.result.workers.failure else {
        return;
    };
    let table = load.table.dataset.table_name.clone();
    let hint = match error.sqlstate.as_str() {
        "23505" if load.run.method == Method::CopyFile => format!(
            "the files contain an id twice, or another client writes to table \"riops.{table}\": write the files again with riops generate csv --force, and load them with --drop"
        ),
        "23505" => format!(
            "another client writes to table \"riops.{table}\": stop it, and load again with --drop"
        ),
        // The file was removed between the check and the load.
        "58P01" => missing_file("of that name", server).to_string(),
        _ => return,
    };
    error.hint.get_or_insert(hint);
}

/// Fails if a table exists that must not be dropped.
fn require_no_loaded_table(
    registry: &mut Registry<'_>,
    work: &LoadRun,
    dataset: &LoadDataset,
) -> Result<(), RunError> {
    let name = &dataset.table_name;
    let full = format!("riops.{name}");
    if registry.owns(&full)? == Some(false) {
        return Err(DatasetError::Foreign(full).into());
    }
    let Some(entry) = registry.entry()? else {
        return Ok(());
    };
    let registered = plan_of(NAME, &entry)?;
    let Some(loaded) = registered.get::<LoadDataset>() else {
        return Ok(());
    };
    let table = loaded.name_of_table(0);
    let has_rows = registry.owns(&format!("riops.{table}"))? == Some(true)
        && registry
            .connection()
            .query_value(&format!("select 1 from riops.{table} limit 1"))?
            .is_some();
    if work.drop || !has_rows {
        return Ok(());
    }
    let contents = match entry.state {
        State::Complete => format!("contains {} rows", count(loaded.rows)),
        State::Loading => "contains rows of an interrupted load".to_owned(),
    };
    Err(RunError::Precondition(format!(
        "table \"riops.{table}\" already {contents}, and loading the same ids would fail with duplicate keys: drop it with --drop or `riops cleanup load`, or check it with `riops verify load`"
    )))
}

/// Fails if the server cannot read the files.
fn require_files(
    control: &mut Connection,
    files: &[String],
    server: &Server,
) -> Result<(), RunError> {
    if files.is_empty() {
        return Ok(());
    }
    let is_allowed = control.query_value(&fill(FILE_RIGHTS, &[]))?;
    if is_allowed.as_deref() != Some("t") {
        let role = control.query_value("select quote_ident(current_user)")?.unwrap_or_default();
        return Err(RunError::Precondition(format!(
            "role {role} lacks the privilege to read files on the server, which --method copy-file requires: have a superuser run: GRANT pg_read_server_files TO {role}"
        )));
    }
    files.iter().try_for_each(|file| require_file(control, file, server))
}

/// Fails if the server cannot read the file. The privilege to read files does not include the functions
/// that check for their existence, so this copies the file into a table with one column, which stops at the
/// first line.
fn require_file(control: &mut Connection, file: &str, server: &Server) -> Result<(), RunError> {
    // On YugabyteDB, the table of the previous file remains after the rollback.
    control.execute("create temporary table if not exists riops_first_line (line text)")?;
    control.execute("begin")?;
    let copy = format!("copy pg_temp.riops_first_line from {} with (format csv)", literal(file));
    let read = control.execute(&copy);
    control.execute("rollback")?;
    match read {
        Err(ConnectionError::Server(error)) => match error.sqlstate.as_str() {
            // Extra data after the last expected column: a file with rows.
            "22P04" => Ok(()),
            "58P01" => Err(missing_file(file, server)),
            "42501" => Err(RunError::Precondition(format!(
                "the server cannot read file \"{file}\": grant its operating-system user read permission on the file and search permission on its directories (chmod): {}",
                error.message
            ))),
            _ => Err(ConnectionError::Server(error).into()),
        },
        // An empty file, if there are more sessions than rows.
        other => Ok(other?),
    }
}

fn missing_file(file: &str, server: &Server) -> RunError {
    let place = if server.conninfo.is_local() { "" } else { " on the server host" };
    RunError::Precondition(format!(
        "file \"{file}\" does not exist on the server: write it{place} with riops generate csv, with the same --rows, --sessions and --field-length, and set its directory with --dir"
    ))
}
