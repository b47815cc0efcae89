//! What a search found, in sentences.

use std::fmt::Write as _;

use crate::experiment::Level;
use crate::experiment::Saturation;
use crate::experiment::evaluation::{CellView, FigureView, StudyView};
use crate::experiment::search::{rate, sessions};
use crate::report::subjects::experiment::cells::with_interval;
use crate::report::subjects::experiment::saturation::tables::{fitted_interval, sessions};
use crate::stats::{FittedValue, Interval};
use crate::units::format::{number_of, rate};

/// Returns labels with their texts: for each cell what was found, and what limits it.
pub(in crate::report::subjects::experiment) fn words(
    view: &StudyView,
) -> Vec<(&'static str, Vec<String>)> {
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
            for text in of_law(saturation, of) {
                add("law", format!("{name}{text}"));
            }
            if !saturation.thresholds.is_empty() {
                add("threshold", format!("{name}{}", threshold_text(saturation, of)));
            }
            for text in limits(of) {
                add("caution", format!("{name}{text}"));
            }
        }
        let closed = saturation.sessions.as_ref();
        let closed = closed.and_then(|of| closed_loop(view, cell, of.saturation));
        if let Some(text) = ladder_text(saturation, closed.map(|found| found.estimate.value)) {
            add("open loop", format!("{name}{text}"));
        }
        if let Some(rate) = &saturation.rate {
            add("rate", format!("{name}{}", rate_text(saturation, rate)));
        }
        if saturation.ended_early {
            let text = "ended early: too many runs failed or are not valid";
            add("caution", format!("{name}{text}"));
        }
    }
    found
}

fn saturation_text(
    view: &StudyView,
    cell: &CellView,
    saturation: &Saturation,
    of: &sessions::Conclusion,
) -> String {
    let nodes = saturation.nodes.filter(|&nodes| nodes > 1).map_or_else(String::new, |nodes| {
        let each = f64::from(of.saturation) / f64::from(nodes);
        format!(" ({} per node on {nodes} nodes)", sessions(each))
    });
    let reached = closed_loop(view, cell, of.saturation);
    let reached = reached.map(|found| format!(", {} TPS", with_interval(found)));
    let mut text = number_of(of.saturation.into(), "session") + &nodes;
    text.push_str(&reached.unwrap_or_default());
    if of.best == of.saturation {
        text.push_str(", the highest throughput that was measured");
    } else if let Some(best) = closed_loop(view, cell, of.best) {
        let best = best.text();
        // Writing to a String cannot fail.
        let _ = write!(text, ", at least 95% of the highest: {best} TPS at {} sessions", of.best);
    }
    text
}

/// The throughput of the closed loop with this number of sessions.
fn closed_loop<'a>(view: &StudyView, cell: &'a CellView, sessions: u32) -> Option<&'a FigureView> {
    let level = cell.levels.iter().find(|level| level.level == Level::Sessions(sessions))?;
    level.group.figure(view.main_stage, view.main)
}

fn of_law(saturation: &Saturation, of: &sessions::Conclusion) -> Vec<String> {
    let Some(law) = &of.law else {
        return of.law_error.clone().into_iter().collect();
    };
    if !law.residuals.is_ok() {
        return vec![format!("{}; its figures are not reliable", law.residuals)];
    }
    let nodes = saturation.nodes.filter(|&nodes| nodes > 1);
    let figure = |name: &str, found: &FittedValue| {
        let each = nodes.map_or_else(String::new, |nodes| {
            format!(", {} per node", sessions(found.value / f64::from(nodes)))
        });
        let note = if found.value > law.largest_n { ", extrapolated" } else { "" };
        let interval = fitted_interval(found, sessions);
        format!("{name} {}{each} ({interval}{note})", sessions(found.value))
    };
    let fitted = [("knee", &law.knee), ("N90", &law.n90), ("peak", &law.peak_at)];
    let fitted = fitted.into_iter().filter_map(|(name, found)| Some(figure(name, found.as_ref()?)));
    let no_peak = law.peak_at.is_none().then(|| "no peak".to_owned());
    vec![
        fitted.chain(no_peak).collect::<Vec<_>>().join(" · "),
        format!("{}: reliable up to {:.0} sessions", law.residuals, law.largest_n),
    ]
}

