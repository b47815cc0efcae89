//! `riops warm`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::{Access, Needs};
use riops::report;
use riops::run::warm;

use crate::args::Warm;
use crate::target::{Target, schema_of};
use crate::ui::Ui;

/// Reads the dataset into the caches and prints how much was read.
pub(crate) fn run(command: &Warm, ui: Ui) -> Result<ExitCode> {
    let (dataset, given) = command.dataset()?;
    let target = Target::open(command.target(), ui)?;
    let schema = schema_of(&dataset.parameters());
    let access =
        Access { dataset: dataset.traits().name, needs: Needs::Read, schema: schema.as_deref() };
    let warmed =
        warm(&dataset, &given, &target.server(), ui.interrupt, &mut |text| ui.notice(text))
            .map_err(|error| target.with_grants(error, access))?;
    target.close()?;
    crate::ui::print_done(&crate::ui::wrapped(&report::warmed_text(&warmed)))
}
