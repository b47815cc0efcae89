//! Records as one page of HTML that needs nothing beside it: tables, and the counters over time.
//!
//! The charts are drawn by uPlot, which is part of the page.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::cbc::{bytes_text, cpu_text};
use super::charts::{Chart, charts};
use super::format::{duration_us, percent, rate};
use super::model::Summary;
use super::validation::{self, device};
use crate::plan::WorkPlan;
use crate::record::{Record, StageRecord};

const PAGE: &str = include_str!("../../assets/report.html");
const UPLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");

/// What the template is filled with.
#[derive(Debug, Serialize)]
struct Page {
    title: String,
    tables: Vec<Table>,
    runs: Vec<Run>,
    uplot_script: &'static str,
    uplot_style: &'static str,
}

/// A run of the page.
#[derive(Debug, Serialize)]
struct Run {
    title: String,
    subtitle: String,
    status: &'static str,
    valid: bool,
    reasons: Vec<String>,
    facts: Vec<(&'static str, String)>,
    tables: Vec<Table>,
    charts: Vec<Chart>,
    text: String,
}

#[derive(Debug, Serialize)]
struct Table {
    title: &'static str,
    head: Vec<&'static str>,
    /// Columns of words, before those of numbers.
    words: usize,
    rows: Vec<Vec<Cell>>,
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct Cell {
    text: String,
    number: bool,
    /// Length of a bar behind the text, in percent.
    share: Option<u32>,
}

impl Cell {
    fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: false, share: None }
    }

    fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: true, share: None }
    }

    fn mb_s(value: Option<f64>) -> Self {
        Self::number(value.map_or_else(|| "–".to_owned(), |mb_s| format!("{mb_s:.1}")))
    }

    fn share(value: Option<f64>) -> Self {
        Self::number(value.map_or_else(|| "–".to_owned(), percent))
    }

    /// With a bar of this share.
    fn with_bar(self, share: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "percent of a bar"
        )]
        let percent = (share.clamp(0.0, 1.0) * 100.0).round() as u32;
        Self { share: Some(percent), ..self }
    }
}

/// The page of one or more records.
///
/// # Errors
/// None in practice: the template is riops's own.
pub fn html(records: &[Record]) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("report", PAGE)?;
    let runs: Vec<Run> =
        records.iter().enumerate().map(|(number, record)| run(number, record)).collect();
    let title = match records {
        [record] => format!("riops: {}", title(record)),
        _ => format!("riops: {} runs", records.len()),
    };
    let tables: Vec<Table> = best(records).into_iter().collect();
    let page = Page { title, tables, runs, uplot_script: UPLOT, uplot_style: UPLOT_STYLE };
    environment.get_template("report")?.render(Value::from(Serde(page)))
}

fn title(record: &Record) -> String {
    match &record.label {
        Some(label) => format!("run {} · {label}", record.workload),
        None => format!("run {}", record.workload),
    }
}

fn run(number: usize, record: &Record) -> Run {
    let mut facts = Vec::new();
    let mut subtitle = format!("{} · {}", record.id, record.started_at.strftime("%F %T UTC"));
    if let Some(summary) = Summary::of(record) {
        subtitle = format!("{} · {subtitle}", summary.target());
        facts.push(("work", summary.work()));
        facts.push(("dataset", summary.dataset()));
        for (path, held) in summary.access_paths() {
            facts.push((
                "access path",
                format!("{}: {path}", if held { "held" } else { "NOT HELD" }),
            ));
        }
    }
    let machine = &record.client.machine;
    facts.push(("machine", format!("{}, {}", cpu_text(record), bytes_text(machine.memory_bytes))));
    let settings: Vec<_> =
        record.target.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    facts.push(("settings", settings.join(" · ")));
    let tables = match record.plan.work {
        WorkPlan::Cbc(_) => {
            [steps(record), selects(record), storage(record)].into_iter().flatten().collect()
        }
        _ => vec![stages(record)],
    };
    Run {
        title: title(record),
        subtitle,
        status: record.status.as_str(),
        valid: record.verdict.valid,
        reasons: record.verdict.reasons.clone(),
        facts,
        tables,
        charts: charts(number, record),
        text: super::run_text(record, &record.id.to_string()),
    }
}

