//! `riops run`: executes a plan from options or a file, and stores and prints the record.

use std::cell::OnceCell;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::dataset::{Access, Needs};
use riops::host::Interrupt;
use riops::plan::{Plan, PreparePolicy};
use riops::record::{DiskLimit, Record, Status};
use riops::report::{self, Extras, Form};
use riops::run::{self, History, NoHistory};
use riops::store::Store;

use super::graph::Graph;
use crate::args::run::{GraphOptions, ResultOptions};
use crate::args::{self, PlanOptions, TargetOptions};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::screen::Screen;
use crate::stored;
use crate::target::Target;
use crate::ui::Ui;
use crate::unstored;

/// Runs the plan of the options or of `--plan`.
pub(crate) fn run(command: &args::Run, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    match (&command.workload, &command.plan) {
        (Some(workload), _) => {
            let options = workload.options();
            let none = GraphOptions::default();
            let graph_options = options.graph_options().unwrap_or(&none);
            let command_options = CommandOptions {
                keep: options.result_options(),
                graph_options,
                target: options.target(),
            };
            perform(&options.plan()?, &command_options, (interrupt, ui)).map(|(code, _)| code)
        }
        (None, Some(file)) => {
            let plan = read_plan(file)?;
            run_existing_plan(plan, &command.again, (interrupt, ui)).map(|(code, _)| code)
        }
        (None, None) => {
            let text =
                "nothing to run: specify a workload (see riops run --help) or a plan (--plan FILE)";
            Err(UsageError(text.to_owned()).into())
        }
    }
}

/// Runs the plan of a file or of a stored run.
pub(crate) fn run_existing_plan(
    mut plan: Plan,
    options: &PlanOptions,
    environment: (&Interrupt, Ui),
) -> Result<(ExitCode, Option<Record>)> {
    let PlanOptions { prepare, keep, graph_options, target } = options;
    plan.keep_samples |= graph_options.graph.is_some();
    if prepare.policy() == PreparePolicy::IfMissing {
        plan.prepare = PreparePolicy::IfMissing;
    }
    perform(&plan, &CommandOptions { keep, graph_options, target }, environment)
}

/// Reads a plan from a file.
fn read_plan(file: &Path) -> Result<Plan> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| UsageError(format!("cannot read the plan {}: {error}", file.display())))?;
    Plan::from_json(&text)
        .map_err(|error| UsageError(format!("plan {}: {error}", file.display())).into())
}

/// The options that are not part of the plan.
struct CommandOptions<'a> {
    keep: &'a ResultOptions,
    graph_options: &'a GraphOptions,
    target: &'a TargetOptions,
}

/// Opens the store and the server, runs the plan, and stores and prints the record.
fn perform(
    plan: &Plan,
    command_options: &CommandOptions<'_>,
    (interrupt, ui): (&Interrupt, Ui),
) -> Result<(ExitCode, Option<Record>)> {
    let CommandOptions { keep, graph_options, target } = command_options;
    plan.validate()?;
    if keep.dump_plan {
        crate::ui::print(&(serde_json::to_string_pretty(plan)? + "\n"))?;
        return Ok((ExitCode::SUCCESS, None));
    }
    let form = report::form(&keep.output.output, plan)?;
    // Opened before the run, so that a file that cannot be written fails before the measurement.
    let graph = Graph::open(graph_options)?;
    let runs = StoredRuns::open(keep, (interrupt, ui))?;
    // Checked before any server is started: the limit on open files may be too low for the plan.
    run::allow_sessions(plan.sessions, plan.workers)?;
    let target = Target::open(target, interrupt, ui)?;
    target.announce(ui);
    let (mut stored, mut printed) = (Ok(()), Ok(()));
    let mut publish = |record: &Record| {
        let (text, result) = runs.save(record);
        stored = result;
        let options = (Some(ui.given().server.as_str()), ui.given().store.as_str());
        printed = print(record, &text, form, (graph_options, options));
    };
    let mut screen = Screen::new(ui, &runs, &mut publish);
    let record = run::run(plan, &target.server(), interrupt, &mut screen)
        .map_err(|error| target.with_grants(error, access(plan)))?;
    let drawn = graph.map_or(Ok(()), |graph| graph.draw(&record, ui));
    target.close()?;
    printed?;
    stored.context("cannot store the run")?;
    let code = exit_code(&record);
    match drawn {
        Err(error) if code == ExitCode::SUCCESS => Err(error),
        drawn => {
            // The exit code of the run takes precedence over the failure of the graph.
            if let Err(error) = drawn {
                ui.notice(&format!("{error:#}"));
            }
            Ok((code, Some(record)))
        }
    }
}

