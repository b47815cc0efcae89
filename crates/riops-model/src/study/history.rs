//! The figures of stored runs over time, with the points at which they changed, and the verdict on the newest runs.

use serde::Serialize;

use super::gate::GateVerdict;
use crate::comparison::{TimeChange, change_of_time};
use crate::figure::{CostKind, Figure};
use crate::plan::WorkPlan;
use crate::record::{Record, StageKind, Validity};
use crate::stats::{ChangePoint, ChangeSettings, Direction, Noise, Outcome, change_points};
use crate::summary::{RunSummary, StageSummary, stages_by_run};
use crate::units::format::{count, joined, number_of, rate};

/// A choice of figures for a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryChoice {
    /// Spelling in options.
    pub option: &'static str,
    /// Name.
    pub name: &'static str,
    /// The figures, a series each.
    pub figures: Vec<Figure>,
}

impl HistoryChoice {
    /// Returns all choices for every series.
    pub fn all() -> impl Iterator<Item = Self> {
        let rates = [Figure::RowsPerS, Figure::TransactionsPerS].into_iter();
        let measured = rates.chain(Figure::compared_percentiles()).map(|figure| Self {
            option: figure.option(),
            name: figure.name(),
            figures: vec![figure],
        });
        let costs = CostKind::ALL.into_iter().map(|kind| Self {
            option: kind.option(),
            name: kind.option(),
            figures: kind.figures().to_vec(),
        });
        measured.chain(costs)
    }
}

/// The main figure of a stage: with a rate the 99th percentile, because the throughput is given.
fn main_figure(run: &RunSummary, stage: &StageSummary) -> Figure {
    let work = WorkPlan::default_of(&run.workload);
    let has_rows = stage.rows.is_some_and(|rows| rows > 0);
    // The list of runs does not say what an imported run counted.
    let throughput = match work.filter(|work| !work.traits().is_imported) {
        Some(work) if has_rows => Figure::throughput_of(&work),
        _ if has_rows => Figure::RowsPerS,
        _ => Figure::TransactionsPerS,
    };
    let is_timed = match StageKind::parse(&stage.kind) {
        Some(StageKind::Statement) => true,
        Some(StageKind::Observed) => stage.transactions == 0,
        Some(StageKind::Loop | StageKind::ServerLoop) | None => false,
    };
    if is_timed {
        Figure::Seconds
    } else if run.rate_per_s.is_some() {
        Figure::P99Us
    } else {
        throughput
    }
}

/// The value of one run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Id of the run.
    pub run: String,
    /// Start of the run, RFC 3339.
    pub started_at: String,
    /// The value, in the unit of the figure.
    pub value: f64,
    /// Whether the value is only a lower bound.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub at_least: bool,
    /// Marks that distinguish the run from a plain valid run, separated by commas.
    pub marks: Option<String>,
    /// Why the level may change with this run: it is the first one of a new era.
    pub acknowledged: Option<String>,
}

/// A change of the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryChange {
    /// Position of the first run after the change, from 0.
    pub index: usize,
    /// Id of this run.
    pub run: String,
    /// The first and the last run at which the change may be, with a probability of 95%; absent if it is at this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[String; 2]>,
    /// Mean up to the change, since the previous one.
    pub mean_before: f64,
    /// Mean from the change on, up to the next one.
    pub mean_after: f64,
    /// The p-value of the t-test of the two means.
    pub p: f64,
    /// Whether the change is an improvement or a regression.
    pub outcome: Outcome,
    /// The change of the time of a transaction, if it is known of the runs around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeChange>,
}

impl HistoryChange {
    /// Returns the level after the change, relative to the level before.
    pub fn ratio(&self) -> f64 {
        self.mean_after / self.mean_before
    }
}

/// Maximum number of runs on each side of a change whose times are compared.
const RUNS_AROUND: usize = 10;

/// A figure of runs with the same workload, stage and sessions, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistorySeries {
    /// Position of the stage in its runs, from 0.
    #[serde(skip)]
    pub stage: usize,
    /// Workload, stage and number of sessions.
    pub name: String,
    /// The figure.
    pub figure: Figure,
    /// The runs.
    pub points: Vec<HistoryPoint>,
    /// The changes.
    pub changes: Vec<HistoryChange>,
    /// Number of runs of the last era that a verdict needs.
    pub runs_needed: usize,
    /// Whether the newest runs are slower than earlier ones of the last era.
    pub verdict: GateVerdict,
}

/// Tag of the first run of a new era; the value is the reason why the level may change.
pub const ACKNOWLEDGED: &str = "acknowledged";

