//! Values within a connection string of the form `key=value`.

/// Returns a setting. As in libpq, a database name that is itself a connection string stands for its settings.
#[must_use]
pub fn pair(name: &str, value: &str) -> String {
    match name {
        "dbname" if value.contains('=') => value.to_owned(),
        _ => format!("{name}={}", quoted(value)),
    }
}

/// Quotes a value if necessary.
#[must_use]
pub fn quoted(value: &str) -> String {
    let is_special = |each: char| each.is_whitespace() || each == '\\' || each == '\'';
    if !value.is_empty() && !value.contains(is_special) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_connection_string_are_quoted() {
        assert_eq!(pair("user", r"a 'b\"), r"user='a \'b\\'");
        assert_eq!((quoted(""), quoted("db.example")), ("''".to_owned(), "db.example".to_owned()));
        assert_eq!(pair("dbname", "host=h user=u"), "host=h user=u");
    }
}
