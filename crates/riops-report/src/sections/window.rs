//! Figures that do not cover exactly the measurement: mostly of short runs by count.

use crate::document::Document;
use riops_model::figure::Summary;
use riops_model::plan::Stop;
use riops_model::record::counters_cover;
use riops_model::units::format::{count, duration_us, number_of, percent};

/// Transactions of the warm-up that occupied less than this share of the session time change the rate by less
/// than repeated runs differ.
const WARMUP_SHARE: f64 = 0.01;

/// Differences between what was asked, what was measured, and what the counters cover.
pub(crate) fn window(document: &mut Document, summary: &Summary<'_>) {
    let lines = [warmup(summary), more_rows(summary), counters(summary)];
    document.lines("window", lines.into_iter().flatten());
}

/// Transactions of the warm-up that were in flight at the start of a run by count.
fn warmup(summary: &Summary<'_>) -> Option<String> {
    let stage = summary.stage;
    let warmup = stage.session_loop.warmup_in_flight?;
    let available_s = stage.seconds * f64::from(stage.sessions);
    let share = Some(warmup.occupied_s / available_s).filter(|&share| share >= WARMUP_SHARE)?;
    let (transactions, share) =
        (number_of(warmup.transactions, "transaction"), percent(share.min(1.0)));
    Some(format!(
        "{transactions} of the warm-up occupied {share} of the session time; the rate is too low by up to that share"
    ))
}

/// Returns the rows beyond the planned number: transactions in flight at the limit count.
fn more_rows(summary: &Summary<'_>) -> Option<String> {
    let stage = summary.stage;
    let Stop::Rows(rows) = summary.record.plan.stop else {
        return None;
    };
    let more = count(stage.rows.checked_sub(rows).filter(|&more| more > 0)?);
    let all = number_of(stage.rows, "row");
    Some(format!(
        "{all} measured, {more} more than planned: transactions in flight at the limit count"
    ))
}

/// Returns the time that the counters of CPU, device and database cover, if it differs from the measurement.
fn counters(summary: &Summary<'_>) -> Option<String> {
    let stage = summary.stage;
    let counters_s = stage.counters_s?;
    let [covered, measured] = [counters_s, stage.seconds].map(|seconds| duration_us(seconds * 1e6));
    (!counters_cover(counters_s, stage.seconds)).then(|| {
        format!(
            "the counters of CPU, device and database cover {covered}, the measurement {measured}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{Record, WarmupRecord};

    fn lines(change: impl Fn(&mut Record)) -> Vec<String> {
        let mut record = example_record();
        record.stages[0].counters_s = Some(record.stages[0].seconds * 1.05);
        change(&mut record);
        let summary = Summary::first_stage(&record).unwrap();
        [warmup(&summary), more_rows(&summary), counters(&summary)].into_iter().flatten().collect()
    }

    #[test]
    fn shows_only_differences_that_change_a_figure() {
        assert_eq!(lines(|_| {}), [""; 0]);
        let warmup = |occupied_s| {
            lines(move |record| {
                (record.stages[0].seconds, record.stages[0].sessions) = (10.0, 4);
                record.stages[0].counters_s = None;
                let warmup = WarmupRecord { transactions: 4, occupied_s };
                record.stages[0].session_loop.warmup_in_flight = Some(warmup);
            })
        };
        assert_eq!(warmup(0.39), [""; 0]);
        assert_eq!(
            warmup(4.0),
            [
                "4 transactions of the warm-up occupied 10% of the session time; the rate is too low by up to that share"
            ]
        );
        let more = lines(|record| {
            record.plan.stop = Stop::Rows(1_000);
            record.stages[0].rows = 1_010;
        });
        assert_eq!(
            more,
            [
                "1,010 rows measured, 10 more than planned: transactions in flight at the limit count"
            ]
        );
        let differing = lines(|record| {
            (record.stages[0].seconds, record.stages[0].counters_s) = (0.004, Some(0.01));
        });
        assert_eq!(
            differing,
            ["the counters of CPU, device and database cover 10.0 ms, the measurement 4.00 ms"]
        );
    }
}
