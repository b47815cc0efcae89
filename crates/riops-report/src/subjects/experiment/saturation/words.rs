//! What a search found, in sentences.

use indexmap::IndexMap;

use crate::effect::change_text;
use crate::subjects::experiment::cells::with_interval;
use crate::subjects::experiment::saturation::tables::{fitted_interval, sessions};
use riops_model::figure::Figure;
use riops_model::stats::FittedValue;
use riops_model::study::evaluation::{CellView, FigureView, LevelView, StudyView};
use riops_model::study::search::{rate, sessions};
use riops_model::study::{Level, Saturation};
use riops_model::units::format::{joined, number_of, rate};

/// Returns labels with their texts: for each cell what was found, and what limits it.
pub(in crate::subjects::experiment) fn words(
    view: &StudyView,
) -> IndexMap<&'static str, Vec<String>> {
    let mut texts: IndexMap<&'static str, Vec<String>> = IndexMap::new();
    let mut add = |label, text| texts.entry(label).or_default().push(text);
    for cell in &view.cells {
        let Some(saturation) = &cell.saturation else {
            continue;
        };
        let name = if view.cells.len() > 1 { format!("{}: ", cell.name) } else { String::new() };
        if let Some(conclusion) = &saturation.sessions {
            add(
                "saturation",
                format!("{name}{}", saturation_text(view, cell, saturation, conclusion)),
            );
            if let Some(text) = beyond(view, cell, conclusion) {
                add("beyond", format!("{name}{text}"));
            }
            for text in of_law(saturation, conclusion) {
                add("law", format!("{name}{text}"));
            }
            if !saturation.thresholds.is_empty() {
                add("threshold", format!("{name}{}", threshold_text(saturation, conclusion)));
            }
            for text in limits(conclusion, view.is_unfinished) {
                add("caution", format!("{name}{text}"));
            }
        }
        let closed = saturation.sessions.as_ref();
        let closed = closed.and_then(|conclusion| closed_loop(view, cell, conclusion.saturation));
        if let Some(text) = ladder_text(saturation, closed.map(|figure| figure.estimate.value)) {
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
    texts
}

fn saturation_text(
    view: &StudyView,
    cell: &CellView,
    saturation: &Saturation,
    conclusion: &sessions::Conclusion,
) -> String {
    let nodes = saturation.nodes.filter(|&nodes| nodes > 1).map_or_else(String::new, |nodes| {
        let per_node = f64::from(conclusion.saturation) / f64::from(nodes);
        format!(" ({} per node on {nodes} nodes)", sessions(per_node))
    });
    let reached = closed_loop(view, cell, conclusion.saturation);
    let reached =
        reached.map_or_else(String::new, |figure| format!(", {} TPS", with_interval(figure)));
    let best = if conclusion.best == conclusion.saturation {
        ", the highest throughput that was measured".to_owned()
    } else {
        closed_loop(view, cell, conclusion.best).map_or_else(String::new, |best| {
            let (tps, sessions) = (best.text(), conclusion.best);
            format!(", at least 95% of the plateau around {sessions} sessions: {tps} TPS")
        })
    };
    let range = conclusion.saturation_range.filter(|range| range.low != range.high);
    let range = range
        .map_or_else(String::new, |range| format!(" (between {} and {})", range.low, range.high));
    let pool = saturation.pool.map_or_else(String::new, |pool| {
        format!(" through {} of the pooler", number_of(pool, "connection"))
    });
    let sessions = number_of(conclusion.saturation.into(), "session");
    format!("{sessions}{range}{pool}{nodes}{reached}{best}")
}

/// The levels of the closed loop with their throughputs, ascending.
fn closed_levels<'a>(
    view: &'a StudyView,
    cell: &'a CellView,
) -> impl Iterator<Item = (u32, &'a LevelView, &'a FigureView)> {
    cell.levels.iter().filter_map(|level| match level.level {
        Level::Sessions(sessions) => {
            Some((sessions, level, level.group.figure(view.main_stage, view.main)?))
        }
        Level::Rate { .. } => None,
    })
}

/// The throughput and the latency with the most sessions, if these are beyond the plateau.
fn beyond(view: &StudyView, cell: &CellView, conclusion: &sessions::Conclusion) -> Option<String> {
    let (most, level, figure) = closed_levels(view, cell).last()?;
    let at = closed_levels(view, cell).find(|(sessions, ..)| *sessions == conclusion.saturation);
    let (_, saturated, reached) = at?;
    if most <= conclusion.best {
        return None;
    }
    let change = change_text(figure.estimate.value / reached.estimate.value);
    let p99 = |level: &LevelView| Some(level.group.figure(view.main_stage, Figure::P99Us)?.text());
    let latency = p99(saturated).zip(p99(level));
    let latency =
        latency.map_or_else(String::new, |(before, now)| format!(", p99 {before} → {now}"));
    Some(format!(
        "{}: {} TPS ({change}){latency}",
        number_of(most.into(), "session"),
        figure.text()
    ))
}

