//! The trait of all output forms.

use crate::plan::Plan;
use crate::record::{Point, Record};
use crate::report::document::Lines;
use crate::report::histogram::{Scale, histogram_text};

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
    /// A value of the record cannot be encoded as JSON.
    #[error("cannot write the record as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// What is printed beside the record, and how.
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
    /// The options that select the store, in the same form. `None` if the run is not stored.
    pub store_options: Option<&'a str>,
}

impl<'a> Extras<'a> {
    /// Only where the record is stored, in these lines.
    #[must_use]
    pub fn new(stored: &'a str, lines: impl Into<Lines>) -> Self {
        Self {
            stored,
            lines: lines.into(),
            intervals: true,
            histogram: None,
            server_options: None,
            store_options: Some(""),
        }
    }

    /// The same with the options for commands.
    #[must_use]
    pub fn with_options(self, server: Option<&'a str>, store: Option<&'a str>) -> Self {
        Self { server_options: server, store_options: store, ..self }
    }

    /// The same with a latency histogram.
    #[must_use]
    pub fn with_histogram(self, histogram: Option<(Scale, usize)>) -> Self {
        Self { histogram, ..self }
    }

    /// The histogram below an empty line, if one was requested.
    pub(in crate::report) fn histogram_below(&self, record: &Record) -> String {
        match self.histogram {
            Some((scale, buckets)) => format!("\n{}", histogram_text(record, scale, buckets)),
            None => String::new(),
        }
    }
}

/// The parts of a form that is printed while a run is in progress.
pub trait Stream: Sync {
    /// What is printed before the sessions connect. `intervals`: whether the intervals follow.
    fn opening(&self, plan: &Plan, intervals: bool) -> String;

    /// What is printed when all sessions are connected.
    fn connected(&self) -> &'static str;

    /// Whether the intervals are printed to standard error.
    fn has_intervals_on_standard_error(&self) -> bool {
        false
    }

    /// What is printed at the end of an interval.
    fn interval(&self, point: &Point, plan: &Plan, intervals: bool) -> String;

    /// What is printed at the end of the run.
    fn closing(&self, record: &Record, extras: &Extras<'_>) -> String;
}

/// An output form of a record. Pure: a record in, text out.
pub trait Form: Sync {
    /// Its name, as in `--output NAME`.
    fn name(&self) -> &'static str;

    /// Whether it supports runs with this plan.
    fn fits(&self, _plan: &Plan) -> bool {
        true
    }

    /// Whether the run of a record that has failed counts as measured, but not valid: its exit code is 3 then, not 1.
    fn is_measured(&self, _record: &Record) -> bool {
        false
    }

    /// Errors to print to standard error, if they are not just the reasons of an invalid run.
    fn errors(&self, _record: &Record) -> Option<Vec<String>> {
        None
    }

    /// Whether it shows if the run is valid. Otherwise the caller must print that beside it.
    fn has_verdict(&self) -> bool {
        true
    }

    /// Returns its parts, if it is printed while the run is in progress.
    fn stream(&self) -> Option<&'static dyn Stream> {
        None
    }

    /// Returns the record in this form.
    ///
    /// # Errors
    /// If the record cannot be encoded.
    fn print(&self, record: &Record, extras: &Extras<'_>) -> Result<String, FormError>;
}
