//! The definition of an output form.

use crate::document::Lines;
use crate::export::ExportError;
use crate::histogram::{Scale, histogram_text};
use crate::render::png::DrawingError;
use riops_model::plan::Plan;
use riops_model::record::{Point, Record};

/// A record cannot be printed in this form.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// No form has this name.
    #[error("unknown output form \"{0}\"")]
    Unknown(String),
    /// The form does not support this workload.
    #[error("--output {form} is not supported for {workload}; supported forms: {fitting}")]
    Unsupported {
        /// Name of the form.
        form: &'static str,
        /// Name of the workload.
        workload: String,
        /// Names of the supported forms.
        fitting: String,
    },
    /// A value cannot be encoded as JSON.
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A record cannot be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A page cannot be written.
    #[error("cannot write the page: {0}")]
    Page(#[from] minijinja::Error),
    /// A chart cannot be drawn.
    #[error(transparent)]
    Drawing(#[from] DrawingError),
}

/// A result in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    /// Text for people, which may have colors.
    Text(String),
    /// Text for programs.
    Data(String),
    /// An HTML page.
    Page(String),
    /// Charts.
    Images(Vec<Image>),
}

impl Rendered {
    /// The text; empty for images.
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Data(text) | Self::Page(text) => text,
            Self::Images(_) => String::new(),
        }
    }
}

/// A chart as a PNG file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Name of the file without its ending.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Additional parts of the output, and their style.
#[derive(Debug, Clone, Copy)]
pub struct Extras<'a> {
    /// Where the record is stored, as text.
    pub stored: &'a str,
    /// Lines of a text.
    pub lines: Lines,
    /// Whether the intervals are part of a form that has them.
    pub intervals: bool,
    /// Scale of the latency histogram, and its number of buckets.
    pub histogram: Option<(Scale, usize)>,
    /// The options that select the server of the run, as text for commands: empty, or with a leading space.
    /// `None` if they are unknown.
    pub server_options: Option<&'a str>,
    /// The words of the command line, `run` first, without the options for server and store, quoted for a shell; `None` if they
    /// are unknown.
    pub run_words: Option<&'a [String]>,
    /// Whether the options of the server had a password, which commands do not repeat.
    pub omits_password: bool,
    /// The options that select the store, in the same form. `None` if the run is not stored.
    pub store_options: Option<&'a str>,
}

impl<'a> Extras<'a> {
    /// Only where the record is stored, in these lines.
    pub fn new(stored: &'a str, lines: impl Into<Lines>) -> Self {
        Self {
            stored,
            lines: lines.into(),
            intervals: true,
            histogram: None,
            server_options: None,
            run_words: None,
            omits_password: false,
            store_options: Some(""),
        }
    }

    /// The same with the options for commands.
    pub fn with_options(self, server: Option<&'a str>, store: Option<&'a str>) -> Self {
        Self { server_options: server, store_options: store, ..self }
    }

    /// The same with a latency histogram.
    pub fn with_histogram(self, histogram: Option<(Scale, usize)>) -> Self {
        Self { histogram, ..self }
    }

    /// The histogram below an empty line, if one was requested.
    pub(crate) fn histogram_below(&self, record: &Record) -> String {
        match self.histogram {
            Some((scale, buckets)) => format!("\n{}", histogram_text(record, scale, buckets)),
            None => String::new(),
        }
    }
}

/// The parts of a form that is printed while a run is in progress.
pub trait Stream: Sync {
    /// Returns the text that is printed before the sessions connect. `intervals`: whether the intervals follow.
    fn opening(&self, _plan: &Plan, _intervals: bool) -> String {
        String::new()
    }

    /// Returns the text that is printed when all sessions are connected.
    fn connected(&self) -> &'static str {
        ""
    }

    /// Whether the intervals are printed to standard error.
    fn has_intervals_on_standard_error(&self) -> bool {
        false
    }

    /// Returns the text that is printed at the end of an interval.
    fn interval(&self, point: &Point, plan: &Plan, intervals: bool) -> String;

    /// Returns the text that is printed at the end of the run.
    fn closing(&self, record: &Record, extras: &Extras<'_>) -> String;
}

/// Returns a record in a form.
pub type Print = fn(&Record, &Extras<'_>) -> Result<Rendered, FormError>;

/// An output form of a record. Pure: a record in, text or images out.
pub struct Form {
    /// Its name, as in `--output NAME`.
    pub name: &'static str,
    /// Whether it supports runs with this plan.
    pub fits: fn(&Plan) -> bool,
    /// Returns the record in this form; fails if the record cannot be encoded.
    pub print: Print,
    /// Whether it shows if the run is valid. Otherwise the caller must print that beside it.
    pub has_verdict: bool,
    /// Whether it shows the latency histogram that was requested.
    pub has_histogram: bool,
    /// Whether the run of a record that has failed counts as measured, but not valid: its exit code is 3 then, not 1.
    pub is_measured: fn(&Record) -> bool,
    /// Errors to print to standard error, if they are not just the reasons of an invalid run.
    pub errors: fn(&Record) -> Option<Vec<String>>,
    /// Its parts, if it is printed while the run is in progress.
    pub stream: Option<&'static dyn Stream>,
}

impl Form {
    /// A form with its own verdict.
    pub(super) const fn new(name: &'static str, fits: fn(&Plan) -> bool, print: Print) -> Self {
        Self {
            name,
            fits,
            print,
            has_verdict: true,
            has_histogram: true,
            is_measured: |_| false,
            errors: |_| None,
            stream: None,
        }
    }
}
