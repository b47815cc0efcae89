//! `riops prepare`, and the preparation before a run.

use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::dataset::DatasetError;
use riops::dataset::prepare::{Preparation, Prepared};
use riops::host::{Interrupt, machine};
use riops::plan::{
    BLOCK_FILLER, Layout, LoadDataset, LoadRun, OltpDataset, OltpRun, RowsDataset, RowsRun,
};
use riops::report;
use riops::units::Size;
use riops::workload::Workload;
use riops::workload::load::Load;
use riops::workload::oltp::Oltp;
use riops::workload::rows::Rows;
use serde_json::Value;

use crate::args::{
    self, DatasetOptions, LoadTableOptions, OltpOptions, PrepareLoad, PrepareOltp, PrepareRows,
    TargetOptions,
};
use crate::failure::UsageError;
use crate::target::Target;
use crate::ui::{LoadProgress, Ui};

/// Makes the dataset, or says that it is there.
pub(crate) fn rows(options: &PrepareRows, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let dataset = RowsDataset {
        batch: options.batch.map_or(RowsDataset::default().batch, |count| count.0),
        seed: options.seed.map_or_else(random_seed, Ok)?,
        non_transactional: options.non_transactional_writes,
        ..overlaid(RowsDataset::default(), &options.dataset)
    };
    validate(&dataset, &options.dataset)?;
    // All parameters have to be the same, but for two that only matter to those who give them.
    let compared = without(
        serde_json::to_value(&dataset)?,
        &[("seed", options.seed.is_some()), ("batch", options.batch.is_some())],
    );
    let workload = Rows::new(dataset, RowsRun::default());
    let (recreate, connections) = (options.recreate, options.connections);
    let order = Order { workload: &workload, compared, recreate, connections };
    prepare_and_tell(&options.target, &order, interrupt, ui)
}

/// The same for the table of the workloads `load` and `point`.
pub(crate) fn load(options: &PrepareLoad, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let dataset = LoadDataset {
        field_length: options.field_length.unwrap_or(LoadDataset::default().field_length),
        seed: options.seed.map_or_else(random_seed, Ok)?,
        non_transactional: options.non_transactional,
        ..overlaid_table(LoadDataset::default(), &options.table)
    };
    dataset.validate()?;
    // A table that was loaded by other means is as good.
    let compared = without(
        serde_json::to_value(&dataset)?,
        &[
            ("seed", options.seed.is_some()),
            ("contents", options.seed.is_some()),
            ("non_transactional", options.non_transactional),
        ],
    );
    let workload = Load::new(dataset, LoadRun::default());
    let (recreate, connections) = (options.recreate, options.connections);
    let order = Order { workload: &workload, compared, recreate, connections };
    prepare_and_tell(&options.target, &order, interrupt, ui)
}

/// The same for sysbench's tables.
pub(crate) fn oltp(options: &PrepareOltp, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let dataset = OltpDataset {
        seed: options.seed.map_or_else(random_seed, Ok)?,
        ..overlaid_oltp(OltpDataset::default(), &options.dataset)
    };
    dataset.validate()?;
    // What the id's sequence takes at once by default is not known before the server is.
    let compared = without(
        serde_json::to_value(&dataset)?,
        &[
            ("seed", options.seed.is_some()),
            ("serial_cache_size", options.dataset.serial_cache_size.is_some()),
        ],
    );
    let workload = Oltp::new(dataset, OltpRun::default());
    let (recreate, connections) = (options.recreate, options.connections);
    let order = Order { workload: &workload, compared, recreate, connections };
    let target = Target::open(&options.target, interrupt, ui)?;
    target.await_answer(options.thread_init_timeout, interrupt)?;
    prepare_on(target, &order, interrupt, ui)
}

/// Sysbench's tables with the options that were given.
pub(crate) fn overlaid_oltp(base: OltpDataset, options: &OltpOptions) -> OltpDataset {
    let switch = |given: Option<args::Switch>, base: bool| given.map_or(base, |switch| switch.0);
    OltpDataset {
        schema: options.schema.clone().unwrap_or(base.schema),
        tables: options.tables.unwrap_or(base.tables),
        table_size: options.table_size.map_or(base.table_size, |count| count.0),
        auto_inc: switch(options.auto_inc, base.auto_inc),
        secondary: switch(options.secondary, base.secondary),
        create_secondary: switch(options.create_secondary, base.create_secondary),
        serial_cache_size: options.serial_cache_size.unwrap_or(base.serial_cache_size),
        range_key_partitioning: switch(options.range_key_partitioning, base.range_key_partitioning),
        manual_range_splitting: switch(options.manual_range_splitting, base.manual_range_splitting),
        num_table_splits: options.num_table_splits.unwrap_or(base.num_table_splits),
        ..base
    }
}

