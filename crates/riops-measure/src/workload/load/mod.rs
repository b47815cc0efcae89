//! `load`: parallel loads into one table, after ysql-bench.
//!
//! The sessions load the keys 0…rows−1 batch by batch; each batch is one statement and one commit. [`Method`]
//! decides how the rows are sent.

mod checksum;
mod generator;
mod rows;
mod table;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::access::{Access, AccessPath};
use super::check::{Integers, Ledger};
use super::tables::{Dataset, Routines};
use super::values::{BIGINT_OID, INT_ARRAY_OID, INT_OID, TEXT_ARRAY_OID, TEXT_OID};
use super::{
    ALL_STATEMENTS, Describe, KeyColumn, NO_PARALLEL_WORKERS, SessionPlan, Stage, Statement, Work,
    Workload, fill, session_settings, statements,
};
use crate::server::Dialect;
use generator::LoadGenerator;
pub(super) use generator::rows_in_tag;
use riops_model::plan::{LoadDataset, LoadRun, Method, Plan};
use riops_model::record::Check;
use riops_model::units::sql::literal;
pub(super) use rows::TEXTS;
use table::COPY_BINARY;
pub(super) use table::{COLUMNS, ROW_SIZE};
pub use table::{FILE_RIGHTS, LoadTable};

/// Name of the workload and of its dataset.
pub const NAME: &str = "load";

const COPY_TEXT: &str = include_str!("../../../sql/load/copy_text.sql");
const COPY_FILE: &str = include_str!("../../../sql/load/copy_file.sql");
const UNNEST: &str = include_str!("../../../sql/load/unnest.sql");
const CALL: &str = include_str!("../../../sql/load/call.sql");
const LOAD_BATCH: &str = include_str!("../../../sql/load/load_batch.sql");

/// Hexadecimal digits of an MD5 hash.
const HASH_DIGITS: u32 = 32;

/// The workload with all its parameters.
#[derive(Debug, Clone)]
pub struct Load {
    /// The table.
    pub table: LoadTable,
    /// Parameters of the run.
    pub run: LoadRun,
}

/// Returns the ids in the file of a session. The row counts of the files differ by at most one.
fn file_ids(rows: u64, sessions: u32, session: u32) -> Range<u64> {
    let border = |session: u32| {
        let share = u128::from(rows) * u128::from(session) / u128::from(sessions.max(1));
        u64::try_from(share).unwrap_or(rows)
    };
    border(session)..border(session + 1)
}

/// Returns the distinct batch sizes of a load: the full batch, and the remainder.
fn batch_sizes(rows: u64, batch: u64) -> Vec<u64> {
    let full = if rows >= batch { batch } else { 0 };
    [full, rows % batch].into_iter().filter(|size| *size > 0).collect()
}

/// Returns the name of a file by its ordinal, from 1, as in ysql-bench.
pub fn file_name(sessions: u32, rows: u64, field_length: u32, ordinal: u32) -> String {
    format!("ysql_bench-t{sessions}-r{rows}-f{field_length}--nr{ordinal}.csv")
}

/// Writes one of the CSV files by its ordinal, from 1; there is one file per session.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write_csv(
    dataset: &LoadDataset,
    sessions: u32,
    ordinal: u32,
    writer: &mut impl Write,
) -> std::io::Result<()> {
    let table = LoadTable { dataset: dataset.clone(), dialect: Dialect::default() };
    let texts = table.texts();
    let ids = file_ids(dataset.rows, sessions, ordinal - 1);
    let mut next = ids.start;
    let mut piece = Vec::new();
    while next < ids.end {
        piece.clear();
        next = rows::text_piece(texts, ids.end, next, b',', &mut piece);
        writer.write_all(&piece)?;
    }
    writer.flush()
}

impl Load {
    /// Creates the workload with these parameters, for PostgreSQL.
    pub fn new(dataset: LoadDataset, run: LoadRun) -> Self {
        Self { table: LoadTable { dataset, dialect: Dialect::default() }, run }
    }

    /// Returns the workload in another dialect.
    pub fn on(mut self, dialect: Dialect) -> Self {
        self.table.dialect = dialect;
        self
    }

    /// Returns the path of the file that a session, numbered from 0, copies.
    fn file(&self, sessions: u32, session: u32) -> String {
        let LoadDataset { rows, field_length, .. } = self.table.dataset;
        let name = file_name(sessions, rows, field_length, session + 1);
        format!("{}/{name}", self.run.dir.trim_end_matches('/'))
    }

