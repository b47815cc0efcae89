//! The report that sysbench prints for its database tests, with or without interval lines and a histogram.
//!
//! Source of the format: sysbench 0.4, 0.5, 1.0 and 1.1, and outputs of 1.0.20.
//!
//! `--report-checkpoints` prints a report at each of these times and resets all counts: the run is the sum.

mod totals;

use super::format::Format;
use super::numbers::{counted, parse_number, require_number};
use super::results::Report;
use super::results::RunResults;
use super::series::Series;
use crate::plan::{ImportedRun, Schedule};
use crate::record::{
    Execution, LatencyKind, LoopRecord, Point, Queries, ReportedLatency, ReportedPercentile,
};
use totals::Totals;

/// Name of the tool in records.
const TOOL: &str = "sysbench";

/// A part of the report. The same names have another meaning in another part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Start,
    Histogram,
    Sql,
    General,
    Latency,
    Fairness,
}

/// A report of sysbench while it is read.
#[derive(Debug, Default)]
pub(super) struct SysbenchReport {
    section: Section,
    results: RunResults,
    /// Whether options, interval lines or errors show that sysbench started.
    has_started: bool,
    threads: Option<u32>,
    rate: Option<f64>,
    /// The totals since the last checkpoint, and those before.
    totals: Totals,
    checkpoints: Vec<Totals>,
    is_checkpoint: bool,
    series: Series,
    percent: Option<f64>,
}

impl Report for SysbenchReport {
    const FORMAT: Format = Format::Sysbench;

    fn next(&self, line: &str) -> Option<Self> {
        let has_ended = self.totals.has_sql && !self.is_checkpoint;
        let is_start = version(line).is_some() || is_options(line);
        let is_new = is_start && (self.has_started || self.has_results())
            || line.starts_with("Number of threads:") && has_ended;
        if is_new {
            return Some(Self::default());
        }
        let is_report = matches!(section(line), Some(Section::Sql | Section::Histogram));
        let is_further = has_ended && (is_report || interval_s(line).is_some());
        is_further.then(|| self.continued())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(section) = section(line) {
            self.begin(section);
        } else if let Some(version) = version(line) {
            self.results.run.version = Some(version.to_owned());
        } else if is_options(line) {
            self.has_started = true;
        } else if let Some((t_s, rest)) = interval_s(line) {
            self.has_started = true;
            self.interval(t_s, rest)?;
        } else if line.starts_with("FATAL:") && self.has_begun() {
            self.has_started = true;
            self.results.failure.get_or_insert_with(|| format!("sysbench: {line}"));
        } else if self.section == Section::Histogram {
            self.totals.bucket(line)?;
        } else if let Some((name, value)) = line.split_once(':') {
            self.pair(name.trim(), value.trim())?;
        }
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.has_started || self.has_results() || self.results.run.version.is_some()
    }

    fn has_results(&self) -> bool {
        self.totals.has_sql || self.totals.seconds.is_some() || !self.checkpoints.is_empty()
    }

    fn has_started(&self) -> bool {
        self.has_started
    }

    fn finish(self) -> Result<RunResults, String> {
        let missing =
            |what: &str| format!("the report of sysbench is incomplete: {what} is missing");
        if !self.totals.has_sql {
            return Err(missing(
                "the section \"SQL statistics\" (only results of database tests are imported)",
            ));
        }
        let mut results = self.results;
        if self.is_checkpoint {
            results
                .failure
                .get_or_insert_with(|| "sysbench: no report after the last checkpoint".to_owned());
        }
        if !self.checkpoints.is_empty() {
            results.fact("number of checkpoints", &self.checkpoints.len());
        }
        let totals = Totals::sum(self.checkpoints, self.totals)?;
        let transactions =
            totals.transactions.ok_or_else(|| missing("the line \"transactions: …\""))?;
        let seconds = totals.seconds.ok_or_else(|| missing("the line \"total time: …\""))?;
        // 0 is unknown: the line was cut off.
        let threads = self.threads.or_else(|| totals.threads()).unwrap_or_default();
        let (encoded, summary) = totals.histogram().map_err(|error| error.to_string())?.unzip();
        let has_rate = self.rate.is_some();
        results.run = ImportedRun { tool: TOOL.to_owned(), counts_statements: true, ..results.run };
        results.workers = threads;
        results.rate = self.rate.map(|per_s| Schedule::Poisson { per_s });
        results.percentile = self.percent;
        if let Some(events) = &totals.events {
            results.fact("events per thread (avg/stddev)", events);
        }
        if totals.errors > 0 {
            results.fact("ignored errors", &totals.errors);
        }
        if encoded.is_some() {
            results.fact("histogram", &"from the buckets of sysbench, each about 2 % wide");
        }
        results.has_gaps = self.series.has_gaps;
        let stage = &mut results.stage;
        stage.seconds = seconds;
        stage.sessions = threads;
        stage.transactions = transactions;
        stage.statements = totals.queries.total();
        stage.database_s = totals.sum_s.filter(|_| !has_rate);
        let percentile_us = totals.latency.percentiles.first().map(|percentile| percentile.us);
        let kind = if has_rate { LatencyKind::Response } else { LatencyKind::Service };
        let is_only_reported = encoded.is_none() && totals.latency.mean_us.is_some();
        let reported = is_only_reported.then_some(ReportedLatency { kind, ..totals.latency });
        let session_loop = &mut stage.session_loop;
        *session_loop = LoopRecord {
            reported_latency: reported,
            percentile_us,
            queries: totals.queries,
            // sysbench starts the transaction again after an error that it ignores.
            retries: totals.errors,
            reconnects: totals.reconnects,
            execution_s: totals.execution,
            series: self.series.into_points(),
            ..LoopRecord::default()
        };
        // With a rate, sysbench adds the time in the queue.
        if has_rate {
            (session_loop.response_us, session_loop.response_histogram) = (summary, encoded);
        } else {
            (session_loop.service_us, session_loop.histogram) = (summary, encoded);
        }
        Ok(results)
    }
}

