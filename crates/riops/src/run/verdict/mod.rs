//! Judges a run: why it is not valid, and what makes its numbers less reliable.

mod accesses;
mod reasons;
mod thresholds;
mod warnings;

use crate::engine::{SessionError, StageResult};
use crate::plan::{Plan, Stop};
use crate::record::{
    Check, HistogramError, RateVerdict, Record, StageRecord, Status, Warning, WarningKind,
};
use crate::run::parts::{Ending, Measured, MeasuredStatement, Part};
use crate::run::results;
use crate::units;
use crate::workload::access::Access;
use accesses::{access_of_statement, accesses_of, contradictions, path_reasons, unexpected_path};
use reasons::unlike_planned;
use thresholds::thresholds_of;
use warnings::warnings;

/// A step of the server's clock by more than this share of the measurement changes the rate of a server-side
/// loop by more than repeated runs differ.
const CLOCK_STEP_SHARE: f64 = 0.01;

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
        }
    }
    let mut record = judge.record;
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
    fn add_loop(&mut self, each: Measured) -> Result<(), HistogramError> {
        let plan = &self.record.plan;
        let name = self.several.then(|| each.result.name.clone());
        let of_stage = name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let (stage_status, stage_failure) = ending(&each.result);
        if self.record.status == Status::Done {
            self.record.status = stage_status;
        }
        let wrong_replies = each.result.wrong_replies;
        let accesses = accesses_of(&each.result, self.expected, name.as_deref());
        self.record.thresholds.extend(thresholds_of(&each.result, plan, name.as_deref())?);
        let stage = results::stage(each, plan, &self.record.client)?;
        let mut add =
            |reason: String| self.record.verdict.reasons.push(format!("{of_stage}{reason}"));
        if let Some(stage_failure) = stage_failure {
            add(stage_failure.clone());
            self.record.failure.get_or_insert(stage_failure);
        }
        let traits = plan.work.traits();
        if let (true, Stop::Rows(rows)) = (traits.is_exact, plan.stop)
            && stage.rows < rows
        {
            let (loaded, planned) = (units::count(stage.rows), units::count(rows));
            add(format!("{loaded} of {planned} rows were loaded"));
        }
        if let (ended @ 1.., Some(first)) =
            (stage.session_loop.ended_sessions.len(), stage.session_loop.ended_sessions.first())
        {
            add(format!(
                "an error ended {ended} of the sessions, the first with: {}",
                first.message
            ));
        }
        let without_success = stage.transactions == 0;
        let accepts_none = traits.allows_no_transactions;
        let has_lost_connections = stage.session_loop.reconnects > 0;
        let is_down = !without_success || has_lost_connections && !accepts_none;
        if stage.ended_in_an_outage() && is_down {
            add("the server was not available at the end of the measurement".to_owned());
        }
        if without_success && !accepts_none {
            add("no transaction ended within the measurement".to_owned());
        }
        let mut changed = path_reasons(&accesses);
        let scans = stage.database.as_ref().map_or(&[][..], |database| &database.scans);
        changed.extend(contradictions(&accesses, scans));
        if traits.tolerates_changed_plans {
            let warning =
                |text| Warning { kind: WarningKind::PlanChange, stage: name.clone(), text };
            self.record.verdict.warnings.extend(changed.into_iter().map(warning));
        } else {
            changed.into_iter().for_each(&mut add);
        }
        if let Some(reason) = clock_step(&stage) {
            add(reason);
        }
        if wrong_replies > 0 {
            let what = traits.wrong_replies.unwrap_or("fewer or more rows than requested");
            add(format!("{wrong_replies} replies had {what}"));
        }
        for reason in unlike_planned(&stage, &traits) {
            add(reason);
        }
        self.add_warnings(&stage, name.as_ref());
        self.record.accesses.extend(accesses);
        self.record.stages.push(stage);
        Ok(())
    }

    fn add_shared_dataset(&mut self) {
        let users = self.record.target.dataset.as_ref().map_or(&[][..], |each| &each.other_users);
        if users.is_empty() {
            return;
        }
        let text = format!("others used the dataset: {}", users.join("; "));
        if self.record.plan.strict {
            self.record.verdict.reasons.push(format!("disturbed: {text} (--strict)"));
        }
        self.record.verdict.warnings.push(Warning {
            kind: WarningKind::SharedDataset,
            stage: None,
            text,
        });
    }

    /// Adds what is probably a mistake in the statements of the plan.
    fn add_mistakes(&mut self) {
        let plan = &self.record.plan;
        let texts = plan.work.spec().warnings(plan.protocol);
        let warning = |text| Warning { kind: WarningKind::Statement, stage: None, text };
        self.record.verdict.warnings.extend(texts.into_iter().map(warning));
    }

    fn add_warnings(&mut self, stage: &StageRecord, name: Option<&String>) {
        let plan = &self.record.plan;
        let warnings = warnings(stage, plan);
        if plan.strict {
            let of_stage = name.map_or_else(String::new, |name| format!("{name}: "));
            let reasons = strict_reasons(stage, plan, &warnings);
            self.record
                .verdict
                .reasons
                .extend(reasons.into_iter().map(|reason| format!("{of_stage}{reason}")));
        }
        let of_stage = warnings.into_iter().map(|each| Warning { stage: name.cloned(), ..each });
        self.record.verdict.warnings.extend(of_stage);
    }

    fn add_statement(&mut self, each: MeasuredStatement) {
        if let Some((access, finding)) = &each.finding {
            let record = access_of_statement(&each.name, access, finding);
            if !record.held {
                self.record.verdict.reasons.push(format!(
                    "{}: {}",
                    each.name,
                    unexpected_path(&record)
                ));
            }
            self.record.accesses.push(record);
        }
        let name = self.several.then(|| each.name.clone());
        let plan = &self.record.plan;
        let stage = results::statement(each, plan, &self.record.client);
        for reason in unlike_planned(&stage, &plan.work.traits()) {
            self.record.verdict.reasons.push(format!("{}: {reason}", stage.name));
        }
        self.add_warnings(&stage, name.as_ref());
        self.record.stages.push(stage);
    }
}

