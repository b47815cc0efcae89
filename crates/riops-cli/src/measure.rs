//! Runs a plan once: passes its events to the observers, and stores and prints its record. The store is also the history of
//! earlier runs.

use std::cell::OnceCell;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use riops::dataset::{Access, Needs};
use riops::fleet::Fleet;
use riops::host::Interrupt;
use riops::plan::{ObserveRun, Plan, PreparePolicy};
use riops::probe::sampler::OnPoint;
use riops::record::{DiskLimit, Note, Point, Record};
use riops::report::{self, Extras, Form, FormError, Stream};
use riops::run::{History, NoHistory, Observer};
use riops::store::live::sink_of;
use riops::store::{self, Store, StoreLocation};
use riops::units::text::one_line;

use crate::args::{GraphOptions, ResultOptions};
use crate::failure::{FAILED, NOT_VALID, exit_code};
use crate::fleet::{self, Membership};
use crate::live::{Live, OpenFeed};
use crate::screen::{Screen, Tee};
use crate::stored::{self, note_of};
use crate::target::Target;
use crate::ui::Ui;

/// Returns the text for a record.
pub(crate) type Print<'a> = &'a dyn Fn(&Form, &Record, &Extras<'_>) -> Result<String, FormError>;

/// The text of the form.
pub(crate) fn as_in_form(
    form: &Form,
    record: &Record,
    extras: &Extras<'_>,
) -> Result<String, FormError> {
    (form.print)(record, extras)
}

/// What every run of a command needs.
pub(crate) struct Runner<'a> {
    pub(crate) form: &'static Form,
    /// The parts of the form, if they are printed while the run is in progress.
    pub(crate) stream: Option<&'static dyn Stream>,
    /// Whether the form has its intervals.
    pub(crate) intervals: bool,
    pub(crate) graph_options: &'a GraphOptions,
    pub(crate) runs: &'a StoredRuns<'a>,
    pub(crate) target: &'a Target,
    pub(crate) live: Live,
    /// The fleet whose agent this is.
    pub(crate) fleet: Option<Fleet>,
    pub(crate) screen_ui: Ui,
    pub(crate) ui: Ui,
    /// The exit code, if it is not that of the record: of a fleet.
    pub(crate) code: Option<ExitCode>,
}

impl Runner<'_> {
    /// Runs the plan once, stores the record and prints it with `print`. Returns the record, and the failure to
    /// store or print it.
    pub(crate) fn measure(
        &mut self,
        plan: &Plan,
        print: Print<'_>,
    ) -> Result<(Record, Result<()>)> {
        let (mut stored, mut printed) = (Ok(()), Ok(()));
        let given = self.ui.given();
        let (stream, intervals) = (self.stream, self.intervals);
        let omits_password = given.omits_password;
        let rest = |form: &Form, record: &Record, extras: &Extras<'_>| match stream {
            Some(stream) => Ok(stream.closing(record, extras)),
            None => print(form, record, &Extras { intervals, omits_password, ..*extras }),
        };
        let mut publish = |record: &Record| {
            let (text, result) = self.runs.save(record);
            let is_stored = self.runs.is_open() && result.is_ok();
            stored = result;
            let store = is_stored.then_some(given.store.as_str());
            let options = (Some(given.server.as_str()), store);
            let graph_options = (self.graph_options, options);
            // Standard output is that of an observed command.
            let of_command = |form: &Form, record: &Record, extras: &Extras<'_>| {
                crate::ui::print_error(&rest(form, record, extras)?);
                Ok(String::new())
            };
            let observed = record.plan.work.get::<ObserveRun>();
            let runs_a_command = observed.is_some_and(|run| !run.command.is_empty());
            let print: Print<'_> =
                if self.form.name == "text" && runs_a_command { &of_command } else { &rest };
            printed = print_with(record, &text, self.form, graph_options, print);
        };
        let mut screen = Screen::new(self.screen_ui, self.runs, &mut publish);
        let mut shown = Streamed { stream, intervals, plan };
        let mut watched = Tee(&mut screen, &mut shown);
        let mut observer = Tee(&mut watched, &mut self.live);
        let save = |record: &Record| self.runs.save(record).1;
        let run = (plan, &self.target.server());
        let (result, ended) = fleet::run(self.fleet.as_mut(), run, (&mut observer, &save), self.ui);
        let record = result.map_err(|error| {
            self.live.failed(&error);
            self.target.with_grants(error, access(plan))
        })?;
        let record = match ended.transpose()? {
            Some(ended) => {
                self.code = Some(ExitCode::from(ended.code));
                ended.merged.unwrap_or(record)
            }
            None => record,
        };
        Ok((record, printed.and(stored.context("cannot store the run"))))
    }
}

/// Prints the parts of a form as they happen.
struct Streamed<'a> {
    stream: Option<&'static dyn Stream>,
    intervals: bool,
    plan: &'a Plan,
}

impl Streamed<'_> {
    fn print(&self, part: impl Fn(&dyn Stream) -> String) {
        if let Some(stream) = self.stream {
            // The end of the report tells of an output that cannot be written.
            let _ = crate::ui::print(&part(stream));
        }
    }
}

impl Observer for Streamed<'_> {
    fn connected(&mut self, _: usize) {
        self.print(|stream| stream.connected().to_owned());
    }

    fn point(&mut self, point: &Point) {
        let Some(stream) = self.stream else {
            return;
        };
        let text = stream.interval(point, self.plan, self.intervals);
        if stream.has_intervals_on_standard_error() {
            crate::ui::print_error(&text);
        } else {
            // The end of the report tells of an output that cannot be written.
            let _ = crate::ui::print(&text);
        }
    }

    fn stage(&mut self, _: &str, plan: &Plan) -> OnPoint {
        self.print(|stream| stream.opening(plan, self.intervals));
        Arc::new(|_| {})
    }
}

