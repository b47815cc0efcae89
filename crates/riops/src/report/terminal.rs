//! Text for a terminal or a pipe: the closing text of a run, a line per interval, the list of runs.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::cbc;
use super::format::{count, duration_us, percent, rate};
use super::hints::next_steps;
use super::model::{Limit, Summary};
use super::nodes::nodes;
use super::oltp::contention;
use super::sources::sources;
use super::study::study;
use super::work::totals;
use crate::metrics::{LatencySummary, Point};
use crate::plan::{Contents, Metric, WorkPlan};
use crate::record::{Record, StageRecord, Status};
use crate::store::Listed;

/// Where labels end and facts begin.
const LABEL_WIDTH: usize = 11;

/// Labelled lines.
#[derive(Default)]
pub(super) struct Block(pub(super) String);

impl Block {
    pub(super) fn line(&mut self, label: &str, text: &str) {
        let _ = writeln!(self.0, "  {label:<LABEL_WIDTH$}{text}");
    }

    pub(super) fn gap(&mut self) {
        self.0.push('\n');
    }
}

/// The closing text of a run, one screen: what ran and where, by which access path, the number,
/// its latency, what limited it, whether it is valid, where it is kept, what to try next.
#[must_use]
pub fn run_text(record: &Record, kept: &str) -> String {
    let Some(summary) = Summary::of(record) else {
        return format!("{}: nothing was measured\n", record.id);
    };
    let mut block = Block::default();
    let _ = writeln!(block.0, "riops run {} · {}", record.workload, summary.target());
    block.gap();
    block.line("work", &summary.work());
    let is_cbc = matches!(record.plan.work, WorkPlan::Cbc(_));
    if !is_cbc {
        block.line("", &summary.setup());
    }
    if let Some(drive) = summary.drive() {
        block.line("", &drive);
    }
    block.line("dataset", &summary.dataset());
    access_paths(&mut block, &summary);
    block.gap();
    let stages = Summary::of_each(record);
    if is_cbc {
        cbc::result(&mut block, record);
        block.gap();
    } else if stages.len() > 1 {
        study(&mut block, &stages);
        block.gap();
    } else {
        result(&mut block, &summary);
        sources(&mut block, summary.stage);
        nodes(&mut block, summary.stage);
        block.gap();
        if !matches!(record.plan.work, WorkPlan::Rows(_)) {
            totals(&mut block, &summary);
            block.gap();
        }
        if summary.stage.transactions > 0 {
            limit(&mut block, &summary);
            block.gap();
        }
    }
    verdict(&mut block, record);
    thresholds(&mut block, record);
    block.line("kept", kept);
    if let Some(label) = &record.label {
        block.line("label", label);
    }
    for hint in next_steps(&summary) {
        block.line("next", &hint);
    }
    block.0
}

fn access_paths(block: &mut Block, summary: &Summary<'_>) {
    let moments = summary.access_moments().join(", ");
    for (path, held) in summary.access_paths() {
        let kept = if held { "held" } else { "NOT HELD" };
        block.line("path", &format!("{kept}: {path} (looked {moments})"));
    }
    if let Some(broken) = summary.record.accesses.iter().find(|access| !access.held) {
        let good = summary
            .record
            .accesses
            .iter()
            .find(|access| access.statement == broken.statement && access.held);
        if let Some(good) = good {
            plan(block, &format!("plan {}", good.moment), &good.found);
        }
        plan(block, &format!("plan {}", broken.moment), &broken.found);
    }
}

fn plan(block: &mut Block, label: &str, outline: &str) {
    block.line("", &format!("{label}:"));
    for line in outline.lines() {
        block.line("", &format!("  {line}"));
    }
}

/// The name of the figure: rows of a load are not accessed at random.
pub(super) fn headline(work: &WorkPlan) -> &'static str {
    match work {
        WorkPlan::Load(_) => "load",
        WorkPlan::Oltp(_) => "TPS",
        WorkPlan::Cbc(_) => "selects",
        WorkPlan::Rows(_) | WorkPlan::Point(_) => "RIOPS",
    }
}

