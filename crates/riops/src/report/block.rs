//! Labeled lines.

use std::fmt::Write as _;

/// Where labels end and facts begin.
const LABEL_WIDTH: usize = 11;

/// Labeled lines.
#[derive(Default)]
pub(super) struct Block(pub(super) String);

impl Block {
    pub(super) fn line(&mut self, label: &str, text: &str) {
        let _ = writeln!(self.0, "  {label:<LABEL_WIDTH$}{text}");
    }

    pub(super) fn gap(&mut self) {
        self.0.push('\n');
    }
}
