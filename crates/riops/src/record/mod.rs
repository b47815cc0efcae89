//! The record of one run: plain data, versioned, the only thing that reports read.
//!
//! Schema 1. Changes only add: what is written today can be read by every later version. Units are
//! in the names; what is absent was not measured, and is never zero.
//!
//! The types are the record's own, so that nothing else decides about the stored JSON. Each file converts
//! the measured types that it stores; `build` puts the record together.

mod access;
mod build;
mod check;
mod client;
mod cluster;
mod convert;
mod counts;
mod database;
mod device;
mod io;
mod latency;
mod machine;
mod operation;
mod probes;
mod run;
mod samples;
mod schedule;
mod series;
mod session;
mod session_loop;
mod stage;
mod statement;
mod target;

pub use access::{AccessRecord, StorageRequests};
pub use build::{Ending, Measured, MeasuredStatement, Part, RunContext, build};
pub use check::{Check, ThresholdRecord, Verdict};
pub use client::{ClientCpu, ClientRecord};
pub use cluster::{NodeRecord, NodeUse, OutageRecord};
pub use counts::{DrainedRecord, ErrorEntry, Outcomes, Queries};
pub use database::{
    CacheState, Checkpoints, ClientIo, DatabaseCounters, DatabaseUse, LockWaits, RowVersions,
    Sizes, TableBlocks, Wal,
};
pub use device::{DeviceUse, DiskLimit, DiskRate, Storage};
pub use io::{IoRecord, Sources};
pub use latency::LatencySummary;
pub use machine::{MachineFacts, Memory, Pressure, ReadBytes};
pub use operation::{Effects, OperationRecord};
pub use probes::{ProbePoint, Sampled, ServerProgress, WaitShare};
pub use run::{Record, Status};
pub use samples::{SamplePoint, SampleSet};
pub use schedule::{LateRecord, ScheduleRecord};
pub use series::Point;
pub use session::{Execution, Fairness, SessionOperation, SessionRecord};
pub use session_loop::LoopRecord;
pub use stage::{StageRecord, Throughput};
pub use statement::{StatementBuffers, StatementPlan, StatementRecord, VacuumRates};
pub use target::{DatasetRecord, TargetRecord};

/// The version of this structure.
pub const SCHEMA: u32 = 1;
