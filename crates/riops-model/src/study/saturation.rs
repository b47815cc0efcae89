//! The searches for the saturation point of the cells, on the runs of an experiment.

use serde::Serialize;

use super::definition::{Experiment, SaturationSettings, Search};
use super::search::{rate, sessions};
use super::task::{Finished, Level, Study, Task};
use crate::figure::Summary;
use crate::plan::Plan;
use crate::record::{RateVerdict, Record, StageRecord};

/// Shares of the throughput at the saturation point at which an open loop confirms it.
const LADDER: [f64; 4] = [0.7, 0.8, 0.9, 0.95];
/// Runs of a search for a rate besides those at rates: the closed loop that it starts from.
const CAPACITY_RUNS: usize = 1;
/// Runs that fail or are invalid before a search ends.
const UNUSABLE_MAX: usize = 3;

/// Result of the search for one cell.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saturation {
    /// Number of nodes that the sessions used; absent if the server has no nodes.
    pub nodes: Option<u32>,
    /// Most connections to the server that a pooler used for the sessions; absent without a pooler, or if each session had one.
    pub pool: Option<u64>,
    /// The thresholds of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<String>,
    /// Throughput over the number of sessions; absent for a search for a rate, or without a valid run.
    pub sessions: Option<sessions::Conclusion>,
    /// The open loop at shares of the throughput at the saturation point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ladder: Vec<rate::RateResult>,
    /// The highest rate; absent for a search for the number of sessions, or without a run.
    pub rate: Option<rate::Conclusion>,
    /// Number of sessions of the search for a rate.
    pub rate_sessions: Option<u32>,
    /// Whether the runs with rates ended early, because too many of them failed or are invalid.
    pub ended_early: bool,
}

/// Returns what was found so far for each cell.
pub fn results(study: &Study, settings: &SaturationSettings) -> Vec<Saturation> {
    let cells = 0..study.experiment.cells.len();
    let result = |cell| {
        let search = CellSearch { study, settings, cell };
        let (sessions, ladder, rate) = match settings.search {
            Search::Sessions => {
                let points = search.session_points();
                let conclusion = sessions::conclude(&search.sessions_settings(), &points);
                (conclusion, search.ladder(), None)
            }
            Search::Rate => (None, Vec::new(), search.rate_conclusion()),
        };
        let plan = search.plan();
        let thresholds = plan.iter().flat_map(|plan| &plan.thresholds);
        Saturation {
            nodes: search.nodes(),
            pool: search.pool(),
            thresholds: thresholds.map(ToString::to_string).collect(),
            sessions,
            ladder,
            rate,
            rate_sessions: plan
                .filter(|_| settings.search == Search::Rate)
                .map(|plan| plan.sessions),
            ended_early: search.ends_early(),
        }
    };
    cells.map(result).collect()
}

/// Returns the next run, if any.
pub(super) fn next(study: &Study, settings: &SaturationSettings) -> Option<Task> {
    let cells = 0..study.experiment.cells.len();
    cells.into_iter().find_map(|cell| CellSearch { study, settings, cell }.next())
}

/// Returns the maximum number of runs.
pub(super) fn runs_max(experiment: &Experiment, settings: &SaturationSettings) -> usize {
    let runs_per_cell = match settings.search {
        Search::Sessions => {
            let runs = usize::try_from(sessions::Settings::default().runs_max);
            runs.unwrap_or(usize::MAX).saturating_add(LADDER.len())
        }
        Search::Rate => {
            let runs = usize::try_from(rate::Settings::new(1.0).runs_max);
            runs.unwrap_or(usize::MAX).saturating_add(CAPACITY_RUNS)
        }
    };
    runs_per_cell.saturating_add(UNUSABLE_MAX).saturating_mul(experiment.cells.len())
}

/// The search of one cell.
struct CellSearch<'a> {
    study: &'a Study,
    settings: &'a SaturationSettings,
    cell: usize,
}

