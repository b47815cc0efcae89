//! The columns of a stage, each with one entry: the table `stages` of a store, its view with the runs, and CSV take them from here.
//!
//! A column without a value is NULL in the store and empty in CSV.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::figure::{Figure, STATISTICS, Statistic, Summary, Value};
use crate::record::{DeviceUse, IoRecord, LatencyKind, Record, Sources, StageRecord, Status};

/// A stage, and its number in its run, from 1.
#[derive(Debug, Clone, Copy)]
pub struct StageRow<'a> {
    /// The run.
    pub record: &'a Record,
    /// Position of the stage in the run, from 1.
    pub ordinal: u64,
    /// The stage.
    pub stage: &'a StageRecord,
}

impl<'a> StageRow<'a> {
    /// Returns the stages of a run.
    pub fn of_record(record: &'a Record) -> impl Iterator<Item = Self> {
        (1..).zip(&record.stages).map(move |(ordinal, stage)| Self { record, ordinal, stage })
    }

    /// Whether the stage has rows: its workload has, and it is not a statement that returned none.
    pub fn has_rows(&self) -> bool {
        let is_without = self.stage.is_timed() && self.stage.rows == 0;
        !self.record.plan.work.traits().has_no_rows && !is_without
    }

    fn of_rows<T>(&self, value: T) -> Option<T> {
        self.has_rows().then_some(value)
    }

    fn of_statements<T>(&self, value: T) -> Option<T> {
        (!self.record.plan.work.traits().has_no_statements).then_some(value)
    }

    /// Returns a count that exists only for a session loop. In an imported run, 0 may also mean unknown.
    fn of_loop(&self, value: u64) -> Option<u64> {
        let is_known = match self.record.imported {
            Some(_) => value > 0,
            None => self.stage.session_loop.outcomes.is_some(),
        };
        is_known.then_some(value)
    }

