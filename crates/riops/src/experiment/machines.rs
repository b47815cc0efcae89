//! A gate over several machines. They meet in the store: each conducts its tests on its own servers, and waits for the others; all
//! judge the same records.

use std::time::{Duration, Instant};

use super::gating::GateRules;
use super::place::{ConductError, Conductor};
use super::stored::stored_study;
use crate::fleet::OWN_FIELDS;
use crate::run::differing_plans;
use crate::store::{self, Store, StoreError};
use crate::study::{Experiment, GateVerdict, GateView, GateWorkload, Goal, Machine, Study};
use crate::units::format::joined;

/// How often a machine looks for the results of the others.
const POLL: Duration = Duration::from_secs(1);

/// The place of this machine in a gate over several machines.
#[derive(Debug, Clone)]
pub struct Machines {
    /// This machine.
    pub own: Machine,
    /// How long it waits for a machine that does not measure.
    pub within: Duration,
}

impl Conductor<'_> {
    /// Measures the workloads of a gate on this machine, waits for the other machines, and judges the results of all. Stored
    /// tests are not measured again.
    ///
    /// # Errors
    /// As [`Self::start`]; [`ConductError::Failed`] if a machine has no result in time, [`ConductError::Refused`] if one has
    /// measured something else.
    pub fn gate_of_machines(
        &self,
        names: [String; 2],
        tests: Vec<Experiment>,
        rules: &GateRules,
        machines: &Machines,
    ) -> Result<GateView, ConductError> {
        let start = Instant::now();
        let workloads: Vec<String> = tests.iter().map(|test| test.name.clone()).collect();
        let tests = tests.into_iter().map(|test| test.on_machine(&machines.own)).collect();
        let rules = GateRules { continues: true, ..*rules };
        let mut view = self.gate(names, tests, &rules)?.view;
        view.workloads.clear();
        for name in workloads {
            let studies = self.studies_of(&name, machines)?;
            let seconds = start.elapsed().as_secs_f64();
            view.workloads.push(match studies {
                Some(studies) => GateWorkload::of_machines(&name, &studies, seconds),
                None => GateWorkload::without_result(
                    name,
                    GateVerdict::Inconclusive,
                    "interrupted before all machines had measured".to_owned(),
                ),
            });
        }
        view.verdict = GateVerdict::worst(&view.workloads);
        view.seconds = start.elapsed().as_secs_f64();
        Ok(view)
    }

    /// Waits until all machines have measured a workload, and returns their tests in the order of the machines; `None` after an
    /// interrupt.
    fn studies_of(
        &self,
        workload: &str,
        machines: &Machines,
    ) -> Result<Option<Vec<Study>>, ConductError> {
        let Machines { own, within } = machines;
        let store = store::open(&self.location, self.interrupt)?;
        let name = |index| Machine { index, ..own.clone() }.test_name(workload);
        // One after the other: each look at a machine needs a connection to the store.
        for index in 0..own.machines {
            let (mut since, mut is_told) = (Instant::now(), false);
            loop {
                match state_of(&store, &name(index))? {
                    State::Ended => break,
                    State::Measures => since = Instant::now(),
                    State::Missing if since.elapsed() >= *within => {
                        let mut missing = Vec::new();
                        for index in index..own.machines {
                            if matches!(state_of(&store, &name(index))?, State::Missing) {
                                missing.push(index);
                            }
                        }
                        return Err(ConductError::Failed(format!(
                            "{workload}: {} did not measure; after their start, the same command continues here",
                            numbered(&missing)
                        )));
                    }
                    State::Missing => {}
                }
                if !std::mem::replace(&mut is_told, true) {
                    self.events.notice(&format!("{workload}: waiting for machine {index}"));
                }
                if !self.interrupt.pause(POLL) {
                    return Ok(None);
                }
            }
        }
        let studies = (0..own.machines).map(|index| stored_study(&store, &name(index)));
        let studies: Vec<Study> = studies.collect::<Result<_, _>>()?;
        require_same(&studies)?;
        Ok(Some(studies))
    }
}

