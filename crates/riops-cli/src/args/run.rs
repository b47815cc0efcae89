//! The options of `riops run` that workloads share.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use riops::host::machine;
use riops::plan::{
    ErrorPolicy, LatencyLimit, OnError, Plan, Protocol, Schedule, Spread, Stop, Threshold, WorkPlan,
};
use riops::report::{self, Scale};
use riops::units::{Count, Span};

use super::parsers::{choice, or_default, or_named, parse_pair};
use super::shared::random_seed;
use super::target::{StoreOptions, TargetOptions};

/// The options of one workload of `riops run`.
pub(crate) trait RunWorkload {
    /// The plan that they make.
    fn plan(&self) -> Result<Plan>;

    /// What is stored and printed.
    fn keep(&self) -> &KeepOptions;

    /// What is drawn; `None` where nothing can be.
    fn picture(&self) -> Option<&PictureOptions>;

    /// Which server.
    fn target(&self) -> &TargetOptions;
}

/// The number of processors.
fn cores() -> u32 {
    u32::try_from(machine::cpus()).unwrap_or(1)
}

/// How it is driven
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunOptions {
    /// Database connections that do the work [default: the number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], value_name = "N")]
    pub(crate) sessions: Option<u32>,
    /// Threads that drive them [default: the number of cores, at most one per session]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    #[arg(
        long,
        value_name = "KIND",
        value_parser = choice::<Protocol>(&["prepared", "extended", "simple"]),
        help = or_named("How statements are sent", Protocol::default())
    )]
    protocol: Option<Protocol>,
    /// Retry a transaction up to N times after a serialization failure or deadlock
    #[arg(long, value_name = "N", default_value_t = ErrorPolicy::default().max_retries)]
    max_retries: u32,
    /// Condition that the result must meet, else exit with 99: 'p99<10ms', 'riops>50000', 'errors=0'
    /// (repeatable)
    #[arg(long, value_name = "CONDITION")]
    threshold: Vec<Threshold>,
    /// Mark the run invalid if the client was the bottleneck
    #[arg(long)]
    strict: bool,
    /// Random seed [default: from the operating system]
    #[arg(long, visible_alias = "rand-seed", value_name = "N")]
    seed: Option<u64>,
    /// Percentile of the interval lines and of sysbench's report
    #[arg(long, value_name = "N", default_value_t = Plan::default().percentile)]
    percentile: f64,
    /// Do not verify afterwards that all acknowledged writes are present
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    record: RecordOptions,
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    #[command(flatten)]
    nodes: NodeOptions,
    #[command(flatten)]
    pub(crate) picture: PictureOptions,
}

impl RunOptions {
    /// A plan with what all runs have in common; it ends by `stop`.
    pub(crate) fn common(&self, work: WorkPlan, stop: Stop) -> Result<Plan> {
        let sessions = self.sessions.unwrap_or_else(cores);
        Ok(Plan {
            sessions,
            workers: self.workers.unwrap_or_else(|| cores().min(sessions)),
            protocol: self.protocol.unwrap_or_default(),
            errors: ErrorPolicy { max_retries: self.max_retries, ..ErrorPolicy::default() },
            thresholds: self.threshold.clone(),
            strict: self.strict,
            warmup_s: 0.0,
            stop,
            spread: self.nodes.spread.clone(),
            rebalance: self.nodes.rebalance,
            metrics_port: self.nodes.metrics_port,
            percentile: self.percentile,
            seed: self.seed.map_or_else(random_seed, Ok)?,
            verify: !self.no_verify,
            keep_samples: self.picture.graph.is_some(),
            ..self.record.named(work)
        })
    }

