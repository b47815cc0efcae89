//! Options of `riops script`, and of the workload `script`.

use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use riops::plan::script::{
    PartitionMethod, PgbenchReport, ScriptDataset, ScriptRun, ScriptSource, TransactionLog,
    VacuumFirst,
};
use riops::plan::{DatasetPlan, Plan, PlanError, Protocol, Stop};
use riops::run::Prepare;
use riops::script::is_name;
use riops::units::Count;
use riops::workload::script::InitStep;
use serde::Serialize;

use super::parsers::{OrDefault, choice, name_of};
use super::run::{CommandOptions, LoopOptions, RunWorkload};
use super::shared::{PrepareFirst, PrepareOptions, PrepareWorkload, TargetOptions, given};
use crate::failure::refuse;
use crate::file::read_script;

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
    Initialize(Box<InitializeScript>),
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
    /// Query protocol; simple leaves undefined variables in the statements
    #[arg(short = 'M', long, value_name = "KIND", default_value = name_of(Protocol::default()), value_parser = choice::<Protocol>(&["prepared", "extended", "simple"]))]
    pub(crate) protocol: Protocol,
    /// Check only the text, without a server
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// The scripts of a run, in the order of the command line. Scripts from files have an empty text.
#[derive(Debug, Clone)]
struct ScriptList(Vec<ScriptSource>);

/// Splits the weight from a name: an integer after the last `@`.
fn weighted(text: &str) -> Result<(String, u32), String> {
    let Some((name, weight)) = text.rsplit_once('@') else {
        return Ok((text.to_owned(), 1));
    };
    match weight.parse::<u32>() {
        Ok(weight) if i32::try_from(weight).is_ok() => Ok((name.to_owned(), weight)),
        _ => Err(format!(
            "\"{weight}\" is not a weight: expected an integer after the last @ (a file with @ in its name needs one: {text}@1)"
        )),
    }
}

fn weighted_file(text: &str) -> Result<ScriptSource, String> {
    let (name, weight) = weighted(text)?;
    Ok(ScriptSource { name, weight, text: Some(String::new()) })
}

fn weighted_builtin(text: &str) -> Result<ScriptSource, String> {
    let (name, weight) = weighted(text)?;
    let builtin = name.parse().map_err(|error: PlanError| error.to_string())?;
    Ok(ScriptSource::of_builtin(builtin, weight))
}

/// The scripts by their kinds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
struct ScriptNames {
    /// Script; - for standard input (repeatable)
    #[arg(short, long, alias = "script", value_name = "FILE[@WEIGHT]", value_parser = weighted_file)]
    file: Vec<ScriptSource>,
    /// Script of pgbench: tpcb-like, simple-update or select-only (repeatable) [default: tpcb-like]
    #[arg(short, long, value_name = "NAME[@WEIGHT]", value_parser = weighted_builtin)]
    builtin: Vec<ScriptSource>,
}

