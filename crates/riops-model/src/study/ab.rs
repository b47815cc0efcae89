//! The A/B test on the runs of an experiment.

use super::definition::{AbSettings, Experiment, Goal};
use super::task::{Finished, Study, TURNS, Task, of_ab_block};
use crate::figure::Figure;
use crate::record::{Record, StageRecord};
use crate::stats::{Block, Decision, Direction, Look, Outcome, SequentialSettings, look};

/// Attempts at a run that is disturbed each time. The last one counts.
const ATTEMPTS_MAX: u32 = 3;

/// Returns the next run, if any.
pub(super) fn next(study: &Study, settings: &AbSettings) -> Option<Task> {
    if study.finished.iter().any(|finished| finished.result.is_err()) {
        return None;
    }
    let open = |block| {
        let tasks = of_ab_block(&study.experiment, block);
        tasks.into_iter().find_map(|task| attempt(study, settings, task))
    };
    let measured = blocks(study, settings);
    // If a block has begun, the look before it has not ended the test.
    let task = (measured < settings.blocks_max).then(|| open(measured + 1))??;
    let is_begun = study.finished.iter().any(|run| run.task.block > measured);
    // One machine alone decides nothing.
    let goes_on = |look: Look| {
        settings.machine.is_some() || matches!(look.decision, Decision::Continue { .. })
    };
    (is_begun || look_after(study, settings, measured).is_none_or(goes_on)).then_some(task)
}

/// Returns the last look; `None` before the first one.
pub fn last_look(study: &Study, settings: &AbSettings) -> Option<Look> {
    (1..=blocks(study, settings)).rev().find_map(|block| look_after(study, settings, block))
}

/// Returns the number of complete blocks.
pub fn blocks(study: &Study, settings: &AbSettings) -> u32 {
    let numbers = 1..=settings.blocks_max;
    numbers.take_while(|&block| is_complete(study, settings, block)).last().unwrap_or(0)
}

fn is_complete(study: &Study, settings: &AbSettings, block: u32) -> bool {
    let tasks = of_ab_block(&study.experiment, block);
    tasks.into_iter().all(|task| attempt(study, settings, task).is_none())
}

/// Returns the next attempt at a run; `None` if there was one that counts. The attempts at a turn are this turn, and every
/// second one after it.
fn attempt(study: &Study, settings: &AbSettings, first: Task) -> Option<Task> {
    let repeated = study.finished.iter().filter(|run| run.task.turn > TURNS).count();
    let may_repeat = repeated < settings.repeats_max as usize;
    (0..=ATTEMPTS_MAX).find_map(|repetition| {
        let task = Task { turn: first.turn + repetition * TURNS, ..first };
        match study.finished.iter().find(|run| run.task == task) {
            None => Some((repetition < ATTEMPTS_MAX).then_some(task)),
            Some(run) if may_repeat && run.is_disturbed() => None,
            Some(_) => Some(None),
        }
    })?
}

/// Returns the study with one attempt at each run: without those that were disturbed and repeated.
pub fn counted(study: &Study) -> Study {
    let Goal::Ab(settings) = &study.experiment.goal else {
        return study.clone();
    };
    let is_repeated = |run: &Finished| {
        let next = Task { turn: run.task.turn + TURNS, ..run.task };
        study.finished.iter().any(|other| other.task == next)
    };
    let counts = |run: &Finished| Finished {
        task: Task { turn: (run.task.turn - 1) % TURNS + 1, ..run.task },
        result: run.result.clone(),
    };
    let finished = study.finished.iter().filter(|run| !is_repeated(run)).map(counts).collect();
    let goal = Goal::Ab(AbSettings { repeats_max: 0, ..settings.clone() });
    Study { experiment: Experiment { goal, ..study.experiment.clone() }, finished }
}

/// Returns the look after this block, if one is due.
fn look_after(study: &Study, settings: &AbSettings, block: u32) -> Option<Look> {
    let sequential = SequentialSettings {
        effect: study.experiment.effect,
        alpha: settings.alpha,
        blocks_max: settings.blocks_max,
        seed: study.experiment.seed,
        one_sided: settings.one_sided,
        // A gate has many short runs and fewer looks, so that each look has a large enough share of the error to
        // show a difference.
        blocks_step: if settings.one_sided { (settings.blocks_max / 8).max(2) } else { 2 },
        ..SequentialSettings::default()
    };
    let ordinal = sequential.look_after(block)?;
    if sequential.blocks_at(ordinal) != block {
        return None;
    }
    let study = &counted(study);
    let values = |figures: &[Figure]| -> Vec<(Direction, Vec<Block>)> {
        let values = |figure: &Figure| (figure.direction(), values(study, block, *figure));
        figures.iter().map(values).collect()
    };
    let (figures, costs) = figures_and_costs(study, settings);
    Some(look_with_costs(&values(&figures), &values(&costs), ordinal, &sequential))
}

