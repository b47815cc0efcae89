//! The list of stored runs: as a table and as CSV.

use indexmap::IndexSet;
use serde_json::Value;

use crate::export::{ExportError, cell, csv_text};
use crate::render::fill::fill;
use crate::render::table::{table_columns, table_lines};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::Statistic;
use riops_model::record::{LatencyKind, Validity};
use riops_model::summary::{RunLine, RunSummary};
use riops_model::units::format::{
    bounded, count, duration_us, joined, rate, short_id, to_the_minute,
};
use riops_model::units::text::{json, shortened};

/// Characters of a note in the list.
const NOTE_MAX: usize = 40;

/// A column of lists of runs: in a terminal and in the dashboard.
pub struct RunColumn {
    title: &'static str,
    /// The column of the store that sorts it; empty without one.
    pub sorted_by: &'static str,
    /// Whether its cells are numbers.
    pub is_number: bool,
    kind: Kind,
    cell: fn(&RunLine<'_>) -> Cell,
}

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Id or start of the run, which pages show with links.
    Name,
    /// Property that many runs have in common.
    Property,
    /// Setting of the measurement. If the table is too wide, a value that all lines have in common is shown once.
    Setup,
    Result,
}
use Kind::{Name, Property, Result as Measured, Setup};

impl RunColumn {
    const fn new(
        title: &'static str,
        sorted_by: &'static str,
        kind: Kind,
        cell: fn(&RunLine<'_>) -> Cell,
    ) -> Self {
        Self { title, sorted_by, is_number: false, kind, cell }
    }

    const fn with_numbers(self) -> Self {
        Self { is_number: true, ..self }
    }

    /// Its text for a run; empty if it is unknown.
    pub fn text(&self, run: &RunSummary) -> String {
        let cell = (self.cell)(&RunLine { run, stage: None });
        if cell.has_value() { cell.text().to_owned() } else { String::new() }
    }

    /// Without a rate in any run, all latencies are service times.
    fn title(&self, has_response: bool) -> &'static str {
        if self.title == SERVICE_P99 && !has_response { "p99" } else { self.title }
    }

    fn describes_run(&self) -> bool {
        matches!(self.kind, Property | Setup)
    }
}

/// The columns of lists of runs.
static COLUMNS: [RunColumn; 23] = [
    RunColumn::new("id", "", Name, |line| short_id(&line.run.id).into()),
    RunColumn::new("started (UTC)", "started_at", Name, |line| {
        to_the_minute(&line.run.started_at).into()
    }),
    RunColumn::new("workload", "title", Property, |line| line.run.title.as_str().into()),
    RunColumn::new("stage", "", Setup, |line| line.stage.map_or("", |stage| &stage.name).into()),
    RunColumn::new("valid", "valid", Property, |line| valid_text(line.run.validity()).into()),
    // Some workloads have no rows.
    RunColumn::new("rows/s", "rows_per_s", Measured, |line| rate_cell(line, "rows_per_s"))
        .with_numbers(),
    RunColumn::new("tx/s", "transactions_per_s", Measured, |line| {
        rate_cell(line, "transactions_per_s")
    })
    .with_numbers(),
    RunColumn::new(RESPONSE_P99, "response_p99_us", Measured, |line| {
        p99_cell(line, "response_p99_us", Statistic::bound_column(LatencyKind::Response))
    })
    .with_numbers(),
    RunColumn::new(SERVICE_P99, "service_p99_us", Measured, |line| {
        p99_cell(line, "service_p99_us", Statistic::bound_column(LatencyKind::Service))
    })
    .with_numbers(),
    RunColumn::new("MB/s", "device_mb_s", Measured, |line| rate_cell(line, "device_mb_s"))
        .with_numbers(),
    RunColumn::new("batch", "batch", Setup, |line| {
        line.stage.map_or(line.run.batch, |stage| stage.batch).map(count).unwrap_or_default().into()
    })
    .with_numbers(),
    RunColumn::new("update", "update_percent", Setup, |line| {
        line.run.update_percent.map(|percent| format!("{percent}%")).unwrap_or_default().into()
    })
    .with_numbers(),
    RunColumn::new("keys", "distribution", Setup, |line| {
        line.run.distribution.clone().unwrap_or_default().into()
    }),
    RunColumn::new("sessions", "sessions", Setup, |line| {
        let sessions = line.stage.map_or(line.run.sessions, |stage| stage.sessions);
        sessions.map(|sessions| sessions.to_string()).unwrap_or_default().into()
    })
    .with_numbers(),
    RunColumn::new("rate", "rate_per_s", Setup, |line| {
        line.run.rate_per_s.map(rate).unwrap_or_default().into()
    })
    .with_numbers(),
    RunColumn::new("stages", "stages", Setup, |line| match (line.stage, line.run.stages) {
        (None, stages @ 2..) => stages.to_string().into(),
        _ => "".into(),
    })
    .with_numbers(),
    RunColumn::new("errors", "errors", Measured, |line| {
        let errors = line.stage.map_or(line.run.errors, |stage| stage.errors);
        errors.filter(|&errors| errors > 0).map(count).unwrap_or_default().into()
    })
    .with_numbers(),
    RunColumn::new("status", "status", Property, |line| status(line.run).into()),
    RunColumn::new("label", "label", Property, |line| {
        line.run.label.clone().unwrap_or_default().into()
    }),
    RunColumn::new("tags", "", Property, |line| tags(line.run).into()),
    RunColumn::new("server", "server", Setup, |line| line.run.server.as_str().into()),
    RunColumn::new("client", "client_host", Setup, |line| {
        line.run.client_host.clone().unwrap_or_default().into()
    }),
    RunColumn::new("note", "", Setup, |line| {
        let note = line.run.note.as_deref().unwrap_or_default();
        shortened(note, NOTE_MAX).into()
    }),
];

