//! The result of an experiment: text, Markdown and page from one document, and JSON, CSV and PNG files. Pure.

mod boxes;
mod cells;
mod chart_axes;
mod charts;
mod csv;
#[cfg(test)]
mod example;
mod frontier;
mod heat;
mod lead;
mod limits;
mod saturation;
mod tables;
#[cfg(test)]
mod tests;

pub use csv::csv;

use self::cells::{short_name, with_interval};
use super::comparison_charts;
use crate::answer::{EVERYTHING, add_conclusions};
use crate::chart::Chart;
use crate::document::{Badge, Document, Findings, Headline, Hint, Tone};
use crate::effect::{change_text, leveled_interval, outcome_text};
use crate::form::Image;
use crate::render::png::{DrawingError, chart_png};
use crate::setup::{cpu_text, main_settings};
use crate::words;
use riops_model::figure::{Figure, Summary};
use riops_model::plan::Caches;
use riops_model::record::{Disk, Record};
use riops_model::stats::Outcome;
use riops_model::study::evaluation::{StudyKind, StudyView, evaluate};
use riops_model::study::{Level, Study, counted, next};
use riops_model::units::format::{factor, joined, number_of, rate, short_id};

/// Returns the result of an experiment, as far as its runs ended.
pub fn view(study: &Study) -> StudyView {
    let is_unfinished = next(study).is_some();
    let study = &counted(study);
    let mut view = evaluate(study);
    let records: Vec<&Record> = study.finished.iter().filter_map(|run| run.usable()).collect();
    view.environment = environment(&records);
    view.is_unfinished = is_unfinished;
    view
}

/// Returns the document of the result.
pub fn experiment(view: &StudyView) -> Findings {
    let mut findings = Findings {
        id: view.id.clone(),
        badge: Some(badge(view)),
        headline: headline(view),
        ..Findings::new(title(view))
    };
    lead::conditions(&mut findings.conditions, view);
    for (position, table) in tables::tables(view).into_iter().enumerate() {
        if position > 0 {
            findings.results.gap();
        }
        findings.results.title(&table.title);
        findings.results.table(table);
    }
    for chart in charts::charts(view) {
        findings.results.chart(chart);
    }
    for picture in pictures(view) {
        findings.results.picture(picture);
    }
    lead::conclusion(&mut findings.conclusion, view);
    findings.answer = answer(view, &findings.conclusion);
    findings
}

/// Where it was measured, the cells, and what follows from them.
fn answer(view: &StudyView, conclusion: &Document) -> Document {
    let mut answer = Document::default();
    answer.title(title(view));
    answer.lines("server", view.environment.first().cloned());
    answer.line("runs", lead::runs(view));
    answer.gap();
    if let Some(table) = tables::main(view) {
        answer.table(table);
    }
    answer.gap();
    add_conclusions(&mut answer, conclusion);
    let show = format!("riops experiments show {}", short_id(&view.id));
    answer.commands("try next", vec![Hint::new(show, EVERYTHING)]);
    answer
}

/// The pictures of both variants of an A/B test.
fn pictures(view: &StudyView) -> impl Iterator<Item = Chart> {
    let names = match view.cells.as_slice() {
        [a, b] => [a, b].map(|cell| cell.values.first().map_or("", String::as_str)),
        _ => ["", ""],
    };
    let stages = view.variants.iter().enumerate();
    stages.flat_map(move |(position, stage)| {
        comparison_charts::charts(&format!("study-variants-{position}"), names, stage)
    })
}

/// Returns the charts as PNG files, the main one first; empty without values.
///
/// # Errors
/// Returns [`DrawingError::Failed`] if the drawing library fails.
pub fn png(view: &StudyView) -> Result<Vec<Image>, DrawingError> {
    let subtitle = title(view);
    let image = |chart: &Chart| {
        let name = chart.id.replacen("study-", &format!("riops-{}-", short_id(&view.id)), 1);
        Ok(Image { name, bytes: chart_png(chart, &subtitle)? })
    };
    charts::charts(view).into_iter().chain(pictures(view)).map(|chart| image(&chart)).collect()
}

/// `riops sweep · ybio-batch-size · rows`; `riops sweep · rows` without a name.
fn title(view: &StudyView) -> String {
    let command = match view.kind {
        StudyKind::Sweep => "sweep",
        StudyKind::Ab => "ab",
        StudyKind::Saturation => "sweep --find-saturation",
    };
    let name = view.name.strip_prefix("sweep ").unwrap_or(&view.name);
    let is_named = name.split(' ').next() == Some(&view.workload);
    let workload = if is_named { String::new() } else { format!(" · {}", view.workload) };
    format!("riops {command} · {name}{workload}")
}