impl SysbenchReport {
    /// A further report with the same header.
    fn continued(&self) -> Self {
        let mut next = Self { threads: self.threads, rate: self.rate, ..Self::default() };
        next.results.run.version.clone_from(&self.results.run.version);
        next
    }

    /// Begins a section. The first one of the last report follows the totals of a checkpoint.
    fn begin(&mut self, section: Section) {
        self.section = section;
        if matches!(section, Section::Sql | Section::Histogram) {
            self.end_part();
        }
        self.totals.has_sql |= section == Section::Sql;
    }

    /// Ends the totals of a checkpoint, if they were read.
    fn end_part(&mut self) {
        if self.totals.has_sql {
            self.checkpoints.push(std::mem::take(&mut self.totals));
            self.is_checkpoint = false;
        }
    }

    fn pair(&mut self, name: &str, value: &str) -> Result<(), String> {
        let first = value.split_whitespace().next().unwrap_or_default();
        let milliseconds =
            || require_number::<f64>(first.trim_end_matches("ms")).map(|ms| ms * 1e3);
        let totals = &mut self.totals;
        match (self.section, name) {
            (Section::Start, "Number of threads") => self.threads = Some(require_number(first)?),
            (Section::Start, "Target transaction rate") => {
                self.rate = Some(require_number(first.trim_end_matches("/sec"))?);
            }
            (Section::Sql, "read") => totals.queries.read = require_number(first)?,
            (Section::Sql, "write") => totals.queries.write = require_number(first)?,
            (Section::Sql, "other") => totals.queries.other = require_number(first)?,
            (Section::Sql, "transactions") => totals.transactions = Some(require_number(first)?),
            // Version 0.4 counts deadlocks only.
            (Section::Sql, "ignored errors" | "deadlocks") => {
                totals.errors = require_number(first)?;
            }
            (Section::Sql, "reconnects") => totals.reconnects = require_number(first)?,
            (Section::General, "total time") => {
                totals.seconds = Some(require_number(first.trim_end_matches('s'))?);
            }
            // Version 1.1: since the last checkpoint.
            (Section::General, "time elapsed") => {
                let before = self.checkpoints.last().and_then(|part| part.seconds);
                let seconds: f64 = require_number(first.trim_end_matches('s'))?;
                totals.seconds = Some(before.unwrap_or_default() + seconds);
            }
            (Section::General, "total time taken by event execution") => {
                totals.sum_s = Some(require_number(first.trim_end_matches('s'))?);
            }
            (Section::Latency, "min") => totals.latency.min_us = Some(milliseconds()?),
            (Section::Latency, "avg") => totals.latency.mean_us = Some(milliseconds()?),
            (Section::Latency, "max") => totals.latency.max_us = Some(milliseconds()?),
            (Section::Latency, "sum") => totals.sum_s = Some(require_number::<f64>(first)? / 1e3),
            (Section::Latency, name) => {
                if let Some(percent) = percent(name)? {
                    let us = milliseconds()?;
                    self.percent.get_or_insert(percent);
                    totals.latency.percentiles.push(ReportedPercentile { percent, us });
                }
            }
            (Section::Fairness, "events (avg/stddev)") => totals.events = Some(value.to_owned()),
            (Section::Fairness, "execution time (avg/stddev)") => {
                let (mean, stdev) = value.split_once('/').ok_or("expected two numbers")?;
                // riops has no deviation since a checkpoint.
                let stdev = if stdev == "nan" { None } else { Some(require_number(stdev)?) };
                let mean = require_number(mean)?;
                totals.execution = stdev.map(|stdev| Execution { mean, stdev });
            }
            _ => {}
        }
        Ok(())
    }

