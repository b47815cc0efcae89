//! The report of a run of scripts in the format of pgbench 18, for scripts that parse it.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::form::{Extras, Form, Rendered, Stream};
use riops_model::plan::script::{Builtin, ScriptDataset, ScriptRun, ScriptSource};
use riops_model::plan::{Plan, Quantity, Stop};
use riops_model::record::{
    CommandRecord, EndedSessionRecord, LatencySummary, OperationRecord, Point, Record, StageRecord,
    Status, StoredTimes,
};
use riops_model::units::text::one_line;

/// Version of pgbench whose format it is.
const VERSION: &str = "18";
/// Beginning of the errors that no command has.
const END_OF_SCRIPT: &str = "end of script reached";
/// Maximum length of a command, in bytes.
const TITLE_BYTES: usize = 127;

/// Only pgbench's report.
pub(crate) const FORM: Form = Form {
    has_verdict: false,
    has_histogram: false,
    is_measured: |record| {
        let run = record.plan.work.get::<ScriptRun>();
        run.is_some_and(|run| run.report.allows_no_success) && !record.stages.is_empty()
    },
    errors,
    stream: Some(&Pgbench),
    ..Form::new(
        "pgbench",
        |plan| plan.work.get::<ScriptRun>().is_some(),
        |record, extras| Ok(Rendered::Data(Pgbench.closing(record, extras))),
    )
};

struct Pgbench;

/// The errors that pgbench prints below its report.
fn errors(record: &Record) -> Option<Vec<String>> {
    let run = record.plan.work.get::<ScriptRun>()?;
    let stage = &record.stages.first()?.session_loop;
    let aborted = |ended: &EndedSessionRecord| aborted(ended, &stage.commands);
    let mut lines: Vec<String> = stage.ended_sessions.iter().flat_map(aborted).collect();
    let is_aborted = !lines.is_empty() || record.status == Status::Failed;
    // The first reason repeats the error of the first client.
    let reasons = record.verdict.reasons.iter().skip(usize::from(!lines.is_empty()));
    if lines.is_empty() && run.report.allows_no_success {
        // Lost connections abort no client, but must not stay unnoticed.
        let lost = stage.errors.iter().filter(|error| !is_retried(&error.sqlstate));
        lines.extend(lost.map(|error| {
            // Messages of the server have it.
            let sqlstate = format!(" (SQLSTATE {})", error.sqlstate);
            let more = if error.sample.contains(&sqlstate) { "" } else { &sqlstate };
            format!("{} × {}{more}", error.count, error.sample)
        }));
    }
    lines.extend(reasons.map(|reason| format!("NOT VALID: {reason}")));
    let how = match record.status {
        Status::Interrupted => "interrupted",
        _ if is_aborted => "aborted",
        _ => return Some(lines),
    };
    lines.push(format!("Run was {how}; the above results are incomplete."));
    Some(lines)
}

impl Stream for Pgbench {
    fn has_intervals_on_standard_error(&self) -> bool {
        true
    }

    fn interval(&self, point: &Point, plan: &Plan, intervals: bool) -> String {
        // pgbench has no shorter interval at the end.
        let is_whole = intervals && point.seconds > plan.interval_s - 1e-6;
        let run = plan.work.get::<ScriptRun>().filter(|run| is_whole && run.report.progress);
        run.map(|run| progress(point, plan, run)).unwrap_or_default()
    }

    fn closing(&self, record: &Record, _: &Extras<'_>) -> String {
        let run = record.plan.work.get::<ScriptRun>().zip(record.stages.first());
        run.map(|(run, stage)| Report { record, run, stage }.text()).unwrap_or_default()
    }
}

/// Returns the lines about a client that an error has ended.
fn aborted(ended: &EndedSessionRecord, commands: &[CommandRecord]) -> Vec<String> {
    let EndedSessionRecord { session, script, command, message, lines } = ended;
    let position = command.map_or(0, |command| command.saturating_sub(1));
    let record =
        commands.iter().find(|record| record.script == *script && Some(record.number) == *command);
    let script = script.saturating_sub(1);
    let meta = record.and_then(|command| command.title.strip_prefix('\\'));
    let name = meta.and_then(|title| title.split_whitespace().next());
    if message.starts_with(END_OF_SCRIPT) {
        let (text, _) = message.split_once(" (SQLSTATE").unwrap_or((message, ""));
        return vec![format!("client {session} aborted: {text}")];
    }
    match (lines, name) {
        (None, Some(name)) => {
            let kind =
                if matches!(name, "set" | "if" | "elif") { "evaluation" } else { "execution" };
            let what = format!(
                "client {session} aborted in command {position} ({name}) of script {script}; {kind} of meta-command failed"
            );
            vec![message.clone(), what]
        }
        (lines, _) => {
            let text = lines.as_ref().unwrap_or(message);
            vec![format!(
                "client {session} script {script} aborted in command {position} query 0: {text}"
            )]
        }
    }
}

