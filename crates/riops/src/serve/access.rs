//! Decides which requests are answered: host name, token, and the origin of changes. Also sets the headers that
//! restrict what a page may load and who may embed it.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use minijinja::HtmlEscape;

use super::listen::Hosts;
use super::query::Query;
use super::token::{Token, are_equal};

/// Everything comes from this server. Charts set styles by script, which the policy allows.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// Name of the cookie that replaces the token.
const COOKIE: &str = "riops_session";

/// Who may use a server.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) hosts: Hosts,
    /// `None` if only this machine can connect, nothing can be changed, and the user wants no token.
    pub(super) token: Option<Token>,
}

/// Whether a request has the right to an answer.
enum Decision<'a> {
    Answer,
    /// The token is in the URL: a cookie replaces it.
    Exchange(&'a Token),
    Refuse(StatusCode, &'static str),
}

const UNKNOWN_HOST: &str = "This server does not use the host name of the request. Use localhost, or the name or \
     address given with --listen.";
const NO_TOKEN: &str = "A token is required: open the URL that riops printed, or send \"Authorization: Bearer TOKEN\".";
const OTHER_SITE: &str = "The request was sent by a page of another site.";
const NO_METHOD: &str = "Only GET, HEAD and POST are supported.";

impl Access {
    fn decide(&self, method: &Method, query: &Query, headers: &HeaderMap) -> Decision<'_> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let is_own = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().is_ok_and(|host| self.hosts.is_allowed(host)),
            _ => false,
        };
        if !is_own {
            return Decision::Refuse(StatusCode::MISDIRECTED_REQUEST, UNKNOWN_HOST);
        }
        let reads = *method == Method::GET || *method == Method::HEAD;
        if !reads && *method != Method::POST {
            return Decision::Refuse(StatusCode::METHOD_NOT_ALLOWED, NO_METHOD);
        }
        if !reads && is_from_another_site(headers) {
            return Decision::Refuse(StatusCode::FORBIDDEN, OTHER_SITE);
        }
        let Some(token) = &self.token else {
            return Decision::Answer;
        };
        if bearer(headers).is_some_and(|given| token.is_equal(given))
            || cookie(headers).any(|given| are_equal(given, &token.session()))
        {
            return Decision::Answer;
        }
        match query.get("token") {
            Some(given) if reads && token.is_equal(given) => Decision::Exchange(token),
            _ => Decision::Refuse(StatusCode::UNAUTHORIZED, NO_TOKEN),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::AUTHORIZATION)?.strip_prefix("Bearer ").map(str::trim)
}

fn cookie(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// Browsers send `Sec-Fetch-Site` and `Origin` with every POST, and pages cannot set them. Other programs send
/// neither; they need the token of the form.
fn is_from_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return true;
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    // A proxy in front of the dashboard may add TLS.
    let authority = origin.to_str().ok().and_then(|origin| {
        origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
    });
    authority.is_none() || authority != text(headers, &header::HOST)
}

/// Answers a request only if it is allowed, and adds the headers of every answer.
pub(super) async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let decision = access.decide(request.method(), &query, request.headers());
    let response = match decision {
        Decision::Answer => next.run(request).await,
        Decision::Exchange(token) => exchange(request.uri().path(), &query, token),
        Decision::Refuse(status, text) => refuse(status, text),
    };
    with_headers(response)
}