/// A column and its title above certain runs.
pub type TitledColumn = (&'static str, &'static RunColumn);

/// The columns about the measurement that have a value in one of these runs: those that differ, and those with a value that all
/// runs have in common.
pub fn run_columns(runs: &[RunSummary]) -> (Vec<TitledColumn>, Vec<TitledColumn>) {
    let has_response = runs.iter().any(|run| run.response_p99_us.is_some());
    let is_shown = |column: &&RunColumn| matches!(column.kind, Setup | Measured);
    let has_value = |column: &&RunColumn| runs.iter().any(|run| !column.text(run).is_empty());
    let shown = COLUMNS.iter().filter(is_shown).filter(has_value);
    shown.map(|column| (column.title(has_response), column)).partition(|(_, column)| match runs {
        [first, rest @ ..] if !rest.is_empty() && column.kind == Setup => {
            rest.iter().any(|run| column.text(run) != column.text(first))
        }
        _ => true,
    })
}

const RESPONSE_P99: &str = "response p99";
const SERVICE_P99: &str = "service p99";

fn p99_cell(line: &RunLine<'_>, column: &str, bound_column: &str) -> Cell {
    let is_bound = line.numeric_value(bound_column).is_some_and(|from| from <= 99.0);
    line.numeric_value(column).map(|us| bounded(duration_us(us), is_bound)).into()
}

fn rate_cell(line: &RunLine<'_>, column: &str) -> Cell {
    line.numeric_value(column).map(rate).into()
}

/// Returns how a run ended, unless it ended as planned, and its marks.
fn status(run: &RunSummary) -> String {
    let status = Some(run.status.as_str()).filter(|status| *status != "done");
    joined(status.into_iter().chain(run.marks.as_deref()), ", ")
}

fn tags(run: &RunSummary) -> String {
    joined(run.tags.iter().map(|(key, value)| format!("{key}={value}")), " ")
}

