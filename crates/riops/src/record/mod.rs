//! The record of one run: plain data, versioned, the only input of reports.
//!
//! Schema 1. Changes only add fields, so every later version can read the records of this one. Field names
//! include the unit. An absent value was not measured; it never means zero.
//!
//! These types are the vocabulary of everything that measures, stores and shows: a measured value has one type. The
//! stored JSON is protected by the serde attributes and by the frozen records of the tests.

mod access;
mod activity;
mod agent;
mod check;
mod client;
mod cluster;
mod command;
mod condition;
mod cost;
mod counts;
mod database;
mod device;
mod flavor;
mod heatmap;
mod histogram;
mod imported;
mod io;
mod latencies;
mod latency;
mod live;
mod machine;
mod mix;
mod neighbors;
mod note;
mod observed;
mod operation;
mod outage;
mod probes;
mod profile;
mod query_series;
mod rate;
mod run;
mod samples;
mod schedule;
mod series;
mod session;
mod session_loop;
mod session_time;
mod stage;
mod statement;
mod statements;
mod status;
mod steadiness;
mod step;
mod target;

pub use access::{AccessRecord, StorageRequests, moment_text};
pub use activity::ActivityRecord;
pub use agent::{AgentRecord, AgentStage, ClockRecord};
pub use check::{Check, ThresholdRecord, Verdict, Warning, WarningKind};
pub(crate) use client::THROTTLED_SHARE;
pub use client::{ClientCpu, ClientLimit, ClientRecord};
pub use cluster::{NodeRecord, NodeUse, OutageRecord, Role};
pub use command::CommandRecord;
pub use condition::{ConditionRecord, FreshCondition};
pub use cost::{CostRecord, DiskCost};
pub use counts::{DrainedRecord, ErrorEntry, Outcomes, Queries, UnknownOutcomes, WarmupRecord};
pub use database::{
    CacheState, Checkpoints, ClientIo, DatabaseCounters, DatabaseUse, LockWaits, OldestSnapshot,
    RowVersions, Sizes, TableBlocks, TableScans, Wal,
};
pub use device::{DeviceUse, Disk, DiskLimit, DiskRate, DiskUse, Storage};
pub use flavor::Flavor;
pub(crate) use heatmap::SLOTS_MIN;
pub use heatmap::{HeatmapRecord, HeatmapSlot};
pub use histogram::{Histogram, HistogramError, LATENCIES_MAX, StoredHistogram};
pub use imported::{
    ImportRecord, LatencyKind, ReportedLatency, ReportedPercentile, StartSource, Validity,
};
pub use io::{IoRecord, Sources};
pub use latencies::{AtLeast, Latencies};
pub use latency::{LatencySummary, PercentileInterval};
#[cfg(test)]
pub(crate) use live::example_live_run;
pub use live::{
    LIVE_POINTS_MAX, LIVE_VERSION, LiveEvent, LivePhase, LivePoint, LiveRun, LiveStage, LiveStart,
    LiveTotals,
};
pub use machine::{MachineFacts, Memory, NetworkUse, Pressure, ReadBytes};
pub use mix::MixRecord;
pub use neighbors::{NeighborProcess, Neighbors};
pub use note::{Note, NoteError};
pub use observed::{CountRecord, ObservedRecord};
pub use operation::{Effects, OperationRecord, TableEffects};
pub use probes::{Blocker, OtherSessions, ProbePoint, Sampled, ServerProgress, WaitShare};
pub use profile::{ProfileRecord, Stack};
pub use query_series::{QueryPoint, QuerySeries};
pub use rate::RateVerdict;
pub use run::Record;
pub use samples::{SamplePoint, SampleSet};
pub use schedule::{LateRecord, ScheduleRecord};
pub use series::{Checkpoint, Point, PointHistograms};
pub use session::{Execution, Fairness, SessionOperation, SessionRecord};
pub use session_loop::{EndedSessionRecord, LoopRecord};
pub use session_time::{SessionTime, TimePart};
pub use stage::{StageRecord, Throughput, counters_cover};
pub use statement::{StatementBuffers, StatementPlan, StatementRecord, VacuumRates};
pub use statements::StatementUse;
pub use status::Status;
pub use steadiness::{Shift, SteadinessRecord};
pub use step::StepRecord;
pub use target::{DatasetRecord, ServerLimits, TargetRecord};

/// Version of the record format.
pub const SCHEMA: u32 = 1;
