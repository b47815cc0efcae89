//! Brings the server into a defined state before a run: vacuumed, checkpointed, idle, cooled down.

use super::idle::{await_idle, pause};
use crate::dataset::{DatasetError, Registry, State};
use crate::host::Interrupt;
use crate::plan::{DatasetPlan, Plan};
use crate::server::{Connection, ConnectionError, Feature, Server};
use crate::study::Between;
use crate::units::Span;
use crate::units::sql::identifier;
use crate::workload;

const VACUUM: &str = include_str!("../../sql/experiment/vacuum.sql");
const ANALYZE: &str = include_str!("../../sql/experiment/analyze.sql");

/// Why the server could not be brought into the state for a run.
#[derive(Debug, thiserror::Error)]
pub enum BetweenError {
    /// The role may not run CHECKPOINT.
    #[error(
        "role \"{role}\" has no privilege to run CHECKPOINT: {}, or set checkpoint = false",
        checkpoint_hint(*.has_role, .role)
    )]
    Checkpoint {
        /// Name of the role.
        role: String,
        /// Whether the server has the predefined role `pg_checkpoint`.
        has_role: bool,
    },
    /// The tables of the dataset cannot be found.
    #[error("cannot find the tables of the dataset to vacuum them: {0}")]
    Dataset(#[from] DatasetError),
    /// The connection or a statement failed, or the user interrupted it.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// The predefined role `pg_checkpoint` exists since PostgreSQL 15.
fn checkpoint_hint(has_role: bool, role: &str) -> String {
    let role = identifier(role);
    if has_role {
        format!("grant it with `GRANT pg_checkpoint TO {role}`")
    } else {
        "before PostgreSQL 15, it requires a superuser".to_owned()
    }
}

impl BetweenError {
    /// Returns whether the user interrupted the preparation.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            Self::Connection(ConnectionError::Interrupted)
                | Self::Dataset(DatasetError::Connection(ConnectionError::Interrupted))
        )
    }
}

/// Applies the rules before a run, in this order: VACUUM, CHECKPOINT (which also writes what VACUUM changed), the wait
/// for idle devices, and the cool-down pause, which the first run does not need. `notify` receives notices for
/// the user.
///
/// # Errors
/// [`BetweenError`] if a statement fails, or if the user interrupts. Devices that do not become idle are a notice.
pub fn prepare_run(
    server: &Server,
    rules: &Between,
    plan: &Plan,
    is_first: bool,
    interrupt: &Interrupt,
    notify: &dyn Fn(&str),
) -> Result<(), BetweenError> {
    if rules.vacuum || rules.checkpoint || rules.idle_device_s.is_some() {
        let mut connection = Connection::open(&server.conninfo, interrupt)?;
        let dialect = connection.dialect();
        if rules.vacuum {
            vacuum(&mut connection, plan, notify)?;
        }
        if rules.checkpoint && dialect.has(Feature::Heap) {
            checkpoint(&mut connection)?;
        } else if rules.checkpoint && is_first {
            notify(&format!("{} has no CHECKPOINT: not executed", dialect.flavor()));
        }
        if let Some(seconds) = rules.idle_device_s {
            let within = Span::of_seconds(seconds).0;
            let is_local = server.conninfo.is_local();
            await_idle(&mut connection, is_local, within, is_first, interrupt, notify)?;
        }
    }
    if !is_first {
        pause(Span::of_seconds(rules.cool_down_s).0, interrupt)?;
    }
    Ok(())
}

fn checkpoint(connection: &mut Connection) -> Result<(), BetweenError> {
    match connection.execute("checkpoint") {
        Err(error) if error.is_privilege_missing() => {
            let role = connection.query_value("select current_user")?.unwrap_or_default();
            let sql = "select 1 from pg_roles where rolname = 'pg_checkpoint'";
            let has_role = connection.query_value(sql)?.is_some();
            Err(BetweenError::Checkpoint { role, has_role })
        }
        done => Ok(done?),
    }
}

/// Vacuums the tables of the dataset. There are none before the run that prepares it.
fn vacuum(
    connection: &mut Connection,
    plan: &Plan,
    notify: &dyn Fn(&str),
) -> Result<(), BetweenError> {
    let tables = tables_of(connection, plan)?;
    let statements = if tables.is_empty() {
        Vec::new()
    } else if connection.dialect().has(Feature::Heap) {
        vec![VACUUM.replace("{tables}", &tables.join(", "))]
    } else {
        tables.iter().map(|table| ANALYZE.replace("{table}", table)).collect()
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
    let damaged = |error: crate::plan::PlanError| DatasetError::Damaged(error.to_string());
    let dataset = DatasetPlan::of_parameters(name, entry.parameters).map_err(damaged)?;
    Ok(workload::on(&dataset).map_err(damaged)?.table_names())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_privilege_names_the_grant() {
        let error = |has_role| BetweenError::Checkpoint { role: "my \"role".to_owned(), has_role };
        let text = error(true).to_string();
        assert!(text.contains("`GRANT pg_checkpoint TO \"my \"\"role\"`"), "{text}");
        let text = error(false).to_string();
        assert!(text.contains("superuser") && text.contains("checkpoint = false"), "{text}");
    }
}
