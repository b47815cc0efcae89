//! `riops doctor`: a look at the target, or at this client.

use std::process::ExitCode;

use anyhow::Result;
use riops::engine::calibrate;
use riops::report;
use riops::target::examine::examine;
use riops::target::{Connection, Interrupt, Pooler, is_on_this_machine, machine};
use riops::workload::dataset::Registry;
use riops::workload::rows::NAME;
use serde::Serialize;

use crate::args::{Doctor, Output};
use crate::failure::{FAILED, UsageError};
use crate::target::Target;
use crate::ui::Ui;

/// How long the client is measured where nothing else was asked for, in seconds.
const CALIBRATION_S: f64 = 3.0;

/// Looks, and says what there is to say.
pub(crate) fn doctor(options: &Doctor, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    if options.client {
        return client(options, interrupt, ui);
    }
    let target = Target::open(&options.target, interrupt, ui)?;
    target.announce(ui);
    let conninfo = &target.conninfo;
    let mut connection = Connection::open(conninfo, interrupt)?;
    Target::tell_encryption(&connection, ui);
    let pooler = Pooler::detect(&mut connection, conninfo, interrupt)?;
    let is_local = pooler.is_none() && conninfo.is_local() && is_on_this_machine(&mut connection)?;
    let mut diagnosis = examine(&mut connection, &conninfo.database, pooler, is_local)?;
    let memory_bytes = is_local.then_some(diagnosis.client.memory_bytes);
    diagnosis.dataset = Registry::new(&mut connection, NAME).fit(memory_bytes)?;
    drop(connection);
    target.close()?;
    print(options, &diagnosis, report::diagnosis_text)
}

/// Measures the client against a server that does nothing.
fn client(options: &Doctor, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let cores = u32::try_from(machine::cpus()).unwrap_or(1);
    let sessions = options.sessions.unwrap_or(cores);
    let workers = options.workers.unwrap_or_else(|| cores.min(sessions));
    if workers == 0 || workers > sessions {
        let text = format!("--workers {workers} has to be between 1 and --sessions {sessions}");
        return Err(UsageError(text).into());
    }
    let seconds = options.duration.map_or(CALIBRATION_S, |span| span.0.as_secs_f64());
    if !(seconds > 0.0 && seconds <= 3600.0) {
        return Err(UsageError("--duration must be above 0 and at most 1h".to_owned()).into());
    }
    // The null server has as many.
    super::run::allow_sessions(2 * sessions, workers)?;
    ui.notice("measuring this client against a server that does nothing");
    let calibration = calibrate(sessions, workers, seconds, interrupt)?;
    if interrupt.requested() {
        return Ok(ExitCode::from(crate::failure::INTERRUPTED));
    }
    if calibration.transactions_per_s == 0.0 {
        crate::ui::error("no transaction ended within the measurement");
        return Ok(ExitCode::from(FAILED));
    }
    print(options, &calibration, report::calibration_text)
}

fn print<T: Serialize>(options: &Doctor, found: &T, text: fn(&T) -> String) -> Result<ExitCode> {
    crate::ui::print(&match options.output.output {
        Output::Text => text(found),
        Output::Json => serde_json::to_string_pretty(found)? + "\n",
    })?;
    Ok(ExitCode::SUCCESS)
}