    /// Returns the paths of the files that the sessions copy.
    pub fn files(&self, sessions: u32) -> Vec<String> {
        match self.run.method {
            Method::CopyFile => (0..sessions).map(|session| self.file(sessions, session)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the number of rows of a full batch.
    fn batch(&self) -> u64 {
        self.run.batch_size.min(self.table.dataset.rows)
    }

    /// Returns the statements of a session.
    fn statements(&self, sessions: u32, session: u32) -> Vec<Statement> {
        match self.run.method {
            Method::Insert => batch_sizes(self.table.dataset.rows, self.batch())
                .into_iter()
                .map(|rows| insert(self.table.name(), rows))
                .collect(),
            Method::Unnest => {
                let mut types = [TEXT_ARRAY_OID; COLUMNS];
                types[0] = INT_ARRAY_OID;
                vec![Statement::new("unnest", self.table.sql(UNNEST), types)]
            }
            Method::Procedure => {
                vec![Statement::new("call", fill(CALL, &[]), [BIGINT_OID; 2])]
            }
            Method::CopyFile => {
                let file = literal(&self.file(sessions, session));
                let template = self.table.dialect.sql(COPY_FILE);
                let sql = fill(template, &[("table", self.table.name()), ("file", &file)]);
                vec![Statement::new("copy", sql, [])]
            }
            Method::Copy | Method::CopyBinary => Vec::new(),
        }
    }

    fn copy_sql(&self) -> String {
        let is_binary = self.run.method == Method::CopyBinary;
        self.table.sql(if is_binary { COPY_BINARY } else { COPY_TEXT })
    }

    /// Returns the rows of this client: all, unless it is one of several.
    fn own_rows(&self, plan: &Plan) -> Range<u64> {
        let rows = self.table.dataset.rows;
        plan.share.map_or(0..rows, |share| share.rows_of(rows, self.batch()))
    }

    fn session(&self, plan: &Plan, session: u32, first: &Arc<AtomicU64>) -> SessionPlan {
        let rows = self.table.dataset.rows;
        let non_transactional = self.run.non_transactional;
        let (first, end, batch) = if self.run.method == Method::CopyFile {
            // The rows of its file, in one batch.
            let ids = file_ids(rows, plan.sessions, session);
            (Arc::new(AtomicU64::new(ids.start)), ids.end, ids.end - ids.start)
        } else {
            (Arc::clone(first), self.own_rows(plan).end, self.batch())
        };
        SessionPlan {
            settings: session_settings(&[NO_PARALLEL_WORKERS], plan.protocol, non_transactional),
            statements: self.statements(plan.sessions, session),
            watched: ALL_STATEMENTS,
            work: Work::Client(Box::new(LoadGenerator {
                method: self.run.method,
                texts: self.table.texts(),
                first,
                end,
                batch,
                sizes: batch_sizes(rows, self.batch()),
                copy_sql: self.copy_sql(),
            })),
        }
    }
}

/// Returns an INSERT of `rows` rows.
fn insert(table: &str, rows: u64) -> Statement {
    let texts = ["f1", "f2", "f3", "f4"].map(|name| (name, TEXT_OID));
    let columns = [&[("id", INT_OID)], texts.as_slice()].concat();
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let (sql, types) = statements::insert(&format!("riops.{table}"), &columns, rows);
    Statement::new(&format!("insert_{rows}"), sql, types)
}

impl Describe for LoadDataset {
    fn describe(&self) -> Option<Box<dyn Workload>> {
        Some(Box::new(Load::new(self.clone(), LoadRun::default())))
    }
}

impl Workload for Load {
    fn table_names(&self) -> Vec<String> {
        self.table.full_names()
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

    fn routines(&self) -> Option<Routines> {
        let length = self.table.dataset.field_length;
        // Each text needs its own random number. In a text of several hashes, `id` makes the subquery
        // correlated, so it is evaluated for each row; `part` makes the aggregate belong to the subquery.
        let text = if length <= HASH_DIGITS {
            format!("left(md5(random()::text), {length})")
        } else {
            let hashes = length.div_ceil(HASH_DIGITS);
            format!(
                "(select left(string_agg(md5(random()::text || id || part), ''), {length}) from generate_series(1, {hashes}) as part)"
            )
        };
        (self.run.method == Method::Procedure).then(|| Routines {
            names: &["load_batch"],
            sql: fill(LOAD_BATCH, &[("table", self.table.name()), ("text", &text)]),
        })
    }

    fn accesses(&self) -> Vec<Access> {
        let table = self.table.name();
        let access = |statement, arguments| {
            let expected = AccessPath::Insert { table: table.to_owned() };
            Access { rows: 0, ..Access::new(statement, arguments, expected, self.table.dialect) }
        };
        match self.run.method {
            // Only the largest batch: a smaller one has the same plan.
            Method::Insert => {
                let rows = self.batch();
                let columns = 1 + TEXTS;
                let argument =
                    |position| if position % columns == 0 { "0" } else { "''" }.to_owned();
                let arguments = (0..rows * columns).map(argument).collect();
                vec![access(insert(table, rows), arguments)]
            }
            Method::Unnest => {
                let mut arguments = vec!["array[0]::int[]".to_owned()];
                arguments.extend((0..TEXTS).map(|_| "array['']::text[]".to_owned()));
                let statement = self.statements(1, 0);
                statement.into_iter().map(|unnest| access(unnest, arguments.clone())).collect()
            }
            Method::Copy | Method::CopyBinary | Method::CopyFile | Method::Procedure => Vec::new(),
        }
    }

    fn stage(&self, plan: &Plan) -> Stage {
        let first = Arc::new(AtomicU64::new(self.own_rows(plan).start));
        Stage {
            name: format!("{NAME}, {}", self.run.method.as_str()),
            row_size_sql: Some(self.table.sql(ROW_SIZE)),
            operations: vec![self.run.method.as_str().into()],
            changes: vec![true],
            exact: true,
            ..Stage::with_sessions(plan, |session| self.session(plan, session, &first))
        }
    }

    fn contents_sql(&self) -> Vec<String> {
        self.table.contents_sql()
    }

    fn checks(&self, contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
        self.table.checks(contents, baseline, ledger)
    }

    fn ledger_sql(&self, ledger: &Ledger) -> Vec<String> {
        self.table.ledger_sql(ledger)
    }

    fn checks_of_incomplete_load(
        &self,
        contents: &Integers,
        ledger: &Ledger,
    ) -> Option<Vec<Check>> {
        Some(self.table.checks_of_incomplete_load(contents, ledger))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
