//! The result of an experiment, computed from its definition and its runs.
//!
//! The run is the unit: a figure of a cell is estimated from the values of its runs, and cells are compared in the
//! blocks in which they were measured together.

mod ab;
mod effects;
mod frontier;
mod groups;
mod improvement;
mod judge;
mod model;
mod notes;
mod round_trip;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use super::{
    Cell, Experiment, Finished, Goal, Level, Machine, Order, Study, next, remaining, results,
};
use crate::comparison::{
    Certain, Change, RunBlock, TimeChange, Topic, Undecided, changes, marked, time_change,
};
use crate::figure::Figure;
use crate::plan::facts::{currency, price_per_hour};
use crate::record::{Record, StageRecord};
use crate::stats::{Direction, Outcome, Settings, of_best};
use crate::units::{Span, split_size};
use effects::effects;
pub use frontier::Offer;
use groups::{Group, Run, Slot};
use improvement::improvement;
use judge::Judge;
pub(super) use judge::of_effect;
pub use model::{
    AbView, Against, AxisEffect, AxisView, CellView, FigureView, GroupView, Improvement,
    ImprovementRow, LevelView, NodeView, Reason, RoundTrip, RunCounts, SourcesView, StageView,
    StudyKind, StudyView, ThresholdView, ValueEffect,
};
use notes::notes;
use round_trip::round_trip;

