//! `oltp`: sysbench's transactions on sysbench's tables, with those of its YugabyteDB variant.

mod generator;
mod statements;
mod table;
mod texts;

use riops_wire::sqlstate::SqlState;

use super::access::Access;
use super::check::{Check, Ledger};
use super::keys::{Purpose, RangePicker, stream};
use super::tables::Dataset;
use super::values::{BIGINT_OID, BPCHAR_OID};
use super::{Build, BuildFor, Describe, PLAN_ONCE, SessionPlan, Stage, Statement, Work, Workload};
use crate::plan::{OltpDataset, OltpRun, OltpTest, Plan, PlanError, Protocol};
use crate::server::Flavor;
use generator::{OltpGenerator, Parts};
use statements::{Kind, On};

/// The workload's name.
pub const NAME: &str = "oltp";

/// The query for sysbench's tables in a schema.
const FOUND: &str = include_str!("../../../../../sql/oltp/found.sql");
const WHOLE_UNTIL: &str = include_str!("../../../../../sql/oltp/whole_until.sql");
const LOWEST_ID: &str = include_str!("../../../../../sql/oltp/lowest_id.sql");

/// What is inserted again may have come back before: the loser's transaction is run once more, as by
/// sysbench.
const UNIQUE_VIOLATION: &str = "23505";

/// The workload with all its parameters.
#[derive(Debug, Clone)]
pub struct Oltp {
    dataset: OltpDataset,
    run: OltpRun,
    flavor: Flavor,
    /// Ids that the client makes count down from below this one; only where the server makes none.
    ids_below: i64,
}

/// The query for sysbench's tables in a schema: name, whether `id` is the primary key, whether there is
/// an index on `k`, whether the server makes ids, how many of the four columns there are, the comment,
/// whether the key is sharded by ranges.
#[must_use]
pub fn found_sql(schema: &str) -> String {
    super::fill(FOUND, &[("schema", schema)])
}

/// The query for the last id of a table before which none is missing from 1 on.
#[must_use]
pub fn whole_until_sql(table: &str) -> String {
    super::fill(WHOLE_UNTIL, &[("table", table)])
}

/// The query for the lowest id of a table, where that is below 0, else 0.
fn lowest_id_sql(table: &str) -> String {
    super::fill(LOWEST_ID, &[("table", table)])
}

impl Oltp {
    /// The workload on such tables, doing this, on PostgreSQL.
    #[must_use]
    pub fn new(dataset: OltpDataset, run: OltpRun) -> Self {
        Self { dataset, run, flavor: Flavor::PostgreSql, ids_below: 0 }
    }

    /// The same on another relative.
    #[must_use]
    pub fn on(self, flavor: Flavor) -> Self {
        Self { flavor, ..self }
    }

    fn table(&self, number: u32) -> On<'_> {
        On { dataset: &self.dataset, run: &self.run, flavor: self.flavor, number }
    }

    fn kinds(&self) -> Vec<Kind> {
        statements::kinds(&statements::recipe(&self.run, &self.dataset))
    }

    /// The statements of every session: those that begin and end a transaction, then those of each
    /// table.
    fn statements(&self) -> Vec<Statement> {
        let word = |name: &str| Statement {
            name: name.to_owned(),
            sql: name.to_owned(),
            parameter_types: Vec::new(),
        };
        let mut all = Vec::new();
        if self.run.is_explicit() {
            all.extend([word("begin"), word("commit")]);
        }
        let kinds = self.kinds();
        for number in 1..=self.dataset.tables {
            all.extend(kinds.iter().map(|kind| self.table(number).statement(*kind)));
        }
        all
    }

    fn settings(&self, plan: &Plan) -> Vec<String> {
        // A small table would be read as a whole: then it is not access by the key that is measured.
        let mut settings = match self.run.test {
            OltpTest::SequentialScan => Vec::new(),
            _ => vec!["set enable_seqscan = off".to_owned()],
        };
        settings.push("set jit = off".to_owned());
        // Only the ranges of random-ranges are put together by a bitmap; their plan depends on them.
        if self.run.test == OltpTest::RandomRanges {
            return settings;
        }
        settings.push("set enable_bitmapscan = off".to_owned());
        if plan.protocol == Protocol::Prepared {
            settings.push(PLAN_ONCE.to_owned());
        }
        settings
    }

    fn session(&self, plan: &Plan, session: u32) -> SessionPlan {
        let recipe = statements::recipe(&self.run, &self.dataset);
        let kinds = statements::kinds(&recipe);
        let before = if self.run.is_explicit() { 2 } else { 0 };
        // Each session looks at one table: with all of them on all sessions, looks would be a load of
        // their own.
        let first = before + (session % self.dataset.tables) as usize * kinds.len();
        let watched = first..first + kinds.len();
        let number = u64::from(session);
        let picker = |batch: u64| {
            let batch = batch.min(self.dataset.table_size);
            RangePicker::new(self.run.distribution, self.dataset.table_size, batch, plan.seed)
        };
        let parts = Parts {
            recipe,
            kinds,
            before,
            ids: picker(1),
            ranges: picker(u64::from(self.run.range_size)),
            rng: stream(plan.seed, Purpose::Ranges, number),
            texts: stream(plan.seed, Purpose::Texts, number),
            ids_below: self.ids_below,
            session,
            sessions: plan.sessions,
        };
        SessionPlan {
            settings: self.settings(plan),
            statements: self.statements(),
            watched,
            work: Work::Client(Box::new(OltpGenerator::new(&self.run, &self.dataset, parts))),
        }
    }
}

