//! A gate over several machines: each measures both variants in alternation, and the machine is the unit of the comparison.
//!
//! All runs on a machine share what it was given: its neighbors, the place of its memory, the speed of its processor. Many runs
//! make a difference certain that only this machine has. Between machines such differences vary at random, so that the test over
//! the machines, with one ratio from each, keeps its error probability (docs/statistics.md).

use super::ab::{blocks, figures_and_costs, look_with_costs, values};
use super::counted;
use super::definition::{AbSettings, Goal};
use super::evaluation::of_effect;
use super::gate::{
    GateMachine, GateRow, GateVerdict, GateWorkload, failure_of, of_slower, open_text,
};
use super::task::{Finished, Study};
use crate::figure::Figure;
use crate::stats::{
    Block, Direction, Effect, RatioInterval, SequentialSettings, Settings, compare, mean,
    mean_reach,
};
use crate::units::format::{count, joined, number_of, truncated};

/// Returns the smallest number of machines that can show a difference, if the error probability is divided among the workloads:
/// without a difference, the ratios of all machines are below 1 with a probability of 2⁻ⁿ.
pub fn machines_needed(error: f64, workloads: usize) -> u32 {
    let of_each = error / workloads.max(1) as f64;
    let machines = (1.0 / of_each).log2().ceil();
    u32::try_from(truncated(machines)).unwrap_or(u32::MAX).max(2)
}

/// Returns the settings of the only look at all machines. Only one direction makes a gate red, and only one limit of the interval
/// lets it pass: each has the whole error probability.
fn once(machines: usize, error: f64, effect: f64, seed: u64) -> SequentialSettings {
    let machines = u32::try_from(machines).unwrap_or(u32::MAX);
    SequentialSettings {
        effect,
        alpha: (2.0 * error).min(1.0),
        blocks_first: machines,
        blocks_max: machines,
        seed,
        one_sided: true,
        ..SequentialSettings::default()
    }
}

impl GateWorkload {
    /// Returns the result of the test of a workload on all machines, in the order of their numbers.
    pub fn of_machines(name: &str, studies: &[Study], seconds: f64) -> Self {
        let failed =
            |reason: String| Self::without_result(name.to_owned(), GateVerdict::Failed, reason);
        let Some((first, settings)) = studies.iter().find_map(with_settings) else {
            return failed("no machine has measured an A/B test".to_owned());
        };
        let counting: Vec<Study> = studies.iter().map(counted).collect();
        // The runs that would be repeated count, too.
        let rounds: Vec<u32> = studies.iter().map(|study| blocks(study, settings)).collect();
        let failures = studies.iter().zip(&counting).enumerate();
        let failure = failures.into_iter().find_map(|(machine, (study, counting))| {
            Some(format!("machine {machine}: {}", failure_of(study, counting)?))
        });
        let sum = |count: fn(&Study) -> usize| studies.iter().map(count).sum::<usize>();
        let counts = Self {
            experiment: first.experiment.id.to_string(),
            runs: sum(|study| study.finished.len()),
            repeated: sum(|study| study.finished.len() - counted(study).finished.len()),
            disturbed: counting
                .iter()
                .flat_map(|study| &study.finished)
                .filter(|run| run.is_disturbed())
                .count(),
            seconds,
            ..failed(String::new())
        };
        if let Some(reason) = failure {
            return Self { reason, ..counts };
        }
        if let Some(machine) = rounds.iter().position(|rounds| *rounds == 0) {
            let reason = format!("machine {machine} has no complete round");
            return Self { verdict: GateVerdict::Inconclusive, reason, ..counts };
        }
        let (figures, costs) = figures_and_costs(first, settings);
        let units = |figures: &[Figure]| -> Vec<(Direction, Vec<Block>)> {
            let pairs = |figure: &Figure| (figure.direction(), units(&counting, &rounds, *figure));
            figures.iter().map(pairs).collect()
        };
        let once =
            once(studies.len(), settings.alpha, first.experiment.effect, first.experiment.seed);
        let (main, pairs) = (figures.first().copied(), units(&figures));
        let look = look_with_costs(&pairs, &units(&costs), 1, &once);
        let effects = figures.iter().chain(&costs).zip(&look.effects);
        let row = |(figure, effect): (&Figure, &Result<Effect, _>)| {
            let effect = effect.as_ref().ok()?;
            Some(GateRow {
                figure: *figure,
                values: effect.means,
                against: Some(of_effect(effect)),
            })
        };
        let figures: Vec<GateRow> = effects.filter_map(row).collect();
        let verdict = GateVerdict::of_look(&look);
        let pairs = pairs.into_iter().next().map_or_else(Vec::new, |(_, pairs)| pairs);
        let on_machines = |main: Figure| on_each(&counting, &rounds, main, &pairs, &once);
        let machines = main.map(on_machines).unwrap_or_default();
        let reason = reason_of(verdict, &figures, main, &machines);
        Self { verdict, reason, figures, machines, ..counts }
    }
}

