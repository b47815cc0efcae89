//! Which agent of which fleet a client is.

use std::time::Duration;

use super::{Fleet, FleetError, Invitation, Role};
use crate::host::Interrupt;
use crate::plan::Plan;
use crate::server::{ConnInfo, Connection, ConnectionError, Server};
use crate::store::StoreLocation;

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

/// Returns which agent this process is, of how many, according to the variables of a scheduler; each as far as it is known.
pub fn rank(variable: impl Fn(&str) -> Option<String>) -> (Option<u32>, Option<u32>) {
    let value = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let known = RANKS.iter().find_map(|(rank, size)| Some((value(rank)?, *size)));
    known.map_or((None, None), |(rank, size)| (Some(rank), size.and_then(value)))
}

/// Which agent of which fleet a client is.
#[derive(Debug, Clone)]
pub struct Membership {
    /// Name of the fleet.
    pub name: String,
    /// Number of agents.
    pub agents: u32,
    /// Number of this agent; `None`: any.
    pub agent: Option<u32>,
    /// The database of the store, in which the agents meet.
    pub store: ConnInfo,
    /// How long the agents wait for each other.
    pub within: Duration,
    /// Whether the time series and the histogram of each agent are kept.
    pub keeps_agents: bool,
}

impl Membership {
    /// Returns the number of this agent, if another one conducts the experiment.
    pub fn following(&self) -> Option<u32> {
        self.agent.filter(|&agent| agent > 0)
    }

    /// Returns where the runs are stored.
    pub fn location(&self) -> StoreLocation {
        StoreLocation::Postgresql(Box::new(self.store.clone()))
    }

    /// Joins the fleet.
    ///
    /// # Errors
    /// [`FleetError`] if the server or the store cannot be reached, or the agents do not fit.
    pub fn join(
        &self,
        plan: &Plan,
        server: &Server,
        role: Role,
        interrupt: &Interrupt,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Fleet, FleetError> {
        let invitation = Invitation {
            name: &self.name,
            agents: self.agents,
            agent: self.agent,
            plan: &Plan { keep_agents: self.keeps_agents, ..plan.clone() },
            server: &identity(server, interrupt).map_err(FleetError::Server)?,
            within: self.within,
            role,
        };
        Fleet::join(&self.store, &invitation, interrupt, notice)
    }
}

/// Returns what identifies the database, whatever its address is. Without the privilege, or on a server that has no such
/// number, it is the address.
fn identity(server: &Server, interrupt: &Interrupt) -> Result<String, ConnectionError> {
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    match connection.query_value(IDENTITY) {
        Ok(Some(identity)) => Ok(identity),
        Ok(None) | Err(ConnectionError::Server(_)) => Ok(server.conninfo.to_string()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_agent_comes_from_the_scheduler() {
        let known = |variables: &[(&str, &str)]| {
            let variables = variables.to_vec();
            rank(move |name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(known(&[]), (None, None));
        assert_eq!(known(&[("JOB_COMPLETION_INDEX", "3")]), (Some(3), None));
        assert_eq!(known(&[("SLURM_PROCID", "2"), ("SLURM_NTASKS", "8")]), (Some(2), Some(8)));
        let mpi = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(known(&mpi), (Some(0), Some(2)));
        assert_eq!(known(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), (Some(1), Some(4)));
        assert_eq!(known(&[("FLUX_TASK_RANK", "5"), ("FLUX_JOB_SIZE", "6")]), (Some(5), Some(6)));
        // A size without a rank may be the size of a whole job.
        assert_eq!(known(&[("SLURM_NTASKS", "8")]), (None, None));
    }
}
