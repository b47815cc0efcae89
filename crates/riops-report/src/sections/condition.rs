//! The state of a dataset before the run, where it differs from the fresh dataset.

use crate::document::Document;
use riops_model::figure::Summary;
use riops_model::record::{ConditionRecord, DatasetRecord};
use riops_model::units::format::{percent, rate};

/// Differences from this on are shown: they change the blocks per row, and with them the result, by about as
/// much. Runs on the same dataset often differ by less.
const FRAGMENTED_SHARE: f64 = 0.1;

/// What differs from the dataset after its preparation, and how to prepare it again.
pub(crate) fn condition(document: &mut Document, summary: &Summary<'_>) {
    if let Some(dataset) = &summary.record.target.dataset
        && let Some(condition) = &dataset.condition
        && let differences = differences(condition)
        && !differences.is_empty()
    {
        let differences = differences.join(", ");
        document.line("", format!("dataset fragmented by earlier runs: {differences}"));
        document.line("", advice(dataset, condition, summary));
    }
}

fn differences(now: &ConditionRecord) -> Vec<String> {
    let mut differences = Vec::new();
    let fresh = now.fresh.unwrap_or_default();
    if let Some((now, fresh)) = now.order_correlation.zip(fresh.order_correlation)
        && (now - fresh).abs() >= FRAGMENTED_SHARE
    {
        differences.push(format!("correlation {now:.2} (fresh {fresh:.2})"));
    }
    if let Some((now, fresh)) = now.neighbors_share.zip(fresh.neighbors_share)
        && (now - fresh).abs() >= FRAGMENTED_SHARE
    {
        let (now, fresh) = (percent(now), percent(fresh));
        differences.push(format!("{now} of neighboring keys in the same block (fresh {fresh})"));
    }
    if let Some(growth) = now.growth().filter(|growth| (growth - 1.0).abs() >= FRAGMENTED_SHARE) {
        differences.push(format!("{growth:.1} × its size after preparing"));
    }
    if let Some(dead) = now.dead_share().filter(|&dead| dead >= FRAGMENTED_SHARE) {
        differences.push(format!("{} dead rows", percent(dead)));
    }
    if let (false, Some((updates, hot))) = (differences.is_empty(), now.updates_per_row()) {
        differences.push(format!(
            "{} updates per row, {} of them HOT",
            rate(updates),
            percent(hot)
        ));
    }
    differences
}

fn advice(dataset: &DatasetRecord, now: &ConditionRecord, summary: &Summary<'_>) -> String {
    let name = dataset.parameters.traits().name;
    if now.fresh.is_none() {
        return "its state after preparing is unknown: prepare the tables again for comparable results"
            .to_owned();
    }
    let server = if summary.record.target.embedded { "" } else { " -d …" };
    format!("for a fresh dataset: riops prepare {name} … --recreate{server}")
}

#[cfg(test)]
mod tests {
    use crate::{example_record, run_text};
    use riops_model::record::{ConditionRecord, FreshCondition, Record};

    fn with(change: impl Fn(&mut ConditionRecord)) -> Record {
        let mut condition = ConditionRecord {
            order_correlation: Some(0.99),
            neighbors_share: Some(0.98),
            bytes: Some(1_000_000),
            live_rows: 900,
            dead_rows: 9,
            fresh: Some(FreshCondition {
                order_correlation: Some(1.0),
                neighbors_share: Some(0.98),
                bytes: Some(1_000_000),
            }),
            ..ConditionRecord::default()
        };
        change(&mut condition);
        let mut record = example_record();
        record.target.dataset.as_mut().unwrap().condition = Some(condition);
        record
    }

    fn text(change: impl Fn(&mut ConditionRecord)) -> String {
        run_text(&with(change), "no", usize::MAX)
    }

    #[test]
    fn shows_only_what_differs_from_the_fresh_dataset() {
        assert!(!text(|_| {}).contains("fragmented"));
        let aged = text(|now| {
            now.order_correlation = Some(0.5);
            now.bytes = Some(1_900_000);
            (now.live_rows, now.dead_rows) = (880, 120);
            (now.updated_rows, now.hot_updated_rows) = (Some(2_640), Some(660));
        });
        let line = "dataset fragmented by earlier runs: correlation 0.50 (fresh 1.00), 1.9 × its size after preparing, 12% dead rows, 3.00 updates per row, 25% of them HOT\n";
        assert!(aged.contains(line), "{aged}");
        assert!(aged.contains("riops prepare rows … --recreate\n"), "{aged}");
        let clustered = text(|now| now.neighbors_share = Some(0.2));
        let line = "dataset fragmented by earlier runs: 20% of neighboring keys in the same block (fresh 98%)\n";
        assert!(clustered.contains(line), "{clustered}");
    }

    #[test]
    fn tables_without_fresh_values_show_only_their_dead_rows() {
        let adopted = |dead_rows| {
            text(move |now| {
                (now.fresh, now.dead_rows, now.live_rows) = (None, dead_rows, 800);
            })
        };
        assert!(!adopted(10).contains("fragmented"));
        let aged = adopted(200);
        assert!(aged.contains("dataset fragmented by earlier runs: 20% dead rows\n"), "{aged}");
        assert!(!aged.contains("--recreate"), "{aged}");
    }
}
