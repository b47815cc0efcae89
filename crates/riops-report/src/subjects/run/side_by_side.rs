//! The place of a comparison in a page: above the runs that it compares.

use std::collections::BTreeSet;

use super::hero::title;
use crate::document::Findings;
use crate::latency::{latency_cell, statistic_text};
use crate::paths::CheckedPath;
use crate::setup::{badge, cpu_text};
use crate::subjects::runs::valid_text;
use crate::table::{Cell, Column, Table, number_column, text_column};
use crate::words;
use riops_model::figure::{Statistic, Summary, device};
use riops_model::record::{LatencySummary, Record};
use riops_model::units::format::{number_of, percent, rate, short_id, to_the_minute};

/// With more runs, a page has a row for each instead of a separate part.
const WHOLE_MAX: usize = 8;

/// Returns the comparison of a page, and the runs that have their own parts. Many runs are a table.
pub(super) fn parts<'a>(
    records: &'a [Record],
    comparison: Option<&Findings>,
) -> (Option<Findings>, &'a [Record]) {
    if records.len() <= WHOLE_MAX {
        return (comparison.cloned().or_else(|| side_by_side(records)), records);
    }
    let mut shown = comparison
        .cloned()
        .unwrap_or_else(|| Findings::new(number_of(records.len() as u64, "run")));
    shown.results.table(list(records));
    (Some(shown), &[])
}

/// A row for each run.
fn list(records: &[Record]) -> Table {
    Table::from_items("runs", records, |record| {
        let marks = record.marks().join(", ");
        let state = badge(record.validity(), record.status.as_str(), &marks).text;
        [
            (text_column("run"), short_id(&record.id.to_string()).into()),
            (text_column("started (UTC)"), to_the_minute(&record.started_at.to_string()).into()),
            (text_column("workload"), title(record, None).into()),
            (text_column("state"), state.into()),
            (number_column("result"), result(record).into()),
            (number_column("p99"), latency_cell(latency(record), "p99")),
        ]
    })
}

/// The main figure with its unit.
fn result(record: &Record) -> String {
    let figure = words::for_work(&record.plan.work).best(record);
    format!("{} {}", figure.value, figure.unit)
}

/// Returns the figures of several runs side by side, without a verdict; `None` for a single run.
fn side_by_side(records: &[Record]) -> Option<Findings> {
    if records.len() < 2 {
        return None;
    }
    let mut findings = Findings::new("Comparison");
    findings.conclusion.line("verdict", "none: the runs are shown side by side");
    let tables = properties(records).into_iter().chain([figures(records)]).chain(over(records));
    tables.for_each(|table| findings.results.table(table));
    Some(findings)
}

/// Returns the title of the first column, followed by the titles of the runs.
fn head(first: &str, records: &[Record], column: fn(String) -> Column) -> Vec<Column> {
    let titles = records.iter().enumerate();
    let titles = titles.map(|(position, record)| column(title(record, Some(position + 1))));
    std::iter::once(text_column(first)).chain(titles).collect()
}

