//! Runs a plan once, and prints its record. The store is also the history of earlier runs.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use anyhow::{Context, Result};
use riops::dataset::{Access, Needs};
use riops::fleet::{Membership, Role};
use riops::plan::{ObserveRun, Plan, PreparePolicy};
use riops::record::{DiskLimit, Note, Record};
use riops::report::{self, Detail, Extras, Form, FormError, Lines, Rendered};
use riops::run::{History, NoHistory};
use riops::server::Target;
use riops::session::{Ran, Saved, Session, SessionError};
use riops::store::{self, Store, StoreLocation};
use riops::units::text::one_line;

use crate::args::{GraphOptions, OutputOptions, ResultOptions};
use crate::failure::{FAILED, NOT_VALID, exit_code, session_error};
use crate::output::{self, Outputs};
use crate::screen::Streaming;
use crate::stored::{self, note_of};
use crate::target;
use crate::ui::Ui;

/// Returns the text for a record.
pub(crate) type Print<'a> = &'a dyn Fn(&Form, &Record, &Extras<'_>) -> Result<Rendered, FormError>;

/// The text of the form.
pub(crate) fn as_in_form(
    form: &Form,
    record: &Record,
    extras: &Extras<'_>,
) -> Result<Rendered, FormError> {
    (form.print)(record, extras)
}

/// The forms of a run.
pub(crate) struct Forms {
    /// The form of standard output.
    pub(crate) shown: &'static Form,
    /// How much the text on standard output says.
    detail: Detail,
    files: Cell<Option<Outputs>>,
}

impl Forms {
    /// Opens the files of the forms that have one.
    ///
    /// # Errors
    /// If a form does not fit the plan, or a file cannot be written.
    pub(crate) fn open(
        options: &OutputOptions,
        detail: Detail,
        plan: &Plan,
        ui: Ui,
    ) -> Result<Self> {
        for output in &options.output {
            report::form(&output.form, plan)?;
        }
        let files = Cell::new(Some(Outputs::open(options, Some("text"), ui)?));
        Ok(Self { shown: report::form(options.shown(), plan)?, detail, files })
    }
}

/// What every run of a command needs.
pub(crate) struct Runner<'a> {
    pub(crate) session: Session<'a>,
    pub(crate) forms: Forms,
    /// The parts of the form, if they are printed while the run is in progress.
    pub(crate) streaming: Option<Arc<Streaming>>,
    /// Whether the form has its intervals.
    pub(crate) intervals: bool,
    pub(crate) graph_options: &'a GraphOptions,
    pub(crate) target: &'a Target,
    pub(crate) ui: Ui,
}

impl Runner<'_> {
    /// Runs the plan once, stores the record and prints it with `print`. Returns the record, the exit code of a fleet, and the
    /// failure to store or print it.
    pub(crate) fn measure(
        &self,
        plan: &Plan,
        print: Print<'_>,
    ) -> Result<(Record, Option<u8>, Result<()>)> {
        let mut printed = Ok(());
        let mut show = |record: &Record, saved: &Saved| printed = self.print(record, saved, print);
        let server = self.target.server();
        let ran = self.session.run(plan, &server, Role::Member, &mut show);
        let Ran { record, saved, of_fleet } = ran.map_err(|error| match error {
            SessionError::Run(error) => target::with_grants(self.target, error, access(plan)),
            error => session_error(error),
        })?;
        let stored = saved.into_result().context("cannot store the run");
        Ok((record, of_fleet.map(|(_, code)| code), printed.and(stored)))
    }

    fn print(&self, record: &Record, saved: &Saved, print: Print<'_>) -> Result<()> {
        let given = self.ui.given();
        let (intervals, omits_password) = (self.intervals, given.omits_password);
        let run_words = Some(given.run.as_slice()).filter(|words| !words.is_empty());
        let begun = self.streaming.as_ref().and_then(|streaming| streaming.begun());
        let rest = |form: &Form, record: &Record, extras: &Extras<'_>| match begun {
            Some(stream) => Ok(Rendered::Data(stream.closing(record, extras))),
            None => {
                print(form, record, &Extras { intervals, omits_password, run_words, ..*extras })
            }
        };
        // An observed command writes to standard output.
        let of_command = |form: &Form, record: &Record, extras: &Extras<'_>| {
            crate::ui::print_error(&rest(form, record, extras)?.into_text());
            Ok(Rendered::Data(String::new()))
        };
        let observed = record.plan.work.get::<ObserveRun>();
        let runs_a_command = observed.is_some_and(|run| !run.command.is_empty());
        let print: Print<'_> =
            if self.forms.shown.name == "text" && runs_a_command { &of_command } else { &rest };
        let (text, store) = match saved {
            Saved::No => ("no (--no-store)".to_owned(), None),
            Saved::In(location) => {
                (format!("{} in {location}", record.id), Some(given.store.as_str()))
            }
            Saved::Failed(error) => (format!("NO: {error}"), None),
        };
        let options = RecordText {
            graph_options: self.graph_options,
            server: Some(given.server.as_str()),
            store,
        };
        print_with(record, &text, &self.forms, options, print, self.ui)
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

