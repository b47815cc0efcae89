//! Judges a run: why it is not valid, and what makes its numbers less reliable.

mod accesses;
mod reasons;
mod warnings;

use std::os::unix::process::ExitStatusExt as _;

use crate::engine::{SessionError, StageResult};
use crate::run::parts::{Ending, Measured, MeasuredObservation, MeasuredStatement, Part};
use crate::run::results;
use crate::workload::access::Access;
use accesses::{access_of_statement, accesses_of, contradictions, path_reasons, unexpected_path};
use reasons::loop_reasons;
pub(super) use reasons::{STRICT, strict_reasons, unlike_planned};
use riops_model::figure::judged;
use riops_model::record::{
    Check, HistogramError, QuerySeries, Record, StageRecord, Status, Warning, WarningKind,
};
use riops_model::units::format::joined;
use warnings::durability;
pub(super) use warnings::warnings;

/// Adds the measured parts to a record without results, and judges them.
///
/// # Errors
/// Returns [`HistogramError`] if a histogram cannot be merged or serialized.
pub(super) fn judge(
    record: Record,
    expected: &[Access],
    parts: Vec<Part>,
    checks: Vec<Check>,
    ending: Ending,
) -> Result<Record, HistogramError> {
    let mut judge = Judge { several: parts.len() > 1, expected, record };
    judge.add_shared_dataset();
    judge.add_mistakes();
    for part in parts {
        match part {
            Part::Loop(measured) => judge.add_loop(*measured)?,
            Part::Statement(measured) => judge.add_statement(*measured),
            Part::Observed(measured) => judge.add_observation(*measured)?,
        }
    }
    let mut record = judge.record;
    record.verdict.warnings.extend(durability(&record));
    if ending.interrupted && record.status == Status::Done {
        record.status = Status::Interrupted;
    }
    let reasons = &mut record.verdict.reasons;
    if let Some(reason) = ending.failure {
        record.status = Status::Failed;
        reasons.push(reason.clone());
        record.failure.get_or_insert(reason);
    }
    for check in checks.iter().filter(|check| !check.held && !check.unknown) {
        reasons.push(format!("{}: expected {}, found {}", check.name, check.expected, check.found));
    }
    record.verdict.valid = reasons.is_empty();
    record.unknown_outcomes = ending.unknown;
    record.checks = checks;
    Ok(record)
}

/// A record, to which the parts of the run are added in order.
struct Judge<'a> {
    record: Record,
    /// The expected access paths.
    expected: &'a [Access],
    /// Whether the run has several parts. Each is then named.
    several: bool,
}

impl Judge<'_> {
    fn add_loop(&mut self, measured: Measured) -> Result<(), HistogramError> {
        let plan = &self.record.plan;
        let name = self.several.then(|| measured.result.name.clone());
        let (stage_status, stage_failure) = ending(&measured.result);
        if self.record.status == Status::Done {
            self.record.status = stage_status;
        }
        let wrong_replies = measured.result.workers.wrong_replies;
        let accesses = accesses_of(&measured.result, self.expected, name.as_deref());
        let ended_run = measured.result.breached.clone();
        let stage = results::session_loop::stage(measured, plan, &self.record.client)?;
        let thresholds = judged(&self.record, &stage, ended_run.as_ref(), name.as_deref())?;
        self.record.thresholds.extend(thresholds);
        let mut reasons: Vec<String> = stage_failure.clone().into_iter().collect();
        reasons.extend(loop_reasons(&stage, plan, wrong_replies));
        let mut changed = path_reasons(&accesses);
        let scans = stage.database.as_ref().map_or(&[][..], |database| &database.scans);
        changed.extend(contradictions(&accesses, scans));
        if plan.work.traits().tolerates_changed_plans {
            let warning =
                |text| Warning { kind: WarningKind::PlanChange, stage: name.clone(), text };
            self.record.verdict.warnings.extend(changed.into_iter().map(warning));
        } else {
            reasons.extend(changed);
        }
        self.record.failure = self.record.failure.take().or(stage_failure);
        self.add_reasons(name.as_ref(), reasons);
        self.add_stage(stage, name.as_ref());
        self.record.accesses.extend(accesses);
        Ok(())
    }

    fn add_shared_dataset(&mut self) {
        let users =
            self.record.target.dataset.as_ref().map_or(&[][..], |dataset| &dataset.other_users);
        let shared = shared_dataset(users);
        if let Some(warning) = shared.as_ref().filter(|_| self.record.plan.strict) {
            self.record.verdict.reasons.push(format!("disturbed: {}{STRICT}", warning.text));
        }
        self.record.verdict.warnings.extend(shared);
    }

    /// Adds what is probably a mistake in the statements of the plan.
    fn add_mistakes(&mut self) {
        let plan = &self.record.plan;
        let texts = plan.work.spec().warnings(plan.protocol);
        let warning = |text| Warning { kind: WarningKind::Statement, stage: None, text };
        self.record.verdict.warnings.extend(texts.into_iter().map(warning));
    }

    /// Adds reasons of a stage, with its name if it is one of several.
    fn add_reasons(&mut self, name: Option<&String>, reasons: Vec<String>) {
        let of_stage = name.map_or_else(String::new, |name| format!("{name}: "));
        let reasons = reasons.into_iter().map(|reason| format!("{of_stage}{reason}"));
        self.record.verdict.reasons.extend(reasons);
    }

    /// Adds a stage with its warnings.
    fn add_stage(&mut self, stage: StageRecord, name: Option<&String>) {
        let plan = &self.record.plan;
        let warnings = warnings(&stage, plan, &self.record.client.machine);
        if plan.strict {
            self.add_reasons(name, strict_reasons(&stage, plan, &warnings));
        }
        let of_stage =
            warnings.into_iter().map(|warning| Warning { stage: name.cloned(), ..warning });
        self.record.verdict.warnings.extend(of_stage);
        self.record.stages.push(stage);
    }

    fn add_observation(&mut self, observation: MeasuredObservation) -> Result<(), HistogramError> {
        if observation.interrupted {
            self.record.status = Status::Interrupted;
        }
        self.record.verdict.reasons.extend(observation_reasons(&observation));
        let missing = missing_parts(&observation, &self.record.target.database).into_iter();
        let kind = WarningKind::Observed;
        self.record.verdict.warnings.extend(missing.map(|text| Warning {
            kind,
            stage: None,
            text,
        }));
        let plan = &self.record.plan;
        let stage = results::single::observed(observation, plan, &self.record.client);
        let thresholds = judged(&self.record, &stage, None, None)?;
        self.record.thresholds.extend(thresholds);
        self.add_stage(stage, None);
        Ok(())
    }

    fn add_statement(&mut self, statement: MeasuredStatement) {
        if let Some((access, finding)) = &statement.finding {
            let record = access_of_statement(&statement.name, access, finding);
            if !record.held {
                self.add_reasons(Some(&statement.name), vec![unexpected_path(&record)]);
            }
            self.record.accesses.push(record);
        }
        let name = self.several.then(|| statement.name.clone());
        let plan = &self.record.plan;
        let stage = results::single::statement(statement, plan, &self.record.client);
        self.add_reasons(Some(&stage.name), unlike_planned(&stage, &plan.work.traits()));
        self.add_stage(stage, name.as_ref());
    }
}

