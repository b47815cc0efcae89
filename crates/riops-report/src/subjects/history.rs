//! A history: its document, page and chart.

use crate::answer::shortened_answer;
use crate::chart::{
    Axis, AxisScale, Chart, Content, Estimated, Mark, PointSeries, PointStyle, Unit, rounded,
};
use crate::document::{Detail, Document, Findings, Lines, Tone};
use crate::effect::change_text;
use crate::render::text::text;
use crate::sections::why::why;
use crate::subjects::gate::verdict_text;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::Figure;
use riops_model::study::{GateVerdict, HistoryChange, HistoryPoint, HistorySeries};
use riops_model::units::format::{bounded, joined, number_of, short_id, to_the_minute};
use riops_model::units::text::{one_line, shortened};

/// Maximum length of the text of a mark in a chart.
const MARK_MAX: usize = 24;

/// The text of the series: for each its answer, which is fitted into the lines, or everything, with a line for each run. With
/// `judged`, also whether the newest level is slower.
pub fn history_text(series: &[HistorySeries], judged: bool, lines: impl Into<Lines>) -> String {
    let lines = lines.into();
    let of_series = |line: &HistorySeries| match lines.detail {
        Detail::Everything => text(&document(line, judged), lines),
        Detail::Answer | Detail::AnswerWithoutWarnings => {
            shortened_answer(&answer(line, judged), lines)
        }
    };
    joined(series.iter().map(of_series), "\n")
}

fn document(series: &HistorySeries, judged: bool) -> Document {
    let mut document = Document::default();
    document.title(title(series));
    document.gap();
    document.table(table(series, &|point| short_id(&point.run).into()));
    document.gap();
    if series.changes.is_empty() {
        document.line("changes", without_changes(series));
    }
    for (position, change) in series.changes.iter().enumerate() {
        document.line(if position == 0 { "changes" } else { "" }, change_line(series, change));
        if let Some(time) = &change.time {
            why(&mut document, time);
        }
    }
    document.lines("new era", eras(series));
    if judged {
        let (text, tone) = verdict_line(series);
        document.toned("verdict", text, tone);
    }
    document
}

/// The newest value, the verdict, and the changes, the newest first.
fn answer(series: &HistorySeries, judged: bool) -> Document {
    let mut answer = Document::default();
    answer.title(title(series));
    answer.lines("newest", newest(series));
    if judged {
        let (text, tone) = verdict_line(series);
        answer.toned("verdict", text, tone);
    }
    if series.changes.is_empty() {
        answer.line("changes", without_changes(series));
    }
    let newest_first = series.changes.iter().rev();
    answer.lines("changes", newest_first.map(|change| change_line(series, change)));
    if let Some(time) = series.changes.last().and_then(|change| change.time.as_ref()) {
        why(&mut answer, time);
    }
    answer.lines("new era", eras(series));
    answer
}

fn title(series: &HistorySeries) -> String {
    format!("{}: {}", series.name, series.figure.name())
}

/// `95,500 · mean 94,917 of 6 runs since 2026-01-07 00:00`: the newest value and its level.
fn newest(series: &HistorySeries) -> Option<String> {
    let point = series.points.last()?;
    let value = bounded(series.figure.text(point.value), point.at_least);
    let (runs, mean) = series.levels().last().copied()?;
    let first = series.points.get(series.points.len().checked_sub(runs)?)?;
    let (runs, since) = (number_of(runs as u64, "run"), to_the_minute(&first.started_at));
    Some(format!("{value} · mean {} of {runs} since {since}", series.figure.text(mean)))
}

/// Returns the page of the history of a label. `address` returns the address of a run.
pub fn history_findings(
    label: &str,
    series: &[HistorySeries],
    address: &dyn Fn(&str) -> String,
) -> Findings {
    let mut findings = Findings::new(format!("History of {label}"));
    for (position, line) in series.iter().enumerate() {
        if line.points.len() > 1 {
            findings
                .results
                .chart(Chart { title: line.name.clone(), ..history_chart(position, line) });
        }
        let linked =
            table(line, &|point| Cell::from(short_id(&point.run)).with_link(address(&point.run)));
        findings.results.table(Table { title: line.name.clone(), ..linked });
        let changes = line.changes.iter().map(|change| change_line(line, change));
        findings.conclusion.lines(&line.name, changes);
        findings.conclusion.lines("new era", eras(line));
    }
    findings
}

