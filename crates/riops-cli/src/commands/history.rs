//! `riops runs history`.

use std::process::ExitCode;

use anyhow::Result;
use riops::experiment::GateVerdict;
use riops::report::{self, HistorySeries};
use riops::stats::Outcome;
use riops::store::RunFilter;
use riops::units::format::number_of;
use riops::units::text::json_text;

use super::listing::filter;
use crate::args::{FailOn, History, Output};
use crate::failure::{BREACHED, FAILED, refuse};
use crate::stored;
use crate::ui::Ui;

/// Shows a figure over the stored runs, and where it changed.
pub(crate) fn run(options: &History, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    if options.filter.invalid {
        return refuse("--invalid is not supported: only valid runs are comparable over time");
    }
    let filter = filter(&options.filter)?;
    let filter = RunFilter { valid: Some(true), limit: Some(options.limit), ..filter };
    let runs = store.list(&filter)?;
    if runs.is_empty() {
        return refuse("no valid run matches; list the runs with `riops runs list`");
    }
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let mut series = report::history(&runs, &store.stages(&ids)?, options.figure, options.effect.0);
    let record = |id: &str| store.select(id).ok()?.into_iter().next();
    for each in &mut series {
        each.explain(&record);
    }
    let text = match options.output {
        Output::Text => crate::ui::text(&report::history_document(&series, options.gate)),
        Output::Json => json_text(&series)?,
    };
    crate::ui::print(&ui.given().complete(&text))?;
    if options.gate {
        let done = runs.iter().filter(|run| run.status == "done");
        let newest = done.map(|run| &run.started_at).max();
        let all = store.list(&RunFilter { valid: None, limit: None, ..filter })?;
        let later = all.iter().filter(|run| Some(&run.started_at) > newest).count();
        if later > 0 {
            let runs = number_of(later as u64, "newer run");
            ui.error(&format!("{runs} not done or not valid: see `riops runs list --invalid`"));
            return Ok(ExitCode::from(BREACHED));
        }
        let slower = series.iter().any(|each| each.verdict == GateVerdict::Slower);
        return Ok(if slower { ExitCode::from(FAILED) } else { ExitCode::SUCCESS });
    }
    let fails = options.fail_on.is_some_and(|what| has_changed(&series, what));
    Ok(if fails { ExitCode::from(BREACHED) } else { ExitCode::SUCCESS })
}

fn has_changed(series: &[HistorySeries], what: FailOn) -> bool {
    let mut outcomes = series.iter().flat_map(|each| &each.changes).map(|change| change.outcome);
    match what {
        FailOn::Change => outcomes.next().is_some(),
        FailOn::Slower => outcomes.any(|outcome| outcome == Outcome::Slower),
    }
}