fn with_settings(study: &Study) -> Option<(&Study, &AbSettings)> {
    match &study.experiment.goal {
        Goal::Ab(settings) => Some((study, settings)),
        Goal::Sweep { .. } | Goal::Saturation(_) => None,
    }
}

/// Returns a pair for each machine: the geometric means of all runs of each variant. Empty if a machine has none.
fn units(studies: &[Study], rounds: &[u32], figure: Figure) -> Vec<Block> {
    let unit = |(study, rounds): (&Study, &u32)| {
        let blocks = values(study, *rounds, figure);
        let mean = |side: fn(&Block) -> &Vec<f64>| {
            let values: Vec<f64> = blocks.iter().flat_map(side).map(|value| value.ln()).collect();
            let sum: f64 = values.iter().sum();
            (!values.is_empty()).then(|| vec![(sum / values.len() as f64).exp()])
        };
        Some(Block { a: mean(|block| &block.a)?, b: mean(|block| &block.b)? })
    };
    studies.iter().zip(rounds).map(unit).collect::<Option<_>>().unwrap_or_default()
}

/// Returns the main figure on each machine.
fn on_each(
    studies: &[Study],
    rounds: &[u32],
    main: Figure,
    pairs: &[Block],
    once: &SequentialSettings,
) -> Vec<GateMachine> {
    // `once` has the error probability for both directions.
    let of_each = once.alpha / 2.0 / studies.len().max(1) as f64;
    let on_machine = |(at, (study, rounds)): (usize, (&Study, &u32))| {
        let alone = [(main.direction(), values(study, *rounds, main))];
        let alone_settings = Settings {
            effect: once.effect,
            alpha: of_each,
            resamples: once.resamples,
            seed: once.seed,
        };
        let effect = compare(&alone, &alone_settings).pop().and_then(Result::ok);
        let record = study.finished.iter().find_map(Finished::usable);
        GateMachine {
            machine: u32::try_from(at).unwrap_or(u32::MAX),
            host: record.map(|record| record.client.machine.host.clone()).unwrap_or_default(),
            experiment: study.experiment.id.to_string(),
            blocks: *rounds,
            against: effect.as_ref().map(of_effect),
            others: contradicted(pairs, at, of_each),
        }
    };
    studies.iter().zip(rounds).enumerate().map(on_machine).collect()
}

/// Returns the prediction interval of a machine that varies like all others, if this machine is outside. A machine without a
/// difference to the others is outside with the probability `alpha` (externally studentized residual; Cook and Weisberg,
/// "Residuals and influence in regression", 1982).
fn contradicted(pairs: &[Block], at: usize, alpha: f64) -> Option<RatioInterval> {
    let log = |pair: &Block| Some((pair.b.first()? / pair.a.first()?).ln());
    let own = log(pairs.get(at)?)?;
    let others = pairs.iter().enumerate().filter(|(other, _)| *other != at);
    let others: Vec<f64> = others.filter_map(|(_, pair)| log(pair)).collect();
    let reach = mean_reach(&others, alpha)? * (others.len() as f64 + 1.0).sqrt();
    let mean = mean(&others);
    let interval = RatioInterval {
        low: (mean - reach).exp(),
        high: (mean + reach).exp(),
        coverage: 1.0 - alpha,
    };
    ((own - mean).abs() > reach).then_some(interval)
}

