//! The report that sysbench prints for its database tests, with or without interval lines and a histogram.
//!
//! Source of the format: sysbench 1.0 and 1.1, and outputs of 1.0.20.

use super::error::ImportError;
use super::found::Found;
use super::number::{Limited, counted};
use crate::metrics::{Histogram, LATENCIES_MAX};
use crate::plan::{ImportedRun, Schedule};
use crate::record::{
    Execution, LatencyKind, LatencySummary, LoopRecord, Point, Queries, ReportedLatency,
    ReportedPercentile,
};
use crate::units::Nanos;

/// Name of the tool in records.
const TOOL: &str = "sysbench";

/// Returns the runs in a text: one per report.
pub(super) fn read(text: &str, name: &str) -> Result<Vec<Found>, ImportError> {
    let mut runs = Vec::new();
    let mut report = Report::default();
    for (line, content) in (1..).zip(text.lines()) {
        if content.starts_with("sysbench ") && report.has_results() {
            runs.push(std::mem::take(&mut report).finish(name)?);
        }
        report.line(content).map_err(|reason| ImportError::line(name, line, reason))?;
    }
    runs.push(report.finish(name)?);
    Ok(runs)
}

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

/// A report while it is read.
#[derive(Debug, Default)]
struct Report {
    section: Section,
    found: Found,
    threads: Option<u32>,
    rate: Option<f64>,
    queries: Queries,
    has_sql: bool,
    transactions: Option<u64>,
    errors: u64,
    reconnects: u64,
    seconds: Option<f64>,
    latency: ReportedLatency,
    sum_s: Option<f64>,
    execution: Option<Execution>,
    /// Values in milliseconds, and their counts.
    buckets: Vec<(f64, u64)>,
    /// Sum of these counts.
    counted: u64,
    series: Vec<Point>,
    percent: Option<f64>,
}

impl Report {
    fn has_results(&self) -> bool {
        self.has_sql || self.seconds.is_some() || !self.series.is_empty()
    }

