//! The result of an experiment as plain data: also its JSON form.

use indexmap::IndexMap;
use serde::Serialize;

use crate::comparison::{Change, StageComparison, TimeChange, Undecided};
use crate::figure::{Estimate, Figure};
use crate::record::Note;
use crate::stats::{Interval, Outcome, RatioInterval};
use crate::study::{Goal, Level, Saturation};
use crate::units::format::{bounded, joined};

/// The origin of blocks is of interest if it differs between groups by at least this share.
const SOURCES_DIFFER: f64 = 0.01;

/// The result of an experiment.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyView {
    /// Id of the experiment.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The question that it answers.
    pub description: Option<String>,
    /// When it was defined, RFC 3339.
    pub created_at: String,
    /// Its goal.
    pub kind: StudyKind,
    /// The workload of its runs.
    pub workload: String,
    /// Whether the throughput counts transactions and not rows.
    pub counts_transactions: bool,
    /// Server and machine of the runs, if all runs have the same.
    pub environment: Vec<String>,
    /// Differences between the runs of the only two cells, apart from the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Change>,
    /// The marks of the usable runs, such as `disturbed`, with the number of runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked: Vec<(&'static str, usize)>,
    /// Differences between the cells.
    pub axes: Vec<AxisView>,
    /// The smallest relevant effect, as a share.
    pub effect: f64,
    /// Planned number of runs; absent for a search, which decides as it goes.
    pub planned_runs: Option<u64>,
    /// Whether further runs were planned or needed when it ended.
    pub is_unfinished: bool,
    /// The runs that ended.
    pub runs: RunCounts,
    /// The main figure: cells are ranked by it.
    pub main: Figure,
    /// Index of the stage that has the main figure.
    pub main_stage: usize,
    /// Names of the stages; empty if the runs have only one.
    pub stages: Vec<String>,
    /// Index of the cell that the others are compared with.
    pub baseline: Option<usize>,
    /// Index of the cell with the best main figure among those that meet all thresholds.
    pub best: Option<usize>,
    /// The main figure of this cell relative to the baseline, as the best of all cells.
    pub best_against: Option<Against>,
    /// The cells, the last axis varying fastest.
    pub cells: Vec<CellView>,
    /// The effect of each axis, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<AxisEffect>,
    /// The best cell relative to the baseline.
    pub improvement: Option<Improvement>,
    /// The certain differences, if the main figure of the improvement is undecided.
    pub undecided: Option<Undecided>,
    /// The change of the time of a transaction of the main stage from the reference to the other cell of the improvement.
    pub time: Option<TimeChange>,
    /// The state of an A/B test.
    pub ab: Option<AbView>,
    /// The time of a round trip in both variants of an A/B test of `ping`.
    pub round_trip: Option<RoundTrip>,
    /// The stages of both variants of an A/B test, for pictures.
    #[serde(skip)]
    pub variants: Vec<StageComparison>,
    /// Limits of the conclusions.
    pub notes: Vec<String>,
    /// Currency of all prices, as typed; empty if they have none.
    pub currency: Option<String>,
    /// Notes of users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes_of_people: Vec<Note>,
}

/// The goal of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyKind {
    /// The figures of every cell.
    Sweep,
    /// Whether the second cell differs from the first.
    Ab,
    /// The saturation point of every cell.
    Saturation,
}

impl From<&Goal> for StudyKind {
    fn from(goal: &Goal) -> Self {
        match goal {
            Goal::Sweep { .. } => Self::Sweep,
            Goal::Ab(_) => Self::Ab,
            Goal::Saturation(_) => Self::Saturation,
        }
    }
}

/// An option whose values are compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AxisView {
    /// Name of the option.
    pub name: String,
    /// Its values, as typed.
    pub values: Vec<String>,
    /// The values as numbers, if all are numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<f64>>,
}

/// Numbers of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RunCounts {
    /// Complete and valid.
    pub usable: u64,
    /// Invalid or interrupted.
    pub invalid: u64,
    /// Ended with an error.
    pub failed: u64,
}

/// A combination of values of the axes.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellView {
    /// Its name: `batch=10 sessions=8`.
    pub name: String,
    /// One value for each axis.
    pub values: Vec<String>,
    /// Price of an hour of its server, if it is known and in the same currency as the other prices.
    pub price_per_hour: Option<f64>,
    /// Its runs. The runs of a search are in `levels`.
    #[serde(flatten)]
    pub group: GroupView,
    /// The levels of a search, ascending; the levels of a closed loop first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelView>,
    /// Result of the search.
    pub saturation: Option<Saturation>,
}

