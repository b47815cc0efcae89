//! The report that pgbench prints, with or without its progress lines.

use super::super::format::Format;
use super::super::numbers::{counted, require_number};
use super::super::results::Report;
use super::super::results::RunResults;
use super::super::series::Series;
use super::TOOL;
use crate::plan::{ImportedRun, Protocol, Stop};
use crate::record::{
    LateRecord, LatencyKind, OperationRecord, Point, ReportedLatency, ReportedPercentile,
};

/// Lines that are kept as they are, under their names.
const FACTS: [&str; 12] = [
    "scaling factor",
    "partition method",
    "partitions",
    "maximum number of tries",
    "number of serialization failures",
    "number of deadlock failures",
    "number of transactions retried",
    "number of transactions skipped",
    "number of transactions above the",
    "rate limit schedule lag",
    "initial connection time",
    "average connection time",
];

/// Maximum number of lines that occur once: these, and two rates.
const SEEN_MAX: usize = RESULTS.len() + 2;

/// The quotient of the rates without and with the time to connect, up to which each client connected once.
const CONNECTING_MAX: f64 = 1.1;

/// By this factor, a rate and a duration differ only if the number was cut off.
const CUT_RATIO: f64 = 2.0;

/// The part of [`FACTS`] that precedes the results, and the other lines there, in the order of the report.
const SETTINGS: [&str; 9] = [
    "scaling factor",
    "partition method",
    "partitions",
    "query mode",
    "number of clients",
    "number of threads",
    "maximum number of tries",
    "duration",
    "number of transactions per client",
];

/// Lines that occur once in a report, from the first result on.
const RESULTS: [&str; 3] =
    ["number of transactions actually processed", "latency average", "latency stddev"];

