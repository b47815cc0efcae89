//! The report that pgbench prints, with or without its progress lines.

use super::super::error::ImportError;
use super::super::found::{Found, FoundServer};
use super::super::number::{Limited, counted};
use super::{OUT_OF_RANGE, TOOL};
use crate::plan::{ImportedRun, Protocol, Stop};
use crate::record::{
    ErrorEntry, LateRecord, LatencyKind, OperationRecord, Outcomes, Point, ReportedLatency,
};

/// Lines that are kept as they are, under their names.
const FACTS: [&str; 10] = [
    "scaling factor",
    "partition method",
    "partitions",
    "maximum number of tries",
    "number of transactions retried",
    "number of transactions skipped",
    "number of transactions above the",
    "rate limit schedule lag",
    "initial connection time",
    "average connection time",
];

/// Returns the runs in a text: one per report.
pub(in crate::import) fn text(text: &str, name: &str) -> Result<Vec<Found>, ImportError> {
    let mut runs = Vec::new();
    let mut report = Report::default();
    for (line, content) in (1..).zip(text.lines()) {
        let at_start =
            content.starts_with("pgbench (") || content.starts_with("transaction type: ");
        if at_start && report.has_type {
            runs.push(std::mem::take(&mut report).finish(name)?);
        }
        report.line(content).map_err(|reason| ImportError::line(name, line, reason))?;
    }
    runs.push(report.finish(name)?);
    Ok(runs)
}

/// A report while it is read.
#[derive(Debug, Default)]
struct Report {
    found: Found,
    has_type: bool,
    clients: Option<u32>,
    per_client: Option<u64>,
    processed: Option<u64>,
    tps: Option<f64>,
    latency: ReportedLatency,
    failed: Option<u64>,
    failures: Vec<(&'static str, u64)>,
    retries: Option<u64>,
    late: Option<(f64, u64)>,
    skipped: u64,
    scripts: Vec<OperationRecord>,
    progress: Vec<Progress>,
}

/// A progress line.
#[derive(Debug, Clone, Copy)]
struct Progress {
    at_s: f64,
    tps: f64,
}

impl Report {
    /// Reads a line. Lines of other programs are ignored.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim_end();
        if let Some(rest) = line.strip_prefix("pgbench (") {
            self.banner(rest);
        } else if let Some(rest) = line.strip_prefix("progress: ") {
            self.progress.push(progress(rest)?);
        } else if let Some(rest) = line.strip_prefix("SQL script ") {
            let name = rest.split_once(": ").map_or(rest, |(_, name)| name);
            self.scripts
                .push(OperationRecord { name: name.to_owned(), ..OperationRecord::default() });
        } else if let Some(rest) = line.strip_prefix(" - ") {
            self.script_line(rest)?;
        } else if line.contains("Run was aborted") {
            self.found.failure = Some("pgbench: Run was aborted".to_owned());
        } else if let Some(rest) = line.strip_prefix("tps = ") {
            // Up to version 13 there are two: the second one is without the time to connect.
            self.tps = Some(match first_word(rest) {
                // The quotient of zeros, if nothing was processed.
                "nan" | "-nan" | "inf" => 0.0,
                tps => number(tps)?,
            });
        } else if let Some((name, value)) = line.split_once(": ").or_else(|| line.split_once(" = "))
        {
            self.pair(name, value)?;
        }
        Ok(())
    }

    /// `18.4, server 15.20)`
    fn banner(&mut self, rest: &str) {
        let versions = rest.strip_suffix(')').unwrap_or(rest);
        let (own, server) = versions.split_once(", server ").unwrap_or((versions, ""));
        self.found.run.version = Some(first_word(own).to_owned()).filter(|text| !text.is_empty());
        // Without a server version, the server has the version of pgbench: pgbench prints it only if it differs.
        let version = if server.is_empty() { own } else { server };
        self.found.server =
            FoundServer { version: first_word(version).to_owned(), ..FoundServer::default() };
    }