impl Build for OltpRun {
    fn build(&self, found: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        let dataset: &OltpDataset = found.dataset()?;
        self.validate_for(dataset, found.protocol)?;
        Ok(Box::new(Oltp::new(dataset.clone(), self.clone()).on(found.flavor)))
    }
}

impl Describe for OltpDataset {
    fn describe(&self) -> Option<Box<dyn Workload>> {
        Some(Box::new(Oltp::new(self.clone(), OltpRun::default())))
    }
}

impl Workload for Oltp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn table_names(&self) -> Vec<String> {
        self.dataset.table_names().collect()
    }

    fn is_adopted(&self) -> bool {
        self.dataset.adopted
    }

    fn unsupported(&self, flavor: Flavor) -> Option<&'static str> {
        let used = self.dataset.range_key_partitioning && flavor != Flavor::YugabyteDb;
        used.then_some("--range-key-partitioning")
    }

    fn dataset(&self, flavor: Flavor) -> Dataset {
        table::filled(&self.dataset, flavor)
    }

    fn questions(&self) -> Vec<String> {
        // Ids that the client makes go on below the lowest that is there.
        let own_ids = self.run.inserts() && !self.dataset.auto_inc;
        let lowest = || self.dataset.table_names().map(|table| lowest_id_sql(&table)).collect();
        if own_ids { lowest() } else { Vec::new() }
    }

    fn learn(&mut self, answers: &[i128]) {
        let lowest = answers.iter().copied().min().map(|id| i64::try_from(id).unwrap_or(i64::MIN));
        self.ids_below = lowest.map_or(0, |id| id.min(0));
    }

    fn accesses(&self) -> Vec<Access> {
        let kinds = self.kinds();
        let access = |number: u32, kind: Kind| {
            let statement = self.table(number).statement(kind);
            // Ranges that were all the same would be one range.
            let literal = |(position, oid): (usize, &u32)| match *oid {
                BPCHAR_OID => "''".to_owned(),
                BIGINT_OID => self.run.range_size.to_string(),
                _ => (1 + 3 * position).to_string(),
            };
            Some(Access {
                arguments: statement.parameter_types.iter().enumerate().map(literal).collect(),
                statement: statement.name,
                sql: statement.sql,
                rows: 1,
                expected: self.table(number).expected(kind)?,
                flavor: self.flavor,
            })
        };
        (1..=self.dataset.tables)
            .flat_map(|number| kinds.iter().filter_map(move |kind| access(number, *kind)))
            .collect()
    }

    fn stages(&self, plan: &Plan) -> Vec<Stage> {
        let retried = self.run.replaces().then(|| SqlState::parse(UNIQUE_VIOLATION));
        vec![Stage {
            name: format!("{NAME}, {}", self.run.test),
            operations: vec![self.run.test.as_str()],
            changes: vec![self.run.writes() > 0],
            explain_by_name: plan.protocol == Protocol::Prepared,
            exact: false,
            retried: retried.into_iter().collect(),
            sessions: (0..plan.sessions).map(|number| self.session(plan, number)).collect(),
        }]
    }

    fn contents_sql(&self) -> Vec<String> {
        table::contents_sql(&self.dataset)
    }

    fn checks(
        &self,
        contents: &[Vec<i128>],
        baseline: &[Vec<i128>],
        ledger: &Ledger,
    ) -> Vec<Check> {
        table::checks(&self.dataset, contents, baseline, ledger)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