/// The parameters of sysbench's tables as the registry has them.
pub(crate) fn oltp_dataset_of(parameters: Value) -> Result<OltpDataset, DatasetError> {
    serde_json::from_value(parameters).map_err(|error| DatasetError::Damaged(error.to_string()))
}

/// Parameters without those of these that were not given.
fn without(mut all: Value, optional: &[(&str, bool)]) -> Value {
    if let Some(parameters) = all.as_object_mut() {
        for (name, _) in optional.iter().filter(|(_, given)| !given) {
            parameters.remove(*name);
        }
    }
    all
}

fn prepare_and_tell(
    options: &TargetOptions,
    order: &Order<'_>,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<ExitCode> {
    prepare_on(Target::open(options, interrupt, ui)?, order, interrupt, ui)
}

fn prepare_on(
    target: Target,
    order: &Order<'_>,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<ExitCode> {
    target.announce(ui);
    let text = prepare(&target, order, interrupt, ui)?;
    target.close()?;
    crate::ui::print(&format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be prepared.
pub(crate) struct Order<'a> {
    /// A workload on the dataset that is wanted.
    pub(crate) workload: &'a dyn Workload,
    /// The parameters that an existing dataset has to share.
    pub(crate) compared: Value,
    pub(crate) recreate: bool,
    pub(crate) connections: Option<u32>,
}

/// Prepares; returns what there is to say about it.
pub(crate) fn prepare(
    target: &Target,
    order: &Order<'_>,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<String> {
    let cores = u32::try_from(machine::cpus()).unwrap_or(1);
    target.require_own_sessions(interrupt)?;
    let progress = LoadProgress::new(ui);
    let prepared = Preparation {
        target: &target.conninfo,
        workload: order.workload,
        compared: &order.compared,
        recreate: order.recreate,
        connections: order.connections.unwrap_or(cores),
        interrupt,
        progress: &|step| progress.show(step),
    }
    .run()
    .context("the dataset was not prepared")?;
    Ok(match prepared {
        Prepared::Kept => "the dataset is there already, with the same parameters: kept".to_owned(),
        Prepared::Made { rows, loading, total } => format!(
            "prepared {} rows in {:.1} s (loaded at {} rows/s; then indexes, statistics and a count)",
            report::count(rows),
            total.as_secs_f64(),
            report::rate(rows as f64 / loading.as_secs_f64()),
        ),
    })
}

/// A table with the options that were given.
pub(crate) fn overlaid_table(base: LoadDataset, options: &LoadTableOptions) -> LoadDataset {
    LoadDataset {
        table_name: options.table_name.clone().unwrap_or(base.table_name),
        rows: options.rows.map_or(base.rows, |count| count.0),
        tablets: options.tablets.unwrap_or(base.tablets),
        ..base
    }
}

/// The parameters of a table as the registry has them.
pub(crate) fn load_dataset_of(parameters: Value) -> Result<LoadDataset, DatasetError> {
    serde_json::from_value(parameters).map_err(|error| DatasetError::Damaged(error.to_string()))
}

/// Checks a dataset that was made of these options.
pub(crate) fn validate(dataset: &RowsDataset, options: &DatasetOptions) -> Result<()> {
    dataset.validate()?;
    if options.size.is_some() && dataset.layout != Layout::Block {
        return Err(UsageError(
            "--size goes with --layout block, where each row has a block: use --rows".to_owned(),
        )
        .into());
    }
    Ok(())
}

/// A dataset with the options that were given.
pub(crate) fn overlaid(base: RowsDataset, options: &DatasetOptions) -> RowsDataset {
    let layout = match options.layout {
        None => base.layout,
        Some(args::Layout::Packed) => Layout::Packed,
        Some(args::Layout::Block) => Layout::Block,
    };
    // Without a filler of its own a row does not fill its block.
    let filler = match layout {
        Layout::Block if base.layout == Layout::Packed => BLOCK_FILLER,
        _ => base.filler,
    };
    let rows = options.rows.map(|count| count.0).or(options.size.map(Size::blocks));
    RowsDataset {
        tables: options.tables.unwrap_or(base.tables),
        rows: rows.unwrap_or(base.rows),
        layout,
        tablets: options.tablets.unwrap_or(base.tablets),
        index_tablets: options.index_tablets.unwrap_or(base.index_tablets),
        filler: options.filler.unwrap_or(filler),
        order: options.order.clone().unwrap_or(base.order),
        primary_key: options.primary_key.unwrap_or(base.primary_key),
        ..base
    }
}

/// A seed from the operating system, small enough for every JSON reader.
pub(crate) fn random_seed() -> Result<u64> {
    riops::workload::keys::random_seed().context("no random numbers from the operating system")
}
