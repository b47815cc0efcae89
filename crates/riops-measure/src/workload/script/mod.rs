//! `script`: the scripts of pgbench, and its tables.

mod client;
mod initialize;
mod noted;
mod program;
mod received;
mod table;

use std::borrow::Cow;
use std::sync::Arc;

use riops_script::random::Random;
use riops_script::{Value, Variables};

use super::build::typed;
use super::check::{Integers, Ledger};
use super::keys::GOLDEN_GAMMA;
use super::tables::Dataset;
use super::{
    Answers, Build, BuildFor, Describe, Maintenance, Questions, SessionPlan, Stage, Work, Workload,
    fill,
};
use crate::server::{Dialect, Feature};
use client::Client;
pub use initialize::{InitStep, init_work};
use program::{Encoded, Program};
use riops_model::plan::script::{ScriptDataset, ScriptRun, VacuumFirst};
use riops_model::plan::{Plan, PlanError, Protocol};
use riops_model::record::Check;
use riops_model::units::sql;
pub use table::{ACCOUNTS_EACH, footprint};

/// Name of the workload and of its dataset.
pub const NAME: &str = "script";

const FOUND: &str = include_str!("../../../sql/script/found.sql");

/// Returns the query for the tables of pgbench in a schema: how many have its columns, how many were created by riops, the
/// fill factor, number and kind of partitions of the accounts, whether any is unlogged, the number of foreign keys of the
/// history, and the identity of the accounts.
pub fn found_sql(schema: &str) -> String {
    fill(FOUND, &[("schema", &sql::literal(schema))])
}

/// Returns the query for the number of branches, which is the scale.
pub fn scale_sql(schema: &str) -> String {
    format!("select count(*) from {}.pgbench_branches", sql::name(schema))
}

/// The workload with its parameters.
struct ScriptWorkload {
    run: ScriptRun,
    program: Program,
    dataset: Option<ScriptDataset>,
    /// The scale, if a script uses it.
    scale: Option<i64>,
}

impl ScriptWorkload {
    fn new(
        run: &ScriptRun,
        dataset: Option<ScriptDataset>,
        protocol: Protocol,
    ) -> Result<Self, PlanError> {
        let program = Program::new(run, protocol)?;
        let scale = dataset.as_ref().and_then(|dataset| i64::try_from(dataset.scale).ok());
        Ok(Self { run: run.clone(), program, dataset, scale })
    }

    /// The schema of the tables.
    fn schema(&self) -> &str {
        self.dataset.as_ref().map_or("public", |dataset| dataset.schema.as_str())
    }

    /// Returns the settings of a session. Tables in the schema public need none, as in pgbench: the search path of the
    /// role applies.
    fn settings(&self) -> Vec<String> {
        vec![match self.schema() {
            "public" => "reset search_path".to_owned(),
            schema => format!("set search_path = {}, public", sql::name(schema)),
        }]
    }

    /// Returns the variables of a client at its start.
    fn variables(&self, client: u32, seed: u64, default_seed: i64) -> Variables {
        let names = &self.program.names;
        let mut variables = Variables::new(names);
        let preset = [
            ("scale", self.scale.unwrap_or(1)),
            ("client_id", client.into()),
            ("random_seed", seed.cast_signed()),
            ("default_seed", default_seed),
        ];
        for (name, value) in preset {
            if let Some(slot) = names.find(name) {
                variables.set(slot, Value::Int(value));
            }
        }
        for (name, text) in &self.run.define {
            if let Some(slot) = names.find(name) {
                variables.set_text(slot, text.as_bytes());
            }
        }
        variables
    }

    /// Returns the names of the scripts. If several scripts have the same name, the later names include their number.
    fn operations(&self) -> Vec<Cow<'static, str>> {
        let mut names: Vec<Cow<'static, str>> = Vec::new();
        for (ordinal, script) in (1..).zip(&self.run.scripts) {
            let is_taken = names.iter().any(|name| *name == script.name);
            let suffix = if is_taken { format!(" #{ordinal}") } else { String::new() };
            names.push(format!("{}{suffix}", script.name).into());
        }
        names
    }
}

impl Build for ScriptRun {
    fn build(&self, target: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        let dataset = target.dataset.map(|dataset| typed::<ScriptDataset>(Some(dataset)));
        let dataset = dataset.transpose()?;
        Ok(Box::new(ScriptWorkload::new(self, dataset.cloned(), target.protocol)?))
    }
}

impl Describe for ScriptDataset {
    fn describe(&self) -> Option<Box<dyn Workload>> {
        let run = ScriptRun::default();
        let workload = ScriptWorkload::new(&run, Some(self.clone()), Protocol::Prepared);
        workload.ok().map(|workload| Box::new(workload) as Box<dyn Workload>)
    }
}

