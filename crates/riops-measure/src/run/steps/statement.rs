//! One step of `cbc`: runs a statement, samples its progress, and evaluates its result.

use std::sync::Arc;

use super::super::active::ActiveRun;
use super::super::conductor::FinishedStage;
use super::super::error::{Context as _, RunError};
use super::location::copy_bytes;
use super::{Open, Steps};
use crate::engine::{OnceResult, run_once};
use crate::probe::MachineUse;
use crate::probe::caches;
use crate::probe::database::DatabaseProbe;
use crate::probe::sampler::Progress;
use crate::run::parts::{MeasuredStatement, Part};
use crate::server::Connection;
use crate::workload::cbc::{self, TABLE, parsed_plan, parsed_rates};
use crate::workload::fill;
use riops_model::plan::CbcStep;
use riops_model::record::{CacheState, ProbePoint, RunEvent};

impl Steps {
    /// Runs one statement.
    pub(super) fn step(
        &mut self,
        step: CbcStep,
        active: &mut ActiveRun<'_>,
    ) -> Result<FinishedStage, RunError> {
        let caches = self.empty_caches(step, active)?;
        let sql = cbc::sql_of(step, self.run.size_gb);
        let open = self.require_open()?;
        let (result, usage) = open.execute(step, &sql, active)?;
        active.hooks.events.send(&RunEvent::StepDone { seconds: result.seconds });
        let json: String = if step.is_select() {
            result.answer.rows.iter().flatten().flatten().map(String::as_str).collect()
        } else {
            String::new()
        };
        let plan = parsed_plan(&json);
        let rows = match (&plan, result.answer.tags.first()) {
            (Some(plan), _) => plan.rows_scanned(),
            (None, Some(tag)) => rows_of_tag(tag),
            (None, None) => 0,
        };
        let checks = cbc::check(step, &open.dataset, rows, plan.as_ref()).into_iter().collect();
        open.note_sizes()?;
        let finding = cbc::access_of(step).zip(cbc::judge(step, &json));
        let vacuum = result.notices.iter().find_map(|notice| parsed_rates(notice));
        let part = Part::Statement(Box::new(MeasuredStatement {
            name: step.key().to_owned(),
            sql,
            result,
            rows,
            plan,
            vacuum: vacuum.filter(|_| step == CbcStep::Vacuum),
            finding,
            usage,
            caches,
        }));
        Ok(FinishedStage { checks, ..FinishedStage::new(part) })
    }

    /// Empties the caches before a select that is meant to run uncached, if the plan requests it.
    fn empty_caches(
        &mut self,
        step: CbcStep,
        active: &mut ActiveRun<'_>,
    ) -> Result<Option<CacheState>, RunError> {
        if !self.run.cold || !step.is_uncached() {
            return Ok(None);
        }
        let tables = [TABLE.to_owned()];
        let local_data = active.environment.local_data();
        let state = caches::cool(&mut active.control, &tables, local_data)?;
        active.report_caches(&state);
        Ok(Some(state))
    }
}

impl Open {
    /// Runs the statement between the two readings of a probe.
    fn execute(
        &mut self,
        step: CbcStep,
        sql: &str,
        active: &mut ActiveRun<'_>,
    ) -> Result<(OnceResult, MachineUse), RunError> {
        self.watch(step, active);
        let tables = [TABLE.to_owned()];
        let local_data = active.environment.local_data();
        let process = self.work.session_info().process;
        let processes = local_data.map(|_| process).into_iter().collect();
        let mut queries = active.query_probe(&[]);
        let mut probe = active.machine_probe(&tables)?.with_processes(processes);
        let database = DatabaseProbe::new(&mut active.control, &tables)?;
        probe.database = Some(database.with_statements(&[sql.to_owned()].into(), true)?);
        (probe.sampler, probe.queries) = (Some(&mut self.sampler), Some(&mut queries));
        (probe.perf, probe.instructions) = (active.perf.as_mut(), active.instructions.as_mut());
        let result = run_once(&mut self.work, sql, &mut probe)
            .with_context(|| format!("{} failed", step.key()))?;
        let usage = probe.usage();
        Ok((result, usage))
    }

    /// Samples the progress of a step.
    fn watch(&mut self, step: CbcStep, active: &mut ActiveRun<'_>) {
        let process = self.work.session_info().process;
        let progress = match cbc::progress_sql(step, process, self.dataset.rows()) {
            Some(sql) => Progress::Query(sql),
            None if step == CbcStep::CreateTable => Progress::DatabaseSize,
            None => Progress::Unknown,
        };
        let growth = match step {
            CbcStep::CreateTable => expected_growth(&mut active.control, self.dataset.copies),
            _ => None,
        };
        let events = active.hooks.events.clone();
        events.send(&RunEvent::Step { name: step.key().to_owned() });
        let on_point = move |point: &ProbePoint| {
            let (t_s, share) = (point.t_s, point.share_done(growth));
            events.send(&RunEvent::StepProgress { t_s, share, sample: Box::new(point.clone()) });
        };
        self.sampler.watch(process, progress, Some(Arc::new(on_point)));
    }

    fn note_sizes(&mut self) -> Result<(), RunError> {
        let row = self.work.query(&fill(cbc::SIZES, &[]))?.into_iter().next().unwrap_or_default();
        let mut bytes = row.into_iter().map(|value| value.and_then(|text| text.parse().ok()));
        self.dataset.table_bytes = bytes.next().flatten();
        self.dataset.index_bytes = bytes.next().flatten();
        Ok(())
    }
}

/// Returns the size of the database and its expected growth, in bytes.
fn expected_growth(control: &mut Connection, copies: u64) -> Option<(u64, u64)> {
    let size = control.query_value("select pg_database_size(current_database())");
    let before = size.ok().flatten()?.parse().ok()?;
    Some((before, copies * copy_bytes(control).ok()?))
}

/// Returns the number at the end of a command tag: `SELECT 1000`.
fn rows_of_tag(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_rows_of_a_command_tag() {
        assert_eq!((rows_of_tag("SELECT 451361"), rows_of_tag("VACUUM")), (451_361, 0));
    }
}