impl HistorySeries {
    /// Adds an explanation to each change, from the records of the runs around it. `record` returns the record of an id.
    pub fn explain(&mut self, record: &dyn Fn(&str) -> Option<Record>) {
        let mut ends: Vec<usize> = self.changes.iter().map(|change| change.index).collect();
        ends.push(self.points.len());
        let mut start = 0;
        for (change, &end) in self.changes.iter_mut().zip(ends.iter().skip(1)) {
            let records = |from: usize, to: usize| -> Vec<Record> {
                let points = self.points.get(from..to).unwrap_or_default();
                points.iter().filter_map(|point| record(&point.run)).collect()
            };
            let before = records(start.max(change.index.saturating_sub(RUNS_AROUND)), change.index);
            let after = records(change.index, end.min(change.index + RUNS_AROUND));
            change.time = change_of_time(&before, &after, self.stage);
            start = change.index;
        }
    }

    /// Returns the positions at which eras begin: the first run and each acknowledged run.
    fn eras(&self) -> Vec<usize> {
        let acknowledged = self.points.iter().enumerate().skip(1);
        let acknowledged = acknowledged.filter(|(_, point)| point.acknowledged.is_some());
        std::iter::once(0).chain(acknowledged.map(|(index, _)| index)).collect()
    }

    /// Returns the number of runs of each level, and their mean. A level lasts from one change or era to the next.
    pub fn levels(&self) -> Vec<(usize, f64)> {
        let mut limits = self.eras();
        limits.extend(self.changes.iter().map(|change| change.index));
        limits.push(self.points.len());
        limits.sort_unstable();
        let part = |(from, to): (&usize, &usize)| {
            let points = self.points.get(*from..*to).unwrap_or_default();
            let sum: f64 = points.iter().map(|point| point.value).sum();
            (points.len(), sum / points.len() as f64)
        };
        limits.iter().zip(limits.iter().skip(1)).map(part).filter(|(count, _)| *count > 0).collect()
    }

    /// Returns the runs since the last new era.
    pub fn last_era(&self) -> &[HistoryPoint] {
        let start = self.eras().last().copied().unwrap_or_default();
        self.points.get(start..).unwrap_or_default()
    }

    /// Whether the last era has the runs that a verdict needs.
    pub fn has_verdict(&self) -> bool {
        self.last_era().len() >= self.runs_needed
    }

    /// Finds the changes within each era, and judges the newest level against the best one of its era.
    fn judge(&mut self, effect: f64) {
        let eras = self.eras();
        let ends = eras.iter().copied().skip(1).chain([self.points.len()]);
        let mut settings = ChangeSettings { change_min: effect, ..ChangeSettings::default() };
        let mut changes = Vec::new();
        for (start, end) in eras.iter().copied().zip(ends) {
            let values: Vec<f64> =
                self.points.iter().take(end).skip(start).map(|point| point.value).collect();
            let points = change_points(&values, &settings);
            self.runs_needed = match settings.accepted {
                Some(_) => ChangeSettings::ACCEPTED_MIN,
                None => 2 * ChangeSettings::SIDE_MIN,
            };
            // An era that is too short uses the noise of the previous era.
            let indexes: Vec<usize> = points.iter().map(|point| point.index).collect();
            settings.accepted = Noise::around(&values, &indexes).or(settings.accepted);
            changes.extend(points.iter().filter_map(|point| self.change(start, point)));
        }
        self.changes = changes;
        let start = eras.last().copied().unwrap_or_default();
        let in_era = || self.changes.iter().filter(|change| change.index > start);
        let before = in_era().map(|change| change.mean_before);
        let best = match self.figure.direction() {
            Direction::HigherIsBetter => before.reduce(f64::max),
            Direction::LowerIsBetter => before.reduce(f64::min),
        };
        let newest = in_era().next_back().map(|change| change.mean_after);
        let is_slower = best.zip(newest).is_some_and(|(best, newest)| {
            // As large as a change must be, forward or backward.
            let ratio = match self.figure.direction() {
                Direction::HigherIsBetter => best / newest,
                Direction::LowerIsBetter => newest / best,
            };
            ratio > 1.0 && ratio - 1.0 >= effect
        });
        self.verdict = match is_slower {
            _ if !self.has_verdict() => GateVerdict::Inconclusive,
            true => GateVerdict::Slower,
            false => GateVerdict::NotSlower,
        };
    }

