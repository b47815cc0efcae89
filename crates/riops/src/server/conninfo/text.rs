//! Parser for the two forms of a connection string: URLs and `key=value` pairs.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::error::ConnInfoError;
use crate::units::conninfo::quoted;
use crate::units::secret::HIDDEN;

/// Characters that a value in a URL must not contain.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'&').add(b'?').add(b'@');

/// Settings by their libpq names.
pub(super) type Settings = BTreeMap<String, String>;

/// Parses a connection string. As in psql, a text in neither form is a database name.
pub(super) fn parse(text: &str) -> Result<Settings, ConnInfoError> {
    let text = text.trim();
    if let Some(rest) = without_scheme(text) {
        return parse_url(rest);
    }
    let is_pairs = |(name, _): (&str, &str)| is_setting_name(name.trim_end());
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
        "password" | "sslpassword" if !value.is_empty() => Some(HIDDEN.to_owned()),
        // The name of the database may be meant as a connection string.
        "dbname" if without_scheme(value).is_some() || value.contains('=') => {
            let shown = without_password(value).unwrap_or_else(|_| HIDDEN.to_owned());
            Some(shown).filter(|shown| shown != value)
        }
        _ => None,
    }
}

fn url_without_password(rest: &str) -> String {
    let (place, query) = rest.split_once('?').unzip();
    let place = place.unwrap_or(rest);
    let (authority, database) = place.split_once('/').unzip();
    let authority = authority.unwrap_or(place);
    let (login, hosts) = authority.rsplit_once('@').unzip();
    let mut shown = match (login.and_then(|login| login.split_once(':')), hosts) {
        (Some((user, password)), Some(hosts)) if !password.is_empty() => {
            format!("{user}:{HIDDEN}@{hosts}")
        }
        _ => authority.to_owned(),
    };
    if let Some(database) = database {
        shown = format!("{shown}/{}", shown_in_url("dbname", database));
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
pub(crate) fn is_mistyped_url(text: &str) -> bool {
    let is_path = text.starts_with(['/', '.', '~']);
    let is_login = |login: &str| login.contains(':') || login.contains('/') && !is_path;
    let has_login = text.split_once('@').is_some_and(|(login, _)| is_login(login));
    text.contains(":/") || has_login || text.starts_with("jdbc:") || text.contains('?')
}

/// Whether a text can be the name of a setting.
fn is_setting_name(name: &str) -> bool {
    let is_letter = |each: char| each.is_ascii_alphanumeric() || each == '_';
    !name.is_empty() && name.len() <= 40 && name.chars().all(is_letter)
}

/// Returns a name for an error, unless it may contain a part of a password.
pub(super) fn shown_name(name: &str) -> String {
    if is_setting_name(name) { name.to_owned() } else { "…".to_owned() }
}

fn without_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

fn decoded(text: &str) -> Result<String, ConnInfoError> {
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

/// Parses the part of a URL after `postgresql://`:
/// `[user[:password]@][host[:port][,…]][/database][?name=value[&…]]`.
fn parse_url(rest: &str) -> Result<Settings, ConnInfoError> {
    let mut settings = Settings::new();
    let mut put = |name: &str, value: &str| -> Result<(), ConnInfoError> {
        if !value.is_empty() {
            settings.insert(name.to_owned(), decoded(value)?);
        }
        Ok(())
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, places) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    // The end of a password that contains a slash or a question mark.
    let is_cut =
        login.is_empty() && places.contains(':') && (database.contains('@') || query.contains('@'));
    if is_cut && places.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_err()) {
        let text = "the password (characters such as / and ? must be percent-encoded)";
        return Err(ConnInfoError::Syntax(text.to_owned()));
    }
    let places: Vec<_> = places.split(',').map(host_and_port).collect();
    let list = |pick: fn(&(&str, &str)) -> String| {
        let values: Vec<_> = places.iter().map(pick).collect();
        if values.iter().all(String::is_empty) { String::new() } else { values.join(",") }
    };
    put("user", user)?;
    put("password", password)?;
    put("host", &list(|place| place.0.to_owned()))?;
    put("port", &list(|place| place.1.to_owned()))?;
    put("dbname", database)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            ConnInfoError::Syntax("the parameters after the question mark".to_owned())
        })?;
        match (decoded(name)?.as_str(), value) {
            // The JDBC form, which libpq accepts as well.
            ("ssl", "true") => put("sslmode", "require")?,
            (name, value) => put(name, value)?,
        }
    }
    Ok(settings)
}

/// Splits host and port. IPv6 addresses are in brackets.
fn host_and_port(place: &str) -> (&str, &str) {
    match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, tail)) => (address, tail.strip_prefix(':').unwrap_or(tail)),
        None => place.rsplit_once(':').unwrap_or((place, "")),
    }
}

/// Parses `name = value` pairs. A value may be quoted with `'`; `\` escapes the next character.
fn parse_pairs(text: &str) -> Result<Settings, ConnInfoError> {
    let mut settings = Settings::new();
    let mut characters = text.chars().peekable();
    loop {
        while characters.next_if(|next| next.is_whitespace()).is_some() {}
        let mut name = String::new();
        while let Some(next) = characters.next_if(|&next| next != '=' && !next.is_whitespace()) {
            name.push(next);
        }
        while characters.next_if(|next| next.is_whitespace()).is_some() {}
        match characters.next() {
            None if name.is_empty() => return Ok(settings),
            Some('=') if !name.is_empty() => {}
            // Only the name is shown: the rest may contain a password.
            _ => return Err(ConnInfoError::Syntax(format!("\"{}\"", shown_name(&name)))),
        }
        while characters.next_if(|next| next.is_whitespace()).is_some() {}
        let value = parse_value(&mut characters).ok_or_else(|| {
            ConnInfoError::Syntax(format!("the value of \"{}\"", shown_name(&name)))
        })?;
        settings.insert(name, value);
    }
}

fn parse_value(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut value = String::new();
    let quoted = characters.next_if_eq(&'\'').is_some();
    loop {
        match characters.next() {
            Some('\'') if quoted => return Some(value),
            None => return (!quoted).then_some(value),
            Some(next) if next.is_whitespace() && !quoted => return Some(value),
            Some('\\') => value.push(characters.next()?),
            Some(next) => value.push(next),
        }
    }
}
