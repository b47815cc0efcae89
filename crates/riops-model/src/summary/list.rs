//! A list of stored runs or of their stages, and its JSON.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::sort::Sort;
use super::{RunSummary, StageSummary};

/// One line of the list: a run, or one of its stages.
#[derive(Debug, Clone, Copy)]
pub struct RunLine<'a> {
    /// The run.
    pub run: &'a RunSummary,
    /// Its stage.
    pub stage: Option<&'a StageSummary>,
}

/// Returns a line for each run, or for each stage if `stages` are given. Stages have figures of their own, by which
/// they are sorted if the list is.
pub fn run_lines<'a>(
    runs: &'a [RunSummary],
    stages: Option<&'a [StageSummary]>,
    sort: Sort,
) -> Vec<RunLine<'a>> {
    let Some(stages) = stages else {
        return runs.iter().map(|run| RunLine { run, stage: None }).collect();
    };
    let by_run = stages_by_run(stages);
    let lines = runs.iter().flat_map(|run| {
        let own = by_run.get(run.id.as_str()).into_iter().flatten();
        own.map(move |&stage| RunLine { run, stage: Some(stage) })
    });
    let mut lines: Vec<_> = lines.collect();
    let figure = |line: &RunLine<'_>| line.stage?.figure(sort.column());
    // Stable: stages with the same figure, or all without one, keep the order of their runs.
    lines.sort_by(|a, b| match (figure(a), figure(b)) {
        (Some(a), Some(b)) if sort.is_descending() => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    lines
}

/// The stages of each run, by its id.
pub fn stages_by_run(stages: &[StageSummary]) -> BTreeMap<&str, Vec<&StageSummary>> {
    let mut by_run: BTreeMap<&str, Vec<&StageSummary>> = BTreeMap::new();
    for stage in stages {
        by_run.entry(&stage.run_id).or_default().push(stage);
    }
    by_run
}

/// The columns of a run that distinguish its stages, as in the view `stage_results`, with their names there.
const OF_RUN: [(&str, &str); 13] = [
    ("started_at", "run_started_at"),
    ("workload", "workload"),
    ("title", "title"),
    ("label", "label"),
    ("tags", "tags"),
    ("status", "status"),
    ("valid", "valid"),
    ("marks", "marks"),
    ("server", "server"),
    ("client_host", "client_host"),
    ("rate_per_s", "rate_per_s"),
    ("update_percent", "requested_update_percent"),
    ("distribution", "distribution"),
];

impl RunLine<'_> {
    /// A column of the stage, or of the run.
    pub fn numeric_value(&self, column: &str) -> Option<f64> {
        self.stage.map_or_else(|| self.run.numeric_value(column), |stage| stage.figure(column))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let mut line = serde_json::to_value(self.run)?;
        let Some(stage) = self.stage else {
            return Ok(line);
        };
        let of_run = |(column, name): (&str, &str)| {
            Some((name.to_owned(), line.get_mut(column).map(Value::take)?))
        };
        let mut columns: Map<String, Value> = OF_RUN.into_iter().filter_map(of_run).collect();
        if let Value::Object(stage) = serde_json::to_value(stage)? {
            columns.extend(stage);
        }
        Ok(columns.into())
    }
}

impl Serialize for RunLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().map_err(S::Error::custom)?.serialize(serializer)
    }
}
