//! Line breaking for text output: lines break after a clause if possible, else between words, and never inside
//! a word or between a number and its unit.

use unicode_width::UnicodeWidthStr;

use riops_model::units::text::one_line;

/// A line may break after a clause if the clause leaves the line at least this full.
const CLAUSE_SHARE_MIN: f64 = 0.5;
/// A unit has at most this many characters.
const UNIT_CHARS_MAX: usize = 4;

/// Number of columns of a terminal that this text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks a text into lines of at most `width` columns. A longer word is alone on its line.
pub(crate) fn fill(text: &str, width: usize) -> Vec<String> {
    let atoms = atoms(&one_line(text));
    let widths: Vec<usize> = atoms.iter().map(|atom| columns(atom)).collect();
    let mut lines = Vec::new();
    let mut start = 0;
    while start < atoms.len() {
        let fitting = fitting(widths.get(start..).unwrap_or_default(), width);
        let rest = atoms.get(start..).unwrap_or_default();
        let taken = if fitting == rest.len() { fitting } else { clause_end(rest, fitting, width) };
        lines.push(rest.get(..taken).unwrap_or_default().join(" "));
        start += taken;
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Breaks each line of a text into lines of at most `width` columns, all but the first indented. A line that fits keeps its
/// spaces.
pub fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let broken = text.lines().map(|line| {
        if columns(line) <= width.saturating_sub(indent) {
            return one_line(line).into_owned();
        }
        fill(line, width.saturating_sub(indent)).join(&format!("\n{:indent$}", ""))
    });
    broken.collect::<Vec<_>>().join("\n")
}

/// Joins the parts that fit into `width` columns, in their order. If not all fit, parts with the lowest rank
/// stay.
pub fn fit(parts: &[(u8, String)], width: usize) -> String {
    const SEPARATOR: &str = " · ";
    let mut ranks: Vec<u8> = parts.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    let line = |rank_max: u8| {
        let shown = parts.iter().filter(|(rank, text)| *rank <= rank_max && !text.is_empty());
        shown.map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(SEPARATOR)
    };
    let lines = ranks.into_iter().rev().map(line);
    lines.into_iter().find(|line| columns(line) <= width).unwrap_or_default()
}

/// Words, with a number and its unit as one, and a dot with the word before it.
fn atoms(text: &str) -> Vec<String> {
    let mut atoms: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_unit = word.chars().count() <= UNIT_CHARS_MAX
            && word.starts_with(|first: char| first.is_alphabetic() || first == '%');
        match atoms.last_mut() {
            Some(last) if word == "·" || (is_unit && is_number(last)) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => atoms.push(word.to_owned()),
        }
    }
    atoms
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['(', '+', '-']);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && digits
            .chars()
            .all(|character| character.is_ascii_digit() || matches!(character, ',' | '.'))
        && !digits.ends_with(',')
}

/// How many of these atoms fit into a line; at least one.
fn fitting(widths: &[usize], width: usize) -> usize {
    let mut used = 0usize;
    let mut count = 0;
    for atom in widths {
        used = used.saturating_add(*atom + usize::from(count > 0));
        if used > width && count > 0 {
            break;
        }
        count += 1;
    }
    count
}

/// The last end of a clause among the first `fitting` atoms, if it leaves the line full enough.
fn clause_end(atoms: &[String], fitting: usize, width: usize) -> usize {
    let ends_clause = |count: usize| {
        let next = atoms.get(count);
        atoms.get(count - 1).is_some_and(|atom| atom.ends_with([',', ';', ':', '·']))
            || next.is_some_and(|atom| atom.starts_with('('))
    };
    let line = |count: usize| columns(&atoms.get(..count).unwrap_or_default().join(" "));
    (1..=fitting)
        .rev()
        .find(|&count| ends_clause(count))
        .filter(|&count| line(count) as f64 >= CLAUSE_SHARE_MIN * width as f64)
        .unwrap_or(fitting)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_after_clauses_and_never_between_a_number_and_its_unit() {
        let text = "p50 1.18 ms · p90 1.79 ms · p95 1.94 ms · p99 2.56 ms · max 14.6 ms";
        assert_eq!(
            fill(text, 30),
            ["p50 1.18 ms · p90 1.79 ms ·", "p95 1.94 ms · p99 2.56 ms ·", "max 14.6 ms"]
        );
        assert_eq!(
            fill("waits for at least 100 ms here", 22),
            ["waits for at least", "100 ms here"]
        );
    }

    #[test]
    fn a_word_that_is_too_long_is_alone_on_its_line() {
        assert_eq!(fill("in /a/very/long/path now", 10), ["in", "/a/very/long/path", "now"]);
    }

    #[test]
    fn a_text_that_fits_is_one_line() {
        assert_eq!(fill("a, b; c", usize::MAX), ["a, b; c"]);
        assert_eq!(fill("", 5), [""]);
    }

    #[test]
    fn a_line_that_is_too_long_loses_its_least_important_parts_and_no_digit() {
        let parts = [(0, "1 s".to_owned()), (2, "p50 1 ms".to_owned()), (1, "p99 2 ms".to_owned())];
        assert_eq!(fit(&parts, 40), "1 s · p50 1 ms · p99 2 ms");
        assert_eq!(fit(&parts, 20), "1 s · p99 2 ms");
        assert_eq!(fit(&parts, 5), "1 s");
    }

    #[test]
    fn every_line_of_a_message_is_wrapped_separately() {
        assert_eq!(
            wrapped("riops: cannot connect\nhint: none", 2, 16),
            "riops: cannot\n  connect\nhint: none"
        );
    }

    proptest! {
        #[test]
        fn no_word_is_lost_or_broken(text in "[a-z0-9,;·%]{1,12}( [a-z0-9,;·%]{1,12}){0,30}", width in 1usize..90) {
            let lines = fill(&text, width);
            prop_assert_eq!(lines.join(" "), text);
            for line in lines {
                prop_assert!(columns(&line) <= width || atoms(&line).len() == 1);
            }
        }
    }
}
