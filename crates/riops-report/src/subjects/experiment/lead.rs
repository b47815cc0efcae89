//! The result of an experiment in a few sentences.

use crate::document::{Document, Tone};
use crate::effect::{change_text, leveled_interval, open_text, outcome_text, outcome_tone};
use crate::sections::undecided::{Counted, undecided};
use crate::sections::why;
use crate::subjects::experiment::cells::{short_name, with_interval};
use riops_model::figure::Figure;
use riops_model::record::Note;
use riops_model::stats::{Direction, Outcome};
use riops_model::study::Level;
use riops_model::study::evaluation::{
    AbView, AxisView, CellView, FigureView, GroupView, Reason, RoundTrip, StudyKind, StudyView,
};
use riops_model::units::format::{duration_us, joined, number_of, to_the_minute};

/// An experiment that decides as it goes, and was ended before.
const UNFINISHED: &str =
    "unfinished: more runs were planned, and may change what follows; --resume continues it";

/// Number of cells whose names are in a sentence.
const EQUAL_MAX: usize = 3;

/// The measured combinations, and the method.
pub(super) fn conditions(document: &mut Document, view: &StudyView) {
    document.known("question", view.description.clone().unwrap_or_default());
    document.lines("server", view.environment.iter().cloned());
    if view.kind != StudyKind::Ab {
        let setting = |axis: &AxisView| format!("{}: {}", axis.name, axis.values.join(" · "));
        document.lines("settings", view.axes.iter().map(setting));
    }
    let defined = to_the_minute(&view.created_at);
    document.line("runs", format!("{} · defined {defined} UTC", runs(view)));
    document.lines("notes", view.notes_of_people.iter().flat_map(Note::lines));
}

/// `45 of 45 runs, all valid`.
pub(super) fn runs(view: &StudyView) -> String {
    let done = view.runs.usable + view.runs.invalid + view.runs.failed;
    let mut text = match view.planned_runs {
        Some(planned) if planned != done => format!("{done} of {}", number_of(planned, "run")),
        None if view.is_unfinished => format!("{} so far", number_of(done, "run")),
        _ => number_of(done, "run"),
    };
    let parts = [(view.runs.invalid, "not valid"), (view.runs.failed, "failed")];
    let bad = parts.iter().filter(|(count, _)| *count > 0);
    let bad = joined(bad.map(|(count, what)| format!("{count} {what}")), ", ");
    if !bad.is_empty() {
        text = format!("{text}: {} valid, {bad}", view.runs.usable);
    } else if done > 0 {
        text.push_str(if done == 1 { ", valid" } else { ", all valid" });
    }
    // The tables have the thresholds.
    let marks = view.marked.iter().filter(|(mark, _)| *mark != "breached");
    let marks = marks.map(|(mark, count)| format!("{count} {mark}"));
    joined([text].into_iter().chain(marks), ", ")
}

/// The conclusion, and what limits it.
pub(super) fn conclusion(document: &mut Document, view: &StudyView) {
    if view.is_unfinished && view.planned_runs.is_none() {
        document.toned("caution", UNFINISHED, Tone::Warn);
    }
    if view.kind == StudyKind::Saturation {
        for (label, texts) in super::saturation::words::words(view) {
            document.lines(label, texts);
        }
    } else {
        let offers = view.offers();
        if offers.is_empty() {
            let is_open =
                verdict(view).is_some_and(|(_, outcome)| outcome == Outcome::Inconclusive);
            let suffix = if is_open { " (not certain)" } else { "" };
            document.lines("best", best(view).map(|text| text + suffix));
        } else {
            document.lines("fastest", leader(view, Figure::TransactionsPerS));
            document.lines("cheapest", leader(view, Figure::PricePerMillionTransactions));
        }
        if let Some((text, outcome)) = verdict(view) {
            document.push_line("verdict", text, outcome_tone(outcome));
            document.lines("round trip", view.round_trip.map(round_trip_text));
            if let Some(open) = &view.undecided {
                let counted =
                    if view.kind == StudyKind::Ab { Counted::Rounds } else { Counted::Runs };
                undecided(document, open, counted);
            }
            let is_different = matches!(outcome, Outcome::Faster | Outcome::Slower);
            if let Some(time) = view.time.as_ref().filter(|time| is_different || time.has_cause()) {
                // An axis is not news, and it changes other options with it, such as the number of workers.
                let is_axis = |candidate: &String| {
                    let of_axis = |axis: &AxisView| {
                        let name = axis.name.trim_start_matches("set.");
                        ["plan", "setting"]
                            .iter()
                            .any(|topic| candidate.starts_with(&format!("{topic} {name}:")))
                    };
                    view.axes.iter().any(of_axis)
                };
                let mut time = time.clone();
                if time.candidates.iter().any(is_axis) {
                    time.candidates.clear();
                }
                why::why(document, &time);
            }
        }
    }
    document.known("test", view.ab.as_ref().map(test_text).unwrap_or_default());
    if let Some(word) = view.common_bottleneck() {
        let scope = match (view.kind, view.cells.len()) {
            (_, 0 | 1) => "",
            (StudyKind::Ab, _) => ", in both variants",
            _ => ", in all cells",
        };
        document.line("bottleneck", format!("{word}{scope}"));
    }
    document.lines("not usable", failures(view));
    document.lines("note", view.notes.iter().cloned());
}

