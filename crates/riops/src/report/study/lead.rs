//! The result of an experiment in a few sentences.

use std::fmt::Write as _;

use super::super::comparison::{change_interval, change_text, open_text, outcome_text};
use super::super::format::{number_of, to_the_minute};
use super::cells::with_interval;
use super::limits::common_bottleneck;
use super::model::{AbView, StudyKind, StudyView};
use crate::stats::Outcome;

/// Labels with their texts, above the tables.
pub(super) fn head(view: &StudyView) -> Vec<(&'static str, Vec<String>)> {
    let mut lines = Vec::new();
    lines.extend(view.description.clone().map(|text| ("question", vec![text])));
    if !view.environment.is_empty() {
        lines.push(("server", view.environment.clone()));
    }
    if view.kind != StudyKind::Ab {
        let setting =
            |axis: &super::AxisView| format!("{}: {}", axis.name, axis.values.join(" · "));
        let settings: Vec<String> = view.axes.iter().map(setting).collect();
        if !settings.is_empty() {
            lines.push(("settings", settings));
        }
    }
    lines.push(("runs", vec![runs(view)]));
    lines
}

/// `45 of 45 runs, all valid · started 2026-11-23 09:00 UTC`.
fn runs(view: &StudyView) -> String {
    let done = view.runs.usable + view.runs.invalid + view.runs.failed;
    let mut text = match view.planned_runs {
        Some(planned) if planned != done => format!("{done} of {}", number_of(planned, "run")),
        _ => number_of(done, "run"),
    };
    let parts = [(view.runs.invalid, "not valid"), (view.runs.failed, "failed")];
    let bad: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if bad.is_empty() && done > 0 {
        text.push_str(if done == 1 { ", valid" } else { ", all valid" });
    } else if !bad.is_empty() {
        text = format!("{text}: {} valid, {}", view.runs.usable, bad.join(", "));
    }
    format!("{text} · defined {} UTC", to_the_minute(&view.created_at))
}

/// Labels with their texts, below the tables: the conclusion, and what limits it.
pub(super) fn conclusion(view: &StudyView) -> Vec<(&'static str, Vec<String>)> {
    let mut lines = Vec::new();
    if view.kind == StudyKind::Saturation {
        lines.extend(super::saturation::words(view));
    } else {
        lines.extend(best(view).map(|text| ("best", vec![text])));
        lines.extend(verdict(view).map(|text| ("verdict", vec![text])));
    }
    lines.extend(view.ab.as_ref().map(|test| ("test", vec![test_text(test)])));
    lines.extend(common_bottleneck(view).map(|word| {
        let scope = if view.cells.len() > 1 { ", in all cells" } else { "" };
        ("bottleneck", vec![format!("{word}{scope}")])
    }));
    let failures = failures(view);
    if !failures.is_empty() {
        lines.push(("not usable", failures));
    }
    if !view.notes.is_empty() {
        lines.push(("note", view.notes.clone()));
    }
    lines
}

/// The state of an A/B test.
fn test_text(test: &AbView) -> String {
    let mut words = test.reason.clone();
    if let (Some(look), Some(looks_max), Some(level)) = (test.look, test.looks_max, test.level) {
        // Writing to a String cannot fail.
        let _ = write!(words, " · look {look} of {looks_max}");
        if level > 0.0 {
            let _ = write!(words, ", significance level {level:.4}");
        }
    }
    words
}

/// The best cell with its main figure.
fn best(view: &StudyView) -> Option<String> {
    if view.kind == StudyKind::Ab {
        return None;
    }
    let cell = view.cells.get(view.best?)?;
    let main = view.main_of(&cell.group)?;
    let name = main.figure.heading();
    let value = if main.figure.is_percentile() {
        format!("{name} {}", with_interval(main))
    } else {
        with_interval(main).replacen(
            &main.figure.text(main.estimate.value),
            &format!("{} {name}", main.figure.text(main.estimate.value)),
            1,
        )
    };
    Some(format!("{}: {value}", cell.name))
}

/// The verdict on the main figure of the improvement.
fn verdict(view: &StudyView) -> Option<String> {
    let improvement = view.improvement.as_ref()?;
    let name = |at: usize| view.cells.get(at).map(|cell| cell.name.as_str());
    let (from, to) = (name(improvement.from)?, name(improvement.to)?);
    let row = improvement.rows.iter().find(|row| row.figure == view.main)?;
    let against = row.against.as_ref()?;
    let interval = against
        .interval
        .map(|interval| format!(" ({})", change_interval(interval)))
        .unwrap_or_default();
    let change = format!("{} {}{interval}", row.figure.heading(), change_text(against.ratio));
    Some(match against.outcome? {
        outcome @ (Outcome::Faster | Outcome::Slower) => {
            format!("{to} is {} than {from}: {change}", outcome_text(outcome))
        }
        Outcome::Equivalent => format!("{to} and {from} are equivalent: {change}"),
        Outcome::Inconclusive => {
            let open = open_text(row.figure.heading(), against.interval, against.p_adjusted);
            let is_over = view.ab.as_ref().is_some_and(|test| test.verdict.is_some());
            match against.runs_needed {
                Some(needed) => {
                    let more = number_of(needed as u64, "more run");
                    format!("no conclusion yet: {more} per combination are needed")
                }
                None if is_over => format!("inconclusive: {open}"),
                None => format!("inconclusive so far: {open}; more runs narrow the interval"),
            }
        }
    })
}

/// Each reason why runs are not usable, with its cell.
fn failures(view: &StudyView) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &view.cells {
        let groups = cell
            .levels
            .iter()
            .map(|level| (format!("{} {}", cell.name, level.level), &level.group));
        let own = cell.levels.is_empty().then_some((cell.name.clone(), &cell.group));
        for (name, group) in own.into_iter().chain(groups) {
            for reason in &group.reasons {
                let count = if reason.runs > 1 {
                    format!(" ({} runs)", reason.runs)
                } else {
                    String::new()
                };
                lines.push(format!("{name}: {}{count}", reason.text));
            }
        }
    }
    lines
}
