//! Adoption of tables that sysbench prepared: finds, examines and registers them, so that runs on them can be
//! verified. Adopted tables are never dropped.

use super::error::{DatasetError, Result, refuse};
use super::registry::{Entry, Registry, State};
use crate::host::Interrupt;
use crate::server::{Connection, Server};
use crate::workload::oltp::{FOUND, NAME, WHOLE_UNTIL};
use crate::workload::{self, fill};
use riops_model::plan::{DatasetPlan, Distribution, OltpDataset, Parameters};
use riops_model::units::count;
use riops_model::units::format::number_of;

/// The properties of an existing sysbench table.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property")]
struct SysbenchTable {
    ordinal: u32,
    primary_key: bool,
    index_on_k: bool,
    auto_inc: bool,
    columns: u32,
    comment: String,
    range_sharded: bool,
}

/// Returns the tables in the schema of `wanted` if riops did not create them, without registering them. `None` if there
/// are none. The id identifies the first table: it changes when this table is created again.
///
/// # Errors
/// [`DatasetError::Unadoptable`] if they are not sysbench tables, or smaller than given.
pub fn unregistered_entry(
    wanted: &DatasetPlan,
    given: &Parameters,
    connection: &mut Connection,
) -> Result<Option<Entry>> {
    let Some(wanted) = wanted.get::<OltpDataset>().filter(|wanted| wanted.schema != "riops") else {
        return Ok(None);
    };
    let mut registry = Registry::new(connection, NAME);
    let tables = sysbench_tables(&mut registry, &wanted.schema)?;
    if tables.is_empty() {
        return Ok(None);
    }
    let dataset = examine(&mut registry, &tables, wanted, given)?;
    let first = format!("{}.sbtest1", wanted.schema);
    let id = registry.connection().query_with("select $1::regclass::oid", &[Some(&first)])?;
    let id = id.into_iter().flatten().flatten().next().unwrap_or_default();
    Ok(Some(Entry {
        id: format!("sbtest1 {id}"),
        state: State::Complete,
        parameters: DatasetPlan::from(dataset).parameters(),
        baseline: Vec::new(),
    }))
}

/// Registers the tables in the schema of `wanted` if riops did not create them. They are examined before
/// every run, because other programs may have changed them. Only sysbench tables are adopted. The connection needs a
/// dedicated session, for a lock that it holds meanwhile.
///
/// # Errors
/// [`DatasetError::Unadoptable`] if they are not sysbench tables, or smaller than given.
pub fn adopt_where_needed(
    wanted: &DatasetPlan,
    given: &Parameters,
    connection: &mut Connection,
    interrupt: &Interrupt,
    notice: &mut dyn FnMut(&str),
) -> Result<()> {
    let Some(wanted) = wanted.get::<OltpDataset>().filter(|wanted| wanted.schema != "riops") else {
        return Ok(());
    };
    let schema = wanted.schema.as_str();
    let mut registry = Registry::new(connection, NAME);
    // Looked up again under the lock, which tables of riops do not need.
    if is_created_by_riops(&mut registry, schema)?
        || !registry.lock_to_adopt(schema, interrupt, notice)?
    {
        return Ok(());
    }
    let adopted = adopt(&mut registry, wanted, given, notice);
    registry.unlock(true)?;
    adopted
}

fn adopt(
    registry: &mut Registry<'_>,
    wanted: &OltpDataset,
    given: &Parameters,
    notice: &mut dyn FnMut(&str),
) -> Result<()> {
    let schema = wanted.schema.as_str();
    if is_created_by_riops(registry, schema)? {
        return Ok(());
    }
    let existing = sysbench_tables(registry, schema)?;
    if existing.is_empty() {
        // No tables to adopt: they must be prepared.
        return Ok(());
    }
    let dataset = examine(registry, &existing, wanted, given)?;
    registry.ensure()?;
    if let Some(entry) = registry.entry()?
        && !registry.open_runs(&entry.id)?.is_empty()
    {
        notice(
            "warning: an earlier run on these tables did not report its changes: the current contents become the new baseline, and the earlier changes are not verified",
        );
    }
    let rows = match dataset.table_size {
        0 => String::new(),
        rows => format!(" with at least {} rows each", count(rows)),
    };
    let tables = number_of(dataset.tables.into(), "sysbench table");
    let summary = format!("found {tables} in schema \"{schema}\"{rows}");
    let plan = DatasetPlan::from(dataset);
    let baseline = registry.contents(&workload::on(&plan)?.contents_sql())?;
    registry.adopt(&plan.parameters(), &baseline)?;
    notice(&summary);
    Ok(())
}

/// Whether riops created the tables in this schema.
fn is_created_by_riops(registry: &mut Registry<'_>, schema: &str) -> Result<bool> {
    let Some(entry) = registry.entry()? else {
        return Ok(false);
    };
    let state = entry.state;
    let own = DatasetPlan::of_parameters(NAME, entry.parameters)?;
    let Some(own) = own.get::<OltpDataset>().filter(|own| !own.adopted) else {
        return Ok(false);
    };
    if own.schema != schema && state == State::Complete {
        return refuse(format!(
            "the registered dataset for the workload oltp is in schema \"{}\", and only one can be registered: use it with `riops run oltp` without --schema, or drop it first with `riops cleanup oltp`",
            own.schema
        ));
    }
    Ok(own.schema == schema)
}

