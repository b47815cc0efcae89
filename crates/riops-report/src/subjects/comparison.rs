//! The document of a comparison: what changed, the figures, and the verdict with its limits.

use indexmap::IndexMap;

use super::super::answer::add_conclusions;
use super::super::document::{Document, Findings, Tone};
use super::super::effect::{
    IntervalColumn, change_text, leveled_interval, open_text, outcome_text, outcome_tone, p_text,
};
use super::super::flame;
use super::super::table::{Table, number_column, text_column};
use super::comparison_charts::charts;
use crate::sections::undecided::{Counted, undecided};
use crate::sections::why;
use riops_model::comparison::{
    Change, Comparison, FigureComparison, Group, Side, TimeChange, Topic, compare,
};
use riops_model::figure::Figure;
use riops_model::record::Record;
use riops_model::stats::{Effect, Needed, Outcome, Settings};
use riops_model::units::format::{bounded, joined, number_of, percent, short_id};

/// Returns the document of a comparison.
pub fn comparison(comparison: &Comparison) -> Findings {
    let mut conditions = Document::default();
    conditions.line("A", side_text(&comparison.a));
    conditions.line("B", side_text(&comparison.b));
    if comparison.blocks > 1 {
        conditions.line("", format!("measured in {} rounds", comparison.blocks));
    }
    conditions.gap();
    if comparison.changes.is_empty() {
        conditions.line("changed", "no recorded difference");
    } else {
        let pair = |change: &Change| (change_name(change), format!("{} → {}", change.a, change.b));
        conditions.pairs("changed", comparison.changes.iter().map(pair));
    }
    let mut results = Document::default();
    for (position, compared) in comparison.stages.iter().enumerate() {
        let stage = &compared.stage;
        let figures = table(stage.as_deref().unwrap_or("figures"), "figure", &compared.figures);
        results.table(figures);
        let stage = stage.as_ref().map_or_else(String::new, |stage| format!("{stage}: "));
        results.table(table(&format!("{stage}cost per transaction"), COST, &compared.costs));
        for chart in charts(&format!("comparison-{position}"), ["A", "B"], compared) {
            results.picture(chart);
        }
        let [of_a, of_b] = &compared.profiles;
        if let Some(graph) = flame::difference(of_a, of_b) {
            results.flame(graph);
        }
        let title = format!("{stage}functions of the server");
        if let Some(table) = flame::changed(title, of_a, of_b) {
            results.table(table);
        }
        if let Some(time) = compared.time.as_ref().filter(|time| !time.parts.is_empty()) {
            results.table(why::table(format!("{stage}time of a transaction"), ["A", "B"], time));
        }
    }
    let mut conclusion = Document::default();
    conclusion.toned_lines("verdict", verdict_lines(comparison));
    if let Some(open) = &comparison.undecided {
        undecided(&mut conclusion, open, Counted::Runs);
    }
    for compared in &comparison.stages {
        let main = compared.figures.first().and_then(|main| main.effect.as_ref());
        // A part that changed is a reason, whatever the sum shows.
        let is_explained = |time: &&TimeChange| main.is_some_and(is_different) || time.has_cause();
        if let Some(time) = compared.time.as_ref().filter(is_explained) {
            why::why(&mut conclusion, time);
        }
    }
    conclusion.lines("note", comparison.notes.iter().cloned());
    let title = format!("riops compare · {}", comparison.workload);
    let answer = answer(&title, comparison, &conclusion);
    Findings { conditions, results, conclusion, answer, ..Findings::new(title) }
}

/// The main figure, the median and the 99th percentile of each stage, the verdict, and what changed.
fn answer(title: &str, comparison: &Comparison, conclusion: &Document) -> Document {
    let mut answer = Document::default();
    let side = |side: &Side| {
        let shorten = |text: String, run: &String| text.replace(run.as_str(), short_id(run));
        let text = side.runs.iter().fold(side_text(side), shorten);
        // A run is disturbed or not; of several, the number is of interest.
        let is_single = side.runs.len() == 1;
        let marks = side.marked.iter().map(|(mark, count)| {
            if is_single { (*mark).to_owned() } else { format!("{count} {mark}") }
        });
        joined([text].into_iter().chain(marks), ", ")
    };
    let [a, b] = [&comparison.a, &comparison.b].map(side);
    answer.title(format!("{title} · A: {a} · B: {b}"));
    answer.gap();
    let is_shown = |figure: &&FigureComparison| {
        figure.main || [Figure::P50Us, Figure::P99Us].contains(&figure.figure)
    };
    for stage in &comparison.stages {
        let figures: Vec<_> = stage.figures.iter().filter(is_shown).cloned().collect();
        let table = table(stage.stage.as_deref().unwrap_or_default(), "figure", &figures);
        answer.table(if comparison.stages.len() > 1 { table.for_cells() } else { table });
    }
    answer.gap();
    let mut all = conclusion.clone();
    all.known("changed", changed(comparison, conclusion));
    add_conclusions(&mut answer, &all);
    answer
}

