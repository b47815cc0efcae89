//! The executed mix of transactions, and stages with too few transactions.

use crate::document::{Document, Tone};
use crate::sections::stage_prefix;
use riops_model::record::{MixRecord, Record, StageRecord};
use riops_model::units::format::{joined, number_of, percent};

/// With fewer transactions, the 99th percentile is the longest one.
const TRANSACTIONS_MIN: u64 = 100;

/// The requested share of an operation beside the executed one, of each stage.
pub(crate) fn mix(document: &mut Document, record: &Record) {
    let stages = record.stages.iter();
    let mixes = stages.filter_map(|stage| Some((stage, stage.session_loop.mix.as_ref()?)));
    let Some((_, MixRecord { operation, unit, asked_percent, .. })) = mixes.clone().next() else {
        return;
    };
    let executed = mixes.clone().map(|(_, mix)| percent(mix.executed_percent / 100.0));
    let executed = joined(executed, ", ");
    let text = format!("configured {asked_percent}% of the {unit}, executed {executed}");
    document.line(&format!("{operation}s"), text);
    for (stage, _) in mixes.filter(|(_, mix)| !mix.is_kept() && !mix.is_missed()) {
        let transactions = number_of(stage.transactions, "transaction");
        let name = stage_prefix(record, stage);
        document.line("", format!("{name}too short for this mix: {transactions}"));
    }
}

/// The stages with too few transactions for percentiles.
pub(crate) fn few_transactions(document: &mut Document, record: &Record) {
    let few = |stage: &&StageRecord| {
        stage.session_loop.service_us.is_some() && stage.transactions < TRANSACTIONS_MIN
    };
    let text = |stage: &StageRecord| {
        let (name, transactions) =
            (stage_prefix(record, stage), number_of(stage.transactions, "transaction"));
        let text = format!(
            "{name}{transactions} are too few for percentiles, and to judge whether the rate was steady (fewer than {TRANSACTIONS_MIN})"
        );
        (text, Some(Tone::Warn))
    };
    document.toned_lines("percentiles", record.stages.iter().filter(few).map(text));
}

#[cfg(test)]
mod tests {
    use crate::{example_record, run_text};
    use riops_model::record::{MixRecord, Record};

    fn with(executed: &[(f64, u64)]) -> Record {
        let mut record = example_record();
        let stage = record.stages.remove(0);
        for (position, &(executed_percent, transactions)) in executed.iter().enumerate() {
            let mut stage = stage.clone();
            stage.name = format!("rows, batch {}", 10 * position + 10);
            stage.transactions = transactions;
            stage.session_loop.mix = Some(MixRecord {
                operation: "update".to_owned(),
                unit: "rows".to_owned(),
                asked_percent: 10.0,
                executed_percent,
                chance_points: 3_000.0 / transactions as f64,
            });
            record.stages.push(stage);
        }
        record
    }

    #[test]
    fn shows_the_executed_share_of_a_mix() {
        let text = run_text(&with(&[(9.92, 12_000)]), "no", usize::MAX);
        assert!(
            text.contains("updates      configured 10% of the rows, executed 9.9%\n"),
            "{text}"
        );
        assert!(!text.contains("too short") && !text.contains("too few"), "{text}");
        let text = run_text(&with(&[(0.0, 24)]), "no", usize::MAX);
        assert!(text.contains("executed 0.0%\n"), "{text}");
        assert!(text.contains("too short for this mix: 24 transactions\n"), "{text}");
        let line = "percentiles  24 transactions are too few for percentiles, and to judge whether the rate was steady (fewer than 100)\n";
        assert!(text.contains(line), "{text}");
        assert!(!run_text(&example_record(), "no", usize::MAX).contains("configured"));
    }

    #[test]
    fn names_each_stage_that_is_too_short() {
        let text = run_text(&with(&[(10.0, 12_000), (0.0, 99), (20.0, 500)]), "no", usize::MAX);
        assert!(text.contains("configured 10% of the rows, executed 10%, 0.0%, 20%\n"), "{text}");
        assert!(text.contains("rows, batch 20: too short for this mix: 99 transactions"), "{text}");
        assert!(
            text.contains("rows, batch 20: 99 transactions are too few for percentiles"),
            "{text}"
        );
        // 500 transactions do not explain 20 %, which makes the run invalid.
        assert!(!text.contains("batch 30: too short"), "{text}");
    }
}
