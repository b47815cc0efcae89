//! The subjects of reports: each module builds its document.

pub(super) mod bisect;
pub(super) mod comparison;
mod comparison_charts;
pub(super) mod dataset;
pub(super) mod doctor;
pub mod experiment;
pub(super) mod experiments;
pub(super) mod gate;
pub(super) mod history;
pub(super) mod repeats;
pub(super) mod run;
pub(super) mod runs;
