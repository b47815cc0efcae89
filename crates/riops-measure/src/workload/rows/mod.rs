//! `rows`: random row reads and writes per second (RIOPS), after the SLOB method.
//!
//! Each statement reads a range of consecutive keys from an index. The rows of these keys are scattered
//! over the table, so each key costs one random row access, and all other costs are negligible.
//! [`Rows::accesses`] lists the expected access paths.

mod generator;
mod load;
mod server_loop;

use super::access::{Access, AccessPath, Index};
use super::build::typed;
use super::check::{Bounds, Integers, Ledger};
use super::tables::{Dataset, Footprint, Routines, Table, Zero};
use super::transaction::with_literals;
use super::unknown::Mark;
use super::values::BIGINT_OID;
use super::{
    ALL_STATEMENTS, Build, BuildFor, Describe, KeyColumn, NO_PARALLEL_WORKERS, NON_TRANSACTIONAL,
    SessionPlan, Stage, Statement, Work, Workload, fill, session_settings,
};
use crate::server::{Dialect, Feature};
use generator::RowsGenerator;
use load::table_name;
use riops_model::plan::{Layout, LoopSide, Plan, PlanError, RowsDataset, RowsRun};
use riops_model::record::Check;
use riops_model::units::BLOCK_BYTES;
use server_loop::RowsLoop;

/// Name of the workload.
pub const NAME: &str = "rows";

const CREATE_TABLE: &str = include_str!("../../../sql/rows/create_table.sql");
const CREATE_TABLE_BLOCK: &str = include_str!("../../../sql/rows/create_table_block.sql");
const CREATE_INDEX: &str = include_str!("../../../sql/rows/create_index.sql");
const CREATE_PRIMARY_KEY: &str = include_str!("../../../sql/rows/create_primary_key.sql");
const SETTLE: &str = include_str!("../../../sql/dataset/settle.sql");
const SHARED_BLOCKS: &str = include_str!("../../../sql/rows/shared_blocks.sql");
const CONTENTS: &str = include_str!("../../../sql/rows/contents.sql");
const READ: &str = include_str!("../../../sql/rows/read.sql");
const READ_INDEX_ONLY: &str = include_str!("../../../sql/rows/read_index_only.sql");
const UPDATE: &str = include_str!("../../../sql/rows/update.sql");
const UPDATE_INDEX_ONLY: &str = include_str!("../../../sql/rows/update_index_only.sql");
const WRITERS: &str = include_str!("../../../sql/rows/writers.sql");

/// Forces index scans. The planner would prefer a bitmap heap scan or a sequential scan: better for a
/// single query, but no random row access.
const SESSION_SETTINGS: [&str; 5] = [
    "set enable_seqscan = off",
    "set enable_bitmapscan = off",
    "set enable_indexscan = on",
    NO_PARALLEL_WORKERS,
    "set jit = off",
];

/// The workload with all its parameters.
#[derive(Debug, Clone)]
pub struct Rows {
    dataset: RowsDataset,
    /// Part of the dataset that the sessions use.
    used: RowsDataset,
    run: RowsRun,
    dialect: Dialect,
}

impl Rows {
    /// Estimates the size of the tables: the columns are two numbers, and the filler after its length.
    fn footprint(&self) -> Footprint {
        let RowsDataset { rows, tables, filler, layout, .. } = &self.dataset;
        let single = Footprint::of_table(*rows, 8 + 8 + 4 + u64::from(*filler), 1);
        let tables_bytes = match layout {
            Layout::Packed => single.tables_bytes,
            Layout::Block => rows.saturating_mul(BLOCK_BYTES),
        };
        Footprint { tables_bytes, ..single }.times(u64::from(*tables))
    }

    /// Creates the workload with these parameters, for PostgreSQL.
    pub fn new(dataset: RowsDataset, run: RowsRun) -> Self {
        Self { used: run.part_of(&dataset), dataset, run, dialect: Dialect::default() }
    }

