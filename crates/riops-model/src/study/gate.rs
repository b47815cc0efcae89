//! Whether one variant is slower than another one, over several workloads: the result of a performance gate.
//! Also the result of a bisection.

use serde::Serialize;

use super::definition::Goal;
use super::evaluation::{Against, StudyView, of_effect};
use super::next::End;
use super::task::{Finished, Study};
use super::{ab, counted};
use crate::comparison::Undecided;
use crate::figure::Figure;
use crate::stats::{Decision, Direction, Look, Outcome, RatioInterval};
use crate::units::format::percent;

/// Verdict of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// No figure is slower, and the interval of the first figure excludes a relevant difference for the worse.
    NotSlower,
    /// The runs do not decide.
    Inconclusive,
    /// A run failed, or is not valid.
    Failed,
    /// A figure is slower.
    Slower,
}

impl GateVerdict {
    /// Returns the verdict of the last look. Any figure that is slower decides, whether or not this look ends the test: the
    /// error probability covers all figures and looks. Otherwise the first figure decides. It passes if its interval excludes
    /// a relevant difference for the worse: this needs fewer runs than to show that two figures are equivalent.
    pub fn of_look(look: &Look) -> Self {
        let mut effects = look.effects.iter().filter_map(|effect| effect.as_ref().ok());
        match look.decision {
            _ if effects.any(|effect| effect.outcome == Outcome::Slower) => Self::Slower,
            Decision::NotSlower | Decision::Stop(Outcome::Faster | Outcome::Equivalent) => {
                Self::NotSlower
            }
            Decision::Stop(_) | Decision::Continue { .. } => Self::Inconclusive,
        }
    }

    /// Returns the worst verdict of the workloads; inconclusive without workloads.
    pub fn worst(workloads: &[GateWorkload]) -> Self {
        workloads.iter().map(|workload| workload.verdict).max().unwrap_or(Self::Inconclusive)
    }

    /// Returns the spelling in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSlower => "not_slower",
            Self::Inconclusive => "inconclusive",
            Self::Failed => "failed",
            Self::Slower => "slower",
        }
    }
}

/// The result of a gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateView {
    /// The worst verdict of the workloads.
    pub verdict: GateVerdict,
    /// The compared variants: the names of the two variants, or their commits.
    pub variants: [String; 2],
    /// Smallest relevant difference, as a share.
    pub effect: f64,
    /// Probability of at least one false verdict, over all workloads, figures and looks.
    pub error: f64,
    /// Length of the whole gate, in seconds.
    pub seconds: f64,
    /// The exit code of an inconclusive gate, and the setting that it follows from; absent with another verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// The workloads, in the order of the file.
    pub workloads: Vec<GateWorkload>,
}

/// The result of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateWorkload {
    /// Its name.
    pub name: String,
    /// Id of its experiment.
    pub experiment: String,
    /// The verdict.
    pub verdict: GateVerdict,
    /// Why the test ended.
    pub reason: String,
    /// Number of runs, with those that were repeated.
    pub runs: usize,
    /// Runs that were repeated because they were disturbed, not steady, or not valid.
    pub repeated: usize,
    /// Runs that were so and count all the same, because the budget was exhausted.
    pub disturbed: usize,
    /// Length of the test, in seconds.
    pub seconds: f64,
    /// The certain differences, if the main figure is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Undecided>,
    /// The figures.
    pub figures: Vec<GateRow>,
    /// The result of each machine; empty if only one measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<GateMachine>,
}

/// A figure of both variants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateRow {
    /// The figure.
    pub figure: Figure,
    /// Its value in the first variant, and in the second one.
    pub values: [f64; 2],
    /// The comparison; absent if the test does not compare the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
}

/// The main figure on one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateMachine {
    /// Number of the machine, from 0.
    pub machine: u32,
    /// Name of its host.
    pub host: String,
    /// Id of the experiment with its runs.
    pub experiment: String,
    /// Number of complete blocks.
    pub blocks: u32,
    /// The comparison of its runs alone; absent if they cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// The ratios of machines that vary like the others, if this one contradicts them: its ratio is not among these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<RatioInterval>,
}