/// The state of an A/B test.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbView {
    /// Number of complete blocks. A block is two runs of each variant.
    pub blocks: u32,
    /// Maximum number of blocks.
    pub blocks_max: u32,
    /// Number of the last look, from 1; absent before the first one.
    pub look: Option<u32>,
    /// Number of looks.
    pub looks_max: Option<u32>,
    /// Significance level of the last look.
    pub level: Option<f64>,
    /// Blocks at the next look; absent if the test has ended.
    pub blocks_next: Option<u32>,
    /// The verdict on the main figure; absent while the test goes on.
    pub verdict: Option<Outcome>,
    /// Why the test ended, or that it goes on.
    pub reason: String,
}

/// The mean time of a round trip in two groups of runs with the same number of sessions: sessions divided by the rate, as each
/// session waits for one reply at a time (Little's law).
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoundTrip {
    /// The time in A, in microseconds.
    pub a_us: f64,
    /// B minus A.
    pub change_us: f64,
    /// The interval of the change, from the interval of the ratio of the rates.
    pub interval: Option<Interval>,
    /// The change of the CPU time of the client, which is part of it.
    pub client_us: Option<f64>,
}

/// The runs of a level of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelView {
    /// The level.
    pub level: Level,
    /// Its runs.
    #[serde(flatten)]
    pub group: GroupView,
}

/// Runs of the same plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GroupView {
    /// Numbers of runs.
    pub runs: RunCounts,
    /// Why runs are not usable, each reason once with the number of its runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// The thresholds of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdView>,
    /// The results of each stage.
    pub stages: Vec<StageView>,
}

/// Why runs are not usable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The reason.
    pub text: String,
    /// Number of runs.
    pub runs: u64,
}

/// A threshold of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdView {
    /// The threshold as typed.
    pub text: String,
    /// Number of usable runs that met it.
    pub met: u64,
    /// Number of usable runs.
    pub of: u64,
}

/// The result of a stage over several runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StageView {
    /// The figures that were measured.
    pub figures: Vec<FigureView>,
    /// The bottleneck of most runs, in a word or two.
    pub bottleneck: Option<String>,
    /// Where the blocks of the rows came from.
    pub sources: Option<SourcesView>,
    /// The nodes of a cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeView>,
    /// Load of the busiest node divided by the mean over the nodes.
    pub imbalance: Option<f64>,
}

/// A figure over several runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureView {
    /// Which figure, with its unit.
    pub figure: Figure,
    /// The estimate.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Relative to the baseline; absent for the baseline itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_baseline: Option<Against>,
}

impl FigureView {
    /// Returns the value as text, with its unit unless it is a rate.
    pub fn text(&self) -> String {
        bounded(self.figure.text(self.estimate.value), self.estimate.at_least)
    }
}

/// A figure relative to the figure of the baseline.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// The figure divided by the figure of the baseline.
    pub ratio: f64,
    /// The means of the baseline and of the figure, whose quotient is the ratio.
    #[serde(skip)]
    pub means: [f64; 2],
    /// The interval of the ratio, from which the verdict is read.
    pub interval: Option<RatioInterval>,
    /// The p-value, adjusted for the number of figures.
    pub p_adjusted: Option<f64>,
    /// The verdict; absent if one side has only one run.
    pub outcome: Option<Outcome>,
    /// Number of further runs of each cell that a verdict requires.
    pub runs_needed: Option<usize>,
    /// Number of all runs of each cell with which a verdict is probable; only if it is undecided.
    pub runs_expected: Option<usize>,
}

impl Against {
    /// A ratio without a verdict.
    pub(crate) fn new(ratio: f64, means: [f64; 2]) -> Self {
        Self {
            ratio,
            means,
            interval: None,
            p_adjusted: None,
            outcome: None,
            runs_needed: None,
            runs_expected: None,
        }
    }
}

/// Shares of the accesses to the blocks of the rows, 0 to 1.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourcesView {
    /// Found in shared buffers.
    pub buffers: Estimate,
    /// Found in the page cache of the operating system.
    pub page_cache: Option<Estimate>,
    /// Read from the device.
    pub device: Option<Estimate>,
}

/// The load of a node, as the mean of the runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeView {
    /// Host and port.
    pub node: String,
    /// CPU use, in processors.
    pub cpus: Option<f64>,
    /// Share of the CPU use of all nodes, 0 to 1.
    pub cpu_share: Option<f64>,
    /// Transactions per second.
    pub transactions_per_s: f64,
    /// Share of all transactions, 0 to 1.
    pub transactions_share: f64,
}

/// The effect of an axis over all settings of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AxisEffect {
    /// Name of the axis.
    pub axis: String,
    /// Number of combinations of the other axes in which all values were measured.
    pub combinations: usize,
    /// The values of the axis; the first one is the reference.
    pub values: Vec<ValueEffect>,
}