fn refuse(status: StatusCode, text: &'static str) -> Response {
    let mut response = (status, format!("{text}\n")).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

/// Sets the cookie and continues without the token, which must not stay in the address bar. A page and no redirect:
/// a browser that came from another site sends a strict cookie only with a request of this page.
fn exchange(path: &str, query: &Query, token: &Token) -> Response {
    let target = query.without("token").after(path);
    let target = HtmlEscape(&target).to_string();
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>riops</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={target}\"><p><a href=\"{target}\">Continue</a></p></html>\n"
    );
    let mut response = axum::response::Html(page).into_response();
    let cookie = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", token.session());
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn with_headers(mut response: Response<Body>) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`, with which forms would send the origin `null`.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::listen::ListenAddress;

    const TOKEN: &str = "0123456789abcdef";

    fn access(token: bool) -> Access {
        let listen: ListenAddress = "127.0.0.1:8080".parse().unwrap();
        Access { hosts: listen.hosts(), token: token.then(|| Token::new(TOKEN).unwrap()) }
    }

    fn decide<'a>(
        access: &'a Access,
        method: &Method,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> Decision<'a> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        access.decide(method, &Query::parse(query), &map)
    }

    fn status(decision: &Decision) -> u16 {
        match decision {
            Decision::Answer => 200,
            Decision::Exchange(_) => 0,
            Decision::Refuse(status, _) => status.as_u16(),
        }
    }

    #[test]
    fn requests_with_another_host_name_are_refused() {
        let access = access(false);
        let get =
            |headers: &[(&'static str, &str)]| status(&decide(&access, &Method::GET, "", headers));
        assert_eq!(get(&[("host", "localhost:8080")]), 200);
        assert_eq!(get(&[("host", "evil.example")]), 421);
        assert_eq!(get(&[]), 421);
        assert_eq!(get(&[("host", "localhost"), ("host", "evil.example")]), 421);
    }

    #[test]
    fn a_token_is_accepted_as_header_cookie_or_once_in_the_url() {
        let access = access(true);
        let host = ("host", "localhost");
        let get = |query: &str, more: &[(&'static str, &str)]| {
            status(&decide(&access, &Method::GET, query, &[&[host], more].concat()))
        };
        let session = Token::new(TOKEN).unwrap().session();
        assert_eq!(get("", &[]), 401);
        assert_eq!(get("", &[("authorization", &format!("Bearer {TOKEN}"))]), 200);
        assert_eq!(get("", &[("authorization", "Bearer 0123456789abcdeF")]), 401);
        assert_eq!(get("", &[("cookie", &format!("a=b; {COOKIE}={session}"))]), 200);
        assert_eq!(get("", &[("cookie", &format!("{COOKIE}={TOKEN}"))]), 401);
        assert_eq!(get(&format!("token={TOKEN}"), &[]), 0);
        assert_eq!(get("token=wrong", &[]), 401);
        let post = decide(&access, &Method::POST, &format!("token={TOKEN}"), &[host]);
        assert_eq!(status(&post), 401, "a form cannot carry the token in its URL");
    }

    #[test]
    fn changes_sent_by_other_sites_are_refused() {
        let access = access(false);
        let post = |more: &[(&'static str, &str)]| {
            status(&decide(
                &access,
                &Method::POST,
                "",
                &[&[("host", "localhost:8080")], more].concat(),
            ))
        };
        assert_eq!(post(&[]), 200);
        assert_eq!(
            post(&[("origin", "http://localhost:8080"), ("sec-fetch-site", "same-origin")]),
            200
        );
        for origin in ["null", "http://evil.example", "http://localhost:9", "localhost:8080"] {
            assert_eq!(post(&[("origin", origin)]), 403, "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(post(&[("sec-fetch-site", site)]), 403, "{site}");
        }
    }

    #[test]
    fn other_methods_are_refused() {
        let access = access(false);
        let delete = decide(&access, &Method::DELETE, "", &[("host", "localhost")]);
        assert_eq!(status(&delete), 405);
    }

    #[test]
    fn the_target_of_an_exchange_is_escaped_and_on_this_server() {
        let query = Query::parse(&format!("token={TOKEN}&label=%22%3E%3Cscript%3E&x=1"));
        let response = exchange("/runs", &query, &Token::new(TOKEN).unwrap());
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(
            cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains(TOKEN),
            "{cookie}"
        );
        let target = query.without("token").after("/runs");
        assert_eq!(target, "/runs?label=%22%3E%3Cscript%3E&x=1");
    }
}
