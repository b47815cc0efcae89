//! `riops server`: starts, stops and shows the embedded server.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use riops::server::Changes;
use riops::server::embedded::{self, EmbeddedError, Options, State, Status};

use crate::args::{ChangeOptions, EmbeddedOptions, Server, TargetOptions};
use crate::failure::{FAILED, UsageError};
use crate::target::{self, embedded as acquire, embedded_options};
use crate::terminal::confirm;
use crate::ui::{self, Ui};

/// Executes the subcommand.
pub(crate) fn run(action: Server, ui: Ui) -> Result<ExitCode> {
    match action {
        Server::Start(options) => start(&options, ui),
        Server::Stop { server, force } => {
            let ran = embedded::stop(&embedded_options(&server), force, ui.interrupt)?;
            ui::print_done(if ran { "stopped\n" } else { "the server was not running\n" })
        }
        Server::Status(options) => status(&options),
        Server::Url { server, tcp } => {
            let state = running(&server)?;
            ui::print_done(&format!("{}\n", if tcp { state.url_tcp() } else { state.url() }))
        }
        Server::Psql { server, arguments } => psql(&running(&server)?, &arguments),
        Server::Restore { target, changes } => restore(&target, &changes, ui),
        Server::Reset { server, force, yes } => reset(&embedded_options(&server), force, yes, ui),
        Server::Keep => keep(),
    }
}

/// Restores settings that a killed riops left changed.
fn restore(target: &TargetOptions, changes: &ChangeOptions, ui: Ui) -> Result<ExitCode> {
    let target = target::open(target, ui)?;
    let changes = Changes { restart: changes.restart.clone(), of_shared: true };
    let server = riops::server::Server { changes, ..target.server() };
    let names = riops::run::restore_settings(&server)?;
    target.close()?;
    ui::print_done(&match names.as_slice() {
        [] => "no setting was left changed\n".to_owned(),
        names => format!("restored: {}\n", names.join(", ")),
    })
}

/// Runs the keeper process.
pub(crate) fn keep() -> Result<ExitCode> {
    embedded::run_keeper(&mut std::io::stdin().lock(), &mut std::io::stdout().lock())
        .context("the keeper of the embedded server failed")?;
    Ok(ExitCode::SUCCESS)
}

fn start(options: &EmbeddedOptions, ui: Ui) -> Result<ExitCode> {
    let server = acquire(options, ui)?;
    server.make_persistent()?;
    let state = server.state().clone();
    server.leave()?;
    ui::print_done(&format!(
        "running: {}\nurl      {}\nstop with: riops server stop{}\n",
        state.version,
        state.url(),
        ui.given().embedded_home
    ))
}

fn reset(options: &Options, force: bool, yes: bool, ui: Ui) -> Result<ExitCode> {
    let Some(data) = embedded::data_to_reset(options)? else {
        return ui::print_done("nothing to remove\n");
    };
    let question = format!("Stop the server and remove all its data in {}?", data.display());
    if confirm(&question, yes, ui)? {
        embedded::reset(options, force, ui.interrupt)?;
        ui::print(&format!("stopped the server and removed its data in {}\n", data.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn status(options: &EmbeddedOptions) -> Result<ExitCode> {
    let Some(Status { home, running, persistent, in_use }) =
        embedded::status(&embedded_options(options))?
    else {
        ui::print("stopped (never started)\n")?;
        return Ok(ExitCode::from(FAILED));
    };
    let Some(state) = running else {
        ui::print(&format!("stopped\ndata     {}\n", home.data().display()))?;
        return Ok(ExitCode::from(FAILED));
    };
    let stops = match (persistent, in_use) {
        (true, _) => "runs until riops server stop",
        (false, _) => "stops when no riops process uses it",
    };
    let settings: Vec<_> =
        state.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    ui::print(&format!(
        "running: {} (process {}), {stops}{}\nurl      {}\ntcp      127.0.0.1:{} (riops server url --tcp prints the URL with the password)\nprograms {}\ndata     {}\nlog      {}\nsettings {}\n",
        state.version,
        state.pid,
        if in_use { "; in use" } else { "" },
        state.url(),
        state.port,
        state.bin_dir.display(),
        home.data().display(),
        home.log().display(),
        settings.join(", "),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn running(options: &EmbeddedOptions) -> Result<State> {
    let status = embedded::status(&embedded_options(options))?;
    Ok(status.and_then(|status| status.running).ok_or(EmbeddedError::NotRunning)?)
}

/// Replaces this process with psql. The downloaded server does not include psql.
fn psql(state: &State, arguments: &[OsString]) -> Result<ExitCode> {
    let own = state.bin_dir.join("psql");
    let on_path = || {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join("psql"))
            .find(|program| program.is_file())
    };
    let program: PathBuf = Some(own).filter(|program| program.is_file()).or_else(on_path).ok_or_else(|| {
        UsageError(format!(
            "psql is not installed (Debian: apt install postgresql-client); connect with another client to {}",
            state.url()
        ))
    })?;
    let error = Command::new(&program).arg(state.url()).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}