/// Server, dataset, work and machine, where all runs have the same.
fn environment(records: &[&Record]) -> Vec<String> {
    let texts: [fn(&Record) -> String; 7] = [
        |record| Summary::first_stage(record).map(|summary| summary.target()).unwrap_or_default(),
        main_settings,
        |record| {
            let disk = |disk: &Disk| format!("device {} ({})", disk.name, disk.roles.join(", "));
            joined(record.target.devices.iter().map(disk), ", ")
        },
        |record| words::dataset_text(record).unwrap_or_default(),
        |record| words::for_work(&record.plan.work).work(),
        setup,
        |record| {
            let (host, riops) = (&record.client.machine.host, &record.client.riops_version);
            let client = match record.agents.len() {
                0 => "client".to_owned(),
                agents => format!("{}, the first on", number_of(agents as u64, "agent")),
            };
            format!("{client} {host}: {}, riops {riops}", cpu_text(record))
        },
    ];
    let common = |text: &fn(&Record) -> String| {
        let first = text(records.first()?);
        let is_common = records.iter().all(|record| text(record) == first);
        (is_common && !first.is_empty()).then_some(first)
    };
    texts.iter().filter_map(common).collect()
}

/// Sessions, caches and what is not the default of the session loop.
fn setup(record: &Record) -> String {
    let sessions = number_of(record.plan.sessions.into(), "session");
    let caches = match record.plan.work.traits().caches {
        Caches::AsFound => None,
        Caches::Cold | Caches::ColdTry => Some("cold caches".to_owned()),
        Caches::Warm => Some("warm caches".to_owned()),
    };
    let drive = Summary::first_stage(record).and_then(|summary| summary.drive());
    joined([Some(sessions), caches, drive].into_iter().flatten(), ", ")
}

fn badge(view: &StudyView) -> Badge {
    let done = view.runs.usable + view.runs.invalid + view.runs.failed;
    let is_complete =
        !view.is_unfinished && view.planned_runs.is_none_or(|planned| done >= planned);
    let text = if !is_complete {
        "incomplete".to_owned()
    } else if view.runs.usable != done {
        "some runs not usable".to_owned()
    } else {
        let marks = view.marked.iter().map(|(mark, count)| format!(", {count} of {done} {mark}"));
        format!("all runs valid{}", marks.collect::<String>())
    };
    let is_good = is_complete && view.runs.usable == done && view.marked.is_empty();
    Badge { text, tone: if is_good { Tone::Good } else { Tone::Warn } }
}

fn headline(view: &StudyView) -> Option<Headline> {
    match view.kind {
        StudyKind::Sweep => of_best(view),
        StudyKind::Ab => of_test(view),
        StudyKind::Saturation => of_search(view),
    }
}

/// The main figure of the best cell.
fn of_best(view: &StudyView) -> Option<Headline> {
    let cell = view.cells.get(view.best?)?;
    let main = view.main_of(&cell.group)?;
    let text = |value| main.figure.text(value);
    let interval = main.estimate.interval;
    let interval = interval
        .map(|interval| format!("95% interval {} to {}", text(interval.low), text(interval.high)));
    let against = view.best_against.as_ref();
    let scaling = against.and_then(|against| match against.outcome? {
        Outcome::Faster | Outcome::Slower => {
            Some(format!("{}x the baseline", factor(against.ratio)))
        }
        Outcome::Equivalent => Some("equivalent to the baseline".to_owned()),
        Outcome::Inconclusive => Some("no significant difference from the baseline".to_owned()),
    });
    let has_prices = !view.offers().is_empty();
    let cheapest = has_prices.then(|| lead::leader(view, Figure::PricePerMillionTransactions));
    let cheapest = cheapest.flatten().map(|text| format!("cheapest: {text}"));
    Some(Headline {
        label: format!("Best: {}", cell.name),
        value: main.text(),
        unit: main.figure.heading().to_owned(),
        detail: joined(interval.into_iter().chain(scaling).chain(cheapest), " · "),
    })
}

/// The second variant relative to the first.
fn of_test(view: &StudyView) -> Option<Headline> {
    let [one, other] = view.cells.as_slice() else {
        return None;
    };
    let main = view.main_of(&other.group)?;
    let against = main.against_baseline.as_ref()?;
    Some(Headline {
        label: format!("{} relative to {}", short_name(view, other), short_name(view, one)),
        value: match against.outcome? {
            // The estimate would look like an effect.
            Outcome::Inconclusive => outcome_text(Outcome::Inconclusive).to_owned(),
            _ => change_text(against.ratio),
        },
        unit: main.figure.heading().to_owned(),
        detail: against.interval.map(leveled_interval).unwrap_or_default(),
    })
}

/// What the search of a single cell found.
fn of_search(view: &StudyView) -> Option<Headline> {
    let [cell] = view.cells.as_slice() else {
        return None;
    };
    let saturation = cell.saturation.as_ref()?;
    if let Some(per_s) = saturation.rate.as_ref().and_then(|rate| rate.rate_per_s) {
        return Some(Headline {
            label: "Highest sustained rate".to_owned(),
            value: rate(per_s),
            unit: "transactions/s".to_owned(),
            detail: saturation.thresholds.join(" and "),
        });
    }
    let sessions = saturation.sessions.as_ref()?.saturation;
    let level = cell.levels.iter().find(|level| level.level == Level::Sessions(sessions))?;
    let main = view.main_of(&level.group)?;
    Some(Headline {
        label: "Saturation".to_owned(),
        value: sessions.to_string(),
        unit: "sessions".to_owned(),
        detail: format!("{} TPS", with_interval(main)),
    })
}