/// A property of a run that can explain a different result.
type Property = (&'static str, fn(&Record) -> String);

const PROPERTIES: [Property; 12] = [
    ("workload", |record| words::for_work(&record.plan.work).work()),
    ("dataset", |record| words::dataset_text(record).unwrap_or_default()),
    ("sessions", |record| record.plan.sessions.to_string()),
    ("workers", |record| record.plan.workers.to_string()),
    ("requested rate", |record| {
        let text = |per_s| format!("{} transactions/s", rate(per_s));
        record.plan.schedule.per_s().map(text).unwrap_or_default()
    }),
    ("server", |record| format!("{} {}", record.target.flavor, record.target.server_version)),
    ("address", |record| record.target.address.clone()),
    ("client machine", |record| record.client.machine.host.clone()),
    ("CPU", cpu_text),
    ("kernel", |record| record.client.machine.kernel.clone()),
    ("riops", |record| record.client.riops_version.clone()),
    ("access paths", |record| {
        let summary = Summary::first_stage(record);
        let paths = summary
            .map(|summary| CheckedPath::group_accesses(&summary.record.accesses, str::to_owned))
            .unwrap_or_default();
        match paths.iter().filter(|path| !path.is_held()).count() {
            0 => paths.first().map(|path| path.verdict().to_owned()).unwrap_or_default(),
            changed => format!("{changed} of {} changed or not checked", paths.len()),
        }
    }),
];

/// What differs between the runs: properties and settings.
fn properties(records: &[Record]) -> Option<Table> {
    let of_all = PROPERTIES.map(|(name, value)| (name, records.iter().map(value).collect()));
    let names: BTreeSet<&String> =
        records.iter().flat_map(|record| record.target.settings.keys()).collect();
    let settings = names.into_iter().map(|name| {
        let value = |record: &Record| record.target.settings.get(name).cloned().unwrap_or_default();
        (name.as_str(), records.iter().map(value).collect())
    });
    let differs = |(_, values): &(&str, Vec<String>)| {
        values.windows(2).any(|pair| matches!(pair, [a, b] if a != b))
    };
    let rows = of_all.into_iter().chain(settings).filter(differs).map(|(name, values)| {
        let known = values.into_iter().map(|value| Some(value).filter(|value| !value.is_empty()));
        row(name, known.collect())
    });
    Table::new("what differs", head("property", records, text_column), rows).filled()
}

fn row(name: &str, values: Vec<Option<String>>) -> Vec<Cell> {
    std::iter::once(name.into()).chain(values.into_iter().map(Cell::from)).collect()
}

/// The latency that users of the run with one stage wait for.
fn latency(record: &Record) -> Option<&LatencySummary> {
    let [stage] = record.stages.as_slice() else {
        return None;
    };
    stage.session_loop.latency_us()
}

/// Percentiles that are not shown side by side.
const NOT_SHOWN: [&str; 2] = ["p90", "p95"];

/// A figure of a run as text.
type Figure = (&'static str, fn(&Record) -> Option<String>);

const FIGURES: [Figure; 5] = [
    ("errors", |record| {
        let errors = record.stages.iter().map(|stage| stage.session_loop.error_count());
        Some(riops_model::units::count(errors.sum()))
    }),
    ("hits in shared buffers", |record| {
        Some(percent(record.stages.first()?.io.as_ref()?.hit_ratio?))
    }),
    ("device read MB/s", |record| {
        Some(format!("{:.1}", device(record.stages.first()?)?.read_mb_s))
    }),
    ("bottleneck", |record| {
        let summary = Summary::first_stage(record).filter(|_| record.stages.len() == 1)?;
        Some(summary.bottleneck_word().to_owned()).filter(|word| !word.is_empty())
    }),
    ("valid", |record| Some(valid_text(record.validity()).to_owned())),
];

/// The main figure of each run and what belongs to it.
fn figures(records: &[Record]) -> Table {
    let main = records.iter().enumerate().map(|(position, record)| {
        Cell::from(result(record)).with_link(format!("#run-{}", position + 1))
    });
    let main = std::iter::once("result".into()).chain(main).collect();
    let percentiles =
        Statistic::percentiles().filter(|statistic| !NOT_SHOWN.contains(&statistic.key));
    let percentiles = percentiles.map(|statistic| {
        let value = |record| statistic_text(statistic, latency(record)?);
        (statistic.name, records.iter().map(value).collect())
    });
    let others =
        FIGURES.into_iter().map(|(name, value)| (name, records.iter().map(value).collect()));
    let is_known = |(_, values): &(&str, Vec<_>)| values.iter().any(Option::is_some);
    let rows = percentiles.chain(others).filter(is_known);
    let rows = std::iter::once(main).chain(rows.map(|(name, values)| row(name, values)));
    Table::new("figures", head("figure", records, number_column), rows)
}

/// Returns the table of a workload that compares its runs.
fn over(records: &[Record]) -> Option<Table> {
    records.iter().find_map(|record| words::for_work(&record.plan.work).table_over(records))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;

    #[test]
    fn shows_what_differs_and_the_figures_without_a_verdict() {
        let mut second = example_record();
        second.target.settings.insert("fsync".to_owned(), "off".to_owned());
        second.stages[0].throughput.rows_per_s = 2_400_000.0;
        let view = side_by_side(&[example_record(), second]).unwrap();
        let text = |table: &Table| -> Vec<Vec<String>> {
            table
                .rows
                .iter()
                .map(|row| row.iter().map(|cell| cell.text().to_owned()).collect())
                .collect()
        };
        let tables: Vec<_> = view.results.tables().map(text).collect();
        assert_eq!(tables[0], [["fsync", "on", "off"]]);
        let figures = &tables[1];
        assert_eq!(figures[0], ["result", "1,200,000 rows/s", "2,400,000 rows/s"]);
        assert_eq!(figures[2], ["p99", "2.90 ms", "2.90 ms"]);
        assert_eq!(figures.last().unwrap(), &["valid", "yes", "yes"]);
    }

    #[test]
    fn many_runs_are_a_table_without_parts_of_their_own() {
        let runs = vec![example_record(); 9];
        let (shown, detailed) = parts(&runs, None);
        let shown = shown.unwrap();
        assert!(detailed.is_empty() && shown.title == "9 runs");
        let tables: Vec<_> = shown.results.tables().collect();
        assert_eq!((tables.len(), tables[0].rows.len()), (1, 9));
        assert_eq!(tables[0].rows[0][4].text(), "1,200,000 rows/s");
        let page = crate::html(&runs, None).unwrap();
        assert!(
            !page.contains("<article class=\"run\" aria-label=\"Run")
                && !page.contains("class=\"charts\"")
        );
        assert!(!crate::markdown(&runs, None).contains("### Run 1"));
        assert_eq!(parts(&runs[..8], None).1.len(), 8);
    }

    #[test]
    fn a_single_run_has_no_comparison() {
        assert_eq!(side_by_side(&[example_record()]), None);
    }
}
