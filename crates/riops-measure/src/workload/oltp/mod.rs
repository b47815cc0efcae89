//! `oltp`: the transactions of sysbench and of its YugabyteDB variant, on the tables of sysbench.

mod bulk;
mod generator;
mod statements;
mod table;
mod texts;

use std::ops::RangeInclusive;

use riops_wire::sqlstate::SqlState;

use super::access::Access;
use super::build::typed;
use super::check::{Integers, Ledger};
use super::tables::Dataset;
use super::unknown::Mark;
use super::values::{BIGINT_OID, BPCHAR_OID};
use super::{
    Answers, Build, BuildFor, Describe, KeyColumn, NO_PARALLEL_WORKERS, Questions, SessionPlan,
    Stage, Statement, Work, Workload, fill, session_settings,
};
use crate::server::{Dialect, Feature};
use generator::OltpGenerator;
use riops_model::plan::{OltpDataset, OltpRun, OltpTest, Plan, PlanError};
use riops_model::record::Check;
use statements::Kind;
pub use statements::Oltp;

/// Name of the workload.
pub const NAME: &str = "oltp";

/// Query for the sysbench tables in a schema: the name, whether `id` is the primary key, whether `k` has an index, whether the
/// server generates ids, how many of the four columns exist, the comment, and whether the key is range-sharded.
pub const FOUND: &str = include_str!("../../../sql/oltp/found.sql");
/// Query for the last id of a table before the first gap, counted from 1.
pub const WHOLE_UNTIL: &str = include_str!("../../../sql/oltp/whole_until.sql");
/// Query for the lowest id of a table if it is below 0, otherwise 0.
const LOWEST_ID: &str = include_str!("../../../sql/oltp/lowest_id.sql");
const WRITERS: &str = include_str!("../../../sql/oltp/writers.sql");

/// Two sessions may replace the same row concurrently, or insert the same id. As in sysbench, the transaction that fails
/// is retried.
const UNIQUE_VIOLATION: &str = "23505";

impl Oltp {
    fn kinds(&self) -> Vec<Kind> {
        statements::kinds(&statements::sequence(&self.run, &self.used))
    }

    /// Returns the statements of a session: BEGIN and COMMIT for explicit transactions, then the statements on
    /// these tables, numbered from 1.
    fn statements(&self, tables: RangeInclusive<u32>) -> Vec<Statement> {
        let mut all = Vec::new();
        if self.run.is_explicit() {
            all.extend(["begin", "commit"].map(|word| Statement::new(word, word.to_owned(), [])));
        }
        let kinds = self.kinds();
        for table in tables {
            all.extend(kinds.iter().map(|kind| self.statement(table, *kind)));
        }
        all
    }

    fn settings(&self, plan: &Plan) -> Vec<String> {
        // The planner would read a small table as a whole instead of through the key.
        let mut settings = match self.run.test {
            OltpTest::SequentialScan => Vec::new(),
            _ => vec!["set enable_seqscan = off"],
        };
        settings.extend(["set jit = off", NO_PARALLEL_WORKERS]);
        // Only random-ranges combines its ranges with a bitmap, and its plan depends on the parameters.
        if self.run.test == OltpTest::RandomRanges {
            return settings.into_iter().map(str::to_owned).collect();
        }
        settings.push("set enable_bitmapscan = off");
        session_settings(&settings, plan.protocol, false)
    }

    fn session(&self, plan: &Plan, session: u32) -> SessionPlan {
        let generator = OltpGenerator::new(self, plan, session);
        let OltpGenerator { kinds, before, bulk, .. } = &generator;
        let tables = bulk.map_or(1..=self.used.tables, |ids| ids.table + 1..=ids.table + 1);
        // Each session checks the plans on one table only: checking every table in every session would be a
        // noticeable load.
        let first = before + (session as usize % tables.clone().count()) * kinds.len();
        SessionPlan {
            settings: self.settings(plan),
            statements: self.statements(tables),
            watched: first..first + kinds.len(),
            work: Work::Client(Box::new(generator)),
        }
    }
}

impl Build for OltpRun {
    fn build(&self, target: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        if self.test == OltpTest::SelectOne {
            return Ok(Box::new(
                Oltp::new(OltpDataset::default(), self.clone()).on(target.dialect),
            ));
        }
        let (dataset, used): (&OltpDataset, &OltpDataset) =
            (typed(target.dataset)?, typed(target.used)?);
        self.validate_for(used, target.protocol)?;
        let workload = Oltp::new(dataset.clone(), self.clone()).on(target.dialect);
        Ok(Box::new(Oltp { used: used.clone(), ..workload }))
    }
}

