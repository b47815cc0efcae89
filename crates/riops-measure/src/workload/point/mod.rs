//! `point`: selects or updates one row at a time by its primary key, in the table of `load` or in several with its rows.

use std::collections::BTreeSet;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::access::{Access, AccessPath};
use super::build::typed;
use super::check::{Integers, Ledger};
use super::keys::{Purpose, RangePicker, stream};
use super::load::{COLUMNS, LoadTable, ROW_SIZE, TEXTS, rows_in_tag};
use super::tables::Dataset;
use super::texts::Texts;
use super::transaction::{Reply, Transaction, TransactionOutcome};
use super::values::{INT_OID, TEXT_OID, int_of};
use super::{
    Build, BuildFor, Generator, KeyColumn, NO_PARALLEL_WORKERS, SessionPlan, Stage, Statement,
    Work, Workload, session_settings,
};
use crate::server::Dialect;
use riops_model::plan::{DatasetPlan, LoadDataset, Plan, PlanError, PointOperations, PointRun};
use riops_model::record::Check;

/// The workload's name.
pub const NAME: &str = "point";

const SELECT: &str = include_str!("../../../sql/point/select.sql");
const UPDATE: &str = include_str!("../../../sql/point/update.sql");

/// Disables sequential scans: the planner would read a small table as a whole instead of through the key.
const SESSION_SETTINGS: [&str; 4] = [
    "set enable_seqscan = off",
    "set enable_bitmapscan = off",
    NO_PARALLEL_WORKERS,
    "set jit = off",
];

/// The workload with all its parameters.
#[derive(Debug, Clone)]
struct PointAccess {
    table: LoadTable,
    /// Number of rows that the sessions use, the first ones.
    rows_used: u64,
    run: PointRun,
}

impl PointAccess {
    /// Creates the workload with these parameters, for PostgreSQL.
    fn new(dataset: LoadDataset, run: PointRun) -> Self {
        let rows_used = dataset.rows;
        Self { table: LoadTable { dataset, dialect: Dialect::default() }, rows_used, run }
    }

    /// Returns the workload in another dialect.
    fn on(mut self, dialect: Dialect) -> Self {
        self.table.dialect = dialect;
        self
    }

    /// Returns the length of the texts that an update writes, in characters.
    fn field_length(&self) -> u32 {
        self.run.field_length.unwrap_or(self.table.dataset.field_length)
    }

    /// Returns the number of tables that the sessions use, the first ones.
    fn tables_used(&self) -> u32 {
        self.table.dataset.table_of_key(self.rows_used.saturating_sub(1)) + 1
    }

    /// Returns the statements on a table.
    fn statements_of(&self, table: u32) -> Vec<Statement> {
        let statement = |name: &str, template, types: &[u32]| {
            let name = match self.table.dataset.tables {
                1 => name.to_owned(),
                _ => format!("{name}_{}", table + 1),
            };
            Statement::new(&name, self.table.sql_of(table, template), types)
        };
        let types = [INT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID];
        let select = self.run.selects().then(|| statement("select", SELECT, &types[..1]));
        let update = self.run.updates().then(|| statement("update", UPDATE, &types));
        select.into_iter().chain(update).collect()
    }

    fn session(&self, plan: &Plan, session: u32) -> SessionPlan {
        let (index, non_transactional) = (u64::from(session), self.run.non_transactional);
        let tables = self.tables_used();
        let per_table = usize::from(self.run.selects()) + usize::from(self.run.updates());
        // Each session checks the plans on one table only: with many tables, all of them would be a noticeable load.
        let watched = (session % tables) as usize * per_table;
        SessionPlan {
            settings: session_settings(&SESSION_SETTINGS, plan.protocol, non_transactional),
            statements: (0..tables).flat_map(|table| self.statements_of(table)).collect(),
            watched: watched..watched + per_table,
            work: Work::Client(Box::new(PointGenerator {
                op: self.run.op,
                dataset: self.table.dataset.clone(),
                per_table,
                keys: RangePicker::new(self.run.distribution, self.rows_used, 1, plan.seed),
                rng: stream(plan.seed, Purpose::Ranges, index),
                texts: Texts::new(stream_seed(plan.seed, index), self.field_length()),
                lengths: self.lengths(),
                statements: 0,
                updates: 0,
            })),
        }
    }

    /// Returns every possible length of a text during the updates, in characters.
    fn lengths(&self) -> Vec<usize> {
        let lengths = self.table.dataset.lengths().into_iter().chain([self.field_length()]);
        let lengths: BTreeSet<_> = lengths.map(|length| length as usize).collect();
        lengths.into_iter().collect()
    }
}

/// Returns the seed for the texts that a session writes.
fn stream_seed(seed: u64, session: u64) -> u64 {
    use rand::Rng as _;
    stream(seed, Purpose::Texts, session).next_u64()
}

/// Adds the text length of the updates to the lengths of the dataset. Returns whether it is a new one.
fn note_length(dataset: &mut LoadDataset, run: &PointRun) -> bool {
    let new =
        run.field_length.filter(|length| run.updates() && !dataset.lengths().contains(length));
    dataset.updated_lengths.extend(new);
    new.is_some()
}

