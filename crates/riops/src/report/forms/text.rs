//! Text for a terminal or a pipe: the closing text of a run.

use std::fmt::Write as _;

use super::super::block::Block;
use super::super::format::{count, duration_us, rate};
use super::super::latency::latency_text;
use super::super::model::Summary;
use super::super::sections::failures::{failures, schedule};
use super::super::sections::limit::limit;
use super::super::sections::next::{Commands, Hint};
use super::super::sections::nodes::nodes;
use super::super::sections::sources::sources;
use super::super::sections::study::study;
use super::super::words::{self, Words};
use super::form::{Extras, Form, FormError};
use crate::plan::Metric;
use crate::record::{Record, Status};

/// For people; the default.
pub(super) struct Text;

impl Form for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn print(&self, record: &Record, extras: &Extras<'_>) -> Result<String, FormError> {
        Ok(run_text(record, extras.stored) + &extras.histogram_below(record))
    }
}

/// The closing text of a run, one screen: what ran and where, by which access path, the number,
/// its latency, what limited it, whether it is valid, where it is stored, what to try next.
#[must_use]
pub fn run_text(record: &Record, stored: &str) -> String {
    let Some(summary) = Summary::of(record) else {
        return format!("{}: nothing was measured\n", record.id);
    };
    let words = words::of(&record.plan.work);
    let mut block = Block::default();
    let _ = writeln!(block.0, "riops run {} · {}", record.workload, summary.target());
    block.gap();
    block.line("work", &words.work());
    for line in [words.setup(&summary), summary.drive()].into_iter().flatten() {
        block.line("", &line);
    }
    if let Some(dataset) = &record.target.dataset {
        block.line("dataset", &words::of_dataset(&dataset.parameters).text());
    }
    access_paths(&mut block, &summary, words);
    block.gap();
    results(&mut block, &summary, words);
    verdict(&mut block, record, words);
    thresholds(&mut block, record);
    block.line("kept", stored);
    if let Some(label) = &record.label {
        block.line("label", label);
    }
    for hint in next_steps(&summary, words) {
        block.line("next", &hint);
    }
    block.0
}

fn results(block: &mut Block, summary: &Summary<'_>, words: &dyn Words) {
    let stages = Summary::of_each(summary.record);
    if words.own_result(block, summary.record) {
        block.gap();
    } else if stages.len() > 1 {
        study(block, &stages, words.headline());
        block.gap();
    } else {
        result(block, summary, words);
        sources(block, summary.stage);
        nodes(block, summary.stage);
        block.gap();
        if words.totals(block, summary) {
            block.gap();
        }
        if summary.stage.transactions > 0 {
            limit(block, summary);
            block.gap();
        }
    }
}

fn next_steps(summary: &Summary<'_>, words: &dyn Words) -> Vec<String> {
    let commands = Commands::of(summary);
    let texts = |hints: Vec<Hint>| hints.iter().map(Hint::text).collect::<Vec<_>>();
    if summary.record.verdict.valid {
        return texts(words.next_steps(summary, &commands));
    }
    let first = if summary.stage.transactions == 0 {
        "nothing was measured; run again"
    } else {
        "the figures above are not to be used; fix the cause and run again"
    };
    let mut lines = vec![first.to_owned()];
    lines.extend(texts(words.after_failure(&commands)));
    lines
}

fn access_paths(block: &mut Block, summary: &Summary<'_>, words: &dyn Words) {
    let moments = summary.access_moments().join(", ");
    let name = |promised: &str| words.access_path(promised, summary.record);
    for (path, held) in summary.access_paths(name) {
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

fn result(block: &mut Block, summary: &Summary<'_>, words: &dyn Words) {
    let stage = summary.stage;
    let (rows_per_s, tx_per_s) =
        (rate(stage.throughput.rows_per_s), rate(stage.throughput.transactions_per_s));
    let mut lines = [format!("{rows_per_s} rows/s"), format!("{tx_per_s} transactions/s")];
    if words.counts_transactions() {
        lines.reverse();
    }
    let [first, second] = lines;
    block.line(words.headline(), &first);
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
    words.contention(block, summary);
    match (&stage.session_loop.service_us, &stage.session_loop.response_us) {
        (Some(service), Some(response)) => {
            block
                .line("response", &format!("{} (from the intended start)", latency_text(response)));
            block.line("service", &format!("{} (from the send)", latency_text(service)));
        }
        (Some(service), None) => block.line("latency", &latency_text(service)),
        _ => {}
    }
    if stage.session_loop.operations.len() > 1 {
        for operation in &stage.session_loop.operations {
            let latency = operation.response_us.as_ref().or(operation.service_us.as_ref());
            if let Some(latency) = latency {
                block.line("", &format!("{}: {}", operation.name, latency_text(latency)));
            }
        }
    }
    schedule(block, stage);
    if stage.session_loop.drained.lost > 0 {
        let text = format!(
            "{} transactions were still under way at the end, and failed or never ended",
            count(stage.session_loop.drained.lost)
        );
        block.line("", &text);
    }
    let longest = stage.session_loop.service_us.as_ref().map_or(0.0, |latency| latency.max);
    if stage.session_loop.drained.max_us > longest {
        block.line(
            "",
            &format!(
                "{} transactions were still under way at the end; the longest took {}",
                count(stage.session_loop.drained.transactions),
                duration_us(stage.session_loop.drained.max_us)
            ),
        );
    }
}

fn verdict(block: &mut Block, record: &Record, words: &dyn Words) {
    if record.verdict.valid {
        let interrupted = match record.status {
            Status::Interrupted => " (interrupted: shorter than planned)",
            _ => "",
        };
        block.line("valid", &format!("yes: {}{interrupted}", words.proof(record)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LoadDataset, Method, PointRun};
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
        record.plan.work = PointRun::default().into();
        record.target.dataset.as_mut().unwrap().parameters = LoadDataset::default().into();
        insta::assert_snapshot!(run_text(&record, "no (--no-store)"));
    }
}
