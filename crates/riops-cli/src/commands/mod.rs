//! One file a command.

mod cleanup;
mod doctor;
mod generate;
mod picture;
mod prepare;
mod report;
mod run;
mod runs;
mod server;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use riops::host::Interrupt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::{Arguments, Command, Generate, Server};
use crate::failure::INTERRUPTED;
use crate::ui::Ui;

/// Does what the command line says.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let ui = Ui::new(arguments.quiet);
    // The keeper has signals of its own, and nobody to talk to.
    if let Command::Server { action: Server::Keep } = arguments.command {
        return server::keep();
    }
    let interrupt = heed_signals()?;
    ui.watch_downloads();
    for notice in &arguments.notices {
        ui.notice(notice);
    }
    match arguments.command {
        Command::Prepare { workload } => prepare::run(&workload, &interrupt, ui),
        Command::Run(options) => run::run(&options, &interrupt, ui),
        Command::Verify { workload } => verify::run(&workload, &interrupt, ui),
        Command::Cleanup { workload } => cleanup::run(&workload, &interrupt, ui),
        Command::Generate { what: Generate::Csv(options) } => {
            generate::csv(&options, &interrupt, ui)
        }
        Command::Runs { action } => runs::run(&action, &interrupt, ui),
        Command::Report(options) => report::write(&options, ui),
        Command::Doctor(options) => doctor::doctor(&options, &interrupt, ui),
        Command::Server { action } => server::run(action, &interrupt, ui),
    }
}

/// Ctrl-C and SIGTERM ask for an end in good order; the second time they end at once. SIGHUP is left
/// as it was found: nohup has to keep its meaning.
fn heed_signals() -> Result<Interrupt> {
    let interrupt = Interrupt::new();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let asked = interrupt.clone();
    std::thread::Builder::new().name("riops-signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if asked.requested() {
                exit_at_once();
            }
            asked.request();
        }
    })?;
    Ok(interrupt)
}

/// The user does not want to wait. The embedded server's keeper sees to the rest.
#[expect(clippy::exit, reason = "the second Ctrl-C ends at once, whatever is under way")]
fn exit_at_once() -> ! {
    std::process::exit(i32::from(INTERRUPTED))
}
