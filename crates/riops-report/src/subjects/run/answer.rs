//! The answer of a run: a selection of the blocks of its document, in at most [`LINES_MAX`] lines of 80 columns. A table of stages has
//! a line for each stage.

use super::document::run_document;
use crate::answer::{COLUMNS_MAX, LINES_MAX, NOTES_MAX, WRAPPED_COLUMNS};
use crate::document::{Block, Detail, Document, Lines, Tone};
use crate::form::Extras;
use crate::render::text::{TEXT_INDENT, text};
use riops_model::record::Record;
use riops_model::units::format::{joined, short_id};
use riops_model::units::text::shortened;

/// Facts of the answer beside the main figure, with the number of their lines.
const SHOWN: [(&str, usize); 7] = [
    ("rate", 1),
    ("latency", 2),
    ("response", 2),
    ("bottleneck", 2),
    ("valid", 2),
    ("stored", 2),
    ("try next", 2),
];

/// The text of a run for people: the default form.
pub(crate) fn printed(record: &Record, extras: &Extras<'_>) -> String {
    let of_run = match extras.lines.detail {
        Detail::Everything => text(&run_document(record, extras), extras.lines),
        Detail::Answer => answer(record, extras, true),
        Detail::AnswerWithoutWarnings => answer(record, extras, false),
    };
    of_run + &extras.histogram_below(record)
}

/// Lines of the next command and its purpose.
const COMMAND_LINES: usize = 2;

/// Lines of an unusual fact, if there is room.
const NOTE_LINES_MAX: usize = 2;

/// An unusual fact: one line, or two if there is room.
struct Unusual {
    label: String,
    text: String,
    tone: Tone,
}

/// Returns the answer of a run. `has_warnings`: with unusual facts that are not bad news.
fn answer(record: &Record, extras: &Extras<'_>, has_warnings: bool) -> String {
    let columns = extras.lines.columns.min(COLUMNS_MAX);
    let lines = Lines { columns, ..extras.lines };
    let id = record.id.to_string();
    let stored = extras.stored.replace(&id, short_id(&id));
    let document = run_document(record, &Extras { stored: &stored, lines, ..*extras });
    let room = columns.saturating_sub(TEXT_INDENT);
    // A long command is not shortened, and shortens nothing else.
    let is_too_long = |answer: &Document, notes: usize| {
        let mut facts = answer.clone();
        facts.blocks.retain(|block| !matches!(block, Block::Commands { .. }));
        text(&facts, lines).lines().count() + COMMAND_LINES + notes > LINES_MAX
    };
    let (mut answer, mut unusual) = selected(document.clone(), room, [2, 2]);
    if is_too_long(&answer, unusual.len().min(NOTES_MAX)) {
        (answer, unusual) = selected(document.clone(), room, [1, 2]);
    }
    if is_too_long(&answer, unusual.len().min(1)) {
        (answer, unusual) = selected(document, room, [1, 1]);
    }
    add_doubts(&mut answer, record, room.saturating_sub(2));
    // Bad news first, then the reasons for doubts about the result.
    unusual.sort_by_key(|fact| (fact.tone != Tone::Bad, fact.label == "warning"));
    let free = LINES_MAX.saturating_sub(text(&answer, lines).lines().count());
    unusual.retain(|fact| has_warnings || fact.tone == Tone::Bad);
    let shown = free.clamp(1, NOTES_MAX);
    let lines_each = (free / shown.min(unusual.len()).max(1)).clamp(1, NOTE_LINES_MAX);
    let more = unusual.len().saturating_sub(shown);
    let before = answer.blocks.iter().position(is_end).unwrap_or(answer.blocks.len());
    // The reasons follow the verdict.
    let mut label = "valid".to_owned();
    let notes = unusual.into_iter().take(shown).enumerate().map(|(position, fact)| {
        let is_last = position + 1 == shown && more > 0;
        let suffix = if is_last { format!(" (and {more} more: --details)") } else { String::new() };
        let wrapped = if lines_each > 1 { WRAPPED_COLUMNS } else { 1 };
        let room = lines_each * columns.saturating_sub(TEXT_INDENT);
        let room = room.saturating_sub(suffix.chars().count() + wrapped);
        let text = whole_clauses(&fact.text, room).unwrap_or_else(|| shortened(&fact.text, room));
        let text = text + &suffix;
        let is_continued = std::mem::replace(&mut label, fact.label.clone()) == fact.label;
        let label = if is_continued { String::new() } else { fact.label };
        Block::Line { label, text, tone: Some(fact.tone) }
    });
    let notes: Vec<Block> = notes.collect();
    answer.blocks.splice(before..before, notes);
    text(&answer, lines)
}

