//! Names for the hosts of records that are published: the same host has the same name in all of them.
//!
//! A host is what a record names as one (the client, the agents, the nodes, the server), what a URL or `host=` in any of its texts
//! names, and any IP address. Addresses of this machine alone say nothing, and stay.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::record::Record;

/// The hosts that are known, with the names that replace them.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    names: BTreeMap<String, String>,
}

impl Hosts {
    /// Returns a value without the hosts in its texts.
    ///
    /// # Errors
    /// If a host has the name of something else in the value, which could not be read then.
    pub(super) fn hide<T: Serialize + DeserializeOwned>(
        &mut self,
        value: &T,
    ) -> Result<T, serde_json::Error> {
        let mut json = serde_json::to_value(value)?;
        each_text(&json, &mut |text| self.learn_from(text));
        self.replace(&mut json);
        serde_json::from_value(json)
    }

    /// Learns the hosts that a record names as such.
    pub(super) fn learn_of(&mut self, record: &Record) {
        self.learn(&record.client.machine.host);
        record.agents.iter().for_each(|agent| self.learn(&agent.host));
        record.target.address.split(',').for_each(|address| self.learn(address));
        let nodes = record.stages.iter().flat_map(|stage| &stage.session_loop.nodes);
        nodes.for_each(|node| self.learn(&node.node));
    }

    /// Returns a text without the hosts that are known.
    pub(super) fn text(&mut self, text: &str) -> String {
        self.learn_from(text);
        let mut text = text.to_owned();
        // Of two names, the longer one may contain the other.
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_by_key(|(host, _)| std::cmp::Reverse(host.len()));
        for (host, name) in names {
            if text.contains(host.as_str()) {
                text = replaced(&text, host, name);
            }
        }
        text
    }

    fn replace(&mut self, json: &mut Value) {
        match json {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.replace(value)),
            Value::Object(fields) => {
                for (key, mut value) in std::mem::take(fields) {
                    // The version of a server has the form of an address.
                    if !key.contains("version") {
                        self.replace(&mut value);
                    }
                    fields.insert(self.text(&key), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Learns a host from its address, with or without a port.
    fn learn(&mut self, address: &str) {
        let host = match address.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() && !host.ends_with(':') => host,
            _ => address,
        };
        let host = host.trim().trim_start_matches('[').trim_end_matches(']');
        let is_local =
            host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified());
        let is_host = host.chars().any(char::is_alphanumeric) && !host.contains(['/', '@', ' ']);
        if is_host && !is_local && host != "localhost" && !self.names.contains_key(host) {
            let is_name = self.names.values().any(|name| name == host);
            if !is_name {
                let name = format!("host-{}", self.names.len() + 1);
                self.names.insert(host.to_owned(), name);
            }
        }
    }

    /// Learns the hosts of the URLs and `host=` in a text, and its IP addresses.
    fn learn_from(&mut self, text: &str) {
        for rest in text.split("://").skip(1) {
            let end = rest.find(|c: char| "/?#\"'`<>)".contains(c) || c.is_whitespace());
            let authority = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
            hosts.split(',').for_each(|host| self.learn(host));
        }
        for key in ["host=", "hostaddr="] {
            for rest in text.split(key).skip(1) {
                let rest = rest.trim_start_matches('\'');
                let end = rest.find(|c: char| "&\"';".contains(c) || c.is_whitespace());
                let hosts = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                hosts.split(',').for_each(|host| self.learn(host));
            }
        }
        let mut before = ' ';
        let mut rest = text;
        while let Some(start) = rest.find(is_of_address) {
            before = rest.get(..start).and_then(|gap| gap.chars().next_back()).unwrap_or(before);
            let from = rest.get(start..).unwrap_or_default();
            let end = from.find(|c| !is_of_address(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            let is_whole = !is_of_word(before) && !after.chars().next().is_some_and(is_of_word);
            if let Some(ip) = address_of(word.trim_end_matches(['.', ':'])).filter(|_| is_whole) {
                self.learn(&ip.to_string());
            }
            before = word.chars().next_back().unwrap_or(before);
            rest = after;
        }
    }
}

fn is_of_address(c: char) -> bool {
    c.is_ascii_hexdigit() || c == '.' || c == ':'
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns the IP address of a word, with or without a port. `a::b` is a cast of SQL: only an address whose first part has four
/// digits is one of another machine.
fn address_of(word: &str) -> Option<IpAddr> {
    let socket = || word.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    let ip = word.parse::<IpAddr>().ok().or_else(socket)?;
    let is_address = |text: &str| text.split(':').next().is_some_and(|first| first.len() == 4);
    (ip.is_ipv4() || is_address(word)).then_some(ip)
}

/// Returns a text with another name of a host, where it is a whole word.
fn replaced(text: &str, host: &str, name: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(host) {
        let is_word_before = before.chars().next_back().or(result.chars().next_back());
        let mut next = after.chars();
        let follows = match next.next() {
            Some('.') => next.next().is_some_and(char::is_alphanumeric),
            next => next.is_some_and(is_of_word),
        };
        let is_part = is_word_before.is_some_and(|c| is_of_word(c) || c == '.') || follows;
        result.push_str(before);
        result.push_str(if is_part { host } else { name });
        rest = after;
    }
    result + rest
}

fn each_text(json: &Value, found: &mut impl FnMut(&str)) {
    match json {
        Value::String(text) => found(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, found)),
        Value::Object(fields) => {
            for (_, value) in fields.iter().filter(|(key, _)| !key.contains("version")) {
                each_text(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(texts: &[&str]) -> Vec<String> {
        let mut hosts = Hosts::default();
        hosts.learn("db1.example.com:5433");
        hosts.learn("db");
        texts.iter().map(|text| hosts.text(text)).collect()
    }

    #[test]
    fn hosts_are_replaced_as_words_and_always_by_the_same_name() {
        let texts = hidden(&[
            "connected to db1.example.com:5433 as user",
            "db, db: db.",
            "adb db_size my-db db-1 x.db db.table",
            "postgresql://alice@10.1.2.3:5432,other/db_x and 10.1.2.3",
            "host=replica port=5432 then replica",
            "from [fd00::12]:9000 or fd00::12",
            "--prometheus http://prom.internal:9090/metrics",
        ]);
        assert_eq!(
            texts,
            [
                "connected to host-1:5433 as user",
                "host-2, host-2: host-2.",
                "adb db_size my-db db-1 x.db db.table",
                "postgresql://alice@host-3:5432,host-4/db_x and host-3",
                "host=host-5 port=5432 then host-5",
                "from [host-6]:9000 or host-6",
                "--prometheus http://host-7:9090/metrics",
            ]
        );
    }

    #[test]
    fn what_looks_like_an_address_stays() {
        let texts = [
            "PostgreSQL 11.2-YB-2.25.0.0-b0",
            "select a::bigint, d::date, '12:30:45', b::a",
            "localhost, 127.0.0.1:5432, [::1]:5432, 0.0.0.0",
            "2026-11-27T07:31:23.5Z, 1.5, 16.4, /var/run/postgresql",
        ];
        assert_eq!(hidden(&texts), texts);
        let value = serde_json::json!({ "server_version": "2.25.0.0", "text": "2.25.0.1" });
        let hidden: Value = Hosts::default().hide(&value).unwrap();
        assert_eq!(hidden, serde_json::json!({ "server_version": "2.25.0.0", "text": "host-1" }));
    }
}