    /// Reads a line. Lines of other programs are ignored.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let text = line.trim();
        if let Some(section) = section(text) {
            self.section = section;
            self.has_sql |= section == Section::Sql;
        } else if let Some(rest) = line.strip_prefix("sysbench ") {
            self.found.run.version = rest.split_whitespace().next().map(str::to_owned);
        } else if let Some(rest) = line.strip_prefix("[ ") {
            self.interval(rest)?;
        } else if text.starts_with("FATAL:") {
            self.found.failure.get_or_insert_with(|| format!("sysbench: {text}"));
        } else if self.section == Section::Histogram {
            self.bucket(text)?;
        } else if let Some((name, value)) = text.split_once(':') {
            self.pair(name.trim(), value.trim())?;
        }
        Ok(())
    }

    fn pair(&mut self, name: &str, value: &str) -> Result<(), String> {
        let first = value.split_whitespace().next().unwrap_or_default();
        match (self.section, name) {
            (Section::Start, "Number of threads") => self.threads = Some(number(first)?),
            (Section::Start, "Target transaction rate") => {
                self.rate = Some(number(first.trim_end_matches("/sec"))?);
            }
            (Section::Sql, "read") => self.queries.read = number(first)?,
            (Section::Sql, "write") => self.queries.write = number(first)?,
            (Section::Sql, "other") => self.queries.other = number(first)?,
            (Section::Sql, "transactions") => self.transactions = Some(number(first)?),
            (Section::Sql, "ignored errors") => self.errors = number(first)?,
            (Section::Sql, "reconnects") => self.reconnects = number(first)?,
            (Section::General, "total time" | "time elapsed") => {
                self.seconds = Some(number(first.trim_end_matches('s'))?);
            }
            (Section::Latency, "min") => self.latency.min_us = Some(number::<f64>(first)? * 1e3),
            (Section::Latency, "avg") => self.latency.mean_us = Some(number::<f64>(first)? * 1e3),
            (Section::Latency, "max") => self.latency.max_us = Some(number::<f64>(first)? * 1e3),
            (Section::Latency, "sum") => self.sum_s = Some(number::<f64>(first)? / 1e3),
            (Section::Latency, name) => self.percentile(name, first)?,
            (Section::Fairness, "events (avg/stddev)") => {
                self.found.fact("events per thread (avg/stddev)", &value);
            }
            (Section::Fairness, "execution time (avg/stddev)") => {
                let (mean, stdev) = value.split_once('/').ok_or("expected two numbers")?;
                self.execution = Some(Execution { mean: number(mean)?, stdev: number(stdev)? });
            }
            _ => {}
        }
        Ok(())
    }

    /// `95th percentile: 5.99`
    fn percentile(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(percent) = name.strip_suffix("th percentile") else {
            return Ok(());
        };
        let percent = number(percent)?;
        self.percent = Some(percent);
        let us = number::<f64>(value)? * 1e3;
        self.latency.percentiles.push(ReportedPercentile { percent, us });
        Ok(())
    }

    /// `1s ] thds: 4 tps: 56.00 qps: 1113.98 (r/w/o: 778.99/222.00/113.00) lat (ms,95%): 995.51 err/s: 1.00 …`
    fn interval(&mut self, rest: &str) -> Result<(), String> {
        let (time, rest) = rest.split_once("s ]").ok_or("expected an interval: [ 1s ] …")?;
        let t_s = number(time)?;
        let rest = rest.trim();
        if let Some(queue) = rest.strip_prefix("queue length: ") {
            let length = queue.split_once(',').map_or(queue, |(length, _)| length);
            if let Some(point) = self.series.last_mut().filter(|point| point.t_s == t_s) {
                point.backlog = Some(number(length)?);
            }
            return Ok(());
        }
        let value = |name: &str| {
            let start = rest.find(name).map(|at| at + name.len());
            let text = start.and_then(|start| rest.get(start..)).unwrap_or_default();
            text.trim_start().split([' ', ')', '/']).next().unwrap_or_default()
        };
        let before_s = self.series.last().map_or(0.0, |point| point.t_s);
        let seconds = t_s - before_s;
        if seconds <= 0.0 {
            return Err(format!("the interval {t_s} s does not follow {before_s} s"));
        }
        let count = |name: &str| number(value(name)).map(|per_s| counted(per_s, seconds));
        let queries = rest.split_once("(r/w/o: ").and_then(|(_, text)| text.split_once(')'));
        let mut kinds = queries.map_or("", |(kinds, _)| kinds).split('/');
        let mut kind = || number(kinds.next().unwrap_or("0")).map(|per_s| counted(per_s, seconds));
        let queries = Queries { read: kind()?, write: kind()?, other: kind()? };
        let percentile_us = match rest.split_once("%): ") {
            Some((_, text)) => {
                Some(number::<f64>(text.split(' ').next().unwrap_or_default())? * 1e3)
            }
            None => None,
        };
        if let Some(percent) =
            rest.split_once("lat (ms,").and_then(|(_, text)| text.split_once('%'))
        {
            self.percent = self.percent.or(Some(number(percent.0)?));
        }
        self.series.push(Point {
            t_s,
            seconds,
            // sysbench prints only rates.
            transactions: count("tps:")?,
            errors: count("err/s:")?,
            reconnects: count("reconn/s:")?,
            queries,
            percentile_us: percentile_us.filter(|us| *us > 0.0),
            ..Point::default()
        });
        Ok(())
    }

    /// `0.499 |*                                        1`
    fn bucket(&mut self, text: &str) -> Result<(), String> {
        if let Some((value, bar)) = text.split_once('|') {
            let count = bar.rsplit(' ').next().unwrap_or_default();
            let count: u64 = number(count)?;
            let counted = self.counted.checked_add(count).filter(|sum| *sum <= LATENCIES_MAX);
            self.counted = counted.ok_or("a count is out of range")?;
            self.buckets.push((number(value)?, count));
        }
        Ok(())
    }

    fn finish(self, name: &str) -> Result<Found, ImportError> {
        let missing = |what: &str| {
            ImportError::contents(
                name,
                format!("the report of sysbench is incomplete: {what} is missing"),
            )
        };
        if !self.has_sql {
            let what =
                "the section \"SQL statistics\" (only results of database tests are imported)";
            return Err(missing(what));
        }
        let transactions =
            self.transactions.ok_or_else(|| missing("the line \"transactions: …\""))?;
        let seconds = self.seconds.ok_or_else(|| missing("the line \"total time: …\""))?;
        let threads = self.threads.ok_or_else(|| missing("the line \"Number of threads: …\""))?;
        let failed =
            |error: crate::metrics::HistogramError| ImportError::contents(name, error.to_string());
        let histogram = histogram(&self.buckets).map_err(failed)?;
        let encoded = histogram.as_ref().map(Histogram::to_base64).transpose().map_err(failed)?;
        let summary = histogram.as_ref().and_then(|each| summary(each, &self.latency));
        let has_rate = self.rate.is_some();
        let mut found = self.found;
        found.run = ImportedRun { tool: TOOL.to_owned(), counts_statements: true, ..found.run };
        found.workers = threads;
        found.rate = self.rate.map(|per_s| Schedule::Poisson { per_s });
        found.percentile = self.percent;
        if self.errors > 0 {
            found.fact("ignored errors", &self.errors);
        }
        if histogram.is_some() {
            found.fact("histogram", &"from the buckets of sysbench, each about 2 % wide");
        }
        let percentile_us = self.latency.percentiles.first().map(|each| each.us);
        let kind = if has_rate { LatencyKind::Response } else { LatencyKind::Service };
        // With a rate, sysbench adds the time in the queue.
        let (service, response) = if has_rate { (None, Some(())) } else { (Some(()), None) };
        let is_only_reported = histogram.is_none() && self.latency.mean_us.is_some();
        let reported = is_only_reported.then_some(ReportedLatency { kind, ..self.latency });
        let stage = &mut found.stage;
        stage.seconds = seconds;
        stage.sessions = threads;
        stage.transactions = transactions;
        stage.statements = self.queries.total();
        stage.database_s = self.sum_s.filter(|_| !has_rate);
        stage.session_loop = LoopRecord {
            service_us: service.and(summary.clone()),
            histogram: service.and(encoded.clone()),
            response_us: response.and(summary),
            response_histogram: response.and(encoded),
            reported_latency: reported,
            percentile_us,
            queries: self.queries,
            // sysbench starts the transaction again after an error that it ignores.
            retries: self.errors,
            reconnects: self.reconnects,
            execution_s: self.execution,
            series: self.series,
            ..LoopRecord::default()
        };
        Ok(found)
    }
}