/// Marks of a run whose data are right and whose figures are in doubt, or higher than with commits that are on disk.
const DOUBTS: [&str; 6] =
    ["not durable", "disturbed", "not steady", "outage", "stall", "connections lost"];

/// Adds to the verdict what makes a valid result less reliable. It keeps its length, or the columns of a line: its first clause
/// remains.
fn add_doubts(answer: &mut Document, record: &Record, columns: usize) {
    let marks = record.marks().into_iter().filter(|mark| DOUBTS.contains(mark));
    let doubts = joined(marks, ", ");
    for block in &mut answer.blocks {
        if let Block::Line { label, text, tone } = block
            && let Some(proof) = text.strip_prefix("yes: ").filter(|_| label == "valid")
            && !doubts.is_empty()
        {
            let room = text.chars().count().max(columns);
            let first = proof.split(", ").next().unwrap_or_default();
            let texts = [proof, first].map(|proof| format!("yes, but {doubts} · {proof}"));
            let doubtful = texts.iter().find(|text| text.chars().count() <= room);
            let doubtful = doubtful.cloned().unwrap_or_else(|| format!("yes, but {doubts}"));
            (*text, *tone) = (doubtful, Some(Tone::Warn));
        }
    }
}

/// Whether a block is below the unusual facts.
fn is_end(block: &Block) -> bool {
    matches!(block, Block::Line { label, .. } if label == "stored")
}

/// Returns the blocks of the answer, and the unusual facts. A line of text has this number of columns; a fact has at most
/// `lines_max` lines: the first number for good news, the second one for others.
fn selected(document: Document, columns: usize, lines_max: [usize; 2]) -> (Document, Vec<Unusual>) {
    let [good_max, others_max] = lines_max;
    let (mut answer, mut unusual) = (Document::default(), Vec::new());
    let work = work(&document, columns.saturating_sub(1));
    let mut gaps = 0;
    let mut label = String::new();
    // The label of the main figure, unless the stages are a table.
    let mut main: Option<String> = None;
    for block in document.blocks {
        match block {
            Block::Title(_) => answer.blocks.push(block),
            Block::Gap => {
                gaps += 1;
                match &work {
                    Some(work) if gaps == 1 => answer.line("workload", work.as_str()),
                    _ if gaps == 1 => answer.gap(),
                    _ => {}
                }
            }
            Block::Table(_) if gaps == 1 => {
                main.get_or_insert_default();
                answer.blocks.push(block);
            }
            Block::Line { label: own, text, tone } => {
                let continues = own.is_empty();
                if !continues {
                    label = own;
                }
                let is_main =
                    label != "rate" && *main.get_or_insert_with(|| label.clone()) == label;
                let shown = SHOWN.iter().find(|(shown, _)| *shown == label && !continues);
                let own = if continues { String::new() } else { label.clone() };
                if is_main {
                    let tone = (!continues).then_some(Tone::Main);
                    let is_narrow = others_max == 1;
                    let room = columns.saturating_sub(2);
                    let clauses = || whole_clauses(&text, room);
                    let short = || clauses().unwrap_or_else(|| shortened(&text, room));
                    let text = if is_narrow { short() } else { text };
                    answer.blocks.push(Block::Line { label: own, text, tone });
                } else if let Some((_, lines)) = shown {
                    // A restriction follows a semicolon.
                    let is_short = tone == Some(Tone::Good) && !text.contains("; ");
                    let lines = if is_short { good_max } else { others_max }.min(*lines);
                    let text = if is_latency(&label) { main_percentiles(&text) } else { text };
                    let wrapped = if lines > 1 { WRAPPED_COLUMNS } else { 2 };
                    let room = lines * columns.saturating_sub(wrapped);
                    let has_clauses = is_latency(&label) || label == "bottleneck";
                    let clauses = has_clauses.then(|| whole_clauses(&text, room)).flatten();
                    let text = clauses.unwrap_or_else(|| shortened(&text, room));
                    answer.blocks.push(Block::Line { label: own, text, tone });
                } else if let Some(tone) = tone.filter(|tone| *tone != Tone::Good) {
                    unusual.push(Unusual { label: label.clone(), text, tone });
                } else if label == "errors" && !continues {
                    unusual.push(Unusual { label: own, text, tone: Tone::Bad });
                }
            }
            Block::Commands { label, commands } => {
                let first: Vec<_> = commands.into_iter().take(1).collect();
                let has_label = !matches!(answer.blocks.last(), Some(Block::Line { label, .. }) if label == "try next");
                let label = if has_label { label } else { String::new() };
                answer.blocks.push(Block::Commands { label, commands: first });
            }
            _ => {}
        }
    }
    (answer, unusual)
}

