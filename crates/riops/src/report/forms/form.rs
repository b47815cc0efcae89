//! What a form is.

use super::super::histogram::{Scale, histogram_text};
use crate::plan::Plan;
use crate::record::Record;

/// Why a record cannot be printed in a form.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// No form has this name.
    #[error("there is no form {0}")]
    Unknown(String),
    /// The form has nothing to say about such a run.
    #[error("--output {form} does not fit a run of {workload}; these do: {fitting}")]
    Unfit {
        /// The form's name.
        form: &'static str,
        /// The workload's name.
        workload: String,
        /// The names of those that fit.
        fitting: String,
    },
    /// A value of the record has no form in JSON.
    #[error("the record cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// What is printed beside the record.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Where the record is stored, in words.
    pub stored: &'a str,
    /// The histogram of latencies, and its number of buckets.
    pub histogram: Option<(Scale, usize)>,
}

impl<'a> Extras<'a> {
    /// Nothing but where the record is stored.
    #[must_use]
    pub fn stored(stored: &'a str) -> Self {
        Self { stored, ..Self::default() }
    }

    /// With a histogram of so many buckets.
    #[must_use]
    pub fn with_histogram(self, histogram: Option<(Scale, usize)>) -> Self {
        Self { histogram, ..self }
    }

    /// The histogram that was asked for, below an empty line.
    pub(super) fn histogram_below(&self, record: &Record) -> String {
        match self.histogram {
            Some((scale, buckets)) => format!("\n{}", histogram_text(record, scale, buckets)),
            None => String::new(),
        }
    }
}

/// A form in which a record is printed. Pure: a record in, text out.
pub trait Form: Sync {
    /// Its name, as it is typed.
    fn name(&self) -> &'static str;

    /// Whether it has something to say about such a run.
    fn fits(&self, _plan: &Plan) -> bool {
        true
    }

    /// Whether it tells if the run is valid; where it does not, that has to be told beside it.
    fn has_verdict(&self) -> bool {
        true
    }

    /// The record in this form.
    ///
    /// # Errors
    /// [`FormError`]
    fn print(&self, record: &Record, extras: &Extras<'_>) -> Result<String, FormError>;
}
