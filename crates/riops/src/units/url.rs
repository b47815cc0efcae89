//! Addresses of HTTP.

use reqwest::Url;

/// Returns host and port of a URL of HTTP or HTTPS; `None` for any other text.
pub(crate) fn address_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
