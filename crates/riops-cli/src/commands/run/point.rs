//! `riops run point`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::{DatasetError, Entry, Registry};
use riops::host::Interrupt;
use riops::plan::{Caches, DatasetPlan, LoadDataset, LoadRun, PointRun, RunPlan, WorkPlan};
use riops::server::facts::ServerFacts;
use riops::workload::Workload;
use riops::workload::load::{Load, NAME as DATASET};
use riops::workload::point::Point;
use serde_json::Value;

use super::super::prepare::{load_dataset_of, overlaid_table, random_seed};
use super::{StageOrder, Wanted, measure, only_given, perform, plan};
use crate::args::{LoadTableOptions, RunPoint};
use crate::ui::Ui;

pub(super) fn run(options: &RunPoint, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let work = PointRun {
        op: options.op.unwrap_or_default(),
        distribution: options.distribution.unwrap_or_default(),
        field_length: options.field_length,
        caches: match (options.cold, options.warm) {
            (true, _) => Caches::Cold,
            (_, true) => Caches::Warm,
            _ => Caches::AsFound,
        },
        non_transactional: options.non_transactional,
    };
    let mut plan = plan::looped(&options.run, &options.drive, WorkPlan::Point(work.clone()))?;
    plan.pipeline = options.pipeline.pipeline.unwrap_or(1);
    plan.validate()?;
    overlaid_table(LoadDataset::default(), &options.table).validate()?;
    perform(plan, options.run.kept(), &options.target, (interrupt, ui), |setting, plan| {
        let make = |interrupted: Option<Value>| -> Result<Box<dyn Workload>> {
            if interrupted.is_some() {
                // It is kept for whoever wants to verify it.
                return Err(DatasetError::Incomplete(DATASET).into());
            }
            let base = LoadDataset { seed: random_seed()?, ..LoadDataset::default() };
            let dataset = overlaid_table(base, &options.table);
            dataset.validate()?;
            Ok(Box::new(Load::new(dataset, LoadRun::default())))
        };
        let may_make = setting.target.embedded.is_some() || options.prepare;
        let wanted = Wanted {
            name: DATASET,
            given: given(&options.table)?,
            workload_on: &|parameters| {
                Ok(Box::new(Load::new(load_dataset_of(parameters)?, LoadRun::default())))
            },
            make: may_make.then_some(&make),
        };
        let orders = |plan: &RunPlan, entry: &Entry, facts: &ServerFacts| {
            orders(plan, entry, facts, options.show_rowsize)
        };
        measure(setting, plan, &wanted, orders, |registry, own_sessions| {
            note_length(registry, &work, own_sessions)
        })
    })
}

fn orders(
    plan: &RunPlan,
    entry: &Entry,
    facts: &ServerFacts,
    show_rowsize: bool,
) -> Result<(DatasetPlan, Vec<StageOrder>)> {
    let dataset = load_dataset_of(entry.parameters.clone())?;
    let WorkPlan::Point(run) = &plan.work else {
        return Ok((DatasetPlan::Load(dataset), Vec::new()));
    };
    let mut written = dataset.clone();
    note(&mut written, run);
    let workload = Point::new(written, run.clone()).on(facts.flavor);
    let order = StageOrder {
        caches: run.caches,
        read_samples: Vec::new(),
        row_size_sql: show_rowsize.then(|| workload.table().row_size_sql()),
        workload: Box::new(workload),
        work: plan.work.clone(),
    };
    Ok((DatasetPlan::Load(dataset), vec![order]))
}

/// What updates are about to make of the texts has to be known to whoever reads them later; nobody who
/// reads them now would know it.
fn note_length(registry: &mut Registry<'_>, run: &PointRun, own_sessions: bool) -> Result<()> {
    while let Some(entry) = registry.entry()? {
        let mut dataset = load_dataset_of(entry.parameters.clone())?;
        let new = note(&mut dataset, run);
        if new && own_sessions {
            registry.lock(true)?;
        }
        if !new || registry.note_parameters(&entry.parameters, &serde_json::to_value(dataset)?)? {
            break;
        }
    }
    Ok(())
}

/// Adds the length that updates write to those that a text may have; whether it is a new one.
fn note(dataset: &mut LoadDataset, run: &PointRun) -> bool {
    let new =
        run.field_length.filter(|length| run.updates() && !dataset.lengths().contains(length));
    dataset.updated_lengths.extend(new);
    new.is_some()
}

/// The table's options that were given, by their names in the registry.
fn given(options: &LoadTableOptions) -> Result<Value> {
    let all = serde_json::to_value(overlaid_table(LoadDataset::default(), options))?;
    let names = [
        ("rows", options.rows.is_some()),
        ("table_name", options.table_name.is_some()),
        ("tablets", options.tablets.is_some()),
    ];
    Ok(only_given(all, &names))
}
