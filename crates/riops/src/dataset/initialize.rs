//! The initialization steps of pgbench. Unlike a preparation, they drop and create tables that riops does not own.

use std::time::{Duration, Instant};

use super::error::{DatasetError, Result};
use super::parallel::{in_parallel, nth_job};
use crate::host::Interrupt;
use crate::plan::script::ScriptDataset;
use crate::server::{ConnInfo, Connection};
use crate::workload::script::{InitStep, init_work};
use crate::workload::tables::Job;

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
    /// Interrupt by the user.
    pub interrupt: &'a Interrupt,
}

impl Initialization<'_> {
    /// Executes the steps and returns the duration of each. `notice` receives the beginning of each step.
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
                let server = (self.target, self.interrupt);
                let jobs = tables.iter().map(|table| table.jobs).sum();
                let job = |number| nth_job(&tables, number).map(|(table, job)| (table.job)(job));
                in_parallel(
                    server,
                    (jobs, self.connections),
                    &[],
                    |connection, number| match job(number) {
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
}