/// The access of a run to its dataset.
fn access(plan: &Plan) -> Access<'_> {
    let spec = plan.work.spec();
    let creates = spec.replaces_its_table() || plan.prepare == PreparePolicy::IfMissing;
    Access {
        dataset: spec.dataset().unwrap_or_else(|| spec.name()),
        needs: match (creates, spec.writes()) {
            (true, _) => Needs::Create,
            (false, true) => Needs::Write,
            (false, false) => Needs::Read,
        },
        schema: plan.dataset.get("schema").and_then(|schema| schema.as_str()),
    }
}

/// The store of a run, which also provides the history of earlier runs.
struct StoredRuns<'a> {
    /// Store that the run is saved to; `None` with `--no-store`.
    store: Option<Box<dyn Store>>,
    /// Store for the history with `--no-store`, if it exists; opened on first use.
    history_only: OnceCell<Option<Box<dyn Store>>>,
    options: &'a ResultOptions,
    environment: (&'a Interrupt, Ui),
}

impl<'a> StoredRuns<'a> {
    fn open(options: &'a ResultOptions, environment: (&'a Interrupt, Ui)) -> Result<Self> {
        let (interrupt, ui) = environment;
        let store = if options.no_store {
            None
        } else {
            Some(stored::open(&options.store, interrupt, ui)?)
        };
        if let Some(store) = &store {
            store.require_writable()?;
        }
        Ok(Self { store, history_only: OnceCell::new(), options, environment })
    }

    /// Saves the record. Returns a text for the output, the location or the error, and the result.
    fn save(&self, record: &Record) -> (String, Result<()>) {
        let Some(store) = &self.store else {
            return ("no (--no-store)".to_owned(), Ok(()));
        };
        match store.save(record) {
            Ok(()) => (format!("{} in {}", record.id, store.location()), Ok(())),
            // A failed save must not prevent the result from being printed.
            Err(error) => {
                let error = unstored::keep(record, &error);
                let (_, ui) = self.environment;
                (ui.given().complete(&format!("NO: {error}")), Err(error))
            }
        }
    }

    fn history(&self) -> &dyn History {
        let (interrupt, ui) = self.environment;
        let existing =
            || stored::open_if_present(&self.options.store, interrupt, ui).ok().flatten();
        match self.store.as_ref().or_else(|| self.history_only.get_or_init(existing).as_ref()) {
            Some(store) => store,
            None => &NoHistory,
        }
    }
}

impl History for StoredRuns<'_> {
    fn record(&self, id: &str) -> Option<Record> {
        self.history().record(id)
    }

    fn disk_limit(&self, host: &str, device: &str, identity: Option<&str>) -> Option<DiskLimit> {
        self.history().disk_limit(host, device, identity)
    }
}

/// Prints a record in a form, with the options for its server, if known, and store in the commands to try. If the form has no verdict, prints the reasons for an invalid run and the
/// breached thresholds to standard error.
pub(crate) fn print(
    record: &Record,
    stored: &str,
    form: &dyn Form,
    (graph_options, (server, store)): (&GraphOptions, (Option<&str>, &str)),
) -> Result<()> {
    let extras = Extras::new(stored, crate::ui::output_columns())
        .with_histogram(graph_options.histogram())
        .with_options(server, store);
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
