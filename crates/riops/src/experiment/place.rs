//! Where and with whom experiments are conducted, and why that fails.

use super::build::BuildError;
use super::reset::ResetError;
use crate::fleet::{FleetError, Membership};
use crate::host::Interrupt;
use crate::plan::PlanError;
use crate::record::Events;
use crate::run::CleanStartError;
use crate::server::{ConnectionError, SelectError, Target};
use crate::session::NotStored;
use crate::store::{StoreError, StoreLocation};
use crate::study::ServerChoice;

/// Selects the server of a cell, and starts it if it is the embedded one.
pub type Select<'a> = &'a dyn Fn(&ServerChoice) -> Result<Target, SelectError>;

/// Why an experiment ended without its result. It can be continued.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// The request does not fit the experiment or the fleet.
    #[error("{0}")]
    Refused(String),
    /// Another process does what would be necessary, or has ended too early.
    #[error("{0}")]
    Failed(String),
    /// The machine or a server has changed since the finished runs.
    #[error(
        "the environment changed since the experiment started: {}; continue with --allow-changed",
        .0.join("; ")
    )]
    Changed(Vec<String>),
    /// A server could not be selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The store cannot be accessed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record could not be stored.
    #[error(transparent)]
    NotStored(#[from] NotStored),
    /// The clients could not meet.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// A database of the experiment could not be created or dropped.
    #[error(transparent)]
    Reset(#[from] ResetError),
    /// The server could not be brought into the state for a run.
    #[error(transparent)]
    Between(#[from] CleanStartError),
    /// A connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A run cannot be divided among the clients.
    #[error("{cell}: {source}")]
    Plan {
        /// Name of the cell.
        cell: String,
        /// Reason.
        source: PlanError,
    },
    /// A commit cannot be measured.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The stored state of the experiment is damaged.
    #[error("the state of the experiment cannot be read or written: {0}")]
    State(#[from] serde_json::Error),
}

/// Conducts experiments of a store.
pub struct Conductor<'a> {
    /// Where the experiments and their runs are stored.
    pub location: StoreLocation,
    /// The fleet whose agent this is.
    pub membership: Option<Membership>,
    /// Selects the server of a cell.
    pub select: Select<'a>,
    /// Receives the events of all runs.
    pub events: Events,
    /// Ends the experiment.
    pub interrupt: &'a Interrupt,
}