    /// Returns the workload in another dialect.
    pub fn on(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Whether each row has a separate block.
    fn has_row_per_block(&self) -> bool {
        self.dataset.layout == Layout::Block && self.dialect.has(Feature::Heap)
    }

    fn tables(&self) -> impl Iterator<Item = String> + use<> {
        (1..=self.dataset.tables).map(table_name)
    }

    fn index_of(&self, table: String) -> Index {
        let suffix = if self.dataset.primary_key { "pkey" } else { "asc_mykey" };
        Index { name: format!("{table}_{suffix}"), table }
    }

    fn statements(&self, table: &str) -> Vec<Statement> {
        let (read, update) =
            if self.run.index_only { (READ_INDEX_ONLY, UPDATE_INDEX_ONLY) } else { (READ, UPDATE) };
        [("read", read, self.run.reads()), ("update", update, self.run.updates())]
            .into_iter()
            .filter(|(_, _, used)| *used)
            .map(|(operation, template, _)| {
                let sql = fill(template, &[("table", table)]);
                Statement::new(&format!("{operation}_{table}"), sql, [BIGINT_OID; 2])
            })
            .collect()
    }

    /// Returns the numbers of the tables that a session uses.
    fn tables_of(&self, session: u32) -> std::ops::RangeInclusive<u32> {
        // A loop in the server uses one table.
        let own_table = self.run.table_per_session || self.run.loop_side == LoopSide::Server;
        let own = session % self.used.tables + 1;
        if own_table { own..=own } else { 1..=self.used.tables }
    }

    fn session(&self, plan: &Plan, session: u32) -> SessionPlan {
        let tables = self.tables_of(session);
        let statements =
            tables.clone().flat_map(|table| self.statements(&table_name(table))).collect();
        let (dataset, run) = (&self.used, &self.run);
        let work = match run.loop_side {
            LoopSide::Client => {
                Work::Client(Box::new(RowsGenerator::new(run, dataset, tables, plan, session)))
            }
            LoopSide::Server => {
                Work::Server(Box::new(RowsLoop::new(*tables.start(), dataset, run, plan, session)))
            }
        };
        SessionPlan { settings: self.settings(plan), statements, watched: ALL_STATEMENTS, work }
    }

    /// Returns the statements that make a table ready for index-only scans. Updates of earlier runs have cleared bits of the
    /// visibility map: without them an index-only scan fetches every row from the table.
    fn before(&self) -> Vec<String> {
        if !self.run.index_only || !self.dialect.has(Feature::Heap) {
            return Vec::new();
        }
        self.tables().map(|table| fill(SETTLE, &[("table", &table)])).collect()
    }

    /// Returns samples at even distances over the keys of the first table. Returns none if the run only
    /// reads or only updates, because then the block reads of both need not be separated.
    fn read_samples(&self) -> Vec<String> {
        const SAMPLES: u64 = 5;
        if !(self.run.reads() && self.run.updates() && self.dialect.has(Feature::Heap)) {
            return Vec::new();
        }
        let reads = self.statements(&table_name(1));
        let Some(read) = reads.first() else {
            return Vec::new();
        };
        let starts = self.used.rows.saturating_sub(self.run.batch);
        (0..SAMPLES)
            .map(|sample| {
                let first = 1 + starts / (SAMPLES - 1) * sample;
                let keys = [first, first + self.run.batch - 1].map(|key| key.to_string());
                let sql = with_literals(&read.sql, &keys);
                format!("explain (analyze, buffers, timing off, costs off, format json) {sql}")
            })
            .collect()
    }

    /// Returns a name that distinguishes the stage from the others of the run.
    fn stage_name(&self, plan: &Plan) -> String {
        let mut name = NAME.to_owned();
        let Some(planned) = plan.work.get::<RowsRun>() else {
            return name;
        };
        if !planned.batches.is_empty() {
            name = format!("{name}, batch {}", self.run.batch);
        }
        if !planned.loop_sides.is_empty() {
            name = format!("{name}, {} loop", self.run.loop_side.as_str());
        }
        name
    }

    fn settings(&self, plan: &Plan) -> Vec<String> {
        let mut settings = session_settings(&SESSION_SETTINGS, plan.protocol, false);
        // An index-only scan would read no rows of the table.
        let index_only = if self.run.index_only { "on" } else { "off" };
        settings.push(format!("set enable_indexonlyscan = {index_only}"));
        if self.run.loop_side == LoopSide::Server {
            // The loop reports progress as notices, and runs as a single statement.
            settings.push("set client_min_messages = notice".to_owned());
            settings.push("set statement_timeout = 0".to_owned());
            // The clock of the server and the times of the reports are numbers with a fraction.
            settings.push("set extra_float_digits = 3".to_owned());
            // ybio_loop calls ybio_report without a schema.
            settings.push("set search_path = pg_catalog, riops, pg_temp".to_owned());
        }
        if let Some(staleness) = self.run.follower_reads_ms {
            settings.push("set default_transaction_read_only = on".to_owned());
            settings.push("set yb_read_from_followers = on".to_owned());
            settings.push(format!("set yb_follower_read_staleness_ms = {staleness}"));
        }
        if self.run.non_transactional {
            settings.push(NON_TRANSACTIONAL.to_owned());
        }
        settings
    }

    /// Returns the statements that create the empty table.
    fn create_sql(&self, table: &str) -> Vec<String> {
        let filler = self.dataset.filler.to_string();
        let template = if self.has_row_per_block() { CREATE_TABLE_BLOCK } else { CREATE_TABLE };
        let by_key = split_at_keys(self.dataset.rows, self.dataset.index_tablets);
        let (key, split) = match (self.dataset.primary_key, self.dataset.tablets) {
            (true, _) => (",\n  primary key (mykey asc)", by_key.clone()),
            (false, 0) => ("", String::new()),
            (false, tablets) => ("", format!(" split into {tablets} tablets")),
        };
        let values = [("table", table), ("filler", &filler), ("key", key), ("split", &split)];
        let mut sql = vec![fill(self.dialect.sql(template), &values)];
        if self.dialect.has(Feature::KeysBeforeRows) && !self.dataset.primary_key {
            sql.push(fill(self.dialect.sql(CREATE_INDEX), &[("table", table), ("split", &by_key)]));
        }
        sql
    }

    /// Returns the statements to execute after the load.
    fn finish_sql(&self, table: &str) -> Vec<String> {
        let values = [("table", table)];
        let key = if self.dataset.primary_key { CREATE_PRIMARY_KEY } else { CREATE_INDEX };
        let key = (!self.dialect.has(Feature::KeysBeforeRows)).then_some(key);
        key.into_iter().chain([SETTLE]).map(|sql| fill(self.dialect.sql(sql), &values)).collect()
    }
}

/// Returns the clause that splits the keys 1 to `rows` into `tablets` tablets of equal size.
fn split_at_keys(rows: u64, tablets: u32) -> String {
    if tablets < 2 {
        return String::new();
    }
    let border = |part: u32| {
        let key = 1 + u128::from(part) * u128::from(rows) / u128::from(tablets);
        format!("({key})")
    };
    let borders: Vec<_> = (1..tablets).map(border).collect();
    format!(" split at values ({})", borders.join(", "))
}

impl Build for RowsRun {
    fn build(&self, target: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        let (dataset, used): (&RowsDataset, &RowsDataset) =
            (typed(target.dataset)?, typed(target.used)?);
        self.validate_for(used)?;
        let workload = Rows::new(dataset.clone(), self.clone()).on(target.dialect);
        Ok(Box::new(Rows { used: self.part_of(used), ..workload }))
    }
}

impl Describe for RowsDataset {
    fn describe(&self) -> Option<Box<dyn Workload>> {
        Some(Box::new(Rows::new(self.clone(), RowsRun::default())))
    }
}

impl Workload for Rows {
    fn table_names(&self) -> Vec<String> {
        self.tables().map(|table| format!("riops.{table}")).collect()
    }

