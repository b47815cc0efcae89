//! The report of a `load` or `point` run in the format of ysql-bench.

use std::fmt::Write as _;

use crate::form::{Form, Rendered};
use riops_model::plan::{LoadRun, Method, PointRun, Protocol, Spec as _, WorkPlan};
use riops_model::record::{Record, StageRecord};
use riops_model::units::text::one_line;

/// Only ysql-bench's report.
pub(crate) const FORM: Form = Form {
    has_verdict: false,
    ..Form::new(
        "ysql-bench",
        |plan| plan.work.get::<LoadRun>().is_some() || plan.work.get::<PointRun>().is_some(),
        |record, extras| {
            let stages: String =
                record.stages.iter().map(|stage| stage_text(record, stage)).collect();
            Ok(Rendered::Data(stages + extras.histogram_below(record).trim_start()))
        },
    )
};

/// The operation, and whether its changes are non-transactional.
fn operation(work: &WorkPlan, stage: &StageRecord) -> (String, bool) {
    match (work.get::<LoadRun>(), work.get::<PointRun>()) {
        (Some(load), _) => {
            let method = load
                .stages()
                .into_iter()
                .find(|part| load.methods.len() < 2 || stage.name.contains(part.method.as_str()));
            let method = method.map_or("load", |part| match part.method {
                Method::Copy => "copy_mem",
                other => other.as_str(),
            });
            (method.replace('-', "_"), load.non_transactional)
        }
        (None, Some(point)) => (point.op.to_string(), point.non_transactional),
        (None, None) => (stage.name.clone(), false),
    }
}

fn stage_text(record: &Record, stage: &StageRecord) -> String {
    let plan = &record.plan;
    let (name, non_transactional) = operation(&plan.work, stage);
    let is_load = plan.work.get::<LoadRun>().is_some();
    let (unit, total) = if is_load { ("row", stage.rows) } else { ("query", stage.statements) };
    let units = if is_load { "rows" } else { "queries" };
    let seconds = stage.seconds.max(f64::MIN_POSITIVE);
    let database_s = stage.database_s.unwrap_or(0.0);
    let mut text = format!(">> {}\n", one_line(&name));
    let mut line = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<16}:{value}");
    };
    line("wallclock time", &format!("{:>13.6} sec", stage.seconds));
    let share = 100.0 * database_s / seconds;
    line("tot db time", &format!("{database_s:>13.6} sec {share:.2} %"));
    line(
        &format!("{units} per thread"),
        &format!("{:>13}", total / u64::from(stage.sessions.max(1))),
    );
    line("threads", &format!("{:>13}", stage.sessions));
    if is_load {
        let batch = stage.session_loop.batch;
        line("batch", &batch.map_or_else(|| " -".to_owned(), |batch| format!("{batch:>13}")));
    }
    line(&format!("total {units}"), &format!("{total:>13}"));
    line("nontransactional", &format!("{non_transactional:>13}"));
    line("no_prepared", &format!("{:>13}", plan.protocol != Protocol::Prepared));
    let each_us = |seconds: f64| seconds * 1e6 / total.max(1) as f64;
    line(&format!("wallclock tm/{unit}"), &format!("{:>13.6} us", each_us(stage.seconds)));
    line(&format!("db tm/{unit}"), &format!("{:>13.6} us", each_us(database_s)));
    if let Some(bytes) = stage.session_loop.row_bytes {
        line("row size", &format!("{bytes:>13} bytes"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extras, Scale, example_load, example_record};

    #[test]
    fn the_block_has_the_lines_of_ysql_bench() {
        let record = example_load(&[Method::Insert]);
        let extras = Extras::new("", 80).with_histogram(Some((Scale::Linear, 3)));
        insta::assert_snapshot!((FORM.print)(&record, &extras).unwrap().into_text());
        let mut record = example_record();
        record.plan.work = PointRun { op: "update".parse().unwrap(), ..PointRun::default() }.into();
        record.plan.protocol = Protocol::Extended;
        insta::assert_snapshot!((FORM.print)(&record, &Extras::new("", 80)).unwrap().into_text());
    }
}