/// Compares figures and costs at a look. The costs have an error probability in addition to the figures.
pub(super) fn look_with_costs(
    figures: &[(Direction, Vec<Block>)],
    costs: &[(Direction, Vec<Block>)],
    ordinal: u32,
    sequential: &SequentialSettings,
) -> Look {
    let mut current = look(figures, ordinal, sequential);
    let costs = look(costs, ordinal, sequential).effects;
    let known = || costs.iter().filter_map(|effect| effect.as_ref().ok());
    let is_last = ordinal == sequential.looks_max();
    if known().any(|cost| cost.outcome == Outcome::Slower) {
        current.decision = Decision::Stop(Outcome::Slower);
    } else if current.decision != Decision::Stop(Outcome::Slower)
        && !is_last
        && known().any(|cost| cost.outcome == Outcome::Inconclusive && !cost.not_worse)
    {
        current.decision = Decision::Continue { blocks: sequential.blocks_at(ordinal + 1) };
    }
    current.effects.extend(costs);
    current
}

pub(super) fn values(study: &Study, blocks: u32, figure: Figure) -> Vec<Block> {
    let of_cell = |block: u32, cell: usize| -> Option<Vec<f64>> {
        let runs = study.finished.iter().filter(|run| run.task.block == block);
        let runs = runs.filter(|run| run.task.cell == cell).filter_map(Finished::usable);
        let values = runs.map(|record| figure.exact(record, main_stage(record)?));
        // On a busy machine, the counters of a short run may have been read too late. This does not depend on the variant.
        if figure.is_cost() { Some(values.flatten().collect()) } else { values.collect() }
    };
    let blocks =
        (1..=blocks).map(|block| Some(Block { a: of_cell(block, 0)?, b: of_cell(block, 1)? }));
    // If the values of some runs are missing, the other values do not represent the variant.
    blocks.collect::<Option<_>>().unwrap_or_default()
}

/// Returns the figures that are compared, in the order of the effects of a [`Look`]. With a rate the throughput is
/// given, and a statement that runs once has only a duration.
pub fn figures_of(study: &Study, settings: &AbSettings) -> Vec<Figure> {
    let (figures, costs) = figures_and_costs(study, settings);
    [figures, costs].concat()
}

pub(super) fn figures_and_costs(
    study: &Study,
    settings: &AbSettings,
) -> (Vec<Figure>, Vec<Figure>) {
    let Some(stage) = study.finished.iter().find_map(Finished::usable).and_then(main_stage) else {
        return (Vec::new(), Vec::new());
    };
    let first = study.experiment.cells.first();
    let throughput = first.map_or(Figure::RowsPerS, |cell| Figure::throughput_of(&cell.plan.work));
    let figures = if stage.is_timed() {
        vec![Figure::Seconds]
    } else if stage.session_loop.response_us.is_some() {
        vec![Figure::P50Us, Figure::P99Us]
    } else {
        vec![throughput, Figure::P50Us, Figure::P99Us]
    };
    let costs = settings.costs.iter().flat_map(|kind| kind.figures()).copied();
    (figures, costs.collect())
}

