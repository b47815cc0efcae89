//! Parser for the two forms of a connection string: URLs and `key=value` pairs.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::error::ConnInfoError;
use super::parameters::is_secret;
use riops_model::units::conninfo::quoted;
use riops_model::units::secret::HIDDEN;

/// Characters that a value in a URL must not contain.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'&').add(b'?').add(b'@');

/// Settings by their libpq names.
pub(super) type Settings = BTreeMap<String, String>;

/// Parses a connection string. As in psql, a text in neither form is a database name.
pub(super) fn parse(text: &str) -> Result<Settings, ConnInfoError> {
    if let Some(rest) = without_scheme(text.trim()) {
        return parse_url(rest);
    }
    let is_pairs = |(name, _): (&str, &str)| is_setting_name(name.trim());
    if text.contains('=') && !text.split_once('=').is_some_and(is_pairs) && is_mistyped_url(text) {
        return Err(ConnInfoError::MistypedUrl);
    }
    if text.is_empty() || text.contains('=') {
        return parse_pairs(text).map_err(|error| match error {
            // The invalid name may be the rest of a password that contains a space.
            ConnInfoError::Syntax(_) if text.contains("password") => ConnInfoError::Syntax(
                "the password (values that contain spaces must be quoted)".to_owned(),
            ),
            other => other,
        });
    }
    if is_mistyped_url(text) {
        return Err(ConnInfoError::MistypedUrl);
    }
    Ok(Settings::from([("dbname".to_owned(), text.to_owned())]))
}

/// Returns a connection string with `***` in place of each password.
pub(super) fn without_password(text: &str) -> Result<String, ConnInfoError> {
    let text = text.trim();
    let settings = parse(text)?;
    if let Some(rest) = without_scheme(text) {
        let scheme = text.strip_suffix(rest).unwrap_or_default();
        return Ok(format!("{scheme}{}", url_without_password(rest)));
    }
    let mut is_changed = false;
    let mut shown = Vec::new();
    for (name, value) in settings {
        let hidden = hidden_value(&name, &value);
        is_changed |= hidden.is_some();
        shown.push(format!("{name}={}", quoted(&hidden.unwrap_or(value))));
    }
    Ok(if is_changed { shown.join(" ") } else { text.to_owned() })
}

/// Returns a connection string without its passwords, which can be used as it is.
pub(super) fn to_type_again(text: &str) -> Result<String, ConnInfoError> {
    let shown = without_password(text)?;
    if shown == text.trim() {
        return Ok(shown);
    }
    if without_scheme(&shown).is_some() {
        let shown = shown.replacen(&format!(":{HIDDEN}@"), "@", 1);
        let (place, query) = shown.split_once('?').unwrap_or((&shown, ""));
        let kept: Vec<_> = query.split('&').filter(|pair| !pair.contains(HIDDEN)).collect();
        let kept = kept.join("&");
        let mark = if kept.is_empty() { "" } else { "?" };
        return Ok(format!("{place}{mark}{kept}"));
    }
    let kept = parse(&shown)?.into_iter().filter(|(_, value)| !value.contains(HIDDEN));
    Ok(kept.map(|(name, value)| format!("{name}={}", quoted(&value))).collect::<Vec<_>>().join(" "))
}

/// Returns what is shown instead of a value; `None` if it contains no password.
fn hidden_value(name: &str, value: &str) -> Option<String> {
    match name {
        _ if is_secret(name) => Some(HIDDEN.to_owned()).filter(|_| !value.is_empty()),
        // The name of the database may be meant as a connection string.
        "dbname" if without_scheme(value).is_some() || value.contains('=') => {
            let shown = without_password(value).unwrap_or_else(|_| HIDDEN.to_owned());
            Some(shown).filter(|shown| shown != value)
        }
        _ => None,
    }
}