/// `+10.2 µs (+7.1 µs to +12.6 µs), 23.3 µs → 33.5 µs; client CPU +1.2 µs of it`.
fn round_trip_text(time: RoundTrip) -> String {
    let [a, b] = [time.a_us, time.a_us + time.change_us].map(duration_us);
    let interval = time.interval.map_or_else(String::new, |interval| {
        format!(" ({} to {})", why::signed(interval.low), why::signed(interval.high))
    });
    let client = time
        .client_us
        .map_or_else(String::new, |us| format!("; client CPU {} of it", why::signed(us)));
    format!("{}{interval}, {a} → {b}{client}", why::signed(time.change_us))
}

/// The state of an A/B test.
fn test_text(test: &AbView) -> String {
    let reason = &test.reason;
    let (Some(look), Some(looks_max), Some(level)) = (test.look, test.looks_max, test.level) else {
        return reason.clone();
    };
    let level = Some(level).filter(|level| *level > 0.0);
    let level = level.map_or_else(String::new, |level| format!(", significance level {level:.4}"));
    format!("{reason} · look {look} of {looks_max}{level}")
}

/// The cell with the best value of a figure, and the cells whose intervals overlap with it.
pub(super) fn leader<'a>(view: &'a StudyView, figure: Figure) -> Option<String> {
    let measured = |cell: &'a CellView| Some((cell, cell.group.figure(view.main_stage, figure)?));
    let mut cells: Vec<_> = view.cells.iter().filter_map(measured).collect();
    cells.sort_by(|(_, one), (_, other)| one.estimate.value.total_cmp(&other.estimate.value));
    if figure.direction() == Direction::HigherIsBetter {
        cells.reverse();
    }
    let ((first, best), others) = cells.split_first()?;
    let unit = match figure {
        Figure::PricePerMillionTransactions => {
            let currency = view.currency.iter().filter(|currency| !currency.is_empty());
            joined(currency.map(String::as_str).chain(["per million transactions"]), " ")
        }
        figure => figure.heading().to_owned(),
    };
    let value = with_interval(best).replacen(&best.text(), &format!("{} {unit}", best.text()), 1);
    let overlap = |(_, other): &&(&CellView, &FigureView)| {
        let of_both = best.estimate.interval.zip(other.estimate.interval);
        of_both.is_none_or(|(own, others)| own.low <= others.high && others.low <= own.high)
    };
    let equal: Vec<_> = others.iter().filter(overlap).map(|(cell, _)| cell.name.as_str()).collect();
    let equal = match equal.len() {
        0 => String::new(),
        1..=EQUAL_MAX => format!(" · not certainly better than {}", equal.join(", ")),
        more => format!(" · not certainly better than {}", number_of(more as u64, "other cell")),
    };
    Some(format!("{}: {value}{equal}", first.name))
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
        with_interval(main).replacen(&main.text(), &format!("{} {name}", main.text()), 1)
    };
    Some(format!("{}: {value}", cell.name))
}

/// The verdict on the main figure of the improvement.
fn verdict(view: &StudyView) -> Option<(String, Outcome)> {
    let improvement = view.improvement.as_ref()?;
    let name = |at: usize| view.cells.get(at).map(|cell| short_name(view, cell));
    let (from, to) = (name(improvement.from)?, name(improvement.to)?);
    let row = improvement.rows.iter().find(|row| row.figure == view.main)?;
    let against = row.against.as_ref()?;
    let interval = against.interval.map(leveled_interval);
    let interval = interval.map_or_else(String::new, |interval| format!(" ({interval})"));
    let change = format!("{} {}{interval}", row.figure.heading(), change_text(against.ratio));
    let outcome = against.outcome?;
    let text = match outcome {
        Outcome::Faster | Outcome::Slower => {
            format!("{to} is {} than {from}: {change}", outcome_text(outcome))
        }
        Outcome::Equivalent => format!("{to} and {from} are equivalent: {change}"),
        Outcome::Inconclusive => {
            let open = open_text(row.figure.heading(), against.interval);
            let is_over = view.ab.as_ref().is_some_and(|test| test.verdict.is_some());
            match against.runs_needed {
                Some(_) => "no conclusion yet: too few runs per combination".to_owned(),
                None if is_over => format!("inconclusive: {open}"),
                None => format!("inconclusive so far: {open}"),
            }
        }
    };
    Some((text, outcome))
}

/// Each reason why runs are not usable, with its cell.
fn failures(view: &StudyView) -> Vec<String> {
    let of_group = |cell: &CellView, (level, group): (Option<Level>, &GroupView)| {
        let level = level.map_or_else(String::new, |level| format!(" {level}"));
        let text = |reason: &Reason| {
            let runs =
                if reason.runs > 1 { format!(" ({} runs)", reason.runs) } else { String::new() };
            format!("{}{level}: {}{runs}", cell.name, reason.text)
        };
        group.reasons.iter().map(text).collect::<Vec<_>>()
    };
    let cells = view.cells.iter();
    cells.flat_map(|cell| cell.groups().flat_map(move |group| of_group(cell, group))).collect()
}
