//! Stages whose rate changed so much that their mean does not describe them.

use crate::document::{Document, Tone};
use crate::sections::stage_prefix;
use crate::words::Words;
use riops_model::record::{Record, StageRecord, Status};
use riops_model::units::format::{duration_us, percent, rate};

/// The rates at both ends of each stage that was not steady.
pub(crate) fn steadiness(document: &mut Document, record: &Record, words: &dyn Words) {
    // The rate of a failed run ends with its failure.
    if record.status == Status::Failed {
        return;
    }
    let text = |stage| {
        let text = format!("{}{}", stage_prefix(record, stage), unsteady(stage, words)?);
        Some((text, Some(Tone::Warn)))
    };
    let texts: Vec<_> = record.stages.iter().filter_map(text).collect();
    let hint = words.for_a_steady_rate().filter(|_| !texts.is_empty());
    let hint = hint.map(|hint| (hint.to_owned(), None));
    document.toned_lines("NOT steady", texts.into_iter().chain(hint));
}

/// Returns what changed in a stage that was not steady.
fn unsteady(stage: &StageRecord, words: &dyn Words) -> Option<String> {
    let steadiness = stage.session_loop.steadiness.filter(|steadiness| !steadiness.steady)?;
    let by_transactions = words.traits().counts_transactions || stage.rows == 0;
    let (rows_each, unit) = if by_transactions {
        (1.0, "transactions/s")
    } else {
        (stage.rows as f64 / stage.transactions.max(1) as f64, "rows/s")
    };
    if let Some(shift) = steadiness.shift {
        let both = [shift.inside, shift.outside];
        let (inside, outside) = if shift.of_response {
            let [inside, outside] = both.map(duration_us);
            (format!("response time {inside}"), outside)
        } else {
            let [inside, outside] = both.map(|per_s| rate(per_s * rows_each));
            (format!("{inside} {unit}"), outside)
        };
        let (from, to) = (shift.from_s, shift.to_s);
        let when = match (from == 0.0, shift.is_at_end) {
            (true, _) => format!("until {to:.1} s"),
            (false, true) => format!("from {from:.1} s on"),
            (false, false) => format!("from {from:.1} to {to:.1} s"),
        };
        return Some(format!("{inside} {when}, {outside} in the rest; the mean describes neither"));
    }
    if steadiness.low_share > 0.0 {
        let share = percent(steadiness.low_share);
        return Some(format!("less than half of the usual rate in {share} of the intervals"));
    }
    let [first, last] = if by_transactions {
        [steadiness.first_fifth_transactions_per_s, steadiness.last_fifth_transactions_per_s]
    } else {
        [steadiness.first_fifth_rows_per_s, steadiness.last_fifth_rows_per_s]
    }
    .map(rate);
    Some(format!(
        "{first} {unit} in the first fifth, {last} in the last; the mean describes neither"
    ))
}
#[cfg(test)]
mod tests {
    use crate::{example_load, example_oltp, example_record, run_text};
    use riops_model::record::{Status, SteadinessRecord};

    fn rising() -> SteadinessRecord {
        SteadinessRecord {
            intervals: 10,
            first_fifth_transactions_per_s: 34.0,
            last_fifth_transactions_per_s: 287.5,
            first_fifth_rows_per_s: 34_000.0,
            last_fifth_rows_per_s: 287_500.0,
            truncated_share: 0.5,
            ..SteadinessRecord::default()
        }
    }

    #[test]
    fn shows_the_trend_of_a_stage_that_was_not_steady() {
        let mut record = example_record();
        assert!(!run_text(&record, "no", usize::MAX).contains("steady"));
        record.stages[0].session_loop.steadiness = Some(rising());
        let text = run_text(&record, "no", usize::MAX);
        let line = "NOT steady   34,000 rows/s in the first fifth, 287,500 in the last; the mean describes neither\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("a longer --warmup or --duration"), "{text}");
        record.status = Status::Failed;
        assert!(!run_text(&record, "no", usize::MAX).contains("steady"));
        // The headline of oltp counts transactions.
        let mut record = example_oltp();
        record.stages[0].session_loop.steadiness = Some(rising());
        let text = run_text(&record, "no", usize::MAX);
        assert!(text.contains("34.0 transactions/s in the first fifth, 288 in the last"), "{text}");
    }

    #[test]
    fn names_the_stage_if_there_are_several() {
        use riops_model::plan::Method;
        let mut record = example_load(&[Method::Insert, Method::Copy]);
        record.stages[1].session_loop.steadiness = Some(rising());
        let text = run_text(&record, "no", usize::MAX);
        assert!(text.contains("NOT steady   load, copy: 34,000 rows/s"), "{text}");
        // A load has no warm-up.
        assert!(!text.contains("--warmup"), "{text}");
    }
}