    /// `thds: 4 tps: 56.00 qps: 1113.98 (r/w/o: 778.99/222.00/113.00) lat (ms,95%): 995.51 err/s: 1.00 …`, in version
    /// 0.5 `threads: 4, tps: 56.00, reads: 778.99, writes: 222.00, response time: 25.31ms (95%), errors: 1.00, …`
    fn interval(&mut self, t_s: f64, rest: &str) -> Result<(), String> {
        if let Some(queue) = rest.strip_prefix("queue length: ") {
            let length = queue.split_once(',').map_or(queue, |(length, _)| length);
            if let Some(point) = self.series.at(t_s) {
                point.backlog = Some(require_number(length)?);
            }
            return Ok(());
        }
        if rest.starts_with("Checkpoint report") {
            self.end_part();
            self.is_checkpoint = true;
            return Ok(());
        }
        // The lines of some published reports are cut.
        if rest.is_empty() {
            return Ok(());
        }
        let before_s = self.series.end_s();
        if t_s <= before_s {
            return Err(format!("the interval {t_s} s does not follow {before_s} s"));
        }
        let seconds = self.series.interval_length(t_s);
        let tps = value(rest, "tps:").ok_or("only results of database tests are imported")?;
        let rate = |text: &str| require_number(text).map(|per_s| counted(per_s, seconds));
        // Not all versions and forks print all of them, or a number.
        let optional = |names: [&str; 2]| {
            let text = names.iter().find_map(|name| value(rest, name));
            text.map_or(0, |text| rate(text).unwrap_or_default())
        };
        let kinds = rest.split_once("(r/w/o: ").and_then(|(_, text)| text.split_once(')'));
        let queries = match kinds {
            Some((kinds, _)) => {
                let mut kinds = kinds.split('/').map(rate);
                let mut kind = || kinds.next().unwrap_or(Ok(0));
                Queries { read: kind()?, write: kind()?, other: kind()? }
            }
            None => Queries {
                read: optional(["reads:", "reads/s:"]),
                write: optional(["writes:", "writes/s:"]),
                other: 0,
            },
        };
        let latency = interval_latency(rest)?;
        self.percent = self.percent.or(latency.map(|(percent, _)| percent));
        self.series.push(Point {
            t_s,
            seconds,
            // sysbench prints only rates.
            transactions: rate(tps)?,
            errors: optional(["err/s", "errors:"]),
            reconnects: optional(["reconn/s", "reconnects:"]),
            queries,
            percentile_us: latency.map(|(_, us)| us).filter(|us| *us > 0.0),
            ..Point::default()
        });
        Ok(())
    }
}

/// Returns the version in the first line of sysbench. A command line is quoted more often.
fn version(line: &str) -> Option<&str> {
    let version = line.strip_prefix("sysbench ")?.split([' ', ':']).next()?;
    version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
}

/// The first line of the options.
fn is_options(line: &str) -> bool {
    line.starts_with("Running the test with following options")
}

fn section(line: &str) -> Option<Section> {
    match line {
        "SQL statistics:" | "OLTP test statistics:" => Some(Section::Sql),
        "General statistics:" | "Throughput:" | "Test execution summary:" => Some(Section::General),
        "Latency (ms):" | "response time:" | "per-request statistics:" => Some(Section::Latency),
        "Threads fairness:" => Some(Section::Fairness),
        _ if line.starts_with("Latency histogram") => Some(Section::Histogram),
        _ => None,
    }
}

/// Returns the time of an interval line, and the rest: `[ 1s ] …`, in version 0.5 `[   1s] …`.
fn interval_s(line: &str) -> Option<(f64, &str)> {
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    let seconds = parse_number(time.trim().strip_suffix('s')?)?;
    Some((seconds, rest.trim_start()))
}

/// Returns the text after a name, up to the next blank. Some versions print `err/s 1.00` without a colon.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    // `reads:` is not the end of `threads:`.
    let is_word = |(at, _): &(usize, &str)| {
        !line.get(..*at).is_some_and(|before| before.ends_with(char::is_alphanumeric))
    };
    let (at, name) = line.match_indices(name).find(is_word)?;
    let rest = line.get(at + name.len()..)?;
    let rest = rest.trim_start_matches(':').trim_start();
    rest.split([' ', ')', '/', ',']).next().filter(|text| !text.is_empty())
}

/// Returns the percentage and the percentile in microseconds: `lat (ms,95%): 1.25` or `response time: 1.25ms (95%)`.
fn interval_latency(rest: &str) -> Result<Option<(f64, f64)>, String> {
    let parts = |start: &str, end: &str| rest.split_once(start)?.1.split_once(end);
    let (ms, percent) = if let Some((percent, text)) = parts("lat (ms,", "%): ") {
        (text.split(' ').next().unwrap_or_default(), percent)
    } else if let Some((ms, text)) = parts("response time: ", "ms (") {
        (ms, text.split_once('%').map_or(text, |(percent, _)| percent))
    } else {
        return Ok(None);
    };
    let ms: f64 = require_number(ms)?;
    Ok(Some((require_number(percent)?, ms * 1e3)))
}

/// Returns the percentage of `95th percentile`, or of `approx.  95 percentile` as before version 1.0.
fn percent(name: &str) -> Result<Option<f64>, String> {
    let Some(text) = name.strip_suffix(" percentile") else {
        return Ok(None);
    };
    let text = text.trim_start_matches("approx.").trim_end_matches("th");
    let percent: f64 = require_number(text)?;
    // Forks print 99.9 as 999th.
    Ok(Some(if percent > 100.0 { percent / 10.0 } else { percent }))
}
