//! Characters that a terminal obeys or does not show, as visible escapes: `\u{9b}`.
//!
//! Names, labels and error texts come from servers, files and other users. Shown as they are, they could move the
//! cursor, hide text or change the order in which it is read.

use std::borrow::Cow;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Returns whether a terminal obeys this character or does not show it: the control characters C0, DEL and C1, the
/// controls of bidirectional text, and the separators of lines and paragraphs.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a value for a line of output: no unprintable character, so that it cannot start another line.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c, _| is_unprintable(c))
}

/// Returns the name that is most similar to a word, with at most one typing error per three characters, and at least one.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance_max = (word.chars().count() / 3).max(1);
    let distances = names.into_iter().map(|name| (strsim::osa_distance(word, name), name));
    distances.min().filter(|(distance, _)| *distance <= distance_max).map(|(_, name)| name)
}

/// Returns the first characters of a text, at most `most`, in one line, with `…` if there are more.
pub fn shortened(text: &str, most: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = one_line(&words);
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.into_owned(),
    }
}

/// Returns the lines of an output. Tabs and line breaks stay, including the line breaks of CSV.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c, next| {
        is_unprintable(c) && !matches!((c, next), ('\n' | '\t', _) | ('\r', Some('\n')))
    })
}

/// Returns a JSON text with JSON escapes. In JSON, all these characters are parts of strings; the line breaks of a
/// pretty text stay.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_raw = |c: char| is_unprintable(c) && c != '\n';
    if !text.contains(is_raw) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_raw(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Returns a value as an indented JSON text that ends with a line break.
///
/// # Errors
/// If the value cannot be encoded.
pub fn json_text<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    Ok(json(&serde_json::to_string_pretty(value)?).into_owned() + "\n")
}

/// Escapes the characters for which `is_escaped` returns true. It also gets the next character. The text is borrowed if
/// there are none.
fn escaped(text: &str, is_escaped: impl Fn(char, Option<char>) -> bool) -> Cow<'_, str> {
    let mut escaped = String::new();
    let mut copied = 0;
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        if is_escaped(c, rest.clone().next().map(|(_, next)| next)) {
            escaped.push_str(text.get(copied..at).unwrap_or_default());
            escaped.extend(c.escape_unicode());
            copied = at + c.len_utf8();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    escaped.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(escaped)
}

/// Returns the SHA-256 of a text, or of other bytes, in hexadecimal digits.
pub fn hash_text(text: impl AsRef<[u8]>) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns a word for a shell, in quotes if necessary.
pub fn shell_word(word: &str) -> String {
    let is_plain = |character: char| {
        character.is_ascii_alphanumeric()
            || "_-+=:,./@%".contains(character)
            || !character.is_ascii()
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_characters_that_control_a_terminal() {
        let hostile =
            "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}ä→\tb\r\nc\rd\n";
        assert_eq!(
            one_line(hostile),
            "a\\u{1b}[2J\\u{9b}\\u{7f}\\u{202e}\\u{2066}\\u{200f}\\u{61c}\\u{2028}ä→\\u{9}b\\u{d}\\u{a}c\\u{d}d\\u{a}"
        );
        assert!(lines(hostile).ends_with("ä→\tb\r\nc\\u{d}d\n"));
        assert!(matches!(lines("a\t→\nb\r\n"), Cow::Borrowed(_)));
        assert_eq!(lines("\u{9b}"), "\\u{9b}");
    }

    proptest! {
        #[test]
        fn json_is_lossless(text in any::<String>()) {
            let written = serde_json::to_string_pretty(&[&text]).unwrap();
            let shown = json(&written);
            prop_assert!(!shown.replace('\n', "").contains(is_unprintable));
            prop_assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [text]);
        }
    }
}