/// The effect of a value of an axis.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueEffect {
    /// The value, as typed.
    pub value: String,
    /// The main figure relative to the main figure of the first value, with the same values of the other axes:
    /// geometric mean. Absent for the first value.
    pub main: Option<Against>,
    /// The same for the latency (p95).
    pub latency: Option<Against>,
}

/// One cell relative to another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Improvement {
    /// Index of the reference.
    pub from: usize,
    /// Index of the other cell.
    pub to: usize,
    /// Throughput, latency and errors.
    pub rows: Vec<ImprovementRow>,
}

/// A figure of two cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImprovementRow {
    /// The figure.
    pub figure: Figure,
    /// Its value in the reference.
    pub from: f64,
    /// Its value in the other cell.
    pub to: f64,
    /// The change in words: `1.51x`, `27x faster`, `77% lower`.
    pub text: String,
    /// The comparison, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
}

impl StageView {
    /// Returns a figure, if it was measured.
    pub fn figure(&self, figure: Figure) -> Option<&FigureView> {
        self.figures.iter().find(|view| view.figure == figure)
    }
}

impl GroupView {
    /// Returns a figure of a stage, if it was measured.
    pub fn figure(&self, stage: usize, figure: Figure) -> Option<&FigureView> {
        self.stages.get(stage)?.figure(figure)
    }

    /// Whether all usable runs met all thresholds.
    pub fn meets_thresholds(&self) -> bool {
        self.thresholds.iter().all(|threshold| threshold.met == threshold.of)
    }
}

impl CellView {
    /// Returns its groups of runs: its own group, or the groups of its levels.
    pub fn groups(&self) -> impl Iterator<Item = (Option<Level>, &GroupView)> {
        let own = self.levels.is_empty().then_some((None, &self.group));
        own.into_iter().chain(self.levels.iter().map(|level| (Some(level.level), &level.group)))
    }
}

impl StudyView {
    /// Returns the estimate of the main figure of a group.
    pub fn main_of<'a>(&self, group: &'a GroupView) -> Option<&'a FigureView> {
        group.figure(self.main_stage, self.main)
    }

    /// Returns all groups of runs: of the cells, or of the levels of a search.
    pub fn groups(&self) -> impl Iterator<Item = &GroupView> {
        self.cells.iter().flat_map(CellView::groups).map(|(_, group)| group)
    }

    /// Returns the measured cells by their settings without the axes `without`, as a text: `batch=10 sessions=8`.
    pub fn combinations(&self, without: &[usize]) -> IndexMap<String, Vec<&CellView>> {
        let mut combinations: IndexMap<String, Vec<&CellView>> = IndexMap::new();
        for cell in self.cells.iter().filter(|cell| self.main_of(&cell.group).is_some()) {
            let settings = self.axes.iter().zip(&cell.values).enumerate();
            let settings = settings
                .filter(|(at, (axis, _))| !without.contains(at) && axis.values.len() > 1)
                .map(|(_, (axis, value))| format!("{}={value}", axis.name));
            combinations.entry(joined(settings, " ")).or_default().push(cell);
        }
        combinations
    }

    /// Returns the cells with their main stage.
    pub fn main_stages(&self) -> impl Iterator<Item = (&CellView, &StageView)> {
        self.cells.iter().filter_map(|cell| Some((cell, cell.group.stages.get(self.main_stage)?)))
    }

    /// Returns the main stages of all groups.
    fn stages_of_groups(&self) -> impl Iterator<Item = (&GroupView, &StageView)> {
        self.groups().filter_map(|group| Some((group, group.stages.get(self.main_stage)?)))
    }

    /// Returns whether the origin of the blocks differs between the groups.
    pub fn sources_vary(&self) -> bool {
        let spread = |share: fn(&SourcesView) -> Option<&Estimate>| {
            let sources = self.stages_of_groups().filter_map(|(_, stage)| stage.sources.as_ref());
            let shares = sources.map(|sources| share(sources).map_or(0.0, |share| share.value));
            let ends = shares.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), share| {
                (low.min(share), high.max(share))
            });
            ends.1 - ends.0
        };
        spread(|sources| Some(&sources.buffers)) > SOURCES_DIFFER
            || spread(|sources| sources.device.as_ref()) > SOURCES_DIFFER
    }

    /// Returns the bottleneck, if all groups have the same.
    pub fn common_bottleneck(&self) -> Option<&str> {
        let measured = self.stages_of_groups().filter(|(group, _)| group.runs.usable > 0);
        let mut bottlenecks = measured.map(|(_, stage)| stage.bottleneck.as_deref());
        let first = bottlenecks.next()??;
        bottlenecks.all(|other| other == Some(first)).then_some(first)
    }

    /// Returns the throughput that the workload counts.
    pub fn throughput(&self) -> Figure {
        if self.counts_transactions { Figure::TransactionsPerS } else { Figure::RowsPerS }
    }
}