/// Whether pgbench retries a transaction after this error.
fn is_retried(sqlstate: &str) -> bool {
    matches!(sqlstate, "40001" | "40P01")
}

fn ms(us: f64) -> f64 {
    us / 1e3
}

fn mean_us(latency: Option<&LatencySummary>) -> f64 {
    latency.map_or(0.0, |latency| latency.of_successful().mean)
}

fn progress(point: &Point, plan: &Plan, run: &ScriptRun) -> String {
    let (time, digits) = if run.report.progress_timestamp {
        (jiff::Timestamp::now().as_duration().as_secs_f64(), 3)
    } else {
        (point.t_s, 1)
    };
    let (mean, stdev) = point.mean_stdev_us.unwrap_or_default();
    let mut text = format!(
        "progress: {time:.digits$} s, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
        point.transactions as f64 / point.seconds.max(f64::MIN_POSITIVE),
        ms(mean),
        ms(stdev),
        point.failed
    );
    if plan.schedule.per_s().is_some() {
        let _ = write!(text, ", lag {:.3} ms", ms(point.lag_us.unwrap_or(0.0)));
        if plan.latency_limit.is_some() {
            let _ = write!(text, ", {} skipped", point.skipped);
        }
    }
    if plan.errors.max_retries > 0 {
        let _ = write!(text, ", {} retried, {} retries", point.retried, point.retries);
    }
    text + "\n"
}

/// The parts of a report.
struct Report<'a> {
    record: &'a Record,
    run: &'a ScriptRun,
    stage: &'a StageRecord,
}

/// Counts of all transactions, or of the transactions of one script.
struct Counts {
    succeeded: u64,
    failed: u64,
    serialization: u64,
    deadlock: u64,
    retried: u64,
    retries: u64,
    skipped: u64,
}

impl Counts {
    fn ended(&self) -> u64 {
        self.succeeded + self.failed + self.skipped
    }
}

fn percent(part: u64, total: u64) -> f64 {
    100.0 * part as f64 / total as f64
}