/// The access of a run to its dataset.
fn access(plan: &Plan) -> Access<'_> {
    let traits = plan.work.traits();
    let creates = traits.replaces_its_table || plan.prepare == PreparePolicy::IfMissing;
    Access {
        dataset: traits.dataset.unwrap_or(traits.name),
        needs: match (creates, traits.writes) {
            (true, _) => Needs::Create,
            (false, true) => Needs::Write,
            (false, false) => Needs::Read,
        },
        schema: plan.dataset.get("schema").and_then(|schema| schema.as_str()),
    }
}

/// Prints a record in a form. The commands to try have the options for its server, if known, and for its store, if
/// the run is stored. If the form has no verdict, prints the reasons for an invalid run and the breached
/// thresholds to standard error.
pub(crate) fn print(
    record: &Record,
    stored: &str,
    form: &Form,
    options: (&GraphOptions, (Option<&str>, Option<&str>)),
) -> Result<()> {
    print_with(record, stored, form, options, &as_in_form)
}

/// The same with another text for the record.
fn print_with(
    record: &Record,
    stored: &str,
    form: &Form,
    (graph_options, (server, store)): (&GraphOptions, (Option<&str>, Option<&str>)),
    print: Print<'_>,
) -> Result<()> {
    let extras = Extras::new(stored, crate::ui::output_lines())
        .with_histogram(graph_options.histogram())
        .with_options(server, store);
    let text = print(form, record, &extras)?;
    // Only these contain a document, whose values are escaped.
    match form.name {
        "text" | "pgio" => crate::ui::print_colored(&text),
        _ => crate::ui::print(&text),
    }?;
    if !form.has_verdict {
        let reasons = || record.verdict.reasons.iter().map(|reason| format!("NOT VALID: {reason}"));
        for error in (form.errors)(record).unwrap_or_else(|| reasons().collect()) {
            // The lines of a message of the server, none of which looks like one of riops.
            let own = |line: &str| if line.starts_with("riops") { "  " } else { "" };
            let texts = error.lines().map(|line| format!("{}{}", own(line), one_line(line)));
            crate::ui::error(&texts.collect::<Vec<_>>().join("\n"));
        }
        for found in record.thresholds.iter().filter(|found| !found.held) {
            let run = riops::units::format::short_id(&record.id.to_string()).to_owned();
            let text = report::threshold_text(record, found);
            crate::ui::error(&one_line(&format!("run {run}: threshold {text}")));
        }
    }
    Ok(())
}

/// The exit code of a run that is printed in a form.
pub(crate) fn exit_code_in(form: &Form, record: &Record) -> u8 {
    match exit_code(record) {
        FAILED if (form.is_measured)(record) => NOT_VALID,
        code => code,
    }
}

/// The store of a run, which also provides the history of earlier runs.
pub(crate) struct StoredRuns<'a> {
    /// Store that the run is saved to; `None` with `--no-store`.
    store: Option<Store>,
    /// Where the run is saved to.
    location: Option<StoreLocation>,
    /// Store for the history with `--no-store`, if it exists; opened on first use.
    history_only: OnceCell<Option<Store>>,
    options: &'a ResultOptions,
    /// That of `--note`.
    note: Option<Note>,
    ui: Ui,
}

impl<'a> StoredRuns<'a> {
    /// Opens the store, unless the run is not stored.
    pub(crate) fn open(
        options: &'a ResultOptions,
        membership: Option<&Membership>,
        ui: Ui,
    ) -> Result<Self> {
        let note = options.note.as_deref().map(|text| note_of(text, None)).transpose()?;
        let (mut store, mut location) = (None, None);
        if let Some(own) = membership {
            // Of many agents, only one saves a run.
            location = Some(own.location());
        } else if !options.no_store {
            let found = location.insert(stored::location(&options.store, ui)?);
            store.insert(store::open(found, ui.interrupt)?).require_writable()?;
        }
        Ok(Self { store, location, history_only: OnceCell::new(), options, note, ui })
    }

    /// Whether the run is stored.
    pub(crate) fn is_open(&self) -> bool {
        self.location.is_some()
    }

    /// Where the run is published while it is in progress; `None` if it is not stored.
    pub(crate) fn feed(&self) -> Option<OpenFeed> {
        let location = self.location.clone()?;
        Some(Box::new(move || sink_of(&location)))
    }

    /// Saves the record. Returns a text for the output, the location or the error, and the result.
    pub(crate) fn save(&self, record: &Record) -> (String, Result<()>) {
        let Some(location) = &self.location else {
            return ("no (--no-store)".to_owned(), Ok(()));
        };
        let mut record = record.clone();
        record.notes.extend(self.note.clone());
        let save = |store: &Store| stored::save(store, &record).map(|()| store.location());
        let saved = match &self.store {
            Some(store) => save(store),
            // An interrupt has ended the run, which is stored.
            None => store::open(location, &Interrupt::new()).and_then(|store| save(&store)),
        };
        match saved {
            Ok(location) => (format!("{} in {location}", record.id), Ok(())),
            // A failed save must not prevent the result from being printed.
            Err(error) => {
                let error = stored::keep(&record, &error);
                (self.ui.given().complete(&format!("NO: {error}")), Err(error))
            }
        }
    }

    fn history(&self) -> &dyn History {
        if self.options.fleet.fleet.is_some() {
            return &NoHistory;
        }
        let existing = || stored::open_if_present(&self.options.store, self.ui).ok().flatten();
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