    fn used_table_names(&self) -> Vec<String> {
        (1..=self.used.tables).map(|table| format!("riops.{}", table_name(table))).collect()
    }

    fn unsupported(&self, dialect: Dialect) -> Option<&'static str> {
        let non_transactional = self.dataset.non_transactional || self.run.non_transactional;
        dialect.lacked_option(&[
            ("--tablets", self.dataset.tablets > 0, Feature::SplitTables),
            ("--index-tablets", self.dataset.index_tablets > 0, Feature::SplitTables),
            ("--non-transactional-writes", non_transactional, Feature::NonTransactionalWrites),
            ("--follower-reads", self.run.follower_reads_ms.is_some(), Feature::FollowerReads),
        ])
    }

    fn key_column(&self) -> Option<KeyColumn> {
        Some(KeyColumn { name: "mykey", first: 1, keys: self.dataset.rows })
    }

    fn dataset(&self, dialect: Dialect) -> Dataset {
        let translated = self.clone().on(dialect);
        let parameters = serde_json::to_value(&self.dataset).unwrap_or_default();
        let tables = (1..=self.dataset.tables)
            .map(|table| {
                let name = table_name(table);
                let zeros = translated.has_row_per_block().then(|| Zero {
                    what: format!("rows of riops.{name} that share a block"),
                    sql: fill(SHARED_BLOCKS, &[("table", &name)]),
                });
                Table {
                    create: translated.create_sql(&name),
                    jobs: self.dataset.rows.div_ceil(self.dataset.batch),
                    job: load::jobs(&self.dataset, table, dialect),
                    frozen_copy: None,
                    finish: translated.finish_sql(&name),
                    zeros: zeros.into_iter().collect(),
                    rows: self.dataset.rows,
                    name: format!("riops.{name}"),
                }
            })
            .collect();
        let settings = self.dataset.non_transactional.then(|| NON_TRANSACTIONAL.to_owned());
        Dataset {
            parameters,
            probes: load::probes(&self.dataset),
            settings: settings.into_iter().collect(),
            tables,
            finish: Vec::new(),
            footprint: self.footprint(),
        }
    }

