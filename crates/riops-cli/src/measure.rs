//! Runs a plan once: passes its events to the observers, and stores and prints its record.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use riops::dataset::{Access, Needs};
use riops::fleet::Fleet;
use riops::plan::{ObserveRun, Plan, PreparePolicy};
use riops::probe::sampler::OnPoint;
use riops::record::Point;
use riops::record::Record;
use riops::report::{self, Extras, Form, FormError, Stream};
use riops::run::Observer;
use riops::units::text::one_line;

use crate::args::GraphOptions;
use crate::failure::{FAILED, NOT_VALID, exit_code};
use crate::fleet;
use crate::live::Live;
use crate::screen::Screen;
use crate::stored_runs::StoredRuns;
use crate::target::Target;
use crate::tee::Tee;
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
        let rest = |form: &Form, record: &Record, extras: &Extras<'_>| match stream {
            Some(stream) => Ok(stream.closing(record, extras)),
            None => print(form, record, &Extras { intervals, ..*extras }),
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
            let is_apart = self.form.name == "text" && runs_a_command(record);
            let print: Print<'_> = if is_apart { &of_command } else { &rest };
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

/// Whether riops ran a command whose standard output is its own.
fn runs_a_command(record: &Record) -> bool {
    record.plan.work.get::<ObserveRun>().is_some_and(|run| !run.command.is_empty())
}

/// The exit code of a run that is printed in a form.
pub(crate) fn exit_code_in(form: &Form, record: &Record) -> u8 {
    match exit_code(record) {
        FAILED if (form.is_measured)(record) => NOT_VALID,
        code => code,
    }
}