fn threshold_text(saturation: &Saturation, of: &sessions::Conclusion) -> String {
    let thresholds = saturation.thresholds.join(" and ");
    match of.most_sessions_within_threshold {
        Some(most) => format!("at most {} meet {thresholds}", number_of(most.into(), "session")),
        None => format!("no number of sessions meets {thresholds}"),
    }
}

fn limits(of: &sessions::Conclusion) -> Vec<String> {
    let mut texts = Vec::new();
    if of.ends_at_last {
        texts.push("the highest level is the best: throughput may still grow beyond it".to_owned());
    }
    if let Some(failing) = of.failing {
        let failing = number_of(failing.into(), "session");
        texts.push(format!("the runs with {failing} failed or are not valid; more were not tried"));
    }
    if of.is_incomplete {
        texts.push("the search ended at its maximum number of runs".to_owned());
    }
    texts
}

/// The highest sustained step of the ladder, and the first that was not. A rate that the closed loop reached is not
/// beyond the server: its arrivals are irregular, or their response times miss a threshold.
fn ladder_text(saturation: &Saturation, closed_per_s: Option<f64>) -> Option<String> {
    let is_met =
        |result: &&crate::experiment::search::rate::RateResult| result.sustained == result.runs;
    let best = saturation
        .ladder
        .iter()
        .filter(is_met)
        .max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let missed = saturation.ladder.iter().find(|result| !is_met(result));
    let missed_text = |per_s: f64| match closed_per_s.filter(|closed| per_s <= *closed) {
        Some(closed) => format!(
            "at {} TPS, which are below the {} TPS of the closed loop, the backlog grew or a threshold was missed",
            rate(per_s),
            rate(closed)
        ),
        None => format!("{} TPS were not sustained", rate(per_s)),
    };
    match (best, missed) {
        (None, None) => None,
        (Some(best), None) => Some(format!(
            "sustained up to {} TPS, the highest rate that was tried",
            rate(best.rate_per_s)
        )),
        (Some(best), Some(missed)) => Some(format!(
            "sustained up to {} TPS; {}",
            rate(best.rate_per_s),
            missed_text(missed.rate_per_s)
        )),
        (None, Some(missed)) => Some(missed_text(missed.rate_per_s)),
    }
}

fn rate_text(saturation: &Saturation, found: &rate::Conclusion) -> String {
    let thresholds = if saturation.thresholds.is_empty() {
        String::new()
    } else {
        format!(" within {}", saturation.thresholds.join(" and "))
    };
    let Interval { low, high } = found.boundary_per_s;
    let beyond =
        format!("; the boundary is between {} and {} TPS (90% interval)", rate(low), rate(high));
    let with = saturation.rate_sessions.map_or_else(String::new, |sessions| {
        format!(" with {}", number_of(sessions.into(), "session"))
    });
    // Near the boundary, a rate is sustained in one run and not in the next.
    let share = |per_s: f64| {
        let result = found.rates.iter().find(|result| result.rate_per_s == per_s);
        result.map_or_else(String::new, |result| {
            format!(" in {} of {}", result.sustained, number_of(result.runs.into(), "run"))
        })
    };
    let text = match found.rate_per_s {
        Some(per_s) => {
            let share = share(per_s);
            format!("{} TPS are sustained{with}{thresholds}{share}{beyond}", rate(per_s))
        }
        None => format!("no rate was sustained{thresholds}{beyond}"),
    };
    if found.is_incomplete { format!("{text} (the search is not complete)") } else { text }
}
