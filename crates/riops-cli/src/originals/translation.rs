//! The result of a translation, and what the translations share.

use std::fmt::Display;

/// Meaning of a command line of another tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Commands of riops, without its name, in order.
    Commands(Vec<Vec<String>>),
    /// Commands as above, without their results on standard output.
    Silent(Vec<Vec<String>>),
    /// A text for standard output.
    Text(String),
    /// A text for standard error.
    Message(String),
}

impl Meaning {
    pub(super) fn without_notices(self) -> Translation {
        Translation { meaning: self, notices: Vec::new() }
    }
}

/// The words of a command of riops, without its name.
pub(super) struct Words(pub(super) Vec<String>);

impl Words {
    /// The words of a text.
    pub(super) fn new(text: &str) -> Self {
        Self(text.split(' ').map(str::to_owned).collect())
    }

    /// Adds an option with a value.
    pub(super) fn set(&mut self, name: &str, value: impl Display) {
        self.0.push(format!("--{name}={value}"));
    }

    /// Adds an option with its value, if there is one.
    pub(super) fn set_some(&mut self, name: &str, value: Option<impl Display>) {
        self.0.extend(value.map(|value| format!("--{name}={value}")));
    }

    /// Adds a flag, if it is on.
    pub(super) fn flag(&mut self, name: &str, is_on: bool) {
        self.0.extend(is_on.then(|| format!("--{name}")));
    }
}

/// A meaning, with notices about options that have none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translation {
    pub(super) meaning: Meaning,
    pub(super) notices: Vec<String>,
}

/// What a command line refers to.
pub(super) struct Outside<'a> {
    /// Returns an environment variable.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file.
    pub(super) read: &'a dyn Fn(&str) -> Result<String, String>,
}

/// Reason why a command line is refused.
pub(super) type Refused = String;

/// Meaning of a command line, or the reason why it is refused.
pub(super) type Translated = Result<Translation, Refused>;

/// A password among the arguments.
pub(super) struct Secret {
    /// The environment variable that replaces it.
    pub(super) variable: &'static str,
    pub(super) value: String,
    /// Positions of the arguments that contain it.
    pub(super) positions: Vec<usize>,
    /// Argument that replaces the last one of them.
    pub(super) replacement: Option<String>,
}