/// Returns how much was measured, and what decided or is open.
fn reason_of(
    verdict: GateVerdict,
    figures: &[GateRow],
    main: Option<Figure>,
    machines: &[GateMachine],
) -> String {
    let least = machines.iter().map(|machine| machine.blocks).min().unwrap_or(0);
    let most = machines.iter().map(|machine| machine.blocks).max().unwrap_or(0);
    let rounds = number_of(most.into(), "round");
    let rounds = if least == most { rounds } else { format!("{least} to {rounds}") };
    let measured = format!("{} with {rounds} each", number_of(machines.len() as u64, "machine"));
    let Some(main) = main else { return measured };
    match verdict {
        GateVerdict::Slower => of_slower(figures, main, measured),
        GateVerdict::Inconclusive => {
            let expected = figures.iter().find(|row| row.figure == main);
            let expected = expected.and_then(|row| row.against.as_ref()?.runs_expected);
            let more = expected.map(|expected| expected.saturating_sub(machines.len()));
            // The number assumes that machines vary alike.
            let is_alike = machines.iter().all(|machine| machine.others.is_none());
            let more = more.filter(|more| *more > 0 && is_alike);
            let more = more.map(|more| {
                let plural = if more == 1 { "" } else { "s" };
                format!("to decide: about {} more machine{plural}", count(more as u64))
            });
            let open = open_text(figures, main, "machines");
            joined([Some(measured), open, more].into_iter().flatten(), "; ")
        }
        GateVerdict::NotSlower | GateVerdict::Failed => measured,
    }
}

#[cfg(test)]
mod tests {
    use super::super::evaluation::evaluate;
    use super::super::example::{self, Noise};
    use super::super::next;
    use super::super::{Experiment, Machine};
    use super::*;
    use crate::record::{Warning, WarningKind};

    const ROUNDS: u32 = 4;

    /// The tests of machines on which the head is this many times as fast. Runs vary by 1%, machines by 10%.
    fn machines_with(ratios: &[f64]) -> Vec<Study> {
        let mut noise = Noise(31);
        let machines = u32::try_from(ratios.len()).unwrap();
        let measured = |(index, ratio): (u32, &f64)| {
            let settings = AbSettings {
                blocks_max: ROUNDS,
                one_sided: true,
                repeats_max: 2,
                ..AbSettings::default()
            };
            let experiment = Experiment { goal: Goal::Ab(settings), ..example::sweep(2) };
            let own = Machine { gate: "nightly".to_owned(), index, machines };
            let experiment = experiment.on_machine(&own);
            let mut study = Study::load(experiment, Vec::new(), Vec::new());
            let speed = 1_000.0 * (0.1 * noise.next()).exp();
            while let Some(task) = next(&study) {
                let mut record = example::record(&study.experiment.plan(&task).unwrap());
                record.client.machine.host = format!("host{index}");
                // The head is always disturbed there: two runs are repeated, and the others count.
                if index == 1 && task.cell == 1 {
                    let (kind, text) = (WarningKind::StolenCpu, "stolen".to_owned());
                    record.verdict.warnings.push(Warning { kind, stage: None, text });
                }
                let variant = if task.cell == 1 { *ratio } else { 1.0 };
                record.stages[0].throughput.rows_per_s =
                    speed * variant * (1.0 + 0.01 * noise.next());
                study.finished.push(Finished::new(task, Ok(Box::new(record))));
            }
            study
        };
        (0..).zip(ratios).map(measured).collect()
    }

    fn judged(studies: &[Study]) -> GateWorkload {
        GateWorkload::of_machines("rows", studies, 60.0)
    }

    #[test]
    fn every_machine_measures_all_rounds_and_the_ratios_of_the_machines_decide() {
        let slower = judged(&machines_with(&[0.9, 0.91, 0.89, 0.9, 0.92, 0.9]));
        let runs = 6 * 4 * ROUNDS as usize;
        assert_eq!((slower.verdict, slower.runs), (GateVerdict::Slower, runs + 2));
        assert_eq!((slower.repeated, slower.disturbed), (2, 2 * ROUNDS as usize));
        assert_eq!(slower.reason, "6 machines with 4 rounds each");
        let against = slower.figures[0].against.as_ref().unwrap();
        assert!((against.ratio - 0.903).abs() < 0.01, "{against:?}");
        assert_eq!(against.interval.unwrap().coverage, 0.9);
        assert_eq!(slower.machines.len(), 6);
        assert!(slower.machines.iter().all(|machine| machine.blocks == ROUNDS));
        assert_eq!(slower.machines[3].host, "host3");
        let same = judged(&machines_with(&[1.0, 1.005, 0.995, 1.0, 1.003, 0.998]));
        assert_eq!(same.verdict, GateVerdict::NotSlower, "{same:?}");
    }