    fn routines(&self) -> Option<Routines> {
        (self.run.loop_side == LoopSide::Server).then(server_loop::routines)
    }

    fn accesses(&self) -> Vec<Access> {
        let access = |statement: Statement, index: Index| {
            let update = statement.name.starts_with("update");
            let batch = if update { self.run.update_batch() } else { self.run.batch };
            let expected = match (update, self.run.index_only) {
                (true, _) => AccessPath::UpdateByIndex(index),
                // Concurrent updates continually clear the visibility map.
                (false, true) => {
                    AccessPath::IndexOnlyScan { index, heap_fetches_allowed: self.run.updates() }
                }
                (false, false) => AccessPath::IndexScan(index),
            };
            let arguments = vec!["1".to_owned(), batch.to_string()];
            Access { rows: batch, ..Access::new(statement, arguments, expected, self.dialect) }
        };
        let accesses = |table: String| {
            let statements = self.statements(&table).into_iter();
            let index = self.index_of(table);
            statements.map(move |statement| access(statement, index.clone()))
        };
        (1..=self.used.tables).map(table_name).flat_map(accesses).collect()
    }

    fn stage(&self, plan: &Plan) -> Stage {
        Stage {
            name: self.stage_name(plan),
            before: self.before(),
            read_samples: self.read_samples(),
            operations: vec!["read".into(), "update".into()],
            changes: vec![false, true],
            ..Stage::with_sessions(plan, |session| self.session(plan, session))
        }
    }

    fn contents_sql(&self) -> Vec<String> {
        self.tables().map(|table| fill(CONTENTS, &[("table", &table)])).collect()
    }

    fn checks(&self, contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
        let rows = i128::from(self.dataset.rows);
        let expected_keys = [
            ("rows", rows),
            ("smallest key", 1),
            ("largest key", rows),
            ("sum of keys", rows * (rows + 1) / 2),
            ("sum of squares of keys", squares(rows)),
        ];
        let mut checks = Vec::new();
        for (table, numbers) in self.tables().zip(contents) {
            for ((what, expected), actual) in expected_keys.iter().zip(numbers) {
                checks.push(crate::workload::check::exact(
                    format!("{what} of riops.{table}"),
                    *expected,
                    *actual,
                ));
            }
        }
        checks.extend(self.increments(expected_keys.len(), contents, baseline, ledger));
        checks
    }

    fn writers_sql(&self, mark: &Mark) -> Option<String> {
        let (first, last) = (mark.first.to_string(), mark.last.to_string());
        let values = [("table", &*table_name(mark.table)), ("first", &first), ("last", &last)];
        self.dialect.has(Feature::Heap).then(|| fill(WRITERS, &values))
    }
}

impl Rows {
    /// Compares the increments of each table, from the number in this `column` of the contents.
    fn increments(
        &self,
        column: usize,
        contents: &Integers,
        baseline: &Integers,
        ledger: &Ledger,
    ) -> Vec<Check> {
        let sum = |all: &Integers, table: usize| -> i128 {
            all.get(table).and_then(|numbers| numbers.get(column)).copied().unwrap_or(0)
        };
        let tables = || (0..).zip(1..=self.dataset.tables);
        let increase = |table: usize| sum(contents, table) - sum(baseline, table);
        let by_table = |(position, table): (usize, u32)| {
            let (done, unknown) = ledger.of_table(table, self.dataset.tables)?;
            let (done, more) = (i128::from(done.added), i128::from(unknown.added));
            let bounds = Bounds::new(done, 0, more, ledger.open_runs);
            let name = format!("increments of scratch in riops.{}", table_name(table));
            Some(crate::workload::check::between(name, bounds, increase(position)))
        };
        let checks: Option<Vec<Check>> = tables().map(by_table).collect();
        // Earlier versions of riops stored only the number of all increments.
        checks.unwrap_or_else(|| {
            let all = tables().map(|(position, _)| increase(position)).sum();
            let name = "increments of scratch in all tables".to_owned();
            vec![crate::workload::check::between(name, ledger.bounds(), all)]
        })
    }
}

/// Returns the sum of (k mod p)² for k from 1 to `rows`, with the prime p of `contents.sql`.
fn squares(rows: i128) -> i128 {
    const PRIME: i128 = 1_000_003;
    let up_to = |n: i128| n * (n + 1) * (2 * n + 1) / 6;
    rows / PRIME * up_to(PRIME - 1) + up_to(rows % PRIME)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