fn result(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    let oltp = matches!(summary.record.plan.work, WorkPlan::Oltp(_));
    let (rows_per_s, tx_per_s) =
        (rate(stage.throughput.rows_per_s), rate(stage.throughput.transactions_per_s));
    let mut lines = [format!("{rows_per_s} rows/s"), format!("{tx_per_s} transactions/s")];
    if oltp {
        lines.reverse();
    }
    let [first, second] = lines;
    block.line(headline(&summary.record.plan.work), &first);
    let errors = match summary.errors() {
        0 => "no errors".to_owned(),
        1 => "1 error".to_owned(),
        errors => format!("{} errors", count(errors)),
    };
    block.line(
        "",
        &format!(
            "{second} ({} transactions, {} rows, {errors})",
            count(stage.transactions),
            count(stage.rows)
        ),
    );
    failures(block, summary);
    if oltp {
        contention(block, summary);
    }
    match (&stage.service_us, &stage.response_us) {
        (Some(service), Some(response)) => {
            block
                .line("response", &format!("{} (from the intended start)", latency_text(response)));
            block.line("service", &format!("{} (from the send)", latency_text(service)));
        }
        (Some(service), None) => block.line("latency", &latency_text(service)),
        _ => {}
    }
    if stage.operations.len() > 1 {
        for operation in &stage.operations {
            let latency = operation.response_us.as_ref().or(operation.service_us.as_ref());
            if let Some(latency) = latency {
                block.line("", &format!("{}: {}", operation.name, latency_text(latency)));
            }
        }
    }
    schedule(block, stage);
    if stage.drained.lost > 0 {
        let text = format!(
            "{} transactions were still under way at the end, and failed or never ended",
            count(stage.drained.lost)
        );
        block.line("", &text);
    }
    let longest = stage.service_us.as_ref().map_or(0.0, |latency| latency.max);
    if stage.drained.max_us > longest {
        block.line(
            "",
            &format!(
                "{} transactions were still under way at the end; the longest took {}",
                count(stage.drained.transactions),
                duration_us(stage.drained.max_us)
            ),
        );
    }
}

/// What did not end well, and what it cost.
fn failures(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    for error in &stage.errors {
        let retried = match error.retried {
            0 => String::new(),
            retried => format!(" ({} sent again)", count(retried)),
        };
        let text =
            format!("{} × {}{retried}: {}", count(error.count), error.sqlstate, error.sample);
        block.line("", &text);
        if let Some(seconds) = error.without_success_s {
            let fell = error.below_90_percent_s.filter(|&seconds| seconds > 0.0);
            let below = fell.map_or_else(String::new, |seconds| {
                format!(", {} below 90 % of the former rate", duration_us(seconds * 1e6))
            });
            let back = error.until_90_percent_s.filter(|_| fell.is_some());
            let recovery = back.map_or_else(String::new, |seconds| {
                format!(", back at it after {}", duration_us(seconds * 1e6))
            });
            let without = duration_us(seconds * 1e6);
            block.line("", &format!("  {without} without a success{below}{recovery}"));
        }
    }
    if let Some(outcomes) = stage.outcomes.filter(|outcomes| outcomes.failed + outcomes.unknown > 0)
    {
        block.line(
            "",
            &format!(
                "{} transactions attempted: {} succeeded, {} failed, {} of unknown outcome",
                count(outcomes.attempted),
                count(outcomes.succeeded),
                count(outcomes.failed),
                count(outcomes.unknown)
            ),
        );
    }
    if stage.reconnects > 0 {
        let text = format!("{} broken connections were replaced", count(stage.reconnects));
        block.line("", &text);
    }
    if let Some(connect) = &stage.connect_us {
        block.line("connect", &format!("{} × {}", count(connect.count), latency_text(connect)));
    }
}

/// How the rate was kept.
fn schedule(block: &mut Block, stage: &StageRecord) {
    if let Some(schedule) = &stage.schedule {
        let skipped = match schedule.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", count(skipped)),
        };
        let waiting = match schedule.waiting {
            0 => String::new(),
            waiting => format!(
                "; {} NOT STARTED at the end, the oldest {} late",
                count(waiting),
                duration_us(schedule.oldest_wait_us)
            ),
        };
        let intended = count(schedule.intended);
        block.line(
            "schedule",
            &format!("{} of {intended} intended starts{skipped}{waiting}", count(schedule.sent)),
        );
        if let Some(lag) = &schedule.start_lag_us {
            let text = format!(
                "the client started p50 {} · p99 {} · max {} late where a session was free",
                duration_us(lag.p50),
                duration_us(lag.p99),
                duration_us(lag.max)
            );
            block.line("", &text);
        }
    }
    if let Some(late) = &stage.late {
        block.line(
            "late",
            &format!(
                "{} transactions took longer than {}",
                count(late.transactions),
                duration_us(late.limit_us)
            ),
        );
    }
}

fn latency_text(latency: &LatencySummary) -> String {
    let parts = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p95", latency.p95),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let parts: Vec<_> =
        parts.iter().map(|(name, value)| format!("{name} {}", duration_us(*value))).collect();
    parts.join(" · ")
}

