//! The access paths of a run, with the plans that were found.

use super::view::{Details, Section};
use crate::document::Document;
use crate::paths::CheckedPath;
use crate::table::{Table, text_column};
use crate::words::{self, Words};
use riops_model::figure::Summary;
use riops_model::record::{AccessRecord, Record, StageRecord, moment_text};
use riops_model::units::format::joined;

/// Returns the section of the access paths.
pub(super) fn section(record: &Record, id: &str) -> Section {
    let texts = plans(record).into_iter().chain(statements(record)).collect();
    Section { texts, ..Section::new(id, "Access paths") }.with_tables(paths(record))
}

pub(super) fn paths(record: &Record) -> Option<Table> {
    let words = words::for_work(&record.plan.work);
    let summary = Summary::first_stage(record)?;
    let paths = CheckedPath::group_accesses(&summary.record.accesses, |expected| {
        words.access_path(expected, record)
    });
    Some(Table::from_items("access paths", paths, |path| {
        let checked = joined(std::iter::once(path.checked()).chain(path.unchecked()), "; ");
        [
            (text_column("expected"), path.path.as_str().into()),
            (text_column("found"), path.verdict().into()),
            (text_column("checked"), checked.strip_prefix("checked ").unwrap_or(&checked).into()),
        ]
    }))
}

/// The expected paths with their verdicts, and the plans of a path that changed.
pub(super) fn lines(document: &mut Document, summary: &Summary<'_>, words: &dyn Words) {
    let name = |expected: &str| words.access_path(expected, summary.record);
    let paths = CheckedPath::group_accesses(&summary.record.accesses, name);
    let first = paths.first().map(CheckedPath::checked);
    let texts = paths.iter().enumerate().map(|(position, path)| {
        // Usually all paths are checked at the same moments, which are shown once.
        let moments =
            Some(path.checked()).filter(|all| position == 0 || Some(all) != first.as_ref());
        let verdict = std::iter::once(path.verdict().to_owned());
        let verdict = joined(verdict.chain(moments).chain(path.unchecked()), "; ");
        format!("{} ({verdict})", path.path)
    });
    document.lines("access path", texts);
    let all = || summary.record.accesses.iter();
    if let Some(changed) = all().find(|access| !access.held && access.error.is_none()) {
        let earlier = all().find(|access| access.statement == changed.statement && access.held);
        for access in earlier.into_iter().chain([changed]) {
            document.verbatim(format!("plan {} the run:", moment_text(&access.moment)));
            let indented = access.found.lines().map(|line| format!("  {line}\n"));
            document.verbatim(indented.collect::<String>());
        }
    }
}

/// The plans of all statements, each once, with the moments at which it was found.
fn plans(record: &Record) -> Vec<Details> {
    let mut plans: Vec<(&AccessRecord, Vec<&str>)> = Vec::new();
    for access in &record.accesses {
        let known = plans.iter_mut().find(|(other, _)| {
            (&other.statement, &other.stage, &other.found, other.held, &other.error)
                == (&access.statement, &access.stage, &access.found, access.held, &access.error)
        });
        match known {
            Some((_, moments)) => moments.push(&access.moment),
            None => plans.push((access, vec![&access.moment])),
        }
    }
    plans.into_iter().map(|(access, moments)| details(access, moments)).collect()
}

fn details(access: &AccessRecord, mut moments: Vec<&str>) -> Details {
    moments.dedup();
    let moments = joined(moments.into_iter().map(moment_text), ", ");
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
        title: format!("{}{stage}: {verdict} ({moments} the run)", access.statement),
        text,
        open: verdict == "CHANGED",
    }
}

/// The statements that ran once, with their plans.
fn statements(record: &Record) -> Vec<Details> {
    let details_of = |stage: &StageRecord| {
        let statement = stage.statement.as_ref()?;
        let plan = statement.plan.as_ref();
        let plan = plan.map_or_else(String::new, |plan| format!("\n\n{}", plan.outline));
        let text = format!("{}{plan}", statement.sql.trim());
        Some(Details { title: format!("{}: statement", stage.name), text, open: false })
    };
    record.stages.iter().filter_map(details_of).collect()
}
