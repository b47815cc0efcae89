//! The subcommands.

mod bisect;
mod compare;
mod dataset;
mod doctor;
mod editing;
mod exchange;
mod experiments;
mod files;
mod gallery;
mod gate;
mod generate;
mod manifest;
mod report;
mod run;
mod runs;
mod script;
mod serve;
mod server;
mod shell;
mod sweep;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use riops::host::Interrupt;
use riops::host::files::is_reading;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::sweep::Experiments;
use crate::args::{Arguments, Command, FleetCommand, Generate, Original, Runs, Server};
use crate::failure::{ErrorForm, INTERRUPTED, UsageError};
use crate::hints::Given;
use crate::ui::Ui;

/// How long a command that only reads may take to end after a signal.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// Executes the parsed command.
pub(crate) fn run(arguments: Arguments, given: &'static Given) -> Result<ExitCode> {
    let ui = Ui::new(arguments.quiet, given);
    // The keeper uses the default signal handlers and prints no notices.
    if let Command::Server(Server::Keep) = arguments.command {
        return server::keep();
    }
    let is_read_only = is_read_only(&arguments.command);
    install_signal_handlers(ui.interrupt.clone(), is_read_only, arguments.error_form)?;
    ui.watch_downloads();
    for notice in &arguments.notices {
        ui.notice(notice);
    }
    match arguments.command {
        Command::Prepare(workload) => dataset::prepare(&workload, ui),
        Command::Run(options) => run::run(&options, ui),
        Command::Observe(options) => run::run_workload(options.as_ref(), ui),
        Command::Sweep(options) => sweep::sweep(&options, &arguments.cell_words, ui),
        Command::Ab(options) => sweep::ab(&options, &arguments.cell_words, ui),
        Command::Gallery(options) => gallery::run(&options, ui),
        Command::Gate(options) => gate::run(&options, ui),
        Command::Bisect(options) => bisect::run(&options, ui),
        Command::Verify(workload) => dataset::verify(&workload, ui),
        Command::Warm(workload) => dataset::warm(&workload, ui),
        Command::Cleanup(workload) => dataset::cleanup(&workload, ui),
        Command::Generate(Generate::Csv(options)) => generate::csv(&options, ui),
        Command::Last(options) => runs::last(&options, ui),
        Command::Runs(action) => runs::run(&action, ui),
        Command::Experiments(action) => experiments::run(&action, ui),
        Command::Compare(options) => compare::compare(&options, ui),
        Command::Report(options) => report::write(&options, ui),
        Command::Serve(options) => serve::serve(&options, ui),
        Command::Explain { term } => shell::explain(&term.join(" ")),
        Command::Doctor(options) => doctor::doctor(&options, ui),
        Command::Script(command) => script::run(&command, ui),
        Command::Server(action) => server::run(action, ui),
        Command::Fleet(FleetCommand::Manifest(options)) => manifest::print(&options),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man(options) => shell::man(&options),
        // `main` handles these commands if they come first.
        Command::Sysbench(line) => Err(misplaced("sysbench", &line)),
        Command::YsqlBench(line) => Err(misplaced("ysql-bench", &line)),
        Command::Pgio(line) => Err(misplaced("pgio", &line)),
        Command::Pgbench(line) => Err(misplaced("pgbench", &line)),
    }
}

/// The error for options of riops before the name of another tool.
fn misplaced(tool: &str, line: &Original) -> anyhow::Error {
    let words = line.arguments.iter().map(|word| word.to_string_lossy());
    let words: Vec<_> = [tool.into()].into_iter().chain(words).collect();
    UsageError(format!("options before {tool} are not supported: use `riops {}`", words.join(" ")))
        .into()
}

/// Handles Ctrl-C, SIGTERM and SIGHUP: the first signal requests an orderly shutdown, a second one exits immediately.
/// SIGHUP does not count: a terminal that is closed may send it twice, or before SIGTERM. A signal that riops was started
/// with as ignored, as by nohup or by a shell in the background, stays ignored. A command that only reads, and one that waits
/// for a file, also exit if they do not end soon.
fn install_signal_handlers(
    interrupt: Interrupt,
    is_read_only: bool,
    form: ErrorForm,
) -> Result<()> {
    let ignored = ignored_signals();
    let handled = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| match ignored {
        Some(mask) => mask & (1 << (signal - 1)) == 0,
        None => signal != SIGHUP,
    });
    let mut signals = Signals::new(handled)?;
    std::thread::Builder::new().name("riops-signals".to_owned()).spawn(move || {
        let mut is_second = false;
        for signal in signals.forever() {
            if signal != SIGHUP {
                if is_second {
                    exit_immediately();
                }
                is_second = true;
            }
            let has_no_result = move || is_read_only || is_reading();
            if has_no_result() && !interrupt.is_requested() {
                std::thread::spawn(move || {
                    std::thread::sleep(END_TIMEOUT);
                    if has_no_result() {
                        form.print("interrupted", INTERRUPTED);
                        exit_immediately();
                    }
                });
            }
            interrupt.request_by(signal);
        }
    })?;
    Ok(())
}

/// Whether a command has no result that it must keep: it reads files or a store, and each run that it has stored is complete.
fn is_read_only(command: &Command) -> bool {
    match command {
        Command::Runs(action) => matches!(
            action,
            Runs::List(_)
                | Runs::Show { .. }
                | Runs::History(_)
                | Runs::Export(_)
                | Runs::Import(_)
        ),
        Command::Experiments(action) => {
            matches!(action, Experiments::List { .. } | Experiments::Show { .. })
        }
        Command::Last(_) | Command::Compare(_) | Command::Report(_) => true,
        _ => false,
    }
}

/// Returns the signals that riops was started with as ignored, bit n for signal n + 1; `None` if this is unknown.
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Exits without cleanup. The keeper then stops the embedded server.
#[expect(clippy::exit, reason = "the second Ctrl-C must not wait for work in progress")]
fn exit_immediately() -> ! {
    std::process::exit(i32::from(INTERRUPTED))
}
