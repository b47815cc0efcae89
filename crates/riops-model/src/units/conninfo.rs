//! Values within a connection string of the form `key=value`, and addresses of HTTP.

use url::Url;

/// Returns a setting. As in libpq, a database name that is itself a connection string stands for its settings.
pub fn pair(name: &str, value: &str) -> String {
    match name {
        "dbname" if value.contains('=') => value.to_owned(),
        _ => format!("{name}={}", quoted(value)),
    }
}

/// Quotes a value if necessary.
pub fn quoted(value: &str) -> String {
    let is_special =
        |character: char| character.is_whitespace() || character == '\\' || character == '\'';
    if !value.is_empty() && !value.contains(is_special) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Returns host and port of a URL of HTTP or HTTPS; `None` for any other text.
pub fn address_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
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

    #[test]
    fn an_address_is_a_url_of_http_or_https() {
        let known = |url: &str| address_of(url).unwrap();
        assert_eq!(known("http://localhost:9090/api/v1/write?x=1"), "localhost:9090");
        assert_eq!(known("http://prometheus"), "prometheus:80");
        assert_eq!(known("https://a/b"), "a:443");
        for url in ["localhost:9090", "/api", "http://", "no url", "ftp://a"] {
            assert!(address_of(url).is_none(), "{url}");
        }
    }
}
