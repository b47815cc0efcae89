//! A comparison as text for a terminal.

use super::super::block::Block;
use super::super::columns::{Align, Columns};
use super::super::format::{factor, number_of, percent, rate};
use super::{Comparison, FigureComparison, Side};
use crate::stats::{Effect, Interval, Needed, Outcome, Settings};

/// The comparison in lines of at most `width` columns. What changed stands above the figures.
#[must_use]
pub fn text(comparison: &Comparison, width: usize) -> String {
    let mut block = Block::new(width);
    block.title(&format!("riops compare · {}", comparison.workload));
    block.gap();
    block.line("A", &side_text(&comparison.a));
    block.line("B", &side_text(&comparison.b));
    if comparison.blocks > 1 {
        block.line("", &format!("measured in {} blocks", comparison.blocks));
    }
    block.gap();
    what_changed(&mut block, comparison);
    block.gap();
    for stage in &comparison.stages {
        block.table(stage.stage.as_deref().unwrap_or("figures"), &table(&stage.figures));
    }
    block.gap();
    for (position, line) in verdict_lines(comparison).iter().enumerate() {
        block.line(if position == 0 { "verdict" } else { "" }, line);
    }
    for (position, note) in comparison.notes.iter().enumerate() {
        block.line(if position == 0 { "note" } else { "" }, note);
    }
    block.finish()
}

/// A side with its number of runs.
pub(super) fn side_text(side: &Side) -> String {
    match side.runs.as_slice() {
        [single] if single.ends_with(&side.name) || side.name == "last" => single.clone(),
        [single] => format!("{} (run {single})", side.name),
        runs => format!("{} ({})", side.name, number_of(runs.len() as u64, "run")),
    }
}

fn what_changed(block: &mut Block, comparison: &Comparison) {
    if comparison.changes.is_empty() {
        block.line("changed", "no recorded difference");
        return;
    }
    let pairs: Vec<_> = comparison
        .changes
        .iter()
        .map(|change| {
            let name = format!("{}: {}", change.topic.name(), change.name);
            (name, format!("{} → {}", change.a, change.b))
        })
        .collect();
    block.pairs("changed", &pairs);
}

fn table(figures: &[FigureComparison]) -> Columns {
    let has_effects = figures.iter().any(|figure| figure.effect.is_some());
    let mut titles = vec![
        ("figure", Align::Left),
        ("A", Align::Right),
        ("B", Align::Right),
        ("B relative to A", Align::Right),
    ];
    if has_effects {
        titles.extend([
            ("95% interval", Align::Left),
            ("p", Align::Right),
            ("verdict", Align::Left),
        ]);
    }
    let mut table = Columns::new(titles);
    for figure in figures {
        let value = |value: Option<f64>| {
            value.map_or_else(|| "n/a".to_owned(), |value| figure.figure.text(value))
        };
        let mut cells =
            vec![figure.name.clone(), value(figure.a), value(figure.b), relative(figure)];
        if has_effects {
            let effect = figure.effect.as_ref();
            cells.push(effect.map(interval_text).unwrap_or_default());
            cells.push(effect.map(|effect| p_text(effect.p_adjusted)).unwrap_or_default());
            cells.push(
                effect.map(|effect| outcome_text(effect.outcome).to_owned()).unwrap_or_default(),
            );
        }
        table.row(cells);
    }
    table
}

/// B relative to A: the estimated effect of repeated runs, or the plain ratio of single ones.
pub(super) fn relative(figure: &FigureComparison) -> String {
    let ratio = match (&figure.effect, figure.a, figure.b) {
        (Some(effect), _, _) => Some(effect.ratio),
        (None, Some(a), Some(b)) if a > 0.0 => Some(b / a),
        _ => None,
    };
    ratio.map(change_text).unwrap_or_default()
}

/// The 95 % interval of the effect; empty with too few runs.
pub(super) fn interval_text(effect: &Effect) -> String {
    effect.interval.map(change_interval).unwrap_or_default()
}

