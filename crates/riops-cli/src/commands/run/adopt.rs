//! Tables that sysbench has prepared: found, looked at, and registered, so that a run knows what it
//! measures and what has to be there afterwards. They are never dropped.

use anyhow::Result;
use riops::dataset::{DatasetError, Registry, State};
use riops::plan::{OltpDataset, OltpRun};
use riops::server::Connection;
use riops::workload::Workload;
use riops::workload::oltp::{NAME, Oltp, found_sql, whole_until_sql};

use super::super::prepare::{oltp_dataset_of, overlaid_oltp};
use super::Setting;
use crate::args::OltpOptions;
use crate::failure::UsageError;

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

/// Registers the tables of the schema that was named, where riops has not made them. They are looked
/// at before every run: whoever else uses them does not tell.
pub(super) fn adopt_where_needed(setting: &Setting<'_>, options: &OltpOptions) -> Result<()> {
    let Some(schema) = options.schema.as_deref().filter(|schema| *schema != "riops") else {
        return Ok(());
    };
    // The lock below needs a session of its own.
    setting.target.require_own_sessions(setting.interrupt)?;
    let mut connection = Connection::open(&setting.target.conninfo, setting.interrupt)?;
    let mut registry = Registry::new(&mut connection, NAME);
    registry.lock(true)?;
    if let Some(entry) = registry.entry()? {
        let own = oltp_dataset_of(entry.parameters)?;
        if !own.adopted && own.schema == schema {
            return Ok(());
        }
        if !own.adopted && entry.state == State::Complete {
            let text = format!(
                "riops's own tables are in schema {}, and it keeps account of one dataset of a kind: run without --schema, or drop them first with: riops cleanup oltp",
                own.schema
            );
            return Err(UsageError(text).into());
        }
    }
    let found = found(&mut registry, schema)?;
    if found.is_empty() {
        // Then they have to be made.
        return Ok(());
    }
    let dataset = look(&mut registry, schema, &found, options)?;
    registry.ensure()?;
    if let Some(entry) = registry.entry()?
        && !registry.open_runs(&entry.id)?.is_empty()
    {
        setting.ui.notice(
            "warning: a run on these tables did not report: what it has changed is taken as it is found now, and not proved",
        );
    }
    let workload = Oltp::new(dataset.clone(), OltpRun::default());
    let baseline = registry.contents(&workload.contents_sql())?;
    registry.adopt(&serde_json::to_value(&dataset)?, &baseline)?;
    setting.ui.notice(&format!(
        "found {} table{} of sysbench in schema {schema}, each with at least {} rows",
        dataset.tables,
        if dataset.tables == 1 { "" } else { "s" },
        riops::report::count(dataset.table_size)
    ));
    Ok(())
}

/// Sysbench's tables of a schema that riops has not made, in the order of their numbers.
fn found(registry: &mut Registry<'_>, schema: &str) -> Result<Vec<Found>> {
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
fn look(
    registry: &mut Registry<'_>,
    schema: &str,
    found: &[Found],
    options: &OltpOptions,
) -> Result<OltpDataset> {
    let consecutive = (1..).zip(found).take_while(|(number, table)| table.number == *number);
    let there = u32::try_from(consecutive.count()).unwrap_or(u32::MAX);
    let tables = options.tables.unwrap_or(there);
    let refuse = |text: String| Err(UsageError(text).into());
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
    let said = OltpOptions {
        serial_cache_size: options.serial_cache_size,
        manual_range_splitting: options.manual_range_splitting,
        num_table_splits: options.num_table_splits,
        ..OltpOptions::default()
    };
    let mut dataset = OltpDataset {
        schema: schema.to_owned(),
        tables,
        table_size: 0,
        auto_inc: found.iter().all(|table| table.auto_inc),
        secondary: !found.iter().all(|table| table.primary_key),
        create_secondary: found.iter().all(|table| table.index_on_k),
        range_key_partitioning: found.iter().all(|table| table.by_ranges),
        // What the tables do not tell is as their user says.
        ..overlaid_oltp(OltpDataset::default(), &said)
    };
    dataset = OltpDataset { adopted: true, ..dataset };
    // Without a primary key an id may be there twice.
    let ids = if dataset.secondary { "distinct id" } else { "*" };
    let mut sizes = Vec::new();
    for table in dataset.table_names() {
        let sql = format!("select count({ids}) from {table} where id > 0");
        let rows = registry.connection().query_value(&sql)?;
        sizes.push(rows.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0));
    }
    let smallest = sizes.iter().copied().min().unwrap_or(0);
    dataset.table_size = options.table_size.map_or(smallest, |count| count.0);
    for table in dataset.table_names() {
        let size = dataset.table_size;
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
    Ok(dataset)
}

/// Where there is no dataset, sysbench's tables may be meant: says how to run on them.
pub(super) fn hint(registry: &mut Registry<'_>, error: DatasetError) -> anyhow::Error {
    let meant = matches!(&error, DatasetError::Missing { workload, .. } if *workload == NAME);
    if meant && found(registry, "public").is_ok_and(|found| !found.is_empty()) {
        return anyhow::Error::from(error).context(
            "the schema public has tables of sysbench: to run on them, add --schema public",
        );
    }
    error.into()
}
