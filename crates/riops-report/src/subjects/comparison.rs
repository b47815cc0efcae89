//! The document of a comparison: what changed, the figures, and the verdict with its limits.

use indexmap::IndexMap;

use super::super::document::{Document, Findings, Tone};
use super::super::effect::{
    IntervalColumn, change_text, leveled_interval, open_text, outcome_text, outcome_tone, p_text,
};
use super::super::flame;
use super::super::table::{Table, number, word};
use super::comparison_charts::charts;
use crate::sections::undecided::{Counted, undecided};
use crate::sections::why;
use riops_model::comparison::{
    Change, Comparison, FigureComparison, Group, Side, TimeChange, compare,
};
use riops_model::record::Record;
use riops_model::stats::{Effect, Needed, Outcome, Settings};
use riops_model::units::format::{bounded, number_of, percent};

/// Returns the document of a comparison.
pub fn comparison(comparison: &Comparison) -> Findings {
    let mut conditions = Document::default();
    conditions.line("A", side_text(&comparison.a));
    conditions.line("B", side_text(&comparison.b));
    if comparison.blocks > 1 {
        conditions.line("", format!("measured in {} blocks", comparison.blocks));
    }
    conditions.gap();
    if comparison.changes.is_empty() {
        conditions.line("changed", "no recorded difference");
    } else {
        let pair = |change: &Change| (change_name(change), format!("{} → {}", change.a, change.b));
        conditions.pairs("changed", comparison.changes.iter().map(pair));
    }
    let mut results = Document::default();
    for (number, found) in comparison.stages.iter().enumerate() {
        let stage = &found.stage;
        let figures = table(stage.as_deref().unwrap_or("figures"), "figure", &found.figures);
        results.table(figures);
        let stage = stage.as_ref().map_or_else(String::new, |stage| format!("{stage}: "));
        results.table(table(&format!("{stage}cost per transaction"), COST, &found.costs));
        for chart in charts(&format!("comparison-{number}"), ["A", "B"], found) {
            results.picture(chart);
        }
        let [of_a, of_b] = &found.profiles;
        if let Some(graph) = flame::difference(of_a, of_b) {
            results.flame(graph);
        }
        let title = format!("{stage}functions of the server");
        if let Some(table) = flame::changed(title, of_a, of_b) {
            results.table(table);
        }
        if let Some(time) = found.time.as_ref().filter(|time| !time.parts.is_empty()) {
            results.table(why::table(format!("{stage}time of a transaction"), ["A", "B"], time));
        }
    }
    let mut conclusion = Document::default();
    conclusion.toned_lines("verdict", verdict_lines(comparison));
    if let Some(found) = &comparison.undecided {
        undecided(&mut conclusion, found, Counted::Runs);
    }
    for found in &comparison.stages {
        let main = found.figures.first().and_then(|main| main.effect.as_ref());
        // A part that changed is a reason, whatever the sum shows.
        let is_explained = |time: &&TimeChange| main.is_some_and(is_different) || time.has_cause();
        if let Some(time) = found.time.as_ref().filter(is_explained) {
            why::why(&mut conclusion, time);
        }
    }
    conclusion.lines("note", comparison.notes.iter().cloned());
    let title = format!("riops compare · {}", comparison.workload);
    Findings { conditions, results, conclusion, ..Findings::new(title) }
}

/// Returns the comparison of the runs of a page: of two selections, otherwise of the runs with the older and the
/// newer one of two labels. `None` if there are other numbers of groups, or if they cannot be compared.
pub fn comparison_of(selections: &[(String, Vec<Record>)]) -> Option<Findings> {
    let by_label = if selections.len() == 2 { None } else { Some(labeled(selections)?) };
    let [(name_a, a), (name_b, b)] = by_label.as_deref().unwrap_or(selections) else {
        return None;
    };
    let (a, b) = (Group { name: name_a, records: a }, Group { name: name_b, records: b });
    Some(comparison(&compare(a, b, &Settings::default()).ok()?))
}

/// All runs by label, in the order of their oldest runs; `None` if a run has no label.
fn labeled(selections: &[(String, Vec<Record>)]) -> Option<Vec<(String, Vec<Record>)>> {
    let mut runs: Vec<&Record> = selections.iter().flat_map(|(_, runs)| runs).collect();
    runs.sort_by_key(|run| run.started_at);
    let mut groups: IndexMap<String, Vec<Record>> = IndexMap::new();
    for run in runs {
        groups.entry(run.label.clone()?).or_default().push(run.clone());
    }
    Some(groups.into_iter().collect())
}

/// A side with its number of runs.
fn side_text(side: &Side) -> String {
    match side.runs.as_slice() {
        [single] if single.ends_with(&side.name) || side.name == "last" => single.clone(),
        [single] => format!("{} (run {single})", side.name),
        runs => format!("{} ({})", side.name, number_of(runs.len() as u64, "run")),
    }
}

