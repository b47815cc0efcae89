//! The record as JSON, for programs.

use super::form::{Extras, Form, FormError};
use crate::record::Record;
use crate::units::text::json_text;

/// Exactly one record.
pub(super) struct Json;

impl Form for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn print(&self, record: &Record, _: &Extras<'_>) -> Result<String, FormError> {
        Ok(json_text(record)?)
    }
}