/// Changes that an answer shows.
const CHANGES_MAX: usize = 3;

/// The first changes that may change a figure, in one text, without the reasons that the conclusion names.
fn changed(comparison: &Comparison, conclusion: &Document) -> String {
    let facts = conclusion.facts();
    let is_named =
        |values: &str| facts.iter().any(|fact| fact.texts.iter().any(|text| text.contains(values)));
    let changes = comparison.changes.iter().filter(|change| {
        let is_preparation = change.topic == Topic::Plan && change.name == "prepare";
        let is_input = change.topic <= Topic::Condition && !is_preparation;
        is_input && !is_named(&format!("{} → {}", change.a, change.b))
    });
    let count = changes.clone().count();
    let shown = changes.take(CHANGES_MAX);
    let shown = shown.map(|change| format!("{}: {} → {}", change.name, change.a, change.b));
    let more = count.saturating_sub(CHANGES_MAX);
    let more = (more > 0).then(|| format!("and {more} more (--details)"));
    let all = joined(shown.chain(more), " · ");
    if all.is_empty() && comparison.changes.is_empty() {
        "no recorded difference".to_owned()
    } else {
        all
    }
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
    let occurs = |figure: &&FigureComparison| {
        [figure.a, figure.b].iter().flatten().any(|&value| value != 0.0)
    };
    let figures = figures.iter().filter(|figure| !is_cost || occurs(figure));
    let effects = figures.clone().filter_map(|figure| figure.effect.as_ref());
    let intervals = IntervalColumn::for_intervals(effects.filter_map(|effect| effect.interval));
    Table::from_items(title, figures, |figure| {
        let value = |value: Option<f64>, is_bound: bool| {
            value.map(|value| bounded(figure.figure.text(value), is_bound)).into()
        };
        let effect = figure.effect.as_ref();
        let interval = effect.and_then(|effect| effect.interval);
        let judged = effect.filter(|_| !is_cost);
        [
            (text_column(kind), figure.name.as_str().into()),
            (number_column("A"), value(figure.a, figure.a_at_least)),
            (number_column("B"), value(figure.b, figure.b_at_least)),
            (number_column("B relative to A"), relative(figure).into()),
            (
                intervals.column().optional(),
                interval.map(|interval| intervals.text(interval)).into(),
            ),
            (number_column("p").optional(), judged.map(|effect| p_text(effect.p_adjusted)).into()),
            (text_column("verdict"), judged.map(|effect| outcome_text(effect.outcome)).into()),
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
    let Some((main, effect)) = judged.iter().find(|(figure, _)| figure.main).or(judged.first())
    else {
        let needed = Needed::at(Settings::default().alpha).map(|needed| needed.to_string());
        return vec![(format!("none: {}", needed.unwrap_or_default()), None)];
    };
    let line = |figure: &FigureComparison, effect: &Effect| {
        (conclusion(figure, effect, comparison.effect), outcome_tone(effect.outcome))
    };
    let is_news = |(figure, other): &&(&FigureComparison, &Effect)| {
        is_different(other) && !figure.main && other.outcome != effect.outcome
    };
    // An undecided comparison has a line for what is certain.
    let news = judged.iter().filter(is_news).filter(|_| comparison.undecided.is_none());
    let news = news.map(|(figure, other)| line(figure, other));
    std::iter::once(line(main, effect)).chain(news).collect()
}

/// The verdict on a figure in a sentence.
fn conclusion(figure: &FigureComparison, effect: &Effect, relevant: f64) -> String {
    let name = &figure.name;
    let sides = match (figure.a_at_least, figure.b_at_least) {
        (true, true) => Some("A and B"),
        (true, false) => Some("A"),
        (false, true) => Some("B"),
        (false, false) => None,
    };
    let interval = effect.interval.map(leveled_interval).unwrap_or_default();
    match effect.outcome {
        Outcome::Faster | Outcome::Slower => {
            let (verdict, change) = (outcome_text(effect.outcome), change_text(effect.ratio));
            format!("B is {verdict}: {name} {change} ({interval})")
        }
        Outcome::Equivalent => {
            format!("equivalent: {name} differs by less than {} ({interval})", percent(relevant))
        }
        Outcome::Inconclusive => match (sides, effect.design.needed) {
            (Some(sides), _) => format!(
                "inconclusive: {name} of {sides} is a lower bound, because transactions did not succeed"
            ),
            (None, Some(_)) => "inconclusive: too few runs".to_owned(),
            (None, None) => format!("inconclusive: {}", open_text(name, effect.interval)),
        },
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
