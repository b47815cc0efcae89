//! The figures of a stage that are compared.

use std::collections::BTreeMap;

use serde::Serialize;

use super::changes::Change;
use super::why::{RunBlock, TimeChange, time_change};
use crate::figure::{Figure, Summary};
use crate::record::{
    AtLeast, CommandRecord, Histogram, ProfileRecord, Record, Stack, StageRecord, StoredHistogram,
};
use crate::stats::{Block, Direction, Effect, LowerBounds, Settings, compare};

/// Maximum number of characters of a command.
const COMMAND_MAX: usize = 24;

/// The name of a figure of these stages.
fn name_of(figure: Figure, stage: Option<&StageRecord>, has_response: bool) -> String {
    match figure {
        Figure::CommandUs(at) => {
            let command = stage.and_then(|stage| stage.session_loop.commands.get(at));
            command.map(command_name).unwrap_or_default()
        }
        _ if figure.is_percentile() && has_response => format!("response {}", figure.name()),
        _ => figure.name().to_owned(),
    }
}

/// `command 2 mean: update t set v = v …`, with the number of the script if it is not the first.
fn command_name(command: &CommandRecord) -> String {
    let script = match command.script {
        0 | 1 => String::new(),
        script => format!("script {script} "),
    };
    let title: Vec<char> = command.title.chars().take(COMMAND_MAX + 1).collect();
    let (title, more) = match title.get(..COMMAND_MAX) {
        Some(start) if title.len() > COMMAND_MAX => (start, "…"),
        _ => (title.as_slice(), ""),
    };
    format!("{script}command {} mean: {}{more}", command.number, String::from_iter(title))
}

/// The measured commands, if all stages have the same.
fn commands(stages: &[&StageRecord]) -> Vec<Figure> {
    let key = |command: &CommandRecord| (command.script, command.number, command.title.clone());
    let keys =
        |stage: &StageRecord| -> Vec<_> { stage.session_loop.commands.iter().map(key).collect() };
    let [first, rest @ ..] = stages else {
        return Vec::new();
    };
    if rest.iter().any(|stage| keys(stage) != keys(first)) {
        return Vec::new();
    }
    let commands = first.session_loop.commands.iter().enumerate();
    let measured = commands.filter(|(_, command)| command.is_measured);
    measured.map(|(at, _)| Figure::CommandUs(at)).collect()
}

/// A figure of both groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureComparison {
    /// Name, with the unit of a rate.
    pub name: String,
    /// The figure, with the unit of its values.
    pub figure: Figure,
    /// Whether it is the main figure of the comparison.
    pub main: bool,
    /// The value of A: the geometric mean of its runs in the blocks, so that B / A is the ratio of the effect. Without an
    /// effect, the percentile of the merged histograms.
    pub a: Option<f64>,
    /// The value of B.
    pub b: Option<f64>,
    /// Whether the value of A, or the value of one of its runs, is only a lower bound.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub a_at_least: bool,
    /// The same for B.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub b_at_least: bool,
    /// B relative to A; absent unless both groups have several runs with this figure.
    pub effect: Option<Effect>,
}

impl FigureComparison {
    /// Returns the figure with its effect and the means that were compared.
    fn with(self, effect: Option<Effect>) -> Self {
        let means = effect.as_ref().map(|effect| effect.means.map(Some));
        let [a, b] = means.unwrap_or([self.a, self.b]);
        Self { a, b, effect, ..self }
    }
}

/// The figures of a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageComparison {
    /// Name of the stage; absent if the runs have only one.
    pub stage: Option<String>,
    /// Its figures; the main one first.
    pub figures: Vec<FigureComparison>,
    /// Costs of a transaction. The p-values are not adjusted for the number of costs, which explain a difference and are no
    /// results of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<FigureComparison>,
    /// The change of the time of a transaction as a sum of parts.
    pub time: Option<TimeChange>,
    /// The stacks of the CPU profiles of A and B, all runs together; empty without.
    #[serde(skip)]
    pub profiles: [Vec<Stack>; 2],
    /// The main figure of each run, by block; empty if a run lacks it.
    #[serde(skip)]
    pub blocks: Vec<Block>,
    /// The latencies of A and B, all runs together.
    #[serde(skip)]
    pub histograms: [Option<StoredHistogram>; 2],
}