    /// Returns a change of the values of the era that begins at `start`.
    fn change(&self, start: usize, point: &ChangePoint) -> Option<HistoryChange> {
        let run = |index: usize| Some(self.points.get(start + index)?.run.clone());
        let (first, last) = point.range;
        Some(HistoryChange {
            index: start + point.index,
            run: run(point.index)?,
            range: if first < last { Some([run(first)?, run(last)?]) } else { None },
            mean_before: point.mean_before,
            mean_after: point.mean_after,
            p: point.p,
            outcome: point.outcome(self.figure.direction()),
            time: None,
        })
    }
}

/// The main figures of valid runs over time, one series for each stage of each workload with the same number of sessions and
/// the same rate. `effect` is the smallest relevant change, as a share.
pub fn history(runs: &[RunSummary], stages: &[StageSummary], effect: f64) -> Vec<HistorySeries> {
    history_of(runs, stages, &[], effect, &|_| None)
}

/// The same for other figures. `record` returns the record of a run, which has the costs.
pub fn history_of(
    runs: &[RunSummary],
    stages: &[StageSummary],
    figures: &[Figure],
    effect: f64,
    record: &dyn Fn(&str) -> Option<Record>,
) -> Vec<HistorySeries> {
    let mut ordered: Vec<&RunSummary> =
        runs.iter().filter(|run| is_comparable(run) && run.status == "done").collect();
    ordered.sort_by(|one, next| one.started_at.cmp(&next.started_at));
    let by_run = stages_by_run(stages);
    let needs_records = figures.iter().any(|figure| figure.is_cost());
    let mut series: Vec<(Vec<String>, HistorySeries)> = Vec::new();
    for run in ordered {
        let record = if needs_records { record(&run.id) } else { None };
        for stage in by_run.get(run.id.as_str()).into_iter().flatten() {
            let main = [main_figure(run, stage)];
            for &figure in if figures.is_empty() { &main } else { figures } {
                let value = value_of(figure, stage, record.as_ref());
                if let Some(value) = value.filter(|&value| value > 0.0) {
                    add(&mut series, run, stage, figure, value);
                }
            }
        }
    }
    let mut series = named_by_origin(series);
    series.sort_by(|one, next| one.name.cmp(&next.name));
    for line in &mut series {
        line.judge(effect);
    }
    series
}

/// The position of a stage in its record.
fn place_of(stage: &StageSummary) -> usize {
    stage.position.saturating_sub(1) as usize
}

/// The value of a stage.
fn value_of(figure: Figure, stage: &StageSummary, record: Option<&Record>) -> Option<f64> {
    if !figure.is_cost() {
        return stage.figure(figure.as_str());
    }
    figure.value(record?, record?.stages.get(place_of(stage))?)
}

/// Adds the value of a stage to its series.
fn add(
    series: &mut Vec<(Vec<String>, HistorySeries)>,
    run: &RunSummary,
    stage: &StageSummary,
    figure: Figure,
    value: f64,
) {
    let (name, origin) = (name_of(run, stage), origin_of(run));
    let point = HistoryPoint {
        run: run.id.clone(),
        started_at: run.started_at.clone(),
        value,
        at_least: is_bound(figure, stage),
        marks: run.marks.clone(),
        acknowledged: run.tags.get(ACKNOWLEDGED).cloned(),
    };
    let is_same = |(known, line): &&mut (Vec<String>, HistorySeries)| {
        *known == origin && line.name == name && line.figure == figure
    };
    if let Some((_, known)) = series.iter_mut().find(is_same) {
        return known.points.push(point);
    }
    let (points, changes) = (vec![point], Vec::new());
    let (runs_needed, verdict) = (0, GateVerdict::Inconclusive);
    let new = HistorySeries {
        stage: place_of(stage),
        name,
        figure,
        points,
        changes,
        runs_needed,
        verdict,
    };
    series.push((origin, new));
}

/// Runs of other tools are comparable with each other.
fn is_comparable(run: &RunSummary) -> bool {
    run.validity() != Validity::Invalid
}

fn is_bound(figure: Figure, stage: &StageSummary) -> bool {
    let from = stage.figure("lower_bound_from");
    figure.percent().zip(from).is_some_and(|(percent, from)| percent >= from)
}