impl Report<'_> {
    fn plan(&self) -> &Plan {
        &self.record.plan
    }

    fn text(&self) -> String {
        let counts = self.counts();
        let text = self.header();
        if counts.ended() == 0 {
            return text;
        }
        text + &self.failures(&counts, "") + &self.rest(&counts)
    }

    fn header(&self) -> String {
        let mut text = String::new();
        let plan = self.plan();
        let server = &self.record.target.server_version;
        let (own, server) = (env!("CARGO_PKG_VERSION"), one_line(server));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "pgbench ({VERSION}, riops {own}, server {server})");
        let kind = match self.run.scripts.as_slice() {
            [only] => description(only),
            _ => Cow::Borrowed("multiple scripts"),
        };
        let _ = writeln!(text, "transaction type: {kind}");
        let tables = self.record.dataset::<ScriptDataset>();
        let defined = self.run.define.get("scale").cloned();
        let scale = tables.map(|tables| tables.scale.to_string()).or(defined);
        let _ = writeln!(text, "scaling factor: {}", one_line(scale.as_deref().unwrap_or("1")));
        if let Some(tables) = tables.filter(|tables| tables.partitions > 0) {
            let _ = writeln!(text, "partition method: {}", tables.partition_method);
            let _ = writeln!(text, "partitions: {}", tables.partitions);
        }
        let _ = writeln!(text, "query mode: {}", plan.protocol);
        let _ = writeln!(text, "number of clients: {}", plan.sessions);
        let _ = writeln!(text, "number of threads: {}", plan.workers);
        if plan.errors.max_retries < u32::MAX {
            let _ = writeln!(text, "maximum number of tries: {}", plan.errors.max_retries + 1);
        }
        let processed = self.stage.transactions;
        let planned = match plan.stop {
            Stop::DurationS(seconds) => {
                let _ = writeln!(text, "duration: {seconds} s");
                String::new()
            }
            Stop::Transactions(all) | Stop::Rows(all) => {
                if let Some(per_client) = self.run.transactions_per_session {
                    let _ = writeln!(text, "number of transactions per client: {per_client}");
                }
                format!("/{all}")
            }
        };
        let _ = writeln!(text, "number of transactions actually processed: {processed}{planned}");
        text
    }

    fn counts(&self) -> Counts {
        let stage = &self.stage.session_loop;
        let failed = stage.outcomes.map_or(0, |outcomes| outcomes.failed + outcomes.unknown);
        let final_errors = |sqlstate: &str| {
            let entry = stage.errors.iter().find(|entry| entry.sqlstate == sqlstate);
            entry.map_or(0, |entry| entry.count - entry.retried)
        };
        Counts {
            succeeded: self.stage.transactions,
            failed,
            serialization: final_errors("40001"),
            deadlock: final_errors("40P01"),
            retried: stage.retried,
            retries: stage.retries,
            skipped: stage.late.map_or(0, |late| late.skipped),
        }
    }

    /// Failures and retries, each line after `prefix`.
    fn failures(&self, counts: &Counts, prefix: &str) -> String {
        let mut text = String::new();
        let all = counts.ended();
        let mut line = |name: &str, count: u64| {
            let share = percent(count, all);
            let _ = writeln!(text, "{prefix}number of {name}: {count} ({share:.3}%)");
        };
        line("failed transactions", counts.failed);
        if self.run.report.failures_detailed {
            line("serialization failures", counts.serialization);
            line("deadlock failures", counts.deadlock);
        }
        if self.plan().errors.max_retries > 0 {
            line("transactions retried", counts.retried);
            let _ = writeln!(text, "{prefix}total number of retries: {}", counts.retries);
        }
        text
    }

    /// Starts that were skipped, after `prefix`.
    fn skipped(&self, counts: &Counts, prefix: &str) -> String {
        if self.plan().schedule.per_s().is_none() || self.plan().latency_limit.is_none() {
            return String::new();
        }
        let (skipped, share) = (counts.skipped, percent(counts.skipped, counts.ended()));
        format!("{prefix}number of transactions skipped: {skipped} ({share:.3}%)\n")
    }

    fn rest(&self, counts: &Counts) -> String {
        let mut text = String::new();
        let (plan, stage) = (self.plan(), &self.stage.session_loop);
        if let Some((late, limit_us)) = stage.late.and_then(|late| Some((late, late.limit_us?))) {
            text += &self.skipped(counts, "");
            let (above, succeeded) = (late.transactions.unwrap_or_default(), counts.succeeded);
            let _ = writeln!(
                text,
                "number of transactions above the {:.1} ms latency limit: {above}/{succeeded} ({:.3}%)",
                ms(limit_us),
                if succeeded > 0 { percent(above, succeeded) } else { 0.0 }
            );
        }
        text += &latency("", stage.latency_us());
        text += &self.percentiles("", stage.times(None));
        if let Some(schedule) = &stage.schedule {
            let lag = mean_us(stage.response_us.as_ref()) - mean_us(stage.service_us.as_ref());
            let (lag, max) = (ms(lag.max(0.0)), ms(schedule.lag_max_us.unwrap_or(0.0)));
            let _ = writeln!(text, "rate limit schedule lag: avg {lag:.3} (max {max:.3}) ms");
        }
        let tps = self.stage.throughput.transactions_per_s;
        if plan.reconnect_every.is_some() {
            let mean = ms(mean_us(stage.connect_us.as_ref()));
            let _ = writeln!(text, "average connection time = {mean:.3} ms");
            let _ = writeln!(text, "tps = {tps:.6} (including reconnection times)");
        } else {
            let connecting = stage.connecting_s.unwrap_or(0.0) * 1e3;
            let _ = writeln!(text, "initial connection time = {connecting:.3} ms");
            let _ = writeln!(text, "tps = {tps:.6} (without initial connection time)");
        }
        text + &self.scripts(counts)
    }

    /// The results of each script and of each command.
    fn scripts(&self, counts: &Counts) -> String {
        if self.run.scripts.len() == 1 {
            return self.commands(1, "");
        }
        let sum: u64 = self.run.scripts.iter().map(|script| u64::from(script.weight)).sum();
        let script = |(position, source): (usize, &ScriptSource)| {
            let mut text = format!("SQL script {position}: {}\n", description(source));
            let share = percent(source.weight.into(), sum);
            let _ = writeln!(text, " - weight: {} (targets {share:.1}% of total)", source.weight);
            let mut operations = self.stage.session_loop.operations.iter();
            let operation = operations.find(|operation| operation.number == position);
            text += &self.script(position, operation, counts);
            text
        };
        (1..).zip(&self.run.scripts).map(script).collect()
    }

    fn script(
        &self,
        position: usize,
        operation: Option<&OperationRecord>,
        counts: &Counts,
    ) -> String {
        let Some(operation) = operation else {
            return " - 0 transactions (0.0% of total)\n".to_owned();
        };
        let commands = || {
            let all = self.stage.session_loop.commands.iter();
            all.filter(move |command| command.script == position)
        };
        let error_count =
            |sqlstate: &str| commands().filter_map(|command| command.errors.get(sqlstate)).sum();
        let own = Counts {
            succeeded: operation.transactions,
            failed: operation.failed + operation.unknown,
            serialization: error_count("40001"),
            deadlock: error_count("40P01"),
            retried: operation.retried,
            retries: commands().map(|command| command.retries).sum(),
            skipped: operation.skipped,
        };
        let ended = own.ended();
        let share = percent(ended, counts.ended());
        let mut text = format!(" - {ended} transactions ({share:.1}% of total)\n");
        if ended > 0 {
            let tps = own.succeeded as f64 / self.stage.seconds.max(f64::MIN_POSITIVE);
            let succeeded = own.succeeded;
            let _ = writeln!(
                text,
                " - number of transactions actually processed: {succeeded} (tps = {tps:.6})"
            );
            text += &self.failures(&own, " - ");
            text += &self.skipped(&own, " - ");
            text += &latency(" - ", operation.latency_us());
            text += &self.percentiles(" - ", operation.times(None));
        }
        text + &self.commands(position, " - ")
    }

    /// The percentiles that were requested. A transaction that did not end makes one of them a lower bound.
    fn percentiles(&self, prefix: &str, times: StoredTimes<'_>) -> String {
        let line = |percent: &f64| {
            let at_least = times.figure(Quantity::Percentile(*percent)).ok()??;
            let sign = if at_least.is_bound { ">=" } else { "=" };
            Some(format!(
                "{prefix}latency percentile {percent} {sign} {:.3} ms\n",
                ms(at_least.value)
            ))
        };
        self.run.report.percentiles.iter().filter_map(line).collect()
    }

    fn commands(&self, script: usize, prefix: &str) -> String {
        if !self.run.report.per_command {
            return String::new();
        }
        let has_retries = self.plan().errors.max_retries > 0;
        let what = if has_retries { ", failures and retries" } else { " and failures" };
        let mut text = format!("{prefix}statement latencies in milliseconds{what}:\n");
        let own = self.stage.session_loop.commands.iter();
        for command in own.filter(|command| command.script == script) {
            let CommandRecord { title, service_us, failures, retries, .. } = command;
            let mean = ms(mean_us(service_us.as_ref()));
            let failures = failures - retries;
            let retries = if has_retries { format!("  {retries:>10}") } else { String::new() };
            let end = title.floor_char_boundary(TITLE_BYTES);
            let title = one_line(title.get(..end).unwrap_or(title));
            let _ = writeln!(text, "   {mean:>11.3}  {failures:>10}{retries} {title}");
        }
        text
    }
}

/// Returns the name of a script in the report.
fn description(script: &ScriptSource) -> Cow<'_, str> {
    match script.builtin() {
        Ok(Some(builtin)) => Cow::Borrowed(Builtin::description(builtin)),
        _ => one_line(&script.name),
    }
}

fn latency(prefix: &str, latency: Option<&LatencySummary>) -> String {
    let stdev_us = latency.map_or(0.0, |latency| latency.of_successful().stdev);
    let (mean, stdev) = (ms(mean_us(latency)), ms(stdev_us));
    format!("{prefix}latency average = {mean:.3} ms\n{prefix}latency stddev = {stdev:.3} ms\n")
}