/// The stages of the two groups that have the same name and position.
pub(super) fn stages(
    a: &[&Record],
    b: &[&Record],
    blocks: &Blocks,
    changes: &[Change],
    settings: &Settings,
) -> Vec<StageComparison> {
    let Some(first) = a.first() else {
        return Vec::new();
    };
    let mut candidates = Vec::new();
    let mut stages = Vec::new();
    for (position, stage) in first.stages.iter().enumerate() {
        let at = |runs| stages_at(runs, position, first, stage);
        let (Some(of_a), Some(of_b)) = (at(a), at(b)) else {
            continue;
        };
        let both: Vec<_> = of_a.iter().chain(&of_b).copied().collect();
        let (shown, has_response) = figures_of(&both);
        let stage_candidates = of_stage(&of_a, &of_b, blocks, shown, has_response);
        let costs = of_stage(&of_a, &of_b, blocks, Figure::costs().collect(), false);
        let name = (first.stages.len() > 1).then(|| stage.name.clone());
        let time = time_change(&blocks.runs(&of_a, &of_b), changes);
        let profiles = [stacks(&of_a), stacks(&of_b)];
        let of_main = stage_candidates.first().and_then(|main| main.blocks.clone());
        let histograms = [histogram(&of_a), histogram(&of_b)];
        let stage = StageComparison {
            stage: name,
            figures: Vec::new(),
            costs: costs.into_iter().map(|cost| cost.alone(settings)).collect(),
            time,
            profiles,
            blocks: of_main.unwrap_or_default(),
            histograms,
        };
        stages.push((stage, stage_candidates.len()));
        candidates.extend(stage_candidates);
    }
    let values: Vec<_> = candidates
        .iter()
        .map(|candidate| (candidate.figure.figure.direction(), candidate.blocks.clone()))
        .collect();
    let judged = candidates.into_iter().zip(judged(&values, settings)).enumerate();
    let mut figures = judged.map(|(position, (Candidate { figure, .. }, effect))| {
        let direction = figure.figure.direction();
        let bounds = LowerBounds { a: figure.a_at_least, b: figure.b_at_least };
        let effect = effect.map(|effect| effect.with_bounds(direction, bounds));
        FigureComparison { main: position == 0, ..figure.with(effect) }
    });
    let with_figures = |(stage, count)| StageComparison {
        figures: figures.by_ref().take(count).collect(),
        ..stage
    };
    stages.into_iter().map(with_figures).collect()
}