/// The stored runs as a table, in lines of at most `width` columns. If it is too wide, what all runs have in common
/// is shown once, below the table.
pub fn runs_table(lines: &[RunLine<'_>], width: usize) -> String {
    let has_response = lines.iter().any(|line| line.numeric_value("response_p99_us").is_some());
    let head = |column: &RunColumn| {
        let title = column.title(has_response);
        if column.is_number { number_column(title) } else { text_column(title) }
    };
    let table = |shown: &[&RunColumn]| {
        let row = |line: &RunLine<'_>| shown.iter().map(|column| (column.cell)(line)).collect();
        Table::new("", shown.iter().map(|column| head(column)), lines.iter().map(row))
    };
    let all: Vec<&RunColumn> = COLUMNS.iter().collect();
    let full_table = table(&all);
    let (first, rest) = match lines {
        [first, rest @ ..] if !rest.is_empty() && table_columns(&full_table) > width => {
            (first, rest)
        }
        _ => return table_lines(&full_table, width).join("\n") + "\n",
    };
    let is_common = |column: &&RunColumn| {
        column.describes_run()
            && rest.iter().all(|line| (column.cell)(line) == (column.cell)(first))
    };
    let (common, differing): (Vec<&RunColumn>, Vec<&RunColumn>) =
        all.into_iter().partition(is_common);
    let mut text = table_lines(&table(&differing), width).join("\n") + "\n";
    let cells = common.iter().map(|column| (column.title, (column.cell)(first)));
    let shown = cells.filter(|(_, cell)| cell.has_value());
    let shown = joined(shown.map(|(title, cell)| format!("{title} {}", cell.text())), " · ");
    if !shown.is_empty() {
        text += &(fill(&format!("all: {shown}"), width).join("\n") + "\n");
    }
    text
}

/// Columns that come first in CSV, in this order; the others follow by name.
const CSV_FIRST: [&str; 18] = [
    "id",
    "run_id",
    "run_started_at",
    "started_at",
    "workload",
    "title",
    "label",
    "tags",
    "status",
    "valid",
    "marks",
    "position",
    "name",
    "batch",
    "rows_per_s",
    "transactions_per_s",
    "service_p99_us",
    "response_p99_us",
];

/// The stored runs as CSV (RFC 4180) with a header: a row for each run or stage. Missing values are empty, and the
/// tags are a JSON object.
///
/// # Errors
/// If a line cannot be encoded.
pub fn runs_csv(lines: &[RunLine<'_>]) -> Result<String, ExportError> {
    let all = lines.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| ExportError::Csv(error.to_string()))?;
    let keys = all.iter().filter_map(Value::as_object).flat_map(|row| row.keys());
    let mut names: IndexSet<&str> = CSV_FIRST.into_iter().collect();
    names.extend(keys.map(String::as_str));
    names.retain(|name| all.is_empty() || all.iter().any(|row| row.get(*name).is_some()));
    let cells = |row: &Value| names.iter().map(|name| csv_cell(row.get(*name))).collect();
    csv_text(names.iter().copied(), all.iter().map(cells))
}

fn csv_cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => cell(text.as_str().into()),
        Some(other) => json(&other.to_string()).into_owned(),
    }
}

