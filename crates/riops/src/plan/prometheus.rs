//! Queries of a Prometheus that observes the server: those of riops, and those of the user.

use serde::{Deserialize, Serialize};

use super::error::{PlanError, refuse};
use super::query::NamedQuery;
use crate::units::conninfo::address_of;

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

/// A Prometheus, or what has the same interface for queries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prometheus {
    /// Its address: `http://HOST:PORT`.
    pub url: String,
}

impl Prometheus {
    /// Returns the queries of riops: those of the nodes, and, with the labels of the containers of the server, of these.
    #[must_use]
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

/// Fails if queries for Prometheus have no address, or a wrong one.
pub(super) fn validate(
    prometheus: Option<&Prometheus>,
    probes: &[NamedQuery],
) -> Result<(), PlanError> {
    match prometheus {
        Some(Prometheus { url }) if address_of(url).is_none() => refuse(format!(
            "--prometheus \"{url}\" is not the address of a Prometheus: give http://HOST:PORT"
        )),
        // Plans are stored, and shared with others.
        Some(Prometheus { url }) if url.contains('@') => refuse(
            "--prometheus: an address with a user or a password would be stored with the run"
                .to_owned(),
        ),
        None => match probes.iter().find(|probe| probe.sql.starts_with(PROMQL)) {
            Some(probe) => refuse(format!(
                "--probe {}: a query for Prometheus needs its address: --prometheus http://HOST:PORT",
                probe.name
            )),
            None => Ok(()),
        },
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queries_of_the_server_have_its_labels() {
        let names = |labels| Prometheus::queries(labels).into_iter().map(|each| each.name);
        assert_eq!(names(None).collect::<Vec<_>>(), ["node_cpu", "node_cpu_max"]);
        let all = Prometheus::queries(Some(r#"pod=~"yb-tserver-.*""#));
        let throttled = all.iter().find(|each| each.name == SERVER_THROTTLED).unwrap();
        assert!(throttled.sql.starts_with(
            r#"promql:max(rate(container_cpu_cfs_throttled_periods_total{pod=~"yb-tserver-.*",container!=""}[1m]) / "#
        ));
        assert!(all.iter().all(|each| !each.sql.contains("{{")));
    }

    #[test]
    fn a_query_for_prometheus_needs_its_address() {
        let probes = Prometheus::queries(None);
        assert!(validate(None, &probes).unwrap_err().to_string().contains("needs its address"));
        let at = |url: &str| Prometheus { url: url.to_owned() };
        assert!(validate(Some(&at("http://p:9090")), &probes).is_ok());
        assert!(validate(Some(&at("p:9090")), &probes).is_err());
        assert!(validate(Some(&at("http://user:secret@p:9090")), &probes).is_err());
    }
}
