//! A run as one of the agents of a fleet.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};
use riops::dataset::prepare::Prepared;
use riops::fleet::{Finished, Fleet, Invitation};
use riops::plan::Plan;
use riops::probe::sampler::OnPoint;
use riops::record::{LiveStart, Point, Record};
use riops::run::{History, Observer, OnLoaded, OnMessage};
use riops::store::StoreLocation;

use crate::args::ResultOptions;
use crate::args::fleet::AGENTS_WITHIN;
use crate::failure::{exit_code, refuse};
use crate::stored_runs::StoredRuns;
use crate::target::Target;
use crate::ui::Ui;
use crate::{stored, unstored};

/// Variables with which schedulers number the processes that they start, and with the number of processes.
const RANKS: [(&str, Option<&str>); 6] = [
    ("JOB_COMPLETION_INDEX", None),
    ("SLURM_PROCID", Some("SLURM_NTASKS")),
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMI_RANK", Some("PMI_SIZE")),
    ("PMIX_RANK", None),
    ("FLUX_TASK_RANK", Some("FLUX_JOB_SIZE")),
];

/// Which agent this is, of how many; each as far as it is known.
fn rank(variable: impl Fn(&str) -> Option<String>) -> (Option<u32>, Option<u32>) {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let found = RANKS.iter().find_map(|(rank, size)| Some((number(rank)?, *size)));
    found.map_or((None, None), |(rank, size)| (Some(rank), size.and_then(number)))
}

/// Fails if the options of a fleet contradict others. Returns whether there are any.
pub(crate) fn require_valid(keep: &ResultOptions) -> Result<bool> {
    let Some(name) = &keep.fleet.fleet else {
        return Ok(false);
    };
    riops::plan::require_printable([name])?;
    if name.is_empty() {
        return refuse("--fleet needs a name");
    }
    if keep.no_store || !matches!(keep.store.location()?, StoreLocation::Postgresql(_)) {
        return refuse("--fleet requires --store postgresql://…: the agents meet in this database");
    }
    if keep.repeat.repeat.is_some() {
        return refuse("--fleet cannot be combined with --repeat");
    }
    Ok(true)
}

/// Joins the fleet of the options.
pub(crate) fn join(keep: &ResultOptions, plan: &Plan, target: &Target, ui: Ui) -> Result<Fleet> {
    let options = &keep.fleet;
    let (rank, size) = rank(|name| std::env::var(name).ok());
    let Some(agents) = options.agents.or(size) else {
        return refuse("--fleet requires --agents N, the number of agents");
    };
    let StoreLocation::Postgresql(store) = stored::location(&keep.store, ui)? else {
        return refuse("--fleet requires --store postgresql://…: the agents meet in this database");
    };
    let invitation = Invitation {
        name: options.fleet.as_deref().unwrap_or_default(),
        agents,
        agent: options.agent.or(rank),
        plan,
        server: &target.identity(ui.interrupt)?,
        within: options.agents_within.unwrap_or(AGENTS_WITHIN).0,
    };
    Ok(Fleet::join(&store, &invitation, ui.interrupt, &mut |text| ui.notice(text))?)
}

/// Observes the run of an agent: meets the others, and passes the events on. The record that it passes on is that of the
/// fleet, if this agent conducts.
pub(crate) struct InFleet<'a> {
    pub(crate) fleet: &'a mut Fleet,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) runs: &'a StoredRuns<'a>,
    pub(crate) ui: Ui,
    /// The record that is printed and stored, the code with which the process ends, or the error.
    pub(crate) result: Option<Result<(Option<Record>, ExitCode)>>,
}

/// Passes calls on.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        $(fn $method(&mut self, $($argument: $type),*) $(-> $result)? {
            self.observer.$method($($argument),*)
        })+
    };
}

impl Observer for InFleet<'_> {
    forward! {
        connected(sessions: usize);
        measuring();
        draining();
        notice(text: &str);
        left_behind(text: &str);
        preparing() -> OnLoaded;
        prepared(prepared: &Prepared);
        messages() -> OnMessage;
        stage(name: &str, plan: &Plan) -> OnPoint;
        step(name: &'static str, growth: Option<(u64, u64)>) -> OnPoint;
        step_done(seconds: f64);
    }

    fn history(&self) -> &dyn History {
        self.observer.history()
    }

    fn started(&mut self, start: &LiveStart<'_>) {
        self.fleet.started(start.id);
        self.observer.started(start);
    }

    fn agree_start(&mut self) -> Result<Option<Instant>, String> {
        self.fleet.agree_start().map(Some).map_err(|error| error.to_string())
    }

    /// The first agent shows the intervals of all, the others their own.
    fn point(&mut self, point: &Point) {
        let of_all = self.fleet.exchange(point);
        if self.fleet.share().agent > 0 {
            // They are for the first agent.
            return self.observer.point(&Point { histograms: None, ..point.clone() });
        }
        for point in &of_all {
            self.observer.point(point);
        }
    }

    fn settled(&mut self) -> bool {
        match self.fleet.settled() {
            Ok(verifies) => verifies,
            Err(error) => {
                self.ui.notice(&format!("warning: {error}"));
                false
            }
        }
    }

    fn complete(&mut self, record: &Record) {
        let result = match self.fleet.finish(record.clone()) {
            Ok(Finished::Conducts(merged)) => {
                // Before it is printed: a reader of the output that waits must not keep the others waiting.
                let code = exit_code(&merged);
                let told = match self.runs.save(&merged).1 {
                    Ok(()) => self.fleet.complete(code),
                    Err(error) => self.fleet.end(&format!("{error:#}")),
                };
                let told = told.context("cannot end the fleet");
                self.observer.complete(&merged);
                told.map(|()| (Some(*merged), ExitCode::from(code)))
            }
            Ok(Finished::Follows { run, code }) => {
                self.ui.notice(&format!("the run of the fleet is {run}: riops runs show {run}"));
                Ok((None, ExitCode::from(code)))
            }
            Err(error) => Err(unstored::keep(record, &error)),
        };
        self.result = Some(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_agent_comes_from_the_scheduler() {
        let found = |variables: &[(&str, &str)]| {
            let variables = variables.to_vec();
            rank(move |name| {
                variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(found(&[]), (None, None));
        assert_eq!(found(&[("JOB_COMPLETION_INDEX", "3")]), (Some(3), None));
        assert_eq!(found(&[("SLURM_PROCID", "2"), ("SLURM_NTASKS", "8")]), (Some(2), Some(8)));
        let mpi = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(found(&mpi), (Some(0), Some(2)));
        assert_eq!(found(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), (Some(1), Some(4)));
        assert_eq!(found(&[("FLUX_TASK_RANK", "5"), ("FLUX_JOB_SIZE", "6")]), (Some(5), Some(6)));
        // A size without a rank may be that of a whole job.
        assert_eq!(found(&[("SLURM_NTASKS", "8")]), (None, None));
    }
}