/// Prints a record in a form, and writes it to the files of the others. The commands to try have the options for its server, if
/// known, and for its store, if the run is stored. If the printed form has no verdict, prints the reasons for an invalid run
/// and the breached thresholds to standard error.
pub(crate) fn print(
    record: &Record,
    stored: &str,
    forms: &Forms,
    options: RecordText<'_>,
    ui: Ui,
) -> Result<()> {
    print_with(record, stored, forms, options, &as_in_form, ui)
}

/// The options of the text of a record.
#[derive(Clone, Copy)]
pub(crate) struct RecordText<'a> {
    pub(crate) graph_options: &'a GraphOptions,
    /// The options of the server, which commands in messages repeat.
    pub(crate) server: Option<&'a str>,
    /// The option of the store, which commands in messages repeat.
    pub(crate) store: Option<&'a str>,
}

/// Does the same as [`print()`], with another text for the record on standard output.
fn print_with(
    record: &Record,
    stored: &str,
    forms: &Forms,
    options: RecordText<'_>,
    print: Print<'_>,
    ui: Ui,
) -> Result<()> {
    let lines = Lines { detail: forms.detail, ..crate::ui::output_lines() };
    let extras = Extras::new(stored, lines)
        .with_histogram(options.graph_options.histogram())
        .with_options(options.server, options.store);
    let rendered = print(forms.shown, record, &extras);
    let printed = rendered.map_err(Into::into).and_then(|rendered| output::print(&rendered, ui));
    if !forms.shown.has_verdict {
        let warnings = record.verdict.warnings.iter();
        for warning in warnings.filter(|warning| warning.kind.is_disturbance()) {
            crate::ui::error(&one_line(&format!("DISTURBED: {}", warning.text)));
        }
        let reasons = || record.verdict.reasons.iter().map(|reason| format!("NOT VALID: {reason}"));
        for error in (forms.shown.errors)(record).unwrap_or_else(|| reasons().collect()) {
            // The lines of a message of the server, none of which looks like one of riops.
            let own = |line: &str| if line.starts_with("riops") { "  " } else { "" };
            let texts = error.lines().map(|line| format!("{}{}", own(line), one_line(line)));
            crate::ui::error(&texts.collect::<Vec<_>>().join("\n"));
        }
        for threshold in record.thresholds.iter().filter(|threshold| !threshold.held) {
            let run = riops::units::format::short_id(&record.id.to_string()).to_owned();
            let text = report::threshold_text(record, threshold);
            crate::ui::error(&one_line(&format!("run {run}: threshold {text}")));
        }
    }
    let Some(files) = forms.files.take() else {
        return printed;
    };
    files.write(printed, |name, lines| {
        let form = report::form(name, &record.plan)?;
        Ok((form.print)(record, &Extras { lines, ..extras })?)
    })
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
    /// Store that the run is saved to; `None` with `--no-store`, and in a fleet, where only one agent saves the run.
    pub(crate) store: Option<Store>,
    /// Where the run is saved to.
    pub(crate) location: Option<StoreLocation>,
    /// Store for the history with `--no-store`, if it exists; opened on first use.
    history_only: OnceCell<Option<Store>>,
    options: &'a ResultOptions,
    /// Note from `--note`.
    pub(crate) note: Option<Note>,
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
            location = Some(own.location());
        } else if !options.no_store {
            let known = location.insert(stored::location(&options.store, ui)?);
            store.insert(store::open(known, ui.interrupt)?).require_writable()?;
        }
        Ok(Self { store, location, history_only: OnceCell::new(), options, note, ui })
    }

    fn history(&self) -> &dyn History {
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
