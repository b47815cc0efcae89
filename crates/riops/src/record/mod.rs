//! The record of one run: plain data, versioned, the only input of reports.
//!
//! Schema 1. Changes only add fields, so every later version can read the records of this one. Field names
//! include the unit. An absent value was not measured; it never means zero.
//!
//! The record has its own types, so changes elsewhere cannot alter the stored JSON. Each file converts the
//! measured types that it stores; `build` assembles the record.

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
pub use counts::{DrainedRecord, ErrorEntry, Outcomes, Queries, UnknownOutcomes};
pub use database::{
    CacheState, Checkpoints, ClientIo, DatabaseCounters, DatabaseUse, LockWaits, RowVersions,
    Sizes, TableBlocks, Wal,
};
pub use device::{DeviceUse, DiskLimit, DiskRate, Storage};
pub use io::{IoRecord, Sources};
pub use latency::LatencySummary;
pub use machine::{MachineFacts, Memory, Pressure, ReadBytes};
pub use operation::{Effects, OperationRecord, TableEffects, effects_by_table};
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

/// Version of the record format.
pub const SCHEMA: u32 = 1;
