//! The HTML report: one self-contained page with tables and charts over time.
//!
//! uPlot draws the charts and is embedded in the page. The page must not load anything from elsewhere.

mod charts;
pub(super) mod table;

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::format::bytes_text;
use super::forms::run_text;
use super::model::{Summary, cpu_text};
use super::words;
use crate::record::{Record, Warning};
use charts::{Chart, charts};
use table::Table;

const PAGE: &str = include_str!("../../../assets/report.html");
const UPLOT: &str = include_str!("../../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../../assets/uplot/uPlot.min.css");

/// The values of the template.
#[derive(Debug, Serialize)]
struct Page {
    title: String,
    tables: Vec<Table>,
    runs: Vec<Run>,
    uplot_script: &'static str,
    uplot_style: &'static str,
}

/// The section of one run.
#[derive(Debug, Serialize)]
struct Run {
    title: String,
    subtitle: String,
    status: &'static str,
    valid: bool,
    reasons: Vec<String>,
    warnings: Vec<String>,
    facts: Vec<(&'static str, String)>,
    tables: Vec<Table>,
    charts: Vec<Chart>,
    text: String,
}

/// Returns the HTML report of one or more records.
///
/// # Errors
/// Returns the error of the template engine. Not expected in practice: the template is part of riops.
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
    let tables = comparison_tables(records);
    let page = Page { title, tables, runs, uplot_script: UPLOT, uplot_style: UPLOT_STYLE };
    environment.get_template("report")?.render(Value::from(Serde(page)))
}

/// Returns the tables that compare several records: one per workload that supports it.
fn comparison_tables(records: &[Record]) -> Vec<Table> {
    let mut seen = Vec::new();
    let mut first = |record: &&Record| {
        let new = !seen.contains(&record.workload);
        seen.push(record.workload.clone());
        new
    };
    let firsts = records.iter().filter(|record| first(record));
    firsts.filter_map(|record| words::of(&record.plan.work).table_over(records)).collect()
}

fn title(record: &Record) -> String {
    match &record.label {
        Some(label) => format!("run {} · {label}", record.workload),
        None => format!("run {}", record.workload),
    }
}

/// Columns of the closing text in a page.
const TEXT_COLUMNS: usize = 100;

fn run(number: usize, record: &Record) -> Run {
    let words = words::of(&record.plan.work);
    let mut facts = Vec::new();
    let mut subtitle = format!("{} · {}", record.id, record.started_at.strftime("%F %T UTC"));
    if let Some(summary) = Summary::of(record) {
        subtitle = format!("{} · {subtitle}", summary.target());
        facts.push(("workload", words.work()));
        if let Some(dataset) = &record.target.dataset {
            facts.push(("dataset", words::of_dataset(&dataset.parameters).text()));
        }
        let name = |expected: &str| words.access_path(expected, record);
        for checked in summary.access_paths(name) {
            let unchecked =
                checked.unchecked().map_or_else(String::new, |text| format!("; {text}"));
            let state = checked.verdict();
            facts.push(("access path", format!("{} ({state}{unchecked})", checked.path)));
        }
    }
    let machine = &record.client.machine;
    facts.push(("machine", format!("{}, {}", cpu_text(record), bytes_text(machine.memory_bytes))));
    let settings: Vec<_> =
        record.target.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    facts.push(("settings", settings.join(" · ")));
    Run {
        title: title(record),
        subtitle,
        status: record.status.as_str(),
        valid: record.verdict.valid,
        reasons: record.verdict.reasons.clone(),
        warnings: record.verdict.warnings.iter().map(Warning::labeled).collect(),
        facts,
        tables: words.tables(record).into_iter().chain(table::waits(record)).collect(),
        charts: charts(number, record),
        text: run_text(record, &record.id.to_string(), TEXT_COLUMNS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Sampled, WaitShare, WarningKind};
    use crate::report::{example_cbc, example_record};

    /// Returns the page without uPlot, which is third-party code.
    fn page(records: &[Record]) -> String {
        let page = html(records).unwrap();
        assert!(page.contains(UPLOT) && page.contains(UPLOT_STYLE));
        page.replace(UPLOT, "uPlot").replace(UPLOT_STYLE, "uPlot's style")
    }

    #[test]
    fn the_page_of_a_cbc_run() {
        insta::assert_snapshot!(page(&[example_cbc()]));
    }

    #[test]
    fn the_page_of_two_cbc_runs_has_the_best_rates_of_both() {
        let mut second = example_cbc();
        second.stages[0].io.as_mut().unwrap().device.as_mut().unwrap().write_mb_s = 500.0;
        let page = page(&[example_cbc(), second]);
        assert!(page.contains("Best rates") && page.contains(">500.0<"), "{page}");
        assert!(page.contains("chart-0-0") && page.contains("chart-1-0"));
    }

    #[test]
    fn warnings_and_wait_events_are_on_the_page() {
        let mut record = example_record();
        let text = "other processes used 48% of the CPU of this machine".to_owned();
        let kind = WarningKind::ForeignCpu;
        record.verdict.warnings = vec![Warning { kind, stage: None, text }];
        let wait = WaitShare { event: "IO:WalSync".to_owned(), share: 0.625 };
        record.stages[0].probes =
            Some(Sampled { waits: vec![wait], looks: 50, ..Sampled::default() });
        let page = page(&[record]);
        assert!(page.contains("DISTURBED: other processes used 48%"), "{page}");
        assert!(page.contains("Wait events") && page.contains("IO:WalSync"), "{page}");
        assert!(page.contains("62%") || page.contains("63%"), "{page}");
    }

    #[test]
    fn with_a_rate_the_page_shows_labeled_response_times_and_service_times() {
        let mut record = example_record();
        assert!(!page(&[record.clone()]).contains("response p50"));
        let each = &mut record.stages[0].session_loop;
        let mut response = each.service_us.clone().unwrap();
        response.p99 = 3_100_000.0;
        each.response_us = Some(response);
        for point in &mut each.series {
            point.response_p50_us = Some(2_850_000.0);
            point.response_p99_us = Some(3_100_000.0);
        }
        let page = page(&[record]);
        assert!(
            page.contains(">response p99</th>") && page.contains(">service p99</th>"),
            "{page}"
        );
        assert!(page.contains("Response time") && page.contains("\"response p99\""), "{page}");
        assert!(page.contains(">3.10 s<"), "{page}");
    }

    #[test]
    fn user_input_is_escaped() {
        let mut record = example_record();
        record.label = Some("</script><b>bold".to_owned());
        record.stages[0].name = "</script><i>".to_owned();
        let page = page(&[record]);
        assert!(!page.contains("<b>bold") && !page.contains("<i>"), "{page}");
    }
}
