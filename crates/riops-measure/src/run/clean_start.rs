//! Brings tables and server into a defined state before a run: vacuumed, checkpointed, at rest.

use super::active::ActiveRun;
use super::error::{CleanStartError, RunError};
use crate::dataset::{DatasetError, Registry, State};
use crate::server::{Connection, Feature};
use crate::workload;
use riops_model::plan::{DatasetPlan, Plan, PlanError, Vacuum};
use riops_model::units::Span;

/// Does what the plan wants before the warm-up. One client of several does it.
pub(super) fn clean_start(active: &mut ActiveRun<'_>) -> Result<(), RunError> {
    let wanted = active.plan.clean_start;
    if !active.plan.is_first() {
        return Ok(());
    }
    if let Some(kind) = wanted.vacuum {
        let ActiveRun { control, plan, hooks, .. } = active;
        vacuum(control, plan, kind, &|text| hooks.notice(text))?;
    }
    if wanted.checkpoint {
        let dialect = active.control.dialect();
        if !dialect.has(Feature::Heap) {
            let flavor = dialect.flavor();
            return Err(RunError::Unsuitable(format!("--checkpoint: {flavor} has no CHECKPOINT")));
        }
        checkpoint(&mut active.control)?;
    }
    if let Some(seconds) = wanted.settle_s {
        active.hooks.notice(&format!("pause of {}", Span::of_seconds(seconds)));
        active.interrupt.pause(Span::of_seconds(seconds).0);
    }
    Ok(())
}

/// Writes all changed blocks, so that the writes of an earlier load are not part of the run.
///
/// # Errors
/// [`CleanStartError`] if the role may not do that.
pub fn checkpoint(connection: &mut Connection) -> Result<(), CleanStartError> {
    match connection.execute("checkpoint") {
        Err(error) if error.is_privilege_missing() => {
            let role = connection.query_value("select current_user")?.unwrap_or_default();
            let sql = "select 1 from pg_roles where rolname = 'pg_checkpoint'";
            let has_role = connection.query_value(sql)?.is_some();
            Err(CleanStartError::Checkpoint { role, has_role })
        }
        done => Ok(done?),
    }
}

/// Vacuums the tables of the dataset. There are none before the run that prepares it.
///
/// # Errors
/// [`CleanStartError`] if the dataset cannot be read, or the statement fails.
pub fn vacuum(
    connection: &mut Connection,
    plan: &Plan,
    kind: Vacuum,
    notify: &dyn Fn(&str),
) -> Result<(), CleanStartError> {
    let tables = tables_of(connection, plan)?;
    let statements = if tables.is_empty() {
        Vec::new()
    } else if connection.dialect().has(Feature::Heap) {
        let with = match kind {
            Vacuum::Plain => "",
            Vacuum::Analyze => " (analyze)",
            Vacuum::Freeze => " (freeze, analyze)",
        };
        vec![format!("vacuum{with} {}", tables.join(", "))]
    } else {
        // Servers without VACUUM.
        tables.iter().map(|table| format!("analyze {table}")).collect()
    };
    for sql in statements {
        // A table that the role may not vacuum is only a warning of the server.
        connection.query_with_notices(&sql, &mut |notice| notify(notice.message))?;
    }
    Ok(())
}

/// Returns the tables of the dataset that the runs of a plan use, with their schemas.
fn tables_of(connection: &mut Connection, plan: &Plan) -> Result<Vec<String>, DatasetError> {
    let Some(name) = plan.work.traits().dataset else {
        return Ok(Vec::new());
    };
    let entry = Registry::new(connection, name).entry()?;
    let Some(entry) = entry.filter(|entry| entry.state == State::Complete) else {
        return Ok(Vec::new());
    };
    let damaged = |error: PlanError| DatasetError::Damaged(error.to_string());
    let dataset = DatasetPlan::of_parameters(name, entry.parameters).map_err(damaged)?;
    Ok(workload::on(&dataset).map_err(damaged)?.table_names())
}
