//! `riops doctor`: a look at the target, or at this client.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::Registry;
use riops::engine::calibrate;
use riops::host::machine::MachineFacts;
use riops::host::{Interrupt, machine};
use riops::probe::disk::{DiskError, measure};
use riops::record::DiskLimit;
use riops::report;
use riops::server::examine::examine;
use riops::server::facts::ServerFacts;
use riops::server::{Connection, Pooler, is_on_this_machine};
use riops::store::{SqliteStore, default_path};
use riops::units::BLOCK_BYTES;
use riops::workload::rows::NAME;
use serde::Serialize;

use crate::args::{Doctor, Output};
use crate::failure::{FAILED, UsageError};
use crate::target::Target;
use crate::ui::Ui;

/// How long the client is measured where nothing else was asked for, in seconds.
const CALIBRATION_S: f64 = 3.0;

/// How long each figure of a device is measured where nothing else was asked for, in seconds.
const DISK_S: f64 = 5.0;
/// The file that is read and written then: a typed 2GB.
const DISK_BYTES: u64 = 2 << 30;
/// A smaller one stays in the caches of the device itself.
const DISK_BYTES_MIN: u64 = 64 << 20;

/// Looks, and says what there is to say.
pub(crate) fn doctor(options: &Doctor, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    if options.client {
        return client(options, interrupt, ui);
    }
    if options.disk {
        return disk(options, interrupt, ui);
    }
    if options.duration.is_some() {
        let text = "--duration goes with --client or --disk: nothing else is measured";
        return Err(UsageError(text.to_owned()).into());
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
    riops::run::allow_sessions(2 * sessions, workers)?;
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

/// Measures the device of the server's data, and keeps what it can do.
fn disk(options: &Doctor, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let seconds = options.duration.map_or(DISK_S, |span| span.0.as_secs_f64());
    if !(1.0..=3600.0).contains(&seconds) {
        let text = "--duration must be between 1s and 1h: what is kept has to mean something";
        return Err(UsageError(text.to_owned()).into());
    }
    if options.sessions.is_some() || options.workers.is_some() {
        let text = "--sessions and --workers go with --client";
        return Err(UsageError(text.to_owned()).into());
    }
    let file_bytes = options.disk_size.map_or(DISK_BYTES, |size| size.blocks() * BLOCK_BYTES);
    if file_bytes < DISK_BYTES_MIN {
        return Err(UsageError("--disk-size must be at least 64MB".to_owned()).into());
    }
    // What cannot be kept is better known before it is measured.
    let store = SqliteStore::open(&options.store.store.clone().unwrap_or_else(default_path))?;
    let (folder, target) = if let Some(folder) = &options.disk_dir {
        (folder.clone(), None)
    } else {
        let (folder, target) = folder_of_data(options, interrupt, ui)?;
        (folder, Some(target))
    };
    let limit = measure(&folder, file_bytes, seconds, interrupt, &|text| ui.notice(text));
    if let Some(target) = target {
        target.close()?;
    }
    if matches!(limit, Err(DiskError::Interrupted)) {
        return Ok(ExitCode::from(crate::failure::INTERRUPTED));
    }
    let limit = DiskLimit::from(limit?);
    store.keep_disk_limit(&MachineFacts::read().host, &limit)?;
    ui.notice(&format!("kept in {}", store.path().display()));
    print(options, &limit, report::disk_text)
}

/// The folder that has the server's data in it, where it is on the same device. Not the data's own: what is
/// in there goes into their backups.
fn folder_of_data(options: &Doctor, interrupt: &Interrupt, ui: Ui) -> Result<(PathBuf, Target)> {
    let target = Target::open(&options.target, interrupt, ui)?;
    target.announce(ui);
    let mut connection = Connection::open(&target.conninfo, interrupt)?;
    let pooler = Pooler::detect(&mut connection, &target.conninfo, interrupt)?;
    let is_local =
        pooler.is_none() && target.conninfo.is_local() && is_on_this_machine(&mut connection)?;
    let data = ServerFacts::read(&mut connection)?.data_directory.filter(|_| is_local);
    let Some(data) = data else {
        let text = "the folder of the server's data is not on this machine, or may not be seen: run riops doctor --disk on that machine, or name a folder of the device with --disk-dir";
        return Err(UsageError(text.to_owned()).into());
    };
    let device = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    match data.parent().filter(|parent| device(parent) == device(&data)) {
        Some(parent) => Ok((parent.to_owned(), target)),
        None => Err(UsageError(format!(
            "the folder above {} is on another device: name a folder of the device of the data with --disk-dir",
            data.display()
        ))
        .into()),
    }
}

fn print<T: Serialize>(options: &Doctor, found: &T, text: fn(&T) -> String) -> Result<ExitCode> {
    crate::ui::print(&match options.output.output {
        Output::Text => text(found),
        Output::Json => serde_json::to_string_pretty(found)? + "\n",
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use riops::units::Size;

    use super::*;

    #[test]
    fn the_default_of_disk_size_is_the_one_of_its_help() {
        let typed = "2GB".parse::<Size>().unwrap().blocks() * BLOCK_BYTES;
        assert_eq!(DISK_BYTES, typed);
    }
}
