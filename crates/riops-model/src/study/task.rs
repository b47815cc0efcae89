//! The runs of an experiment: which are planned, in which order, and how they ended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use indexmap::IndexMap;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::definition::{Cell, Experiment, Order};
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
    /// The load of a search.
    pub const LEVEL: &str = "level";
    /// Number of the run of the cell within its block, from 1; absent if there is only one.
    pub const TURN: &str = "turn";
}

/// The load of one run of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A closed loop of this number of sessions.
    Sessions(u32),
    /// An open loop.
    Rate {
        /// Transactions per second.
        per_s: f64,
        /// Number of sessions; absent: the number of the cell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sessions: Option<u32>,
    },
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sessions(sessions) => write!(formatter, "sessions={sessions}"),
            Self::Rate { per_s, sessions: None } => write!(formatter, "rate={per_s}"),
            Self::Rate { per_s, sessions: Some(sessions) } => {
                write!(formatter, "rate={per_s} sessions={sessions}")
            }
        }
    }
}

impl FromStr for Level {
    type Err = ();

    /// Parses the text of `Display`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let value = |name: &str| {
            let words = text.split(' ').filter_map(|word| word.split_once('='));
            words.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
        };
        let sessions = value("sessions").map(str::parse).transpose().map_err(|_| ())?;
        match (value("rate"), sessions) {
            (Some(per_s), sessions) => {
                Ok(Self::Rate { per_s: per_s.parse().map_err(|_| ())?, sessions })
            }
            (None, Some(sessions)) => Ok(Self::Sessions(sessions)),
            (None, None) => Err(()),
        }
    }
}

/// One planned run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Index of the cell.
    pub cell: usize,
    /// The load of a search; absent: the load of the cell.
    pub level: Option<Level>,
    /// Number of the block, from 1.
    pub block: u32,
    /// Number of the run of the cell within its block, from 1.
    pub turn: u32,
}

/// A task as the key of a map. The level is stored as text, because a rate cannot be a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TaskKey {
    cell: usize,
    level: Option<String>,
    block: u32,
    turn: u32,
}

impl TaskKey {
    /// The common properties of the runs of a cell in all blocks.
    fn of_any_block(self) -> Self {
        Self { block: 0, turn: 0, ..self }
    }
}

impl Task {
    fn key(&self) -> TaskKey {
        let Self { cell, block, turn, .. } = *self;
        TaskKey { cell, level: self.level.map(|level| level.to_string()), block, turn }
    }
}

/// A run that could not be completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The task.
    pub task: Task,
    /// Why it failed.
    pub error: String,
}

/// A run that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The task.
    pub task: Task,
    /// The record, or why the run failed.
    pub result: Result<Box<Record>, String>,
}

impl Finished {
    /// A run that ended with this result. A record that ended with an error is a failure.
    pub fn new(task: Task, result: Result<Box<Record>, String>) -> Self {
        let result = result.and_then(|record| match (record.status, &record.failure) {
            (Status::Failed, Some(failure)) => Err(failure.clone()),
            (Status::Failed, None) => Err("failed".to_owned()),
            (Status::Done | Status::Interrupted, _) => Ok(record),
        });
        Self { task, result }
    }

    /// Whether the run is not valid, was disturbed, or its rate was not steady.
    pub fn is_disturbed(&self) -> bool {
        let Ok(record) = &self.result else {
            return false;
        };
        let mut loops = record.stages.iter().map(|stage| &stage.session_loop);
        !record.verdict.valid
            || record.is_disturbed()
            || loops.any(|session_loop| {
                session_loop.steadiness.is_some_and(|steadiness| !steadiness.steady)
            })
    }

