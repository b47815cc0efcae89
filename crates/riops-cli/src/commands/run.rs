//! `riops run`: executes a plan from options or a file, and stores and prints the record.

use std::cell::OnceCell;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::dataset::{Access, Needs};
use riops::host::Interrupt;
use riops::plan::{Plan, PreparePolicy};
use riops::record::{DiskLimit, Record, Status};
use riops::report::{self, Extras, Form, FormError};
use riops::run::{self, History, NoHistory};
use riops::store::live::sink_of;
use riops::store::{self, Store, StoreLocation};

use super::graph::Graph;
use super::repeat::Repeats;
use super::unstored;
use crate::args::run::{GraphOptions, ResultOptions};
use crate::args::{self, PlanOptions, TargetOptions};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::live::{Live, OpenFeed};
use crate::screen::Screen;
use crate::stored;
use crate::target::Target;
use crate::tee::Tee;
use crate::ui::Ui;

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
                before: None,
            };
            perform(&options.plan()?, &command_options, (interrupt, ui)).map(|(code, _)| code)
        }
        (None, Some(file)) => {
            let plan = read_plan(file)?;
            run_existing_plan(plan, &command.again, None, (interrupt, ui)).map(|(code, _)| code)
        }
        (None, None) => {
            let text =
                "nothing to run: specify a workload (see riops run --help) or a plan (--plan FILE)";
            Err(UsageError(text.to_owned()).into())
        }
    }
}

/// Runs the plan of a file, or that of the stored run `before`.
pub(crate) fn run_existing_plan(
    mut plan: Plan,
    options: &PlanOptions,
    before: Option<&Record>,
    environment: (&Interrupt, Ui),
) -> Result<(ExitCode, Option<Record>)> {
    let PlanOptions { prepare, keep, graph_options, target } = options;
    plan.keep_samples |= graph_options.graph.is_some();
    if prepare.policy() == PreparePolicy::IfMissing {
        plan.prepare = PreparePolicy::IfMissing;
    }
    perform(&plan, &CommandOptions { keep, graph_options, target, before }, environment)
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
    /// The stored run that is repeated.
    before: Option<&'a Record>,
}

