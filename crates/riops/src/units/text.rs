//! Characters that a terminal executes or that reorder the text around them.

/// Returns whether a character must not be shown: control characters (C0, DEL and C1), controls of bidirectional text,
/// and the line and paragraph separators of Unicode.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_unprintable_and_letters_are_not() {
        for c in "\0\t\n\r\u{1b}\u{7f}\u{80}\u{9b}\u{9f}".chars() {
            assert!(is_unprintable(c), "{c:?}");
        }
        for c in "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}".chars() {
            assert!(is_unprintable(c), "{c:?}");
        }
        for c in " ~\u{a0}äعא漢🐘\u{200d}\u{2065}\u{206a}".chars() {
            assert!(!is_unprintable(c), "{c:?}");
        }
    }
}
