//! Every run is kept: the record, and the place where records are.

mod build;
mod record;
mod sqlite;

pub use build::{RunContext, build};
pub use record::{
    AccessRecord, ClientCpu, ClientRecord, DatasetRecord, DrainedRecord, Fairness, IoRecord,
    LateRecord, OperationRecord, Outcomes, Record, SCHEMA, ScheduleRecord, StageRecord, Status,
    TargetRecord, ThresholdRecord, Throughput, Verdict,
};
pub use sqlite::{Listed, SqliteStore, StoreError, default_path};
