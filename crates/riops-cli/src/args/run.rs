//! Options of `riops run` that workloads share.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use riops::host::machine;
use riops::plan::{
    Drain, Driver, ErrorPolicy, LatencyLimit, NamedQuery, OnError, Plan, PlanError, Prometheus,
    Protocol, Schedule, Spread, Stop, Threshold, Unrecorded, WorkPlan,
};
use riops::record::Record;
use riops::report::Scale;
use riops::serve::ListenAddress;
use riops::server::Changes;
use riops::session::Repeats;
use riops::units::{Count, Span, UnitError};

use super::fleet::FleetOptions;
use super::output::{AnswerOptions, Output, OutputOptions, of_runs};
use super::parsers::{
    OrDefault, Switch, choice, name_of, parse_pair, parse_png, parse_threshold,
    parse_time_with_unit,
};
use super::shared::{
    ChangeOptions, PrepareFirst, SeedOptions, StoreOptions, TargetOptions, TrustOption,
};
use crate::failure::refuse;

/// The options of one workload of `riops run`.
pub(crate) trait RunWorkload {
    /// Returns the plan that the options describe.
    fn plan(&self) -> Result<Plan>;

    /// Returns the options that are not part of the plan.
    fn options(&self) -> CommandOptions<'_>;

    /// How an option was understood, if it has another meaning in the original tool.
    fn notice(&self) -> Option<String> {
        None
    }
}

/// The options of a run that are not part of its plan.
pub(crate) struct CommandOptions<'a> {
    pub(crate) keep: &'a ResultOptions,
    pub(crate) graph_options: &'a GraphOptions,
    pub(crate) target: &'a TargetOptions,
    pub(crate) changes: Changes,
    /// The file for the table of the sessions.
    pub(crate) session_detail: Option<&'a Path>,
    /// The stored run that is repeated.
    pub(crate) before: Option<&'a Record>,
}

impl<'a> CommandOptions<'a> {
    pub(crate) fn new(
        keep: &'a ResultOptions,
        graph_options: &'a GraphOptions,
        target: &'a TargetOptions,
    ) -> Self {
        let changes = Changes::default();
        Self { keep, graph_options, target, changes, session_detail: None, before: None }
    }
}

/// Number of processors.
pub(crate) fn cores() -> u32 {
    u32::try_from(machine::cpus()).unwrap_or(1)
}

/// Sessions, errors and the record
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunOptions {
    /// Number of database sessions [default: number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], value_name = "N")]
    pub(crate) sessions: Option<u32>,
    /// Number of worker threads [default: number of cores, at most one per session]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// How the workers wait for their sockets
    #[arg(long, value_name = "NAME", default_value = name_of(Driver::default()), value_parser = choice::<Driver>(&["auto", "epoll", "io-uring"]))]
    driver: Driver,
    /// Query protocol
    #[arg(long, value_name = "KIND", default_value = name_of(Protocol::default()), value_parser = choice::<Protocol>(&["prepared", "extended", "simple"]))]
    protocol: Protocol,
    /// Retry a transaction up to N times after a serialization failure or deadlock
    #[arg(long, value_name = "N", default_value_t = ErrorPolicy::default().max_retries)]
    max_retries: u32,
    /// Exit with 99 unless the result meets this condition: 'p99<10ms', 'riops>50000', 'errors=0', or a
    /// figure: 'server-cpu<200us' (repeatable)
    #[arg(long, value_name = "CONDITION", value_parser = parse_threshold)]
    threshold: Vec<Threshold>,
    /// Mark the run invalid if the client was the bottleneck, other load was present during the run, or a rate was not
    /// reached
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    seed: SeedOptions,
    /// Percentile in interval lines and in sysbench's report
    #[arg(long, value_name = "N", default_value_t = Plan::default().percentile)]
    percentile: f64,
    /// Do not verify after the run that all acknowledged writes are present
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    record: RecordOptions,
    /// Setting of the server during the run: of the sessions where they may set it, otherwise of the whole server,
    /// which gets back its value afterwards (repeatable)
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Server", value_parser = parse_pair)]
    setting: Vec<(String, String)>,
    #[command(flatten)]
    changes: ChangeOptions,
    #[command(flatten)]
    trust: TrustOption,
    #[command(flatten)]
    pub(crate) keep: ResultOptions,
    #[arg(
        long,
        value_name = "HOW",
        help_heading = "Nodes",
        default_value_t = Spread::default(),
        help = "How sessions are spread over several hosts or the nodes of yb_servers(): round-robin, least-connections, primary, replica, topology:CLOUD.REGION.ZONE:PRIORITY,… (* for any zone), or off (the order of the connection string)"
    )]
    spread: Spread,
    /// Use only the first N nodes that --spread allows [default: all nodes]
    #[arg(long, value_name = "N", help_heading = "Nodes", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// Move sessions to nodes that recovered or joined
    #[arg(long, help_heading = "Nodes")]
    rebalance: bool,
    /// Metrics port of the nodes
    #[arg(long, help_heading = "YugabyteDB", value_name = "PORT", default_value_t = Plan::default().metrics_port, value_parser = clap::value_parser!(u16).range(1..))]
    metrics_port: u16,
    #[command(flatten)]
    pub(crate) graph_options: GraphOptions,
}

