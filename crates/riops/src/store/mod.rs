//! Every run is kept: the record, and the place where records are.

mod build;
mod record;
mod sqlite;

pub use build::{RunContext, build};
pub use record::{
    AccessRecord, ClientCpu, ClientRecord, DatasetRecord, DrainedRecord, Fairness, IoRecord,
    OperationRecord, Record, SCHEMA, StageRecord, Status, TargetRecord, Throughput, Verdict,
};
pub use sqlite::{Listed, SqliteStore, StoreError, default_path};
