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

/// Quotes a value of a connection string where necessary.
pub(super) fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_connection_string_are_quoted() {
        assert_eq!(quoted(r"a 'b\"), r"'a \'b\\'");
        assert_eq!((quoted(""), quoted("db.example")), ("''".to_owned(), "db.example".to_owned()));
    }
}