impl CellSearch<'_> {
    fn plan(&self) -> Option<&Plan> {
        self.study.experiment.cells.get(self.cell).map(|cell| &cell.plan)
    }

    fn finished(&self) -> impl Iterator<Item = &Finished> {
        self.study.finished.iter().filter(|finished| finished.task.cell == self.cell)
    }

    /// The next run at a level.
    fn task(&self, level: Level) -> Task {
        let blocks = self.finished().filter(|finished| finished.task.level == Some(level));
        let last = blocks.map(|finished| finished.task.block).max().unwrap_or(0);
        Task { cell: self.cell, level: Some(level), block: last + 1, turn: 1 }
    }

    fn next(&self) -> Option<Task> {
        match self.settings.search {
            Search::Sessions => {
                let settings = self.sessions_settings();
                match sessions::next(&settings, &self.session_points()) {
                    Some(level) => Some(self.task(Level::Sessions(level))),
                    None => self.next_of_ladder(),
                }
            }
            Search::Rate if self.ends_early() => None,
            Search::Rate => {
                let Some(capacity_per_s) = self.capacity_per_s() else {
                    return Some(self.task(Level::Sessions(self.plan()?.sessions)));
                };
                let settings = rate::Settings::new(capacity_per_s);
                let per_s = rate::next(&settings, &self.rate_points())?;
                Some(self.task(Level::Rate { per_s, sessions: None }))
            }
        }
    }

    /// Returns the throughput of the closed loop from which the search for a rate starts.
    fn capacity_per_s(&self) -> Option<f64> {
        let closed = |finished: &&Finished| matches!(finished.task.level, Some(Level::Sessions(_)));
        self.finished().filter(closed).find_map(throughput)
    }

    /// Returns whether too many runs failed or are invalid. The search for sessions limits them for each level.
    fn ends_early(&self) -> bool {
        let is_unusable = |finished: &&Finished| match finished.task.level {
            Some(Level::Rate { .. }) => sustained(finished).is_none(),
            _ => self.settings.search == Search::Rate && throughput(finished).is_none(),
        };
        self.finished().filter(is_unusable).count() >= UNUSABLE_MAX
    }

    fn sessions_settings(&self) -> sessions::Settings {
        sessions::Settings {
            first: self.settings.first,
            last: self.settings.last,
            seed: self.study.experiment.seed,
            ..sessions::Settings::default()
        }
    }

    fn session_points(&self) -> Vec<sessions::MeasuredLevel> {
        let has_thresholds = self.plan().is_some_and(|plan| !plan.thresholds.is_empty());
        let point = |finished: &Finished| {
            let Some(Level::Sessions(level)) = finished.task.level else {
                return None;
            };
            Some(sessions::MeasuredLevel {
                level,
                throughput_per_s: throughput(finished).unwrap_or(0.0),
                meets_threshold: has_thresholds
                    .then(|| finished.usable().is_some_and(meets_thresholds)),
            })
        };
        self.finished().filter_map(point).collect()
    }

    fn rate_points(&self) -> Vec<rate::RatePoint> {
        let point = |finished: &Finished| {
            let Some(Level::Rate { per_s, .. }) = finished.task.level else {
                return None;
            };
            Some(rate::RatePoint { rate_per_s: per_s, sustained: sustained(finished)? })
        };
        self.finished().filter_map(point).collect()
    }

    /// Returns the next rate at the saturation point, from the lowest on. Ends at the first that is not sustained.
    fn next_of_ladder(&self) -> Option<Task> {
        let points = self.session_points();
        let at = sessions::saturation(&self.sessions_settings(), &points)?;
        let measured = self.rate_points();
        if self.ends_early() || measured.iter().any(|point| !point.sustained) {
            return None;
        }
        let share = LADDER.get(measured.len())?;
        // Whole transactions per second, as a user would choose them.
        let per_s = (at.throughput_per_s * share).round().max(1.0);
        Some(self.task(Level::Rate { per_s, sessions: Some(at.level) }))
    }

    fn ladder(&self) -> Vec<rate::RateResult> {
        let points = self.rate_points().into_iter();
        let result = |point: rate::RatePoint| rate::RateResult {
            rate_per_s: point.rate_per_s,
            runs: 1,
            sustained: u32::from(point.sustained),
        };
        points.map(result).collect()
    }

    fn rate_conclusion(&self) -> Option<rate::Conclusion> {
        let settings = rate::Settings::new(self.capacity_per_s()?);
        rate::conclude(&settings, &self.rate_points())
    }

    fn nodes(&self) -> Option<u32> {
        let record = self.finished().find_map(Finished::usable)?;
        let nodes = record.stages.iter().map(|stage| stage.session_loop.nodes.len()).max()?;
        u32::try_from(nodes).ok().filter(|&nodes| nodes > 0)
    }

    fn pool(&self) -> Option<u64> {
        let summaries = self.finished().filter_map(Finished::usable).flat_map(Summary::of_each);
        summaries.filter_map(|summary| summary.pool()).max()
    }
}

/// Returns the first session loop.
fn session_loop(record: &Record) -> Option<&StageRecord> {
    record.stages.iter().find(|stage| !stage.is_timed())
}

/// Returns the transactions per second of a valid run.
fn throughput(finished: &Finished) -> Option<f64> {
    let stage = session_loop(finished.usable()?)?;
    Some(stage.throughput.transactions_per_s).filter(|&per_s| per_s > 0.0)
}

fn meets_thresholds(record: &Record) -> bool {
    record.thresholds.iter().all(|threshold| threshold.held)
}

