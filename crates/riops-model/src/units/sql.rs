//! Names and texts within SQL. All SQL with a name or a text that is not a constant is built with these.

use std::borrow::Cow;

pub use postgres_protocol::escape::{escape_identifier as identifier, escape_literal as literal};

/// Whether a name means the same with and without quotes, unless it is a key word.
pub fn is_plain(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|character| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
        })
}

/// Returns a name as an identifier, with quotes only if it is not plain: in statements that users read.
pub fn name(name: &str) -> Cow<'_, str> {
    if is_plain(name) { name.into() } else { identifier(name).into() }
}
