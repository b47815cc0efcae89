//! `riops run`: reads a plan from options, from a file or from a stored run, runs it, prints the record.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::host::Interrupt;
use riops::plan::{Plan, PreparePolicy};
use riops::record::{DiskLimit, Record, Status};
use riops::report::{self, Extras, Form};
use riops::run::{self, History, Nothing};
use riops::store::{SqliteStore, default_path};

use super::picture::Graph;
use crate::args::run::{KeepOptions, PictureOptions};
use crate::args::{self, AgainOptions, TargetOptions};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::screen::Screen;
use crate::target::Target;
use crate::ui::Ui;

/// Measures, stores the record, prints it.
pub(crate) fn run(command: &args::Run, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    match (&command.workload, &command.plan) {
        (Some(workload), _) => {
            let options = workload.options();
            let none = PictureOptions::default();
            let picture = options.picture().unwrap_or(&none);
            let command_options =
                CommandOptions { keep: options.keep(), picture, target: options.target() };
            perform(&options.plan()?, &command_options, (interrupt, ui)).map(|(code, _)| code)
        }
        (None, Some(file)) => {
            let plan = read_plan(file)?;
            again(plan, &command.again, (interrupt, ui)).map(|(code, _)| code)
        }
        (None, None) => {
            let text = "nothing to run: name a workload (riops run --help lists them) or a plan (--plan FILE)";
            Err(UsageError(text.to_owned()).into())
        }
    }
}

/// Runs a plan that is there already.
pub(crate) fn again(
    mut plan: Plan,
    options: &AgainOptions,
    environment: (&Interrupt, Ui),
) -> Result<(ExitCode, Option<Record>)> {
    let AgainOptions { prepare, keep, picture, target } = options;
    plan.keep_samples |= picture.graph.is_some();
    if prepare.policy() == PreparePolicy::IfMissing {
        plan.prepare = PreparePolicy::IfMissing;
    }
    perform(&plan, &CommandOptions { keep, picture, target }, environment)
}

/// Reads a plan from a file.
fn read_plan(file: &Path) -> Result<Plan> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the plan {}", file.display()))?;
    Plan::from_json(&text)
        .map_err(|error| UsageError(format!("the plan {}: {error}", file.display())).into())
}

/// What the command is told beside the plan.
struct CommandOptions<'a> {
    keep: &'a KeepOptions,
    picture: &'a PictureOptions,
    target: &'a TargetOptions,
}

/// Opens store and server, runs, stores the record, prints it.
fn perform(
    plan: &Plan,
    command_options: &CommandOptions<'_>,
    (interrupt, ui): (&Interrupt, Ui),
) -> Result<(ExitCode, Option<Record>)> {
    let CommandOptions { keep, picture, target } = command_options;
    plan.validate()?;
    if keep.dump_plan {
        crate::ui::print(&(serde_json::to_string_pretty(plan)? + "\n"))?;
        return Ok((ExitCode::SUCCESS, None));
    }
    let form = report::form(&keep.output.output, plan)?;
    // What cannot be written is better known before the run than after it.
    let graph = Graph::open(picture)?;
    let runs = StoredRuns::open(keep)?;
    // Before anything is started: the limit may be too low for the plan.
    run::allow_sessions(plan.sessions, plan.workers)?;
    let target = Target::open(target, interrupt, ui)?;
    target.announce(ui);
    let (mut stored, mut printed) = (Ok(()), Ok(()));
    let mut publish = |record: &Record| {
        let (text, result) = runs.save(record);
        stored = result;
        printed = print(record, &text, form, picture);
    };
    let mut screen = Screen::new(ui, &runs, &mut publish);
    let record = run::run(plan, &target.server(), interrupt, &mut screen)?;
    let drawn = graph.map_or(Ok(()), |graph| graph.draw(&record, ui));
    target.close()?;
    printed?;
    stored.context("the run was not stored")?;
    let code = exit_code(&record);
    match drawn {
        Err(error) if code == ExitCode::SUCCESS => Err(error),
        drawn => {
            // What became of the run matters more than its picture.
            if let Err(error) = drawn {
                ui.notice(&format!("{error:#}"));
            }
            Ok((code, Some(record)))
        }
    }
}

/// The store of a run, and what it tells of earlier ones.
struct StoredRuns {
    path: PathBuf,
    /// Where the run is stored, if it is.
    store: Option<SqliteStore>,
    /// What earlier runs are known from where this one is not stored; opened when it is asked.
    known: OnceCell<Option<SqliteStore>>,
}

impl StoredRuns {
    fn open(options: &KeepOptions) -> Result<Self> {
        let path = options.store.store.clone().unwrap_or_else(default_path);
        let store = if options.no_store { None } else { Some(SqliteStore::open(&path)?) };
        Ok(Self { path, store, known: OnceCell::new() })
    }

    /// Stores the record; in words where, and whether that failed.
    fn save(&self, record: &Record) -> (String, Result<()>) {
        match self.store.as_ref().map(|store| store.save(record)) {
            None => ("no (--no-store)".to_owned(), Ok(())),
            Some(Ok(())) => (format!("{} in {}", record.id, self.path.display()), Ok(())),
            // The result is worth more than the place where it was to be stored.
            Some(Err(error)) => (format!("NO: {error}"), Err(error.into())),
        }
    }

    fn history(&self) -> &dyn History {
        let existing = || self.path.exists().then(|| SqliteStore::open(&self.path).ok()).flatten();
        match self.store.as_ref().or_else(|| self.known.get_or_init(existing).as_ref()) {
            Some(store) => store,
            None => &Nothing,
        }
    }
}

impl History for StoredRuns {
    fn record(&self, id: &str) -> Option<Record> {
        self.history().record(id)
    }

    fn disk_limit(&self, host: &str, device: &str) -> Option<DiskLimit> {
        self.history().disk_limit(host, device)
    }
}

/// Prints a record in a form, and on standard error what that form has no place for.
pub(crate) fn print(
    record: &Record,
    stored: &str,
    form: &dyn Form,
    picture: &PictureOptions,
) -> Result<()> {
    let extras = Extras::stored(stored).with_histogram(picture.histogram());
    crate::ui::print(&form.print(record, &extras)?)?;
    if !form.has_verdict() {
        for reason in &record.verdict.reasons {
            crate::ui::error(&format!("NOT VALID: {reason}"));
        }
        for found in record.thresholds.iter().filter(|found| !found.held) {
            crate::ui::error(&format!("threshold breached: {}", found.threshold));
        }
    }
    Ok(())
}

fn exit_code(record: &Record) -> ExitCode {
    match record.status {
        Status::Interrupted => ExitCode::from(INTERRUPTED),
        Status::Failed => ExitCode::from(FAILED),
        Status::Done if !record.verdict.valid => ExitCode::from(NOT_VALID),
        Status::Done if record.thresholds.iter().any(|threshold| !threshold.held) => {
            ExitCode::from(BREACHED)
        }
        Status::Done => ExitCode::SUCCESS,
    }
}
