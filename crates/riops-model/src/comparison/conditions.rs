//! Conditions measured in addition to the figures: the state of dataset and caches, maintenance of the server, other
//! load, and transactions that did not succeed. A difference in a condition may explain, or contradict, a difference
//! in the figures.

use crate::record::{ConditionRecord, MachineFacts, Record, StageRecord};
use crate::units::format::{duration_us, percent};

/// Returns the name of a property, with the name of the stage if there are several.
pub(super) fn of_stage(several: bool, stage: &str, name: &str) -> String {
    if several { format!("{stage}: {name}") } else { name.to_owned() }
}

/// A measured condition.
struct Condition {
    name: &'static str,
    value: fn(&Record, &StageRecord) -> Option<f64>,
    /// Smallest difference that is shown: repeated runs differ by less.
    least: f64,
    text: fn(&MachineFacts, f64) -> String,
}

/// Returns a condition that is a share and is shown if it differs by at least five points.
const fn share(name: &'static str, value: fn(&Record, &StageRecord) -> Option<f64>) -> Condition {
    Condition { name, value, least: 0.05, text: |_, share| percent(share) }
}

/// Returns a share of all processors, which is shown in the unit of every CPU use.
const fn cpu(name: &'static str, value: fn(&Record, &StageRecord) -> Option<f64>) -> Condition {
    Condition { text: MachineFacts::cpu_text, ..share(name, value) }
}

/// Returns a condition that is a number of events in a stage. A single event in any run may be the reason.
const fn event_count(
    name: &'static str,
    value: fn(&Record, &StageRecord) -> Option<f64>,
) -> Condition {
    Condition { name, value, least: f64::MIN_POSITIVE, text: |_, value| decimal(value) }
}

const CONDITIONS: [Condition; 13] = [
    share("dead rows before the run", |record, _| condition(record)?.dead_share()),
    Condition {
        name: "order of the rows (correlation)",
        value: |record, _| condition(record)?.order_correlation,
        least: 0.1,
        text: |_, value| decimal(value),
    },
    share("neighboring rows in one block", |record, _| condition(record)?.neighbors_share),
    Condition {
        name: "size, relative to that after the preparation",
        value: |record, _| condition(record)?.growth(),
        least: 0.1,
        text: |_, value| decimal(value),
    },
    share("hits in shared buffers", |_, stage| stage.io.as_ref()?.hit_ratio),
    event_count("checkpoints", |_, stage| {
        let checkpoints = stage.database.as_ref()?.checkpoints?;
        Some((checkpoints.timed + checkpoints.requested) as f64)
    }),
    event_count("vacuums", |_, stage| Some(stage.database.as_ref()?.row_versions?.vacuums as f64)),
    cpu("CPU used by other processes", |_, stage| stage.neighbors.as_ref()?.all_cpu_share()),
    cpu("CPU stolen by the hypervisor", |_, stage| stage.neighbors.as_ref()?.steal_share),
    Condition {
        name: "CPU time of a fixed piece of work (processor speed)",
        value: |_, stage| stage.probes.as_ref()?.processor_work_us(),
        least: 0.5,
        text: |_, us| duration_us(us),
    },
    Condition {
        least: 0.01,
        ..share("transactions that did not succeed", |_, stage| stage.missing_share())
    },
    Condition {
        least: 0.01,
        ..share("errors per transaction", |record, stage| {
            // Other tools do not count the errors that they retried.
            let is_known = record.imported.is_none() || stage.session_loop.retries == 0;
            let errors = stage.session_loop.error_count() as f64;
            (is_known && stage.transactions > 0).then(|| errors / stage.transactions as f64)
        })
    },
    share("longest stall, as a share of the stage", |_, stage| {
        let pause_s = stage.session_loop.longest_pause_s?;
        (stage.seconds > 0.0).then(|| pause_s / stage.seconds)
    }),
];

fn condition(record: &Record) -> Option<&ConditionRecord> {
    record.target.dataset.as_ref()?.condition.as_ref()
}

fn decimal(value: f64) -> String {
    let digits = if (0.0..0.01).contains(&value.abs()) && value != 0.0 { 4 } else { 2 };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A condition whose means over the runs of two groups differ.
pub(super) struct Differing {
    pub(super) name: String,
    pub(super) a: String,
    pub(super) b: String,
    /// Whether it is more in B.
    pub(super) is_more: bool,
}

/// Returns the conditions whose means over the runs of two groups differ.
pub(super) fn conditions(a: &[&Record], b: &[&Record]) -> Vec<Differing> {
    let Some(first) = a.first() else {
        return Vec::new();
    };
    let several = first.stages.len() > 1;
    let mut changes = Vec::new();
    for (position, stage) in first.stages.iter().enumerate() {
        for condition in &CONDITIONS {
            let mean = |runs: &[&Record]| mean(condition, runs, position);
            let Some((in_a, in_b)) = mean(a).zip(mean(b)) else {
                continue;
            };
            let [a, b] = [in_a, in_b].map(|value| (condition.text)(&first.client.machine, value));
            if (in_a - in_b).abs() >= condition.least && a != b {
                let name = of_stage(several, &stage.name, condition.name);
                changes.push(Differing { name, a, b, is_more: in_b > in_a });
            }
        }
    }
    changes
}

/// The mean of a condition over runs; `None` if it is not known of one.
fn mean(condition: &Condition, runs: &[&Record], position: usize) -> Option<f64> {
    let value = |run: &&Record| (condition.value)(run, run.stages.get(position)?);
    let values: Vec<f64> = runs.iter().map(value).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example::example_record;
    use crate::record::{Checkpoints, DatabaseUse, Outcomes};

    #[test]
    fn conditions_that_differ_are_named() {
        let with = |checkpoints: u64, failed: u64, dead_rows: u64| {
            let mut record = example_record();
            let dataset = record.target.dataset.as_mut().unwrap();
            let condition =
                ConditionRecord { dead_rows, live_rows: 800, ..ConditionRecord::default() };
            dataset.condition = Some(condition);
            let stage = &mut record.stages[0];
            let checkpoints = Checkpoints { timed: checkpoints, ..Checkpoints::default() };
            stage.database =
                Some(DatabaseUse { checkpoints: Some(checkpoints), ..DatabaseUse::default() });
            let (attempted, succeeded) = (1_000, 1_000 - failed);
            stage.transactions = succeeded;
            stage.session_loop.outcomes =
                Some(Outcomes { attempted, succeeded, failed, unknown: 0 });
            record
        };
        let (quiet, other) = (with(0, 0, 0), with(2, 50, 200));
        let differences = conditions(&[&quiet], &[&other]);
        let lines: Vec<_> = differences
            .iter()
            .map(|difference| format!("{} {} {}", difference.name, difference.a, difference.b))
            .collect();
        assert_eq!(
            lines,
            [
                "dead rows before the run 0.0% 20%",
                "checkpoints 0 2",
                "transactions that did not succeed 0.0% 5.0%"
            ]
        );
        assert_eq!(conditions(&[&quiet], &[&with(0, 5, 20)]).len(), 0);
        // A checkpoint in two of four runs is a difference.
        let some = [&quiet, &with(1, 0, 0), &quiet, &with(1, 0, 0)];
        let differences = conditions(&some, &[&quiet; 4]);
        let [only] = differences.as_slice() else { panic!("{} conditions", differences.len()) };
        assert_eq!((&*only.name, &*only.a, &*only.b), ("checkpoints", "0.5", "0"));
        assert!(!only.is_more);
        // Mean of the runs of a group.
        assert_eq!(conditions(&[&quiet], &[&quiet, &other])[1].b, "1");
    }
}
