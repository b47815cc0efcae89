//! Options of `riops script`.

use clap::{Args, Subcommand};
use riops::plan::Protocol;
use riops::script::is_name;

use super::parsers::{choice, or_named};
use super::target::TargetOptions;

/// Parses the definition of a variable. As in pgbench, its text cannot be empty.
fn definition(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name) && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        Some((name, _)) if !is_name(name) => Err(format!("invalid name of a variable: \"{name}\"")),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    Check(CheckScript),
}

/// Find the errors of pgbench scripts, and show their statements with parameter types and plans
#[derive(Debug, Args)]
pub(crate) struct CheckScript {
    /// Scripts; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Define a variable, as pgbench does
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = definition)]
    pub(crate) define: Vec<(String, String)>,
    #[arg(
        short = 'M',
        long,
        value_name = "KIND",
        value_parser = choice::<Protocol>(&["prepared", "extended", "simple"]),
        help = or_named("Query protocol; simple leaves undefined variables in the statements", Protocol::default())
    )]
    pub(crate) protocol: Option<Protocol>,
    /// Check only the text, without a server
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}