/// A line of a text.
#[derive(Debug, Clone, Copy)]
enum Line<'a> {
    /// `pgbench (…)`
    Banner(&'a str),
    Progress(&'a str),
    Script(&'a str),
    /// A line of a script, after `- `.
    OfScript(&'a str),
    Aborted,
    /// `tps = …`
    Tps(&'a str),
    Pair(&'a str, &'a str),
    /// A line of another program.
    Other,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str, is_in_script: bool) -> Self {
        // In other places, the dash comes from a person who quotes a report as a list.
        let text = match text.strip_prefix("- ") {
            Some(rest) if is_in_script => return Self::OfScript(rest),
            Some(rest) => rest,
            None => text,
        };
        if let Some(rest) = text.strip_prefix("pgbench (") {
            Self::Banner(rest)
        } else if let Some(rest) = text.strip_prefix("progress: ") {
            Self::Progress(rest)
        } else if let Some(rest) = text.strip_prefix("SQL script ") {
            Self::Script(rest)
        } else if text.contains("Run was aborted") {
            Self::Aborted
        } else if let Some(rest) = text.strip_prefix("tps = ") {
            Self::Tps(rest)
        } else if let Some((name, value)) = text.split_once(": ").or_else(|| text.split_once(" = "))
            && (name != "duration" || value.ends_with(" s"))
        {
            // The log of the server has durations in milliseconds.
            Self::Pair(name, value)
        } else {
            Self::Other
        }
    }
}

/// Where the banner of a run stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Banner {
    #[default]
    Missing,
    First,
    /// All of standard error, with the progress lines, was written before standard output.
    AfterProgress,
}

/// A report of pgbench while it is read.
#[derive(Debug, Default)]
pub(in crate::import) struct PgbenchReport {
    results: RunResults,
    /// Whether a banner or progress lines show that pgbench started.
    has_started: bool,
    banner: Banner,
    has_type: bool,
    /// Whether the settings come from the previous report.
    is_continued: bool,
    /// Whether the last quoted command line of pgbench has `-C`, and whether the command line of this report has it.
    command_connects: Option<bool>,
    connects: Option<bool>,
    /// Lines that occur once.
    seen: Vec<String>,
    clients: Option<u32>,
    per_client: Option<u64>,
    processed: Option<u64>,
    tps: Option<f64>,
    /// The rate if nothing follows the number in its line.
    tps_alone: Option<f64>,
    latency: ReportedLatency,
    failed: Option<u64>,
    failures: Vec<(&'static str, u64)>,
    retries: u64,
    late: Option<(f64, u64)>,
    skipped: Option<u64>,
    scripts: Vec<OperationRecord>,
    progress: ProgressLines,
}

/// A progress line. Values that it does not contain are 0 or absent.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    at_s: f64,
    tps: f64,
    mean_us: Option<f64>,
    failed: u64,
    skipped: u64,
    retries: u64,
}

/// The progress lines of a run.
#[derive(Debug, Default)]
struct ProgressLines {
    first: Option<Progress>,
    last_s: f64,
    /// The start of the run, if the lines have times since 1970: known from the second one on.
    epoch_s: Option<f64>,
    series: Series,
}

impl Report for PgbenchReport {
    const FORMAT: Format = Format::Pgbench;

    fn next(&self, line: &str) -> Option<Self> {
        let line = self.read(line);
        let is_new = match line {
            Line::Banner(_) => self.banner != Banner::Missing || self.has_results(),
            Line::Pair("transaction type", _) => self.has_values() || self.has_own_type(),
            Line::Progress(text) => self.is_restart(text) || self.is_of_run_before(),
            _ => false,
        };
        if is_new {
            let mut next = Self { command_connects: self.command_connects, ..Self::default() };
            if self.is_of_run_before() {
                (next.has_started, next.banner) = (true, Banner::First);
                next.results.run.version.clone_from(&self.results.run.version);
                next.results.target.clone_from(&self.results.target);
            }
            return Some(next);
        }
        let is_further = match line {
            Line::Pair(name, _) => {
                self.has_values() && SETTINGS.contains(&name) || self.has_seen(name)
            }
            Line::Tps(rest) => self.has_seen(tps_kind(rest)) || self.seen.len() == SEEN_MAX,
            Line::Progress(_) => self.has_values(),
            _ => false,
        };
        is_further.then(|| self.continued())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        match self.read(line) {
            Line::Banner(rest) => self.banner(rest),
            Line::Progress(rest) => {
                self.has_started = true;
                if let Some(interval) = progress(rest)? {
                    self.progress.push(&interval);
                }
            }
            Line::Script(rest) => {
                let name = rest.split_once(": ").map_or(rest, |(_, name)| name);
                self.scripts
                    .push(OperationRecord { name: name.to_owned(), ..OperationRecord::default() });
            }
            Line::OfScript(rest) => self.script_line(rest)?,
            Line::Aborted => self.results.failure = Some("pgbench: Run was aborted".to_owned()),
            Line::Tps(rest) => self.tps(rest)?,
            Line::Pair(name, value) => self.pair(name, value)?,
            Line::Other => {
                self.command_connects = command_connects(line).or(self.command_connects);
            }
        }
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.has_started || self.has_results() || self.results.run.version.is_some()
    }

    fn has_results(&self) -> bool {
        self.has_values() || self.has_own_type()
    }

    fn has_started(&self) -> bool {
        self.has_started
    }

    fn finish(self) -> Result<RunResults, String> {
        let missing = |what: &str| {
            format!("the report of pgbench is incomplete: the line \"{what}\" is missing")
        };
        // The first lines of a report are often cut off.
        if !self.has_type && !self.has_values() {
            return Err(missing("transaction type: …"));
        }
        let processed = self
            .processed
            .ok_or_else(|| missing("number of transactions actually processed: …"))?;
        let tps = match self.tps {
            Some(tps) if processed > 0 && tps <= 0.0 => {
                return Err(format!("the line \"tps = …\" contradicts {processed} transactions"));
            }
            Some(tps) => tps,
            // From version 18 on, the report ends earlier if nothing was processed.
            None if processed == 0 => 0.0,
            None => return Err(missing("tps = …")),
        };
        let duration = match self.results.stop {
            Some(Stop::DurationS(seconds)) => seconds,
            _ => 0.0,
        };
        // Every version continues the line after the number.
        if let Some(tps) = self.tps_alone.filter(|&tps| duration > 0.0 && tps > 0.0) {
            let ratio = processed as f64 / tps / duration;
            if !(1.0 / CUT_RATIO..CUT_RATIO).contains(&ratio) {
                return Err(format!(
                    "the line \"tps = {tps}\" contradicts the duration of {duration} s: it may be cut off"
                ));
            }
        }
        let mut results = self.results;
        results.run = ImportedRun { tool: TOOL.to_owned(), ..results.run };
        results.started_at = self.progress.started_at();
        results.has_gaps = self.progress.series.has_gaps;
        let planned = self.per_client.zip(self.clients);
        let planned =
            planned.map(|(transactions, clients)| transactions.saturating_mul(clients.into()));
        results.stop = results.stop.or(planned.map(Stop::Transactions));
        let stage = &mut results.stage;
        // 0 is unknown: the line was cut off.
        stage.sessions = self.clients.unwrap_or_default();
        stage.transactions = processed;
        stage.seconds = if tps > 0.0 { processed as f64 / tps } else { duration };
        let session_loop = &mut stage.session_loop;
        session_loop.reported_latency = (self.latency.mean_us.is_some()).then_some(self.latency);
        session_loop.outcomes = self.failed.map(|failed| super::outcomes(processed, failed));
        session_loop.retries = self.retries;
        // pgbench does not report the SQLSTATE of retried errors.
        session_loop.errors =
            super::errors(self.failures.into_iter().filter(|_| self.retries == 0));
        let skipped = self.skipped;
        for (position, script) in (1..).zip(&self.scripts) {
            let count = script.transactions;
            let text = format!("{}, {count} transactions", script.name);
            results.run.facts.insert(format!("SQL script {position}"), text);
        }
        let (limit_us, transactions) = self.late.unzip();
        session_loop.late = (limit_us.is_some() || skipped.is_some_and(|skipped| skipped > 0))
            .then(|| LateRecord { limit_us, transactions, skipped: skipped.unwrap_or_default() });
        session_loop.operations = self.scripts;
        session_loop.series = self.progress.series.into_points();
        Ok(results)
    }
}

impl PgbenchReport {
    fn read<'a>(&self, line: &'a str) -> Line<'a> {
        Line::parse(line, !self.scripts.is_empty())
    }

    /// Whether the next progress line shows that the lines before the banner belong to a run without a report.
    fn is_of_run_before(&self) -> bool {
        self.banner == Banner::AfterProgress && !self.has_results()
    }

    fn has_values(&self) -> bool {
        self.processed.is_some() || self.tps.is_some()
    }

    fn has_own_type(&self) -> bool {
        self.has_type && !self.is_continued
    }

    fn has_seen(&self, name: &str) -> bool {
        self.seen.iter().any(|seen| seen == name)
    }

    /// Whether the times begin again, although there was no report.
    fn is_restart(&self, text: &str) -> bool {
        let at_s = progress(text).ok().flatten().map(|interval| interval.at_s);
        self.progress.first.zip(at_s).is_some_and(|(first, at_s)| {
            at_s <= self.progress.last_s && at_s <= first.at_s && !self.has_values()
        })
    }

    /// A further report with the same header.
    fn continued(&self) -> Self {
        let run = &self.results.run;
        let mut facts = run.facts.clone();
        facts.retain(|name, _| SETTINGS.contains(&name.as_str()));
        Self {
            results: RunResults {
                run: ImportedRun {
                    version: run.version.clone(),
                    test: run.test.clone(),
                    facts,
                    ..ImportedRun::default()
                },
                workers: self.results.workers,
                protocol: self.results.protocol,
                stop: self.results.stop,
                target: self.results.target.clone(),
                ..RunResults::default()
            },
            has_type: self.has_type,
            is_continued: true,
            clients: self.clients,
            per_client: self.per_client,
            ..Self::default()
        }
    }

    fn tps(&mut self, text: &str) -> Result<(), String> {
        let tps = match first_word(text) {
            // The quotient of zeros, if nothing was processed.
            "nan" | "-nan" | "inf" => 0.0,
            tps => require_number(tps)?,
        };
        self.seen.push(tps_kind(text).to_owned());
        // Up to version 13, the second one is without the time to connect. With a connection for each transaction
        // (-C), this is not the rate of the run.
        if self.tps.is_none() {
            self.connects = self.command_connects.take();
        }
        let is_far =
            |including: f64| self.connects == Some(true) || tps > including * CONNECTING_MAX;
        if self.tps.is_some_and(is_far) {
            self.results.fact("tps", &text);
        } else {
            self.tps = Some(tps);
            self.tps_alone = self.tps.filter(|_| !text.contains('('));
        }
        Ok(())
    }

    /// `18.4, server 15.20)`, or `PostgreSQL) 15.20` as `pgbench --version` prints it.
    fn banner(&mut self, rest: &str) {
        let version =
            |text: &str| Some(first_word(text).to_owned()).filter(|text| !text.is_empty());
        if let Some(own) = rest.strip_prefix("PostgreSQL) ") {
            self.results.run.version = version(own);
            return;
        }
        self.has_started = true;
        self.banner =
            if self.progress.first.is_some() { Banner::AfterProgress } else { Banner::First };
        let versions = rest.strip_suffix(')').unwrap_or(rest);
        let (own, server) = versions.split_once(", server ").unwrap_or((versions, ""));
        self.results.run.version = version(own);
        // Without a server version, the server has the version of pgbench: pgbench prints it only if it differs.
        let server = if server.is_empty() { own } else { server };
        first_word(server).clone_into(&mut self.results.target.server_version);
    }

    fn pair(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "transaction type" => self.begin(value),
            "query mode" => self.results.protocol = Some(protocol(value)?),
            "number of clients" => self.clients = Some(require_number(value)?),
            "number of threads" => self.results.workers = require_number(value)?,
            "duration" => {
                self.results.stop = Some(Stop::DurationS(require_number(first_word(value))?));
            }
            "number of transactions per client" => {
                (self.per_client, self.results.stop) = (Some(require_number(value)?), None);
            }
            "number of transactions actually processed" => {
                let processed = value.split_once('/').map_or(value, |(processed, _)| processed);
                self.processed = Some(require_number(processed)?);
            }
            "number of failed transactions" => {
                self.failed = Some(require_number(first_word(value))?);
            }
            "number of serialization failures" => self.failure("40001", value)?,
            "number of deadlock failures" => self.failure("40P01", value)?,
            "total number of retries" => self.retries = require_number(value)?,
            // An average that includes failed transactions is not the average of the successful ones.
            "latency average" if value.contains("including failures") => {
                self.results.fact("latency average", &value);
            }
            "latency average" => self.latency.mean_us = Some(milliseconds(value)?),
            "rate limit schedule lag" => self.latency.kind = LatencyKind::Response,
            "number of transactions skipped" => {
                self.skipped = Some(require_number(first_word(value))?);
            }
            "latency stddev" => self.latency.stdev_us = Some(milliseconds(value)?),
            _ => {}
        }
        // Neon's pgbench and riops print them in ascending order.
        if let Some(percent) = name.strip_prefix("latency percentile ") {
            let (percent, us) = (require_number(percent)?, milliseconds(value)?);
            self.latency.percentiles.push(ReportedPercentile { percent, us });
        }
        if RESULTS.contains(&name) {
            self.seen.push(name.to_owned());
        }
        if let Some(rest) = name.strip_prefix("number of transactions above the ") {
            let late = value.split_once('/').map_or(value, |(late, _)| late);
            self.late = Some((milliseconds(rest)?, require_number(late)?));
        }
        if FACTS.iter().any(|fact| name.starts_with(fact)) {
            self.results.fact(name, &value);
        }
        Ok(())
    }

    /// The first line of a report. Up to version 13, progress lines precede it without a banner.
    fn begin(&mut self, test: &str) {
        if self.is_continued {
            let progress = std::mem::take(&mut self.progress);
            *self = Self { progress, has_started: true, ..Self::default() };
        }
        self.has_type = true;
        self.results.run.test = Some(test.to_owned());
    }

    fn failure(&mut self, sqlstate: &'static str, value: &str) -> Result<(), String> {
        self.failures.push((sqlstate, require_number(first_word(value))?));
        Ok(())
    }

    /// A line of the last script, or a line of `--report-per-command`, which is ignored.
    fn script_line(&mut self, line: &str) -> Result<(), String> {
        let Some(script) = self.scripts.last_mut() else {
            return Ok(());
        };
        let counted = line.strip_prefix("number of transactions actually processed: ");
        if let Some(text) = counted.or_else(|| line.contains(" transactions (").then_some(line)) {
            script.transactions = require_number(first_word(text))?;
        } else if let Some(text) = line.strip_prefix("number of failed transactions: ") {
            script.failed = require_number(first_word(text))?;
        }
        Ok(())
    }
}

