//! The access paths of a run, with the plans that were found.

use super::view::{Details, Section};
use crate::figure::Summary;
use crate::record::{AccessRecord, Record, moment_text};
use crate::report::document::Document;
use crate::report::table::{Table, word};
use crate::report::words;
use crate::report::words::Words;

/// Returns the section of the access paths.
pub(super) fn section(record: &Record, id: &str) -> Section {
    Section {
        tables: paths(record).into_iter().collect(),
        texts: plans(record).into_iter().chain(statements(record)).collect(),
        ..Section::new(id, "Access paths")
    }
}

pub(super) fn paths(record: &Record) -> Option<Table> {
    let words = words::of(&record.plan.work);
    let summary = Summary::of(record)?;
    let paths = summary.access_paths(|expected| words.access_path(expected, record));
    Table::of(
        "access paths",
        paths,
        [
            (word("expected"), |path| path.path.as_str().into()),
            (word("found"), |path| path.verdict().into()),
            (word("checked"), |path| {
                let checked = match path.unchecked() {
                    Some(unchecked) => format!("{}; {unchecked}", path.checked()),
                    None => path.checked(),
                };
                checked.strip_prefix("checked ").unwrap_or(&checked).into()
            }),
        ],
    )
    .filled()
}

/// The expected paths with their verdicts, and the plans of a path that changed.
pub(super) fn lines(document: &mut Document, summary: &Summary<'_>, words: &dyn Words) {
    let name = |expected: &str| words.access_path(expected, summary.record);
    let paths = summary.access_paths(name);
    let mut shown = None;
    for checked_path in &paths {
        let (path, verdict) = (&checked_path.path, checked_path.verdict());
        // Usually all paths are checked at the same moments, which are shown once.
        let checked = checked_path.checked();
        let moments =
            if shown.as_ref() == Some(&checked) { String::new() } else { format!("; {checked}") };
        let unchecked =
            checked_path.unchecked().map_or_else(String::new, |text| format!("; {text}"));
        let label = if shown.is_none() { "access path" } else { "" };
        document.line(label, format!("{path} ({verdict}{moments}{unchecked})"));
        shown.get_or_insert(checked);
    }
    let is_changed = |access: &&AccessRecord| !access.held && access.error.is_none();
    if let Some(changed) = summary.record.accesses.iter().find(is_changed) {
        let earlier = summary
            .record
            .accesses
            .iter()
            .find(|access| access.statement == changed.statement && access.held);
        for access in earlier.into_iter().chain([changed]) {
            document.verbatim(format!("plan {} the run:", moment_text(&access.moment)));
            let indented = access.found.lines().map(|line| format!("  {line}\n"));
            document.verbatim(indented.collect::<String>());
        }
    }
}

/// A plan with the moments at which it was found.
struct Found<'a> {
    access: &'a AccessRecord,
    moments: Vec<&'a str>,
}

/// The plans of all statements, each once.
fn plans(record: &Record) -> Vec<Details> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for access in &record.accesses {
        let known = found.iter_mut().find(|each| {
            let other = each.access;
            (&other.statement, &other.stage, &other.found, other.held, &other.error)
                == (&access.statement, &access.stage, &access.found, access.held, &access.error)
        });
        match known {
            Some(each) => each.moments.push(&access.moment),
            None => found.push(Found { access, moments: vec![&access.moment] }),
        }
    }
    found.into_iter().map(details).collect()
}

fn details(Found { access, mut moments }: Found<'_>) -> Details {
    moments.dedup();
    let moments: Vec<_> = moments.into_iter().map(moment_text).collect();
    let verdict = match (&access.error, access.held) {
        (Some(_), _) => "not checked",
        (None, true) if access.observed => "unchanged",
        (None, true) => "as expected",
        (None, false) => "CHANGED",
    };
    let stage = access.stage.as_ref().map_or_else(String::new, |stage| format!(" · {stage}"));
    let mut text = access.error.clone().unwrap_or_else(|| access.found.clone());
    if !access.held && !access.expected.is_empty() {
        let label = if access.observed { "found first" } else { "expected" };
        text = format!("{label}: {}\n\n{text}", access.expected);
    }
    Details {
        title: format!("{}{stage}: {verdict} ({} the run)", access.statement, moments.join(", ")),
        text,
        open: verdict == "CHANGED",
    }
}

/// The statements that ran once, with their plans.
fn statements(record: &Record) -> Vec<Details> {
    let each = |stage: &crate::record::StageRecord| {
        let statement = stage.statement.as_ref()?;
        let plan = statement
            .plan
            .as_ref()
            .map_or_else(String::new, |plan| format!("\n\n{}", plan.outline));
        Some(Details {
            title: format!("{}: statement", stage.name),
            text: format!("{}{plan}", statement.sql.trim()),
            open: false,
        })
    };
    record.stages.iter().filter_map(each).collect()
}