impl GateWorkload {
    /// Returns the result of an A/B test and its view, which took this time.
    pub fn new(study: &Study, view: &StudyView, end: End, seconds: f64) -> Self {
        let Goal::Ab(settings) = &study.experiment.goal else {
            return Self::failed(view, "no A/B test".to_owned());
        };
        let (tested, look) = (ab::figures_of(study, settings), ab::last_look(study, settings));
        let effects = look.iter().flat_map(|look| &look.effects);
        let costs = tested.iter().zip(effects).filter(|(figure, _)| figure.is_cost());
        let costs = costs.filter_map(|(figure, effect)| {
            let effect = effect.as_ref().ok()?;
            let against = Some(of_effect(effect));
            Some(GateRow { figure: *figure, values: effect.means, against })
        });
        let rows = view.improvement.iter().flat_map(|improvement| &improvement.rows);
        let figures: Vec<GateRow> = rows
            .map(|row| GateRow {
                figure: row.figure,
                values: [row.from, row.to],
                against: row.against.clone().filter(|_| tested.contains(&row.figure)),
            })
            .chain(costs)
            .collect();
        let counting = counted(study);
        let error = failure_of(study, &counting);
        let test = view.ab.as_ref();
        let verdict = match (&error, &look) {
            (Some(_), _) => GateVerdict::Failed,
            (None, None) => GateVerdict::Inconclusive,
            (None, Some(look)) => GateVerdict::of_look(look),
        };
        let mut reason = match error {
            Some(error) => error,
            None => test.map(|test| test.reason.clone()).unwrap_or_default(),
        };
        if verdict == GateVerdict::Slower {
            reason = of_slower(&figures, view.main, reason);
        } else if verdict == GateVerdict::Inconclusive
            && let Some(open) = open_text(&figures, view.main, "runs")
        {
            reason = format!("{reason}; {open}");
        }
        if end == End::TimeLimit {
            reason = format!("time limit reached: {reason}");
        }
        Self {
            verdict,
            reason,
            runs: study.finished.len(),
            repeated: study.finished.len() - counting.finished.len(),
            disturbed: counting.finished.iter().filter(|run| run.is_disturbed()).count(),
            seconds,
            undecided: view.undecided.clone().filter(|_| verdict == GateVerdict::Inconclusive),
            figures,
            ..Self::failed(view, String::new())
        }
    }

    fn failed(view: &StudyView, reason: String) -> Self {
        Self {
            experiment: view.id.clone(),
            ..Self::without_result(view.name.clone(), GateVerdict::Failed, reason)
        }
    }

    /// Returns a workload without a result.
    pub fn without_result(name: String, verdict: GateVerdict, reason: String) -> Self {
        Self {
            name,
            experiment: String::new(),
            verdict,
            reason,
            runs: 0,
            repeated: 0,
            disturbed: 0,
            seconds: 0.0,
            undecided: None,
            figures: Vec::new(),
            machines: Vec::new(),
        }
    }
}

impl GateRow {
    /// Returns the smallest difference that the runs show, as a share.
    pub fn visible(&self) -> Option<f64> {
        Some(self.against.as_ref()?.interval?.visible())
    }

    fn is_slower(&self) -> bool {
        self.against.as_ref().and_then(|against| against.outcome) == Some(Outcome::Slower)
    }
}

/// Returns why the runs of a test are no result that could pass: one failed, or one is not valid, such as one with wrong rows
/// or another access path.
pub(super) fn failure_of(study: &Study, counting: &Study) -> Option<String> {
    let invalid = |run: &Finished| {
        let verdict = &run.result.as_ref().ok()?.verdict;
        let reasons = verdict.reasons.join("; ");
        (!verdict.valid).then(|| format!("a run is not valid: {reasons}"))
    };
    let failed = study.finished.iter().find_map(|run| run.result.as_ref().err().cloned());
    failed.or_else(|| counting.finished.iter().find_map(invalid))
}

/// Returns what an undecided main figure leaves open, and what the runs or the machines could show.
pub(super) fn open_text(figures: &[GateRow], main: Figure, units: &str) -> Option<String> {
    let row = figures.iter().find(|row| row.figure == main)?;
    let [worse, visible] = [open_worse(row)?, row.visible()?].map(percent);
    let figure = main.heading();
    Some(format!(
        "{figure} may be up to {worse} worse; the smallest difference that these {units} show is {visible}"
    ))
}

/// Returns by how much a figure may be worse, as a share: the end of its interval.
fn open_worse(row: &GateRow) -> Option<f64> {
    let interval = row.against.as_ref()?.interval?;
    Some(match row.figure.direction() {
        Direction::HigherIsBetter => 1.0 - interval.low,
        Direction::LowerIsBetter => interval.high - 1.0,
    })
}

/// Returns the reason for a workload that is slower: the reason of its main figure, preceded by the names of other
/// figures that decided.
pub(super) fn of_slower(figures: &[GateRow], main: Figure, reason: String) -> String {
    let slower: Vec<Figure> =
        figures.iter().filter(|row| row.is_slower()).map(|row| row.figure).collect();
    if slower.is_empty() || slower.contains(&main) {
        return reason;
    }
    let names: Vec<&str> = slower.iter().map(|figure| figure.heading()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb} slower; {}: {reason}", names.join(" and "), main.heading())
}