/// How far a machine is with a test.
enum State {
    Ended,
    /// Its process conducts the test.
    Measures,
    /// It has not begun, or its process has ended.
    Missing,
}

/// Returns how far the newest test of this name is.
fn state_of(store: &Store, name: &str) -> Result<State, ConductError> {
    let stored = match store.experiment(name) {
        Err(StoreError::ExperimentNotFound(_)) => return Ok(State::Missing),
        stored => stored?,
    };
    if stored.state.finished_at.is_some() {
        return Ok(State::Ended);
    }
    if store.lock_experiment(&stored.id)?.is_none() {
        return Ok(State::Measures);
    }
    // A failed run ends a test.
    let has_failed = !stored_study(store, &stored.id)?.failures().is_empty();
    Ok(if has_failed { State::Ended } else { State::Missing })
}

/// Fails unless all machines have measured the same.
fn require_same(studies: &[Study]) -> Result<(), ConductError> {
    let Some((first, others)) = studies.split_first() else { return Ok(()) };
    for (other, machine) in others.iter().zip(1..) {
        if let Some(difference) = difference(&first.experiment, &other.experiment, machine)? {
            return Err(ConductError::Refused(format!(
                "the machines of the gate did not measure the same: {difference}"
            )));
        }
    }
    Ok(())
}

/// Returns in what two machines differ. Their servers may have different addresses.
fn difference(
    first: &Experiment,
    other: &Experiment,
    machine: u32,
) -> Result<Option<String>, serde_json::Error> {
    let of_all = |experiment: &Experiment| {
        let mut goal = experiment.goal.clone();
        if let Goal::Ab(settings) = &mut goal {
            settings.machine = None;
        }
        (
            goal,
            experiment.axes.clone(),
            experiment.effect,
            experiment.between.clone(),
            experiment.reset,
        )
    };
    let names = ["machine 0", &format!("machine {machine}")];
    if of_all(first) != of_all(other) {
        let [first, other] = names;
        return Ok(Some(format!("the variants or the rules of {first} and {other} differ")));
    }
    for (one, other) in first.cells.iter().zip(&other.cells) {
        let differing = differing_plans([&one.plan, &other.plan], &OWN_FIELDS, names)?;
        if differing.is_some() {
            return Ok(differing);
        }
    }
    Ok(None)
}

/// Returns the names of machines.
fn numbered(machines: &[u32]) -> String {
    let plural = if machines.len() == 1 { "" } else { "s" };
    format!("machine{plural} {}", joined(machines.iter().map(u32::to_string), ", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{AbSettings, example};

    #[test]
    fn machines_that_measure_something_else_are_refused_with_the_difference() {
        let defined = Experiment { goal: Goal::Ab(AbSettings::default()), ..example::sweep(2) };
        let machine_test = |index: u32, change: fn(&mut Experiment)| {
            let own = Machine { gate: "g".to_owned(), index, machines: 2 };
            let mut experiment = defined.clone().on_machine(&own);
            change(&mut experiment);
            Study { experiment, finished: Vec::new() }
        };
        let differs = |change: fn(&mut Experiment)| {
            let result = require_same(&[machine_test(0, |_| {}), machine_test(1, change)]);
            result.map_err(|error| error.to_string())
        };
        assert_eq!(differs(|_| {}), Ok(()));
        // Addresses and processors belong to the machine.
        assert_eq!(
            differs(|test| test.cells[1].server.database = Some("other".to_owned())),
            Ok(())
        );
        assert_eq!(differs(|test| test.cells[1].plan.workers += 1), Ok(()));
        let text = differs(|test| test.cells[1].plan.warmup_s += 1.0).unwrap_err();
        assert!(text.contains("warmup_s") && text.contains("machine 1"), "{text}");
        let text = differs(|test| test.effect = 0.5).unwrap_err();
        assert!(text.contains("the rules of machine 0 and machine 1 differ"), "{text}");
    }
}
