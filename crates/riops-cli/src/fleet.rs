//! The options of an agent of a fleet.

use anyhow::Result;
use riops::fleet::{Membership, rank};
use riops::store::StoreLocation;

use crate::args::StoreOptions;
use crate::args::fleet::{AGENTS_WITHIN, FleetOptions};
use crate::failure::refuse;
use crate::stored;
use crate::ui::Ui;

/// Returns which agent this is; `None` for a single client.
///
/// # Errors
/// If the options contradict each other, or the store is not in PostgreSQL.
pub(crate) fn membership(
    options: &FleetOptions,
    store: &StoreOptions,
    ui: Ui,
) -> Result<Option<Membership>> {
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
        return refuse("--fleet requires --store postgresql://…: the agents meet in this database");
    };
    Ok(Some(Membership {
        name: name.clone(),
        agents,
        agent: options.agent.or(rank),
        store: *store,
        within: options.agents_within.unwrap_or(AGENTS_WITHIN).0,
        keeps_agents: options.keep_agents,
    }))
}