impl ProgressLines {
    fn push(&mut self, line: &Progress) {
        /// The smallest timestamp, in September 2001: no run is that long.
        const EPOCH_S_MIN: f64 = 1e9;
        let before = self.first.filter(|_| self.series.end_s() == 0.0);
        let first = *self.first.get_or_insert(*line);
        self.last_s = line.at_s;
        if first.at_s < EPOCH_S_MIN {
            self.interval(line, 0.0);
        } else if let Some(before) = before {
            // The first interval is taken to be as long as the second one.
            let start_s = before.at_s - (line.at_s - before.at_s);
            self.epoch_s = Some(start_s);
            self.interval(&before, start_s);
            self.interval(line, start_s);
        } else if let Some(start_s) = self.epoch_s {
            self.interval(line, start_s);
        }
    }

    fn interval(&mut self, line: &Progress, start_s: f64) {
        let t_s = line.at_s - start_s;
        if t_s <= self.series.end_s() {
            return;
        }
        let seconds = self.series.interval_length(t_s);
        self.series.push(Point {
            t_s,
            seconds,
            // pgbench prints only the rate.
            transactions: counted(line.tps, seconds),
            errors: line.failed,
            failed: line.failed,
            skipped: line.skipped,
            retries: line.retries,
            mean_us: line.mean_us,
            ..Point::default()
        });
    }

