//! `riops doctor`: examines the server, or measures this client or the device of the server's data.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::Registry;
use riops::engine::calibrate;
use riops::probe::disk::{DiskError, measure};
use riops::probe::{Place, cpu, perf};
use riops::record::diagnosis::{Finding, Level};
use riops::report::{self, Lines, Rendered, document_text, findings_text};
use riops::server::examine::examine;
use riops::server::facts::server_facts;
use riops::server::{
    Connection, ConnectionError, Feature, detect_pooler, local_server, shares_files,
};
use riops::units::BLOCK_BYTES;
use riops::units::text::json_text;
use riops::workload::rows::NAME;
use serde::Serialize;

use crate::args::Doctor;
use crate::args::run::cores;
use crate::failure::refuse;
use crate::output::Outputs;
use crate::stored;
use crate::target;
use crate::ui::Ui;

/// Default length of the client measurement, in seconds.
const CALIBRATION_S: f64 = 3.0;

/// Default length of each device measurement, in seconds.
const DISK_S: f64 = 5.0;
/// Default size of the test file, in bytes: `--disk-size 2GB`.
const DISK_BYTES: u64 = 2 << 30;
/// Minimum size of the test file, in bytes. A smaller file would fit into the cache of the device.
const DISK_BYTES_MIN: u64 = 64 << 20;

/// Examines the server and prints the findings, or measures this client or a device.
pub(crate) fn doctor(options: &Doctor, ui: Ui) -> Result<ExitCode> {
    if options.client {
        return client(options, ui);
    }
    if options.disk {
        return disk(options, ui);
    }
    if options.duration.is_some() {
        return refuse("--duration requires --client or --disk");
    }
    let target = target::open(&options.target, ui)?;
    let conninfo = &target.conninfo;
    let mut connection = Connection::open(conninfo, ui.interrupt)?;
    target::warn_if_unencrypted(&connection, ui);
    let pooler = detect_pooler(&mut connection, conninfo, ui.interrupt)?;
    let is_local = pooler.is_none() && conninfo.is_local() && shares_files(&mut connection)?;
    let mut diagnosis = examine(&mut connection, &conninfo.database, pooler, is_local)?;
    let place = local_server(&mut connection)?.filter(|_| is_local);
    let place = place.map_or(Place::Unknown, |server| Place::Here(server.process));
    diagnosis.findings.push(perf::finding(place, diagnosis.server.compiler_flags.as_deref()));
    let left = riops::run::settings_warning(&mut connection)?;
    diagnosis.findings.extend(left.map(|text| Finding {
        level: Level::Warning,
        about: "settings".to_owned(),
        text: ui.given().complete(&text),
    }));
    diagnosis.findings.extend(cpu::finding(&diagnosis.client, ui.interrupt));
    let memory_bytes = is_local.then_some(diagnosis.client.memory_bytes);
    if connection.dialect().has(Feature::Catalogs) {
        diagnosis.dataset = Registry::new(&mut connection, NAME).fit(memory_bytes)?;
    }
    drop(connection);
    target.close()?;
    let findings = report::diagnosis_findings(&diagnosis);
    print(options, &diagnosis, &|lines| findings_text(&findings, lines), ui)
}

/// Measures the maximum throughput of this client, against a server that does nothing.
fn client(options: &Doctor, ui: Ui) -> Result<ExitCode> {
    let sessions = options.sessions.unwrap_or_else(cores);
    let workers = options.workers.unwrap_or_else(cores).min(sessions);
    if workers == 0 {
        return refuse("--sessions and --workers must be at least 1");
    }
    let seconds = options.duration.map_or(CALIBRATION_S, |span| span.0.as_secs_f64());
    if !(seconds > 0.0 && seconds <= 3600.0) {
        return refuse("--duration must be greater than 0 and at most 1h");
    }
    // Two files per session: the null server has the other end of each connection.
    riops::run::allow_sessions(2 * sessions, workers)?;
    ui.notice(
        "measuring the maximum throughput of this client, against a server that does nothing",
    );
    let calibration = calibrate(sessions, workers, seconds, ui.interrupt)?;
    if ui.interrupt.is_requested() {
        return Err(ConnectionError::Interrupted.into());
    }
    if calibration.transactions_per_s == 0.0 {
        anyhow::bail!("no transaction ended within the measurement");
    }
    let document = report::calibration_document(&calibration);
    print(options, &calibration, &|lines| document_text(&document, lines), ui)
}