/// Returns the result of an experiment, as far as its runs ended.
pub fn evaluate(study: &Study) -> StudyView {
    let experiment = &study.experiment;
    let mut of_cells: Vec<Vec<&Finished>> = vec![Vec::new(); experiment.cells.len()];
    for run in &study.finished {
        of_cells.get_mut(run.task.cell).into_iter().for_each(|of_cell| of_cell.push(run));
    }
    let groups: Vec<Group<'_>> =
        of_cells.iter().map(|of_cell| Group::from_finished(of_cell.iter().copied())).collect();
    let records: Vec<&Record> =
        groups.iter().flat_map(|group| &group.runs).map(|run: &Run<'_>| run.record).collect();
    let slots = Slot::of_all(&records);
    let (main_stage, main) = main_figure(experiment, &records, &slots);
    let cells =
        experiment.cells.iter().zip(&groups).zip(&of_cells).map(|((cell, group), of_cell)| {
            let levels = levels(&of_cell.iter().copied(), &slots);
            cell_view(experiment.cell_name(cell), cell, group.view(&slots), levels)
        });
    let mut view = StudyView {
        id: experiment.id.to_string(),
        name: experiment.name.clone(),
        description: experiment.description.clone(),
        created_at: experiment.created_at.to_string(),
        kind: StudyKind::from(&experiment.goal),
        workload: workload(experiment),
        counts_transactions: throughput(experiment) == Figure::TransactionsPerS,
        environment: Vec::new(),
        differences: differences(experiment, &groups),
        marked: marked(records.iter().copied()),
        axes: experiment.axes.iter().map(axis).collect(),
        effect: experiment.effect,
        planned_runs: planned_runs(study),
        is_unfinished: next(study).is_some(),
        runs: counts(study),
        main,
        main_stage,
        stages: slots.iter().filter_map(|slot| slot.name.clone()).collect(),
        baseline: None,
        best: None,
        best_against: None,
        cells: cells.collect(),
        effects: Vec::new(),
        improvement: None,
        undecided: None,
        time: None,
        ab: None,
        round_trip: None,
        variants: Vec::new(),
        notes: Vec::new(),
        currency: None,
        notes_of_people: study.experiment.notes.clone(),
    };
    compared(&mut view, experiment, &groups, &slots);
    match &experiment.goal {
        Goal::Sweep { .. } => {}
        Goal::Ab(settings) => ab::add(&mut view, study, settings),
        Goal::Saturation(settings) => {
            for (cell, saturation) in view.cells.iter_mut().zip(results(study, settings)) {
                cell.saturation = Some(saturation);
            }
        }
    }
    view.improvement = improvement(&view);
    view.round_trip = round_trip(&view, experiment);
    view.time = time(&view, experiment, &groups, &slots);
    view.undecided = undecided(&view, &groups);
    let machine = experiment.machine().map(Machine::note);
    view.notes = machine.into_iter().chain(notes(&view, &groups)).collect();
    without_currencies(&mut view, experiment);
    view
}

fn cell_view(name: String, cell: &Cell, group: GroupView, levels: Vec<LevelView>) -> CellView {
    let mut view = CellView {
        name,
        values: cell.values.clone(),
        price_per_hour: price_per_hour(&cell.plan.facts),
        group,
        levels,
        saturation: None,
    };
    if !view.levels.is_empty() {
        // The runs of all levels together have no meaning.
        view.group.stages.clear();
    }
    view
}

/// Removes prices and the figures that depend on them if the prices have different currencies: they cannot be compared.
fn without_currencies(view: &mut StudyView, experiment: &Experiment) {
    let of_cells = experiment.cells.iter().filter_map(|cell| currency(&cell.plan.facts));
    let currencies: BTreeSet<&str> = of_cells.collect();
    if let [only] = currencies.iter().collect::<Vec<_>>().as_slice() {
        view.currency = Some((**only).to_owned());
    }
    if currencies.len() < 2 {
        return;
    }
    let is_price = |figure: Figure| {
        matches!(figure, Figure::PricePerMillionTransactions | Figure::TransactionsPerPrice)
    };
    for cell in &mut view.cells {
        cell.price_per_hour = None;
        let groups = cell.levels.iter_mut().map(|level| &mut level.group);
        for stage in groups.chain([&mut cell.group]).flat_map(|group| &mut group.stages) {
            stage.figures.retain(|row| !is_price(row.figure));
        }
    }
    let names = currencies.iter().map(|name| if name.is_empty() { "none" } else { name });
    let names = names.collect::<Vec<_>>().join(", ");
    view.notes
        .push(format!("the prices have different currencies ({names}), and are not compared"));
}

/// Adds what compares cells with each other.
fn compared(view: &mut StudyView, experiment: &Experiment, groups: &[Group<'_>], slots: &[Slot]) {
    let baseline = match experiment.goal {
        Goal::Sweep { baseline } => baseline,
        Goal::Ab(_) => 0,
        Goal::Saturation(_) => return,
    };
    view.baseline = groups.get(baseline).filter(|group| !group.runs.is_empty()).map(|_| baseline);
    let judge = Judge {
        settings: Settings { effect: experiment.effect, ..Settings::default() },
        slots,
        in_blocks: experiment.order == Order::Interleaved,
        throughput: throughput(experiment),
    };
    // The looks of a test compare its figures.
    let is_test = matches!(experiment.goal, Goal::Ab(_));
    if let Some(base) = view.baseline.and_then(|at| groups.get(at)) {
        for (at, (cell, group)) in view.cells.iter_mut().zip(groups).enumerate() {
            if at == baseline || group.runs.is_empty() {
                continue;
            }
            let comparisons =
                if is_test { judge.costs(base, group) } else { judge.all(base, group) };
            for (stage, figure, against) in comparisons {
                let stage = cell.group.stages.get_mut(stage);
                let row = stage
                    .and_then(|stage| stage.figures.iter_mut().find(|row| row.figure == figure));
                if let Some(row) = row {
                    row.against_baseline = Some(against);
                }
            }
        }
    }
    if is_test {
        return;
    }
    view.best = best(view);
    view.best_against = best_against(view, groups, &judge);
    view.effects = effects(experiment, groups, &judge, view.main_stage, view.main);
}

/// The main figure of the best cell relative to the baseline, as the best of all compared cells.
fn best_against(view: &StudyView, groups: &[Group<'_>], judge: &Judge<'_>) -> Option<Against> {
    let best = view.best?;
    let cell = &view.cells.get(best)?.group;
    let alone = view.main_of(cell)?.against_baseline.clone()?;
    let (base, group) = (groups.get(view.baseline?)?, groups.get(best)?);
    let blocks = judge.blocks(view.main, judge.slots.get(view.main_stage)?, base, group)?;
    let compared = |cell: &&CellView| {
        view.main_of(&cell.group).is_some_and(|main| main.against_baseline.is_some())
    };
    let cells = view.cells.iter().filter(compared).count();
    let settings = &judge.settings;
    let interval = alone.interval.and_then(|alone| of_best(alone, &blocks, cells, settings));
    let outcome = Outcome::read(interval, settings.effect, view.main.direction());
    Some(Against { interval, outcome: Some(outcome), ..alone })
}

/// The cell with the best main figure among those that meet all thresholds; `None` with fewer than two cells.
fn best(view: &StudyView) -> Option<usize> {
    let values: Vec<(usize, f64)> = view
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.group.meets_thresholds())
        .filter_map(|(at, cell)| Some((at, view.main_of(&cell.group)?.estimate.value)))
        .collect();
    let better = |one: &&(usize, f64), other: &&(usize, f64)| match view.main.direction() {
        Direction::HigherIsBetter => one.1.total_cmp(&other.1),
        Direction::LowerIsBetter => other.1.total_cmp(&one.1),
    };
    let measured = view.cells.iter().filter(|cell| view.main_of(&cell.group).is_some()).count();
    values.iter().max_by(better).filter(|_| measured > 1).map(|(at, _)| *at)
}

fn levels<'a>(
    finished: &(impl Iterator<Item = &'a Finished> + Clone),
    slots: &[Slot],
) -> Vec<LevelView> {
    let mut levels: Vec<Level> = Vec::new();
    for level in finished.clone().filter_map(|run| run.task.level) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let key = |level: &Level| match level {
        Level::Sessions(sessions) => (0, f64::from(*sessions)),
        Level::Rate { per_s, .. } => (1, *per_s),
    };
    levels.sort_by(|one, other| {
        let (one, other) = (key(one), key(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    let of_level = |level: Level| LevelView {
        level,
        group: Group::from_finished(finished.clone().filter(|run| run.task.level == Some(level)))
            .view(slots),
    };
    levels.into_iter().map(of_level).collect()
}

fn workload(experiment: &Experiment) -> String {
    let first = experiment.cells.first();
    first.map(|cell| cell.plan.work.traits().name.to_owned()).unwrap_or_default()
}

/// The stage and the figure by which cells are ranked: the throughput of the first session loop; with a rate its
/// latency, because the throughput is given; without a loop the duration of the first statement.
fn main_figure(experiment: &Experiment, records: &[&Record], slots: &[Slot]) -> (usize, Figure) {
    let of_slot = |slot: &Slot| -> Vec<&StageRecord> {
        records.iter().filter_map(|record| slot.stage_in(record)).collect()
    };
    let is_loop = |slot: &Slot| of_slot(slot).iter().all(|stage| !stage.is_timed());
    let Some(stage) = slots.iter().position(is_loop) else {
        return (0, if slots.is_empty() { throughput(experiment) } else { Figure::Seconds });
    };
    let stages = slots.get(stage).map(of_slot).unwrap_or_default();
    let is_open = stages.iter().all(|measured| measured.session_loop.response_us.is_some());
    let is_search = matches!(experiment.goal, Goal::Saturation(_));
    if is_search {
        // The law is fitted to transactions, of which each session has one at a time.
        return (stage, Figure::TransactionsPerS);
    }
    if is_open && !stages.is_empty() {
        let is_ab = matches!(experiment.goal, Goal::Ab(_));
        // An A/B test is decided by the figure that varies less.
        return (stage, if is_ab { Figure::P50Us } else { Figure::P99Us });
    }
    (stage, throughput(experiment))
}

fn throughput(experiment: &Experiment) -> Figure {
    let first = experiment.cells.first();
    first.map_or(Figure::RowsPerS, |cell| Figure::throughput_of(&cell.plan.work))
}

fn axis(axis: &crate::study::Axis) -> AxisView {
    AxisView {
        name: axis.name.clone(),
        values: axis.values.clone(),
        numbers: numbers(&axis.values),
    }
}

/// Returns the number of runs of a sweep: the runs that ended, and the runs to come. A cell that failed has no
/// further runs. `None` for other experiments, which decide as they go.
fn planned_runs(study: &Study) -> Option<u64> {
    let left = remaining(study, 0, Duration::ZERO);
    (!left.is_maximum).then_some((study.finished.len() + left.runs) as u64)
}

fn counts(study: &Study) -> RunCounts {
    let all = Group::from_finished(&study.finished).view(&[]);
    all.runs
}

/// The change of the time of a transaction between the two cells of the improvement.
fn time(
    view: &StudyView,
    experiment: &Experiment,
    groups: &[Group<'_>],
    slots: &[Slot],
) -> Option<TimeChange> {
    let improvement = view.improvement.as_ref().filter(|_| view.kind != StudyKind::Saturation)?;
    let (a, b) = (groups.get(improvement.from)?, groups.get(improvement.to)?);
    let slot = slots.get(view.main_stage)?;
    let numbers: BTreeSet<Option<u32>> = match experiment.order {
        Order::Interleaved => a.runs.iter().map(|run| Some(run.block)).collect(),
        Order::Sequential => [None].into(),
    };
    let blocks: Vec<_> = numbers
        .into_iter()
        .map(|block| RunBlock { a: a.in_block(slot, block), b: b.in_block(slot, block) })
        .filter(|block| !block.a.is_empty() && !block.b.is_empty())
        .collect();
    time_change(&blocks, &changes(&a.records(), &b.records()))
}

/// Returns the certain differences if the main figure of the improvement is undecided.
fn undecided(view: &StudyView, groups: &[Group<'_>]) -> Option<Undecided> {
    let improvement = view.improvement.as_ref().filter(|_| view.kind != StudyKind::Saturation)?;
    let (a, b) = (groups.get(improvement.from)?.records(), groups.get(improvement.to)?.records());
    let main = improvement.rows.iter().find(|row| row.figure == view.main)?.against.as_ref()?;
    if main.outcome? != Outcome::Inconclusive {
        return None;
    }
    let is_compared = |cell: &&CellView| {
        view.main_of(&cell.group).is_some_and(|main| main.against_baseline.is_some())
    };
    let compared = view.cells.iter().filter(is_compared).count();
    let alpha = Settings::default().alpha;
    let figures = improvement.rows.iter().filter(|row| row.figure != view.main);
    let figures = figures.filter_map(|row| {
        let against = row.against.as_ref()?;
        // The best of several cells was chosen by chance, too (Bonferroni).
        let is_beyond = compared == 1 || against.p_adjusted? * compared as f64 <= alpha;
        let name = row.figure.heading();
        Certain::figure(name, against.ratio, against.outcome?).filter(|_| is_beyond)
    });
    let mut certain: Vec<Certain> = figures.collect();
    if compared == 1 {
        certain.extend(view.variants.get(view.main_stage).into_iter().flat_map(Certain::costs));
        certain.extend(view.time.iter().flat_map(Certain::parts));
    }
    let fewest = a.len().min(b.len());
    let runs_decide = main.runs_needed.map(|needed| fewest + needed).or(main.runs_expected);
    Some(Undecided::new(certain, runs_decide, &a, &b))
}

/// Returns the differences between the only two cells: their values are names.
fn differences(experiment: &Experiment, groups: &[Group<'_>]) -> Vec<Change> {
    let [a, b] = groups else {
        return Vec::new();
    };
    if matches!(experiment.goal, Goal::Saturation(_)) || a.runs.is_empty() || b.runs.is_empty() {
        return Vec::new();
    }
    let all_changes = changes(&a.records(), &b.records()).into_iter();
    // The table of the bottlenecks has them, and each run has another seed.
    all_changes
        .filter(|change| change.topic != Topic::Bottleneck && change.name != "seed")
        .collect()
}

/// Returns the values of an axis as numbers; `None` unless all are different numbers of one kind.
fn numbers(values: &[String]) -> Option<Vec<f64>> {
    let parsed = [plain, size, duration]
        .into_iter()
        .find_map(|parse| values.iter().map(|value| parse(value)).collect::<Option<Vec<f64>>>())?;
    let is_new =
        |at: usize, value: f64| parsed.iter().take(at).all(|known| known.total_cmp(&value).is_ne());
    parsed.iter().enumerate().all(|(at, value)| is_new(at, *value)).then_some(parsed)
}

fn plain(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('%').replace(['_', ','], "");
    let starts = |first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.');
    if !text.starts_with(starts) {
        // Not `inf` or `nan`.
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

fn size(text: &str) -> Option<f64> {
    let (digits, unit_bytes) = split_size(text.trim())?;
    Some(plain(digits)? * unit_bytes? as f64)
}

fn duration(text: &str) -> Option<f64> {
    Span::from_str(text.trim()).ok().map(|span| span.0.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(values: &[&str]) -> Option<Vec<f64>> {
        numbers(&values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn values_of_options_are_numbers() {
        assert_eq!(parsed(&["1", "1_000", "1e6", "2.5"]), Some(vec![1.0, 1e3, 1e6, 2.5]));
        assert_eq!(parsed(&["64MB", "1GB"]), Some(vec![67_108_864.0, 1_073_741_824.0]));
        assert_eq!(parsed(&["500ms", "2s", "1m"]), Some(vec![0.5, 2.0, 60.0]));
        assert_eq!(parsed(&["10%", "50%"]), Some(vec![10.0, 50.0]));
    }

    #[test]
    fn words_and_equal_numbers_are_not_parsed() {
        assert_eq!(parsed(&["headless", "cluster-ip"]), None);
        assert_eq!(parsed(&["1", "inf"]), None);
        assert_eq!(parsed(&["1", "16MB"]), None);
        assert_eq!(parsed(&["10", "1e1"]), None);
    }
}
