//! The result of a translation, and what the translations share.

/// What a command line of another tool means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Commands of riops, without its name, in order.
    Commands(Vec<Vec<String>>),
    /// The same, without their results on standard output.
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

/// Why a command line is refused.
pub(super) type Refused = String;

/// A password among the arguments.
pub(super) struct Secret {
    /// The environment variable that replaces it.
    pub(super) variable: &'static str,
    pub(super) value: String,
    /// Positions of the arguments that contain it.
    pub(super) positions: Vec<usize>,
    /// The argument that takes the place of the last one.
    pub(super) replacement: Option<String>,
}
