//! Adoption of tables that pgbench made: finds, examines and registers them, so that runs on them can be verified.
//! Adopted tables are never dropped.

use super::error::DatasetError;
use super::registry::Registry;
use crate::host::Interrupt;
use crate::plan::script::{PartitionMethod, ScriptDataset};
use crate::plan::{DatasetPlan, Parameters};
use crate::server::connection::TextRow;
use crate::server::{Connection, Server};
use crate::units::count;
use crate::workload;
use crate::workload::script::{ACCOUNTS_EACH, NAME, found_sql, scale_sql};

/// Number of tables of pgbench.
const TABLES: u32 = 4;

/// Registers the tables in the schema of `wanted` if riops did not create them. They are examined before every run,
/// because other programs may have changed them.
///
/// # Errors
/// [`DatasetError::Unadoptable`] if they are not complete.
pub fn adopt_where_needed(
    wanted: &DatasetPlan,
    given: &Parameters,
    server: &Server,
    interrupt: &Interrupt,
    notice: &mut dyn FnMut(&str),
) -> Result<(), DatasetError> {
    let Some(wanted) = wanted.get::<ScriptDataset>() else {
        return Ok(());
    };
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    let rows = connection.query(&found_sql(&wanted.schema))?;
    let Some(found) = rows.first().and_then(|row| examined(row, wanted)) else {
        return Ok(());
    };
    // The lock below is a session-level lock.
    server.require_dedicated_sessions(interrupt)?;
    let mut registry = Registry::new(&mut connection, NAME);
    registry.lock(true, notice)?;
    let scale = registry.connection().query_value(&scale_sql(&wanted.schema))?;
    let scale: u64 = scale.and_then(|text| text.parse().ok()).unwrap_or(0);
    if scale == 0 {
        return refuse(format!("table \"{}.pgbench_branches\" is empty", wanted.schema));
    }
    let dataset = ScriptDataset { scale, ..found };
    if let Some(asked) = given.get("scale").filter(|asked| asked.as_u64() != Some(scale)) {
        return refuse(format!(
            "the tables of pgbench in schema \"{}\" have scale {scale}, not {asked}",
            wanted.schema
        ));
    }
    let plan = DatasetPlan::from(dataset);
    let workload = workload::on(&plan).map_err(|error| DatasetError::Damaged(error.to_string()))?;
    let baseline = registry.contents(&workload.contents_sql())?;
    let accounts = baseline.get(2).and_then(|row| row.first()).copied().unwrap_or(0);
    if accounts != i128::from(scale * ACCOUNTS_EACH) {
        return refuse(format!(
            "table \"{}.pgbench_accounts\" has {accounts} rows, but with {scale} branches it should have {}",
            wanted.schema,
            scale * ACCOUNTS_EACH
        ));
    }
    registry.ensure()?;
    registry.adopt(&plan.parameters(), &baseline)?;
    let (schema, scale) = (&wanted.schema, count(scale));
    notice(&format!("found the tables of pgbench in schema \"{schema}\", of scale {scale}"));
    Ok(())
}

fn refuse<T>(text: String) -> Result<T, DatasetError> {
    Err(DatasetError::Unadoptable(text))
}

/// Returns the parameters of the tables that the query found, except for the scale; `None` if there are no tables of
/// pgbench, or riops created them.
fn examined(row: &TextRow, wanted: &ScriptDataset) -> Option<ScriptDataset> {
    let text = |column: usize| row.get(column).cloned().flatten();
    let number = |column: usize| text(column)?.parse::<u32>().ok();
    if number(0)? != TABLES || number(1)? > 0 {
        return None;
    }
    let method = match text(4).as_deref() {
        Some("h") => PartitionMethod::Hash,
        _ => PartitionMethod::Range,
    };
    Some(ScriptDataset {
        schema: wanted.schema.clone(),
        scale: 0,
        partitions: number(3).unwrap_or(0),
        partition_method: method,
        fillfactor: number(2).unwrap_or(100),
        unlogged_tables: text(5).as_deref() == Some("t"),
        foreign_keys: number(6).unwrap_or(0) > 0,
        tablespace: None,
        index_tablespace: None,
        adopted: true,
    })
}