    /// Returns the record if its figures can be used: it is valid.
    pub fn usable(&self) -> Option<&Record> {
        let record = self.result.as_ref().ok()?;
        record.verdict.valid.then_some(record)
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

impl Study {
    /// Joins an experiment, its stored runs in the order of their starts, and its stored failures. Interrupted runs
    /// are ignored: they are repeated.
    pub fn load(experiment: Experiment, records: Vec<Record>, failures: Vec<Failure>) -> Self {
        let cells = experiment.cells_by_name();
        let mut finished: IndexMap<TaskKey, Finished> = IndexMap::new();
        for record in records {
            let Some(task) = experiment.task_in(&cells, &record.tags) else { continue };
            if record.status == Status::Interrupted {
                continue;
            }
            let run = Finished::new(task, Ok(Box::new(record)));
            // The failed run was repeated.
            if finished.get(&task.key()).is_some_and(|known| known.result.is_err()) {
                finished.shift_remove(&task.key());
            }
            // Two processes can only have measured the same task if the store was copied or merged.
            finished.entry(task.key()).or_insert(run);
        }
        for Failure { task, error } in failures {
            // The record of a run that failed is one of the runs above.
            finished.entry(task.key()).or_insert_with(|| Finished::new(task, Err(error)));
        }
        drop(cells);
        Self { experiment, finished: finished.into_values().collect() }
    }

    /// Returns the planned tasks that need a run: they have not ended, and their cell did not fail in another block.
    pub(super) fn unsettled(&self, planned: Vec<Task>) -> impl Iterator<Item = Task> {
        let ended: HashSet<TaskKey> =
            self.finished.iter().map(|finished| finished.task.key()).collect();
        let failed = self.finished.iter().filter(|finished| finished.result.is_err());
        let failed: HashSet<_> =
            failed.map(|finished| finished.task.key().of_any_block()).collect();
        planned.into_iter().filter(move |task| {
            !ended.contains(&task.key()) && !failed.contains(&task.key().of_any_block())
        })
    }

    /// Returns the runs that failed.
    pub fn failures(&self) -> Vec<Failure> {
        let failed = self.finished.iter().filter_map(|finished| {
            let error = finished.result.as_ref().err()?.clone();
            Some(Failure { task: finished.task, error })
        });
        failed.collect()
    }
}

impl Experiment {
    /// Returns the values of a cell with their names: `batch=10 sessions=8`; `base` without axes.
    pub fn cell_name(&self, cell: &Cell) -> String {
        if self.axes.is_empty() {
            return "base".to_owned();
        }
        let pairs = self.axes.iter().zip(&cell.values);
        let pairs = pairs.map(|(axis, value)| format!("{}={value}", axis.name));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// Returns the name of a task: the name of its cell, and the level of a search.
    pub fn task_name(&self, task: &Task) -> String {
        let cell = self.cells.get(task.cell).map(|cell| self.cell_name(cell)).unwrap_or_default();
        match task.level {
            None => cell,
            Some(level) if self.axes.is_empty() => level.to_string(),
            Some(level) => format!("{cell} {level}"),
        }
    }

    /// Returns the plan of a task, with the tags by which its run is found again; `None` for a task of another
    /// experiment.
    pub fn plan(&self, task: &Task) -> Option<Plan> {
        let cell = self.cells.get(task.cell)?;
        let mut plan = cell.plan.clone();
        // All cells of a block use the same keys: this removes a difference between them.
        plan.seed = self.seed.wrapping_add(u64::from(task.block - 1));
        plan.label.get_or_insert_with(|| self.name.clone());
        plan.tags.extend(self.tags(task));
        match task.level {
            None => (),
            Some(Level::Sessions(sessions)) => {
                set_sessions(&mut plan, sessions);
                plan.thresholds.retain(|threshold| !threshold.requires_rate());
                if let Some(limit) = &mut plan.latency_limit {
                    // Nothing can be late without a rate.
                    limit.skip = false;
                }
            }
            Some(Level::Rate { per_s, sessions }) => {
                plan.schedule = Schedule::Constant { per_s };
                if let Some(sessions) = sessions {
                    set_sessions(&mut plan, sessions);
                }
            }
        }
        Some(plan)
    }

    fn tags(&self, task: &Task) -> BTreeMap<String, String> {
        let cell = self.cells.get(task.cell).map(|cell| self.cell_name(cell)).unwrap_or_default();
        let mut tags = BTreeMap::from([
            (tag::EXPERIMENT.to_owned(), self.id.to_string()),
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
    pub fn task_of(&self, record: &Record) -> Option<Task> {
        self.task_of_tags(&record.tags)
    }

    /// Returns the task of a run with these tags; `None` if the run does not belong to this experiment.
    pub fn task_of_tags(&self, tags: &BTreeMap<String, String>) -> Option<Task> {
        self.task_in(&self.cells_by_name(), tags)
    }

    /// The indices of the cells.
    fn cells_by_name(&self) -> HashMap<String, usize> {
        let names = self.cells.iter().map(|cell| self.cell_name(cell));
        // If several cells have one name, the first one counts.
        names.enumerate().map(|(at, name)| (name, at)).rev().collect()
    }

    fn task_in(
        &self,
        cells: &HashMap<String, usize>,
        tags: &BTreeMap<String, String>,
    ) -> Option<Task> {
        let tag = |key: &str| tags.get(key).map(String::as_str);
        if tag(tag::EXPERIMENT) != Some(&self.id) {
            return None;
        }
        Some(Task {
            cell: *cells.get(tag(tag::CELL)?)?,
            level: tag(tag::LEVEL).and_then(|level| level.parse().ok()),
            block: tag(tag::BLOCK)?.parse().ok()?,
            turn: tag(tag::TURN).map_or(Some(1), |turn| turn.parse().ok())?,
        })
    }
}

/// Sets the number of sessions. A plan with fewer sessions than workers is invalid.
fn set_sessions(plan: &mut Plan, sessions: u32) {
    plan.sessions = sessions;
    plan.workers = plan.workers.min(sessions);
}

// The order of the runs of a sweep, and of the two variants of an A/B test.

/// Runs of each variant in a block of an A/B test.
pub(super) const TURNS: u32 = 2;

/// Returns all runs of a sweep, in their order.
pub(super) fn of_sweep(experiment: &Experiment) -> Vec<Task> {
    let blocks = 1..=experiment.repeats;
    let task = |cell, block| Task { cell, level: None, block, turn: 1 };
    match experiment.order {
        Order::Interleaved => blocks
            .flat_map(|block| {
                let mut cells: Vec<usize> = (0..experiment.cells.len()).collect();
                cells.shuffle(&mut random(experiment.seed, block));
                cells.into_iter().map(move |cell| task(cell, block))
            })
            .collect(),
        Order::Sequential => (0..experiment.cells.len())
            .flat_map(|cell| blocks.clone().map(move |block| task(cell, block)))
            .collect(),
    }
}

/// Returns the runs of a block of an A/B test, in random order. All six orders are equally probable, as the test
/// assumes: no effect of the position in the block, such as a cache that the run before filled, affects its error
/// rate.
pub(super) fn of_ab_block(experiment: &Experiment, block: u32) -> [Task; 4] {
    let task = |cell, turn| Task { cell, level: None, block, turn };
    let mut tasks = [task(0, 1), task(0, TURNS), task(1, 1), task(1, TURNS)];
    tasks.shuffle(&mut random(experiment.seed, block));
    tasks
}

/// The random stream of a block.
fn random(seed: u64, block: u32) -> Xoshiro256PlusPlus {
    // SplitMix64, which expands the seed, distributes neighboring seeds independently.
    Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(block) << 32))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::example;
    use super::*;

    #[test]
    fn the_text_of_a_level_is_parsed_to_the_same_level() {
        let rate = |per_s, sessions| Level::Rate { per_s, sessions };
        for level in [Level::Sessions(8), rate(1234.5, None), rate(0.1 + 0.2, Some(3))] {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        for text in ["", "8", "sessions=x", "rate=", "batch=8"] {
            assert!(text.parse::<Level>().is_err(), "{text}");
        }
    }

    fn cells_of(tasks: &[Task], block: u32) -> Vec<usize> {
        tasks.iter().filter(|task| task.block == block).map(|task| task.cell).collect()
    }

    #[test]
    fn each_block_contains_every_cell_once_in_an_order_of_its_own() {
        let experiment = Experiment { repeats: 8, ..example::sweep(6) };
        let tasks = of_sweep(&experiment);
        assert_eq!(tasks.len(), 48);
        let orders: Vec<_> = (1..=8).map(|block| cells_of(&tasks, block)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        }
        assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
        assert_eq!(of_sweep(&experiment), tasks);
        assert_ne!(of_sweep(&Experiment { seed: 2, ..experiment }), tasks);
    }

    #[test]
    fn sequential_runs_are_ordered_by_cell() {
        let experiment = Experiment { repeats: 2, order: Order::Sequential, ..example::sweep(2) };
        let order: Vec<_> =
            of_sweep(&experiment).iter().map(|task| (task.cell, task.block)).collect();
        assert_eq!(order, [(0, 1), (0, 2), (1, 1), (1, 2)]);
    }

    #[test]
    fn a_block_of_two_variants_has_two_runs_of_each_in_any_order() {
        let experiment = example::sweep(2);
        let mut orders: BTreeMap<[usize; 4], u32> = BTreeMap::new();
        for block in 1..=600 {
            let tasks = of_ab_block(&experiment, block);
            let runs: BTreeSet<_> = tasks.iter().map(|task| (task.cell, task.turn)).collect();
            assert_eq!(runs, BTreeSet::from([(0, 1), (0, TURNS), (1, 1), (1, TURNS)]));
            *orders.entry(tasks.map(|task| task.cell)).or_default() += 1;
        }
        assert_eq!(orders.len(), 6);
        assert!(orders.values().all(|count| (60..140).contains(count)), "{orders:?}");
    }
}