/// The result of a bisection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectView {
    /// The commit that is not slow, with which each other one is compared.
    pub good: String,
    /// The commit that is slow.
    pub bad: String,
    /// Number of commits after the good one, up to the bad one.
    pub commits: usize,
    /// Probability of at least one false verdict, over all steps.
    pub error: f64,
    /// The commits that were measured, in the order of the measurements.
    pub steps: Vec<BisectStep>,
    /// The first slow commit, or those among which it is, oldest first; empty if the bad commit is not slower or the search
    /// has not ended.
    pub found: Vec<BisectCommit>,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BisectCommit {
    /// Its full name.
    pub commit: String,
    /// First line of its message.
    pub subject: String,
}

/// A commit that was measured.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectStep {
    /// The commit.
    #[serde(flatten)]
    pub of: BisectCommit,
    /// Number of commits between the good one and this one.
    pub position: usize,
    /// The verdict; absent if it could not be built.
    pub verdict: Option<GateVerdict>,
    /// Why there is no verdict; empty with one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The figure that decided.
    pub figure: Option<GateRow>,
    /// Ids of the experiments.
    pub experiments: Vec<String>,
}

impl BisectStep {
    /// Returns a commit without a result.
    pub fn new(commit: BisectCommit, position: usize) -> Self {
        let (verdict, reason, figure) = (None, String::new(), None);
        Self { of: commit, position, verdict, reason, figure, experiments: Vec::new() }
    }

