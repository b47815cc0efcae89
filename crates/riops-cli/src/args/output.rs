//! The option `--output` of all commands: the forms of a result, and the files that get them.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Command, Error};
use riops::plan::{Plan, WorkPlan};
use riops::report;

/// The forms of lists that are neither tables nor documents, and of a single finding.
pub(crate) const PLAIN: &[&str] = &["text", "json"];
/// The forms of an experiment.
pub(crate) const STUDY: &[&str] = &["text", "json", "csv", "markdown", "html", "png"];
/// The forms of a comparison and of a bisection.
pub(crate) const FINDINGS: &[&str] = &["text", "json", "markdown", "html"];
/// The forms of a gate.
pub(crate) const GATE: &[&str] = &["text", "json", "markdown", "html", "junit"];
/// The forms of a list of runs.
pub(crate) const LIST: &[&str] = &["text", "json", "csv"];
/// The forms of a report.
pub(crate) const REPORT: &[&str] = &["html", "markdown", "png"];
/// The forms of an export.
pub(crate) const EXPORT: &[&str] = &["json", "csv", "openmetrics"];

/// A form and the file that gets it; `None`: standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) form: String,
    pub(crate) file: Option<PathBuf>,
}

/// The forms of a result
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputOptions {
    /// Output format; with =FILE into a file, which is replaced (repeatable)
    #[arg(short, long, value_name = "FORM[=FILE]", default_value = "text", value_parser = Forms::new(PLAIN))]
    pub(crate) output: Vec<Output>,
}

/// The forms of a result that has an answer
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AnswerOptions {
    /// Print everything that is known, not only the answer
    #[arg(long)]
    pub(crate) details: bool,
    #[command(flatten)]
    pub(crate) outputs: OutputOptions,
}

impl OutputOptions {
    /// The form for standard output.
    pub(crate) fn shown(&self) -> &str {
        // Charts are files of a folder, the current one by default.
        let is_printed = |output: &&Output| output.file.is_none() && output.form != "png";
        let shown = self.output.iter().find(is_printed);
        shown.map_or("text", |output| &output.form)
    }
}

/// Parses the forms that a command has.
#[derive(Debug, Clone)]
pub(crate) struct Forms(Vec<&'static str>);

impl Forms {
    pub(crate) fn new(names: &[&'static str]) -> Self {
        Self(names.to_vec())
    }
}

impl TypedValueParser for Forms {
    type Value = Output;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Output, Error> {
        let text = value.to_string_lossy();
        let (form, file) = match text.split_once('=') {
            Some((form, file)) => (form, Some(file)),
            None => (&*text, None),
        };
        // An empty name of a file is not a form of any command, either.
        let known = if file == Some("") { &text } else { form };
        let form = PossibleValuesParser::new(&self.0).parse_ref(command, arg, known.as_ref())?;
        let file = file.filter(|file| *file != "-").map(PathBuf::from);
        Ok(Output { form, file })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// The forms of a run with this workload.
pub(super) fn of_run(workload: &str, output: Arg) -> Arg {
    let Some(work) = WorkPlan::default_of(workload) else {
        return output;
    };
    output.value_parser(Forms::new(&report::forms_for(&Plan { work, ..Plan::default() })))
}

/// The forms of any run.
pub(super) fn of_runs() -> Forms {
    Forms(report::FORMS.each_ref().map(|form| form.name).to_vec())
}
