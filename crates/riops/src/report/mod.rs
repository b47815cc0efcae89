//! What people and programs read of a record. Pure: records in, text out.

mod cbc;
mod charts;
mod doctor;
mod format;
mod hints;
mod histogram;
mod html;
mod model;
mod nodes;
mod oltp;
mod pgio;
mod scatter;
mod sources;
mod study;
mod terminal;
mod validation;
mod work;

pub use cbc::cbc_text;
pub use doctor::{calibration_text, diagnosis_text, disk_text};
pub use format::{count, duration_us, percent, rate};
pub use histogram::{Scale, histogram_text};
pub use html::html;
pub use model::{Limit, Summary};
pub use oltp::{oltp_interval_line, sysbench_text};
pub use pgio::pgio_text;
pub use scatter::{PictureError, scatter_png};
pub use terminal::{interval_line, run_text, runs_table};

use crate::record::Record;

/// The record as JSON, for programs.
///
/// # Errors
/// None in practice: every value of a record has a form in JSON.
pub fn json(record: &Record) -> serde_json::Result<String> {
    serde_json::to_string_pretty(record)
}

#[cfg(test)]
mod example;
#[cfg(test)]
pub(crate) use example::{example_cbc, example_load, example_oltp, example_record};
