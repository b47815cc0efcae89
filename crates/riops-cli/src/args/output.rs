//! Options of output formats.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: Output,
}

// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    // No doc comments here: clap would print them as long help.
    Text,
    Json,
}
