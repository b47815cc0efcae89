//! Stages whose rate changed so much that their mean does not describe them.

use crate::record::{Record, StageRecord, Status};
use crate::report::document::{Document, Tone};
use crate::report::words::Words;
use crate::units::format::rate;

/// The rates at both ends of each stage that was not steady.
pub(in crate::report) fn steadiness(document: &mut Document, record: &Record, words: &dyn Words) {
    // The rate of a failed run ends with its failure.
    if record.status == Status::Failed {
        return;
    }
    let mut label = "NOT steady";
    for stage in &record.stages {
        if let Some(text) = unsteady(stage, words) {
            let of_stage = match record.stages.len() {
                1 => String::new(),
                _ => format!("{}: ", stage.name),
            };
            document.toned(label, format!("{of_stage}{text}"), Tone::Warn);
            label = "";
        }
    }
    if let ("", Some(hint)) = (label, words.for_a_steady_rate()) {
        document.line("", hint);
    }
}

fn unsteady(stage: &StageRecord, words: &dyn Words) -> Option<String> {
    let found = stage.session_loop.steadiness.filter(|found| !found.steady)?;
    let (first, last, unit) = if words.traits().counts_transactions || stage.rows == 0 {
        let (first, last) =
            (found.first_fifth_transactions_per_s, found.last_fifth_transactions_per_s);
        (first, last, "transactions/s")
    } else {
        (found.first_fifth_rows_per_s, found.last_fifth_rows_per_s, "rows/s")
    };
    Some(format!(
        "{} {unit} in the first fifth, {} in the last; the mean describes neither",
        rate(first),
        rate(last)
    ))
}

#[cfg(test)]
mod tests {
    use crate::record::{Status, SteadinessRecord};
    use crate::report::{example_load, example_oltp, example_record, run_text};

    fn rising() -> SteadinessRecord {
        SteadinessRecord {
            intervals: 10,
            first_fifth_transactions_per_s: 34.0,
            last_fifth_transactions_per_s: 287.5,
            first_fifth_rows_per_s: 34_000.0,
            last_fifth_rows_per_s: 287_500.0,
            truncated_share: 0.5,
            steady: false,
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
        use crate::plan::Method;
        let mut record = example_load(&[Method::Insert, Method::Copy]);
        record.stages[1].session_loop.steadiness = Some(rising());
        let text = run_text(&record, "no", usize::MAX);
        assert!(text.contains("NOT steady   load, copy: 34,000 rows/s"), "{text}");
        // A load has no warm-up.
        assert!(!text.contains("--warmup"), "{text}");
    }
}
