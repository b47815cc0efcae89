//! What to try next.

use super::model::{Limit, Summary};
use crate::plan::{CbcRun, WorkPlan};
use crate::record::Status;

pub(super) fn next_steps(summary: &Summary<'_>) -> Vec<String> {
    let plan = &summary.record.plan;
    // On another database than riops's own, the hint without it would measure the wrong one.
    let target = if summary.record.target.embedded { "" } else { " -d …" };
    if !summary.record.verdict.valid {
        let hint = if summary.stage.transactions == 0 {
            "nothing was measured; run again"
        } else {
            "the figures above are not to be used; mend the reason and run again"
        };
        let mut hints = vec![hint.to_owned()];
        if matches!(plan.work, WorkPlan::Load(_)) {
            hints.push(next_step(&format!("riops verify load{target}"), "what is in the table"));
        }
        return hints;
    }
    let workload = &summary.record.workload;
    if let WorkPlan::Cbc(run) = &plan.work {
        return cbc_steps(summary, run, target);
    }
    let mut hints = Vec::new();
    let same = |option: &str| format!("riops run {workload}{target} {option}");
    match (&plan.work, summary.limit()) {
        // A load would need its options and --drop once more.
        (WorkPlan::Load(_), _) => {}
        (_, Limit::Waiting) => {
            hints.push((same(&format!("-c {}", plan.sessions * 4)), "more sessions"));
        }
        (_, Limit::Client) => {
            hints.push((same(&format!("-j {}", plan.workers * 2)), "more workers"));
        }
        _ => {}
    }
    match &plan.work {
        WorkPlan::Rows(rows) => {
            if !rows.updates() {
                hints.push((same("--update-percent 20"), "reads and writes"));
            }
            if rows.batch > 1 && rows.stages().len() == 1 {
                hints.push((same("--batch 1"), "one row a statement: the cost of a call"));
            }
        }
        WorkPlan::Load(_) => {
            hints.push((format!("riops run point{target}"), "select rows of it by their key"));
            hints.push((format!("riops verify load{target}"), "prove that it is still whole"));
        }
        WorkPlan::Oltp(run) => {
            if !run.pipeline && run.is_explicit() {
                let why = "the statements of a transaction sent together";
                hints.push((same("--pipeline"), why));
            }
        }
        WorkPlan::Point(run) => {
            if !run.updates() {
                hints.push((same("--op mixed:90/10"), "selects and updates"));
            }
        }
        WorkPlan::Cbc(_) => {}
    }
    hints.push(("riops runs list".to_owned(), "all runs that are kept"));
    hints.into_iter().map(|(command, why)| next_step(&command, why)).collect()
}

fn cbc_steps(summary: &Summary<'_>, run: &CbcRun, target: &str) -> Vec<String> {
    let record = summary.record;
    if record.status != Status::Done {
        return Vec::new();
    }
    let mut hints = Vec::new();
    let device = record.target.storage.as_ref().and_then(|storage| storage.device.as_ref());
    if device.is_some() && record.target.disk_limit.is_none() {
        hints.push((format!("riops doctor --disk{target}"), "what the device can do at most"));
    }
    let ram_gb = record.client.machine.memory_bytes as f64 / 1e9;
    if record.client.shares_machine_with_server && run.size_gb < ram_gb {
        let what = "three times the memory, where the page cache no longer helps";
        hints.push((format!("riops run cbc{target} --size auto"), what));
    }
    if run.query_sessions.is_empty() {
        let command = format!(
            "riops run cbc{target} --size {} --query-sessions 1,2,4,8 --query-duration 30s",
            run.size_gb
        );
        hints.push((command, "the selects by several sessions at once"));
    }
    hints.iter().map(|(command, what)| next_step(command, what)).collect()
}

fn next_step(command: &str, why: &str) -> String {
    format!("{command:<38} ({why})")
}
