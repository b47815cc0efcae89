//! Names for the hosts of records that are published: the same host has the same name in all of them.
//!
//! A host is what a record names as one (the client, the agents, the nodes, the server), what a URL or `host=` in any of its texts
//! names, and any IP address. Addresses of this machine alone say nothing, and stay. A host may be named like a word of riops
//! (`tables`, `primary`): without a digit, a dot or a hyphen, a name is only replaced where hosts are, and in what people wrote.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::record::Record;

/// Settings of PostgreSQL that name hosts: addresses, standbys and their slots, and names that people give to servers.
const SETTINGS: [&str; 6] = [
    "listen_addresses",
    "synchronous_standby_names",
    "synchronized_standby_slots",
    "primary_slot_name",
    "cluster_name",
    "bonjour_name",
];

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The address of a host.
    Host,
    /// A text of a user: a number with dots may be a version, and a link is meant for readers.
    Written,
    /// A message of a server or of riops.
    Message,
    /// Anything else.
    Other,
}

/// Returns a value as JSON. By way of its text: records are written and read as text elsewhere, too.
fn json_of(value: &impl Serialize) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&serde_json::to_string(value)?)
}

impl Kind {
    /// Returns the kind of the texts in a field with this key; `None`: they contain no host.
    fn from_key(key: &str) -> Option<Self> {
        match key {
            // Versions may have the form of an address.
            "server_version" | "riops_version" | "version_text" => None,
            "host" | "address" | "node" | "client_host" => Some(Self::Host),
            _ if SETTINGS.contains(&key) => Some(Self::Host),
            // People choose the keys of these maps, too.
            "label" | "text" | "description" | "tags" | "facts" => Some(Self::Written),
            "failure" | "sample" | "reasons" => Some(Self::Message),
            _ => Some(Self::Other),
        }
    }
}

/// The hosts that are known, in lowercase letters, with the names that replace them.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    names: BTreeMap<String, String>,
    count: usize,
}

impl Hosts {
    /// Learns all hosts of a record.
    pub(super) fn learn_record(&mut self, record: &Record) -> Result<(), serde_json::Error> {
        record.target.address.split(',').for_each(|address| self.learn(address));
        self.learn_value(record)
    }

    /// Learns the hosts in the texts of a value.
    pub(super) fn learn_value(&mut self, value: &impl Serialize) -> Result<(), serde_json::Error> {
        self.learn_json(&json_of(value)?, Kind::Other);
        Ok(())
    }

    /// Returns a value without the hosts in its texts.
    ///
    /// # Errors
    /// If a host has the name of something else in the value, which could not be read then.
    pub(super) fn hide<T: Serialize + DeserializeOwned>(
        &self,
        value: &T,
    ) -> Result<T, serde_json::Error> {
        let mut json = json_of(value)?;
        self.replace(&mut json, Kind::Other);
        serde_json::from_str(&json.to_string())
    }

