//! `point`: selects or updates one row at a time by its primary key, in the table of `load`.

mod generator;

use super::access::{Access, AccessPath};
use super::check::{Integers, Ledger};
use super::keys::{Purpose, RangePicker, stream};
use super::load::LoadTable;
use super::tables::Dataset;
use super::texts::Texts;
use super::values::{INT_OID, TEXT_OID};
use super::{
    ALL_STATEMENTS, Build, BuildFor, KeyColumn, NO_PARALLEL_WORKERS, SessionPlan, Stage, Statement,
    Work, Workload, fill, session_settings,
};
use crate::plan::{DatasetPlan, LoadDataset, Plan, PlanError, PointRun, Protocol};
use crate::record::Check;
use crate::server::Dialect;
use generator::PointGenerator;

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

    fn statements(&self) -> Vec<Statement> {
        let table = [("table", self.table.name())];
        let select = Statement::new("select", fill(SELECT, &table), [INT_OID]);
        let types = [INT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID];
        let update = Statement::new("update", fill(UPDATE, &table), types);
        [(select, self.run.selects()), (update, self.run.updates())]
            .into_iter()
            .filter_map(|(statement, used)| used.then_some(statement))
            .collect()
    }

    fn session(&self, plan: &Plan, session: u32) -> SessionPlan {
        let (number, non_transactional) = (u64::from(session), self.run.non_transactional);
        SessionPlan {
            settings: session_settings(&SESSION_SETTINGS, plan.protocol, non_transactional),
            statements: self.statements(),
            watched: ALL_STATEMENTS,
            work: Work::Client(Box::new(PointGenerator::new(
                self.run.op,
                RangePicker::new(self.run.distribution, self.rows_used, 1, plan.seed),
                stream(plan.seed, Purpose::Ranges, number),
                Texts::new(stream_seed(plan.seed, number), self.field_length()),
                &self.lengths(),
            ))),
        }
    }

    /// Returns every possible length of a text during the updates, in characters.
    fn lengths(&self) -> Vec<u32> {
        let mut lengths = self.table.dataset.lengths();
        lengths.push(self.field_length());
        lengths.sort_unstable();
        lengths.dedup();
        lengths
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
    fn build(&self, found: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        let mut dataset = found.dataset::<LoadDataset>()?.clone();
        note_length(&mut dataset, self);
        let rows_used = found.used::<LoadDataset>()?.rows;
        let workload = PointAccess::new(dataset, self.clone()).on(found.dialect);
        Ok(Box::new(PointAccess { rows_used, ..workload }))
    }
}

impl Workload for PointAccess {
    fn table_names(&self) -> Vec<String> {
        vec![self.table.full_name()]
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

    fn dataset_after_run(&self, found: &DatasetPlan) -> Option<DatasetPlan> {
        let mut dataset = found.get::<LoadDataset>()?.clone();
        note_length(&mut dataset, &self.run).then(|| dataset.into())
    }

    fn accesses(&self) -> Vec<Access> {
        let access = |statement: Statement| {
            let is_update = statement.name == "update";
            let expected =
                if is_update { AccessPath::UpdateByIndex } else { AccessPath::IndexScan };
            let mut arguments = vec!["0".to_owned()];
            arguments.extend(statement.parameter_types.iter().skip(1).map(|_| "''".to_owned()));
            Access::new(statement, arguments, expected(self.table.index()), self.table.dialect)
        };
        self.statements().into_iter().map(access).collect()
    }

    fn stage(&self, plan: &Plan) -> Stage {
        Stage {
            name: NAME.to_owned(),
            row_size_sql: Some(self.table.row_size_sql()),
            operations: vec!["select".into(), "update".into()],
            changes: vec![false, true],
            explain_by_name: plan.protocol == Protocol::Prepared,
            sessions: (0..plan.sessions).map(|number| self.session(plan, number)).collect(),
            ..Stage::default()
        }
    }

    fn contents_sql(&self) -> Vec<String> {
        self.table.contents_sql()
    }

    fn checks(&self, contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
        self.table.checks(contents, baseline, ledger)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