    fn started_at(&self) -> Option<jiff::Timestamp> {
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
        let ms = |start_s: f64| (start_s * 1e3) as i64;
        jiff::Timestamp::from_millisecond(ms(self.epoch_s?)).ok()
    }
}

/// Returns whether a quoted command line of pgbench has `-C`; `None` for other lines.
fn command_connects(line: &str) -> Option<bool> {
    let mut words = line.split_ascii_whitespace();
    words.find(|word| word.rsplit('/').next() == Some("pgbench"))?;
    let is_cluster = |word: &str| !word.starts_with("--") && word.starts_with('-');
    Some(words.any(|word| {
        word == "--connect" || is_cluster(word) && word.trim_start_matches('-').starts_with('C')
    }))
}

/// What the rate of a line `tps = …` includes.
fn tps_kind(text: &str) -> &str {
    text.split_once(' ').map_or("tps", |(_, kind)| kind)
}

/// `5.0 s, 381.0 tps, lat 6.890 ms stddev 0.965, 0 failed, …`; `None` for the line of another program.
fn progress(rest: &str) -> Result<Option<Progress>, String> {
    if !rest.starts_with(|first: char| first.is_ascii_digit()) || !rest.contains(" tps") {
        return Ok(None);
    }
    let mut parts = rest.split(", ");
    let mut value = |unit: &str| {
        let part = parts.next().and_then(|part| part.strip_suffix(unit));
        require_number(
            part.ok_or_else(|| format!("expected a number in{unit} in a progress line"))?,
        )
    };
    let mut progress = Progress { at_s: value(" s")?, tps: value(" tps")?, ..Progress::default() };
    for part in parts {
        if let Some(latency) = part.strip_prefix("lat ") {
            // Without a transaction, the mean is 0 or no number.
            progress.mean_us = milliseconds(latency).ok().filter(|us| *us > 0.0);
            continue;
        }
        let field = match part.split_once(' ') {
            Some((_, "failed")) => &mut progress.failed,
            Some((_, "skipped")) => &mut progress.skipped,
            Some((_, "retries")) => &mut progress.retries,
            _ => continue,
        };
        *field = require_number(first_word(part))?;
    }
    Ok(Some(progress))
}

fn protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "simple" => Ok(Protocol::Simple),
        "extended" => Ok(Protocol::Extended),
        "prepared" => Ok(Protocol::Prepared),
        other => Err(format!("unknown query mode \"{other}\"")),
    }
}

fn first_word(text: &str) -> &str {
    text.split_ascii_whitespace().next().unwrap_or_default()
}

/// `6.418 ms` in microseconds.
fn milliseconds(text: &str) -> Result<f64, String> {
    require_number(first_word(text)).map(|ms: f64| ms * 1e3)
}
