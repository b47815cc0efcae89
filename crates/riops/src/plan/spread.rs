//! How the sessions of a run are spread over the nodes of a cluster.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{PlanError, refuse};

const PRIORITY_MAX: u8 = 10;

/// A place of a topology: `aws.eu-west-1.eu-west-1a:1`, with `*` for any zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    cloud: String,
    region: String,
    zone: String,
    priority: u8,
}

impl Place {
    /// Whether a node stands there.
    fn has(&self, (cloud, region, zone): (&str, &str, &str)) -> bool {
        self.cloud == cloud && self.region == region && (self.zone == "*" || self.zone == zone)
    }
}

/// Which node each session goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Spread {
    /// Wherever the connection settings lead: the first server that answers, or a load balancer.
    Off,
    /// Session number modulo nodes.
    #[default]
    RoundRobin,
    /// The same among the nodes of the places with the lowest priority that live.
    Topology(Vec<Place>),
    /// The node with the fewest connections.
    LeastConnections,
    /// Round robin among the nodes that take writes.
    Primary,
    /// Round robin among the read replicas.
    Replica,
}

impl Spread {
    /// Nodes that no entry of a topology names come after all that one does.
    pub const REST: u8 = PRIORITY_MAX + 1;

    /// The priority of a node at `cloud`, `region`, `zone`: lower ones are used first.
    #[must_use]
    pub fn priority(&self, placement: (&str, &str, &str)) -> u8 {
        match self {
            Self::Topology(places) => {
                let found = places.iter().filter(|place| place.has(placement));
                found.map(|place| place.priority).min().unwrap_or(Self::REST)
            }
            _ => 1,
        }
    }
}

fn place(text: &str) -> Option<Place> {
    let (place, priority) = match text.split_once(':') {
        Some((place, priority)) => (place, priority.parse().ok()?),
        None => (text, 1),
    };
    let mut parts = place.split('.');
    let mut part = || Some(parts.next()?.to_owned()).filter(|part| !part.is_empty());
    let (cloud, region, zone) = (part()?, part()?, part()?);
    let valid = parts.next().is_none() && (1..=PRIORITY_MAX).contains(&priority);
    valid.then_some(Place { cloud, region, zone, priority })
}

impl FromStr for Spread {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let simple = match text {
            "off" => Some(Self::Off),
            "round-robin" => Some(Self::RoundRobin),
            "least-connections" => Some(Self::LeastConnections),
            "primary" => Some(Self::Primary),
            "replica" => Some(Self::Replica),
            _ => None,
        };
        let topology = || {
            let places: Option<Vec<Place>> =
                text.strip_prefix("topology:")?.split(',').map(|each| place(each.trim())).collect();
            Some(Self::Topology(places?))
        };
        simple.or_else(topology).map_or_else(
            || {
                refuse(format!(
                    "--spread `{text}` is none of round-robin, least-connections, primary, replica, off, or topology:CLOUD.REGION.ZONE:PRIORITY,… (zone * for any, priorities 1 to {PRIORITY_MAX})"
                ))
            },
            Ok,
        )
    }
}

impl TryFrom<String> for Spread {
    type Error = PlanError;

    fn try_from(text: String) -> Result<Self, PlanError> {
        text.parse()
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::RoundRobin => formatter.write_str("round-robin"),
            Self::LeastConnections => formatter.write_str("least-connections"),
            Self::Primary => formatter.write_str("primary"),
            Self::Replica => formatter.write_str("replica"),
            Self::Topology(places) => {
                formatter.write_str("topology:")?;
                for (number, Place { cloud, region, zone, priority }) in places.iter().enumerate() {
                    let comma = if number > 0 { "," } else { "" };
                    write!(formatter, "{comma}{cloud}.{region}.{zone}:{priority}")?;
                }
                Ok(())
            }
        }
    }
}

impl From<Spread> for String {
    fn from(spread: Spread) -> Self {
        spread.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_read_and_printed_alike() {
        for text in [
            "off",
            "round-robin",
            "least-connections",
            "primary",
            "replica",
            "topology:aws.eu-west-1.eu-west-1a:1,aws.eu-west-1.*:2",
        ] {
            assert_eq!(text.parse::<Spread>().unwrap().to_string(), text);
        }
        assert_eq!("topology:a.b.c".parse::<Spread>().unwrap().to_string(), "topology:a.b.c:1");
        for text in
            ["", "random", "topology:", "topology:a.b", "topology:a.b.c.d", "topology:a.b.c:11"]
        {
            assert!(text.parse::<Spread>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_node_has_the_lowest_priority_of_the_places_that_it_stands_in() {
        let spread: Spread = "topology:aws.eu.*:2,aws.eu.a:1,aws.us.*:3".parse().unwrap();
        assert_eq!(spread.priority(("aws", "eu", "a")), 1);
        assert_eq!(spread.priority(("aws", "eu", "b")), 2);
        assert_eq!(spread.priority(("aws", "us", "a")), 3);
        assert_eq!(spread.priority(("gcp", "eu", "a")), Spread::REST);
        assert_eq!(Spread::RoundRobin.priority(("gcp", "eu", "a")), 1);
    }
}
