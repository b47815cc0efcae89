//! `riops prepare`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::{Access, Needs};
use riops::record::Record;
use riops::report;
use riops::run::{NoHistory, prepare};

use crate::args::{Prepare, PrepareOptions};
use crate::screen::Screen;
use crate::target::{Target, schema_of};
use crate::ui::Ui;

/// Prepares the dataset and prints the result, also if the dataset already exists.
pub(crate) fn run(command: &Prepare, ui: Ui) -> Result<ExitCode> {
    let (workload, options) = command.options();
    let order = workload.order(options)?;
    let PrepareOptions { target, thread_init_timeout, .. } = options;
    let target = Target::open(target, ui)?;
    let server = target.server();
    server.await_connection(thread_init_timeout.map(|span| span.0.as_secs_f64()), ui.interrupt)?;
    let mut no_record = |_: &Record| {};
    let mut screen = Screen::new(ui, &NoHistory, &mut no_record);
    let schema = schema_of(&order.dataset.parameters());
    let access = Access {
        dataset: order.dataset.traits().name,
        needs: Needs::Create,
        schema: schema.as_deref(),
    };
    let prepared = prepare(&order, &server, ui.interrupt, &mut screen)
        .map_err(|error| target.with_grants(error, access))?;
    target.close()?;
    crate::ui::print_done(&crate::ui::wrapped(&report::prepared_text(&prepared)))
}