/// Returns the name of the series of a run: runs with other values here are not comparable.
fn name_of(run: &RunSummary, stage: &StageSummary) -> String {
    let mut parts = vec![run.title.clone()];
    if run.stages > 1 {
        parts.push(stage.name.clone());
    }
    parts.extend(stage.batch.map(|batch| format!("batch {}", count(batch))));
    let updates = run.update_percent.filter(|&percent| percent > 0.0);
    parts.extend(updates.map(|percent| format!("{percent}% updates")));
    parts.extend(run.rate_per_s.map(|per_s| format!("rate {}/s", rate(per_s))));
    parts.extend(stage.sessions.map(|sessions| number_of(sessions.into(), "session")));
    parts.join(", ")
}

/// Returns other properties that distinguish the series: they are in its name only where they differ.
fn origin_of(run: &RunSummary) -> Vec<String> {
    let parts = [&run.flavor, &run.client_host, &run.distribution];
    parts.into_iter().map(|part| part.clone().unwrap_or_default()).collect()
}

/// Adds to the names of series with the same name where they come from.
fn named_by_origin(series: Vec<(Vec<String>, HistorySeries)>) -> Vec<HistorySeries> {
    let known: Vec<_> =
        series.iter().map(|(origin, line)| (line.name.clone(), origin.clone())).collect();
    let named = |(origin, line): (Vec<String>, HistorySeries)| {
        let others = || known.iter().filter(|(name, _)| *name == line.name);
        let differs = |(position, part): &(usize, &String)| {
            !part.is_empty() && others().any(|(_, other)| other.get(*position) != Some(*part))
        };
        let parts = origin.iter().enumerate().filter(differs).map(|(_, part)| part);
        let name = joined(std::iter::once(&line.name).chain(parts), ", ");
        HistorySeries { name, ..line }
    };
    series.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::CostRecord;
    use crate::record::example::example_record;
    use crate::study::example::{SHIFT, stored};

    #[test]
    fn costs_come_from_the_records() {
        let (runs, stages) = stored(&[1_000.0; 24], 4);
        let record = |id: &str| {
            let at = runs.iter().position(|run| run.id == id)?;
            let wal_bytes = [100.0, 150.0][at / 12] + (at % 3) as f64;
            let mut record = example_record();
            record.stages[0].cost =
                Some(CostRecord { wal_bytes: Some(wal_bytes), ..CostRecord::default() });
            Some(record)
        };
        let series_of = |kind: CostKind| history_of(&runs, &stages, kind.figures(), 0.02, &record);
        let histories = series_of(CostKind::Wal);
        let [series] = &histories[..] else { panic!("{histories:?}") };
        assert_eq!((series.figure, series.points.len()), (Figure::WalBytesPerTransaction, 24));
        let changes: Vec<_> =
            series.changes.iter().map(|change| (change.index, change.outcome)).collect();
        assert_eq!(changes, [(12, Outcome::Slower)]);
        assert_eq!(series.verdict, GateVerdict::Slower);
        assert_eq!(series_of(CostKind::Cpu), []);
    }

    #[test]
    fn only_comparable_valid_runs_form_a_series() {
        let (mut runs, mut stages) = stored(&SHIFT, 4);
        let (other_runs, other_stages) = stored(&SHIFT[..3], 8);
        runs.extend(other_runs);
        stages.extend(other_stages);
        runs[0].valid = false;
        let lengths: Vec<_> = history(&runs, &stages, 0.02)
            .iter()
            .map(|series| (series.name.clone(), series.points.len()))
            .collect();
        let expected = [("rows, 4 sessions".to_owned(), 11), ("rows, 8 sessions".to_owned(), 3)];
        assert_eq!(lengths, expected);
        // riops verified no imported run, but they are comparable with each other.
        for run in &mut runs {
            (run.workload, run.valid) = ("imported".to_owned(), false);
        }
        let imported = history(&runs, &stages, 0.02);
        assert_eq!(imported.iter().map(|series| series.points.len()).collect::<Vec<_>>(), [12, 3]);
        for run in &mut runs {
            (run.workload, run.valid) = ("rows".to_owned(), true);
        }
        runs[0].valid = false;
        // Another machine is another series.
        runs[1].client_host = Some("fast".to_owned());
        let names: Vec<_> = history(&runs, &stages, 0.02)
            .into_iter()
            .map(|series| (series.name, series.points.len()))
            .collect();
        assert_eq!(
            names[..2],
            [("rows, 4 sessions".to_owned(), 10), ("rows, 4 sessions, fast".to_owned(), 1)]
        );
    }

    #[test]
    fn with_a_rate_the_latency_is_the_main_figure() {
        let (mut runs, stages) = stored(&SHIFT, 4);
        for run in &mut runs {
            run.rate_per_s = Some(1_000.0);
        }
        let histories = history(&runs, &stages, 0.02);
        assert_eq!(histories[0].figure, Figure::P99Us);
        assert_eq!(histories[0].name, "rows, rate 1,000/s, 4 sessions");
        assert_eq!(histories[0].changes, []);
        let rows = history_of(&runs, &stages, &[Figure::RowsPerS], 0.02, &|_| None);
        assert_eq!(rows[0].changes.len(), 1);
    }

    #[test]
    fn the_newest_level_is_judged_against_the_best_one_of_its_era() {
        let level = |value: f64| (0..8).map(move |at| value * (1.0 + f64::from(at % 3) / 500.0));
        let judged = |levels: &[f64], acknowledged: Option<usize>| {
            let values: Vec<f64> = levels.iter().flat_map(|&value| level(value)).collect();
            let (mut runs, stages) = stored(&values, 4);
            if let Some(at) = acknowledged {
                runs[at].tags = [(ACKNOWLEDGED.to_owned(), "new disk".to_owned())].into();
            }
            history(&runs, &stages, 0.02).remove(0)
        };
        for (levels, expected) in [
            (&[100.0, 100.0][..], GateVerdict::NotSlower),
            (&[100.0, 95.0], GateVerdict::Slower),
            (&[100.0, 95.0, 100.0], GateVerdict::NotSlower),
            // Better than before, but not as good as it was.
            (&[100.0, 90.0, 95.0], GateVerdict::Slower),
            (&[100.0], GateVerdict::Inconclusive),
        ] {
            assert_eq!(judged(levels, None).verdict, expected, "{levels:?}");
        }
        let accepted = judged(&[100.0, 95.0, 95.0], Some(8));
        assert_eq!((accepted.verdict, accepted.changes.len()), (GateVerdict::NotSlower, 0));
        let again = judged(&[100.0, 95.0, 90.0], Some(8));
        assert_eq!((again.verdict, again.changes[0].index), (GateVerdict::Slower, 16));
        // The earlier era is too short to know its noise.
        let unknown = judged(&[100.0, 95.0], Some(8));
        assert_eq!((unknown.verdict, unknown.runs_needed), (GateVerdict::Inconclusive, 12));
    }

    #[test]
    fn an_accepted_level_is_compared_from_three_runs_on() {
        let deviation = |at: usize| 1.0 + (at % 3) as f64 / 500.0;
        let judged = |accepted: &[f64]| {
            let earlier = (0..12).map(|_| 100.0);
            let levels: Vec<f64> = earlier.chain(accepted.iter().copied()).collect();
            let values: Vec<f64> =
                levels.iter().enumerate().map(|(at, level)| level * deviation(at)).collect();
            let (mut runs, stages) = stored(&values, 4);
            runs[12].tags = [(ACKNOWLEDGED.to_owned(), "new disk".to_owned())].into();
            history(&runs, &stages, 0.02).remove(0)
        };
        let (few, accepted) = (judged(&[80.0; 2]), judged(&[80.0; 3]));
        assert_eq!((few.verdict, few.runs_needed), (GateVerdict::Inconclusive, 3));
        assert_eq!((accepted.verdict, accepted.changes.len()), (GateVerdict::NotSlower, 0));
        let slower = judged(&[80.0, 80.0, 80.0, 75.0, 75.0, 75.0]);
        assert_eq!((slower.verdict, slower.changes[0].index), (GateVerdict::Slower, 15));
        // Later runs at the same level do not take it back, and the accepted one ends it.
        let later = [&[80.0; 3][..], &[75.0; 20]].concat();
        let (later, again) = (judged(&later), judged(&[&later[..], &[80.0; 8]].concat()));
        assert_eq!((later.verdict, later.changes[0].index), (GateVerdict::Slower, 15));
        assert!((later.changes[0].ratio() - 75.0 / 80.0).abs() < 0.001, "{later:?}");
        assert_eq!((again.verdict, again.changes.len()), (GateVerdict::NotSlower, 2));
    }

    #[test]
    fn a_change_is_at_the_first_run_after_it() {
        let (runs, stages) = stored(&SHIFT, 4);
        let histories = history(&runs, &stages, 0.02);
        let [series] = histories.as_slice() else { panic!("{histories:?}") };
        assert_eq!((series.figure, series.name.as_str()), (Figure::RowsPerS, "rows, 4 sessions"));
        let [change] = series.changes.as_slice() else { panic!("{series:?}") };
        assert_eq!((change.index, change.run.as_str()), (6, "run-4-006"));
        assert_eq!(change.outcome, Outcome::Slower);
    }
}