impl RunOptions {
    pub(crate) fn with<'a>(&'a self, target: &'a TargetOptions) -> CommandOptions<'a> {
        let changes = self.changes.changes(self.trust);
        CommandOptions { changes, ..CommandOptions::new(&self.keep, &self.graph_options, target) }
    }

    /// Returns a plan with the options that all workloads share.
    pub(crate) fn plan(&self, work: WorkPlan, stop: Stop) -> Result<Plan> {
        let sessions = self.sessions.unwrap_or_else(cores);
        Ok(Plan {
            sessions,
            workers: self.workers.unwrap_or_else(cores).min(sessions),
            driver: self.driver,
            protocol: self.protocol,
            errors: ErrorPolicy { max_retries: self.max_retries, ..ErrorPolicy::default() },
            thresholds: self.threshold.clone(),
            strict: self.strict,
            warmup_s: 0.0,
            stop,
            spread: self.spread.clone(),
            nodes: self.nodes,
            settings: self.setting.iter().cloned().collect(),
            rebalance: self.rebalance,
            metrics_port: self.metrics_port,
            percentile: self.percentile,
            seed: self.seed.or_random()?,
            generated_seed: Unrecorded(self.seed.given().is_none()),
            verify: !self.no_verify,
            keep_samples: self.graph_options.graph.is_some(),
            ..self.record.named(work)
        })
    }
}

pub(super) fn seconds(span: Span) -> f64 {
    span.0.as_secs_f64()
}