/// The first session loop; without one the first statement.
fn main_stage(record: &Record) -> Option<&StageRecord> {
    let is_loop = |stage: &&StageRecord| !stage.is_timed();
    record.stages.iter().find(is_loop).or(record.stages.first())
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;
    use crate::figure::CostKind;
    use crate::record::{CostRecord, Warning, WarningKind};

    const SETTINGS: AbSettings = AbSettings {
        blocks_max: 10,
        alpha: 0.05,
        repeats_max: 0,
        one_sided: false,
        costs: Vec::new(),
        machine: None,
    };

    /// Conducts a test in which the throughput of B is `ratio` times the throughput of A, with noise of 1 %.
    fn conducted(ratio: f64) -> Study {
        let experiment = Experiment { goal: Goal::Ab(SETTINGS), ..example::sweep(2) };
        let mut study = Study::load(experiment, Vec::new(), Vec::new());
        let mut noise = 0_u32;
        while let Some(task) = next(&study, &SETTINGS) {
            let mut record = example::record(&study.experiment.plan(&task).unwrap());
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = 1.0 + 0.02 * (f64::from(noise) / f64::from(u32::MAX) - 0.5);
            let of_variant = if task.cell == 1 { ratio } else { 1.0 };
            record.stages[0].throughput.rows_per_s = 1_000.0 * noise * of_variant;
            study.finished.push(Finished::new(task, Ok(Box::new(record))));
        }
        study
    }

    #[test]
    fn a_large_difference_ends_the_test_early() {
        for (ratio, outcome) in [(1.2, Outcome::Faster), (0.8, Outcome::Slower)] {
            let study = conducted(ratio);
            let blocks = blocks(&study, &SETTINGS);
            assert!(blocks < SETTINGS.blocks_max, "{blocks}");
            let look = last_look(&study, &SETTINGS).unwrap();
            assert_eq!(look.decision, Decision::Stop(outcome));
            assert_eq!(figures_of(&study, &SETTINGS)[0], Figure::RowsPerS);
        }
    }

    #[test]
    fn an_equal_variant_never_gets_a_verdict_of_difference() {
        let look = last_look(&conducted(1.0), &SETTINGS).unwrap();
        let Decision::Stop(outcome) = look.decision else { panic!("{look:?}") };
        assert!([Outcome::Equivalent, Outcome::Inconclusive].contains(&outcome), "{outcome:?}");
    }

    #[test]
    fn disturbed_runs_are_repeated_within_the_budget_and_then_count() {
        let settings = AbSettings { repeats_max: 4, ..SETTINGS };
        let experiment = Experiment { goal: Goal::Ab(settings.clone()), ..example::sweep(2) };
        let mut study = Study::load(experiment, Vec::new(), Vec::new());
        // All runs of B are disturbed.
        while let Some(task) = next(&study, &settings) {
            let mut record = example::record(&study.experiment.plan(&task).unwrap());
            if task.cell == 1 {
                let (kind, text) = (WarningKind::StolenCpu, "stolen".to_owned());
                record.verdict.warnings.push(Warning { kind, stage: None, text });
            }
            assert_eq!(study.experiment.task_of(&record), Some(task));
            study.finished.push(Finished::new(task, Ok(Box::new(record))));
        }
        let repeated = |run: &&Finished| run.task.turn > TURNS;
        assert_eq!(study.finished.iter().filter(repeated).count(), 4);
        assert!(study.finished.iter().filter(repeated).all(|run| run.task.cell == 1));
        let counted = counted(&study);
        assert_eq!(counted.finished.len() + 4, study.finished.len());
        assert_eq!(counted.finished.len(), (blocks(&study, &settings) * 2 * TURNS) as usize);
        let look = last_look(&study, &settings).unwrap();
        let Goal::Ab(without) = &counted.experiment.goal else { panic!() };
        assert_eq!(last_look(&counted, without), Some(look));
    }

    #[test]
    fn a_cost_decides_where_the_rate_cannot() {
        let costs = vec![CostKind::Cpu, CostKind::Wal];
        let settings = AbSettings { costs, one_sided: true, ..SETTINGS };
        let conducted = |cpu_ratio: f64| {
            let experiment = Experiment { goal: Goal::Ab(settings.clone()), ..example::sweep(2) };
            let mut study = Study::load(experiment, Vec::new(), Vec::new());
            let mut noise = 0_u32;
            while let Some(task) = next(&study, &settings) {
                let mut record = example::record(&study.experiment.plan(&task).unwrap());
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = f64::from(noise) / f64::from(u32::MAX) - 0.5;
                let of_variant = if task.cell == 1 { cpu_ratio } else { 1.0 };
                let stage = &mut record.stages[0];
                // The rates differ by up to half, the costs by 1%.
                stage.throughput.rows_per_s = 1_000.0 * (1.0 + noise);
                let is_known = task.block != 2 || task.turn > 1;
                stage.cost = Some(CostRecord {
                    server_cpu_us: is_known.then_some(100.0 * of_variant * (1.0 - 0.01 * noise)),
                    wal_bytes: Some(0.0),
                    ..CostRecord::default()
                });
                study.finished.push(Finished::new(task, Ok(Box::new(record))));
            }
            (last_look(&study, &settings).unwrap(), study)
        };
        let (look, study) = conducted(1.1);
        assert_eq!(look.decision, Decision::Stop(Outcome::Slower), "{look:?}");
        assert!(blocks(&study, &settings) < settings.blocks_max);
        let figures = figures_of(&study, &settings);
        assert_eq!(
            figures[3..],
            [Figure::ServerCpuUsPerTransaction, Figure::WalBytesPerTransaction]
        );
        let outcome = |at: usize| look.effects[at].as_ref().ok().map(|effect| effect.outcome);
        assert_eq!((outcome(0), outcome(3)), (Some(Outcome::Inconclusive), Some(Outcome::Slower)));
        // A run without WAL has nothing to compare.
        assert_eq!(outcome(4), None);
        let (look, _) = conducted(1.0);
        assert_eq!(look.decision, Decision::Stop(Outcome::Inconclusive), "{look:?}");
    }

    #[test]
    fn a_failed_run_ends_the_test() {
        let experiment = Experiment { goal: Goal::Ab(SETTINGS), ..example::sweep(2) };
        let mut study = Study::load(experiment, Vec::new(), Vec::new());
        let task = next(&study, &SETTINGS).unwrap();
        study.finished.push(Finished::new(task, Err("no".to_owned())));
        assert_eq!(next(&study, &SETTINGS), None);
        assert!(last_look(&study, &SETTINGS).is_none());
    }
}
