//! Query strings and forms: pairs of names and values, in order, with repeated names.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that need no encoding in a query.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');
/// Pairs that are read; the others are ignored.
const PAIRS_MAX: usize = 200;

/// The pairs of a query or a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `name=value&…`, percent-encoded. Invalid UTF-8 is replaced.
    pub(super) fn parse(text: &str) -> Self {
        let decoded = |part: &str| {
            let part = part.replace('+', " ");
            percent_decode_str(&part).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(PAIRS_MAX);
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// Returns the first value with this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns the first value with this name that is not empty: an empty field of a form is not set.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.all(name).map(str::trim).find(|value| !value.is_empty())
    }

    /// Returns all values with this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the pairs whose name starts with this text.
    pub(super) fn named(&self, start: &str) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter().filter(move |(name, _)| name.starts_with(start));
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the query without this name.
    pub(super) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(found, _)| found != name).cloned().collect())
    }

    /// Returns the query with one value for this name.
    pub(super) fn with(&self, name: &str, value: &str) -> Self {
        let mut query = self.without(name);
        query.0.push((name.to_owned(), value.to_owned()));
        query
    }

    /// Returns a path with this query. Two slashes at the start would name another server.
    pub(super) fn after(&self, path: &str) -> String {
        let path = format!("/{}", path.trim_start_matches(['/', '\\']));
        let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        if pairs.is_empty() { path } else { format!("{path}?{}", pairs.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repeated_empty_and_encoded_values_are_read() {
        let query = Query::parse("run=a&run=b+c&label=%C3%A4%26&empty=&flag&&x=%ff");
        assert_eq!(query.all("run").collect::<Vec<_>>(), ["a", "b c"]);
        assert_eq!(
            (query.get("label"), query.get("flag"), query.given("empty")),
            (Some("ä&"), Some(""), None)
        );
        assert_eq!(query.get("x"), Some("\u{fffd}"));
    }

    #[test]
    fn a_path_stays_on_this_server() {
        let query = Query::default().with("a", "b c");
        assert_eq!(query.after("//evil.example/"), "/evil.example/?a=b%20c");
        assert_eq!(query.after("/\\evil"), "/evil?a=b%20c");
    }

    proptest! {
        #[test]
        fn any_pair_is_read_as_it_was_written(name in ".+", value in any::<String>()) {
            let query = Query::default().with(&name, &value);
            let text = query.after("/");
            prop_assert_eq!(Query::parse(text.strip_prefix("/?").unwrap()), query);
        }
    }
}