impl Build for PointRun {
    fn build(&self, target: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        let mut dataset = typed::<LoadDataset>(target.dataset)?.clone();
        note_length(&mut dataset, self);
        let rows_used = typed::<LoadDataset>(target.used)?.rows;
        let workload = PointAccess::new(dataset, self.clone()).on(target.dialect);
        Ok(Box::new(PointAccess { rows_used, ..workload }))
    }
}

impl Workload for PointAccess {
    fn table_names(&self) -> Vec<String> {
        self.table.full_names()
    }

    fn used_table_names(&self) -> Vec<String> {
        let mut names = self.table.full_names();
        names.truncate(self.tables_used() as usize);
        names
    }

    fn unsupported(&self, dialect: Dialect) -> Option<&'static str> {
        self.table.unsupported(dialect, self.run.non_transactional)
    }

    fn dataset(&self, dialect: Dialect) -> Dataset {
        LoadTable { dialect, ..self.table.clone() }.filled()
    }

    fn key_column(&self) -> Option<KeyColumn> {
        Some(self.table.key_column())
    }

    fn dataset_after_run(&self, existing: &DatasetPlan) -> Option<DatasetPlan> {
        let mut dataset = existing.get::<LoadDataset>()?.clone();
        note_length(&mut dataset, &self.run).then(|| dataset.into())
    }

    fn accesses(&self) -> Vec<Access> {
        let access = |table: u32, statement: Statement| {
            let is_update = statement.parameter_types.len() == COLUMNS;
            let expected =
                if is_update { AccessPath::UpdateByIndex } else { AccessPath::IndexScan };
            let mut arguments = vec![self.table.dataset.keys_of_table(table).start.to_string()];
            arguments.extend(statement.parameter_types.iter().skip(1).map(|_| "''".to_owned()));
            Access::new(statement, arguments, expected(self.table.index(table)), self.table.dialect)
        };
        let of_table = |table| {
            self.statements_of(table).into_iter().map(move |statement| access(table, statement))
        };
        (0..self.tables_used()).flat_map(of_table).collect()
    }

    fn stage(&self, plan: &Plan) -> Stage {
        Stage {
            name: NAME.to_owned(),
            row_size_sql: Some(self.table.sql(ROW_SIZE)),
            operations: vec!["select".into(), "update".into()],
            changes: vec![false, true],
            ..Stage::with_sessions(plan, |session| self.session(plan, session))
        }
    }

    fn contents_sql(&self) -> Vec<String> {
        self.table.contents_sql()
    }

    fn checks(&self, contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
        self.table.checks(contents, baseline, ledger)
    }
}

// Positions in the operations of the stage.
const OPERATION_SELECT: usize = 0;
const OPERATION_UPDATE: usize = 1;

/// The stream of transactions of one session.
#[derive(Debug)]
struct PointGenerator {
    op: PointOperations,
    dataset: LoadDataset,
    /// Number of statements on each table.
    per_table: usize,
    keys: RangePicker,
    rng: Xoshiro256PlusPlus,
    /// Texts that updates write, new ones each time.
    texts: Texts,
    /// Allowed lengths of a text, in ascending order.
    lengths: Vec<usize>,
    statements: u64,
    updates: u64,
}

impl PointGenerator {
    /// Returns whether the next statement is an update. The share is deterministic, not random: after any
    /// number of statements the number of updates deviates by less than one.
    fn is_update_next(&self) -> bool {
        let (updates, all) = (u128::from(self.updates), u128::from(self.statements));
        100 * (2 * updates + 1) < 2 * u128::from(self.op.update_percent) * (all + 1)
    }
}

impl Generator for PointGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        let update = self.is_update_next();
        // The picker returns numbers from 1, the keys start at 0.
        let key = self.keys.pick(&mut self.rng) - 1;
        let table = self.dataset.table_of_key(key) as usize;
        let (id, first) = (int_of(key), table * self.per_table);
        tx.begin(if update { OPERATION_UPDATE } else { OPERATION_SELECT }, 1);
        if update {
            // The update is the last statement on its table.
            let statement = first + self.per_table - 1;
            let (texts, ordinal) = (self.texts, self.updates);
            tx.execute_with(statement, COLUMNS, |values| {
                values.int(id);
                for column in 0..TEXTS {
                    values.text(texts.length(), |text| texts.write(ordinal, column, text));
                }
            });
            self.updates += 1;
        } else {
            tx.execute_with(first, 1, |values| values.int(id));
        }
        tx.end_step();
        self.statements += 1;
        true
    }

    fn reply(&mut self, _: &Transaction, reply: &Reply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += 1;
        let mut columns = 0;
        for text in reply.texts() {
            columns += 1;
            // Letters and digits are one byte each.
            outcome.wrong |= text.is_none_or(|text| !self.lengths.contains(&text.len()));
        }
        outcome.wrong |= columns != TEXTS;
    }

    fn complete(&mut self, tx: &Transaction, tag: &str, outcome: &mut TransactionOutcome) {
        if tx.operation() == OPERATION_UPDATE {
            outcome.rows += rows_in_tag(tag);
        }
        // Every key exists once: any other number means a lost or duplicated row.
        outcome.wrong |= outcome.rows != 1;
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