fn steps(record: &Record) -> Option<Table> {
    let steps: Vec<_> = record.stages.iter().filter(|stage| stage.statement.is_some()).collect();
    let longest = steps.iter().map(|stage| stage.seconds).fold(0.0, f64::max);
    let row = |stage: &&StageRecord| {
        let device = device(stage);
        let statement = stage.statement.as_ref();
        vec![
            Cell::word(stage.name.clone()),
            Cell::word(validation::time_spent(stage)),
            Cell::number(duration_us(stage.seconds * 1e6)).with_bar(stage.seconds / longest),
            Cell::mb_s(device.map(|device| device.read_mb_s)),
            Cell::mb_s(device.map(|device| device.write_mb_s)),
            Cell::mb_s(device.map(|device| device.read_mb_s + device.write_mb_s)),
            Cell::number(device.map_or_else(
                || "–".to_owned(),
                |device| rate(device.reads_per_s + device.writes_per_s),
            )),
            Cell::share(device.map(|device| device.busy_share)),
            Cell::mb_s(stage.io.as_ref().and_then(|io| io.wal_mb_s)),
            Cell::share(statement.and_then(|statement| statement.process_cpu_share)),
        ]
    };
    (!steps.is_empty()).then(|| Table {
        title: "Steps",
        head: vec![
            "step",
            "time spent",
            "time",
            "read MB/s",
            "write MB/s",
            "total MB/s",
            "IOPS",
            "busy",
            "WAL MB/s",
            "CPU",
        ],
        words: 2,
        rows: steps.iter().map(row).collect(),
        note: Some(
            "read and write: of the device; CPU: of the process that ran the step".to_owned(),
        ),
    })
}

fn selects(record: &Record) -> Option<Table> {
    let loops: Vec<_> = record.stages.iter().filter(|stage| stage.statement.is_none()).collect();
    let rows: Vec<_> = loops.into_iter().map(loop_row).collect();
    (!rows.is_empty()).then(|| Table { title: "Selects by several sessions", ..loop_table(rows) })
}

/// The stages of any other workload.
fn stages(record: &Record) -> Table {
    loop_table(record.stages.iter().map(loop_row).collect())
}

fn loop_table(rows: Vec<Vec<Cell>>) -> Table {
    Table {
        title: "Stages",
        head: vec![
            "stage",
            "sessions",
            "rows/s",
            "tx/s",
            "p50",
            "p99",
            "max",
            "read MB/s",
            "write MB/s",
            "busy",
        ],
        words: 1,
        rows,
        note: None,
    }
}

fn loop_row(stage: &StageRecord) -> Vec<Cell> {
    let latency = |pick: fn(&crate::metrics::LatencySummary) -> f64| {
        let latency = stage.response_us.as_ref().or(stage.service_us.as_ref());
        Cell::number(latency.map_or_else(|| "–".to_owned(), |latency| duration_us(pick(latency))))
    };
    let device = device(stage);
    vec![
        Cell::word(stage.name.clone()),
        Cell::number(stage.sessions.to_string()),
        Cell::number(rate(stage.throughput.rows_per_s)),
        Cell::number(rate(stage.throughput.transactions_per_s)),
        latency(|latency| latency.p50),
        latency(|latency| latency.p99),
        latency(|latency| latency.max),
        Cell::mb_s(device.map(|device| device.read_mb_s)),
        Cell::mb_s(device.map(|device| device.write_mb_s)),
        Cell::share(device.map(|device| device.busy_share)),
    ]
}

