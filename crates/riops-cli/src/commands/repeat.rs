//! `--repeat`: runs a plan several times and summarizes the runs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use riops::plan::Plan;
use riops::record::{Record, Status};
use riops::report::{self, Rendered};
use riops::units::Span;

use crate::args::run::{RepeatOptions, SETTLE};
use crate::args::{GraphOptions, OutputOptions};
use crate::failure::{FAILED, INTERRUPTED, NOT_VALID, exit_code, refuse};
use crate::measure::Runner;

/// Tag that repeated runs have in common.
const TAG: &str = "repeat";
/// Characters of the value of the tag: the end of a UUID.
const TAG_CHARS: usize = 8;

/// The exit code, and the last record.
pub(super) type Ran = Result<(ExitCode, Option<Record>)>;

/// How often a plan is run, with a pause in between.
pub(super) struct Repeats {
    count: u32,
    settle: Duration,
}

impl Repeats {
    /// The repetitions that were requested; `None` for a single run.
    ///
    /// # Errors
    /// With `--graph` or a file of `--output`, which show one run.
    pub(super) fn of(
        options: &RepeatOptions,
        graph: &GraphOptions,
        outputs: &OutputOptions,
    ) -> Result<Option<Self>> {
        let count = options.repeat.unwrap_or(1);
        if count == 1 {
            return Ok(None);
        }
        if graph.graph.is_some() {
            let text = "--graph shows one run and is not supported with --repeat; use riops runs show --graph";
            return refuse(text);
        }
        if outputs.has_files() {
            let text = "--output FORM=FILE is not supported with --repeat: the file has one run; use riops runs export";
            return refuse(text);
        }
        Ok(Some(Self { count, settle: options.settle.unwrap_or(SETTLE).0 }))
    }

    /// Runs the plan, then prints the summary. Ends early if a run fails or is interrupted. The exit code is that
    /// of the worst run.
    pub(super) fn run(&self, plan: &Plan, runner: &Runner<'_>) -> Ran {
        let mut plan = plan.clone();
        let id = uuid::Uuid::now_v7().simple().to_string();
        let value = id.get(id.len() - TAG_CHARS..).unwrap_or(&id).to_owned();
        let value = plan.tags.entry(TAG.to_owned()).or_insert(value).clone();
        let is_text = runner.forms.shown.name == "text";
        let mut records: Vec<Record> = Vec::new();
        for number in 1..=self.count {
            if number > 1 && !self.settled(runner) {
                break;
            }
            let (record, _, published) = runner.measure(&plan, &|form, record, extras| {
                if is_text {
                    Ok(Rendered::Data(report::repeat_line(record, (number, self.count), extras)))
                } else {
                    (form.print)(record, extras)
                }
            })?;
            published?;
            let is_done = record.status == Status::Done;
            records.push(record);
            if !is_done {
                break;
            }
        }
        let summary =
            crate::ui::text(&report::repeats_document(&records, &format!("{TAG}={value}")));
        if is_text {
            crate::ui::print(&summary)?;
        } else {
            runner.ui.lines(summary.trim_end());
        }
        let is_interrupted = runner.ui.interrupt.requested();
        let code = if is_interrupted { INTERRUPTED } else { worst(&records) };
        Ok((ExitCode::from(code), records.pop()))
    }

    /// Waits until writes in progress and background work have ended. Returns false after an interrupt.
    fn settled(&self, runner: &Runner<'_>) -> bool {
        runner.ui.notice(&format!("pause of {} before the next run", Span(self.settle)));
        runner.ui.interrupt.pause(self.settle)
    }
}

/// The exit code of the worst run: interrupted, failed, invalid, or with a breached threshold.
fn worst(records: &[Record]) -> u8 {
    let severity = |code: u8| match code {
        0 => 0,
        INTERRUPTED => 4,
        FAILED => 3,
        NOT_VALID => 2,
        _ => 1,
    };
    records.iter().map(exit_code).max_by_key(|&code| severity(code)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_has_a_default_and_graphs_need_a_single_run() {
        let settle = Some(Span(Duration::from_secs(1)));
        let mut graph = GraphOptions::default();
        graph.graph = Some("a.png".into());
        let of = |repeat: u32, graph: &GraphOptions| {
            Repeats::of(
                &RepeatOptions { repeat: Some(repeat), settle },
                graph,
                &OutputOptions::default(),
            )
        };
        assert!(of(1, &graph).unwrap().is_none());
        assert_eq!(of(3, &GraphOptions::default()).unwrap().unwrap().count, 3);
        assert!(of(3, &graph).is_err_and(|error| error.to_string().contains("--graph")));
    }
}
