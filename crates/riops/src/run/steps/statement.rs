//! One step of `cbc`: a statement, watched while it runs, and what its answer shows.

use std::sync::Arc;

use super::super::conductor::Staged;
use super::super::error::{Part as _, RunError};
use super::super::scene::Scene;
use super::home::copy_bytes;
use super::{Open, Steps};
use crate::engine::{OnceResult, run_once};
use crate::probe::caches::{self, CacheState};
use crate::probe::database::DatabaseProbe;
use crate::probe::sampler::Progress;
use crate::probe::{MachineUse, Probe};
use crate::record::{MeasuredStatement, Part};
use crate::server::Connection;
use crate::workload::cbc::{self, StatementPlan, Step, TABLE, VacuumRates};

impl Steps {
    /// Runs one statement.
    pub(super) fn step(&mut self, step: Step, scene: &mut Scene<'_>) -> Result<Staged, RunError> {
        let caches = self.empty_caches(step, scene)?;
        let sql = cbc::sql_of(step, self.run.size_gb);
        let open = self.opened()?;
        let (result, usage) = open.execute(step, &sql, scene)?;
        scene.observer.step_done(result.seconds);
        let json: String = if step.is_select() {
            result.answer.rows.iter().flatten().flatten().map(String::as_str).collect()
        } else {
            String::new()
        };
        let plan = StatementPlan::parse(&json);
        let rows = match (&plan, result.answer.tags.first()) {
            (Some(plan), _) => plan.rows_looked_at(),
            (None, Some(tag)) => rows_of_tag(tag),
            (None, None) => 0,
        };
        let checks = cbc::check(step, &open.dataset, rows, plan.as_ref()).into_iter().collect();
        open.note_sizes()?;
        let finding = step.access().zip(step.judge(&json));
        let vacuum = result.notices.iter().find_map(|notice| VacuumRates::parse(notice));
        let part = Part::Statement(Box::new(MeasuredStatement {
            name: step.key().to_owned(),
            sql,
            result,
            rows,
            plan,
            vacuum: vacuum.filter(|_| step == Step::Vacuum),
            finding,
            usage,
            caches,
        }));
        Ok(Staged { checks, ..Staged::of(part) })
    }

    /// Empties the caches before a select that is meant to find nothing there, where the plan wants it.
    fn empty_caches(
        &mut self,
        step: Step,
        scene: &mut Scene<'_>,
    ) -> Result<Option<CacheState>, RunError> {
        if !self.run.cold || !step.is_uncached() {
            return Ok(None);
        }
        let tables = [TABLE.to_owned()];
        let local_data = scene.environment.local_data();
        let state = caches::cool(&mut scene.control, &tables, local_data)?;
        scene.report_caches(&state);
        Ok(Some(state))
    }
}

impl Open {
    /// Runs the statement between the two ends of a probe.
    fn execute(
        &mut self,
        step: Step,
        sql: &str,
        scene: &mut Scene<'_>,
    ) -> Result<(OnceResult, MachineUse), RunError> {
        self.watch(step, scene);
        let tables = [TABLE.to_owned()];
        let local_data = scene.environment.local_data();
        let process = self.work.greeting().process;
        let processes = local_data.map(|_| process).into_iter().collect();
        let database = DatabaseProbe::new(&mut scene.control, &tables)?;
        let mut probe = Probe::machine(local_data)
            .with_database(database)
            .with_sampler(&mut self.sampler)
            .with_processes(processes);
        let result = run_once(&mut self.work, sql, &mut probe)
            .part(|| format!("{} did not end", step.key()))?;
        let usage = probe.usage();
        Ok((result, usage))
    }

    /// Sets the sampler on a step, and shows its progress.
    fn watch(&mut self, step: Step, scene: &mut Scene<'_>) {
        let process = self.work.greeting().process;
        let progress = match step.progress_sql(process, self.dataset.rows()) {
            Some(sql) => Progress::Query(sql),
            None if step == Step::CreateTable => Progress::DatabaseSize,
            None => Progress::Unknown,
        };
        let growth = match step {
            Step::CreateTable => expected_growth(&mut scene.control, self.dataset.copies),
            _ => None,
        };
        let on_point = scene.observer.step(step.key(), growth);
        self.sampler.watch(process, progress, Some(Arc::clone(&on_point)));
    }

    fn note_sizes(&mut self) -> Result<(), RunError> {
        let row = self.work.query(&cbc::sizes_sql())?.into_iter().next().unwrap_or_default();
        let mut bytes = row.into_iter().map(|value| value.and_then(|text| text.parse().ok()));
        self.dataset.table_bytes = bytes.next().flatten();
        self.dataset.index_bytes = bytes.next().flatten();
        Ok(())
    }
}

/// The size of the database, and by how much it will grow, in bytes.
fn expected_growth(control: &mut Connection, copies: u64) -> Option<(u64, u64)> {
    let size = control.query_value("select pg_database_size(current_database())");
    let before = size.ok().flatten()?.parse().ok()?;
    Some((before, copies * copy_bytes(control).ok()?))
}

/// The number at the end of a tag: `SELECT 1000`.
fn rows_of_tag(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_ends_with_its_rows_or_has_none() {
        assert_eq!((rows_of_tag("SELECT 451361"), rows_of_tag("VACUUM")), (451_361, 0));
    }
}