/// Returns the warning about other users of a dataset; `None` without any.
pub(super) fn shared_dataset(users: &[String]) -> Option<Warning> {
    let text = format!("others used the dataset: {}", users.join("; "));
    let kind = WarningKind::SharedDataset;
    (!users.is_empty()).then_some(Warning { kind, stage: None, text })
}

/// Returns why an observation is not what was asked for.
fn observation_reasons(measured: &MeasuredObservation) -> Vec<String> {
    let ended = measured.status.and_then(|status| match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("the command exited with {code}")),
        (None, signal) => {
            let signal =
                signal.map_or_else(|| "a signal".to_owned(), |signal| format!("signal {signal}"));
            Some(format!("{signal} ended the command"))
        }
    });
    let unread = |series: &QuerySeries| {
        let error = series.error.clone().unwrap_or_else(|| "no value".to_owned());
        let text = format!("the count {} was not read: {error}", series.name);
        (series.points.len() < 2).then_some(text)
    };
    let counts = measured.usage.queries.iter().take(measured.counts);
    ended.into_iter().chain(counts.filter_map(unread)).collect()
}

/// Returns the parts of the observed work that are not in the result. riops counts in `database`.
fn missing_parts(measured: &MeasuredObservation, database: &str) -> Vec<String> {
    let left = joined(&measured.left_behind, ", ");
    let left = (!left.is_empty()).then(|| {
        format!("the command left processes behind, whose further work is not measured: {left}")
    });
    let sampled = measured.usage.sampled.as_ref().map_or(&[][..], |sampled| &sampled.databases);
    let others = joined(sampled.iter().filter(|name| *name != database), ", ");
    let others = (!others.is_empty()).then(|| {
        format!("sessions of the command used database {others}, but riops counts blocks, tables and statements in database {database}")
    });
    let restarted = measured
        .restarted
        .then(|| "the server restarted: its counters do not cover the whole time".to_owned());
    [restarted, others, left].into_iter().flatten().collect()
}

/// Returns how a stage ended, and the reason if it did not end as planned.
fn ending(result: &StageResult) -> (Status, Option<String>) {
    let failure = result.workers.failure.as_ref().map(ToString::to_string);
    // An interrupt during the drain ends the drain, but is not a failure.
    let drain_interrupted =
        matches!(result.workers.failure, Some(SessionError::Drain(_))) && result.interrupted;
    let status = match (&failure, result.interrupted) {
        (Some(_), _) if !drain_interrupted => Status::Failed,
        (None, false) => Status::Done,
        _ => Status::Interrupted,
    };
    (status, failure)
}
