//! The initialization steps of pgbench. Unlike a preparation, they drop and create tables that riops does not own.

use std::time::{Duration, Instant};

use super::error::DatasetError;
use super::parallel::{Parallel, in_parallel};
use crate::host::Interrupt;
use crate::plan::script::ScriptDataset;
use crate::server::{ConnInfo, Connection};
use crate::workload::script::{InitStep, InitWork, init_work};
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
    pub fn run(
        &self,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Vec<(InitStep, Duration)>, DatasetError> {
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
            match init_work(*step, &dataset, connection.dialect()) {
                InitWork::Statements(all) => {
                    if *step == InitStep::Create && dataset.partitions > 0 {
                        notice(&format!("creating {} partitions...", dataset.partitions));
                    }
                    all.iter().try_for_each(|sql| connection.execute(sql))?;
                }
                InitWork::Load { before, tables } => {
                    before.iter().try_for_each(|sql| connection.execute(sql))?;
                    let jobs: Vec<_> = tables
                        .iter()
                        .flat_map(|table| (0..table.jobs).map(move |job| (table, job)))
                        .collect();
                    let parallel = Parallel {
                        target: self.target,
                        interrupt: self.interrupt,
                        count: jobs.len() as u64,
                        connections: self.connections,
                        settings: &[],
                    };
                    in_parallel(&parallel, |connection, number| {
                        let job = usize::try_from(number).ok().and_then(|number| jobs.get(number));
                        match job.map(|(table, job)| (table.job)(*job)) {
                            Some(Job::Copy { sql, mut source, .. }) => {
                                connection.copy_in(&sql, |out| source(out))
                            }
                            Some(Job::Sql { sql, .. }) => connection.execute(&sql),
                            None => Ok(()),
                        }
                    })?;
                }
            }
            durations.push((*step, start.elapsed()));
        }
        Ok(durations)
    }
}