/// Opens the store and the server, runs the plan, and stores and prints the record: once, or with `--repeat`
/// several times.
fn perform(
    plan: &Plan,
    command_options: &CommandOptions<'_>,
    (interrupt, ui): (&Interrupt, Ui),
) -> Result<(ExitCode, Option<Record>)> {
    let CommandOptions { keep, graph_options, target: target_options, before } = command_options;
    plan.validate()?;
    if keep.dump_plan {
        crate::ui::print(&(serde_json::to_string_pretty(plan)? + "\n"))?;
        return Ok((ExitCode::SUCCESS, None));
    }
    let form = report::form(&keep.output.output, plan)?;
    let repeats = Repeats::of(&keep.repeat, graph_options)?;
    // Opened before the run, so that a file that cannot be written fails before the measurement.
    let graph = Graph::open(graph_options)?;
    let runs = StoredRuns::open(keep, (interrupt, ui))?;
    let live = Live::open(&keep.live, runs.feed(), ui)?;
    // Checked before any server is started: the limit on open files may be too low for the plan.
    run::allow_sessions(plan.sessions, plan.workers)?;
    let target = Target::open(target_options, interrupt, ui)?;
    target.announce(ui);
    if let Some(before) = before.filter(|_| target_options.database.is_none()) {
        target.announce_another_server(before, ui);
    }
    let screen_ui = if keep.live.interval_json { ui.without_intervals() } else { ui };
    let (runs, target_ref) = (&runs, &target);
    let mut runner =
        Runner { form, graph_options, runs, target: target_ref, live, screen_ui, interrupt, ui };
    if let Some(repeats) = repeats {
        let result = repeats.run(plan, &mut runner);
        target.close()?;
        return result;
    }
    let (record, published) = runner.measure(plan, &as_in_form)?;
    drop(runner);
    let drawn = graph.map_or(Ok(()), |graph| graph.draw(&record, ui));
    target.close()?;
    published?;
    let code = ExitCode::from(exit_code(&record));
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

/// Returns the text for a record.
type Print<'a> = &'a dyn Fn(&dyn Form, &Record, &Extras<'_>) -> Result<String, FormError>;

fn as_in_form(form: &dyn Form, record: &Record, extras: &Extras<'_>) -> Result<String, FormError> {
    form.print(record, extras)
}

/// What every run of a command needs.
pub(super) struct Runner<'a> {
    pub(super) form: &'static dyn Form,
    graph_options: &'a GraphOptions,
    runs: &'a StoredRuns<'a>,
    target: &'a Target,
    live: Live,
    screen_ui: Ui,
    pub(super) interrupt: &'a Interrupt,
    pub(super) ui: Ui,
}

impl Runner<'_> {
    /// Runs the plan once, stores the record and prints it with `print`. Returns the record, and the failure to
    /// store or print it.
    pub(super) fn measure(
        &mut self,
        plan: &Plan,
        print: Print<'_>,
    ) -> Result<(Record, Result<()>)> {
        let (mut stored, mut printed) = (Ok(()), Ok(()));
        let given = self.ui.given();
        let mut publish = |record: &Record| {
            let (text, result) = self.runs.save(record);
            let is_stored = self.runs.store.is_some() && result.is_ok();
            stored = result;
            let store = is_stored.then_some(given.store.as_str());
            let options = (Some(given.server.as_str()), store);
            printed = print_with(record, &text, self.form, (self.graph_options, options), print);
        };
        let mut screen = Screen::new(self.screen_ui, self.runs, &mut publish);
        let mut observer = Tee(&mut screen, &mut self.live);
        let result = run::run(plan, &self.target.server(), self.interrupt, &mut observer);
        let record = result.map_err(|error| {
            self.live.failed(&error);
            self.target.with_grants(error, access(plan))
        })?;
        Ok((record, printed.and(stored.context("cannot store the run"))))
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
    /// Where that store is.
    location: Option<StoreLocation>,
    /// Store for the history with `--no-store`, if it exists; opened on first use.
    history_only: OnceCell<Option<Box<dyn Store>>>,
    options: &'a ResultOptions,
    environment: (&'a Interrupt, Ui),
}

impl<'a> StoredRuns<'a> {
    fn open(options: &'a ResultOptions, environment: (&'a Interrupt, Ui)) -> Result<Self> {
        let (interrupt, ui) = environment;
        let (mut store, mut location) = (None, None);
        if !options.no_store {
            let found = location.insert(stored::location(&options.store, interrupt, ui)?);
            store.insert(store::open(found, interrupt)?).require_writable()?;
        }
        Ok(Self { store, location, history_only: OnceCell::new(), options, environment })
    }

    /// Where the run is published while it is in progress; `None` if it is not stored.
    fn feed(&self) -> Option<OpenFeed> {
        let location = self.location.clone()?;
        Some(Box::new(move || sink_of(&location)))
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

/// Prints a record in a form. The commands to try have the options for its server, if known, and for its store, if
/// the run is stored. If the form has no verdict, prints the reasons for an invalid run and the breached
/// thresholds to standard error.
pub(crate) fn print(
    record: &Record,
    stored: &str,
    form: &dyn Form,
    options: (&GraphOptions, (Option<&str>, Option<&str>)),
) -> Result<()> {
    print_with(record, stored, form, options, &as_in_form)
}

/// The same with another text for the record.
fn print_with(
    record: &Record,
    stored: &str,
    form: &dyn Form,
    (graph_options, (server, store)): (&GraphOptions, (Option<&str>, Option<&str>)),
    print: Print<'_>,
) -> Result<()> {
    let extras = Extras::new(stored, crate::ui::output_columns())
        .with_histogram(graph_options.histogram())
        .with_options(server, store);
    crate::ui::print(&print(form, record, &extras)?)?;
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

/// The exit code of a run.
pub(super) fn exit_code(record: &Record) -> u8 {
    match record.status {
        Status::Interrupted => INTERRUPTED,
        Status::Failed => FAILED,
        Status::Done if !record.verdict.valid => NOT_VALID,
        Status::Done if record.thresholds.iter().any(|threshold| !threshold.held) => BREACHED,
        Status::Done => 0,
    }
}
