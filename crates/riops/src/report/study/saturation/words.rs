//! What a search found, in sentences.

use std::fmt::Write as _;

use super::super::model::{CellView, SaturationView, SessionsView, StudyView};
use super::tables::{fitted_interval, sessions};
use crate::experiment::Level;
use crate::experiment::search::rate::Conclusion;
use crate::report::format::{number_of, rate};
use crate::stats::Interval;

/// Returns labels with their texts: for each cell what was found, and what limits it.
pub(in crate::report::study) fn words(view: &StudyView) -> Vec<(&'static str, Vec<String>)> {
    let mut found: Vec<(&'static str, Vec<String>)> = Vec::new();
    let mut add = |label, text| match found.iter_mut().find(|(known, _)| *known == label) {
        Some((_, texts)) => texts.push(text),
        None => found.push((label, vec![text])),
    };
    for cell in &view.cells {
        let Some(saturation) = &cell.saturation else {
            continue;
        };
        let name = if view.cells.len() > 1 { format!("{}: ", cell.name) } else { String::new() };
        if let Some(of) = &saturation.sessions {
            add("saturation", format!("{name}{}", saturation_text(view, cell, saturation, of)));
            for text in of_law(of) {
                add("law", format!("{name}{text}"));
            }
            if !saturation.thresholds.is_empty() {
                add("threshold", format!("{name}{}", threshold_text(saturation, of)));
            }
            for text in limits(of) {
                add("caution", format!("{name}{text}"));
            }
        }
        if let Some(text) = ladder_text(saturation) {
            add("open loop", format!("{name}{text}"));
        }
        if let Some(rate) = &saturation.rate {
            add("rate", format!("{name}{}", rate_text(saturation, rate)));
        }
    }
    found
}

fn saturation_text(
    view: &StudyView,
    cell: &CellView,
    saturation: &SaturationView,
    of: &SessionsView,
) -> String {
    let at = |sessions: u32| {
        let level = cell.levels.iter().find(|level| level.level == Level::Sessions(sessions))?;
        let main = level.group.figure(view.main_stage, view.main)?;
        Some(format!("{} TPS", main.figure.text(main.estimate.value)))
    };
    let nodes = saturation.nodes.filter(|&nodes| nodes > 1).map_or_else(String::new, |nodes| {
        let each = f64::from(of.saturation) / f64::from(nodes);
        format!(" ({} per node on {nodes} nodes)", sessions(each))
    });
    let reached = at(of.saturation).map(|text| format!(", {text}")).unwrap_or_default();
    let mut text = format!("{}{nodes}{reached}", number_of(of.saturation.into(), "session"));
    if of.best == of.saturation {
        text.push_str(", the highest throughput that was measured");
    } else if let Some(best) = at(of.best) {
        // Writing to a String cannot fail.
        let _ = write!(text, ", at least 95% of the highest: {best} at {} sessions", of.best);
    }
    text
}

fn of_law(of: &SessionsView) -> Vec<String> {
    let Some(law) = &of.law else {
        return of.law_error.clone().into_iter().collect();
    };
    let mut parts = Vec::new();
    let extrapolated = |is: bool| if is { ", extrapolated" } else { "" };
    if let Some(knee) = &law.knee {
        let note = extrapolated(law.knee_is_extrapolated());
        parts.push(format!(
            "knee {} ({}{note})",
            sessions(knee.value),
            fitted_interval(knee, sessions)
        ));
    }
    if let Some(n90) = &law.n90 {
        let note = extrapolated(n90.value > law.largest_n);
        parts.push(format!(
            "N90 {} ({}{note})",
            sessions(n90.value),
            fitted_interval(n90, sessions)
        ));
    }
    match &law.peak_at {
        Some(peak) => {
            let note = extrapolated(law.peak_is_extrapolated());
            parts.push(format!(
                "peak {} ({}{note})",
                sessions(peak.value),
                fitted_interval(peak, sessions)
            ));
        }
        None => parts.push("no peak".to_owned()),
    }
    let mut lines = vec![parts.join(" · ")];
    if !law.residuals.is_ok() {
        lines.push(format!("{}; do not rely on the fitted figures", law.residuals));
    }
    lines
}

fn threshold_text(saturation: &SaturationView, of: &SessionsView) -> String {
    let thresholds = saturation.thresholds.join(" and ");
    match of.most_sessions_within_threshold {
        Some(most) => format!("at most {} meet {thresholds}", number_of(most.into(), "session")),
        None => format!("no number of sessions meets {thresholds}"),
    }
}

fn limits(of: &SessionsView) -> Vec<String> {
    let mut texts = Vec::new();
    if of.ends_at_last {
        texts.push("the highest level is the best: throughput may still grow beyond it".to_owned());
    }
    if of.is_incomplete {
        texts.push("the search ended at its maximum number of runs".to_owned());
    }
    texts
}

/// The highest sustained step of the ladder, and the first that was not.
fn ladder_text(saturation: &SaturationView) -> Option<String> {
    let is_met =
        |result: &&crate::experiment::search::rate::RateResult| result.sustained == result.runs;
    let best = saturation
        .ladder
        .iter()
        .filter(is_met)
        .max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let missed = saturation.ladder.iter().find(|result| !is_met(result));
    match (best, missed) {
        (None, None) => None,
        (Some(best), None) => Some(format!(
            "sustained up to {} TPS, the highest rate that was tried",
            rate(best.rate_per_s)
        )),
        (Some(best), Some(missed)) => Some(format!(
            "sustained up to {} TPS, not {} TPS",
            rate(best.rate_per_s),
            rate(missed.rate_per_s)
        )),
        (None, Some(missed)) => Some(format!("{} TPS were not sustained", rate(missed.rate_per_s))),
    }
}

fn rate_text(saturation: &SaturationView, found: &Conclusion) -> String {
    let thresholds = if saturation.thresholds.is_empty() {
        String::new()
    } else {
        format!(" within {}", saturation.thresholds.join(" and "))
    };
    let Interval { low, high } = found.boundary_per_s;
    let beyond =
        format!("; the boundary is between {} and {} TPS (90% interval)", rate(low), rate(high));
    let text = match found.rate_per_s {
        Some(per_s) => format!("{} TPS are sustained{thresholds}{beyond}", rate(per_s)),
        None => format!("no rate was sustained{thresholds}{beyond}"),
    };
    if found.is_incomplete { format!("{text} (the search is not complete)") } else { text }
}
