//! Tables that sysbench prepared: found, examined, and registered, so that a run knows what it measures and
//! what has to be there afterwards. They are never dropped.

use super::error::DatasetError;
use super::registry::{Registry, State};
use crate::host::Interrupt;
use crate::plan::{DatasetPlan, OltpDataset, Parameters};
use crate::server::{Connection, Server};
use crate::units::count;
use crate::workload;
use crate::workload::oltp::{NAME, found_sql, whole_until_sql};

/// One of sysbench's tables as it was found.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Found {
    number: u32,
    primary_key: bool,
    index_on_k: bool,
    auto_inc: bool,
    columns: u32,
    comment: String,
    by_ranges: bool,
}

/// Registers the tables of the schema that `wanted` names, where riops has not made them. They are examined
/// before every run: whoever else uses them does not tell. Other datasets are not adopted.
///
/// # Errors
/// [`DatasetError::Unadoptable`] where they are not sysbench's, or not as large as was given.
pub fn adopt_where_needed(
    wanted: &DatasetPlan,
    given: &Parameters,
    server: &Server,
    interrupt: &Interrupt,
    notice: &mut dyn FnMut(&str),
) -> Result<(), DatasetError> {
    let Some(wanted) = wanted.get::<OltpDataset>().filter(|wanted| wanted.schema != "riops") else {
        return Ok(());
    };
    let schema = wanted.schema.as_str();
    // The lock below needs a session of its own.
    server.require_own_sessions(interrupt)?;
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    let mut registry = Registry::new(&mut connection, NAME);
    registry.lock(true)?;
    if has_own(&mut registry, schema)? {
        return Ok(());
    }
    let found = found(&mut registry, schema)?;
    if found.is_empty() {
        // Then they have to be made.
        return Ok(());
    }
    let dataset = examine(&mut registry, &found, wanted, given)?;
    registry.ensure()?;
    if let Some(entry) = registry.entry()?
        && !registry.open_runs(&entry.id)?.is_empty()
    {
        notice(
            "warning: a run on these tables did not report: what it has changed is taken as it is found now, and not verified",
        );
    }
    let found = format!(
        "found {} table{} of sysbench in schema {schema}, each with at least {} rows",
        count(dataset.tables.into()),
        if dataset.tables == 1 { "" } else { "s" },
        count(dataset.table_size)
    );
    let plan = DatasetPlan::from(dataset);
    let workload = workload::on(&plan).map_err(|error| DatasetError::Damaged(error.to_string()))?;
    let baseline = registry.contents(&workload.contents_sql())?;
    registry.adopt(&plan.parameters(), &baseline)?;
    notice(&found);
    Ok(())
}

/// Whether riops has made the tables of this schema itself.
fn has_own(registry: &mut Registry<'_>, schema: &str) -> Result<bool, DatasetError> {
    let Some(entry) = registry.entry()? else {
        return Ok(false);
    };
    let state = entry.state;
    let own = DatasetPlan::of_parameters(NAME, entry.parameters)
        .map_err(|error| DatasetError::Damaged(error.to_string()))?;
    let Some(own) = own.get::<OltpDataset>().filter(|own| !own.adopted) else {
        return Ok(false);
    };
    if own.schema != schema && state == State::Complete {
        return refuse(format!(
            "riops's own tables are in schema {}, and it keeps account of one dataset of a kind: run without --schema, or drop them first with: riops cleanup oltp",
            own.schema
        ));
    }
    Ok(own.schema == schema)
}

fn refuse<T>(text: String) -> Result<T, DatasetError> {
    Err(DatasetError::Unadoptable(text))
}