/// The name of what changed.
pub(super) fn change_name(change: &Change) -> String {
    format!("{}: {}", change.topic.name(), change.name)
}

/// The kind of figures that have no verdict, and are left out if they are zero in both.
const COST: &str = "cost";

fn table(title: &str, kind: &str, figures: &[FigureComparison]) -> Table {
    let is_cost = kind == COST;
    let occurs = |of: &&FigureComparison| [of.a, of.b].iter().flatten().any(|&each| each != 0.0);
    let figures = figures.iter().filter(|of| !is_cost || occurs(of));
    let effects = figures.clone().filter_map(|of| of.effect.as_ref());
    let intervals = IntervalColumn::of(effects.filter_map(|effect| effect.interval));
    Table::of(title, figures, |of| {
        let value = |value: Option<f64>, is_bound: bool| {
            value.map(|value| bounded(of.figure.text(value), is_bound)).into()
        };
        let effect = of.effect.as_ref();
        let interval = effect.and_then(|effect| effect.interval);
        let judged = effect.filter(|_| !is_cost);
        [
            (word(kind), of.name.as_str().into()),
            (number("A"), value(of.a, of.a_at_least)),
            (number("B"), value(of.b, of.b_at_least)),
            (number("B relative to A"), relative(of).into()),
            (intervals.column(), interval.map(|of| intervals.text(of)).into()),
            (number("p"), judged.map(|effect| p_text(effect.p_adjusted)).into()),
            (word("verdict"), judged.map(|effect| outcome_text(effect.outcome)).into()),
        ]
    })
}

fn is_different(effect: &Effect) -> bool {
    matches!(effect.outcome, Outcome::Faster | Outcome::Slower)
}

/// B relative to A: the estimated effect of repeated runs, or the plain ratio of single ones.
fn relative(figure: &FigureComparison) -> Option<String> {
    let ratio = match (&figure.effect, figure.a, figure.b) {
        (Some(effect), _, _) => Some(effect.ratio),
        (None, Some(a), Some(b)) if a > 0.0 => Some(b / a),
        _ => None,
    };
    let text = ratio.map(change_text)?;
    match (figure.a_at_least, figure.b_at_least) {
        (false, is_bound) => Some(bounded(text, is_bound)),
        (true, false) => Some(format!("≤ {text}")),
        (true, true) => None,
    }
}

/// The conclusion: about the main figure, then about figures with another verdict.
fn verdict_lines(comparison: &Comparison) -> Vec<(String, Option<Tone>)> {
    let judged = comparison.figures();
    let judged = judged.filter_map(|figure| Some((figure, figure.effect.as_ref()?)));
    let judged: Vec<_> = judged.collect();
    let Some((main, found)) = judged.iter().find(|(figure, _)| figure.main).or(judged.first())
    else {
        let needed = Needed::at(Settings::default().alpha).map(|needed| needed.to_string());
        return vec![(format!("none: {}", needed.unwrap_or_default()), None)];
    };
    let line = |figure: &FigureComparison, found: &Effect| {
        (conclusion(figure, found, comparison.effect), outcome_tone(found.outcome))
    };
    let is_news = |(figure, other): &&(&FigureComparison, &Effect)| {
        is_different(other) && !figure.main && other.outcome != found.outcome
    };
    // An undecided comparison has a line for what is certain.
    let news = judged.iter().filter(is_news).filter(|_| comparison.undecided.is_none());
    let news = news.map(|(figure, other)| line(figure, other));
    std::iter::once(line(main, found)).chain(news).collect()
}

/// The verdict on a figure in a sentence.
fn conclusion(figure: &FigureComparison, found: &Effect, relevant: f64) -> String {
    let name = &figure.name;
    let of = match (figure.a_at_least, figure.b_at_least) {
        (true, true) => Some("A and B"),
        (true, false) => Some("A"),
        (false, true) => Some("B"),
        (false, false) => None,
    };
    let interval = found.interval.map(leveled_interval).unwrap_or_default();
    match found.outcome {
        Outcome::Faster | Outcome::Slower => {
            let (verdict, change) = (outcome_text(found.outcome), change_text(found.ratio));
            format!("B is {verdict}: {name} {change} ({interval})")
        }
        Outcome::Equivalent => {
            format!("equivalent: {name} differs by less than {} ({interval})", percent(relevant))
        }
        Outcome::Inconclusive => match (of, found.design.needed) {
            (Some(of), _) => format!(
                "inconclusive: {name} of {of} is a lower bound, because transactions did not succeed"
            ),
            (None, Some(_)) => "inconclusive: too few runs".to_owned(),
            (None, None) => format!("inconclusive: {}", open_text(name, found.interval)),
        },
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
