//! `riops prepare`, `riops warm`, `riops verify` and `riops cleanup`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use riops::dataset::{self, Access, Needs, sysbench};
use riops::report;
use riops::run::{self, History, NoHistory, RunError};

use crate::args::{Cleanup, Prepare, PrepareOptions, Verify, Warm};
use crate::failure::NOT_VALID;
use crate::screen::shown;
use crate::stored;
use crate::target::{self, schema_of};
use crate::ui::{self, Ui};

/// Prepares the dataset and prints the result, also if the dataset already exists.
pub(super) fn prepare(command: &Prepare, ui: Ui) -> Result<ExitCode> {
    let (workload, options) = command.options();
    let order = workload.order(options)?;
    let PrepareOptions { target, thread_init_timeout, .. } = options;
    let target = target::open(target, ui)?;
    let server = target.server();
    server.await_connection(thread_init_timeout.map(|span| span.0.as_secs_f64()), ui.interrupt)?;
    let schema = schema_of(&order.dataset.parameters());
    let access = Access {
        dataset: order.dataset.traits().name,
        needs: Needs::Create,
        schema: schema.as_deref(),
    };
    let prepared = run::prepare(&order, &server, ui.interrupt, &shown(ui))
        .map_err(|error| target::with_grants(&target, error, access))?;
    target.close()?;
    ui::print_done(&ui::wrapped(&report::prepared_text(&prepared)))
}

/// Reads the dataset into the caches and prints how much was read.
pub(super) fn warm(command: &Warm, ui: Ui) -> Result<ExitCode> {
    let (dataset, given) = command.dataset()?;
    let target = target::open(command.target(), ui)?;
    let schema = schema_of(&dataset.parameters());
    let access =
        Access { dataset: dataset.traits().name, needs: Needs::Read, schema: schema.as_deref() };
    let warmed =
        run::warm(&dataset, &given, &target.server(), ui.interrupt, &mut |text| ui.notice(text))
            .map_err(|error| target::with_grants(&target, error, access))?;
    target.close()?;
    ui::print_done(&ui::wrapped(&report::warmed_text(&warmed)))
}

/// Checks the data and prints each check. The exit code is [`NOT_VALID`] if a check failed or something cannot be
/// verified.
pub(super) fn verify(command: &Verify, ui: Ui) -> Result<ExitCode> {
    let (name, options) = command.named();
    let store = stored::open_if_present(&options.store, ui)?;
    let target = target::open(&options.target, ui)?;
    let history: &dyn History = store.as_ref().map_or(&NoHistory, |store| store);
    let access = Access { dataset: name, needs: Needs::Read, schema: None };
    let checks =
        run::verify(name, &target.server(), ui.interrupt, history, &mut |text| ui.notice(text))
            .map_err(|error| target::with_grants(&target, error, access))?;
    target.close()?;
    ui::print(&ui::wrapped(&report::checks_text(&checks)))?;
    let all_passed = checks.iter().all(|check| check.held && !check.unknown);
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID) })
}

/// Drops the dataset and prints what was dropped.
pub(super) fn cleanup(command: &Cleanup, ui: Ui) -> Result<ExitCode> {
    let (name, options) = command.named();
    let target = target::open(options, ui)?;
    let server = target.server();
    let schema = match command {
        Cleanup::Oltp(oltp) => oltp.schema.as_deref(),
        _ => None,
    };
    let mut on_wait = |text: &str| ui.notice(text);
    let dropped = dataset::cleanup(name, schema, &server, ui.interrupt, &mut on_wait)
        .map_err(RunError::from)?;
    let remaining =
        schema.map(|schema| sysbench::foreign_tables(&server, schema, ui.interrupt)).transpose();
    let remaining = remaining.map_err(RunError::from)?.unwrap_or_default();
    target.close()?;
    for database in &dropped.foreign_databases {
        ui.notice(&format!(
            "database \"{database}\" was not dropped: it does not have the comment of riops"
        ));
    }
    ui::print(&report::dropped_text(name, &dropped))?;
    if !remaining.is_empty() {
        bail!(
            "riops did not create these tables and did not drop them: {}; drop them with the tool that created them",
            remaining.join(", ")
        );
    }
    Ok(ExitCode::SUCCESS)
}