/// The throughput of the closed loop with this number of sessions.
fn closed_loop<'a>(view: &StudyView, cell: &'a CellView, sessions: u32) -> Option<&'a FigureView> {
    let level = cell.levels.iter().find(|level| level.level == Level::Sessions(sessions))?;
    level.group.figure(view.main_stage, view.main)
}

fn of_law(saturation: &Saturation, conclusion: &sessions::Conclusion) -> Vec<String> {
    let Some(law) = &conclusion.law else {
        return conclusion.law_error.clone().into_iter().collect();
    };
    if !law.residuals.is_ok() {
        return vec![format!("{}; its figures are not reliable", law.residuals)];
    }
    let nodes = saturation.nodes.filter(|&nodes| nodes > 1);
    let figure = |name: &str, parameter: &FittedValue| {
        let per_node = nodes.map_or_else(String::new, |nodes| {
            format!(", {} per node", sessions(parameter.value / f64::from(nodes)))
        });
        let note = if parameter.value > law.largest_n { ", extrapolated" } else { "" };
        let interval = fitted_interval(parameter, sessions);
        format!("{name} {}{per_node} ({interval}{note})", sessions(parameter.value))
    };
    let fitted = [("knee", &law.knee), ("N90", &law.n90), ("peak", &law.peak_at)];
    let fitted =
        fitted.into_iter().filter_map(|(name, parameter)| Some(figure(name, parameter.as_ref()?)));
    let no_peak = law.peak_at.is_none().then(|| "no peak".to_owned());
    vec![
        joined(fitted.chain(no_peak), " · "),
        format!("{}: reliable up to {:.0} sessions", law.residuals, law.largest_n),
    ]
}

fn threshold_text(saturation: &Saturation, conclusion: &sessions::Conclusion) -> String {
    let thresholds = saturation.thresholds.join(" and ");
    match conclusion.most_sessions_within_threshold {
        Some(most) => format!("at most {} meet {thresholds}", number_of(most.into(), "session")),
        None => format!("no number of sessions meets {thresholds}"),
    }
}

fn limits(conclusion: &sessions::Conclusion, is_unfinished: bool) -> Vec<String> {
    let mut texts = Vec::new();
    if conclusion.ends_at_last {
        texts.push("the highest level is the best: throughput may still grow beyond it".to_owned());
    }
    if let Some(failing) = conclusion.failing {
        let failing = number_of(failing.into(), "session");
        texts.push(format!("the runs with {failing} failed or are not valid; more were not tried"));
    }
    // A search that was interrupted has not reached its maximum.
    if conclusion.is_incomplete && !is_unfinished {
        texts.push("the search ended at its maximum number of runs".to_owned());
    }
    texts
}

/// The highest sustained step of the ladder, and the first that was not. A rate that the closed loop reached is not
/// beyond the server: its arrivals are irregular, or their response times miss a threshold.
fn ladder_text(saturation: &Saturation, closed_per_s: Option<f64>) -> Option<String> {
    let steps = |is_met: bool| {
        let ladder = saturation.ladder.iter();
        ladder
            .filter(move |step| (step.sustained == step.runs) == is_met)
            .map(|step| step.rate_per_s)
    };
    let best = steps(true).max_by(f64::total_cmp);
    let best = best.map(|per_s| format!("sustained up to {} TPS", rate(per_s)));
    let missed = steps(false).next().map(|missed| {
        let per_s = rate(missed);
        match closed_per_s.filter(|closed| missed <= *closed).map(rate) {
            Some(closed) => format!(
                "at {per_s} TPS, which are below the {closed} TPS of the closed loop, the backlog grew or a threshold was missed"
            ),
            None => format!("{per_s} TPS were not sustained"),
        }
    });
    match (best, missed) {
        (Some(best), None) => Some(format!("{best}, the highest rate that was tried")),
        (Some(best), Some(missed)) => Some(format!("{best}; {missed}")),
        (None, missed) => missed,
    }
}

fn rate_text(saturation: &Saturation, conclusion: &rate::Conclusion) -> String {
    let thresholds = match saturation.thresholds.as_slice() {
        [] => String::new(),
        thresholds => format!(" within {}", thresholds.join(" and ")),
    };
    let [low, high] = [conclusion.boundary_per_s.low, conclusion.boundary_per_s.high].map(rate);
    let beyond = format!("; the boundary is between {low} and {high} TPS (90% interval)");
    let with = saturation.rate_sessions.map_or_else(String::new, |sessions| {
        format!(" with {}", number_of(sessions.into(), "session"))
    });
    // Near the boundary, a rate is sustained in one run and not in the next.
    let share = |per_s: f64| {
        let result = conclusion.rates.iter().find(|result| result.rate_per_s == per_s);
        result.map_or_else(String::new, |result| {
            format!(" in {} of {}", result.sustained, number_of(result.runs.into(), "run"))
        })
    };
    let text = match conclusion.rate_per_s {
        Some(per_s) => {
            format!("{} TPS are sustained{with}{thresholds}{}", rate(per_s), share(per_s))
        }
        None => format!("no rate was sustained{thresholds}"),
    };
    let incomplete = if conclusion.is_incomplete { " (the search is not complete)" } else { "" };
    format!("{text}{beyond}{incomplete}")
}
