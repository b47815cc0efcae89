//! The plan of a run: plain data, stored in the record and read back from it.
//!
//! Reads no command line, file or clock.

#[macro_use]
mod error;

pub mod cbc;
mod cbc_steps;
pub mod facts;
mod imported;
mod keys;
pub mod load;
pub mod observe;
pub mod oltp;
mod part;
mod pgbench;
pub mod pgio;
pub mod ping;
pub mod point;
mod policy;
mod query;
pub mod rows;
mod run;
pub mod script;
mod script_dataset;
mod sharing;
mod spec;
mod spread;
mod stock_scripts;
mod sysbench;
mod thinning;
mod threshold;
mod work;

pub use cbc::{CbcDataset, CbcPlace, CbcRun, CbcSize, copies};
pub use cbc_steps::{CbcQuery, CbcStep};
pub use error::{PlanError, pairs, refuse, require_public};
pub use imported::ImportedRun;
pub use keys::Distribution;
pub use load::{Contents, LoadDataset, LoadRun, Method};
pub use observe::ObserveRun;
pub use oltp::{OltpDataset, OltpRun};
pub use point::{PointOperations, PointRun};
pub use policy::{
    Caches, CleanStart, Drain, Driver, ErrorPolicy, LatencyLimit, OnError, PreparePolicy, Protocol,
    RateStep, SESSIONS_MAX, Schedule, Share, Stop, Trust, Unrecorded, Vacuum,
};
pub use query::{NamedQuery, PROMQL, Prometheus, SERVER_THROTTLED};
pub use rows::{BLOCK_FILLER, Layout, LoopSide, Order, RowsDataset, RowsRun, UpdateShare};
pub use run::Plan;
pub use script::{Builtin, ScriptDataset, ScriptRun, ScriptSource};
pub use spec::{Common, DatasetSpec, DatasetTraits, Mix, Spec, Traits};
pub use spread::Spread;
pub use stock_scripts::{COMMON_SCRIPT, stock_script};
pub use sysbench::OltpTest;
pub use thinning::PointLength;
pub use threshold::{LatencyKind, LimitUnit, Metric, Part, Quantity, Threshold};
pub use work::{DatasetPlan, Member, Parameters, WorkPlan};
