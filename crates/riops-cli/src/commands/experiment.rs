//! What `riops sweep` and `riops ab` have in common: an experiment is stored, conducted, continued, listed and
//! shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use jiff::Timestamp;
use riops::experiment::{End, Experiment, Failure, Study, conduct, remaining, tag};
use riops::host::Interrupt;
use riops::store::{self, ExperimentState, Store, StoredExperiment};

use crate::args::sweep::{ResumeOptions, StudyOptions};
use crate::args::{StoreOptions, TargetOptions};
use crate::experiment::bench::{Servers, duration_text};
use crate::experiment::draft::{Defined, Draft};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::stored;
use crate::ui::Ui;

/// What is printed and written.
pub(super) struct Results<'a> {
    pub(super) form: &'a str,
    pub(super) options: &'a StudyOptions,
}

/// Conducts experiments of a store.
pub(super) struct Conductor<'a> {
    store_options: &'a StoreOptions,
    results: Results<'a>,
    interrupt: &'a Interrupt,
    ui: Ui,
}