/// Returns whether a rate was sustained: all thresholds are met, and at least 99% of the transactions that were due
/// ended in time. A growing backlog leaves more. `None` if the run does not show it.
fn sustained(finished: &Finished) -> Option<bool> {
    let record = finished.result.as_ref().ok()?;
    let verdict = session_loop(record)?.rate_verdict();
    let is_not = [RateVerdict::NotReached, RateVerdict::Growing];
    let is_reached = verdict.is_some_and(|verdict| !is_not.contains(&verdict));
    // With `--strict`, a run whose rate was not reached is invalid.
    (record.verdict.valid || !is_reached).then(|| is_reached && meets_thresholds(record))
}

#[cfg(test)]
mod tests {
    use super::super::definition::Goal;
    use super::super::example;
    use super::*;
    use crate::plan::Schedule;
    use crate::record::ScheduleRecord;

    /// Transactions per second of a server with these coefficients of the scalability law.
    fn capacity_per_s(sessions: u32) -> f64 {
        let n = f64::from(sessions);
        1_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.002 * n * (n - 1.0))
    }

    /// A run on this server: a closed loop, or an open loop that leaves a backlog above the capacity.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "numbers of transactions"
    )]
    fn record(plan: &Plan) -> Record {
        let mut record = example::record(plan);
        record.thresholds.clear();
        let capacity_per_s = capacity_per_s(plan.sessions);
        let stage = &mut record.stages[0];
        stage.throughput.transactions_per_s = capacity_per_s;
        stage.session_loop.schedule = None;
        if let Schedule::Constant { per_s } = plan.schedule {
            let waiting = (10.0 * (per_s - capacity_per_s).max(0.0)).round() as u64;
            let intended = (10.0 * per_s).round() as u64;
            stage.throughput.transactions_per_s = per_s.min(capacity_per_s);
            stage.transactions = intended - waiting;
            stage.session_loop.schedule = Some(ScheduleRecord {
                intended,
                sent: intended - waiting,
                waiting,
                ..ScheduleRecord::default()
            });
        }
        record
    }

    fn conducted(search: Search) -> (Study, SaturationSettings) {
        let settings = SaturationSettings { search, first: 1, last: 64 };
        let mut experiment = example::sweep(1);
        experiment.goal = Goal::Saturation(settings.clone());
        experiment.cells[0].plan.sessions = 16;
        let mut study = Study::load(experiment, Vec::new(), Vec::new());
        while let Some(task) = next(&study, &settings) {
            assert!(study.finished.iter().all(|finished| finished.task != task), "{task:?}");
            let record = record(&study.experiment.plan(&task).unwrap());
            study.finished.push(Finished::new(task, Ok(Box::new(record))));
            assert!(study.finished.len() <= runs_max(&study.experiment, &settings));
        }
        (study, settings)
    }

    #[test]
    fn finds_the_peak_of_the_law_and_confirms_it_with_an_open_loop() {
        let (study, settings) = conducted(Search::Sessions);
        let [result] = results(&study, &settings).try_into().unwrap();
        let sessions = result.sessions.unwrap();
        // The peak of the law is at 21.8 sessions.
        assert!((16..=32).contains(&sessions.best), "{}", sessions.best);
        assert!(sessions.saturation <= sessions.best);
        let law = sessions.law.unwrap();
        assert!((law.sigma.value - 0.05).abs() < 1e-3, "{:?}", law.sigma);
        assert_eq!(result.ladder.len(), LADDER.len());
        assert!(result.ladder.iter().all(|rate| rate.sustained == 1));
        let open = study.finished.last().unwrap();
        let plan = &open.result.as_ref().unwrap().plan;
        assert_eq!(plan.sessions, sessions.saturation);
    }

    #[test]
    fn a_run_that_failed_is_repeated_and_too_many_end_the_search() {
        let settings = SaturationSettings { search: Search::Rate, first: 1, last: 64 };
        let mut experiment = example::sweep(1);
        experiment.goal = Goal::Saturation(settings.clone());
        let mut study = Study::load(experiment, Vec::new(), Vec::new());
        for block in 1..=3 {
            let task = next(&study, &settings).unwrap();
            assert_eq!(task.block, block);
            study.finished.push(Finished::new(task, Err("no connection".to_owned())));
        }
        assert_eq!(next(&study, &settings), None);
        let [result] = results(&study, &settings).try_into().unwrap();
        assert!(result.ended_early && result.rate.is_none());
    }

    #[test]
    fn finds_the_highest_rate_without_a_growing_backlog() {
        let (study, settings) = conducted(Search::Rate);
        let [result] = results(&study, &settings).try_into().unwrap();
        let rate = result.rate.unwrap().rate_per_s.unwrap();
        let capacity_per_s = capacity_per_s(16);
        assert!((rate / capacity_per_s - 1.0).abs() < 0.05, "{rate} of {capacity_per_s}");
    }
}
