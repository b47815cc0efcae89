//! The runs of an experiment: which are planned, and how they ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::definition::{Cell, Experiment, Goal, Search};
use crate::plan::{Plan, Schedule};
use crate::record::{Record, Status};

/// Tags of the runs of an experiment.
pub mod tag {
    /// Id of the experiment.
    pub const EXPERIMENT: &str = "experiment";
    /// The values of the axes.
    pub const CELL: &str = "cell";
    /// Number of the block, from 1. Comparisons use it.
    pub const BLOCK: &str = "block";
    /// Number of sessions, or the rate, of a search.
    pub const LEVEL: &str = "level";
    /// Number of the run of the cell within its block, from 1; absent if there is only one.
    pub const TURN: &str = "turn";
}

/// One planned run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Index of the cell.
    pub cell: usize,
    /// Number of sessions, or the rate, of a search.
    pub level: Option<f64>,
    /// Number of the block, from 1.
    pub block: u32,
    /// Number of the run of the cell within its block, from 1.
    pub turn: u32,
}

/// A run that could not be completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What was run.
    pub task: Task,
    /// Why it failed.
    pub error: String,
}

/// A run that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// What was run.
    pub task: Task,
    /// The record, or why the run failed.
    pub result: Result<Box<Record>, String>,
}

impl Finished {
    /// Returns the record if its figures can be used: it is complete and valid.
    #[must_use]
    pub fn usable(&self) -> Option<&Record> {
        let record = self.result.as_ref().ok()?;
        (record.status == Status::Done && record.verdict.valid).then_some(record)
    }
}

/// An experiment and what is known about it: all that reports need.
#[derive(Debug, Clone)]
pub struct Study {
    /// Its definition.
    pub experiment: Experiment,
    /// The runs that ended, oldest first.
    pub finished: Vec<Finished>,
}

impl Experiment {
    /// Returns the values of a cell with their names: `batch=10 sessions=8`; `base` without axes.
    #[must_use]
    pub fn cell_name(&self, cell: &Cell) -> String {
        if self.axes.is_empty() {
            return "base".to_owned();
        }
        let pairs = self.axes.iter().zip(&cell.values);
        let pairs = pairs.map(|(axis, value)| format!("{}={value}", axis.name));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// Returns the name of a task: that of its cell, and the level of a search.
    #[must_use]
    pub fn task_name(&self, task: &Task) -> String {
        let cell = self.cells.get(task.cell).map(|cell| self.cell_name(cell)).unwrap_or_default();
        match (task.level, &self.goal) {
            (Some(level), Goal::Saturation(settings)) => {
                let name = match settings.search {
                    Search::Sessions => "sessions",
                    Search::Rate => "rate",
                };
                let level = format!("{name}={level}");
                if self.axes.is_empty() { level } else { format!("{cell} {level}") }
            }
            _ => cell,
        }
    }

    /// Returns the plan of a task, with the tags by which its run is found again; `None` for a task of another
    /// experiment.
    #[must_use]
    pub fn plan(&self, task: &Task) -> Option<Plan> {
        let cell = self.cells.get(task.cell)?;
        let mut plan = cell.plan.clone();
        // All cells of a block use the same keys: this removes a difference between them.
        plan.seed = self.seed.wrapping_add(u64::from(task.block - 1));
        plan.label.get_or_insert_with(|| self.name.clone());
        plan.tags.extend(self.tags(task));
        if let (Some(level), Goal::Saturation(settings)) = (task.level, &self.goal) {
            match settings.search {
                Search::Sessions => set_sessions(&mut plan, level),
                Search::Rate => plan.schedule = Schedule::Constant { per_s: level },
            }
        }
        Some(plan)
    }

    fn tags(&self, task: &Task) -> BTreeMap<String, String> {
        let cell = self.cells.get(task.cell).map(|cell| self.cell_name(cell)).unwrap_or_default();
        let mut tags = BTreeMap::from([
            (tag::EXPERIMENT.to_owned(), self.id.clone()),
            (tag::CELL.to_owned(), cell),
            (tag::BLOCK.to_owned(), task.block.to_string()),
        ]);
        if let Some(level) = task.level {
            tags.insert(tag::LEVEL.to_owned(), level.to_string());
        }
        if task.turn > 1 {
            tags.insert(tag::TURN.to_owned(), task.turn.to_string());
        }
        tags
    }

    /// Returns the task of a stored run; `None` if the run does not belong to this experiment.
    #[must_use]
    pub fn task_of(&self, record: &Record) -> Option<Task> {
        let tag = |key: &str| record.tags.get(key).map(String::as_str);
        if tag(tag::EXPERIMENT) != Some(&self.id) {
            return None;
        }
        let name = tag(tag::CELL)?;
        Some(Task {
            cell: self.cells.iter().position(|cell| self.cell_name(cell) == name)?,
            level: tag(tag::LEVEL).and_then(|level| level.parse().ok()),
            block: tag(tag::BLOCK)?.parse().ok()?,
            turn: tag(tag::TURN).map_or(Some(1), |turn| turn.parse().ok())?,
        })
    }
}

/// Sets the number of sessions. A plan with fewer sessions than workers is invalid.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a search tries whole numbers"
)]
fn set_sessions(plan: &mut Plan, level: f64) {
    plan.sessions = level as u32;
    plan.workers = plan.workers.min(plan.sessions);
}