/// `+11.0% to +13.5%`.
pub(in crate::report) fn change_interval(interval: Interval) -> String {
    format!("{} to {}", change_text(interval.low), change_text(interval.high))
}

/// What an inconclusive comparison shows: the interval, not the estimate, which would look like an effect. An interval
/// that excludes 1 without a significant p-value would look like one, too.
pub(in crate::report) fn open_text(
    figure: &str,
    interval: Option<Interval>,
    p_adjusted: Option<f64>,
) -> String {
    match (interval, p_adjusted) {
        (Some(interval), _) if interval.low <= 1.0 && interval.high >= 1.0 => {
            format!("{figure} may differ by {}", change_interval(interval))
        }
        (_, Some(p)) => format!("the difference in {figure} is not significant (p {})", p_text(p)),
        _ => format!("the difference in {figure} is unknown"),
    }
}

/// A ratio as a change: `+12.3%`, or `×3.41` from a doubling on.
pub(in crate::report) fn change_text(ratio: f64) -> String {
    if ratio >= 1e3 {
        return format!("×{}", rate(ratio));
    }
    if ratio >= 2.0 {
        return format!("×{}", factor(ratio));
    }
    match format!("{:+.1}%", (ratio - 1.0) * 100.0).as_str() {
        "+0.0%" | "-0.0%" => "0.0%".to_owned(),
        text => text.to_owned(),
    }
}

/// A p-value.
pub(super) fn p_text(p: f64) -> String {
    if p < 0.000_1 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The verdict on a figure.
pub(in crate::report) fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Faster => "FASTER",
        Outcome::Slower => "SLOWER",
        Outcome::Equivalent => "equivalent",
        Outcome::Inconclusive => "inconclusive",
    }
}

/// The conclusion: about the main figure, then about figures with another verdict.
pub(super) fn verdict_lines(comparison: &Comparison) -> Vec<String> {
    let judged: Vec<_> = comparison
        .figures()
        .filter_map(|figure| figure.effect.as_ref().map(|effect| (figure, effect)))
        .collect();
    let Some((main, found)) = judged.iter().find(|(figure, _)| figure.main).or(judged.first())
    else {
        let needed = Needed::at(Settings::default().alpha).map(|needed| needed.to_string());
        return vec![format!("none: {}", needed.unwrap_or_default())];
    };
    let mut lines = vec![conclusion(&main.name, found, comparison.effect)];
    for (figure, other) in &judged {
        let is_news = matches!(other.outcome, Outcome::Faster | Outcome::Slower);
        if is_news && !figure.main && other.outcome != found.outcome {
            lines.push(conclusion(&figure.name, other, comparison.effect));
        }
    }
    lines
}

/// A number of runs that is an estimate: two significant digits.
fn expected_text(runs: usize) -> String {
    match runs {
        0..100 => format!("about {runs}"),
        100..1_000 => format!("about {}", runs.div_ceil(10) * 10),
        _ => "more than 1,000".to_owned(),
    }
}

/// The verdict on a figure in a sentence.
fn conclusion(name: &str, found: &Effect, relevant: f64) -> String {
    let interval = interval_text(found);
    match found.outcome {
        Outcome::Faster | Outcome::Slower => {
            let (verdict, change) = (outcome_text(found.outcome), change_text(found.ratio));
            format!("B is {verdict}: {name} {change} ({interval})")
        }
        Outcome::Equivalent => {
            format!("equivalent: {name} differs by less than {} ({interval})", percent(relevant))
        }
        Outcome::Inconclusive => match (found.design.needed, found.runs_expected) {
            (Some(needed), _) => format!("inconclusive: {needed}"),
            (None, expected) => {
                let open = open_text(name, found.interval, Some(found.p_adjusted));
                let expected = expected.map_or_else(String::new, |runs| {
                    format!("; a verdict probably needs {} runs of each", expected_text(runs))
                });
                format!("inconclusive: {open}{expected}")
            }
        },
    }
}
