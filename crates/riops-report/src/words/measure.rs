//! The main result of a run of session loops: throughput and latency of a single stage, or a table of the stages.

use crate::document::{Document, Headline};
use crate::imported::reported_latency;
use crate::latency::{latency_cell, latency_text};
use crate::table::{ABSENT, Cell, Table, number_column, text_column};
use riops_model::figure::{Statistic, Summary};
use riops_model::plan::Traits;
use riops_model::record::{LoopRecord, Record, StageKind, StageRecord};
use riops_model::units::format::{count, duration_us, joined, number_of, rate};

/// The unit of a rate of transactions.
pub(crate) const TRANSACTIONS: &str = "transactions/s";

/// The main result of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) counts_transactions: bool,
    /// Whether the number of rows is of interest.
    pub(crate) has_rows: bool,
}

impl Measure {
    pub(super) fn new(name: &'static str, traits: &Traits) -> Self {
        let counts_transactions = traits.counts_transactions;
        Self { name, counts_transactions, has_rows: !traits.has_no_rows }
    }

    /// The unit of the rate.
    pub(crate) fn unit(self) -> &'static str {
        if self.counts_transactions { TRANSACTIONS } else { "rows/s" }
    }

    /// The rate that is the main result, and the other one, with their units.
    fn rates(self, stage: &StageRecord) -> [String; 2] {
        let rows = format!("{} rows/s", rate(stage.throughput.rows_per_s));
        let transactions = format!("{} {TRANSACTIONS}", rate(stage.throughput.transactions_per_s));
        if self.counts_transactions { [transactions, rows] } else { [rows, transactions] }
    }

    fn per_s(self, stage: &StageRecord) -> f64 {
        let throughput = &stage.throughput;
        if self.counts_transactions { throughput.transactions_per_s } else { throughput.rows_per_s }
    }

    /// The stage with the highest rate.
    pub(crate) fn best_stage<'a>(self, stages: &'a [Summary<'a>]) -> Option<&'a Summary<'a>> {
        stages.iter().max_by(|a, b| self.per_s(a.stage).total_cmp(&self.per_s(b.stage)))
    }

    /// The rate of the best stage.
    pub(super) fn best(self, record: &Record) -> Headline {
        let stages = Summary::of_each(record);
        let label = self.name.to_owned();
        let Some(best) = self.best_stage(&stages) else {
            let detail = "nothing was measured".to_owned();
            return Headline { label, value: ABSENT.to_owned(), unit: String::new(), detail };
        };
        let detail = if stages.len() > 1 {
            format!("{}: the best of {} stages", best.stage.name, stages.len())
        } else {
            let [_, other] = self.rates(best.stage);
            joined(self.has_rows.then_some(other).into_iter().chain(self.counts(best)), " · ")
        };
        let unit = self.unit().to_owned();
        Headline { label, value: rate(self.per_s(best.stage)), unit, detail }
    }

    /// The numbers of transactions, rows and errors.
    fn counts(self, summary: &Summary<'_>) -> Vec<String> {
        let stage = summary.stage;
        let mut counts = vec![number_of(stage.transactions, "transaction")];
        if self.has_rows {
            counts.push(number_of(stage.rows, "row"));
        }
        match summary.stage.session_loop.error_count() {
            // Another tool may not count them.
            0 if summary.record.imported.is_some() => {}
            0 => counts.push("no errors".to_owned()),
            errors => counts.push(number_of(errors, "error")),
        }
        counts
    }

    /// Writes the result.
    pub(super) fn results(self, document: &mut Document, record: &Record) {
        let stages = Summary::of_each(record);
        let [summary] = stages.as_slice() else {
            return table(document, &stages, self.name);
        };
        let [first, other] = self.rates(summary.stage);
        document.line(self.name, first);
        let counts = self.counts(summary).join(", ");
        document.line("", if self.has_rows { format!("{other} ({counts})") } else { counts });
        let session_loop = &summary.stage.session_loop;
        match (&session_loop.service_us, &session_loop.response_us) {
            (Some(service), Some(response)) => {
                let text = format!("{} (from the intended start)", latency_text(response));
                document.line("response", text);
                interval(document, session_loop);
                document.line("service", format!("{} (from the send)", latency_text(service)));
            }
            (Some(service), None) => {
                document.line("latency", latency_text(service));
                interval(document, session_loop);
            }
            // Another tool may measure only the response time.
            (None, Some(response)) => document.line("response", latency_text(response)),
            (None, None) => {}
        }
        reported_latency(document, summary.stage);
    }
}

