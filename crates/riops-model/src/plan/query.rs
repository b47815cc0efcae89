//! Queries whose values are measured: the user's queries, and riops's queries for a Prometheus server that
//! monitors the database.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::PlanError;
use crate::units::conninfo::address_of;
use crate::units::secret::redacted;
use crate::units::sql::is_plain;

/// Maximum length of a name.
const NAME_MAX: usize = 40;
/// Maximum number of queries of a plan.
pub(super) const QUERIES_MAX: usize = 20;

/// A query that returns a number, with the name of the number: `NAME=SELECT …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedQuery {
    /// Name: lowercase letters, digits and underscores.
    pub name: String,
    /// The statement.
    pub sql: String,
}

impl FromStr for NamedQuery {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let (name, sql) = text.split_once('=').unwrap_or((text, ""));
        let (name, sql) = (name.trim(), sql.trim().trim_end_matches(';').trim_end());
        let is_valid = is_plain(name) && !name.starts_with('_') && name.len() <= NAME_MAX;
        require!(
            is_valid && !sql.is_empty(),
            "invalid query \"{text}\": expected NAME=SELECT …, with a name of lowercase letters, digits and underscores (example: lag='select 1')"
        );
        Ok(Self { name: name.to_owned(), sql: sql.to_owned() })
    }
}

text_in_json!(NamedQuery);

impl fmt::Display for NamedQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.sql)
    }
}

/// Checks that the names of queries differ.
pub(super) fn validate<'a>(
    option: &str,
    queries: impl Iterator<Item = &'a NamedQuery>,
) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    for NamedQuery { name, .. } in queries {
        require!(names.insert(name), "{option}: two queries have the name \"{name}\"");
    }
    let count = names.len();
    require!(count <= QUERIES_MAX, "{option}: at most {QUERIES_MAX} queries, not {count}");
    Ok(())
}

/// Start of the text of a query for Prometheus.
pub const PROMQL: &str = "promql:";
/// Name of the query for the share of the periods in which the quota of the server was exhausted.
pub const SERVER_THROTTLED: &str = "server_throttled";

/// Metrics of the node exporter.
const OF_NODES: [(&str, &str); 2] = [
    ("node_cpu", r#"1 - avg(rate(node_cpu_seconds_total{mode="idle"}[1m]))"#),
    (
        "node_cpu_max",
        r#"max(1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[1m])))"#,
    ),
];
/// Metrics of cAdvisor for the containers of the server: `{}` are their labels. A container without a quota has no periods.
const OF_SERVER: [(&str, &str); 3] = [
    ("server_cpus", r#"sum(rate(container_cpu_usage_seconds_total{{},container!=""}[1m]))"#),
    (
        SERVER_THROTTLED,
        r#"max(rate(container_cpu_cfs_throttled_periods_total{{},container!=""}[1m]) / rate(container_cpu_cfs_periods_total{{},container!=""}[1m])) or 0 * max(container_cpu_usage_seconds_total{{},container!=""})"#,
    ),
    ("server_memory_bytes", r#"sum(container_memory_working_set_bytes{{},container!=""})"#),
];

/// A Prometheus server, or another server with the same query API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prometheus {
    /// Its address: `http://HOST:PORT`.
    pub url: String,
}

impl Prometheus {
    /// Returns the queries of riops: for the nodes and, with `labels`, for the containers of the server that
    /// have these labels.
    pub fn queries(labels: Option<&str>) -> Vec<NamedQuery> {
        let of_server = labels.into_iter().flat_map(|labels| {
            OF_SERVER.map(|(name, query)| (name, query.replace("{{}", &format!("{{{labels}"))))
        });
        let of_nodes = OF_NODES.map(|(name, query)| (name, query.to_owned()));
        let all = of_nodes.into_iter().chain(of_server);
        all.map(|(name, query)| NamedQuery {
            name: name.to_owned(),
            sql: format!("{PROMQL}{query}"),
        })
        .collect()
    }
}

/// Fails if queries for Prometheus have no address, or an invalid one.
pub(super) fn validate_prometheus(
    prometheus: Option<&Prometheus>,
    probes: &[NamedQuery],
) -> Result<(), PlanError> {
    if let Some(Prometheus { url }) = prometheus {
        require!(
            address_of(url).is_some(),
            "--prometheus \"{url}\" is not the address of a Prometheus: give http://HOST:PORT"
        );
        // Plans are stored, and shared with others.
        require!(
            !url.contains('@') && redacted(url) == *url,
            "--prometheus: an address with a user or a password would be stored with the run"
        );
        return Ok(());
    }
    for NamedQuery { name, sql } in probes {
        require!(
            !sql.starts_with(PROMQL),
            "--probe {name}: a query for Prometheus needs its address: --prometheus http://HOST:PORT"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_a_name_and_a_statement() {
        let query: NamedQuery = "lag = select a = 1 from t; ".parse().unwrap();
        assert_eq!((query.name.as_str(), query.sql.as_str()), ("lag", "select a = 1 from t"));
        let json = serde_json::to_string(&query).unwrap();
        assert_eq!(json, r#""lag=select a = 1 from t""#);
        assert_eq!(serde_json::from_str::<NamedQuery>(&json).unwrap(), query);
        for invalid in ["select 1", "Lag=select 1", "lag=", "=select 1", "a b=select 1"] {
            assert!(invalid.parse::<NamedQuery>().is_err(), "{invalid}");
        }
        let both = [&query, &query];
        assert!(validate("--probe", both.into_iter()).is_err());
        assert!(validate("--probe", both[..1].iter().copied()).is_ok());
    }

    #[test]
    fn the_queries_of_the_server_have_its_labels() {
        let names = |labels| Prometheus::queries(labels).into_iter().map(|query| query.name);
        assert_eq!(names(None).collect::<Vec<_>>(), ["node_cpu", "node_cpu_max"]);
        let all = Prometheus::queries(Some(r#"pod=~"yb-tserver-.*""#));
        let throttled = all.iter().find(|query| query.name == SERVER_THROTTLED).unwrap();
        assert!(throttled.sql.starts_with(
            r#"promql:max(rate(container_cpu_cfs_throttled_periods_total{pod=~"yb-tserver-.*",container!=""}[1m]) / "#
        ));
        assert!(all.iter().all(|query| !query.sql.contains("{{")));
    }

    #[test]
    fn a_query_for_prometheus_needs_its_address() {
        let probes = Prometheus::queries(None);
        assert!(
            validate_prometheus(None, &probes)
                .unwrap_err()
                .to_string()
                .contains("needs its address")
        );
        let at = |url: &str| Prometheus { url: url.to_owned() };
        assert!(validate_prometheus(Some(&at("http://p:9090")), &probes).is_ok());
        assert!(validate_prometheus(Some(&at("p:9090")), &probes).is_err());
        assert!(validate_prometheus(Some(&at("http://user:secret@p:9090")), &probes).is_err());
    }
}
