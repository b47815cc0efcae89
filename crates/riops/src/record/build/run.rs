//! Builds the record of a run, part by part.

use super::accesses::{access_of_statement, accesses_of, unexpected_path};
use super::parts::{Ending, Measured, MeasuredStatement, Part, RunContext};
use super::session_loop::stage;
use super::statement::statement;
use super::thresholds::thresholds_of;
use crate::engine::{SessionError, StageResult};
use crate::metrics::HistogramError;
use crate::plan::Stop;
use crate::record::SCHEMA;
use crate::record::access::AccessRecord;
use crate::record::check::{ThresholdRecord, Verdict};
use crate::record::run::{Record, Status};
use crate::record::stage::StageRecord;
use crate::units;
use crate::workload::check::Check;

/// Builds the record of a run.
///
/// # Errors
/// Returns [`HistogramError`] if a histogram cannot be merged or serialized.
pub fn build(
    context: RunContext,
    parts: Vec<Part>,
    checks: Vec<Check>,
    ending: Ending,
) -> Result<Record, HistogramError> {
    let mut builder = Builder {
        several: parts.len() > 1,
        context: &context,
        stages: Vec::new(),
        accesses: Vec::new(),
        thresholds: Vec::new(),
        reasons: Vec::new(),
        failure: None,
        status: Status::Done,
    };
    for part in parts {
        match part {
            Part::Loop(measured) => builder.add_loop(*measured)?,
            Part::Statement(measured) => builder.add_statement(*measured),
        }
    }
    let Builder { stages, accesses, thresholds, mut reasons, mut failure, mut status, .. } =
        builder;
    if ending.interrupted && status == Status::Done {
        status = Status::Interrupted;
    }
    if let Some(reason) = ending.failure {
        status = Status::Failed;
        reasons.push(reason.clone());
        failure.get_or_insert(reason);
    }
    for check in checks.iter().filter(|check| !check.held && !check.unknown) {
        reasons.push(format!("{}: expected {}, found {}", check.name, check.expected, check.found));
    }
    Ok(Record {
        schema: SCHEMA,
        id: context.id,
        started_at: context.started_at,
        workload: context.workload,
        label: context.plan.label.clone(),
        tags: context.plan.tags.clone(),
        plan: context.plan,
        status,
        failure,
        target: context.target,
        client: context.client,
        stages,
        accesses,
        unknown_outcomes: ending.unknown.map(Into::into),
        checks: checks.into_iter().map(Into::into).collect(),
        thresholds,
        verdict: Verdict { valid: reasons.is_empty(), reasons },
    })
}

/// A partial record, to which the parts of the run are added in order.
struct Builder<'a> {
    context: &'a RunContext,
    /// Whether the run has several parts. Each is then named.
    several: bool,
    stages: Vec<StageRecord>,
    accesses: Vec<AccessRecord>,
    thresholds: Vec<ThresholdRecord>,
    reasons: Vec<String>,
    failure: Option<String>,
    status: Status,
}

impl Builder<'_> {
    fn add_loop(&mut self, each: Measured) -> Result<(), HistogramError> {
        let plan = &self.context.plan;
        let name = self.several.then(|| each.result.name.clone());
        let of_stage = name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let (stage_status, stage_failure) = ending(&each.result);
        if self.status == Status::Done {
            self.status = stage_status;
        }
        let wrong_replies = each.result.wrong_replies;
        let accesses = accesses_of(&each.result.findings, &self.context.accesses, name.as_deref());
        self.thresholds.extend(thresholds_of(&each.result, plan, name.as_deref())?);
        let is_local = self.context.client.shares_machine_with_server;
        let stage = stage(each, plan, is_local)?;
        let mut add = |reason: String| self.reasons.push(format!("{of_stage}{reason}"));
        if let Some(stage_failure) = stage_failure {
            add(stage_failure.clone());
            self.failure.get_or_insert(stage_failure);
        }
        let spec = plan.work.spec();
        if let (true, Stop::Rows(rows)) = (spec.is_exact(), plan.stop)
            && stage.rows < rows
        {
            let (loaded, planned) = (units::count(stage.rows), units::count(rows));
            add(format!("{loaded} of {planned} rows were loaded"));
        }
        if stage.transactions == 0 && !spec.allows_no_transactions() {
            add("no transaction ended within the measurement".to_owned());
        }
        for access in accesses.iter().filter(|access| !access.held) {
            add(unexpected_path(access));
        }
        if wrong_replies > 0 {
            let what = spec.wrong_replies();
            add(format!("{wrong_replies} replies had {what}"));
        }
        if plan.strict && stage.client_cpu.as_ref().is_some_and(|cpu| cpu.limited) {
            add("the client was the bottleneck: a worker had no idle time (--strict)".to_owned());
        }
        self.accesses.extend(accesses);
        self.stages.push(stage);
        Ok(())
    }

    fn add_statement(&mut self, each: MeasuredStatement) {
        if let Some((access, finding)) = &each.finding {
            let record = access_of_statement(&each.name, access, finding);
            if !record.held {
                self.reasons.push(format!("{}: {}", each.name, unexpected_path(&record)));
            }
            self.accesses.push(record);
        }
        self.stages.push(statement(each, self.context.client.shares_machine_with_server));
    }
}

/// Returns how a stage ended, and the reason if it did not end as planned.
fn ending(result: &StageResult) -> (Status, Option<String>) {
    let failure = result.failure.as_ref().map(ToString::to_string);
    // An interrupt during the drain ends the drain. That is not a failure.
    let drain_interrupted =
        matches!(result.failure, Some(SessionError::Drain(_))) && result.interrupted;
    let status = match (&failure, result.interrupted) {
        (Some(_), _) if !drain_interrupted => Status::Failed,
        (None, false) => Status::Done,
        _ => Status::Interrupted,
    };
    (status, failure)
}
