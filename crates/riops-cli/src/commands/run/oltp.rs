//! `riops run oltp`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::{DatasetError, Entry};
use riops::host::Interrupt;
use riops::plan::{Caches, DatasetPlan, OltpDataset, OltpRun, RunPlan, WorkPlan};
use riops::server::Connection;
use riops::server::facts::ServerFacts;
use riops::workload::Workload;
use riops::workload::oltp::{NAME, Oltp, lowest_id_sql};
use serde_json::Value;

use super::super::prepare::{oltp_dataset_of, overlaid_oltp, random_seed};
use super::adopt::adopt_where_needed;
use super::{Setting, StageOrder, Wanted, measure, only_given, perform, plan};
use crate::args::{OltpOptions, RunOltp};
use crate::ui::Ui;

pub(super) fn run(options: &RunOltp, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let plan = plan::looped(&options.run, &options.drive, WorkPlan::Oltp(work(options)))?;
    plan.validate()?;
    overlaid_oltp(OltpDataset::default(), &options.dataset).validate()?;
    perform(plan, options.run.kept(), &options.target, (interrupt, ui), |setting, plan| {
        adopt_where_needed(setting, &options.dataset)?;
        let make = |interrupted: Option<Value>| -> Result<Box<dyn Workload>> {
            let base = match interrupted {
                Some(parameters) => oltp_dataset_of(parameters)?,
                None => OltpDataset { seed: random_seed()?, ..OltpDataset::default() },
            };
            let dataset = overlaid_oltp(base, &options.dataset);
            dataset.validate()?;
            Ok(Box::new(Oltp::new(dataset, OltpRun::default())))
        };
        let may_make = setting.target.embedded.is_some() || options.prepare;
        let wanted = Wanted {
            name: NAME,
            given: given(&options.dataset)?,
            workload_on: &|parameters| {
                Ok(Box::new(Oltp::new(oltp_dataset_of(parameters)?, OltpRun::default())))
            },
            make: may_make.then_some(&make),
        };
        let orders = |plan: &RunPlan, entry: &Entry, facts: &ServerFacts| {
            orders(setting, plan, entry, facts)
        };
        measure(setting, plan, &wanted, orders, |_, _| Ok(()))
    })
}

fn orders(
    setting: &Setting<'_>,
    plan: &RunPlan,
    entry: &Entry,
    facts: &ServerFacts,
) -> Result<(DatasetPlan, Vec<StageOrder>)> {
    let dataset = oltp_dataset_of(entry.parameters.clone())?;
    let WorkPlan::Oltp(run) = &plan.work else {
        return Ok((DatasetPlan::Oltp(dataset), Vec::new()));
    };
    run.validate_for(&dataset, plan.protocol)?;
    let own_ids = run.inserts() && !dataset.auto_inc;
    let ids_below = own_ids.then(|| lowest_id(setting, &dataset)).transpose()?;
    let run = OltpRun { ids_below, ..run.clone() };
    let workload = Oltp::new(dataset.clone(), run.clone()).on(facts.flavor);
    let order = StageOrder {
        caches: run.caches,
        read_samples: Vec::new(),
        row_size_sql: None,
        workload: Box::new(workload),
        work: WorkPlan::Oltp(run),
    };
    Ok((DatasetPlan::Oltp(dataset), vec![order]))
}

/// The lowest id of all tables: ids that the client makes go on below it.
fn lowest_id(setting: &Setting<'_>, dataset: &OltpDataset) -> Result<i64> {
    let mut connection = Connection::open(&setting.target.conninfo, setting.interrupt)?;
    let mut lowest = 0;
    for table in dataset.table_names() {
        let answer = connection.query_value(&lowest_id_sql(&table))?;
        let id = answer.and_then(|text| text.parse().ok()).ok_or_else(|| {
            DatasetError::Damaged(format!("the lowest id of {table} is no number"))
        })?;
        lowest = lowest.min(id);
    }
    Ok(lowest)
}

/// The command line with the defaults filled in.
fn work(options: &RunOltp) -> OltpRun {
    let (mix, defaults) = (&options.mix, OltpRun::default());
    OltpRun {
        test: options.test.or(options.named_test).unwrap_or_default(),
        range_size: mix.range_size.unwrap_or(defaults.range_size),
        point_selects: mix.point_selects.unwrap_or(defaults.point_selects),
        simple_ranges: mix.simple_ranges.unwrap_or(defaults.simple_ranges),
        sum_ranges: mix.sum_ranges.unwrap_or(defaults.sum_ranges),
        order_ranges: mix.order_ranges.unwrap_or(defaults.order_ranges),
        distinct_ranges: mix.distinct_ranges.unwrap_or(defaults.distinct_ranges),
        range_selects: mix.range_selects.map_or(defaults.range_selects, |switch| switch.0),
        index_updates: mix.index_updates.unwrap_or(defaults.index_updates),
        non_index_updates: mix.non_index_updates.unwrap_or(defaults.non_index_updates),
        delete_inserts: mix.delete_inserts.unwrap_or(defaults.delete_inserts),
        skip_trx: mix.skip_trx.map_or(defaults.skip_trx, |switch| switch.0),
        num_rows_in_insert: mix.num_rows_in_insert.unwrap_or(defaults.num_rows_in_insert),
        batch_insert_count: mix.batch_insert_count.unwrap_or(defaults.batch_insert_count),
        random_points: mix.random_points.unwrap_or(defaults.random_points),
        number_of_ranges: mix.number_of_ranges.unwrap_or(defaults.number_of_ranges),
        delta: mix.delta.unwrap_or(defaults.delta),
        pipeline: options.pipeline,
        distribution: options.distribution.unwrap_or(defaults.distribution),
        caches: match (options.cold, options.warm) {
            (true, _) => Caches::Cold,
            (_, true) => Caches::Warm,
            _ => Caches::AsFound,
        },
        ids_below: None,
    }
}

/// The dataset's options that were given, by their names in the registry.
fn given(options: &OltpOptions) -> Result<Value> {
    let all = serde_json::to_value(overlaid_oltp(OltpDataset::default(), options))?;
    let names = [
        ("schema", options.schema.is_some()),
        ("tables", options.tables.is_some()),
        ("table_size", options.table_size.is_some()),
        ("auto_inc", options.auto_inc.is_some()),
        ("secondary", options.secondary.is_some()),
        ("create_secondary", options.create_secondary.is_some()),
        ("range_key_partitioning", options.range_key_partitioning.is_some()),
        ("serial_cache_size", options.serial_cache_size.is_some()),
        ("manual_range_splitting", options.manual_range_splitting.is_some()),
        ("num_table_splits", options.num_table_splits.is_some()),
    ];
    Ok(only_given(all, &names))
}