    fn pair(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "transaction type" => {
                self.has_type = true;
                self.found.run.test = Some(value.to_owned());
            }
            "query mode" => self.found.protocol = Some(protocol(value)?),
            "number of clients" => self.clients = Some(number(value)?),
            "number of threads" => self.found.workers = number(value)?,
            "duration" => self.found.stop = Some(Stop::DurationS(number(first_word(value))?)),
            "number of transactions per client" => self.per_client = Some(number(value)?),
            "number of transactions actually processed" => {
                let processed = value.split_once('/').map_or(value, |(processed, _)| processed);
                self.processed = Some(number(processed)?);
            }
            "number of failed transactions" => self.failed = Some(number(first_word(value))?),
            "number of serialization failures" => self.failure("40001", value)?,
            "number of deadlock failures" => self.failure("40P01", value)?,
            "total number of retries" => self.retries = Some(number(value)?),
            "latency average" => self.average(value)?,
            "latency stddev" => self.latency.stdev_us = Some(milliseconds(value)?),
            _ => {}
        }
        if name == "rate limit schedule lag" {
            self.latency.kind = LatencyKind::Response;
        }
        if name == "number of transactions skipped" {
            self.skipped = number(first_word(value))?;
        }
        if let Some(rest) = name.strip_prefix("number of transactions above the ") {
            let late = value.split_once('/').map_or(value, |(late, _)| late);
            self.late = Some((milliseconds(rest)?, number(late)?));
        }
        if FACTS.iter().any(|fact| name.starts_with(fact)) {
            self.found.fact(name, &value);
        }
        Ok(())
    }

    fn failure(&mut self, sqlstate: &'static str, value: &str) -> Result<(), String> {
        self.failures.push((sqlstate, number(first_word(value))?));
        Ok(())
    }

    /// An average over failed transactions too is not that of the successful ones.
    fn average(&mut self, value: &str) -> Result<(), String> {
        if value.contains("including failures") {
            self.found.fact("latency average", &value);
        } else {
            self.latency.mean_us = Some(milliseconds(value)?);
        }
        Ok(())
    }

    /// A line of the last script, or a line of `--report-per-command`, which is ignored.
    fn script_line(&mut self, line: &str) -> Result<(), String> {
        let Some(script) = self.scripts.last_mut() else {
            return Ok(());
        };
        let counted = line.strip_prefix("number of transactions actually processed: ");
        if let Some(text) = counted.or_else(|| line.contains(" transactions (").then_some(line)) {
            script.transactions = number(first_word(text))?;
        } else if let Some(text) = line.strip_prefix("number of failed transactions: ") {
            script.failed = number(first_word(text))?;
        }
        Ok(())
    }

    fn finish(self, name: &str) -> Result<Found, ImportError> {
        let missing = |what: &str| {
            ImportError::contents(
                name,
                format!("the report of pgbench is incomplete: the line \"{what}\" is missing"),
            )
        };
        if !self.has_type {
            return Err(missing("transaction type: …"));
        }
        let clients = self.clients.ok_or_else(|| missing("number of clients: …"))?;
        let processed = self
            .processed
            .ok_or_else(|| missing("number of transactions actually processed: …"))?;
        let tps = match self.tps {
            Some(tps) => tps,
            // From version 18 on, the report ends earlier if nothing was processed.
            None if processed == 0 => 0.0,
            None => return Err(missing("tps = …")),
        };
        let duration = match self.found.stop {
            Some(Stop::DurationS(seconds)) => seconds,
            _ => 0.0,
        };
        let (series, started_at) = series(&self.progress);
        let mut found = self.found;
        found.run = ImportedRun { tool: TOOL.to_owned(), ..found.run };
        found.started_at = started_at;
        let planned = self.per_client.map(|each| each.saturating_mul(u64::from(clients)));
        found.stop = found.stop.or(planned.map(Stop::Transactions));
        let stage = &mut found.stage;
        stage.sessions = clients;
        stage.transactions = processed;
        stage.seconds = if tps > 0.0 { processed as f64 / tps } else { duration };
        let each = &mut stage.session_loop;
        each.reported_latency = (self.latency.mean_us.is_some()).then_some(self.latency);
        each.outcomes = outcomes(processed, self.failed)
            .map_err(|reason| ImportError::contents(name, reason))?;
        each.retries = self.retries.unwrap_or_default();
        each.errors = self
            .failures
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(sqlstate, count)| ErrorEntry {
                sqlstate: sqlstate.to_owned(),
                count,
                ..ErrorEntry::default()
            })
            .collect();
        let skipped = self.skipped;
        for (number, script) in (1..).zip(&self.scripts) {
            let count = script.transactions;
            let text = format!("{}, {count} transactions", script.name);
            found.run.facts.insert(format!("SQL script {number}"), text);
        }
        each.late = self.late.map(|(limit_us, transactions)| LateRecord {
            limit_us,
            transactions,
            skipped,
        });
        each.operations = self.scripts;
        each.series = series;
        Ok(found)
    }
}

fn outcomes(succeeded: u64, failed: Option<u64>) -> Result<Option<Outcomes>, &'static str> {
    let Some(failed) = failed else { return Ok(None) };
    let attempted = succeeded.checked_add(failed).ok_or(OUT_OF_RANGE)?;
    Ok(Some(Outcomes { attempted, succeeded, failed, unknown: 0 }))
}

/// The points of the progress lines, and the start of the first one, if they have timestamps.
fn series(progress: &[Progress]) -> (Vec<Point>, Option<jiff::Timestamp>) {
    /// The smallest timestamp: September 2001. No run is as long.
    const EPOCH_S_MIN: f64 = 1e9;
    let Some(first) = progress.first() else {
        return (Vec::new(), None);
    };
    let is_epoch = first.at_s >= EPOCH_S_MIN;
    let start_s = match progress.get(1) {
        _ if !is_epoch => 0.0,
        Some(second) => first.at_s - (second.at_s - first.at_s),
        // The length of a single interval is unknown.
        None => return (Vec::new(), None),
    };
    let mut points = Vec::new();
    let mut before_s = start_s;
    for each in progress {
        let seconds = each.at_s - before_s;
        if seconds > 0.0 {
            points.push(Point {
                t_s: each.at_s - start_s,
                seconds,
                // pgbench prints only the rate.
                transactions: counted(each.tps, seconds),
                ..Point::default()
            });
            before_s = each.at_s;
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
    let ms = (start_s * 1e3) as i64;
    (points, jiff::Timestamp::from_millisecond(ms).ok().filter(|_| is_epoch))
}

/// `5.0 s, 381.0 tps, lat 6.890 ms stddev 0.965, 0 failed, …`
fn progress(rest: &str) -> Result<Progress, String> {
    let mut parts = rest.split(", ");
    let mut value = |unit: &str| {
        let part = parts.next().and_then(|part| part.strip_suffix(unit));
        number(part.ok_or_else(|| format!("expected a number in{unit} in a progress line"))?)
    };
    Ok(Progress { at_s: value(" s")?, tps: value(" tps")? })
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
    number(first_word(text)).map(|ms: f64| ms * 1e3)
}

fn number<T: Limited>(text: &str) -> Result<T, String> {
    super::super::number::number(text).ok_or_else(|| format!("expected a number, found \"{text}\""))
}