/// Time series and labels
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RecordOptions {
    /// Interval of the time series
    #[arg(long, visible_alias = "report-interval", value_name = "TIME", default_value_t = Span::of_seconds(Plan::default().interval_s))]
    interval: Span,
    /// Retry failed connections for this long before the first transaction [default: no retry]
    #[arg(long, value_name = "TIME")]
    thread_init_timeout: Option<Span>,
    /// Label of the run, shown in riops runs list
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Tag of the run (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    tag: Vec<(String, String)>,
    /// Fact about the server: 'instance=m6i.2xlarge', 'vcpu=8', 'price=0.796 USD/h' (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    fact: Vec<(String, String)>,
    /// Also read the number that a query returns, once an interval: 'lag=select …' (repeatable)
    #[arg(long, value_name = "NAME=QUERY")]
    probe: Vec<NamedQuery>,
    /// Also read metrics of the server's machines from this Prometheus, once an interval; its queries have the form
    /// --probe NAME=promql:QUERY
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
    /// Labels of the containers of the server: 'namespace="yb",pod=~"yb-tserver-.*"'
    #[arg(long, value_name = "LABELS", requires = "prometheus")]
    prometheus_server: Option<String>,
    /// Record a CPU profile of a server on this machine with perf, N samples per second [default: no profile; 99 Hz
    /// without a number]
    #[arg(long, value_name = "HZ", num_args = 0..=1, require_equals = true, default_missing_value = "99")]
    profile: Option<u32>,
    /// Count the instructions of a server on this machine with perf, in user mode
    #[arg(long)]
    instructions: bool,
}

impl RecordOptions {
    /// Returns the user's queries, and riops's own queries unless the user has a query with the same name.
    fn probes(&self) -> Vec<NamedQuery> {
        let labels = self.prometheus_server.as_deref();
        let own = self.prometheus.iter().flat_map(|_| Prometheus::queries(labels));
        let is_new = |query: &NamedQuery| self.probe.iter().all(|probe| probe.name != query.name);
        self.probe.iter().cloned().chain(own.filter(is_new)).collect()
    }

    /// Returns a plan for this workload with these options and defaults otherwise.
    pub(crate) fn named(&self, work: WorkPlan) -> Plan {
        Plan {
            work,
            interval_s: seconds(self.interval),
            connect_within_s: self.thread_init_timeout.map(seconds),
            label: self.label.clone(),
            tags: self.tag.iter().cloned().collect(),
            facts: self.fact.iter().cloned().collect(),
            probes: self.probes(),
            prometheus: self.prometheus.clone().map(|url| Prometheus { url }),
            profile_hz: self.profile,
            instructions: self.instructions,
            ..Plan::default()
        }
    }
}

/// How a stored plan is run
#[derive(Debug, Args)]
pub(crate) struct PlanOptions {
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    #[command(flatten)]
    pub(crate) changes: ChangeOptions,
    #[command(flatten)]
    pub(crate) prepare: PrepareFirst,
    #[command(flatten)]
    pub(crate) keep: ResultOptions,
    #[command(flatten)]
    pub(crate) graph_options: GraphOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Store and output
#[derive(Debug, Args)]
#[command(next_help_heading = "Run", mut_arg("output", |arg| arg.value_parser(of_runs())))]
pub(crate) struct ResultOptions {
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Do not store the run
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Note on the run: hypothesis, what was changed
    #[arg(long, value_name = "TEXT", conflicts_with = "no_store")]
    pub(crate) note: Option<String>,
    /// Do not print the intervals
    #[arg(long)]
    pub(crate) no_intervals: bool,
    /// Print the plan as JSON for run --plan, without running it
    #[arg(long)]
    pub(crate) dump_plan: bool,
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    #[command(flatten)]
    pub(crate) repeat: RepeatOptions,
    #[command(flatten)]
    pub(crate) live: LiveOptions,
    #[command(flatten)]
    pub(crate) fleet: FleetOptions,
}

/// Live figures of a run
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Live figures")]
pub(crate) struct LiveOptions {
    /// Serve the figures of the run as Prometheus metrics at this address; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics_listen: Option<ListenAddress>,
    /// With --metrics-listen: token that clients must send, required if other machines can connect
    #[arg(long, value_name = "TOKEN")]
    pub(crate) metrics_token: Option<String>,
    /// Read the token of --metrics-token from a file, which takes precedence
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_token_file: Option<PathBuf>,
    /// Send the figures of each interval to this address with Prometheus's remote write
    #[arg(long, value_name = "URL")]
    pub(crate) metrics_push: Option<String>,
    /// Read the bearer token for --metrics-push from a file
    #[arg(long, value_name = "FILE", requires = "metrics_push")]
    pub(crate) metrics_push_token_file: Option<PathBuf>,
    /// Print each interval as a line of JSON on standard error, instead of the progress
    #[arg(long)]
    pub(crate) interval_json: bool,
}

/// Repeated runs
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RepeatOptions {
    /// Run the plan N times, store each run with a common tag, and print the median and its interval [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
    /// Pause after --checkpoint and --vacuum, otherwise between two runs of --repeat [default: 5s between two runs]
    #[arg(long, value_name = "TIME")]
    pub(crate) settle: Option<Span>,
}

/// Forms that cannot be printed one after the other.
const OF_ONE_RUN: [&str; 5] = ["csv", "markdown", "html", "png", "openmetrics"];

impl RepeatOptions {
    /// The repetitions that were requested; `None` for a single run.
    ///
    /// # Errors
    /// With `--graph` or a file of `--output`, which show one run.
    pub(crate) fn repeats(
        &self,
        graph: &GraphOptions,
        outputs: &OutputOptions,
    ) -> Result<Option<Repeats>> {
        let count = self.repeat.unwrap_or(1);
        if count == 1 {
            return Ok(None);
        }
        if graph.graph.is_some() {
            let text = "--graph shows one run and is not supported with --repeat; use riops runs show --graph";
            return refuse(text);
        }
        let is_of_one =
            |output: &&Output| output.file.is_some() || OF_ONE_RUN.contains(&&*output.form);
        if let Some(Output { form, .. }) = outputs.output.iter().find(is_of_one) {
            return refuse(format!(
                "--output {form} into a file is not supported with --repeat, and csv, markdown, html, png and openmetrics have one run: use riops runs export or riops report"
            ));
        }
        Ok(Some(Repeats { count, settle: self.settle.unwrap_or(SETTLE).0 }))
    }
}

/// Time for writes in progress and for background work of the server after a run.
const SETTLE: Span = Span(std::time::Duration::from_secs(5));

/// Duration, rate and errors of session loops
#[derive(Debug, Args)]
pub(crate) struct LoopOptions {
    #[command(flatten)]
    pub(crate) common: RunOptions,
    /// Duration of the measurement
    #[arg(short = 't', long, help_heading = "Run", visible_alias = "time", value_name = "TIME", group = "stop", or_default = Span::of_seconds(Plan::default().stop.seconds().unwrap_or_default()))]
    duration: Option<GivenSpan>,
    /// Stop after exactly N transactions, over all sessions
    #[arg(long, help_heading = "Run", visible_alias = "events", value_name = "N", group = "stop")]
    pub(crate) transactions: Option<Count>,
    /// Stop after N rows read or written, over all sessions
    #[arg(long, help_heading = "Run", value_name = "N", group = "stop")]
    total_rows: Option<Count>,
    /// With --transactions or --total-rows: stop after this time at the latest
    #[arg(long, help_heading = "Run", value_name = "TIME")]
    max_duration: Option<Span>,
    /// Transactions in flight when the time is up: uncounted; counted, also their retries; counted-once, without further retries
    #[arg(long, help_heading = "Run", value_name = "WHAT", default_value = name_of(Drain::default()), value_parser = choice::<Drain>(&["uncounted", "counted", "counted-once"]))]
    drain: Drain,
    /// Start N transactions per second, over all sessions (open loop), or as in a profile: 500:30s,100..5000:2m
    #[arg(long, help_heading = "Run", value_name = "N|PROFILE", value_parser = parse_rate)]
    rate: Option<Schedule>,
    /// With --rate: exponentially distributed intervals between starts [default: off]
    #[arg(long, help_heading = "Run", value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", requires = "rate")]
    poisson: Option<Switch>,
    /// Count transactions with a longer response time as late
    #[arg(long, help_heading = "Run", value_name = "TIME", value_parser = parse_time_with_unit)]
    latency_limit: Option<Span>,
    /// With --rate: skip and count transactions that are already later than --latency-limit
    #[arg(long, help_heading = "Run", requires = "latency_limit")]
    skip_late: bool,
    /// Reconnect a session after every N transactions
    #[arg(long, help_heading = "Run", value_name = "N")]
    reconnect: Option<Count>,
    /// After an error that is not retried: stop the run, or count it and continue
    #[arg(long, help_heading = "Run", value_name = "WHAT", default_value = name_of(OnError::default()), value_parser = choice::<OnError>(&["stop", "continue", "end-session"]))]
    on_error: OnError,
    /// Time limit for replacing a broken connection
    #[arg(long, help_heading = "Run", value_name = "TIME", default_value_t = Span::of_seconds(ErrorPolicy::default().reconnect_timeout_s))]
    reconnect_timeout: Span,
    /// Stop the run as soon as a --threshold is breached
    #[arg(long, help_heading = "Run", requires = "threshold")]
    abort_on_threshold: bool,
    /// Duration of the warm-up before the measurement
    #[arg(long, help_heading = "Run", visible_alias = "warmup-time", value_name = "TIME", default_value_t = Span::of_seconds(Plan::default().warmup_s))]
    warmup: Span,
}

/// A duration as it was given.
#[derive(Debug, Clone, Copy)]
struct GivenSpan {
    span: Span,
    has_unit: bool,
}

impl FromStr for GivenSpan {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
        Ok(Self { span: text.parse()?, has_unit })
    }
}

impl LoopOptions {
    /// Returns a plan with these options.
    pub(crate) fn plan(&self, work: WorkPlan) -> Result<Plan> {
        let poisson = self.poisson.is_some_and(|on| on.0);
        let schedule = match self.rate.clone().unwrap_or_default() {
            Schedule::Constant { per_s } if poisson => Schedule::Poisson { per_s },
            Schedule::Profile { steps, .. } => Schedule::Profile { steps, poisson },
            schedule => schedule,
        };
        let plan = self.common.plan(work, self.stop(&schedule))?;
        let limit = |limit| LatencyLimit { limit_s: seconds(limit), skip: self.skip_late };
        Ok(Plan {
            schedule,
            // 0 means never, as in sysbench.
            reconnect_every: self.reconnect.map(|count| count.0).filter(|&every| every > 0),
            errors: ErrorPolicy {
                on_error: self.on_error,
                reconnect_timeout_s: seconds(self.reconnect_timeout),
                ..plan.errors
            },
            latency_limit: self.latency_limit.map(limit),
            abort_on_threshold: self.abort_on_threshold,
            max_duration_s: self.max_duration.map(seconds),
            drain: self.drain,
            warmup_s: seconds(self.warmup),
            ..plan
        })
    }

    /// The duration, if it was given as a number without a unit.
    pub(crate) fn bare_duration(&self) -> Option<Span> {
        self.duration.filter(|duration| !duration.has_unit).map(|duration| duration.span)
    }

    /// When the measurement stops. The profile of a rate is as long as the measurement.
    fn stop(&self, schedule: &Schedule) -> Stop {
        let given = self.duration.map(|given| seconds(given.span)).or(schedule.profile_s());
        match (self.transactions, self.total_rows) {
            (Some(count), _) => Stop::Transactions(count.0),
            (_, Some(count)) => Stop::Rows(count.0),
            _ => given.map_or(Plan::default().stop, Stop::DurationS),
        }
    }
}

/// Histogram and graph
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct GraphOptions {
    /// Print a latency histogram with buckets of equal width, or with =log of equal ratio
    #[arg(long, value_name = "SCALE", num_args = 0..=1, require_equals = true, default_missing_value = "linear", value_parser = choice::<Scale>(&["linear", "log"]))]
    print_histogram: Option<Scale>,
    /// Number of buckets of the histogram [default: 10]
    #[arg(long, value_name = "N", requires = "print_histogram", value_parser = clap::value_parser!(u16).range(1..=200))]
    histogram_buckets: Option<u16>,
    /// Write a PNG file with the latency of each transaction over time, one color per session
    #[arg(long, value_name = "FILE", value_parser = parse_png)]
    pub(crate) graph: Option<PathBuf>,
    /// With --graph: scale of the latency axis [default: log]
    #[arg(long, value_name = "SCALE", requires = "graph", value_parser = choice::<Scale>(&["linear", "log"]))]
    pub(crate) graph_scale: Option<Scale>,
}

/// The options of a workload that supports neither.
pub(crate) static NO_GRAPH: GraphOptions =
    GraphOptions { print_histogram: None, histogram_buckets: None, graph: None, graph_scale: None };

/// Number of buckets of a histogram, as in ysql-bench.
const BUCKETS: u16 = 10;

impl GraphOptions {
    /// Scale and number of buckets of the requested histogram.
    pub(crate) fn histogram(&self) -> Option<(Scale, usize)> {
        let buckets = usize::from(self.histogram_buckets.unwrap_or(BUCKETS));
        self.print_histogram.map(|scale| (scale, buckets))
    }
}

/// Parses a rate, for starts at equal intervals.
fn parse_rate(text: &str) -> Result<Schedule, String> {
    if text.contains(':') {
        let steps = text.split(',').map(str::parse).collect::<Result<_, PlanError>>();
        let steps = steps.map_err(|error| error.to_string())?;
        return Ok(Schedule::Profile { steps, poisson: false });
    }
    match text.replace('_', "").parse() {
        Ok(per_s) if per_s > 0.0 && per_s < f64::INFINITY => Ok(Schedule::Constant { per_s }),
        _ => Err("not a rate above 0 (examples: 1000, 2.5, 1e4; 500:30s,100..5000:2m)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_has_a_default_and_graphs_need_a_single_run() {
        let graph = GraphOptions { graph: Some("a.png".into()), ..GraphOptions::default() };
        let repeats_with = |repeat: u32, graph: &GraphOptions| {
            let options = RepeatOptions { repeat: Some(repeat), settle: None };
            options.repeats(graph, &OutputOptions::default())
        };
        assert!(repeats_with(1, &graph).unwrap().is_none());
        let repeats = repeats_with(3, &GraphOptions::default()).unwrap().unwrap();
        assert_eq!((repeats.count, repeats.settle), (3, SETTLE.0));
        assert!(repeats_with(3, &graph).is_err_and(|error| error.to_string().contains("--graph")));
    }
}