/// The storage validation.
fn storage(record: &Record) -> Option<Table> {
    let limit = record.target.disk_limit.as_ref()?;
    let machine = &record.client.machine;
    let db = validation::true_bytes(record).map_or_else(|| "–".to_owned(), bytes_text);
    let row = |line: &validation::Line| {
        vec![
            Cell::word(cpu_text(record)),
            Cell::word(bytes_text(machine.memory_bytes)),
            Cell::word(db.clone()),
            Cell::word(line.script),
            Cell::word(line.metric.as_str()),
            Cell::word(line.held_back.clone().unwrap_or_default()),
            Cell::number(format!("{:.1}", line.best_mb_s)),
            Cell::number(format!("{:.1}", line.most_mb_s)),
            Cell::number(percent(line.share())).with_bar(line.share()),
        ]
    };
    let rows: Vec<_> = validation::lines(record).iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "Storage validation",
        head: vec![
            "CPU",
            "RAM",
            "DB",
            "script",
            "metric",
            "held back by",
            "best MB/s",
            "max MB/s",
            "% max",
        ],
        words: 6,
        rows,
        note: Some(format!(
            "max: {} by {}, {}: requests of 1 MiB in a row, 16 at once; the aim is 90 %",
            limit.device,
            limit.tool,
            limit.measured_at.strftime("%F")
        )),
    })
}

/// Of several runs of `cbc`: the best rates of each server, script and size.
fn best(records: &[Record]) -> Option<Table> {
    let mut found: Vec<(String, &'static str, f64, [f64; 3])> = Vec::new();
    for record in records {
        let WorkPlan::Cbc(work) = &record.plan.work else {
            continue;
        };
        for stage in &record.stages {
            let (Some(script), Some(device)) = (validation::script_of(stage), device(stage)) else {
                continue;
            };
            let host = &record.client.machine.host;
            let rates = [device.read_mb_s, device.write_mb_s, device.read_mb_s + device.write_mb_s];
            let known = found.iter_mut().find(|(server, known, size, _)| {
                server == host && *known == script && *size == work.size_gb
            });
            match known {
                Some((.., best)) => {
                    for (best, rate) in best.iter_mut().zip(rates) {
                        *best = best.max(rate);
                    }
                }
                None => found.push((host.clone(), script, work.size_gb, rates)),
            }
        }
    }
    found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)).then(a.2.total_cmp(&b.2)));
    let runs = records.iter().filter(|record| matches!(record.plan.work, WorkPlan::Cbc(_))).count();
    (runs > 1).then(|| Table {
        title: "Best rates",
        head: vec!["server", "script", "size GB", "read MB/s", "write MB/s", "R+W MB/s"],
        words: 2,
        rows: found
            .into_iter()
            .map(|(server, script, size, [read, write, both])| {
                vec![
                    Cell::word(server),
                    Cell::word(script),
                    Cell::number(size.to_string()),
                    Cell::mb_s(Some(read)),
                    Cell::mb_s(Some(write)),
                    Cell::mb_s(Some(both)),
                ]
            })
            .collect(),
        note: Some("the mean over a step, best of all runs".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{example_cbc, example_record};

    /// The page without uPlot, which is not ours to look at.
    fn page(records: &[Record]) -> String {
        let page = html(records).unwrap();
        assert!(page.contains(UPLOT) && page.contains(UPLOT_STYLE));
        page.replace(UPLOT, "uPlot").replace(UPLOT_STYLE, "uPlot's style")
    }

    #[test]
    fn the_page_of_a_block_check() {
        insta::assert_snapshot!(page(&[example_cbc()]));
    }

    #[test]
    fn the_page_of_two_block_checks_has_the_best_rates_of_both() {
        let mut second = example_cbc();
        second.stages[0].io.as_mut().unwrap().device.as_mut().unwrap().write_mb_s = 500.0;
        let page = page(&[example_cbc(), second]);
        assert!(page.contains("Best rates") && page.contains(">500.0<"), "{page}");
        assert!(page.contains("chart-0-0") && page.contains("chart-1-0"));
    }

    #[test]
    fn what_a_user_has_typed_stays_text() {
        let mut record = example_record();
        record.label = Some("</script><b>bold".to_owned());
        record.stages[0].name = "</script><i>".to_owned();
        let page = page(&[record]);
        assert!(!page.contains("<b>bold") && !page.contains("<i>"), "{page}");
    }
}