fn url_without_password(rest: &str) -> String {
    // The password may contain a question mark, and an @ that should be encoded.
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    let (login, place) = rest.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let mut shown = match login.strip_suffix('@').and_then(|login| login.split_once(':')) {
        // Probably meant as parameters.
        _ if login.contains('?') && !login.contains(':') => format!("{HIDDEN}@"),
        Some((user, password)) if !password.is_empty() => format!("{user}:{HIDDEN}@"),
        _ => login.to_owned(),
    };
    let (place, query) =
        place.split_once('?').map_or((place, None), |(place, query)| (place, Some(query)));
    match place.split_once('/') {
        None => shown.push_str(place),
        Some((hosts, database)) => {
            shown = format!("{shown}{hosts}/{}", shown_in_url("dbname", database));
        }
    }
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => {
            let shown = decoded(name).map(|name| shown_in_url(&name, value));
            format!("{name}={}", shown.unwrap_or_else(|_| HIDDEN.to_owned()))
        }
        None => pair.to_owned(),
    };
    if let Some(query) = query {
        let pairs: Vec<_> = query.split('&').map(pair).collect();
        shown = format!("{shown}?{}", pairs.join("&"));
    }
    shown
}

/// Returns a value of a URL without its password.
fn shown_in_url(name: &str, value: &str) -> String {
    match decoded(value).map(|value| hidden_value(name, &value)) {
        Ok(None) => value.to_owned(),
        Ok(Some(shown)) => utf8_percent_encode(&shown, ENCODED).to_string(),
        Err(_) => HIDDEN.to_owned(),
    }
}

/// Whether a text is not a URL but seems to be meant as one. It may contain a password, and must not be shown, not even
/// as the name of a database or a file.
pub fn is_mistyped_url(text: &str) -> bool {
    let is_path = text.starts_with(['/', '.', '~']);
    let is_login = |login: &str| login.contains(':') || login.contains('/') && !is_path;
    let has_login = text.split_once('@').is_some_and(|(login, _)| is_login(login));
    text.contains(":/") || has_login || text.starts_with("jdbc:") || text.contains('?')
}

/// Whether a text can be the name of a setting.
fn is_setting_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty() && name.len() <= 40 && name.chars().all(is_letter)
}

/// Returns a name for an error, unless it may contain a part of a password.
pub(super) fn shown_name(name: &str) -> String {
    if is_setting_name(name) { name.to_owned() } else { "…".to_owned() }
}

fn without_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

/// Returns a part of a URL without percent signs. As in libpq 17, spaces at its ends are ignored.
fn decoded(text: &str) -> Result<String, ConnInfoError> {
    let text = text.trim_matches(' ');
    if text.contains(' ') {
        return Err(ConnInfoError::Syntax("a space (in a URL, it is written as %20)".to_owned()));
    }
    let is_encoded = |piece: &str| {
        piece.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let decoded = percent_decode_str(text).decode_utf8().ok();
    let decoded = decoded.filter(|_| text.split('%').skip(1).all(is_encoded));
    let decoded = decoded.ok_or_else(|| ConnInfoError::Syntax("a percent sign".to_owned()))?;
    if decoded.contains('\0') {
        return Err(ConnInfoError::Syntax("%00".to_owned()));
    }
    Ok(decoded.into_owned())
}

/// The parts of a URL after `postgresql://`, still encoded.
struct UrlParts<'a> {
    user: &'a str,
    password: &'a str,
    hosts: String,
    ports: String,
    database: &'a str,
    query: &'a str,
}

/// Splits `[user[:password]@][host[:port][,…]][/database][?name=value[&…]]` from left to right, as libpq does: the first `@`
/// before any slash ends the login, and each host ends at the first `:`, `,`, `/` or `?`.
fn split_url(rest: &str) -> Result<UrlParts<'_>, ConnInfoError> {
    let wrong = |part: &str| Err(ConnInfoError::Syntax(part.to_owned()));
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    let (login, mut rest) = match authority.find('@') {
        Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..).unwrap_or_default()),
        None => ("", rest),
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (mut hosts, mut ports) = (String::new(), String::new());
    loop {
        let host;
        (host, rest) = match rest.strip_prefix('[').map(|inner| inner.split_once(']')) {
            None => until(rest, &[':', ',', '/', '?']),
            Some(None) => return wrong("a bracket without its end"),
            Some(Some((address, tail))) => {
                if address.is_empty() || !tail.is_empty() && !tail.starts_with([':', ',', '/', '?'])
                {
                    return wrong("an address in brackets");
                }
                (address, tail)
            }
        };
        hosts.push_str(host);
        if let Some(tail) = rest.strip_prefix(':') {
            let port;
            (port, rest) = until(tail, &[',', '/', '?']);
            ports.push_str(port);
        }
        let Some(tail) = rest.strip_prefix(',') else {
            break;
        };
        rest = tail;
        hosts.push(',');
        ports.push(',');
    }
    let (database, query) = match rest.strip_prefix('/') {
        Some(tail) => tail.split_once('?').unwrap_or((tail, "")),
        None => ("", rest.strip_prefix('?').unwrap_or_default()),
    };
    Ok(UrlParts { user, password, hosts, ports, database, query })
}