    /// The same for sessions that repeat their transactions.
    pub(crate) fn looped(&self, drive: &LoopOptions, work: WorkPlan) -> Result<Plan> {
        let plan = self.common(work, drive.stop())?;
        Ok(Plan {
            schedule: match (drive.rate, drive.poisson) {
                (None, _) => Schedule::Closed,
                (Some(per_s), false) => Schedule::Constant { per_s },
                (Some(per_s), true) => Schedule::Poisson { per_s },
            },
            // Sysbench says never with 0.
            reconnect_every: drive.reconnect.map(|count| count.0).filter(|&every| every > 0),
            errors: ErrorPolicy {
                on_error: drive.on_error.unwrap_or_default(),
                reconnect_timeout_s: drive
                    .reconnect_timeout
                    .map_or(plan.errors.reconnect_timeout_s, seconds),
                ..plan.errors
            },
            latency_limit: drive
                .latency_limit
                .map(|limit| LatencyLimit { limit_s: seconds(limit), skip: drive.skip_late }),
            abort_on_threshold: drive.abort_on_threshold,
            warmup_s: drive.warmup.map_or(Plan::default().warmup_s, seconds),
            ..plan
        })
    }
}

fn seconds(span: Span) -> f64 {
    span.0.as_secs_f64()
}

/// A default that is a time.
fn span_of(seconds: f64) -> Span {
    Span(std::time::Duration::from_secs_f64(seconds))
}

/// How the run is observed and named
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RecordOptions {
    #[arg(
        long,
        visible_alias = "report-interval",
        value_name = "TIME",
        help = or_default("Length of a point of the time series", span_of(Plan::default().interval_s))
    )]
    interval: Option<Span>,
    /// Keep trying to connect the sessions for this long before the first transaction
    #[arg(long, value_name = "TIME")]
    thread_init_timeout: Option<Span>,
    /// A name for the run
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// More names for the run (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    tag: Vec<(String, String)>,
}

impl RecordOptions {
    /// A plan for this work with these options, and the defaults of all others.
    pub(crate) fn named(&self, work: WorkPlan) -> Plan {
        let defaults = Plan::default();
        Plan {
            work,
            interval_s: self.interval.map_or(defaults.interval_s, seconds),
            connect_within_s: self.thread_init_timeout.map(seconds),
            label: self.label.clone(),
            tags: self.tag.iter().cloned().collect(),
            ..defaults
        }
    }
}

/// What is stored, and in which form the result is printed
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct KeepOptions {
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Do not store the run
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Print the plan that these options make, as JSON for run --plan, and run nothing
    #[arg(long)]
    pub(crate) dump_plan: bool,
    #[command(flatten)]
    pub(crate) output: RunOutputOptions,
}

/// Which nodes of a cluster
#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
struct NodeOptions {
    #[arg(
        long,
        value_name = "HOW",
        default_value_t = Spread::default(),
        help = "With several hosts, or those of yb_servers(), which node a session goes to: round-robin, least-connections, primary, replica, topology:CLOUD.REGION.ZONE:PRIORITY,… (zone * for any), or off, wherever the connection settings lead"
    )]
    spread: Spread,
    /// Let sessions go back to a node that has returned, and to one that has joined
    #[arg(long)]
    rebalance: bool,
    /// YugabyteDB: metrics port of the nodes
    #[arg(long, value_name = "PORT", default_value_t = Plan::default().metrics_port, value_parser = clap::value_parser!(u16).range(1..))]
    metrics_port: u16,
}