/// Returns what makes a stage invalid under `--strict`.
fn strict_reasons(stage: &StageRecord, plan: &Plan, warnings: &[Warning]) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(cpu) = stage.client_cpu.as_ref().filter(|cpu| cpu.limited) {
        let limits: Vec<_> = cpu.limits.iter().map(|limit| limit.text()).collect();
        reasons.push(format!("the client was the bottleneck: {}", limits.join("; ")));
    }
    if stage.rate_verdict() == Some(RateVerdict::NotReached) {
        reasons.push(format!("the rate was not reached: {}", stage.rate_text(plan.schedule)));
    }
    let disturbances = warnings.iter().filter(|warning| warning.kind.is_disturbance());
    reasons.extend(disturbances.map(|warning| format!("disturbed: {}", warning.text)));
    reasons.into_iter().map(|reason| format!("{reason} (--strict)")).collect()
}

/// Returns the reason of the verdict if the server's clock was set during a server-side loop, by enough to
/// change the rate.
fn clock_step(stage: &StageRecord) -> Option<String> {
    let step_s = stage.session_loop.server_clock_step_s?;
    let direction = if step_s > 0.0 { "forward" } else { "back" };
    (step_s.abs() > CLOCK_STEP_SHARE * stage.seconds).then(|| {
        format!(
            "the clock of the server was set {direction} by {:.3} s during the measurement: the loop in the server did not measure {:.3} s",
            step_s.abs(),
            stage.seconds
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_servers_clock_makes_the_run_invalid_if_it_changes_the_rate() {
        let with_step = |step_s: f64| {
            let mut stage = StageRecord { seconds: 60.0, ..StageRecord::default() };
            stage.session_loop.server_clock_step_s = Some(step_s);
            clock_step(&stage)
        };
        assert_eq!((with_step(0.5), with_step(-0.5)), (None, None));
        assert_eq!(
            with_step(-15.0).unwrap(),
            "the clock of the server was set back by 15.000 s during the measurement: the loop in the server did not measure 60.000 s"
        );
        assert!(with_step(15.0).unwrap().contains("set forward by 15.000 s"));
        assert_eq!(clock_step(&StageRecord::default()), None);
    }
}
