//! Every run is kept: the record, and the place where records are.

mod build;
mod io;
mod nodes;
mod parts;
mod record;
mod sessions;
mod sqlite;

pub use build::{Measured, RunContext, build, build_parts};
pub use nodes::{NodeRecord, OutageRecord};
pub use parts::{Ending, MeasuredStatement, Part};
pub use record::{
    AccessRecord, ClientCpu, ClientRecord, DatasetRecord, DrainedRecord, Execution, Fairness,
    IoRecord, LateRecord, OperationRecord, Outcomes, Record, SCHEMA, ScheduleRecord,
    SessionOperation, SessionRecord, Sources, StageRecord, StatementRecord, Status, TargetRecord,
    ThresholdRecord, Throughput, Verdict,
};
pub use sqlite::{Listed, SqliteStore, StoreError, default_path};
