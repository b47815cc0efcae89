//! The certain differences of a comparison whose main figure is undecided, and the runs that would decide it.

use serde::Serialize;

use super::figures::{FigureComparison, StageComparison};
use super::why::{PartChange, TimeChange};
use crate::record::Record;
use crate::stats::{Outcome, Settings};

/// Time that a run needs besides its warm-up and measurement, in seconds: to connect, to check the plans, and to
/// verify the data.
pub(crate) const OVERHEAD_S: f64 = 1.5;
/// A smaller share of the CPU, used by other processes, is not a reason to look for a quieter machine.
const OTHERS_CPU_MIN: f64 = 0.05;

/// A comparison whose main figure is undecided.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Undecided {
    /// Differences that are more than chance, in other figures, in costs of a transaction and in parts of its time. Each of
    /// these three kinds contains a false one with a probability of at most 5%; costs and parts are judged in each stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certain: Vec<Certain>,
    /// Further runs of each side that probably decide, if they vary like these.
    pub further_runs: Option<usize>,
    /// Estimated time of these runs of both sides, in seconds.
    pub further_s: Option<f64>,
    /// Mean number of processors that other processes used in the disturbed runs.
    pub others_cpus: Option<f64>,
}

/// A difference that is more than chance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certain {
    /// Name of the figure, of the cost, or of the part of the time.
    pub name: String,
    /// The difference.
    #[serde(flatten)]
    pub difference: Difference,
    /// Whether the second side is worse.
    pub is_worse: bool,
}

/// The second side relative to the first one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// Quotient of a figure.
    Ratio(f64),
    /// Change of a part of the time of a transaction, in microseconds.
    ChangeUs(f64),
}

impl Undecided {
    /// `runs_decide` is the number of runs of each side that probably decide.
    pub(crate) fn new(
        certain: Vec<Certain>,
        runs_decide: Option<usize>,
        a: &[&Record],
        b: &[&Record],
    ) -> Self {
        let fewest = a.len().min(b.len());
        let further_runs = runs_decide.map(|runs| runs.saturating_sub(fewest).max(1));
        let runs = || a.iter().chain(b).copied();
        let seconds_each = mean(runs().map(seconds)).unwrap_or_default();
        let disturbed = runs().filter(|run| run.is_disturbed());
        let others = mean(disturbed.clone().filter_map(others_cpu));
        let cpus = |run: &Record| Some(others_cpu(run)? * run.client.machine.counted_cpus() as f64);
        let others_cpus =
            others.filter(|share| *share >= OTHERS_CPU_MIN).and(mean(disturbed.filter_map(cpus)));
        Self {
            certain,
            further_runs,
            further_s: further_runs.map(|count| 2.0 * count as f64 * seconds_each),
            others_cpus,
        }
    }
}

impl Certain {
    /// Returns a figure, if it differs.
    pub(crate) fn figure(name: impl Into<String>, ratio: f64, outcome: Outcome) -> Option<Self> {
        let is_worse = match outcome {
            Outcome::Faster => false,
            Outcome::Slower => true,
            Outcome::Equivalent | Outcome::Inconclusive => return None,
        };
        Some(Self { name: name.into(), difference: Difference::Ratio(ratio), is_worse })
    }

    /// Returns the costs of a transaction that differ.
    pub(crate) fn costs(stage: &StageComparison) -> impl Iterator<Item = Self> {
        let costs = significant(&stage.costs.iter().collect::<Vec<_>>());
        costs.into_iter().filter_map(|cost| {
            let effect = cost.effect.as_ref()?;
            let name = format!("{} per transaction", cost.figure.name());
            Self::figure(name, effect.ratio, effect.outcome)
        })
    }

    /// Returns the parts of the time of a transaction that differ.
    pub(crate) fn parts(time: &TimeChange) -> impl Iterator<Item = Self> {
        let part = |part: &PartChange| Self {
            name: format!("{} per transaction", part.part.name()),
            difference: Difference::ChangeUs(part.change_us),
            is_worse: part.change_us > 0.0,
        };
        time.parts.iter().filter(|part| part.is_cause).map(part)
    }
}

/// Returns the costs that differ. The probability of a false one is at most 5% (Bonferroni, because the p-values of costs
/// are not adjusted).
pub(super) fn significant<'a>(costs: &[&'a FigureComparison]) -> Vec<&'a FigureComparison> {
    let judged = costs.iter().filter(|cost| cost.effect.is_some()).count();
    let level = Settings::default().alpha / judged.max(1) as f64;
    let differs = |cost: &&&FigureComparison| {
        cost.effect.as_ref().is_some_and(|effect| {
            effect.p <= level && matches!(effect.outcome, Outcome::Faster | Outcome::Slower)
        })
    };
    costs.iter().filter(differs).copied().collect()
}

/// Estimated time of a run, in seconds.
fn seconds(run: &Record) -> f64 {
    let stages = run.stages.iter();
    stages.map(|stage| run.plan.warmup_s + stage.seconds).sum::<f64>() + OVERHEAD_S
}

/// Mean share of the CPU that other processes used in the stages of a run.
fn others_cpu(run: &Record) -> Option<f64> {
    mean(run.stages.iter().filter_map(|stage| stage.neighbors.as_ref()?.all_cpu_share()))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
