//! The record as JSON, for programs.

use crate::record::Record;
use crate::report::form::{Extras, Form, FormError};
use crate::units::text::json_text;

/// Exactly one record.
pub(in crate::report) struct Json;

impl Form for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn print(&self, record: &Record, _: &Extras<'_>) -> Result<String, FormError> {
        Ok(json_text(record)?)
    }
}