fn limit(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    let shared = summary.record.client.shares_machine_with_server;
    block.line(
        "limit",
        match summary.limit() {
            Limit::Client => "the client: a worker had no idle time; use more workers (-j) or more machines",
            Limit::Locks => "locks: the sessions waited for each other",
            Limit::SharedCpu => "CPU: all processors of this machine, shared by server and client",
            Limit::Device => "the device of the server's data",
            Limit::Rate => "the rate that was asked for, and it was kept",
            Limit::Waiting => "none was used up: the sessions waited for replies; more sessions (-c) may give more",
            Limit::ServerOrNetwork => "not the client: the server or the network between",
        },
    );
    if let Some(busy) = stage.machine_busy_share {
        let client = summary.client_machine_share().unwrap_or(0.0).min(busy);
        let rest = if shared { "server and others" } else { "others" };
        block.line(
            "  machine",
            &format!(
                "{} of its CPU busy: client {}, {rest} {}",
                percent(busy),
                percent(client),
                percent(busy - client)
            ),
        );
    }
    if let Some(cpu) = &stage.client_cpu {
        let each = cpu
            .us_per_transaction
            .map_or_else(String::new, |us| format!(", {} CPU per transaction", duration_us(us)));
        block.line(
            "  client",
            &format!("busiest worker {} of one CPU{each}", percent(cpu.share_of_client)),
        );
        if let Some(away) = &cpu.away_us {
            let text = format!(
                "p99 {} · max {} between two looks at the sockets",
                duration_us(away.p99),
                duration_us(away.max)
            );
            block.line("", &text);
        }
    }
    if let Some(device) = stage.io.as_ref().and_then(|io| io.device.as_ref()) {
        block.line(
            "  device",
            &format!(
                "{} {} busy, {} reads/s ({:.1} MB/s), {} writes/s ({:.1} MB/s)",
                device.name,
                percent(device.busy_share),
                rate(device.reads_per_s),
                device.read_mb_s,
                rate(device.writes_per_s),
                device.write_mb_s
            ),
        );
    }
}

fn verdict(block: &mut Block, record: &Record) {
    let interrupted = match record.status {
        Status::Interrupted => " (interrupted: shorter than planned)",
        _ => "",
    };
    if record.verdict.valid {
        let checked = match record.checks.len() {
            _ if matches!(record.plan.work, WorkPlan::Cbc(_)) && record.status != Status::Done => {
                "the rows of the steps that ended are those of the definition"
            }
            _ if matches!(record.plan.work, WorkPlan::Cbc(_)) => {
                "the rows were counted by the statements themselves, and are those of the definition"
            }
            0 => "every reply had all its rows",
            _ => match &record.plan.work {
                WorkPlan::Load(run)
                    if run.stages().iter().all(|each| each.method.contents() == Contents::Seed) =>
                {
                    "the table holds every row once, with the texts that were sent"
                }
                WorkPlan::Load(_) | WorkPlan::Cbc(_) => "the table holds every row once",
                WorkPlan::Rows(_) => {
                    "every reply had all its rows, and the data hold every acknowledged change"
                }
                WorkPlan::Point(_) => "every reply had all its rows, and the table has all of them",
                WorkPlan::Oltp(_)
                    if record.checks.iter().any(|check| check.name.starts_with("sum of k")) =>
                {
                    "every reply had all its rows, and the tables hold every acknowledged change"
                }
                WorkPlan::Oltp(_) => {
                    "every reply had all its rows, and the tables have all their rows"
                }
            },
        };
        block.line("valid", &format!("yes: {checked}{interrupted}"));
        return;
    }
    for (position, reason) in record.verdict.reasons.iter().enumerate() {
        let label = if position == 0 { "valid" } else { "" };
        let no = if position == 0 { "NO: " } else { "    " };
        block.line(label, &format!("{no}{reason}"));
    }
}

fn thresholds(block: &mut Block, record: &Record) {
    for found in &record.thresholds {
        let figure = match (found.found, found.threshold.metric) {
            (None, _) => "no figure".to_owned(),
            (Some(us), Metric::Time(..)) => duration_us(us),
            (Some(number), _) => rate(number),
        };
        let held = if found.held { "held" } else { "BREACHED" };
        let ended = if found.ended_run { "; ended the run" } else { "" };
        let stage = found.stage.as_ref().map_or_else(String::new, |stage| format!("{stage}: "));
        let threshold = &found.threshold;
        block.line("threshold", &format!("{held}: {stage}{threshold} (found {figure}{ended})"));
    }
}

/// What there is besides, where there is any of it.
pub(super) fn asides(counts: &[(u64, &str)]) -> String {
    let mut text = String::new();
    for (number, what) in counts.iter().filter(|(number, _)| *number > 0) {
        let _ = write!(text, " · {number} {what}");
    }
    text
}