/// How exactly the run shows a percentile.
fn interval(document: &mut Document, session_loop: &LoopRecord) {
    if let Some(interval) = &session_loop.percentile_interval
        && let Some(statistic) = Statistic::percentile(interval.percent)
    {
        let (low, high) = (duration_us(interval.low_us), duration_us(interval.high_us));
        let text = format!("{} from {low} to {high} (95% interval within the run)", statistic.name);
        document.line("", text);
    }
}

fn table(document: &mut Document, stages: &[Summary<'_>], title: &str) {
    let rows_per_s = |summary: &Summary<'_>| summary.stage.throughput.rows_per_s;
    let most_per_s = stages.iter().map(rows_per_s).fold(f64::MIN_POSITIVE, f64::max);
    let has = |is: fn(&Summary<'_>) -> bool| stages.iter().any(is);
    let has_methods = has(|summary| summary.stage.session_loop.method.is_some());
    let has_sides = !has_methods && has(|summary| summary.stage.kind != StageKind::Loop);
    let has_response = has(|summary| summary.stage.session_loop.response_us.is_some());
    let shown = |cell: Cell, is_shown: bool| if is_shown { cell } else { "".into() };
    document.table(Table::from_items(title, stages, |summary| {
        let (stage, session_loop) = (summary.stage, &summary.stage.session_loop);
        let service =
            |key, is_shown| shown(latency_cell(session_loop.service_us.as_ref(), key), is_shown);
        let response = |key| latency_cell(session_loop.response_us.as_ref(), key);
        let of_methods = |cell: Cell| shown(cell, has_methods);
        let size = session_loop.method.clone().or_else(|| session_loop.batch.map(count));
        // Mean number of active sessions.
        let in_db = stage.database_s.map(|time_s| time_s / stage.seconds.max(f64::MIN_POSITIVE));
        let driver = if stage.kind == StageKind::ServerLoop { "server" } else { "client" };
        let per_s = stage.throughput.rows_per_s;
        [
            (
                number_column(if has_methods { "method" } else { "batch" }),
                size.unwrap_or_default().into(),
            ),
            (number_column("commits").optional(), of_methods(count(stage.transactions).into())),
            (
                number_column("rows/commit").optional(),
                of_methods(stage.rows.checked_div(stage.transactions).map(count).into()),
            ),
            (number_column("seconds"), of_methods(format!("{:.3}", stage.seconds).into())),
            (number_column("active"), of_methods(in_db.map(|mean| format!("{mean:.2}")).into())),
            (text_column("loop"), shown(driver.into(), has_sides)),
            (number_column("rows/s").drawn(), Cell::from(rate(per_s)).with_bar(per_s / most_per_s)),
            (number_column("response p50"), response("p50")),
            (number_column("response p99"), response("p99")),
            (number_column("p50"), service("p50", !has_response)),
            (number_column("p99"), service("p99", !has_response)),
            (number_column("service p99"), service("p99", has_response)),
            (text_column("bottleneck"), summary.bottleneck_word().into()),
        ]
    }));
    if let Some(bytes) = stages.iter().find_map(|summary| summary.stage.session_loop.row_bytes) {
        document.line("", format!("row size {} bytes", count(bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document_text, example_record};

    #[test]
    fn with_a_rate_the_table_shows_response_times_beside_the_service_time() {
        let mut record = example_record();
        record.stages.push(record.stages[0].clone());
        let text = |record: &Record| {
            let mut document = Document::default();
            table(&mut document, &Summary::of_each(record), "RIOPS");
            document_text(&document, usize::MAX)
        };
        assert!(!text(&record).contains("response"), "{}", text(&record));
        for stage in &mut record.stages {
            let mut response = stage.session_loop.service_us.clone().unwrap();
            (response.p50, response.p99) = (2_850_000.0, 3_100_000.0);
            stage.session_loop.response_us = Some(response);
        }
        let text = text(&record);
        assert!(text.contains("response p50  response p99  service p99"), "{text}");
        assert!(text.contains("2.85 s") && text.contains("3.10 s"), "{text}");
    }
}