/// When it starts and ends, and what it does about errors
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct LoopOptions {
    #[arg(
        short = 't',
        long,
        visible_alias = "time",
        value_name = "TIME",
        group = "stop",
        help = or_default("How long to measure", span_of(default_duration_s()))
    )]
    pub(crate) duration: Option<Span>,
    /// Stop after exactly this many transactions, over all sessions
    #[arg(long, visible_alias = "events", value_name = "N", group = "stop")]
    pub(crate) transactions: Option<Count>,
    /// Stop when this many rows have been read or written, over all sessions
    #[arg(long, value_name = "N", group = "stop")]
    total_rows: Option<Count>,
    /// Start this many transactions per second, over all sessions, whatever happens to those before
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate)]
    rate: Option<f64>,
    /// With --rate: start at random distances, as independent users do
    #[arg(long, requires = "rate")]
    poisson: bool,
    /// Count transactions as late whose response time is longer
    #[arg(long, value_name = "TIME")]
    latency_limit: Option<Span>,
    /// With --rate: do not send what is already later than --latency-limit, and count it
    #[arg(long, requires = "latency_limit")]
    skip_late: bool,
    /// Make a new connection after every N transactions of a session
    #[arg(long, value_name = "N")]
    reconnect: Option<Count>,
    #[arg(
        long,
        value_name = "WHAT",
        value_parser = choice::<OnError>(&["stop", "continue"]),
        help = or_named("After any other error of a statement: end the run, or count it and continue", OnError::default())
    )]
    on_error: Option<OnError>,
    #[arg(
        long,
        value_name = "TIME",
        help = or_default("How long a session whose connection broke tries to get another one", span_of(ErrorPolicy::default().reconnect_timeout_s))
    )]
    reconnect_timeout: Option<Span>,
    /// End the run as soon as a --threshold is breached
    #[arg(long, requires = "threshold")]
    abort_on_threshold: bool,
    #[arg(
        long,
        visible_alias = "warmup-time",
        value_name = "TIME",
        help = or_default("How long to run before measuring", span_of(Plan::default().warmup_s))
    )]
    warmup: Option<Span>,
}

impl LoopOptions {
    fn stop(&self) -> Stop {
        match (self.duration, self.transactions, self.total_rows) {
            (_, Some(count), _) => Stop::Transactions(count.0),
            (_, _, Some(count)) => Stop::Rows(count.0),
            (duration, _, _) => Stop::DurationS(duration.map_or_else(default_duration_s, seconds)),
        }
    }
}

fn default_duration_s() -> f64 {
    match Plan::default().stop {
        Stop::DurationS(seconds) => seconds,
        Stop::Transactions(_) | Stop::Rows(_) => 0.0,
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunOutputOptions {
    /// What to print on standard output; pgio is text that ends with PGIO's report; sysbench is its report
    /// alone, and cbc the lines of its collector
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = PossibleValuesParser::new(report::FORMS.map(|form| form.name())))]
    pub(crate) output: String,
}

/// What is printed and drawn beside the result
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PictureOptions {
    /// Print a histogram of the latencies below the text; its buckets are of equal width, or with
    /// =log each is as many times the one before
    #[arg(long, value_name = "SCALE", num_args = 0..=1, require_equals = true, default_missing_value = "linear", value_parser = choice::<Scale>(&["linear", "log"]))]
    print_histogram: Option<Scale>,
    /// Buckets of the histogram [default: 10]
    #[arg(long, value_name = "N", requires = "print_histogram", value_parser = clap::value_parser!(u16).range(1..=200))]
    histogram_buckets: Option<u16>,
    /// Draw the latency of each transaction over time into this PNG file, a color a session
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Option<PathBuf>,
    /// With --graph: the scale of its latencies [default: log]
    #[arg(long, value_name = "SCALE", requires = "graph", value_parser = choice::<Scale>(&["linear", "log"]))]
    pub(crate) graph_scale: Option<Scale>,
}

/// Buckets of a histogram, as in ysql-bench.
const BUCKETS: u16 = 10;

impl PictureOptions {
    /// The histogram that was asked for.
    pub(crate) fn histogram(&self) -> Option<(Scale, usize)> {
        let buckets = usize::from(self.histogram_buckets.unwrap_or(BUCKETS));
        self.print_histogram.map(|scale| (scale, buckets))
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    text.replace('_', "")
        .parse()
        .ok()
        .filter(|rate: &f64| *rate > 0.0 && rate.is_finite())
        .ok_or_else(|| format!("`{text}` is no rate above 0 (examples: 1000, 2.5, 1e4)"))
}