impl Describe for OltpDataset {
    fn describe(&self) -> Option<Box<dyn Workload>> {
        Some(Box::new(Oltp::new(self.clone(), OltpRun::default())))
    }
}

impl Workload for Oltp {
    fn table_names(&self) -> Vec<String> {
        self.dataset.table_names().collect()
    }

    fn used_table_names(&self) -> Vec<String> {
        self.used.table_names().collect()
    }

    fn unsupported(&self, dialect: Dialect) -> Option<&'static str> {
        let used = self.dataset.range_key_partitioning;
        dialect.lacked_option(&[("--range-key-partitioning", used, Feature::HashKeys)])
    }

    fn dataset(&self, dialect: Dialect) -> Dataset {
        table::filled(&self.dataset, dialect)
    }

    fn key_column(&self) -> Option<KeyColumn> {
        let keys = self.dataset.table_size;
        (!self.dataset.bulk_insert).then_some(KeyColumn { name: "id", first: 1, keys })
    }

    fn questions(&self) -> Questions {
        // Ids generated by the client continue below the lowest existing id.
        let client_ids = self.run.inserts() && !self.dataset.auto_inc;
        let template = match self.run.test {
            OltpTest::BulkInsert => Some(bulk::HIGHEST_ID),
            _ => client_ids.then_some(LOWEST_ID),
        };
        let sql =
            |template| self.dataset.table_names().map(move |it| fill(template, &[("table", &it)]));
        Questions { integers: template.into_iter().flat_map(sql).collect(), ..Questions::default() }
    }

    fn set_answers(&mut self, Answers { integers, .. }: &Answers) {
        if integers.is_empty() {
            return;
        }
        let ids = integers.iter().map(|id| i64::try_from(*id).unwrap_or(i64::MIN));
        self.ids_below = ids.clone().min().map_or(0, |id| id.min(0));
        self.highest_ids = ids.collect();
    }

    fn accesses(&self) -> Vec<Access> {
        let kinds = self.kinds();
        let access = |table: u32, kind: Kind| {
            let statement = self.statement(table, kind);
            // Identical ranges would be merged into one. The plan of a range depends on its length.
            let literal = |(position, oid): (usize, &u32)| match *oid {
                BPCHAR_OID => "''".to_owned(),
                BIGINT_OID => self.run.range_size.to_string(),
                _ if kind.has_bounds() && position % 2 == 0 => "1".to_owned(),
                _ if kind.has_bounds() => self.run.range_size.to_string(),
                _ => (1 + 3 * position).to_string(),
            };
            let arguments = statement.parameter_types.iter().enumerate().map(literal).collect();
            let expected = self.expected(table, kind)?;
            Some(Access::new(statement, arguments, expected, self.dialect))
        };
        (1..=self.used.tables)
            .flat_map(|table| kinds.iter().filter_map(move |kind| access(table, *kind)))
            .collect()
    }

    fn stage(&self, plan: &Plan) -> Stage {
        let retried =
            (self.run.replaces() || self.run.inserts()).then(|| SqlState::parse(UNIQUE_VIOLATION));
        Stage {
            name: format!("{NAME}, {}", self.run.test),
            operations: vec![self.run.test.as_str().into()],
            changes: vec![self.run.writes() > 0],
            retried: retried.into_iter().collect(),
            ..Stage::with_sessions(plan, |session| self.session(plan, session))
        }
    }

    fn contents_sql(&self) -> Vec<String> {
        table::contents_sql(&self.dataset)
    }

    fn writers_sql(&self, mark: &Mark) -> Option<String> {
        // Without a primary key, an id may exist twice.
        if !self.dialect.has(Feature::Heap) || self.dataset.secondary {
            return None;
        }
        let table = format!("{}.sbtest{}", self.dataset.schema, mark.table);
        let (first, last) = (mark.first.to_string(), mark.last.to_string());
        Some(fill(WRITERS, &[("table", &table), ("first", &first), ("last", &last)]))
    }

    fn checks(&self, contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
        table::checks(&self.dataset, contents, baseline, ledger)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