/// Returns the first clauses of a text that is longer than this number of characters; `None` if they would be less than half of it.
fn whole_clauses(text: &str, room: usize) -> Option<String> {
    if text.chars().count() <= room {
        return None;
    }
    let end = text.char_indices().nth(room).map_or(text.len(), |(position, _)| position);
    let last =
        [", ", "; ", " ("].into_iter().filter_map(|mark| text.get(..end)?.rfind(mark)).max()?;
    let first = text.get(..last)?;
    (first.chars().count() * 2 >= room).then(|| first.to_owned())
}

/// Columns of ` · 8 sessions, 10.0 s`.
const SESSIONS_COLUMNS: usize = 21;

/// The work, the sessions with the duration, and the dataset, as far as they fit into a line of text.
fn work(document: &Document, room: usize) -> Option<String> {
    let facts = document.facts();
    let text = |label: &str, position: usize| {
        facts.iter().find(|fact| fact.label == label)?.texts.get(position).cloned()
    };
    let sessions = text("workload", 1).filter(|text| text.contains(" session"));
    // `2 sessions on 2 workers, 10.0 s after 2.0 s of warm-up`, or `200 of 200 transactions in 0.119 s`
    let sessions = sessions.and_then(|text| {
        let measured = text.split(" after ").next()?;
        let (sessions, workers) = measured.split_once(" on ")?;
        let stop = workers.split_once(", ")?.1;
        Some(format!("{sessions}, {}", stop.rsplit(" in ").next()?))
    });
    let work = text("workload", 0)?;
    let sessions_columns = if sessions.is_some() { SESSIONS_COLUMNS } else { 0 };
    // Some of the statements of a transaction would look like all of them.
    let is_long = work.chars().count() > room.saturating_sub(sessions_columns);
    let name = work.split_once(": ").map(|(name, _)| name.to_owned()).filter(|_| is_long);
    let clauses = || whole_clauses(&work, room.saturating_sub(sessions_columns));
    let work = name.or_else(clauses).unwrap_or_else(|| shortened(&work, room));
    let mut parts = [sessions, text("dataset", 0)].into_iter().flatten();
    let add = |line: String, part: String| {
        let longer = format!("{line} · {part}");
        if longer.chars().count() <= room { Ok(longer) } else { Err(line) }
    };
    Some(parts.try_fold(work, add).unwrap_or_else(|fitting| fitting))
}

fn is_latency(label: &str) -> bool {
    label == "latency" || label == "response"
}

