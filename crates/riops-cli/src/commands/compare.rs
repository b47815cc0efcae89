//! `riops compare` and `riops runs history`: whether results differ, and where they changed.

use std::process::ExitCode;

use anyhow::Result;
use riops::comparison::{self, Comparison, Group};
use riops::report::{self, Rendered, findings_in};
use riops::stats::{Outcome, Settings};
use riops::store::{RunFilter, Store};
use riops::study::{GateVerdict, history_of};
use riops::summary::RunKey;
use riops::units::format::number_of;
use riops::units::text::json_text;

use super::report::filter;
use crate::args::{Compare, FailOn, FailOnVerdict, History};
use crate::failure::{BREACHED, FAILED, refuse};
use crate::output::Outputs;
use crate::stored;
use crate::ui::Ui;

/// Compares two groups of stored runs.
pub(super) fn compare(options: &Compare, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    let comparison = comparison_of(options, &store)?;
    Outputs::open_answer(&options.answer, ui)?.emit(|form, lines| {
        Ok(match form {
            "json" => Rendered::Data(json_text(&comparison)?),
            form => findings_in(form, &report::comparison(&comparison), lines)?,
        })
    })?;
    let cost = |what: &FailOnVerdict| match what {
        FailOnVerdict::Cost(kind) => Some(*kind),
        FailOnVerdict::Slower | FailOnVerdict::Inconclusive => None,
    };
    let costs: Vec<_> = options.fail_on.iter().filter_map(cost).collect();
    let costlier = comparison.costlier(&costs);
    for cost in &costlier {
        let [a, b] = [cost.a, cost.b].map(|value| cost.figure.text(value.unwrap_or_default()));
        ui.notice(&format!("a transaction costs more in B: {} {a} → {b}", cost.name));
    }
    let fails = !costlier.is_empty()
        || options.fail_on.iter().any(|what| match what {
            FailOnVerdict::Slower => comparison.is_slower(),
            FailOnVerdict::Inconclusive => comparison.is_inconclusive(),
            FailOnVerdict::Cost(_) => false,
        });
    if !fails && options.fail_on == [FailOnVerdict::Slower] && comparison.is_inconclusive() {
        ui.notice(
            "exit code 0 although there is no verdict; --fail-on slower,inconclusive exits with 99",
        );
    }
    Ok(if fails { ExitCode::from(BREACHED) } else { ExitCode::SUCCESS })
}

fn comparison_of(options: &Compare, store: &Store) -> Result<Comparison> {
    let select = |text: &str| -> Result<Vec<RunKey>> {
        let mut keys = store.select_keys(text)?;
        if let Some(workload) = &options.workload {
            keys.retain(|run| run.workload == *workload);
            if keys.is_empty() {
                return refuse(format!("\"{text}\" has no run of the workload \"{workload}\""));
            }
        }
        Ok(keys)
    };
    let (a, b) = (select(&options.a)?, select(&options.b)?);
    comparison::require_comparable(&a, &b)?;
    let mut a = store.records(&[a.as_slice(), &b].concat())?;
    let b = a.split_off(a.len() - b.len());
    let settings = Settings { effect: options.effect.0, ..Settings::default() };
    let group = |name, records| Group { name, records };
    let (a, b) = (group(&options.a, a.as_slice()), group(&options.b, b.as_slice()));
    Ok(comparison::compare(a, b, &settings)?)
}

/// Shows a figure over the stored runs, and where it changed.
pub(super) fn history(options: &History, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    if options.filter.invalid {
        return refuse("--invalid is not supported: only valid runs are comparable over time");
    }
    let filter = filter(&options.filter)?;
    let filter =
        RunFilter { valid: Some(true), unverified: true, limit: Some(options.limit), ..filter };
    let runs = store.list(&filter)?;
    if runs.is_empty() {
        return refuse("no valid run matches; list the runs with `riops runs list`");
    }
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let record = |id: &str| store.select(id).ok()?.into_iter().next();
    let figures = options.figure.as_ref().map_or(&[][..], |choice| &choice.figures);
    let stages = store.stages(&ids)?;
    let mut series = history_of(&runs, &stages, figures, options.effect.0, &record);
    if series.is_empty() && options.figure.is_some() {
        return refuse("no run that matches has this figure");
    }
    for history in &mut series {
        history.explain(&record);
    }
    Outputs::open_answer(&options.answer, ui)?.emit(|form, lines| {
        if form == "json" {
            return Ok(Rendered::Data(json_text(&series)?));
        }
        Ok(Rendered::Text(report::history_text(&series, options.gate, lines)))
    })?;
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
        let slower = series.iter().any(|history| history.verdict == GateVerdict::Slower);
        return Ok(if slower { ExitCode::from(FAILED) } else { ExitCode::SUCCESS });
    }
    let mut outcomes =
        series.iter().flat_map(|history| &history.changes).map(|change| change.outcome);
    let fails = match options.fail_on {
        None => false,
        Some(FailOn::Change) => outcomes.next().is_some(),
        Some(FailOn::Slower) => outcomes.any(|outcome| outcome == Outcome::Slower),
    };
    Ok(if fails { ExitCode::from(BREACHED) } else { ExitCode::SUCCESS })
}
