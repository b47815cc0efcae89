//! Sentences that rule 8 of LANGUAGE.md replaces: a sentence begins with its subject, and a noun is repeated instead of "that of".
//! In comments, doc comments, texts of the program, SQL, scripts and documentation. There is no list of exceptions.

use crate::phrases::{starts_of, texts};
use crate::workspace::read;

/// Words that stand for a noun which is to be repeated.
const REPLACED: [&str; 6] =
    ["that of", "those of", "the one that", "the one which", "the ones that", "the ones which"];
/// Words with which no sentence begins.
const STARTS: [&str; 3] = ["Of ", "That ", "Those "];
/// A sentence that begins with "What" has none of these verbs, unless it is a question.
const VERBS: [&str; 8] = ["is", "are", "was", "were", "has", "have", "remains", "follows"];
/// A sentence that begins with "It is" has no "that" within this number of characters.
const CLEFT_CHARACTERS: usize = 32;

/// Returns every sentence that breaks a rule.
pub(crate) fn violations() -> Vec<String> {
    texts().iter().flat_map(|name| in_file(name, &read(name).unwrap())).collect()
}

fn in_file(name: &str, text: &str) -> Vec<String> {
    let blocks = match name.rsplit('.').next() {
        Some("md" | "html") => paragraphs(text),
        Some("rs") => {
            let mut blocks = comments(text, &["//"]);
            blocks.extend(literals(text));
            blocks
        }
        _ => comments(text, &["//", "--", "#"]),
    };
    let broken = |(line, block): &(usize, String)| {
        let block = remove_code(block);
        let violations: Vec<String> =
            broken_rules(&block).iter().map(|rule| format!("{name}:{line}: {rule}")).collect();
        violations
    };
    blocks.iter().flat_map(broken).collect()
}

/// Returns the rules that a text breaks, each with the sentence.
fn broken_rules(text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    let lower = text.to_lowercase();
    for words in REPLACED {
        violations
            .extend(starts_of(&lower, words).map(|at| format!("\"{words}\": {}", &lower[at..])));
    }
    for sentence in sentences(text) {
        let starts = STARTS.into_iter().find(|start| sentence.starts_with(start));
        let is_what = sentence.starts_with("What ")
            && !sentence.ends_with('?')
            && VERBS.iter().any(|verb| starts_of(sentence, verb).next().is_some());
        let cleft = ["It is ", "It was "].iter().find_map(|start| sentence.strip_prefix(start));
        let is_cleft = cleft.is_some_and(|rest| {
            let near: String = rest.chars().take(CLEFT_CHARACTERS).collect();
            near.find(" that ").is_some_and(|that| !near[..that].contains([',', ';', '.', ':']))
        });
        if starts.is_some() || is_what || is_cleft {
            violations.push(format!("begins without its subject: {sentence}"));
        }
    }
    violations
}

/// Returns the sentences of a text, each with its last character.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(' ') {
        if text[..at].ends_with(['.', '!', '?', ':', ';']) {
            sentences.push(&text[start..at]);
            start = at + 1;
        }
    }
    sentences.push(&text[start..]);
    sentences
}

/// Replaces what is between backquotes.
fn remove_code(text: &str) -> String {
    let part = |(position, part)| if position % 2 == 0 { part } else { "x" };
    text.split('`').enumerate().map(part).collect()
}

/// Returns the comments of a file with these marks, consecutive lines as one, with the number of their first line.
fn comments(text: &str, marks: &[&str]) -> Vec<(usize, String)> {
    let comment = |line: &str| {
        let line = line.trim_start();
        let mark = marks.iter().find(|mark| line.starts_with(**mark))?;
        let text = line[mark.len()..].trim_start_matches(['/', '!']).trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    join_lines(text.lines().map(comment))
}

/// Returns the paragraphs, items and cells of a page, without code blocks, with the number of their first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    let mut cells = Vec::new();
    for (line_number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_row = line.starts_with('|');
        if is_row && !is_code {
            cells.extend(line.split('|').map(|cell| (line_number, cell.trim().to_owned())));
        }
        let is_text = !is_code && !is_fence && !is_row && !line.is_empty();
        lines.push(is_text.then(|| line.trim_start_matches(['#', '>', ' ']).to_owned()));
    }
    let mut paragraphs = join_lines(lines.into_iter());
    paragraphs.append(&mut cells);
    paragraphs
}

/// Joins consecutive lines. An item of a list begins a new text.
fn join_lines(lines: impl Iterator<Item = Option<String>>) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (line_number, line) in (1..).zip(lines) {
        let Some(line) = line else {
            is_open = false;
            continue;
        };
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        match blocks.last_mut().filter(|_| is_open && item.is_none()) {
            Some((_, block)) => *block = format!("{block} {line}"),
            None => blocks.push((line_number, item.unwrap_or(&line).to_owned())),
        }
        is_open = true;
    }
    blocks
}

/// Returns the string literals with several words that are on one line, with its number.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut literals = Vec::new();
    for (line_number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        if line.starts_with("//") {
            continue;
        }
        let parts = line.replace("\\\"", "'").replace("'\"'", "''");
        let inside = parts.split('"').skip(1).step_by(2).filter(|part| part.contains(' '));
        literals.extend(inside.map(|part| (line_number, part.to_owned())));
    }
    literals
}

#[test]
fn finds_sentences_without_a_subject_and_pronouns_in_place_of_nouns() {
    for (text, count) in [
        ("// Returns the rate. Of each stage.\n", 1),
        ("/// Errors are those\n/// of the query.\nfn f() {}\n", 1),
        ("let text = \"the load is that of others\";\n", 1),
        ("//! What follows is a list.\n", 1),
        ("//! What is it? That is known: Those are few.\n", 2),
        ("// It is the run that decides.\n// It is checked, so that nothing is lost.\n", 1),
        ("// Those\n\n// The one `that of` code is no sentence. The one that remains.\n", 1),
    ] {
        let violations = in_file("a.rs", text);
        assert_eq!(violations.len(), count, "{text}: {violations:?}");
    }
    let page = "# Title\n\nThe exit code is\nthat of psql.\n\n- Of two.\n\n| cell | That one |\n```sh\nThat is code\n```\n";
    let violations = in_file("a.md", page);
    assert_eq!(violations.len(), 3, "{violations:?}");
    assert!(violations[0].starts_with("a.md:3: \"that of\""), "{violations:?}");
}
