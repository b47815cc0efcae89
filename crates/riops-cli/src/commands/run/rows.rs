//! `riops run rows`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::dataset::{DatasetError, Entry};
use riops::host::Interrupt;
use riops::plan::{
    Caches, DatasetPlan, LoopSide, RowsDataset, RowsRun, RunPlan, UpdateShare, WorkPlan,
};
use riops::server::facts::ServerFacts;
use riops::workload::Workload;
use riops::workload::rows::{self, NAME, Rows};
use serde_json::Value;

use super::super::prepare::{overlaid, random_seed, validate};
use super::{StageOrder, Wanted, measure, only_given, perform, plan};
use crate::args::{self, DatasetOptions, RunRows};
use crate::failure::UsageError;
use crate::ui::Ui;

pub(super) fn run(options: &RunRows, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let plan = plan(options)?;
    plan.validate()?;
    if options.dataset.size.is_some() && options.dataset.layout.is_none() {
        return Err(UsageError("--size goes with --layout block: use --rows".to_owned()).into());
    }
    validate(&overlaid(RowsDataset::default(), &options.dataset), &options.dataset)?;
    perform(plan, options.run.kept(), &options.target, (interrupt, ui), |setting, plan| {
        let make = |interrupted: Option<Value>| -> Result<Box<dyn Workload>> {
            let base = match interrupted.and_then(|found| serde_json::from_value(found).ok()) {
                Some(base) => base,
                None => RowsDataset { seed: random_seed()?, ..RowsDataset::default() },
            };
            let dataset = overlaid(base, &options.dataset);
            validate(&dataset, &options.dataset)?;
            Ok(Box::new(Rows::new(dataset, RowsRun::default())))
        };
        let may_make = setting.target.embedded.is_some() || options.prepare;
        let wanted = Wanted {
            name: NAME,
            given: given(&options.dataset)?,
            workload_on: &|parameters| {
                Ok(Box::new(Rows::new(dataset_of(parameters)?, RowsRun::default())))
            },
            make: may_make.then_some(&make),
        };
        let has_server_loop = matches!(&plan.work, WorkPlan::Rows(run) if run.has_server_loop());
        measure(setting, plan, &wanted, orders, |registry, _| {
            if has_server_loop {
                registry
                    .install(&rows::routines())
                    .context("the loop could not be made in the server")?;
            }
            Ok(())
        })
    })
}

/// A stage for each batch size and side of the loop.
fn orders(
    plan: &RunPlan,
    entry: &Entry,
    facts: &ServerFacts,
) -> Result<(DatasetPlan, Vec<StageOrder>)> {
    let dataset = dataset_of(entry.parameters.clone())?;
    let WorkPlan::Rows(whole) = &plan.work else {
        return Ok((DatasetPlan::Rows(dataset), Vec::new()));
    };
    whole.validate_for(&dataset)?;
    let order = |run: RowsRun| {
        let workload = Rows::new(dataset.clone(), run.clone()).on(facts.flavor);
        StageOrder {
            caches: run.caches,
            read_samples: workload.read_samples(),
            row_size_sql: None,
            workload: Box::new(workload),
            work: WorkPlan::Rows(run),
        }
    };
    let orders = whole.stages().into_iter().map(order).collect();
    Ok((DatasetPlan::Rows(dataset), orders))
}

fn dataset_of(parameters: Value) -> Result<RowsDataset, DatasetError> {
    serde_json::from_value(parameters).map_err(|error| DatasetError::Damaged(error.to_string()))
}

/// The command line with the defaults filled in.
fn plan(options: &RunRows) -> Result<RunPlan> {
    let run = &options.run;
    let defaults = RowsRun::default();
    let batches: Vec<u64> = options.batch.iter().map(|count| count.0).collect();
    let sides: Vec<LoopSide> = options
        .loop_sides
        .iter()
        .map(|side| match side {
            args::LoopSide::Client => LoopSide::Client,
            args::LoopSide::Server => LoopSide::Server,
        })
        .collect();
    let loop_side = sides.first().copied().unwrap_or_default();
    // A loop in the server has one table, and what it is compared with has the same.
    let own_table = sides.contains(&LoopSide::Server);
    let in_server_only = !sides.is_empty() && !sides.contains(&LoopSide::Client);
    if in_server_only && run.workers.is_some() {
        return Err(UsageError(
            "--workers goes with --loop client: in the server each session drives itself"
                .to_owned(),
        )
        .into());
    }
    let work = WorkPlan::Rows(RowsRun {
        batch: batches.first().copied().unwrap_or(defaults.batch),
        batches: if batches.len() > 1 { batches } else { Vec::new() },
        update_percent: options.update_percent.unwrap_or(defaults.update_percent),
        update_share: match options.update_share {
            None | Some(args::UpdateShare::Rows) => UpdateShare::Rows,
            Some(args::UpdateShare::Transactions) => UpdateShare::Transactions,
        },
        update_batch: options.update_batch.map(|count| count.0),
        index_only: options.index_only,
        table_per_session: options.table_per_session || own_table,
        distribution: options.distribution.unwrap_or_default(),
        loop_side,
        loop_sides: if sides.len() > 1 { sides } else { Vec::new() },
        caches: match (options.cold, options.warm) {
            (true, _) => Caches::Cold,
            (_, true) => Caches::Warm,
            _ => Caches::AsFound,
        },
        follower_reads_ms: options
            .follower_reads
            .map(|staleness| u64::try_from(staleness.0.as_millis()).unwrap_or(u64::MAX)),
        non_transactional: options.non_transactional_writes,
    });
    let mut plan = plan::looped(run, &options.drive, work)?;
    plan.pipeline = options.pipeline.pipeline.unwrap_or(1);
    if in_server_only {
        plan.workers = plan.sessions;
    }
    Ok(plan)
}

/// The dataset's options that were given, by their names in the registry.
fn given(options: &DatasetOptions) -> Result<Value> {
    let all = serde_json::to_value(overlaid(RowsDataset::default(), options))?;
    let names = [
        ("tables", options.tables.is_some()),
        ("rows", options.rows.is_some() || options.size.is_some()),
        ("filler", options.filler.is_some()),
        ("order", options.order.is_some()),
        ("primary_key", options.primary_key.is_some()),
        ("layout", options.layout.is_some()),
        ("tablets", options.tablets.is_some()),
        ("index_tablets", options.index_tablets.is_some()),
    ];
    Ok(only_given(all, &names))
}