impl FromArgMatches for ScriptList {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let ScriptNames { file, builtin } = ScriptNames::from_arg_matches(matches)?;
        let indices = |id| matches.indices_of(id).into_iter().flatten();
        let mut all: Vec<_> = indices("file").zip(file).collect();
        all.extend(indices("builtin").zip(builtin));
        all.sort_by_key(|(index, _)| *index);
        Ok(Self(all.into_iter().map(|(_, source)| source).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ScriptList {
    fn augment_args(command: clap::Command) -> clap::Command {
        ScriptNames::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl ScriptList {
    /// Returns the scripts with their texts.
    fn sources(&self) -> Result<Vec<ScriptSource>> {
        if self.0.is_empty() {
            return Ok(ScriptRun::default().scripts);
        }
        let mut sources = self.0.clone();
        for ScriptSource { name, text, .. } in &mut sources {
            if let Some(text) = text {
                *text = read_script(name)?;
            }
        }
        Ok(sources)
    }
}

/// Percentiles of `--latency-percentiles` without a list, as in the patch for pgbench.
pub(crate) const LATENCY_PERCENTILES: &str = "50,95,99";

/// Run pgbench scripts
#[expect(clippy::struct_excessive_bools, reason = "each is an option of pgbench")]
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Workload")]
pub(crate) struct RunScript {
    #[command(flatten)]
    scripts: ScriptList,
    /// Define a variable (repeatable)
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = definition)]
    define: Vec<(String, String)>,
    /// Allow \shell and \setshell, which execute commands on this machine
    #[arg(long)]
    allow_shell: bool,
    /// Mark the run invalid if the plan of a statement changes during the run
    #[arg(long)]
    strict_plans: bool,
    /// Stop each session after N transactions; with --warmup 0
    #[arg(long, value_name = "N", conflicts_with = "stop", value_parser = clap::value_parser!(u64).range(1..))]
    transactions_per_session: Option<u64>,
    /// Before the run, vacuum branches and tellers and empty the history, as pgbench does; with =all also vacuum the
    /// accounts
    #[arg(long, value_name = "WHAT", help_heading = "Dataset", num_args = 0..=1, require_equals = true, default_missing_value = "short", value_parser = choice::<VacuumFirst>(&["short", "all"]))]
    vacuum_first: Option<VacuumFirst>,
    /// Write a line for each transaction to files PREFIX.PID…, as pgbench does
    #[arg(long, help_heading = "Output", value_name = "PREFIX")]
    log: Option<String>,
    /// With --log: share of the transactions that are logged [default: 1]
    #[arg(long, help_heading = "Output", value_name = "SHARE", requires = "log")]
    sampling_rate: Option<f64>,
    /// With --log: write the sums of intervals of this many seconds instead of transactions
    #[arg(long, help_heading = "Output", value_name = "SECONDS", requires = "log", conflicts_with = "sampling_rate", value_parser = clap::value_parser!(u32).range(1..))]
    aggregate_interval: Option<u32>,
    /// With --output pgbench: print the latency of each command
    #[arg(short, long, help_heading = "Output")]
    report_per_command: bool,
    /// With --output pgbench: print these percentiles of the latency, in percent, such as =50,99.9
    #[arg(long, help_heading = "Output", value_name = "LIST", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = LATENCY_PERCENTILES)]
    latency_percentiles: Vec<f64>,
    /// With --output pgbench or --log: count failures by their type
    #[arg(long, help_heading = "Output")]
    failures_detailed: bool,
    /// With --output pgbench: print a line for each --interval to standard error
    #[arg(short = 'P', long, help_heading = "Output")]
    progress: bool,
    /// With --progress: print the time since 1970
    #[arg(long, help_heading = "Output", requires = "progress")]
    progress_timestamp: bool,
    /// With --output pgbench: accept a run without a successful transaction, and find errors of scripts when they are executed
    #[arg(long, help_heading = "Output")]
    allow_no_success: bool,
    /// With --output pgbench: print errors that repeat a transaction or end it after the last try
    #[arg(long, help_heading = "Output")]
    verbose_errors: bool,
    /// With --output pgbench: print each command of each client
    #[arg(long, help_heading = "Output")]
    debug: bool,
    #[command(flatten)]
    run: LoopOptions,
    #[command(flatten)]
    prepare: PrepareFirst,
    #[command(flatten)]
    tables: ScriptTableOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunScript {
    /// What pgbench's report contains.
    fn report(&self) -> Result<PgbenchReport> {
        let only_there = [
            (self.report_per_command, "--report-per-command"),
            (!self.latency_percentiles.is_empty(), "--latency-percentiles"),
            (self.progress, "--progress"),
            (self.allow_no_success, "--allow-no-success"),
            (self.verbose_errors, "--verbose-errors"),
            (self.debug, "--debug"),
        ];
        if self.run.common.keep.answer.outputs.shown() != "pgbench"
            && let Some((_, option)) = only_there.iter().find(|(given, _)| *given)
        {
            return refuse(format!("{option} requires --output pgbench"));
        }
        Ok(PgbenchReport {
            per_command: self.report_per_command,
            percentiles: self.latency_percentiles.clone(),
            failures_detailed: self.failures_detailed,
            progress: self.progress,
            progress_timestamp: self.progress_timestamp,
            allows_no_success: self.allow_no_success,
            verbose_errors: self.verbose_errors,
            debug: self.debug,
        })
    }
}

impl RunWorkload for RunScript {
    fn plan(&self) -> Result<Plan> {
        let scripts = self.scripts.sources()?;
        let has_tables = scripts.iter().any(|script| script.text.is_none());
        let dataset = given(&self.tables);
        if let (false, Some(name)) = (has_tables, dataset.keys().next()) {
            return refuse(format!(
                "--{name} is the one of the tables of built-in scripts: for a script from a file, use --define {name}=VALUE"
            ));
        }
        let log = self.log.clone().map(|prefix| TransactionLog {
            prefix,
            sampling_rate: self.sampling_rate.unwrap_or(1.0),
            aggregate_s: self.aggregate_interval,
        });
        let work = ScriptRun {
            scripts,
            define: self.define.iter().cloned().collect(),
            allow_shell: self.allow_shell,
            strict_plans: self.strict_plans,
            transactions_per_session: self.transactions_per_session,
            vacuum: self.vacuum_first.unwrap_or_default(),
            log,
            report: self.report()?,
        };
        let plan = self.run.plan(work.into())?;
        let stop = match self.transactions_per_session {
            Some(count) => Stop::Transactions(count.saturating_mul(plan.sessions.into())),
            None => plan.stop,
        };
        Ok(Plan { dataset, prepare: self.prepare.policy(), stop, ..plan })
    }

    fn options(&self) -> CommandOptions<'_> {
        self.run.common.with(&self.target)
    }

    fn notice(&self) -> Option<String> {
        let value = self.run.bare_duration()?.0.as_secs_f64();
        Some(format!(
            "measures for {value} s; for {value} transactions per session, as with -t of pgbench, use --transactions-per-session {value}"
        ))
    }
}

/// The tables of pgbench that a run requires
#[derive(Debug, Clone, Args, Serialize)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct ScriptTableOptions {
    /// Number of branches, each with 10 tellers and 100,000 accounts
    #[arg(short, long, value_name = "N", or_default = ScriptDataset::default().scale)]
    scale: Option<Count>,
    /// Schema of the tables
    #[arg(long, value_name = "NAME", or_default = ScriptDataset::default().schema)]
    schema: Option<String>,
}

/// How pgbench's tables are created
#[derive(Debug, Args, Serialize)]
#[command(next_help_heading = "Dataset")]
struct CreateOptions {
    /// Partitions of the accounts; 0 for none
    #[arg(long, value_name = "N", or_default = ScriptDataset::default().partitions)]
    partitions: Option<u32>,
    /// How the accounts are partitioned
    #[arg(long, value_name = "METHOD", value_parser = choice::<PartitionMethod>(&["range", "hash"]), or_named = PartitionMethod::default())]
    partition_method: Option<PartitionMethod>,
    /// Create unlogged tables
    #[arg(long)]
    unlogged_tables: bool,
    /// Fill factor of branches, tellers and accounts
    #[arg(short = 'F', long, value_name = "PERCENT", or_default = ScriptDataset::default().fillfactor)]
    fillfactor: Option<u32>,
    /// Tablespace of the tables
    #[arg(long, value_name = "NAME")]
    tablespace: Option<String>,
    /// Tablespace of the indexes
    #[arg(long, value_name = "NAME")]
    index_tablespace: Option<String>,
}

/// The dataset of `riops prepare script`
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Dataset")]
pub(crate) struct PrepareScript {
    #[command(flatten)]
    tables: ScriptTableOptions,
    #[command(flatten)]
    create: CreateOptions,
    /// Create foreign keys
    #[arg(long)]
    foreign_keys: bool,
}

/// Execute the steps of pgbench -i: they drop and create pgbench's tables, also those that riops did not create
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Dataset")]
pub(crate) struct InitializeScript {
    /// Steps: drop, create tables, generate rows in the client (g) or in the server (G), vacuum, primary keys, foreign keys
    #[arg(long, value_name = "[dtgGvpf]+", default_value = "dtgvp", value_parser = init_steps)]
    pub(crate) steps: Steps,
    /// Number of branches, each with 10 tellers and 100,000 accounts
    #[arg(short, long, value_name = "N", or_default = ScriptDataset::default().scale)]
    scale: Option<Count>,
    #[command(flatten)]
    create: CreateOptions,
    /// Do not check the free disk space
    #[arg(long)]
    pub(crate) skip_space_check: bool,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Steps in the order of their letters.
#[derive(Debug, Clone)]
pub(crate) struct Steps(pub(crate) Vec<InitStep>);

fn init_steps(text: &str) -> Result<Steps, String> {
    let step = |letter| {
        InitStep::from_letter(letter)
            .ok_or_else(|| format!("unknown step \"{letter}\": expected letters of dtgGvpf"))
    };
    text.chars().map(step).collect::<Result<Vec<_>, _>>().map(Steps)
}

impl InitializeScript {
    /// The tables.
    pub(crate) fn dataset(&self) -> Result<ScriptDataset> {
        let mut requested = given(&self.create);
        if let Some(scale) = self.scale {
            requested.insert("scale".to_owned(), scale.0.into());
        }
        let dataset = DatasetPlan::from(ScriptDataset::default()).with(&requested)?;
        dataset.spec().validate()?;
        Ok(dataset.get().cloned().unwrap_or_default())
    }
}

impl PrepareWorkload for PrepareScript {
    fn order(&self, options: &PrepareOptions) -> Result<Prepare> {
        let mut requested = given(&self.tables);
        requested.extend(given(&self.create));
        requested.insert("foreign_keys".to_owned(), self.foreign_keys.into());
        options.order(&ScriptDataset::default().into(), requested, &[])
    }
}
