//! Stored experiments, continued by another process.

use std::collections::BTreeSet;

use anyhow::Result;
use riops::experiment::Experiment;
use riops::plan::Trust;
use riops::store::{Store, StoredExperiment};

use super::words::{Databases, without_password};
use crate::args::{TargetOptions, TrustOption};
use crate::failure::refuse;
use crate::fleet::Membership;

/// Returns the newest stored experiment that measures the same. Ids, times and seeds differ.
pub(crate) fn same(store: &Store, experiment: &Experiment) -> Result<Option<StoredExperiment>> {
    for known in store.experiments()?.into_iter().filter(|known| known.name == experiment.name) {
        let stored = store.experiment(&known.id)?;
        let Ok(mut other) = Experiment::of_stored(&stored) else { continue };
        let own = experiment.clone();
        (other.id, other.created_at, other.seed) = (own.id, own.created_at, own.seed);
        (other.time_limit_s, other.notes) = (own.time_limit_s, own.notes);
        for (other, own) in other.cells.iter_mut().zip(&own.cells) {
            (other.plan.seed, other.plan.trust) = (own.plan.seed, own.plan.trust);
        }
        if other == *experiment {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}

/// Fails if another number of agents continues an experiment: its runs could not be compared.
pub(crate) fn require_agents(
    experiment: &Experiment,
    membership: Option<&Membership>,
) -> Result<()> {
    let given = membership.map(|own| own.agents);
    if given == experiment.agents {
        return Ok(());
    }
    let text =
        |agents: Option<u32>| agents.map_or("one client".to_owned(), |n| format!("a fleet of {n}"));
    refuse(format!(
        "the experiment is measured by {}, not by {}",
        text(experiment.agents),
        text(given)
    ))
}

/// Returns the connection string of the command line by the one of the experiment. If all cells use the same
/// database, it replaces that.
pub(crate) fn databases(experiment: &mut Experiment, target: &TargetOptions) -> Result<Databases> {
    let mut found = Databases::new();
    if let Some(given) = &target.database {
        let masked = without_password(given);
        let known: BTreeSet<_> =
            experiment.cells.iter().map(|cell| &cell.server.database).collect();
        if known.len() > 1 && !known.contains(&Some(masked.clone())) {
            return refuse(format!("the experiment uses several databases, but not {masked}"));
        }
        if known.len() == 1 {
            for cell in &mut experiment.cells {
                cell.server.database = Some(masked.clone());
            }
        }
        found.insert(masked, given.clone());
    }
    Ok(found)
}

/// Returns what an experiment does on this machine besides measuring: its plans, or a server that names a program or a
/// file.
pub(crate) fn needs_trust(experiment: &Experiment) -> Option<String> {
    experiment.cells.iter().find_map(|cell| {
        let server = || cell.server.named_program_or_file().map(|text| format!("uses {text}"));
        cell.plan.needs_trust().or_else(server)
    })
}

/// Permits that, if the user trusts the stored experiment. Otherwise fails if there is anything: the store may be
/// shared.
pub(crate) fn trust_or_refuse(experiment: &mut Experiment, trust: TrustOption) -> Result<()> {
    if trust.trust {
        experiment.cells.iter_mut().for_each(|cell| cell.plan.trust = Trust(true));
        return Ok(());
    }
    match needs_trust(experiment) {
        Some(what) => refuse(format!("the stored experiment {what}: permit it with --trust")),
        None => Ok(()),
    }
}

/// Fails if the password of a database is missing: passwords are not stored.
pub(crate) fn require_passwords(experiment: &Experiment, given: &Databases) -> Result<()> {
    let masked = experiment.cells.iter().filter_map(|cell| cell.server.database.as_ref());
    let mut missing =
        masked.filter(|database| database.contains("***") && !given.contains_key(*database));
    let Some(database) = missing.next() else {
        return Ok(());
    };
    refuse(format!(
        "the password for {database} is not stored: specify the database again with -d; for several databases use the password file (~/.pgpass) from the start"
    ))
}