/// An imported run is neither valid nor invalid.
pub(super) fn valid_text(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "yes",
        Validity::Invalid => "NO",
        Validity::NotVerified => "not verified",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{
        ErrorEntry, Status, SteadinessRecord, ThresholdRecord, Warning, WarningKind,
    };
    use riops_model::summary::{Sort, StageSummary, run_lines};
    use riops_model::units::text::json_text;

    fn run(service_p99_us: f64, response_p99_us: Option<f64>) -> RunSummary {
        RunSummary {
            id: "01890000-0000-7000-8000-0000000000aa".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            title: "rows".to_owned(),
            server: "PostgreSQL 18".to_owned(),
            status: "done".to_owned(),
            valid: true,
            sessions: Some(2),
            stages: 1,
            rows_per_s: Some(1e6),
            transactions_per_s: Some(1e3),
            p99_us: response_p99_us.or(Some(service_p99_us)),
            service_p99_us: Some(service_p99_us),
            response_p99_us,
            ..RunSummary::default()
        }
    }

    fn table(runs: &[RunSummary], width: usize) -> String {
        runs_table(&run_lines(runs, None, Sort::default()), width)
    }

    fn stage(run: &RunSummary, name: &str, rows_per_s: f64) -> StageSummary {
        StageSummary {
            run_id: run.id.clone(),
            name: name.to_owned(),
            rows_per_s: Some(rows_per_s),
            ..StageSummary::default()
        }
    }

    #[test]
    fn the_list_labels_response_times_and_shows_service_times_beside_them() {
        let closed = table(&[run(7_800.0, None)], usize::MAX);
        assert!(closed.contains("  p99  ") && !closed.contains("response"), "{closed}");
        let mixed = table(&[run(7_800.0, Some(2_850_000.0)), run(900.0, None)], usize::MAX);
        let lines: Vec<_> = mixed.lines().collect();
        assert!(lines[0].contains("response p99  service p99"), "{mixed}");
        assert!(lines[1].contains("2.85 s      7.80 ms"), "{mixed}");
        assert!(lines[2].contains("900 µs") && !lines[2].contains(" s "), "{mixed}");
    }

    #[test]
    fn a_record_has_a_mark_for_everything_that_qualifies_its_result() {
        let mut record = example_record();
        assert_eq!(record.marks(), [""; 0]);
        record.thresholds.push(ThresholdRecord {
            stage: None,
            threshold: "tps>700".parse().unwrap(),
            found: Some(612.0),
            at_least: false,
            held: false,
            ended_run: false,
        });
        let warning = |kind| Warning { kind, stage: None, text: "other load".to_owned() };
        let kinds = [WarningKind::ForeignIo, WarningKind::Outage, WarningKind::Stalls];
        record.verdict.warnings = kinds.map(warning).to_vec();
        let session_loop = &mut record.stages[0].session_loop;
        (session_loop.reconnects, session_loop.steadiness) = (2, Some(SteadinessRecord::default()));
        let lost = ErrorEntry { sqlstate: "57P01".to_owned(), ..ErrorEntry::default() };
        session_loop.errors.push(lost);
        let marks =
            ["breached", "disturbed", "not steady", "outage", "connections lost", "client stalls"];
        assert_eq!(record.marks(), marks);
        assert_eq!(
            riops_model::comparison::marked([&record, &example_record()].into_iter())[0],
            ("breached", 1)
        );
        record.plan.reconnect_every = Some(10);
        record.status = Status::Failed;
        assert_eq!(record.marks(), ["breached", "disturbed", "outage", "client stalls"]);
        // A pause without an error.
        record.stages[0].session_loop.errors.clear();
        assert_eq!(record.marks(), ["breached", "disturbed", "stall", "client stalls"]);
    }

    #[test]
    fn marks_are_part_of_the_status_and_of_the_badge() {
        let mut marked = run(1.0, None);
        marked.marks = Some("breached, disturbed".to_owned());
        let lines = table(&[marked.clone(), run(1.0, None)], usize::MAX);
        let row = lines.lines().nth(1).unwrap();
        assert!(row.contains("  breached, disturbed  "), "{lines}");
        marked.status = "interrupted".to_owned();
        let lines = table(&[marked.clone()], usize::MAX);
        assert!(lines.contains("  interrupted, breached, disturbed  "), "{lines}");
        let csv = runs_csv(&run_lines(&[marked], None, Sort::default())).unwrap();
        assert!(csv.contains("interrupted,true,\"breached, disturbed\","), "{csv}");
    }

    #[test]
    fn parameters_that_differ_are_columns_and_common_ones_are_below_a_narrow_table() {
        let mut runs = [run(1.0, None), run(2.0, None)];
        runs[0].batch = Some(10);
        runs[1].batch = Some(1000);
        runs[1].tags.insert("disk".to_owned(), "nvme".to_owned());
        let wide = table(&runs, usize::MAX);
        assert!(
            wide.lines().next().unwrap().contains("server") && wide.lines().count() == 3,
            "{wide}"
        );
        let narrow = table(&runs, 80);
        let lines: Vec<_> = narrow.lines().collect();
        assert!(lines[0].contains("batch") && lines[0].contains("tags"), "{narrow}");
        assert!(!lines[0].contains("sessions"), "{narrow}");
        assert!(lines[2].contains("1,000") && lines[2].ends_with("disk=nvme"), "{narrow}");
        assert_eq!(lines[3], "all: workload rows · valid yes · sessions 2 · server PostgreSQL 18");
    }

    #[test]
    fn the_only_run_of_a_narrow_list_keeps_its_columns() {
        assert!(table(&[run(1.0, None)], 60).contains("server PostgreSQL 18"));
    }

    #[test]
    fn stages_are_lines_and_are_sorted_by_their_own_figures() {
        let runs = [run(1.0, None)];
        let stages = [stage(&runs[0], "batch 1", 5.0), stage(&runs[0], "batch 10", 50.0)];
        let names = |sort| -> Vec<_> {
            let lines = run_lines(&runs, Some(&stages), Sort::parse(sort).unwrap());
            lines.iter().map(|line| line.stage.unwrap().name.as_str()).collect()
        };
        assert_eq!(names("started_at"), ["batch 1", "batch 10"]);
        assert_eq!(names("rows_per_s"), ["batch 10", "batch 1"]);
        assert_eq!(names("rows_per_s:asc"), ["batch 1", "batch 10"]);
        let lines = run_lines(&runs, Some(&stages), Sort::default());
        let json: Value = serde_json::from_str(&json_text(&lines).unwrap()).unwrap();
        assert_eq!(json[1]["name"], "batch 10");
        assert_eq!(json[1]["title"], "rows");
    }

    #[test]
    fn csv_quotes_cells_that_contain_separators() {
        let mut run = run(1.0, None);
        run.label = Some("a, \"b\"\nc".to_owned());
        run.tags.insert("k".to_owned(), "v".to_owned());
        let csv = runs_csv(&run_lines(&[run], None, Sort::default())).unwrap();
        assert!(csv.starts_with("id,started_at,workload,title,label,tags,status,valid,"), "{csv}");
        assert!(csv.contains("\"a, \"\"b\"\"\nc\",\"{\"\"k\"\":\"\"v\"\"}\",done,true,"), "{csv}");
    }
}
