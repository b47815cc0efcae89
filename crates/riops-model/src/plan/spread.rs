//! The distribution of sessions over the nodes of a cluster.

use std::fmt;
use std::str::FromStr;

use super::error::PlanError;

const PRIORITY_MAX: u8 = 10;

/// A placement in a topology: `aws.eu-west-1.eu-west-1a:1`, with `*` for any zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    cloud: String,
    region: String,
    zone: String,
    priority: u8,
}

impl Place {
    /// Whether a node at `CLOUD.REGION.ZONE` has this placement.
    fn matches(&self, placement: &str) -> bool {
        let mut parts = placement.split('.');
        let mut part = || parts.next().unwrap_or("");
        let (cloud, region, zone) = (part(), part(), part());
        self.cloud == cloud && self.region == region && (self.zone == "*" || self.zone == zone)
    }
}

/// The policy that assigns a node to each session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Spread {
    /// Use the connection settings as they are: the first server that accepts a connection, or a load
    /// balancer.
    Off,
    /// Session number modulo number of nodes.
    #[default]
    RoundRobin,
    /// Round robin among the live nodes with the lowest priority number.
    Topology(Vec<Place>),
    /// The node with the fewest connections.
    LeastConnections,
    /// Round robin among the nodes that accept writes.
    Primary,
    /// Round robin among the read replicas.
    Replica,
}

impl Spread {
    /// Priority of the nodes that no entry of a topology matches: after all others.
    pub const UNLISTED: u8 = PRIORITY_MAX + 1;

    /// Returns the priority of a node at `CLOUD.REGION.ZONE`. Lower numbers are used first.
    pub fn priority(&self, placement: &str) -> u8 {
        match self {
            Self::Topology(places) => {
                let matching = places.iter().filter(|place| place.matches(placement));
                matching.map(|place| place.priority).min().unwrap_or(Self::UNLISTED)
            }
            _ => 1,
        }
    }
}

/// The policies without parameters, by their names.
const PLAIN: [(&str, Spread); 5] = [
    ("off", Spread::Off),
    ("round-robin", Spread::RoundRobin),
    ("least-connections", Spread::LeastConnections),
    ("primary", Spread::Primary),
    ("replica", Spread::Replica),
];

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
        let plain = PLAIN.into_iter().find_map(|(name, spread)| (name == text).then_some(spread));
        let topology = || {
            let places = text.strip_prefix("topology:")?.split(',').map(|part| place(part.trim()));
            places.collect::<Option<_>>().map(Self::Topology)
        };
        plain.or_else(topology).ok_or_else(|| PlanError(format!(
            "invalid spread \"{text}\": expected round-robin, least-connections, primary, replica, off, or topology:CLOUD.REGION.ZONE:PRIORITY,… (zone * for any, priorities 1 to {PRIORITY_MAX})"
        )))
    }
}

text_in_json!(Spread);

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Topology(places) = self {
            let place = |Place { cloud, region, zone, priority }: &Place| {
                format!("{cloud}.{region}.{zone}:{priority}")
            };
            let places: Vec<_> = places.iter().map(place).collect();
            return write!(formatter, "topology:{}", places.join(","));
        }
        let name = PLAIN.iter().find_map(|(name, spread)| (spread == self).then_some(*name));
        formatter.write_str(name.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_round_trip_through_text() {
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
    fn a_node_gets_the_lowest_priority_of_its_matching_placements() {
        let spread: Spread = "topology:aws.eu.*:2,aws.eu.a:1,aws.us.*:3".parse().unwrap();
        assert_eq!(spread.priority("aws.eu.a"), 1);
        assert_eq!(spread.priority("aws.eu.b"), 2);
        assert_eq!(spread.priority("aws.us.a"), 3);
        assert_eq!(spread.priority("gcp.eu.a"), Spread::UNLISTED);
        assert_eq!(Spread::RoundRobin.priority("gcp.eu.a"), 1);
    }
}
