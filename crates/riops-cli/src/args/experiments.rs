//! Options of `riops experiments`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use super::runs::NoteOptions;
use super::shared::TrustOption;
use super::sweep::{STUDY_FORMS, StudyOptions};
use super::target::{StoreOptions, TargetOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum Experiments {
    /// List the stored experiments, newest first
    List {
        /// Output format
        #[arg(long, value_name = "FORM", default_value = "text", value_parser = PossibleValuesParser::new(["text", "json"]))]
        output: String,
        #[command(flatten)]
        store: StoreOptions,
    },
    /// Show the results of an experiment, also of one in progress
    Show {
        /// Start or end of its id, its name, or `last`
        #[arg(default_value = "last")]
        experiment: String,
        /// Output format
        #[arg(long, value_name = "FORM", default_value = "text", value_parser = PossibleValuesParser::new(STUDY_FORMS))]
        output: String,
        #[command(flatten)]
        results: StudyOptions,
        #[command(flatten)]
        store: StoreOptions,
    },
    /// Add a note to an experiment
    Note(NoteOptions),
    /// Remove an experiment, and the copy of a database that it may have left
    Rm(Box<RemoveExperiment>),
}

/// Which experiment
#[derive(Debug, Args)]
pub(crate) struct RemoveExperiment {
    /// Start or end of its id, its name, or `last`
    pub(crate) experiment: String,
    /// Remove its runs as well
    #[arg(long)]
    pub(crate) runs: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}