/// Returns the sysbench tables in a schema that riops did not create, by number.
fn sysbench_tables(registry: &mut Registry<'_>, schema: &str) -> Result<Vec<SysbenchTable>> {
    let rows = registry.connection().query(&fill(FOUND, &[("schema", schema)]))?;
    let mut tables: Vec<SysbenchTable> = rows
        .into_iter()
        .filter_map(|row| {
            let text = |column: usize| row.get(column).cloned().flatten();
            let yes = |column: usize| text(column).as_deref() == Some("t");
            Some(SysbenchTable {
                ordinal: text(0)?.trim_start_matches("sbtest").parse().ok()?,
                primary_key: yes(1),
                index_on_k: yes(2),
                auto_inc: yes(3),
                columns: text(4)?.parse().ok()?,
                comment: text(5)?,
                range_sharded: yes(6),
            })
        })
        .collect();
    tables.sort_by_key(|table| table.ordinal);
    Ok(tables)
}

/// Derives the parameters of the dataset from the tables.
fn examine(
    registry: &mut Registry<'_>,
    candidates: &[SysbenchTable],
    wanted: &OltpDataset,
    given: &Parameters,
) -> Result<OltpDataset> {
    let schema = &wanted.schema;
    let consecutive =
        (1..).zip(candidates).take_while(|(ordinal, table)| table.ordinal == *ordinal);
    let existing = u32::try_from(consecutive.count()).unwrap_or(u32::MAX);
    let tables = if given.contains_key("tables") { wanted.tables } else { existing };
    if existing == 0 {
        return refuse(format!(
            "schema \"{schema}\" has tables with sysbench names, but no table sbtest1"
        ));
    }
    if tables == 0 || tables > existing {
        return refuse(format!(
            "invalid value \"{tables}\" for --tables: schema \"{schema}\" has {existing} consecutive sysbench tables, from sbtest1 on"
        ));
    }
    let candidates = candidates.get(..tables as usize).unwrap_or_default();
    require_sysbench(wanted, candidates)?;
    if wanted.bulk_insert {
        return Ok(OltpDataset { tables, adopted: true, ..wanted.clone() });
    }
    let mut dataset = OltpDataset {
        tables,
        table_size: 0,
        auto_inc: candidates.iter().all(|table| table.auto_inc),
        secondary: !candidates.iter().all(|table| table.primary_key),
        create_secondary: candidates.iter().all(|table| table.index_on_k),
        range_key_partitioning: candidates.iter().all(|table| table.range_sharded),
        adopted: true,
        // Unknown: the value that records of earlier versions have.
        rand_type: Distribution::default(),
        seed: 0,
        // Properties that cannot be derived from the tables are taken from the options.
        ..wanted.clone()
    };
    dataset.table_size = rows_of_each(registry, &dataset, wanted, given)?;
    Ok(dataset)
}

fn require_sysbench(wanted: &OltpDataset, tables: &[SysbenchTable]) -> Result<()> {
    let schema = &wanted.schema;
    let (columns, names) =
        if wanted.bulk_insert { (2, "id and k, and only these") } else { (4, "id, k, c and pad") };
    if let Some(odd) = tables.iter().find(|table| table.columns != columns) {
        return refuse(format!(
            "table \"{schema}.sbtest{}\" is not a table of sysbench for this test: it must have the columns {names}",
            odd.ordinal
        ));
    }
    if let Some(odd) = tables.iter().find(|table| !table.comment.is_empty()) {
        return refuse(format!(
            "table \"{schema}.sbtest{}\" has the comment \"{}\": sysbench tables have no comment, so it may belong to another program",
            odd.ordinal, odd.comment
        ));
    }
    Ok(())
}

/// Returns the number of rows, with ids from 1, that every table has, or the given number if every table
/// has that many.
fn rows_of_each(
    registry: &mut Registry<'_>,
    dataset: &OltpDataset,
    wanted: &OltpDataset,
    given: &Parameters,
) -> Result<u64> {
    // Without a primary key, ids may be duplicated.
    let ids = if dataset.secondary { "distinct id" } else { "*" };
    let mut smallest = u64::MAX;
    for table in dataset.table_names() {
        let sql = format!("select count({ids}) from {table} where id > 0");
        let rows = registry.connection().query_value(&sql)?;
        smallest = smallest.min(rows.and_then(|text| text.parse().ok()).unwrap_or(0));
    }
    let size = if given.contains_key("table_size") { wanted.table_size } else { smallest };
    for table in dataset.table_names() {
        let sql = format!("select count({ids}) from {table} where id between 1 and {size}");
        let rows = registry.connection().query_value(&sql)?;
        if size == 0 || rows.as_deref() != Some(size.to_string().as_str()) {
            let sql = fill(WHOLE_UNTIL, &[("table", &table)]);
            let gapless = registry.connection().query_value(&sql)?;
            let gapless = gapless.unwrap_or_else(|| "0".to_owned());
            return refuse(format!(
                "table \"{table}\" has {} of the ids 1 to {size}, without gaps up to {gapless}: use --table-size {gapless}, or prepare the table again",
                rows.unwrap_or_default()
            ));
        }
    }
    Ok(size)
}

/// Returns the names of the tables of sysbench in a schema that riops did not create.
///
/// # Errors
/// [`DatasetError`] if the server cannot be asked.
pub fn foreign_tables(server: &Server, schema: &str, interrupt: &Interrupt) -> Result<Vec<String>> {
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    let tables = sysbench_tables(&mut Registry::new(&mut connection, NAME), schema)?;
    Ok(tables.iter().map(|table| format!("{schema}.sbtest{}", table.ordinal)).collect())
}

/// Returns a hint if the dataset is missing but the schema public has sysbench tables.
pub fn hint(registry: &mut Registry<'_>, error: &DatasetError) -> Option<&'static str> {
    let is_missing = matches!(error, DatasetError::Missing { workload, .. } if *workload == NAME);
    let exist =
        is_missing && sysbench_tables(registry, "public").is_ok_and(|tables| !tables.is_empty());
    exist.then_some("schema \"public\" has sysbench tables: to run on them, add --schema public")
}