/// Returns the median, the 99th percentile and the maximum of the percentiles in a text; too few transactions for the 99th have
/// the highest one below it instead.
fn main_percentiles(text: &str) -> String {
    let has = |name: &str| text.split(" · ").any(|part| part.starts_with(name));
    let high = ["p99 ", "p95 ", "p90 "].into_iter().find(|name| has(name)).unwrap_or("p99 ");
    let is_main = |part: &&str| ["p50 ", high, "max "].iter().any(|name| part.starts_with(name));
    let shown = joined(text.split(" · ").filter(is_main), " · ");
    // In most runs, a transaction in flight at the end has lasted longer than any other.
    let is_unfinished = shown.matches('≥').count() == 1 && shown.contains("max ≥");
    if is_unfinished { shown + " (not finished at the end)" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example_cbc, example_load, example_oltp, example_record};
    use riops_model::plan::Method;
    use riops_model::record::{ErrorEntry, Validity, Warning, WarningKind};

    fn answer_text(record: &Record, columns: usize) -> String {
        let stored = format!("{} in /home/me/.local/share/riops/runs.sqlite", record.id);
        answer(record, &Extras::new(&stored, columns), true)
    }

    #[test]
    fn an_answer_has_at_most_twelve_lines_and_its_facts_are_in_the_document() {
        for record in [
            example_record(),
            example_oltp(),
            example_load(&[Method::Copy, Method::Insert]),
            example_cbc(),
        ] {
            let steps = record.stages.len();
            for columns in [60, 80, 100, usize::MAX] {
                let text = answer_text(&record, columns);
                // A step that is wider than the terminal has three lines.
                let table = match (steps, columns) {
                    (1, _) => 0,
                    (_, 60) => 3 * steps + 8,
                    _ => steps + 8,
                };
                assert!(text.lines().count() <= LINES_MAX + table, "{columns}: {text}");
                assert!(
                    text.lines().all(|line| line.chars().count() <= columns.min(100)),
                    "{text}"
                );
            }
        }
        insta::assert_snapshot!(
            [example_record(), example_oltp(), example_load(&[Method::Copy, Method::Insert])]
                .map(|record| [60, 80, 100].map(|columns| answer_text(&record, columns)).join("\n"))
                .join("\n")
        );
    }

    #[test]
    fn a_run_with_few_transactions_shows_the_highest_percentile_that_it_has() {
        assert_eq!(
            main_percentiles("p50 1 ms · p95 2 ms · p99 3 ms · p99.9 4 ms · max 5 ms"),
            "p50 1 ms · p99 3 ms · max 5 ms"
        );
        assert_eq!(
            main_percentiles("p50 1 ms · p90 2 ms · p95 3 ms · max 5 ms"),
            "p50 1 ms · p95 3 ms · max 5 ms"
        );
        assert_eq!(main_percentiles("p50 1 ms · max 5 ms"), "p50 1 ms · max 5 ms");
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_clause() {
        let text = "CPU: all processors; others used 63%, and the hypervisor stole 1% (of 200%)";
        let cut = |room| whole_clauses(text, room);
        assert_eq!(cut(75), None);
        assert_eq!(
            cut(74).unwrap(),
            "CPU: all processors; others used 63%, and the hypervisor stole 1%"
        );
        assert_eq!(cut(50).unwrap(), "CPU: all processors; others used 63%");
        assert_eq!(cut(35).unwrap(), "CPU: all processors");
        assert_eq!(cut(15), None);
    }

    #[test]
    fn the_verdict_of_a_disturbed_run_is_whole_clauses() {
        let doubtful = |columns| {
            let mut answer = Document::default();
            answer.line(
                "valid",
                "yes: every statement returned all its rows, and the tables contain them",
            );
            let mut record = example_record();
            record.verdict.warnings =
                vec![Warning { kind: WarningKind::ForeignCpu, stage: None, text: String::new() }];
            add_doubts(&mut answer, &record, columns);
            text(&answer, Lines::from(200))
        };
        let all = doubtful(100);
        assert!(
            all.ends_with(
                "disturbed · every statement returned all its rows, and the tables contain them\n"
            ),
            "{all}"
        );
        let first = doubtful(20);
        assert!(
            first.ends_with("yes, but disturbed · every statement returned all its rows\n"),
            "{first}"
        );
    }

    #[test]
    fn unusual_facts_follow_the_verdict_the_worst_first_and_the_others_are_counted() {
        let mut record = example_record();
        record.verdict.warnings.clear();
        let error = |sqlstate: &str| ErrorEntry {
            sqlstate: sqlstate.to_owned(),
            count: 3,
            sample: "canceling statement".to_owned(),
            ..ErrorEntry::default()
        };
        record.stages[0].session_loop.errors = vec![error("57014")];
        record.verdict.valid = false;
        record.verdict.reasons =
            ["one", "two", "three", "four", "five"].map(|reason| format!("reason {reason}")).into();
        assert_eq!(record.validity(), Validity::Invalid);
        let text = answer_text(&record, 80);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("NO: reason one") < at("and reason two"), "{text}");
        assert!(at("more: --details") < at("stored"), "{text}");
        record.verdict.reasons.truncate(1);
        record.stages[0].session_loop.errors.clear();
        record.verdict.warnings = vec![Warning {
            kind: WarningKind::Clock,
            stage: None,
            text: "the clock was set".to_owned(),
        }];
        let shown = |has_warnings| answer(&record, &Extras::new("no", 80), has_warnings);
        assert!(shown(true).contains("the clock was set"), "{}", shown(true));
        assert!(shown(false).contains("NO: reason one"), "{}", shown(false));
        assert!(!shown(false).contains("the clock was set"), "{}", shown(false));
    }
}
