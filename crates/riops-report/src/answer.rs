//! The text of findings: the answer in at most [`LINES_MAX`] lines beside its table of cells, or everything.

use crate::document::{Block, Detail, Document, Findings, Lines, Tone};
use crate::render::text::{TEXT_INDENT, text};
use riops_model::units::format::number_of;
use riops_model::units::text::shortened;

/// Number of lines, if a run has one stage, or beside a table of cells.
pub(crate) const LINES_MAX: usize = 12;
/// Number of unusual facts of a run that are shown.
pub(crate) const NOTES_MAX: usize = 3;
/// Columns of a line, also without a terminal.
pub(crate) const COLUMNS_MAX: usize = 100;
/// Columns that may stay empty at the end of a wrapped line.
pub(crate) const WRAPPED_COLUMNS: usize = 8;
/// Lines of a text.
const TEXT_LINES_MAX: usize = 3;
/// Texts of a label.
const TEXTS_MAX: usize = 3;

/// The purpose of a next command that shows all facts.
pub(crate) const EVERYTHING: &str = "everything";

/// Conclusions that an answer shows, the most important first.
const CONCLUSIONS: [&str; 19] = [
    "best",
    "fastest",
    "cheapest",
    "saturation",
    "threshold",
    "beyond",
    "verdict",
    "round trip",
    "found",
    "certain",
    "to decide",
    "rate",
    "caution",
    "not usable",
    "why",
    "bottleneck",
    "open loop",
    "changed",
    "note",
];

/// Conclusions that say the result of an experiment in one sentence, the first one that it has.
const VERDICTS: [&str; 5] = ["verdict", "saturation", "found", "fastest", "best"];

/// The result of findings in one sentence; empty without one.
pub fn verdict_text(findings: &Findings) -> String {
    let facts = findings.conclusion.facts();
    let verdict = VERDICTS.iter().find_map(|label| {
        let fact = facts.iter().find(|fact| fact.label == *label)?;
        let text = fact.texts.first()?;
        Some(if *label == "verdict" { text.clone() } else { format!("{label}: {text}") })
    });
    verdict.unwrap_or_default()
}

/// The findings in lines of this width: the answer, or everything with the conclusion at the end.
pub fn findings_text(findings: &Findings, lines: impl Into<Lines>) -> String {
    let lines = lines.into();
    if lines.detail != Detail::Everything {
        return shortened_answer(&findings.answer, lines);
    }
    let mut document = Document::default();
    document.title(&findings.title);
    for part in [&findings.conditions, &findings.results, &findings.conclusion] {
        document.gap();
        document.blocks.extend(part.blocks.iter().cloned());
    }
    text(&document, lines)
}

/// Adds the conclusions that an answer shows, in the order of their importance.
pub(crate) fn add_conclusions(answer: &mut Document, conclusion: &Document) {
    let facts = conclusion.facts();
    for label in CONCLUSIONS {
        for fact in facts.iter().filter(|fact| fact.label == label) {
            answer.toned_lines(label, fact.texts.iter().map(|text| (text.clone(), fact.tone)));
        }
    }
}

/// Returns the text of an answer without the facts at its end that do not fit, and their number. The last one that is shown may be
/// shortened.
pub(crate) fn shortened_answer(answer: &Document, lines: Lines) -> String {
    let lines = Lines { columns: lines.columns.min(COLUMNS_MAX), ..lines };
    let is_quiet = lines.detail == Detail::AnswerWithoutWarnings;
    let width = lines.columns.saturating_sub(TEXT_INDENT);
    let room = TEXT_LINES_MAX * width;
    let (mut kept, mut more) = (Document::default(), 0);
    let (mut label, mut texts) = (String::new(), 0);
    for block in &answer.blocks {
        let Block::Line { label: own, text, tone } = block else {
            kept.blocks.push(block.clone());
            continue;
        };
        if !own.is_empty() {
            (label, texts) = (own.clone(), 0);
        }
        texts += 1;
        if is_quiet && label == "note" && *tone != Some(Tone::Bad) {
            continue;
        }
        if texts > TEXTS_MAX {
            more += 1;
        } else {
            kept.push_line(own, shortened(text, room), *tone);
        }
    }
    let is_command = |block: &mut Block| matches!(block, Block::Commands { .. });
    let next = kept.blocks.pop_if(is_command);
    // The next command shows what does not fit.
    let is_rest_shown = matches!(&next, Some(Block::Commands { commands, .. })
        if commands.iter().any(|hint| hint.purpose == EVERYTHING));
    let counted_lines = |document: &Document| {
        let is_counted = |block: &&Block| !matches!(block, Block::Table(table) if table.has_cells);
        let blocks = document.blocks.iter().chain(&next).filter(is_counted).cloned().collect();
        text(&Document { blocks }, lines).lines().count()
    };
    let free = |kept: &Document, more: u64| {
        LINES_MAX.checked_sub(counted_lines(kept) + usize::from(more > 0 && !is_rest_shown))
    };
    while free(&kept, more).is_none()
        && let Some(Block::Line { label, text, tone }) =
            kept.blocks.pop_if(|block| matches!(block, Block::Line { .. }))
    {
        let room = free(&kept, more).unwrap_or_default() * width;
        if room > 0 {
            kept.push_line(&label, shortened(&text, room - WRAPPED_COLUMNS), tone);
            if free(&kept, more).is_some() {
                break;
            }
            kept.blocks.pop();
        }
        more += 1;
    }
    if more > 0 && !is_rest_shown {
        kept.line("more", format!("{}: --details", number_of(more, "fact")));
    }
    kept.blocks.extend(next);
    text(&kept, lines)
}

/// Returns the answers of findings in 60, 80 and 100 columns, which have the required size.
#[cfg(test)]
pub(crate) fn answers(findings: &Findings) -> String {
    let text = |columns: usize| {
        let text = findings_text(findings, Lines { detail: Detail::Answer, ..columns.into() });
        let cells = findings.answer.tables().filter(|table| table.has_cells);
        let cells: usize = cells.map(|table| table.rows.len() + 1).sum();
        assert!(text.lines().count() <= LINES_MAX + cells, "{columns}: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
        text
    };
    [60, 80, 100].map(text).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(count: usize) -> Findings {
        let mut findings = Findings::new("title");
        findings.answer.title("title");
        findings.answer.line("verdict", "B is FASTER");
        for position in 0..count {
            findings.answer.line(&format!("label {position}"), format!("text {position}"));
        }
        findings.answer.lines("note", ["first", "second"].map(str::to_owned));
        findings
    }

    #[test]
    fn facts_that_do_not_fit_are_counted() {
        let text = answers(&notes(11));
        assert!(text.contains("label 8") && !text.contains("label 9"), "{text}");
        assert!(text.contains("  more         4 facts: --details\n"), "{text}");
        assert!(!answers(&notes(7)).contains("more"));
    }

    #[test]
    fn a_quiet_answer_has_no_notes() {
        let lines = Lines { detail: Detail::AnswerWithoutWarnings, ..Lines::from(80) };
        assert_eq!(findings_text(&notes(0), lines), "title\n  verdict      B is FASTER\n");
    }
}
