//! Variables of a client. Their names are known when the scripts are parsed, so that a run uses numbers.

use std::collections::HashMap;

use crate::value::Value;

/// Number of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u32);

impl Slot {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of all variables of the scripts of a run.
#[derive(Debug, Clone, Default)]
pub struct Names {
    names: Vec<String>,
    slots: HashMap<String, Slot>,
}

impl Names {
    /// Returns the number of a variable; a new one for a new name.
    pub fn slot(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        // Fewer than characters in the scripts, whose size is limited.
        let slot = Slot(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.to_owned());
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// Returns the number of a variable, if a script uses it.
    pub fn find(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// Returns the name of a variable.
    pub fn name(&self, slot: Slot) -> &str {
        self.names.get(slot.index()).map_or("", String::as_str)
    }

    /// Returns the number of variables.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Returns whether a text can be the name of a variable: a letter or `_`, then also digits. Every character outside of
/// ASCII counts as a letter.
pub fn is_name(text: &str) -> bool {
    text.bytes().enumerate().all(|(position, byte)| is_name_byte(byte, position == 0))
        && !text.is_empty()
}

pub(crate) fn is_name_byte(byte: u8, is_first: bool) -> bool {
    byte.is_ascii_alphabetic()
        || byte == b'_'
        || byte >= 128
        || (byte.is_ascii_digit() && !is_first)
}

/// Content of a variable.
#[derive(Debug, Default, PartialEq)]
pub enum Content {
    /// It has not been set.
    #[default]
    Undefined,
    /// A value of an expression.
    Value(Value),
    /// A text from outside of the script, such as a column of a row. An expression reads it as a value.
    Text(Vec<u8>),
}

impl Clone for Content {
    fn clone(&self) -> Self {
        match self {
            Self::Undefined => Self::Undefined,
            Self::Value(value) => Self::Value(*value),
            Self::Text(text) => Self::Text(text.clone()),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        match (self, source) {
            (Self::Value(old), Self::Value(value)) => *old = *value,
            // The memory is used again.
            (Self::Text(old), Self::Text(text)) => old.clone_from(text),
            (old, source) => *old = source.clone(),
        }
    }
}

/// The variables of a client.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    contents: Vec<Content>,
}

impl Variables {
    /// Creates undefined variables with these names.
    pub fn new(names: &Names) -> Self {
        Self { contents: vec![Content::Undefined; names.len()] }
    }

    /// Returns the content of a variable.
    pub fn get(&self, slot: Slot) -> &Content {
        self.contents.get(slot.index()).unwrap_or(&Content::Undefined)
    }

    /// Sets a variable to a value.
    pub fn set(&mut self, slot: Slot, value: Value) {
        self.set_content(slot, Content::Value(value));
    }

    /// Sets a variable to a text.
    pub fn set_text(&mut self, slot: Slot, text: &[u8]) {
        match self.contents.get_mut(slot.index()) {
            // The memory is used again.
            Some(Content::Text(old)) => {
                old.clear();
                old.extend_from_slice(text);
            }
            _ => self.set_content(slot, Content::Text(text.to_vec())),
        }
    }

    fn set_content(&mut self, slot: Slot, content: Content) {
        if let Some(old) = self.contents.get_mut(slot.index()) {
            *old = content;
        }
    }

    /// Becomes a copy of `other`, which has the same names.
    pub fn copy_from(&mut self, other: &Self) {
        self.contents.clone_from(&other.contents);
    }

    /// Appends the text of a variable in a statement. Returns false if it is undefined.
    pub fn append_to(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        match self.get(slot) {
            Content::Undefined => return false,
            Content::Value(value) => value.append_to(out),
            Content::Text(text) => out.extend_from_slice(text),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_with_a_letter() {
        for name in ["a", "_", "A1", "é1", "_9"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "1a", "a-b", "a b", ":a"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn holds_values_and_texts_by_name() {
        let mut names = Names::default();
        let (a, b) = (names.slot("a"), names.slot("b"));
        assert_eq!((names.slot("a"), names.find("c"), names.name(b)), (a, None, "b"));
        let mut variables = Variables::new(&names);
        let mut out = Vec::new();
        assert!(!variables.append_to(a, &mut out));
        variables.set(a, Value::Int(7));
        variables.set_text(b, b"xy");
        variables.set_text(b, b"z");
        let mut copy = Variables::default();
        copy.copy_from(&variables);
        assert!(copy.append_to(a, &mut out) && copy.append_to(b, &mut out));
        assert_eq!(out, b"7z");
    }
}