impl Workload for ScriptWorkload {
    fn table_names(&self) -> Vec<String> {
        let name = |table: &&str| format!("{}.{table}", sql::name(self.schema()));
        self.dataset.iter().flat_map(|_| table::TABLES.iter().map(name)).collect()
    }

    fn unsupported(&self, dialect: Dialect) -> Option<&'static str> {
        let dataset = self.dataset.as_ref()?;
        dialect.lacked_option(&[
            ("--unlogged-tables", dataset.unlogged_tables, Feature::UnloggedTables),
            ("--fillfactor", dataset.fillfactor != 100, Feature::Heap),
        ])
    }

    fn dataset(&self, dialect: Dialect) -> Dataset {
        let dataset = self.dataset.as_ref().map(|dataset| table::filled(dataset, dialect));
        dataset.unwrap_or_default()
    }

    fn questions(&self) -> Questions {
        let is_given = self.scale.is_some() || self.run.define.contains_key("scale");
        let wants_scale = self.program.uses_scale && !is_given;
        let scale = wants_scale.then(|| scale_sql(self.schema()));
        let statements = match self.program.protocol {
            Protocol::Prepared => self.program.all().map(Encoded::prepared).collect(),
            _ => Vec::new(),
        };
        Questions { integers: scale.into_iter().collect(), settings: self.settings(), statements }
    }

    fn set_answers(&mut self, answers: &Answers) {
        if let Some(scale) = answers.integers.first() {
            self.scale = i64::try_from(*scale).ok();
        }
        for (statement, can_be) in self.program.all_mut().zip(&answers.can_be_prepared) {
            statement.is_prepared_first = *can_be;
        }
    }

    fn maintenance(&self) -> Maintenance {
        let table = |name: &str| format!("{}.{name}", sql::name(self.schema()));
        let mut sql = Vec::new();
        if self.run.vacuum != VacuumFirst::None {
            sql.push(format!("vacuum {}", table("pgbench_branches")));
            sql.push(format!("vacuum {}", table("pgbench_tellers")));
            sql.push(format!("truncate {}", table("pgbench_history")));
        }
        if self.run.vacuum == VacuumFirst::All {
            sql.push(format!("vacuum analyze {}", table("pgbench_accounts")));
        }
        let mut scripts = self.program.scripts.iter();
        let forgets_baseline = scripts.any(|script| script.builtin.is_none() && script.changes);
        Maintenance { sql, forgets_baseline }
    }

    fn stage(&self, plan: &Plan) -> Stage {
        let program = &self.program;
        let mut base = Random::new(plan.seed);
        let clients: Vec<Random> = (0..plan.sessions).map(|_| Random::new(base.bits())).collect();
        let default_seed = if self.run.define.contains_key("default_seed") {
            0
        } else {
            base.bits().cast_signed()
        };
        // Seeds for the choice of scripts, for the starts and for the sampled log.
        let seeds: Vec<[u64; 3]> =
            (0..plan.workers).map(|_| [base.bits(), base.bits(), base.bits()]).collect();
        let choice = |session: u32| {
            let (worker, round) = (session % plan.workers.max(1), session / plan.workers.max(1));
            // Sessions with the same number on their worker draw from streams whose seeds differ by this number.
            let [seed, ..] = seeds.get(worker as usize).copied().unwrap_or_default();
            Random::new(seed.wrapping_add(GOLDEN_GAMMA.wrapping_mul(round.into())))
        };
        let shared = Arc::new(program.clone());
        let session = |(session, random): (u32, Random)| {
            let variables = self.variables(session, plan.seed, default_seed);
            let choice = choice(session);
            let transactions = self.run.transactions_per_session;
            // A short-lived connection prepares what it executes.
            let prepares_first = plan.reconnect_every.is_none();
            let shared = Arc::clone(&shared);
            let client = Client::new(
                shared,
                random,
                variables,
                choice,
                session,
                transactions,
                prepares_first,
            );
            let is_needed = |encoded: &&Encoded| prepares_first && encoded.is_prepared_first;
            SessionPlan {
                settings: self.settings(),
                statements: program.all().filter(is_needed).map(Encoded::prepared).collect(),
                watched: 0..0,
                work: Work::Client(Box::new(client)),
            }
        };
        Stage {
            name: NAME.to_owned(),
            operations: self.operations(),
            changes: program.scripts.iter().map(|script| script.changes).collect(),
            sessions: (0..).zip(clients).map(session).collect(),
            explain_by_name: true,
            commands: program.commands(),
            unprepared: program.all().map(|encoded| encoded.sql.clone()).collect(),
            streams: seeds.iter().map(|[_, starts, log]| [*starts, *log]).collect(),
            ..Stage::default()
        }
    }

    fn contents_sql(&self) -> Vec<String> {
        self.dataset.as_ref().map_or_else(Vec::new, table::contents_sql)
    }

    fn checks(&self, contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
        table::checks(contents, baseline, ledger)
    }
}