/// Splits a text before the first of these characters.
fn until<'a>(text: &'a str, ends: &[char]) -> (&'a str, &'a str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Parses the part of a URL after `postgresql://`.
fn parse_url(rest: &str) -> Result<Settings, ConnInfoError> {
    let parts = split_url(rest)?;
    // The end of a password that contains a slash or a question mark.
    let is_cut = parts.user.is_empty()
        && parts.password.is_empty()
        && (parts.database.contains('@') || parts.query.contains('@'))
        && parts.ports.split(',').any(|port| !port.is_empty() && port.parse::<u16>().is_err());
    if is_cut {
        let text = "the password (characters such as / and ? must be percent-encoded)";
        return Err(ConnInfoError::Syntax(text.to_owned()));
    }
    let mut settings = Settings::new();
    for (name, value) in [
        ("user", parts.user),
        ("password", parts.password),
        ("host", &parts.hosts),
        ("port", &parts.ports),
        ("dbname", parts.database),
    ] {
        if !value.is_empty() {
            settings.insert(name.to_owned(), decoded(value)?);
        }
    }
    let pairs = parts.query.strip_suffix('&').unwrap_or(parts.query);
    for pair in pairs.split('&').filter(|_| !parts.query.is_empty()) {
        let (name, value) = pair.split_once('=').filter(|(_, value)| !value.contains('=')).ok_or_else(|| {
            let text = "the parameters after the question mark (= and & in a value are written as %3D and %26)";
            ConnInfoError::Syntax(text.to_owned())
        })?;
        match (decoded(name)?, decoded(value)?) {
            // The JDBC form, which libpq accepts as well.
            (name, value) if name == "ssl" && value == "true" => {
                store(&mut settings, "sslmode", "require".to_owned());
            }
            (name, value) => store(&mut settings, &name, value),
        }
    }
    Ok(settings)
}

/// White space of C, which separates pairs in libpq.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// Parses `name = value` pairs. A value may be quoted with `'`; `\` escapes the next character.
fn parse_pairs(text: &str) -> Result<Settings, ConnInfoError> {
    let mut settings = Settings::new();
    let mut characters = text.chars().peekable();
    loop {
        while characters.next_if(|next| is_space(*next)).is_some() {}
        let mut name = String::new();
        while let Some(next) = characters.next_if(|next| *next != '=' && !is_space(*next)) {
            name.push(next);
        }
        while characters.next_if(|next| is_space(*next)).is_some() {}
        match characters.next() {
            None if name.is_empty() => return Ok(settings),
            Some('=') if !name.is_empty() => {}
            // Only the name is shown: the rest may contain a password.
            _ => return Err(ConnInfoError::Syntax(format!("\"{}\"", shown_name(&name)))),
        }
        while characters.next_if(|next| is_space(*next)).is_some() {}
        let value = parse_value(&mut characters).ok_or_else(|| {
            ConnInfoError::Syntax(format!("the value of \"{}\"", shown_name(&name)))
        })?;
        store(&mut settings, &name, value);
    }
}

fn parse_value(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut value = String::new();
    let quoted = characters.next_if_eq(&'\'').is_some();
    loop {
        match characters.next() {
            Some('\'') if quoted => return Some(value),
            None => return (!quoted).then_some(value),
            Some(next) if is_space(next) && !quoted => return Some(value),
            // As in libpq, it may be the last character.
            Some('\\') => value.extend(characters.next()),
            Some(next) => value.push(next),
        }
    }
}

/// Stores a setting of a connection string; the last value counts. As in libpq, `requiressl` is an old name for two values of
/// `sslmode`.
fn store(settings: &mut Settings, name: &str, value: String) {
    if name == "requiressl" {
        let mode = if value.starts_with('1') { "require" } else { "prefer" };
        settings.insert("sslmode".to_owned(), mode.to_owned());
    } else {
        settings.insert(name.to_owned(), value);
    }
}