/// One interval as a line.
#[must_use]
pub fn interval_line(point: &Point) -> String {
    let (p50, p99, max) = match point.response_p50_us {
        Some(_) => (point.response_p50_us, point.response_p99_us, point.response_max_us),
        None => (point.p50_us, point.p99_us, point.max_us),
    };
    let latency = match (p50, p99, max) {
        (Some(p50), Some(p99), Some(max)) => {
            format!(
                "p50 {} · p99 {} · max {}",
                duration_us(p50),
                duration_us(p99),
                duration_us(max)
            )
        }
        _ => "nothing ended".to_owned(),
    };
    let asides = asides(&[
        (point.errors, "errors"),
        (point.retries, "retries"),
        (point.late, "late"),
        (point.skipped, "skipped"),
        (point.backlog.unwrap_or(0), "waiting"),
    ]);
    format!(
        "{:>6.1} s  {:>12} rows/s  {:>9} tx/s  {latency}{asides}",
        point.t_s,
        rate(point.rows as f64 / point.seconds),
        rate(point.transactions as f64 / point.seconds),
    )
}

/// The list of runs.
#[must_use]
pub fn runs_table(runs: &[Listed]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "id",
        "started (UTC)",
        "workload",
        "label",
        "target",
        "sessions",
        "rows/s",
        "tx/s",
        "p99",
        "valid",
    ]);
    for run in runs {
        let short: String =
            run.id.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
        let started = run.started_at.get(..19).unwrap_or(&run.started_at).replace('T', " ");
        let valid = match (run.valid, run.status.as_str()) {
            (true, "done") => "yes".to_owned(),
            (true, status) => format!("yes, {status}"),
            (false, "done") => "NO".to_owned(),
            (false, status) => format!("NO, {status}"),
        };
        table.add_row([
            short,
            started,
            run.workload.clone(),
            run.label.clone().unwrap_or_default(),
            run.target.clone(),
            run.sessions.to_string(),
            run.rows_per_s.map(rate).unwrap_or_default(),
            run.transactions_per_s.map(rate).unwrap_or_default(),
            run.p99_us.map(duration_us).unwrap_or_default(),
            valid,
        ]);
    }
    for column in [5, 6, 7, 8] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.trim_fmt()
        + "
";
    if runs.is_empty() {
        text.push_str("no runs yet: make one with: riops run rows\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DatasetPlan, LoadDataset, Method, PointRun};
    use crate::report::{example_load, example_record};

    #[test]
    fn the_closing_text_of_a_good_run() {
        insta::assert_snapshot!(run_text(
            &example_record(),
            "/home/me/.local/share/riops/runs.sqlite"
        ));
    }

    #[test]
    fn the_closing_text_of_a_run_whose_plan_flipped() {
        let mut record = example_record();
        record.accesses[1].held = false;
        record.accesses[1].found =
            "Aggregate\n  Seq Scan on rows_0001, filter (mykey >= 1)".to_owned();
        record.verdict.valid = false;
        record.verdict.reasons = vec![
            "the access path of read_rows_0001 was not kept (in the middle of the run)".to_owned(),
        ];
        insta::assert_snapshot!(run_text(&record, "no (--no-store)"));
    }

    #[test]
    fn the_closing_texts_of_loads() {
        let of = |methods| run_text(&example_load(methods), "no (--no-store)");
        insta::assert_snapshot!("one_method", of(&[Method::CopyBinary]));
        insta::assert_snapshot!("two_methods", of(&[Method::Insert, Method::CopyFile]));
        let mut failed = example_load(&[Method::Copy]);
        failed.verdict.valid = false;
        failed.verdict.reasons = vec!["the statement failed: no space left".to_owned()];
        assert!(run_text(&failed, "no").contains("riops verify load"));
    }

    #[test]
    fn the_closing_text_of_point_access() {
        let mut record = example_record();
        record.workload = "point".to_owned();
        record.plan.work = WorkPlan::Point(PointRun::default());
        record.target.dataset.parameters = DatasetPlan::Load(LoadDataset::default());
        insta::assert_snapshot!(run_text(&record, "no (--no-store)"));
    }

    #[test]
    fn an_interval_is_one_line() {
        let mut point = example_record().stages[0].series[0].clone();
        assert_eq!(
            interval_line(&point),
            "   1.0 s     1,200,000 rows/s      1,200 tx/s  p50 1.60 ms · p99 2.90 ms · max 4.10 ms"
        );
        point.transactions = 0;
        point.rows = 0;
        point.p50_us = None;
        point.errors = 2;
        assert_eq!(
            interval_line(&point),
            "   1.0 s          0.00 rows/s       0.00 tx/s  nothing ended · 2 errors"
        );
    }
}
