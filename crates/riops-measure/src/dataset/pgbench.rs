//! Tables that pgbench made. Runs that are verified adopt them: they are examined, registered and never dropped. Other runs
//! use them as they are, and write nothing but what the scripts do.

use super::error::{DatasetError, Result, refuse};
use super::registry::{Entry, Registry, State};
use crate::host::Interrupt;
use crate::server::connection::TextRow;
use crate::server::{Connection, ConnectionError};
use crate::workload;
use crate::workload::script::{ACCOUNTS_EACH, NAME, found_sql, scale_sql};
use riops_model::plan::script::{PartitionMethod, ScriptDataset};
use riops_model::plan::{DatasetPlan, Parameters};
use riops_model::units::count;

/// The schemas with accounts.
const FOUND_IN: &str =
    "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relname = 'pgbench_accounts'";
/// Number of tables of pgbench.
const TABLES: u32 = 4;

/// Returns the tables in the schema of `wanted`, even if riops created them, without registering or reading them.
/// `None` if they are not complete. The id identifies the table of accounts: it changes when this table is created
/// again.
///
/// # Errors
/// [`DatasetError::Unadoptable`] if their scale differs from the `given` scale.
pub fn unregistered_entry(
    wanted: &DatasetPlan,
    given: &Parameters,
    connection: &mut Connection,
) -> Result<Option<Entry>> {
    let Some(mut wanted) = wanted.get::<ScriptDataset>().cloned() else {
        return Ok(None);
    };
    // Without an explicit schema, wherever the search path finds them.
    if !given.contains_key("schema") {
        let schemas: Vec<String> =
            connection.query(FOUND_IN)?.into_iter().flatten().flatten().collect();
        let path = connection.schemas_of_role()?;
        if let Some(schema) = path.into_iter().find(|schema| schemas.contains(schema)) {
            wanted.schema = schema;
        }
    }
    let rows = connection.query(&found_sql(&wanted.schema))?;
    let existing = rows.first().and_then(|row| Some((row, examined(row, &wanted)?)));
    let Some((row, existing)) = existing else {
        return Ok(None);
    };
    if is_made_by_riops(row) {
        match Registry::new(connection, NAME).entry() {
            Ok(Some(entry)) if entry.state == State::Complete => {}
            // The role may use the tables, but not the registry.
            Err(DatasetError::Connection(ConnectionError::Server(_))) => {}
            Ok(_) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let scale = scale_of(connection, &wanted.schema, given)?;
    let accounts = row.get(IDENTITY).and_then(|id| id.as_deref()).unwrap_or_default();
    Ok(Some(Entry {
        id: format!("pgbench_accounts {accounts}"),
        state: State::Complete,
        parameters: DatasetPlan::from(ScriptDataset { scale, ..existing }).parameters(),
        baseline: Vec::new(),
    }))
}

/// Registers the tables in the schema of `wanted` if riops did not create them. They are examined before every run,
/// because other programs may have changed them. The connection needs a dedicated session, for a lock that it holds
/// meanwhile.
///
/// # Errors
/// [`DatasetError::Unadoptable`] if they are not complete.
pub fn adopt_where_needed(
    wanted: &DatasetPlan,
    given: &Parameters,
    connection: &mut Connection,
    interrupt: &Interrupt,
    notice: &mut dyn FnMut(&str),
) -> Result<()> {
    let Some(wanted) = wanted.get::<ScriptDataset>() else {
        return Ok(());
    };
    let rows = connection.query(&found_sql(&wanted.schema))?;
    let foreign = rows.first().filter(|row| !is_made_by_riops(row));
    let Some(existing) = foreign.and_then(|row| examined(row, wanted)) else {
        return Ok(());
    };
    let mut registry = Registry::new(connection, NAME);
    if !registry.lock_to_adopt(&wanted.schema, interrupt, notice)? {
        return Ok(());
    }
    let adopted = adopt(&mut registry, existing, given, notice);
    registry.unlock(true)?;
    adopted
}

fn adopt(
    registry: &mut Registry<'_>,
    dataset: ScriptDataset,
    given: &Parameters,
    notice: &mut dyn FnMut(&str),
) -> Result<()> {
    let schema = dataset.schema.clone();
    let scale = scale_of(registry.connection(), &schema, given)?;
    let plan = DatasetPlan::from(ScriptDataset { scale, ..dataset });
    let baseline = registry.contents(&workload::on(&plan)?.contents_sql())?;
    let accounts = baseline.get(2).and_then(|row| row.first()).copied().unwrap_or(0);
    if accounts != i128::from(scale * ACCOUNTS_EACH) {
        return refuse(format!(
            "table \"{schema}.pgbench_accounts\" has {accounts} rows, but with {scale} branches it should have {}",
            scale * ACCOUNTS_EACH
        ));
    }
    registry.ensure()?;
    registry.adopt(&plan.parameters(), &baseline)?;
    let scale = count(scale);
    notice(&format!("found the tables of pgbench in schema \"{schema}\", of scale {scale}"));
    Ok(())
}

/// Returns the scale of the tables.
fn scale_of(connection: &mut Connection, schema: &str, given: &Parameters) -> Result<u64> {
    let scale = connection.query_value(&scale_sql(schema))?;
    let scale: u64 = scale.and_then(|text| text.parse().ok()).unwrap_or(0);
    if scale == 0 {
        return refuse(format!("table \"{schema}.pgbench_branches\" is empty"));
    }
    match given.get("scale").filter(|asked| asked.as_u64() != Some(scale)) {
        Some(asked) => refuse(format!(
            "the tables of pgbench in schema \"{schema}\" have scale {scale}, not {asked}"
        )),
        None => Ok(scale),
    }
}

/// Column of [`found_sql`] with the identity of the accounts.
const IDENTITY: usize = 7;

/// Whether riops created any of the tables that the query found.
fn is_made_by_riops(row: &TextRow) -> bool {
    row.get(1).and_then(|count| count.as_deref()) != Some("0")
}

/// Returns the parameters of the tables that the query found, except for the scale; `None` if they are not all tables of
/// pgbench.
fn examined(row: &TextRow, wanted: &ScriptDataset) -> Option<ScriptDataset> {
    let text = |column: usize| row.get(column).cloned().flatten();
    let integer = |column: usize| text(column)?.parse::<u32>().ok();
    if integer(0)? != TABLES {
        return None;
    }
    let method = match text(4).as_deref() {
        Some("h") => PartitionMethod::Hash,
        _ => PartitionMethod::Range,
    };
    Some(ScriptDataset {
        schema: wanted.schema.clone(),
        scale: 0,
        partitions: integer(3).unwrap_or(0),
        partition_method: method,
        fillfactor: integer(2).unwrap_or(100),
        unlogged_tables: text(5).as_deref() == Some("t"),
        foreign_keys: integer(6).unwrap_or(0) > 0,
        adopted: true,
        ..ScriptDataset::default()
    })
}