    /// Returns a text without the hosts that are known.
    pub(super) fn text(&self, text: &str, kind: Kind) -> String {
        let lower = text.to_ascii_lowercase();
        let mut result = String::with_capacity(text.len());
        let (mut at, mut before) = (0, ' ');
        while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
            let replacement = (!before.is_alphanumeric() && before != '_' && c != '.')
                .then(|| self.found_at(&lower, at, kind))
                .flatten();
            if let Some((end, name)) = replacement {
                result.push_str(name);
                before = lower.get(..end).and_then(|done| done.chars().next_back()).unwrap_or(' ');
                at = end;
            } else {
                result.push(c);
                before = c;
                at += c.len_utf8();
            }
        }
        result
    }

    /// Returns the end of the host that starts here, and its name.
    fn found_at(&self, lower: &str, at: usize, kind: Kind) -> Option<(usize, &str)> {
        let (before, rest) = lower.split_at_checked(at)?;
        if let Some((length, ip)) = address_at(before, rest) {
            return Some((at + length, self.names.get(&ip.to_string())?));
        }
        if before.ends_with(['-', '.']) {
            return None;
        }
        let length = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        let word = rest.get(..length)?.trim_end_matches(['.', '-']);
        let is_host = kind != Kind::Other || is_place_of_host(before);
        let known = |name: &str| {
            self.names.get(name).filter(|_| is_host || name.contains(|c: char| !c.is_alphabetic()))
        };
        if let Some(name) = known(word) {
            return Some((at + word.len(), name));
        }
        // The domain of a name without one; a column of a table has no second dot.
        let (first, domain) = word.split_once('.')?;
        let name = known(first).filter(|_| domain.contains('.'))?;
        Some((at + word.len(), name))
    }

    fn replace(&self, json: &mut Value, kind: Kind) {
        match json {
            Value::String(text) => *text = self.text(text, kind),
            Value::Array(values) => values.iter_mut().for_each(|value| self.replace(value, kind)),
            Value::Object(fields) if kind == Kind::Written => {
                for (key, mut value) in std::mem::take(fields) {
                    self.replace(&mut value, kind);
                    fields.insert(self.text(&key, kind), value);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    if let Some(kind) = Kind::from_key(key) {
                        self.replace(value, kind);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn learn_json(&mut self, json: &Value, kind: Kind) {
        match json {
            Value::String(text) if kind == Kind::Host => self.learn_list(text),
            Value::String(text) => self.learn_from(text, kind),
            Value::Array(values) => values.iter().for_each(|value| self.learn_json(value, kind)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    let of_key =
                        if kind == Kind::Written { Some(kind) } else { Kind::from_key(key) };
                    if let Some(kind) = of_key {
                        self.learn_json(value, kind);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Learns the hosts of a list, also in the form of `synchronous_standby_names`: `FIRST 1 (a, b)`.
    fn learn_list(&mut self, text: &str) {
        let is_end = |c: char| c.is_whitespace() || ",()\"'".contains(c);
        let is_word = |word: &&str| {
            !["first", "any"].contains(&&*word.to_ascii_lowercase()) && word.parse::<u64>().is_err()
        };
        text.split(is_end).filter(is_word).for_each(|host| self.learn(host));
    }

    /// Learns a host from its address, with or without a port, and its name without the domain.
    fn learn(&mut self, address: &str) {
        let host = match address.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() && !host.ends_with(':') => host,
            _ => address,
        };
        let host = host.trim().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let ip = host.parse::<IpAddr>().ok();
        let host = ip.map_or(host, |ip| ip.to_string());
        let is_local = ip.is_some_and(|ip| ip.is_loopback() || ip.is_unspecified());
        let is_host = host.chars().any(char::is_alphanumeric)
            && (ip.is_some() || host.chars().all(is_of_name));
        if !is_host || is_local || host == "localhost" || self.names.contains_key(&host) {
            return;
        }
        self.count += 1;
        let name = format!("host-{}", self.count);
        if let Some((first, _)) = host.split_once('.').filter(|_| ip.is_none()) {
            self.names.entry(first.to_owned()).or_insert_with(|| name.clone());
        }
        self.names.insert(host, name);
    }

    /// Learns the hosts of the URLs and `host=` in a text, and its IP addresses.
    fn learn_from(&mut self, text: &str, kind: Kind) {
        let lower = text.to_ascii_lowercase();
        let parts: Vec<&str> = lower.split("://").collect();
        for (scheme, rest) in parts.iter().zip(parts.iter().skip(1)) {
            let authority = until(rest, "/?#\"'`<>)");
            let is_link =
                kind == Kind::Written && scheme.ends_with("https") && !authority.contains(':');
            if !is_link {
                let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
                hosts.split(',').for_each(|host| self.learn(host));
            }
        }
        let spaced = lower.replace(" = ", "=");
        for key in ["host=", "hostaddr="] {
            for rest in spaced.split(key).skip(1) {
                self.learn_list(until(rest.trim_start_matches('\''), "&\"';"));
            }
        }
        if let Some(value) = value_of_setting(&lower) {
            self.learn_list(value);
        }
        let mut at = 0;
        while let Some(c) = lower.get(at..).and_then(|rest| rest.chars().next()) {
            let parts = lower.split_at_checked(at);
            let address = parts.and_then(|(before, rest)| address_at(before, rest));
            if let Some((_, ip)) = address
                && (kind != Kind::Written || is_no_version(ip))
            {
                self.learn(&ip.to_string());
            }
            at += address.map_or(c.len_utf8(), |(length, _)| length);
        }
    }
}

/// The start of a text before one of these characters, or a blank.
fn until<'a>(text: &'a str, ends: &str) -> &'a str {
    text.split(|c: char| ends.contains(c) || c.is_whitespace()).next().unwrap_or_default()
}

/// Returns the value in `name = value` of a setting that names hosts.
fn value_of_setting(lower: &str) -> Option<&str> {
    let (name, value) = lower.split_once('=')?;
    SETTINGS.contains(&name.trim()).then_some(value)
}

/// Whether a host follows in a URL, after `host=` or in such a setting.
fn is_place_of_host(before: &str) -> bool {
    if value_of_setting(before).is_some() {
        return true;
    }
    let word = before.rsplit(|c: char| c.is_whitespace() || "\"'`".contains(c)).next();
    ["://", "host=", "hostaddr="].iter().any(|start| {
        let hosts = word.and_then(|word| word.rsplit_once(start));
        hosts.is_some_and(|(_, hosts)| {
            !hosts.contains('/') && (hosts.is_empty() || hosts.ends_with(['@', ',']))
        })
    })
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '.' || c == '_'
}

/// Whether an address cannot be a version, such as 2.25.0.0.
fn is_no_version(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            ip.is_private() || ip.is_link_local() || ip.octets().iter().any(|part| *part > 99)
        }
        IpAddr::V6(_) => true,
    }
}

/// Returns the IP address at the start of `rest`, with its length, if it is a whole word after `before`. `a::b` is a cast of SQL: an
/// IPv6 address is one with a first part of four digits, or several parts. `YB-2.25.0.0` is a version.
fn address_at(before: &str, rest: &str) -> Option<(usize, IpAddr)> {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    let mut earlier = before.chars().rev();
    let is_start = match earlier.next() {
        Some('-') => !earlier.next().is_some_and(char::is_alphabetic),
        Some(c) => !c.is_alphanumeric() && c != '.' && !(c == ':' && before.ends_with("::")),
        None => true,
    };
    if !is_start || !rest.starts_with(is_part) {
        return None;
    }
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let (token, after) = rest.split_at_checked(end)?;
    if after.starts_with(char::is_alphanumeric) {
        return None;
    }
    let word = token.trim_end_matches(['.', ':']);
    let (word, ip) = match word.parse::<IpAddr>() {
        Ok(ip) => (word, ip),
        // With a port.
        Err(_) => (word.rsplit_once(':')?.0, word.parse::<SocketAddr>().ok()?.ip()),
    };
    let is_long = word.matches(':').count() > 2 || word.contains('.');
    let has_four = word.split(':').next().is_some_and(|first| first.len() == 4);
    (ip.is_ipv4() || is_long || has_four).then_some((word.len(), ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(kind: Kind, texts: &[&str]) -> Vec<String> {
        let mut hosts = Hosts::default();
        hosts.learn("db1.example.com:5433");
        hosts.learn("loadbox");
        hosts.learn("tables:5432");
        for text in texts {
            hosts.learn_from(text, kind);
        }
        texts.iter().map(|text| hosts.text(text, kind)).collect()
    }

    #[test]
    fn hosts_are_replaced_as_words_and_always_by_the_same_name() {
        let texts = hidden(
            Kind::Other,
            &[
                "connected to DB1.example.com:5433 as user",
                "db1, db1: db1. adb1 db1_size my-db1 db1-1 x.db1",
                "postgresql://alice@10.1.2.3:5432,other/db_x and 10.1.2.3",
                "host=replica port=5432 then host = third",
                "from [FD00:0:0::12]:9000 or fd00::12, ::ffff:10.9.8.7",
                "10.9.8.1-10.9.8.2, 10.9.8.1_x, primary:10.9.8.1",
                "--prometheus http://prom.internal:9090/metrics of loadbox.corp.example",
                "tables=2 at tables, on //tables and host=tables",
            ],
        );
        assert_eq!(
            texts,
            [
                "connected to host-1:5433 as user",
                "host-1, host-1: host-1. adb1 db1_size my-db1 db1-1 x.db1",
                "postgresql://alice@host-4:5432,host-5/db_x and host-4",
                "host=host-6 port=5432 then host = third",
                "from [host-8]:9000 or host-8, host-9",
                "host-10-host-11, host-10_x, primary:host-10",
                "--prometheus http://host-12:9090/metrics of loadbox.corp.example",
                "tables=2 at tables, on //tables and host=host-3",
            ]
        );
    }

    #[test]
    fn settings_name_hosts() {
        let mut hosts = Hosts::default();
        let value = serde_json::json!({
            "settings": {
                "listen_addresses": "localhost, alpha,10.1.2.3", "cluster_name": "15/main",
                "synchronous_standby_names": "FIRST 1 (beta, \"gamma\")", "primary_slot_name": "delta",
                "work_mem": "alpha",
            },
            "server_set": ["listen_addresses = epsilon", "work_mem=1MB"],
        });
        hosts.learn_value(&value).unwrap();
        let hidden: Value = hosts.hide(&value).unwrap();
        // The hosts have numbers in the order of the keys.
        let expected = serde_json::json!({
            "settings": {
                "listen_addresses": "localhost, host-2,host-3", "cluster_name": "15/main",
                "synchronous_standby_names": "FIRST 1 (host-5, \"host-6\")", "primary_slot_name": "host-4",
                "work_mem": "alpha",
            },
            "server_set": ["listen_addresses = host-1", "work_mem=1MB"],
        });
        assert_eq!(hidden, expected);
    }

    #[test]
    fn hides_hosts_in_texts_of_people_but_keeps_versions_and_links() {
        let texts = hidden(
            Kind::Written,
            &[
                "Loadbox and loadbox.corp.example, 2.25.0.0, 10.0.0.7",
                "see https://github.com/o/r/pull/3, http://prom:9090 and prom",
            ],
        );
        assert_eq!(
            texts,
            [
                "host-2 and host-2, 2.25.0.0, host-4",
                "see https://github.com/o/r/pull/3, http://host-5:9090 and host-5",
            ]
        );
    }

    #[test]
    fn keeps_texts_that_resemble_addresses() {
        let texts = [
            "PostgreSQL 11.2-YB-2.25.0.0-b0",
            "select a::bigint, d::date, '12:30:45', b::a",
            "localhost, 127.0.0.1:5432, [::1]:5432, 0.0.0.0",
            "2026-11-27T07:31:23.5Z, 1.5, 16.4, /var/run/postgresql",
        ];
        assert_eq!(hidden(Kind::Other, &texts), texts);
    }

    #[test]
    fn words_of_riops_stay_although_hosts_are_named_like_them() {
        let mut hosts = Hosts::default();
        let value = serde_json::json!({
            "address": "tables:5432", "host": "on", "tables": 2, "settings": { "fsync": "on" },
            "server_version": "2.25.0.0", "tags": { "on": "tables" }, "found": "tables",
        });
        hosts.learn_value(&value).unwrap();
        let hidden: Value = hosts.hide(&value).unwrap();
        assert_eq!(
            hidden,
            serde_json::json!({
                "address": "host-1:5432", "host": "host-2", "tables": 2, "settings": { "fsync": "on" },
                "server_version": "2.25.0.0", "tags": { "host-2": "host-1" }, "found": "tables",
            })
        );
    }
}