/// The latencies of runs.
fn histogram(runs: &[Summary<'_>]) -> Option<StoredHistogram> {
    let stored = runs.iter().filter_map(|run| run.stage.session_loop.latency_histogram());
    Histogram::merged(stored).ok()??.stored().ok()
}

/// The stacks of the profiles of runs.
fn stacks(runs: &[Summary<'_>]) -> Vec<Stack> {
    let mut sum: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let profiles = runs.iter().filter_map(|run| run.stage.profile.as_ref());
    for (functions, samples) in profiles.flat_map(ProfileRecord::stacks) {
        *sum.entry(functions).or_default() += samples;
    }
    sum.into_iter().collect()
}

/// A figure of several runs: its name, the figure, and a value for each run.
pub type FigureValues = (String, Figure, Vec<f64>);

/// The values of each figure over runs of one plan, by stage. A figure that a run lacks is left out.
pub fn group_figures(runs: &[&Record]) -> Vec<(Option<String>, Vec<FigureValues>)> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let mut groups = Vec::new();
    for (position, stage) in first.stages.iter().enumerate() {
        let Some(stages) = stages_at(runs, position, first, stage) else {
            continue;
        };
        let (figures, has_response) = figures_of(&stages);
        let values = |figure: Figure| -> Option<Vec<f64>> {
            stages.iter().map(|run| figure.value(run.record, run.stage)).collect()
        };
        let measured = figures
            .into_iter()
            .filter_map(|figure| {
                let name = name_of(figure, Some(stage), has_response);
                Some((name, figure, values(figure)?))
            })
            .collect();
        groups.push(((first.stages.len() > 1).then(|| stage.name.clone()), measured));
    }
    groups
}

/// Returns the stage at this position of each run; `None` if a run has no such stage. Imported stages are named by
/// their tool, so their names are not compared.
fn stages_at<'a>(
    runs: &[&'a Record],
    position: usize,
    first: &Record,
    stage: &StageRecord,
) -> Option<Vec<Summary<'a>>> {
    let is_imported = |run: &Record| run.imported.is_some();
    let is_same = |run: &Record, other: &StageRecord| {
        other.name == stage.name || is_imported(run) || is_imported(first)
    };
    let stage = |run: &'a Record| {
        let counterpart = run.stages.get(position).filter(|other| is_same(run, other))?;
        Some(Summary { record: run, stage: counterpart })
    };
    runs.iter().copied().map(stage).collect()
}