/// Returns the text of a series without changes.
fn without_changes(series: &HistorySeries) -> String {
    if series.has_verdict() { "none".to_owned() } else { format!("unknown: {}", too_few(series)) }
}

fn too_few(series: &HistorySeries) -> String {
    let (runs, needed) = (series.last_era().len(), series.runs_needed);
    let has_eras = series.points.iter().skip(1).any(|point| point.acknowledged.is_some());
    let since = if has_eras { " since the last accepted change" } else { "" };
    format!("not enough history: {runs} of the {needed} runs needed{since}")
}

fn eras(series: &HistorySeries) -> impl Iterator<Item = String> {
    series.points.iter().filter_map(|point| {
        let reason = one_line(point.acknowledged.as_ref()?);
        let (started, id) = (to_the_minute(&point.started_at), short_id(&point.run));
        Some(format!("since {started} ({id}): {reason}"))
    })
}

/// The verdict of a gate on a series, and how to accept its newest level.
fn verdict_line(series: &HistorySeries) -> (String, Tone) {
    let (name, tone) = verdict_text(series.verdict);
    let text = match (series.verdict, series.changes.last()) {
        (GateVerdict::Slower, Some(last)) => {
            let run = short_id(&last.run);
            format!("{name}: if this is intended, riops runs ack {run} 'why'")
        }
        (GateVerdict::Inconclusive, _) => {
            format!("{name}: {}", too_few(series))
        }
        _ => name.to_owned(),
    };
    (text, tone)
}

fn table(series: &HistorySeries, id: &dyn Fn(&HistoryPoint) -> Cell) -> Table {
    let largest = series.points.iter().map(|point| point.value).fold(f64::MIN_POSITIVE, f64::max);
    Table::from_items("runs", series.points.iter().enumerate(), |(index, point)| {
        let change = series.changes.iter().find(|change| change.index == index);
        let begins_era = index > 0 && point.acknowledged.is_some();
        let change = change.map(verdict).or(begins_era.then(|| "new era".to_owned()));
        let value = Cell::from(bounded(series.figure.text(point.value), point.at_least));
        [
            (text_column("id"), id(point)),
            (text_column("started (UTC)"), to_the_minute(&point.started_at).into()),
            (number_column(series.figure.name()).drawn(), value.with_bar(point.value / largest)),
            (text_column("change"), change.unwrap_or_default().into()),
            (text_column("status"), point.marks.clone().unwrap_or_default().into()),
        ]
    })
}

/// `SLOWER -5.1%`.
fn verdict(change: &HistoryChange) -> String {
    let name = change.outcome.as_str().to_uppercase();
    format!("{name} {}", change_text(change.ratio()))
}

fn change_line(series: &HistorySeries, change: &HistoryChange) -> String {
    let point = series.points.get(change.index);
    let at = point.map_or_else(String::new, |point| to_the_minute(&point.started_at));
    let [before, after] =
        [change.mean_before, change.mean_after].map(|mean| series.figure.text(mean));
    let (verdict, run, p) = (verdict(change), short_id(&change.run), change.p);
    let range = change.range.as_ref().map_or_else(String::new, |[first, last]| {
        format!(", between {} and {}", short_id(first), short_id(last))
    });
    format!("{verdict} since {at} ({run}{range}): {before} → {after} (p {p:.1e})")
}

/// The result, in a sentence.
pub fn history_summary(series: &HistorySeries) -> String {
    let counted = |value: usize, noun| number_of(value as u64, noun);
    let (runs, name) = (counted(series.points.len(), "run"), series.figure.name());
    let Some(last) = series.changes.last() else {
        return format!("{runs}: changes of {name}: {}.", without_changes(series));
    };
    let (changes, run) = (counted(series.changes.len(), "change"), last.index + 1);
    let [from, to] = [last.mean_before, last.mean_after].map(|mean| series.figure.text(mean));
    let by = change_text(last.ratio());
    format!("{runs}: {changes} of {name}, the last by {by} with run {run} (from {from} to {to}).")
}