/// Sysbench's tables of a schema that riops has not made, in the order of their numbers.
fn found(registry: &mut Registry<'_>, schema: &str) -> Result<Vec<Found>, DatasetError> {
    let rows = registry.connection().query(&found_sql(schema))?;
    let mut tables: Vec<Found> = rows
        .into_iter()
        .filter_map(|row| {
            let text = |column: usize| row.get(column).cloned().flatten();
            let yes = |column: usize| text(column).as_deref() == Some("t");
            Some(Found {
                number: text(0)?.trim_start_matches("sbtest").parse().ok()?,
                primary_key: yes(1),
                index_on_k: yes(2),
                auto_inc: yes(3),
                columns: text(4)?.parse().ok()?,
                comment: text(5)?,
                by_ranges: yes(6),
            })
        })
        .collect();
    tables.sort_by_key(|table| table.number);
    Ok(tables)
}

/// What a run has to know of the tables.
fn examine(
    registry: &mut Registry<'_>,
    found: &[Found],
    wanted: &OltpDataset,
    given: &Parameters,
) -> Result<OltpDataset, DatasetError> {
    let schema = &wanted.schema;
    let consecutive = (1..).zip(found).take_while(|(number, table)| table.number == *number);
    let there = u32::try_from(consecutive.count()).unwrap_or(u32::MAX);
    let tables = if given.contains_key("tables") { wanted.tables } else { there };
    if there == 0 {
        return refuse(format!(
            "the schema {schema} has tables named as sysbench's, but no sbtest1, with which they begin"
        ));
    }
    if tables == 0 || tables > there {
        return refuse(format!(
            "--tables {tables}: the schema {schema} has {there} tables of sysbench, from sbtest1 on"
        ));
    }
    let found = found.get(..tables as usize).unwrap_or_default();
    require_sysbench(schema, found)?;
    let mut dataset = OltpDataset {
        tables,
        table_size: 0,
        auto_inc: found.iter().all(|table| table.auto_inc),
        secondary: !found.iter().all(|table| table.primary_key),
        create_secondary: found.iter().all(|table| table.index_on_k),
        range_key_partitioning: found.iter().all(|table| table.by_ranges),
        adopted: true,
        seed: 0,
        // What the tables do not tell is as their user says.
        ..wanted.clone()
    };
    dataset.table_size = rows_of_each(registry, &dataset, wanted, given)?;
    Ok(dataset)
}

fn require_sysbench(schema: &str, found: &[Found]) -> Result<(), DatasetError> {
    if let Some(odd) = found.iter().find(|table| table.columns != 4) {
        return refuse(format!(
            "the table {schema}.sbtest{} is not sysbench's: it lacks one of the columns id, k, c and pad",
            odd.number
        ));
    }
    if let Some(odd) = found.iter().find(|table| !table.comment.is_empty()) {
        return refuse(format!(
            "the table {schema}.sbtest{} has the comment `{}`: sysbench gives its tables none, so it may be somebody else's",
            odd.number, odd.comment
        ));
    }
    Ok(())
}

/// The rows that every table has with the ids from 1 on, or as many as were given, if all have those.
fn rows_of_each(
    registry: &mut Registry<'_>,
    dataset: &OltpDataset,
    wanted: &OltpDataset,
    given: &Parameters,
) -> Result<u64, DatasetError> {
    // Without a primary key an id may be there twice.
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
            let whole = registry.connection().query_value(&whole_until_sql(&table))?;
            let whole = whole.unwrap_or_else(|| "0".to_owned());
            return refuse(format!(
                "the table {table} has {} of the ids 1 to {size}, and all of them up to {whole}: run on those with --table-size {whole}, or prepare it anew",
                rows.unwrap_or_default()
            ));
        }
    }
    Ok(size)
}

/// How to run on sysbench's tables, where a dataset is missing and those may be meant.
pub fn hint(registry: &mut Registry<'_>, error: &DatasetError) -> Option<&'static str> {
    let meant = matches!(error, DatasetError::Missing { workload, .. } if *workload == NAME);
    let there = meant && found(registry, "public").is_ok_and(|found| !found.is_empty());
    there.then_some("the schema public has tables of sysbench: to run on them, add --schema public")
}
