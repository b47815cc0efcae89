//! A run as one of the agents of a fleet.

use std::time::Duration;

use anyhow::{Context as _, Result};
use riops::dataset::prepare::Prepared;
use riops::fleet::{Finished, Fleet, FleetError, Invitation, Role};
use riops::host::Interrupt;
use riops::plan::Plan;
use riops::probe::sampler::OnPoint;
use riops::record::{LiveRun, Point, Record};
use riops::run::{self, Agreement, History, Observer, OnLoaded, OnMessage, RunError};
use riops::server::{ConnInfo, Connection, ConnectionError, Server};
use riops::store::StoreLocation;

use crate::args::StoreOptions;
use crate::args::fleet::{AGENTS_WITHIN, FleetOptions};
use crate::failure::{exit_code, refuse};
use crate::stored;
use crate::ui::Ui;

/// Variables with which schedulers number the processes that they start, and with the number of processes.
const RANKS: [(&str, Option<&str>); 6] = [
    ("JOB_COMPLETION_INDEX", None),
    ("SLURM_PROCID", Some("SLURM_NTASKS")),
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMI_RANK", Some("PMI_SIZE")),
    ("PMIX_RANK", None),
    ("FLUX_TASK_RANK", Some("FLUX_JOB_SIZE")),
];

/// A number of the cluster, which its physical copies have as well, and the database.
const IDENTITY: &str = "select 'system ' || system_identifier || ', database ' || current_database() from pg_control_system()";

/// Which agent this is, of how many; each as far as it is known.
fn rank(variable: impl Fn(&str) -> Option<String>) -> (Option<u32>, Option<u32>) {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let found = RANKS.iter().find_map(|(rank, size)| Some((number(rank)?, *size)));
    found.map_or((None, None), |(rank, size)| (Some(rank), size.and_then(number)))
}

/// Which agent of which fleet this is.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    pub(crate) name: String,
    pub(crate) agents: u32,
    /// `None`: any.
    pub(crate) agent: Option<u32>,
    /// The database of the store, in which the agents meet.
    pub(crate) store: ConnInfo,
    pub(crate) within: Duration,
    /// Whether the time series and the histogram of each agent are kept.
    pub(crate) keeps_agents: bool,
}

impl Membership {
    /// Returns that of the options; `None` for a single client.
    ///
    /// # Errors
    /// If they contradict each other, or the store is not in PostgreSQL.
    pub(crate) fn of(options: &FleetOptions, store: &StoreOptions, ui: Ui) -> Result<Option<Self>> {
        let Some(name) = &options.fleet else {
            return Ok(None);
        };
        riops::plan::require_public([name])?;
        if name.is_empty() {
            return refuse("--fleet needs a name");
        }
        let (rank, size) = rank(|name| std::env::var(name).ok());
        let Some(agents) = options.agents.or(size) else {
            return refuse("--fleet requires --agents N, the number of agents");
        };
        let StoreLocation::Postgresql(store) = stored::location(store, ui)? else {
            return refuse(
                "--fleet requires --store postgresql://…: the agents meet in this database",
            );
        };
        Ok(Some(Self {
            name: name.clone(),
            agents,
            agent: options.agent.or(rank),
            store: *store,
            within: options.agents_within.unwrap_or(AGENTS_WITHIN).0,
            keeps_agents: options.keep_agents,
        }))
    }

    /// Returns this agent and its number, if another one conducts the experiment.
    pub(crate) fn following(&self) -> Option<(&Self, u32)> {
        Some((self, self.agent.filter(|&agent| agent > 0)?))
    }

    /// Where the runs are stored.
    pub(crate) fn location(&self) -> StoreLocation {
        StoreLocation::Postgresql(Box::new(self.store.clone()))
    }

    /// Joins the fleet.
    pub(crate) fn join(&self, plan: &Plan, server: &Server, role: Role, ui: Ui) -> Result<Fleet> {
        let invitation = Invitation {
            name: &self.name,
            agents: self.agents,
            agent: self.agent,
            plan: &Plan { keep_agents: self.keeps_agents, ..plan.clone() },
            server: &identity(server, ui.interrupt)?,
            within: self.within,
            role,
        };
        Ok(Fleet::join(&self.store, &invitation, ui.interrupt, &mut |text| ui.notice(text))?)
    }
}

/// Returns what identifies the database, whatever its address is. Without the privilege, or on a server that has no such
/// number, it is the address.
fn identity(server: &Server, interrupt: &Interrupt) -> Result<String> {
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    match connection.query_value(IDENTITY) {
        Ok(Some(identity)) => Ok(identity),
        Ok(None) | Err(ConnectionError::Server(_)) => Ok(server.conninfo.to_string()),
        Err(error) => Err(error.into()),
    }
}

/// How the run of a fleet ended for this agent.
pub(crate) struct Ended {
    /// The record of all, if this agent has stored it.
    pub(crate) merged: Option<Record>,
    /// Its id.
    pub(crate) run: String,
    pub(crate) code: u8,
}

/// Stores the record of a fleet.
type Save<'a> = &'a dyn Fn(&Record) -> Result<()>;

/// Runs the plan of an agent, or of a single client. Returns the record of this client, and how the fleet ended.
pub(crate) fn run(
    fleet: Option<&mut Fleet>,
    (plan, server): (&Plan, &Server),
    (observer, save): (&mut dyn Observer, Save<'_>),
    ui: Ui,
) -> (Result<Record, RunError>, Option<Result<Ended>>) {
    let Some(fleet) = fleet else {
        return (run::run(plan, server, ui.interrupt, observer), None);
    };
    let mut observer = InFleet { fleet, observer, save, ui, result: None };
    let result = run::run(plan, server, ui.interrupt, &mut observer);
    let ended = observer.result;
    (result.inspect_err(|error| fleet.fail(&error.to_string())), ended)
}

/// Observes the run of an agent: meets the others, and passes the events on. The record that it passes on is that of the
/// fleet, if this agent conducts.
struct InFleet<'a> {
    fleet: &'a mut Fleet,
    observer: &'a mut dyn Observer,
    save: Save<'a>,
    ui: Ui,
    result: Option<Result<Ended>>,
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

    fn started(&mut self, run: &LiveRun) {
        self.fleet.started(run.id);
        self.observer.started(run);
    }

    fn agree_start(&mut self) -> Result<Option<Agreement>, String> {
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
        let finished = self.fleet.finish(record.clone());
        for point in &self.fleet.last_points() {
            self.observer.point(point);
        }
        let result = match finished {
            Ok(Finished::Conducts(merged)) => {
                // Before it is printed: a reader of the output that waits must not keep the others waiting.
                let code = exit_code(&merged);
                let told = match (self.save)(&merged) {
                    Ok(()) => self.fleet.complete(code).context("cannot end the fleet"),
                    Err(error) => {
                        // That it is not stored matters more than whether the others know.
                        let _ = self.fleet.end(&format!("{error:#}"));
                        Err(error)
                    }
                };
                self.observer.complete(&merged);
                let run = merged.id.to_string();
                told.map(|()| Ended { merged: Some(*merged), run, code })
            }
            Ok(Finished::Follows { run, code }) => {
                self.ui.notice(&format!("the run of the fleet is {run}: riops runs show {run}"));
                Ok(Ended { merged: None, run, code })
            }
            Err(error @ FleetError::Interrupted) => {
                self.ui.notice(&stored::keep(record, &error).to_string());
                Err(error.into())
            }
            Err(error) => Err(stored::keep(record, &error)),
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