    /// Returns a step with the result of a gate.
    pub fn measured(commit: BisectCommit, position: usize, view: &GateView) -> Self {
        let worst = view.workloads.iter().max_by_key(|workload| workload.verdict);
        let rows = || worst.iter().flat_map(|workload| &workload.figures);
        Self {
            verdict: Some(view.verdict),
            figure: rows().find(|row| row.is_slower()).or_else(|| rows().next()).cloned(),
            experiments: view
                .workloads
                .iter()
                .map(|workload| workload.experiment.clone())
                .collect(),
            ..Self::new(commit, position)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Block, SequentialSettings, look};
    use crate::study::example::Noise;

    #[test]
    fn an_undecided_gate_leaves_the_worse_end_of_the_interval_open() {
        let ends = |figure| {
            let interval = Some(RatioInterval { low: 0.88, high: 1.3, coverage: 0.95 });
            let against = Against {
                ratio: 1.0,
                means: [1.0, 1.0],
                interval,
                p_adjusted: None,
                outcome: Some(Outcome::Inconclusive),
                runs_needed: None,
                runs_expected: None,
            };
            let row = GateRow { figure, values: [1.0, 1.0], against: Some(against) };
            (open_worse(&row).unwrap(), row.visible().unwrap())
        };
        let ((rate, visible), (latency, _)) = (ends(Figure::TransactionsPerS), ends(Figure::P50Us));
        assert!((rate - 0.12).abs() < 1e-9 && (latency - 0.3).abs() < 1e-9, "{rate} {latency}");
        // A ratio of 1.2154 has the interval from 1 to 1.4773.
        assert!((visible - 0.2154).abs() < 1e-4, "{visible}");
    }

    const FIGURES: [Figure; 3] = [Figure::TransactionsPerS, Figure::P50Us, Figure::P99Us];

    fn settings() -> SequentialSettings {
        SequentialSettings {
            effect: 0.04,
            blocks_max: 10,
            resamples: 1_000,
            one_sided: true,
            ..SequentialSettings::default()
        }
    }

    /// A gate of a workload that is this many times as fast in the head: noise of 2%, of p99 of 6%.
    fn gate(ratio: f64, noise: &mut Noise) -> GateVerdict {
        let settings = settings();
        let mut runs = |ratio: f64, share: f64| -> Vec<f64> {
            (0..2).map(|_| 1_000.0 * ratio * (1.0 + share * noise.next())).collect()
        };
        let mut blocks = |ratio: f64, share: f64| -> Vec<Block> {
            (0..10).map(|_| Block { a: runs(1.0, share), b: runs(ratio, share) }).collect()
        };
        let figures: Vec<(Direction, Vec<Block>)> = FIGURES
            .into_iter()
            .map(|figure| match figure.direction() {
                Direction::HigherIsBetter => (Direction::HigherIsBetter, blocks(ratio, 0.02)),
                lower @ Direction::LowerIsBetter => {
                    (lower, blocks(1.0 / ratio, if figure == Figure::P99Us { 0.06 } else { 0.02 }))
                }
            })
            .collect();
        for ordinal in 1..=settings.looks_max() {
            let measured = settings.blocks_at(ordinal) as usize;
            let first = |(direction, blocks): &(Direction, Vec<Block>)| {
                (*direction, blocks[..measured].to_vec())
            };
            let current = look(&figures.iter().map(first).collect::<Vec<_>>(), ordinal, &settings);
            if current.decision != (Decision::Continue { blocks: settings.blocks_at(ordinal + 1) })
            {
                return GateVerdict::of_look(&current);
            }
        }
        GateVerdict::Inconclusive
    }

    #[test]
    fn few_of_200_gates_without_a_difference_are_red_or_undecided() {
        let mut noise = Noise(11);
        let verdicts: Vec<_> = (0..200).map(|_| gate(1.0, &mut noise)).collect();
        let count = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
        let counted = (count(GateVerdict::Slower), count(GateVerdict::Inconclusive));
        assert!(counted.0 <= 10 && counted.1 <= 20, "{counted:?}");
    }

    #[test]
    fn a_head_that_stalls_now_and_then_seldom_passes() {
        // As slow as the smallest relevant difference on average, by blocks that are seldom much slower.
        let mut noise = Noise(13);
        let settings = settings();
        let mut block = || {
            let uniform = (noise.next() / 6.0 + 1.0).clamp(0.0, 2.0) / 2.0;
            let stall = 0.03 * (-(uniform.max(1e-9)).ln() - 0.7);
            let ratio = 0.96 * (-stall).exp();
            Block { a: vec![100.0, 100.1], b: vec![100.0 * ratio, 100.1 * ratio] }
        };
        let passed = (0..200).filter(|_| {
            let blocks: Vec<Block> = (0..10).map(|_| block()).collect();
            (1..=settings.looks_max()).any(|ordinal| {
                let measured = blocks[..settings.blocks_at(ordinal) as usize].to_vec();
                let current = look(&[(Direction::HigherIsBetter, measured)], ordinal, &settings);
                GateVerdict::of_look(&current) == GateVerdict::NotSlower
            })
        });
        let passed = passed.count();
        assert!(passed <= 16, "{passed} of 200");
    }

    #[test]
    fn the_reason_names_another_figure_that_is_slower() {
        let row = |figure, outcome| GateRow {
            figure,
            values: [1.0, 1.0],
            against: Some(Against {
                ratio: 1.0,
                means: [1.0, 1.0],
                interval: None,
                p_adjusted: None,
                outcome: Some(outcome),
                runs_needed: None,
                runs_expected: None,
            }),
        };
        let reason = |outcomes: [Outcome; 3]| {
            let rows: Vec<GateRow> = FIGURES
                .into_iter()
                .zip(outcomes)
                .map(|(figure, outcome)| row(figure, outcome))
                .collect();
            of_slower(&rows, FIGURES[0], "ended after 4 rounds".to_owned())
        };
        let (slower, open) = (Outcome::Slower, Outcome::Inconclusive);
        assert_eq!(reason([slower, slower, open]), "ended after 4 rounds");
        let of_p99 = "p99 is slower; TPS: ended after 4 rounds";
        assert_eq!(reason([open, open, slower]), of_p99);
        let of_both = "p50 and p99 are slower; TPS: ended after 4 rounds";
        assert_eq!(reason([Outcome::Equivalent, slower, slower]), of_both);
    }

    #[test]
    fn a_figure_that_is_slower_at_a_look_makes_the_gate_red_before_the_test_ends() {
        let mut noise = Noise(14);
        let mut block = |ratio: f64, share: f64| Block {
            a: vec![100.0 * (1.0 + share * noise.next()), 100.0 * (1.0 + share * noise.next())],
            b: vec![100.0 * ratio, 100.0 * ratio * (1.0 + 0.001 * noise.next())],
        };
        let open: Vec<Block> = (0..4).map(|_| block(1.0, 0.3)).collect();
        let slower: Vec<Block> = (0..4).map(|_| block(1.5, 0.01)).collect();
        let first_look = |second| {
            let figures =
                [(Direction::HigherIsBetter, open.clone()), (Direction::LowerIsBetter, second)];
            look(&figures, 1, &settings())
        };
        let current = first_look(slower);
        assert!(matches!(current.decision, Decision::Continue { .. }), "{current:?}");
        assert_eq!(current.effects[1].as_ref().unwrap().outcome, Outcome::Slower);
        // The time limit ends the test here: the row SLOWER and the headline are one.
        assert_eq!(GateVerdict::of_look(&current), GateVerdict::Slower);
        assert_eq!(GateVerdict::of_look(&first_look(open.clone())), GateVerdict::Inconclusive);
    }

    #[test]
    fn a_difference_of_5_percent_is_found() {
        let mut noise = Noise(12);
        let verdicts = (0..50).map(|_| gate(0.95, &mut noise));
        let slower = verdicts.filter(|verdict| *verdict == GateVerdict::Slower).count();
        assert!(slower >= 40, "{slower} of 50");
    }
}