/// The chart of a series, the number of its page.
pub fn history_chart(position: usize, series: &HistorySeries) -> Chart {
    let name = series.figure.name();
    // The axis of durations is in microseconds.
    let factor = if series.figure == Figure::Seconds { 1e6 } else { 1.0 };
    let line = |label: &str, style, values: &mut dyn Iterator<Item = f64>| {
        let points = values.enumerate().map(|(index, value)| Estimated {
            x: index as f64 + 1.0,
            y: rounded(value * factor),
            ..Estimated::default()
        });
        PointSeries { label: label.to_owned(), style, points: points.collect() }
    };
    let values = || series.points.iter().map(|point| point.value);
    let mut lines = vec![line(name, PointStyle::Line, &mut values())];
    let levels = series.levels();
    if levels.len() > 1 {
        let mut means =
            levels.into_iter().flat_map(|(count, mean)| std::iter::repeat_n(mean, count));
        lines.push(line("mean between changes", PointStyle::Band, &mut means));
    }
    let mark = |index: usize, label: String| Mark { x: index as f64 + 1.0, label };
    let changes =
        series.changes.iter().map(|change| mark(change.index, change_text(change.ratio())));
    let eras = series.points.iter().enumerate().filter_map(|(index, point)| {
        Some(mark(index, shortened(point.acknowledged.as_ref()?, MARK_MAX)))
    });
    let unit = match series.figure {
        Figure::Seconds => Unit::DurationUs,
        figure => Unit::for_figure(figure),
    };
    let axis = |label, unit| Axis::new(label, unit, AxisScale::Linear);
    let y = axis(name, unit).around(values().map(|value| value * factor));
    let x = axis("run, oldest first", Unit::Count).within(0.5..=series.points.len() as f64 + 0.5);
    let ticks = (1..=series.points.len()).map(|run| run as f64).collect();
    let names = series.points.iter().map(|point| {
        let day = point.started_at.get(..10).unwrap_or_default();
        format!("{day} {}", short_id(&point.run))
    });
    let content = Content::Points { ticks, names: names.collect(), series: lines };
    let (id, summary) = (format!("history-chart-{position}"), history_summary(series));
    Chart::new(id, "Over the runs", summary, [x, y], content)
        .with_marks(changes.chain(eras).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::study::example::{SHIFT, stored};
    use riops_model::study::{ACKNOWLEDGED, history};

    #[test]
    fn a_change_names_the_first_run_after_it() {
        let (runs, stages) = stored(&SHIFT, 4);
        let series = history(&runs, &stages, 0.02);
        let answer = |columns: usize| {
            history_text(&series, true, Lines { detail: Detail::Answer, ..columns.into() })
        };
        let answers = [60, 80, 100].map(answer);
        assert!(answers.iter().all(|text| text.lines().count() <= 12), "{answers:?}");
        insta::assert_snapshot!(answers.join("\n") + "\n" + &history_text(&series, true, 100));
    }

    #[test]
    fn a_new_era_and_a_slower_level_are_named_with_their_runs() {
        let values: Vec<f64> = (0..24)
            .map(|at| [100.0, 95.0, 90.0][at / 8] * (1.0 + (at % 3) as f64 / 500.0))
            .collect();
        let (mut runs, stages) = stored(&values, 4);
        runs[8].tags = [(ACKNOWLEDGED.to_owned(), "new disk".to_owned())].into();
        let again = history(&runs, &stages, 0.02).remove(0);
        let text = history_text(&[again], true, 100);
        assert!(text.contains("since 2026-01-09 00:00 (un-4-008): new disk"), "{text}");
        assert!(
            text.contains("SLOWER: if this is intended, riops runs ack un-4-016 'why'"),
            "{text}"
        );
    }

    #[test]
    fn marked_runs_are_marked_in_the_history() {
        let (mut runs, stages) = stored(&SHIFT[..2], 4);
        runs[1].marks = Some("disturbed".to_owned());
        let text = history_text(&history(&runs, &stages, 0.02), false, 100);
        let rows: Vec<_> = text.lines().filter(|line| line.contains("2026-01-0")).collect();
        assert!(!rows[0].contains("disturbed") && rows[1].ends_with("  disturbed"), "{text}");
    }

    #[test]
    fn too_few_runs_are_not_a_series_without_changes() {
        let text = |runs: usize| {
            let (runs, stages) = stored(&SHIFT[..runs], 4);
            history_text(&history(&runs, &stages, 0.02), false, 100)
        };
        let few = text(11);
        assert!(
            few.contains("changes      unknown: not enough history: 11 of the 12 runs needed"),
            "{few}"
        );
        assert!(!text(12).contains("unknown"), "{}", text(12));
    }
}