/// Measures the limits of the device of the server's data, and stores them.
fn disk(options: &Doctor, ui: Ui) -> Result<ExitCode> {
    let seconds = options.duration.map_or(DISK_S, |span| span.0.as_secs_f64());
    if !(1.0..=3600.0).contains(&seconds) {
        // The result is stored as the limit of the device: a shorter measurement would not be reliable.
        return refuse("--duration must be between 1s and 1h with --disk");
    }
    if options.sessions.is_some() || options.workers.is_some() {
        return refuse("--sessions and --workers require --client");
    }
    let file_bytes = options.disk_size.map_or(DISK_BYTES, |size| size.blocks() * BLOCK_BYTES);
    if file_bytes < DISK_BYTES_MIN {
        return refuse("--disk-size must be at least 64MB");
    }
    // Opened before the measurement, so that a store that cannot be written fails at once.
    let store = stored::open(&options.store, ui)?;
    store.require_writable()?;
    let (folder, target) = if let Some(folder) = &options.disk_dir {
        (folder.clone(), None)
    } else {
        let (folder, target) = parent_of_data(options, ui)?;
        (folder, Some(target))
    };
    let limit = measure(&folder, file_bytes, seconds, ui.interrupt, &|text| ui.notice(text));
    if let Some(target) = target {
        target.close()?;
    }
    if matches!(limit, Err(DiskError::Interrupted)) {
        return Err(ConnectionError::Interrupted.into());
    }
    let limit = limit?;
    store.save_disk_limit(&riops::host::machine::facts().host, &limit)?;
    ui.notice(&format!("stored in {}", store.location()));
    let document = report::disk_document(&limit, &ui.given().server);
    print(options, &limit, &|lines| document_text(&document, lines), ui)
}

/// Returns the parent of the server's data directory, which must be on the same device. Files in the data
/// directory itself would be included in base backups.
fn parent_of_data(options: &Doctor, ui: Ui) -> Result<(PathBuf, riops::server::Target)> {
    let target = target::open(&options.target, ui)?;
    let mut connection = Connection::open(&target.conninfo, ui.interrupt)?;
    let pooler = detect_pooler(&mut connection, &target.conninfo, ui.interrupt)?;
    let is_local = pooler.is_none() && target.conninfo.is_local() && shares_files(&mut connection)?;
    let data = server_facts(&mut connection)?.data_directory.filter(|_| is_local);
    let Some(data) = data else {
        let text = "the server's data directory is not on this machine, or its path is not visible to this user: run riops doctor --disk on the server's machine, or select a directory on its device with --disk-dir";
        return refuse(text);
    };
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    match data.parent().filter(|parent| device(parent) == device(&data)) {
        Some(parent) => Ok((parent.to_owned(), target)),
        None => refuse(format!(
            "the parent of the data directory {} is on another device: select a directory on the device of the data with --disk-dir",
            data.display()
        )),
    }
}

fn print(
    options: &Doctor,
    result: &impl Serialize,
    text: &dyn Fn(Lines) -> String,
    ui: Ui,
) -> Result<ExitCode> {
    Outputs::open_answer(&options.answer, ui)?.emit(|form, lines| {
        Ok(match form {
            "json" => Rendered::Data(json_text(result)?),
            _ => Rendered::Text(text(lines)),
        })
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use riops::units::Size;

    use super::*;

    #[test]
    fn the_default_disk_size_matches_the_help() {
        let typed = "2GB".parse::<Size>().unwrap().blocks() * BLOCK_BYTES;
        assert_eq!(DISK_BYTES, typed);
    }
}
