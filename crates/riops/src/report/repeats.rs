//! Repeated runs of one plan: a line for each, then the median, the spread and the interval of each figure.

use super::block::Block;
use super::columns::{Align, Columns};
use super::comparison::{FigureValues, group_figures};
use super::fill::wrapped;
use super::format::{duration_us, number_of, percent, rate, short_id};
use super::forms::Extras;
use super::words;
use crate::record::{Record, Status};
use crate::stats::summary;
use crate::units::text::one_line;

/// One of several runs in a line.
#[must_use]
pub fn repeat_line(record: &Record, (number, count): (u32, u32), extras: &Extras<'_>) -> String {
    let mut parts = Vec::new();
    for stage in record.stages.iter().filter(|stage| stage.statement.is_none()) {
        let name =
            if record.stages.len() > 1 { format!("{}: ", stage.name) } else { String::new() };
        let throughput = if words::of(&record.plan.work).counts_transactions() {
            format!("{} transactions/s", rate(stage.throughput.transactions_per_s))
        } else {
            format!("{} rows/s", rate(stage.throughput.rows_per_s))
        };
        let each = &stage.session_loop;
        let latency = each.response_us.as_ref().or(each.service_us.as_ref());
        let p99 = latency
            .map_or_else(String::new, |latency| format!(", p99 {}", duration_us(latency.p99)));
        parts.push(format!("{name}{throughput}{p99}"));
    }
    let state = match (record.status, record.verdict.valid) {
        (Status::Interrupted, _) => "interrupted".to_owned(),
        (Status::Failed, _) => "failed".to_owned(),
        (Status::Done, true) => "valid".to_owned(),
        (Status::Done, false) => format!("NOT VALID: {}", record.verdict.reasons.join(", and ")),
    };
    parts.extend([state, short_id(&record.id.to_string()).to_owned()]);
    let text = format!("run {number} of {count}  {}", parts.join(" · "));
    wrapped(&one_line(&text), 4, extras.width) + "\n"
}

/// The summary of repeated runs. `selection` is the tag that selects them in other commands.
#[must_use]
pub fn repeats_text(records: &[Record], selection: &str, width: usize) -> String {
    let usable: Vec<&Record> = records
        .iter()
        .filter(|record| record.status == Status::Done && record.verdict.valid)
        .collect();
    let mut block = Block::new(width);
    block.gap();
    block.title(&format!("{} of {}", number_of(usable.len() as u64, "valid run"), records.len()));
    block.gap();
    for (stage, figures) in group_figures(&usable) {
        let label = stage.as_deref().unwrap_or("figures");
        block.table(label, &table(&figures));
    }
    block.gap();
    let compare = format!("riops compare {selection} OTHER");
    block.commands(
        "try next",
        &[
            (&format!("riops runs list --tag {selection}"), "these runs"),
            (&compare, "with another run, label or tag"),
        ],
    );
    block.finish()
}

/// The median, spread and interval of each figure.
fn table(figures: &[FigureValues]) -> Columns {
    let mut table = Columns::new([
        ("figure", Align::Left),
        ("median", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
        ("spread", Align::Right),
        ("95% interval of the mean", Align::Left),
    ]);
    for (name, figure, values) in figures {
        let Some(found) = summary(values) else {
            continue;
        };
        let (min, max) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), &value| {
                (min.min(value), max.max(value))
            });
        let interval = found.interval.map_or_else(
            || "needs more runs".to_owned(),
            |found| format!("{} to {}", figure.text(found.low), figure.text(found.high)),
        );
        table.row([
            name.clone(),
            figure.text(found.median),
            figure.text(min),
            figure.text(max),
            found.stdev_share.map(percent).unwrap_or_default(),
            interval,
        ]);
    }
    table
}