    #[test]
    fn a_difference_that_only_one_machine_has_is_no_verdict_and_names_it() {
        let studies = machines_with(&[1.0, 1.002, 0.999, 0.8, 1.001, 1.0]);
        // This machine alone would be certain.
        let one = &studies[3];
        let Goal::Ab(settings) = &one.experiment.goal else { panic!() };
        let alone = super::super::last_look(one, settings).unwrap();
        assert_eq!(GateVerdict::of_look(&alone), GateVerdict::Slower);
        let expected = "one of 6 machines of the gate nightly, which judges all of them together";
        assert_eq!(evaluate(&counted(one)).notes[0], expected);
        let result = judged(&studies);
        assert_eq!(result.verdict, GateVerdict::Inconclusive, "{result:?}");
        let contradicting: Vec<u32> = result
            .machines
            .iter()
            .filter(|machine| machine.others.is_some())
            .map(|machine| machine.machine)
            .collect();
        assert_eq!(contradicting, [3]);
        assert!(result.reason.contains("rows/s may be up to"), "{}", result.reason);
        let noisy = judged(&machines_with(&[0.94, 1.03, 0.98, 1.06, 0.97, 1.01]));
        assert!(noisy.reason.contains("to decide: about"), "{}", noisy.reason);
        assert!(noisy.reason.ends_with("more machines"), "{}", noisy.reason);
    }

    #[test]
    fn a_machine_without_a_usable_result_is_named() {
        let mut all = machines_with(&[1.0; 5]);
        all[2].finished.truncate(3);
        let cut = judged(&all);
        assert_eq!(cut.verdict, GateVerdict::Inconclusive);
        assert_eq!(cut.reason, "machine 2 has no complete round");
        let task = all[4].finished[0].task;
        all[4].finished[0] = Finished::new(task, Err("connection refused".to_owned()));
        let failed = judged(&all);
        assert_eq!(failed.verdict, GateVerdict::Failed);
        assert_eq!(failed.reason, "machine 4: connection refused");
    }

    #[test]
    fn the_number_of_machines_that_is_needed_grows_with_the_workloads() {
        assert_eq!([1, 2, 3, 4].map(|workloads| machines_needed(0.05, workloads)), [5, 6, 6, 7]);
    }

    /// How much the speed of a machine and the difference between the variants vary between machines, as shares.
    struct Machines {
        speed: f64,
        difference: f64,
    }

    /// The verdict of a gate over six machines with 10 rounds, on a head that is this many times as fast. Runs vary by 2%, p99 by 6%.
    fn gate(ratio: f64, between: &Machines, noise: &mut Noise) -> GateVerdict {
        let machines = 6;
        let mut figures = vec![
            (Direction::HigherIsBetter, Vec::new()),
            (Direction::LowerIsBetter, Vec::new()),
            (Direction::LowerIsBetter, Vec::new()),
        ];
        for _ in 0..machines {
            let speed = 1_000.0 * (between.speed * noise.next()).exp();
            let head = ratio * (between.difference * noise.next()).exp();
            for (position, (direction, pairs)) in figures.iter_mut().enumerate() {
                let share = if position == 2 { 0.06 } else { 0.02 };
                // The mean of 20 runs.
                let mut mean = |speed: f64| speed * (share / 20_f64.sqrt() * noise.next()).exp();
                let (a, b) = (mean(speed), mean(speed * head));
                let value = |speed: f64| match direction {
                    Direction::HigherIsBetter => vec![speed],
                    Direction::LowerIsBetter => vec![1e6 / speed],
                };
                pairs.push(Block { a: value(a), b: value(b) });
            }
        }
        let once = once(machines, 0.05, 0.02, 1);
        GateVerdict::of_look(&look_with_costs(&figures, &[], 1, &once))
    }

    fn red_of(count: usize, ratio: f64, between: &Machines, seed: u64) -> usize {
        let mut noise = Noise(seed);
        let verdicts = (0..count).map(|_| gate(ratio, between, &mut noise));
        verdicts.filter(|verdict| *verdict == GateVerdict::Slower).count()
    }

    #[test]
    fn at_most_5_percent_of_the_gates_without_a_difference_are_red_however_much_machines_differ() {
        for (speed, difference) in [(0.03, 0.0), (0.1, 0.0), (0.1, 0.03), (0.1, 0.1)] {
            let red = red_of(200, 1.0, &Machines { speed, difference }, 21);
            assert!(red <= 10, "{red} of 200");
        }
    }

    #[test]
    fn a_difference_of_5_percent_is_found_by_six_machines() {
        for (speed, difference) in [(0.03, 0.0), (0.1, 0.0), (0.1, 0.01), (0.1, 0.02), (0.1, 0.03)]
        {
            let red = red_of(200, 0.95, &Machines { speed, difference }, 22);
            assert!(red >= 160, "{red} of 200");
        }
    }
}
