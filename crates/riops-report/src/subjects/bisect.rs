//! The result of a bisection: the commit, the path to it, and a chart of the path.

use crate::answer::add_conclusions;
use crate::chart::{
    Axis, AxisScale, Chart, Content, Estimated, PointSeries, PointStyle, Unit, rounded,
};
use crate::document::{Findings, Tone};
use crate::effect::{IntervalColumn, change_text};
use crate::table::{Table, number_column, text_column};
use riops_model::stats::RatioInterval;
use riops_model::study::{BisectCommit, BisectStep, BisectView, GateVerdict};
use riops_model::units::format::{number_of, percent, short_id};

/// Characters of the name of a commit.
const COMMIT_CHARS: usize = 12;

/// Returns the document of the result.
pub fn bisection(view: &BisectView) -> Findings {
    let short = |commit: &str| commit.get(..COMMIT_CHARS).unwrap_or(commit).to_owned();
    let (good, bad) = (short(&view.good), short(&view.bad));
    let mut findings = Findings::new(format!("riops bisect · {good} to {bad}"));
    findings.conditions.line("commits", number_of(view.commits as u64, "commit"));
    let error = format!(
        "each commit is compared with {good}; at most a {} risk of a wrong verdict, overall",
        percent(view.error)
    );
    findings.conditions.line("method", error);
    let intervals = intervals(view);
    findings.results.table(Table::from_items("steps", &view.steps, |step| {
        let row = step.figure.as_ref();
        let against = row.and_then(|row| row.against.as_ref());
        let interval = against.and_then(|against| against.interval);
        [
            (number_column("step"), step.position.to_string().into()),
            (text_column("commit"), step.of.commit.get(..COMMIT_CHARS).into()),
            (text_column("subject"), step.of.subject.as_str().into()),
            (text_column("figure"), row.map(|row| row.figure.heading()).into()),
            (number_column("change"), against.map(|against| change_text(against.ratio)).into()),
            (
                number_column(&intervals.title),
                interval.map(|interval| intervals.text(interval)).into(),
            ),
            (text_column("verdict"), verdict(step).into()),
            (text_column("experiment"), step.experiments.first().map(|id| short_id(id)).into()),
        ]
    }));
    if let Some(chart) = chart(view) {
        findings.results.chart(chart);
    }
    let named = |commit: &BisectCommit| format!("{} {}", short(&commit.commit), commit.subject);
    let several = "the first slow commit is one of these: not all could be judged".to_owned();
    let is_not_slower = |step: &BisectStep| step.verdict == Some(GateVerdict::NotSlower);
    let none = if view.steps.first().is_some_and(is_not_slower) {
        "nothing: the bad commit is not slower than the good one".to_owned()
    } else {
        "nothing yet: it ended early, and the same command continues it".to_owned()
    };
    let (text, tone, named) = match view.found.as_slice() {
        [] => (none, Tone::Warn, None),
        [only] => (format!("the first slow commit: {}", named(only)), Tone::Bad, None),
        all => (several, Tone::Warn, Some(all.iter().map(named))),
    };
    findings.conclusion.toned("found", text, tone);
    findings.conclusion.lines("", named.into_iter().flatten());
    findings.answer.title(&findings.title);
    findings.answer.gap();
    for table in findings.results.tables().cloned() {
        findings.answer.table(table.for_cells());
    }
    findings.answer.gap();
    add_conclusions(&mut findings.answer, &findings.conclusion);
    findings
}

fn verdict(step: &BisectStep) -> String {
    match step.verdict {
        Some(GateVerdict::Slower) => "slow".to_owned(),
        Some(GateVerdict::NotSlower) => "not slower".to_owned(),
        Some(GateVerdict::Inconclusive) => "skipped: inconclusive".to_owned(),
        Some(GateVerdict::Failed) => "skipped: a run failed".to_owned(),
        None => format!("skipped: {}", step.reason),
    }
}

/// The column with the intervals of all steps.
fn intervals(view: &BisectView) -> IntervalColumn {
    let against = view.steps.iter().filter_map(|step| step.figure.as_ref()?.against.as_ref());
    IntervalColumn::for_intervals(against.filter_map(|against| against.interval))
}

/// The change of each measured commit by its position in the history.
fn chart(view: &BisectView) -> Option<Chart> {
    let percent_of = |ratio: f64| rounded((ratio - 1.0) * 100.0);
    let point = |step: &BisectStep| {
        let against = step.figure.as_ref()?.against.as_ref()?;
        let of_interval =
            |interval: RatioInterval| (percent_of(interval.low), percent_of(interval.high));
        Some(Estimated {
            x: step.position as f64,
            y: percent_of(against.ratio),
            interval: against.interval.map(of_interval),
            label: step.of.commit.get(..7).map(str::to_owned),
            ..Estimated::default()
        })
    };
    let mut points: Vec<Estimated> = view.steps.iter().filter_map(point).collect();
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    let bounds = points.iter().flat_map(|point| point.interval.map_or([point.y; 2], Into::into));
    let (low, high) = bounds.fold((0.0_f64, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    if points.len() < 2 || low >= high {
        return None;
    }
    let series = vec![PointSeries { label: "change".to_owned(), style: PointStyle::Line, points }];
    let axis = |label, unit, range| Axis::new(label, unit, AxisScale::Linear).within(range);
    let both = [
        axis("commits after the good one", Unit::Count, 0.0..=view.commits as f64),
        axis("change", Unit::Percent, low * 1.1..=high * 1.1),
    ];
    let summary = format!("Change of {} measured commits against the good one.", view.steps.len());
    let chart = Chart::new("bisect", "Change by commit", summary, both, Content::points(series));
    Some(Chart { interval: intervals(view).title, ..chart })
}