    fn io<T>(&self, value: impl Fn(&'a IoRecord) -> Option<T>) -> Option<T> {
        value(self.stage.io.as_ref()?)
    }

    fn source(&self, share: impl Fn(&Sources) -> Option<f64>) -> Option<f64> {
        share(self.stage.io.as_ref()?.sources.as_ref()?)
    }

    fn device<T>(&self, value: impl Fn(&'a DeviceUse) -> T) -> Option<T> {
        Some(value(self.stage.io.as_ref()?.device.as_ref()?))
    }

    /// Returns a word for the bottleneck, stable across releases.
    fn bottleneck(&self) -> Option<&'static str> {
        let summary = Summary { record: self.record, stage: self.stage };
        let is_whole = self.record.status != Status::Failed;
        (summary.has_bottleneck() && is_whole).then(|| summary.bottleneck().as_str())
    }
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Real,
    /// A truth value.
    Boolean,
    /// A time, as text in RFC 3339.
    Time,
}

/// A column of a stage.
pub struct StageColumn {
    /// The name in the table of stages.
    pub name: Cow<'static, str>,
    /// The type.
    pub column_type: ColumnType,
    value: Box<dyn Fn(&StageRow<'_>) -> Value + Send + Sync>,
}

impl StageColumn {
    fn new(
        name: impl Into<Cow<'static, str>>,
        column_type: ColumnType,
        value: impl Fn(&StageRow<'_>) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), column_type, value: Box::new(value) }
    }

    /// Returns the value of a stage.
    pub fn value(&self, row: &StageRow<'_>) -> Value {
        (self.value)(row)
    }

    /// Returns the name beside the columns of the run.
    pub fn joined_name(&self) -> &str {
        match &*self.name {
            "position" => "stage",
            "name" => "stage_name",
            "started_at" => "stage_started_at",
            other => other,
        }
    }
}

macro_rules! columns {
    ($row:ident => { $($name:ident: $type:ident = $value:expr,)+ }) => {
        [$(StageColumn::new(stringify!($name), ColumnType::$type, |$row| Value::from($value))),+]
    };
}

/// All columns, in order.
pub static STAGE_COLUMNS: LazyLock<Vec<StageColumn>> = LazyLock::new(|| {
    let mut all = Vec::from(identity());
    all.extend(counts());
    all.extend(LatencyKind::ALL.into_iter().flat_map(latencies));
    all.extend(resources());
    all.extend(Figure::costs().flat_map(cost));
    all
});

fn identity() -> [StageColumn; 9] {
    columns! { row => {
        position: Integer = row.ordinal,
        name: Text = &row.stage.name,
        kind: Text = row.stage.kind.as_str(),
        started_at: Time = row.stage.started_at,
        seconds: Real = row.stage.seconds,
        // An imported run may not know its sessions.
        sessions: Integer = Some(row.stage.sessions).filter(|sessions| *sessions > 0),
        batch: Integer = row.stage.session_loop.batch,
        update_batch: Integer = row.stage.session_loop.update_batch,
        method: Text = &row.stage.session_loop.method,
    }}
}

fn counts() -> [StageColumn; 17] {
    columns! { row => {
        transactions: Integer = row.stage.transactions,
        rows: Integer = row.of_rows(row.stage.rows),
        statements: Integer = row.of_statements(row.stage.statements),
        transactions_per_s: Real = row.stage.throughput.transactions_per_s,
        rows_per_s: Real = row.of_rows(row.stage.throughput.rows_per_s),
        statements_per_s: Real = row.of_statements(row.stage.throughput.statements_per_s),
        failed_transactions: Integer = row.stage.session_loop.outcomes.map(|outcomes| outcomes.failed),
        unknown_transactions: Integer = row.stage.session_loop.outcomes.map(|outcomes| outcomes.unknown),
        errors: Integer = row.of_loop(row.stage.session_loop.error_count()),
        retries: Integer = row.of_loop(row.stage.session_loop.retries),
        reconnects: Integer = row.of_loop(row.stage.session_loop.reconnects),
        late_transactions: Integer = row.stage.session_loop.late.and_then(|late| late.transactions),
        skipped_starts: Integer = row.stage.session_loop.skipped_starts(),
        waiting_starts: Integer = row.stage.session_loop.schedule.as_ref().map(|schedule| schedule.waiting),
        unanswered_transactions: Integer = {
            let drained = &row.stage.session_loop.drained;
            row.of_loop(drained.transactions + drained.lost)
        },
        longest_pause_s: Real = row.stage.session_loop.longest_pause_s,
        // The share that was executed; only with a mix.
        update_percent: Real = row.stage.session_loop.mix.as_ref().filter(|mix| mix.operation == "update").map(|mix| mix.executed_percent),
    }}
}

/// The columns of the service or the response time.
fn latencies(kind: LatencyKind) -> Vec<StageColumn> {
    let count = move |row: &StageRow<'_>| {
        row.stage.session_loop.summary_us(kind).map(|latency| latency.count).into()
    };
    let mut columns =
        vec![StageColumn::new(Statistic::count_column(kind), ColumnType::Integer, count)];
    columns.extend(STATISTICS.iter().map(|statistic| {
        StageColumn::new(statistic.column(kind), ColumnType::Real, move |row| {
            statistic.of_loop(&row.stage.session_loop, kind).into()
        })
    }));
    let bound = move |row: &StageRow<'_>| {
        let latency = row.stage.session_loop.summary_us(kind);
        latency.and_then(|latency| latency.lower_bound_from).into()
    };
    columns.push(StageColumn::new(Statistic::bound_column(kind), ColumnType::Real, bound));
    columns
}

fn resources() -> [StageColumn; 20] {
    columns! { row => {
        buffers_share: Real = row.source(|sources| Some(sources.buffers_share)),
        page_cache_share: Real = row.source(|sources| sources.page_cache_share),
        device_share: Real = row.source(|sources| sources.device_share),
        liops: Real = row.io(|io| io.liops),
        piops: Real = row.io(|io| io.piops),
        buffer_hit_ratio: Real = row.io(|io| io.hit_ratio),
        blocks_per_row: Real = row.io(|io| io.blocks_per_row),
        wal_mb_s: Real = row.io(|io| io.wal_mb_s),
        device: Text = row.device(|device| &device.name),
        device_reads_per_s: Real = row.device(|device| device.reads_per_s),
        device_writes_per_s: Real = row.device(|device| device.writes_per_s),
        device_read_mb_s: Real = row.device(|device| device.read_mb_s),
        device_write_mb_s: Real = row.device(|device| device.write_mb_s),
        device_busy_share: Real = row.device(|device| device.busy_share),
        client_cpu_s: Real = row.stage.client_cpu.as_ref().map(|cpu| cpu.seconds),
        client_share: Real = row.stage.client_cpu.as_ref().map(|cpu| cpu.share_of_client),
        client_limited: Boolean = row.stage.client_cpu.as_ref().map(|cpu| cpu.limited),
        server_cpu_s: Real = row.stage.server_cpu_s,
        steady: Boolean = row.stage.session_loop.steadiness.map(|steadiness| steadiness.steady),
        bottleneck: Text = row.bottleneck(),
    }}
}

/// The columns of a cost: for a transaction, and for a row.
fn cost(figure: Figure) -> [StageColumn; 2] {
    let value = move |row: &StageRow<'_>| figure.value(row.record, row.stage);
    let of_row = move |row: &StageRow<'_>| {
        let rows = row.stage.cost.as_ref()?.rows;
        Some(value(row)? / (rows > 0.0 && row.has_rows()).then_some(rows)?)
    };
    let name = figure.as_str();
    [
        StageColumn::new(name, ColumnType::Real, move |row| value(row).into()),
        StageColumn::new(name.replace("transaction", "row"), ColumnType::Real, move |row| {
            of_row(row).into()
        }),
    ]
}