fn section(line: &str) -> Option<Section> {
    match line {
        "SQL statistics:" => Some(Section::Sql),
        "General statistics:" | "Throughput:" => Some(Section::General),
        "Latency (ms):" => Some(Section::Latency),
        "Threads fairness:" => Some(Section::Fairness),
        _ if line.starts_with("Latency histogram") => Some(Section::Histogram),
        _ => None,
    }
}

/// A histogram with the buckets of sysbench, each at its value.
fn histogram(buckets: &[(f64, u64)]) -> Result<Option<Histogram>, crate::metrics::HistogramError> {
    if buckets.is_empty() {
        return Ok(None);
    }
    let mut histogram = Histogram::new()?;
    for (ms, count) in buckets {
        histogram.record_many(Nanos(rounded(ms * 1e6)), *count);
    }
    Ok(Some(histogram))
}

/// The figures of the histogram, but minimum, mean and maximum as sysbench measured them.
fn summary(histogram: &Histogram, exact: &ReportedLatency) -> Option<LatencySummary> {
    let found: LatencySummary = histogram.summary()?.into();
    let max = exact.max_us.unwrap_or(found.max);
    let at_most = |us: f64| us.min(max);
    Some(LatencySummary {
        min: exact.min_us.unwrap_or(found.min),
        mean: exact.mean_us.unwrap_or(found.mean),
        p50: at_most(found.p50),
        p90: at_most(found.p90),
        p95: at_most(found.p95),
        p99: at_most(found.p99),
        p999: at_most(found.p999),
        max,
        ..found
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds")]
fn rounded(ns: f64) -> u64 {
    ns.max(0.0).round() as u64
}

fn number<T: Limited>(text: &str) -> Result<T, String> {
    super::number::number(text).ok_or_else(|| format!("expected a number, found \"{text}\""))
}
