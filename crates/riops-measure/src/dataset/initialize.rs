//! The initialization steps of pgbench. Unlike a preparation, they drop and create tables that riops does not own.

use std::time::{Duration, Instant};

use super::error::{DatasetError, Result};
use super::parallel::{in_parallel, nth_job};
use super::space::Place;
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};
use crate::workload::fill;
use crate::workload::script::{InitStep, footprint, init_work};
use crate::workload::tables::Job;
use riops_model::plan::script::ScriptDataset;
use riops_model::units::sql::literal;

const REPLACED: &str = include_str!("../../sql/dataset/replaced_by_pgbench.sql");
/// How the check of the free space is skipped.
const SKIP: &str = "`--skip-space-check` (`riops pgbench -i`: with RIOPS_SKIP_SPACE_CHECK=1)";

/// The input of an initialization.
pub struct Initialization<'a> {
    /// Connection settings of the database.
    pub target: &'a ConnInfo,
    /// The tables. Their schema is the current one of the connection.
    pub dataset: ScriptDataset,
    /// The steps, in order; a step may occur several times.
    pub steps: &'a [InitStep],
    /// Number of parallel connections that load rows.
    pub connections: u32,
    /// Whether the free space of the server is not checked.
    pub skip_space_check: bool,
    /// Interrupt by the user.
    pub interrupt: &'a Interrupt,
}

impl Initialization<'_> {
    /// Executes the steps and returns the duration of each. `notice` is called when a step begins.
    ///
    /// # Errors
    /// [`DatasetError`] of the first statement that fails.
    pub fn run(&self, notice: &mut dyn FnMut(&str)) -> Result<Vec<(InitStep, Duration)>> {
        let mut connection = Connection::open(self.target, self.interrupt)?;
        let Some(schema) = connection.schemas_of_role()?.into_iter().next() else {
            let text = "no schema of the search path exists".to_owned();
            return Err(DatasetError::Unadoptable(text));
        };
        let dataset = ScriptDataset { schema, ..self.dataset.clone() };
        self.require_space(&mut connection, &dataset, notice)?;
        let mut durations = Vec::new();
        for step in self.steps {
            let start = Instant::now();
            notice(&format!("{}...", step.action()));
            let (statements, tables) = init_work(*step, &dataset, connection.dialect());
            if *step == InitStep::Create && dataset.partitions > 0 {
                notice(&format!("creating {} partitions...", dataset.partitions));
            }
            statements.iter().try_for_each(|sql| connection.execute(sql))?;
            if !tables.is_empty() {
                let jobs = tables.iter().map(|table| table.jobs).sum();
                let job = |index| nth_job(&tables, index).map(|(table, job)| (table.job)(job));
                in_parallel(
                    self.target,
                    self.interrupt,
                    jobs,
                    self.connections,
                    &[],
                    |connection, index| match job(index) {
                        Some(Job::Copy { sql, mut source, .. }) => {
                            connection.copy_in(&sql, |out| source(out))
                        }
                        Some(Job::Sql { sql, .. }) => connection.execute(&sql),
                        None => Ok(()),
                    },
                )?;
            }
            durations.push((*step, start.elapsed()));
        }
        Ok(durations)
    }

    /// Fails before the first step if the rows may need more than the free space. The tables that are dropped or emptied
    /// count as free. The device of another tablespace is unknown.
    fn require_space(
        &self,
        connection: &mut Connection,
        dataset: &ScriptDataset,
        notice: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let fills = |step: &InitStep| matches!(step, InitStep::Load | InitStep::Generate);
        if self.skip_space_check || dataset.tablespace.is_some() || !self.steps.iter().any(fills) {
            return Ok(());
        }
        let sql = fill(REPLACED, &[("schema", &literal(&dataset.schema))]);
        let replaced = match connection.query(&sql) {
            // Servers without the functions.
            Err(ConnectionError::Server(_)) => None,
            rows => rows?.into_iter().flatten().flatten().next(),
        };
        let place = Place::find(connection, self.target.is_local(), "")?;
        let place = place.replacing(replaced.and_then(|text| text.parse().ok()).unwrap_or(0));
        place.require(SKIP, footprint(dataset), notice)
    }
}