/// Returns the figures of a stage, the main one first, and whether latencies are response times. With a rate, the
/// throughput is given, so latencies come first.
fn figures_of(runs: &[Summary<'_>]) -> (Vec<Figure>, bool) {
    let stages: Vec<&StageRecord> = runs.iter().map(|run| run.stage).collect();
    let has_response = stages.iter().all(|stage| stage.session_loop.response_us.is_some());
    if stages.iter().any(|stage| stage.is_timed()) {
        return (vec![Figure::Seconds], false);
    }
    let first = runs.first();
    let throughput =
        first.map_or(Figure::RowsPerS, |run| Figure::throughput_of(&run.record.plan.work));
    let mut figures = Figure::compared_percentiles().collect::<Vec<_>>();
    figures.insert(if has_response { figures.len() } else { 0 }, throughput);
    figures.extend(commands(&stages));
    (figures, has_response)
}

/// A figure before it is judged.
struct Candidate {
    figure: FigureComparison,
    blocks: Option<Vec<Block>>,
}

impl Candidate {
    /// The figure with its effect, judged without the others.
    fn alone(self, settings: &Settings) -> FigureComparison {
        let direction = self.figure.figure.direction();
        let effect = judged(&[(direction, self.blocks)], settings).pop().flatten();
        self.figure.with(effect)
    }
}

/// These figures of one stage.
fn of_stage(
    a: &[Summary<'_>],
    b: &[Summary<'_>],
    blocks: &Blocks,
    figures: Vec<Figure>,
    has_response: bool,
) -> Vec<Candidate> {
    let values = |runs: &[Summary<'_>], figure: Figure| -> Vec<Option<f64>> {
        runs.iter().map(|run| figure.value(run.record, run.stage)).collect()
    };
    let first = a.first().map(|run| run.stage);
    figures
        .into_iter()
        .filter_map(|figure| {
            let (mean_a, mean_b) = (figure.of_all(a), figure.of_all(b));
            let is_bound = |mean: Option<AtLeast>, runs: &[Summary<'_>]| {
                mean.is_some_and(|mean| mean.is_bound)
                    || runs.iter().any(|run| figure.is_bound(run.stage))
            };
            (mean_a.is_some() || mean_b.is_some()).then(|| Candidate {
                figure: FigureComparison {
                    name: name_of(figure, first, has_response),
                    figure,
                    main: false,
                    a: mean_a.map(|mean| mean.value),
                    b: mean_b.map(|mean| mean.value),
                    a_at_least: is_bound(mean_a, a),
                    b_at_least: is_bound(mean_b, b),
                    effect: None,
                },
                blocks: blocks.values(&values(a, figure), &values(b, figure)),
            })
        })
        .collect()
}

/// Effects of all figures in the same order. The first one is the main figure.
fn judged(figures: &[(Direction, Option<Vec<Block>>)], settings: &Settings) -> Vec<Option<Effect>> {
    let with_values: Vec<_> = figures
        .iter()
        .filter_map(|(direction, blocks)| Some((*direction, blocks.clone()?)))
        .collect();
    let mut effects = compare(&with_values, settings).into_iter();
    figures
        .iter()
        .map(
            |(_, blocks)| if blocks.is_some() { effects.next().and_then(Result::ok) } else { None },
        )
        .collect()
}

/// Tag of runs that were measured together: runs of both groups with the same value form a block.
pub const BLOCK_TAG: &str = "block";
/// The same tag as users write it: the output of riops calls a block of an experiment a round.
pub const ROUND_TAG: &str = "round";

/// A group of runs, with the run, label or tag that selected them.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// The selection.
    pub name: &'a str,
    /// All selected runs, oldest first.
    pub records: &'a [Record],
}

/// The positions of the runs of each block, for both groups.
pub(super) struct Blocks(Vec<(Vec<usize>, Vec<usize>)>);

impl Blocks {
    /// If all runs have a block and each block has runs of both groups, those blocks; otherwise one block of all
    /// runs.
    pub(super) fn from_runs(a: &[&Record], b: &[&Record]) -> Self {
        Self::tagged(a, b)
            .unwrap_or_else(|| Self(vec![((0..a.len()).collect(), (0..b.len()).collect())]))
    }

    fn tagged(a: &[&Record], b: &[&Record]) -> Option<Self> {
        let mut blocks: Vec<(&String, Vec<usize>, Vec<usize>)> = Vec::new();
        for (is_a, runs) in [(true, a), (false, b)] {
            for (position, run) in runs.iter().enumerate() {
                let name = run.tags.get(ROUND_TAG).or_else(|| run.tags.get(BLOCK_TAG))?;
                let known = blocks.iter().position(|block| block.0 == name);
                let at = known.unwrap_or(blocks.len());
                if known.is_none() {
                    blocks.push((name, Vec::new(), Vec::new()));
                }
                let block = blocks.get_mut(at)?;
                if is_a { &mut block.1 } else { &mut block.2 }.push(position);
            }
        }
        let is_complete = blocks.iter().all(|(_, a, b)| !a.is_empty() && !b.is_empty());
        is_complete.then(|| Self(blocks.into_iter().map(|(_, a, b)| (a, b)).collect()))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The runs of each block.
    fn runs<'a>(&self, a: &[Summary<'a>], b: &[Summary<'a>]) -> Vec<RunBlock<'a>> {
        let pick = |runs: &[Summary<'a>], positions: &[usize]| -> Vec<Summary<'a>> {
            positions.iter().filter_map(|&position| runs.get(position).copied()).collect()
        };
        let blocks = self.0.iter();
        blocks.map(|(of_a, of_b)| RunBlock { a: pick(a, of_a), b: pick(b, of_b) }).collect()
    }

    /// The values of each block. `None` if a run has no value or one that is not positive: it has no logarithm.
    pub(super) fn values(&self, a: &[Option<f64>], b: &[Option<f64>]) -> Option<Vec<Block>> {
        let pick = |values: &[Option<f64>], positions: &[usize]| -> Option<Vec<f64>> {
            let value = |&position: &usize| {
                values.get(position).copied().flatten().filter(|&value| value > 0.0)
            };
            positions.iter().map(value).collect()
        };
        self.0
            .iter()
            .map(|(of_a, of_b)| Some(Block { a: pick(a, of_a)?, b: pick(b, of_b)? }))
            .collect()
    }
}
