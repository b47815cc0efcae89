//! The distribution of the accessed keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{PlanError, refuse};

/// The distribution of the accessed keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Distribution {
    /// All ranges with the same frequency.
    #[default]
    Uniform,
    /// The range of rank r with a frequency of about r^−θ times that of the first. Ranks are scattered over
    /// the keys.
    Zipfian {
        /// θ: 0 is uniform, 1 is Zipf's law.
        theta: f64,
    },
    /// A share of the keys gets a share of the accesses. Accesses are uniform within and outside that share.
    Hotspot {
        /// Percentage of the keys, from the lowest key.
        keys_percent: f64,
        /// Percentage of the accesses to these keys.
        accesses_percent: f64,
    },
    /// sysbench's `special` with its defaults: 75 % of the accesses go to the middle 1 % of the keys, the
    /// other keys are the mean of twelve random keys.
    Special,
    /// sysbench's `gaussian`: the mean of twelve random keys.
    Gaussian,
    /// sysbench's `pareto` with its default: 80 % of the accesses go to the first 20 % of the keys,
    /// recursively.
    Pareto,
}

const DISTRIBUTIONS: &str = "uniform, zipfian:THETA (0.01 to 10), hotspot:KEYS%:ACCESSES% (for example, hotspot:20:80), or sysbench's special, gaussian or pareto";

impl FromStr for Distribution {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        parse_distribution(text).map_or_else(
            || refuse(format!("unknown distribution \"{text}\": expected {DISTRIBUTIONS}")),
            Ok,
        )
    }
}

fn parse_distribution(text: &str) -> Option<Distribution> {
    let mut parts = text.split(':');
    let distribution = match parts.next()? {
        "uniform" => Distribution::Uniform,
        "special" => Distribution::Special,
        "gaussian" => Distribution::Gaussian,
        "pareto" => Distribution::Pareto,
        "zipfian" => {
            let theta = parts.next()?.parse().ok()?;
            (0.01..=10.0).contains(&theta).then_some(Distribution::Zipfian { theta })?
        }
        "hotspot" => {
            let mut percent = || -> Option<f64> {
                let percent = parts.next()?.trim_end_matches('%').parse().ok()?;
                (percent > 0.0 && percent <= 100.0).then_some(percent)
            };
            Distribution::Hotspot { keys_percent: percent()?, accesses_percent: percent()? }
        }
        _ => return None,
    };
    parts.next().is_none().then_some(distribution)
}

impl TryFrom<String> for Distribution {
    type Error = PlanError;

    fn try_from(text: String) -> Result<Self, PlanError> {
        text.parse()
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => formatter.write_str("uniform"),
            Self::Special => formatter.write_str("special"),
            Self::Gaussian => formatter.write_str("gaussian"),
            Self::Pareto => formatter.write_str("pareto"),
            Self::Zipfian { theta } => write!(formatter, "zipfian:{theta}"),
            Self::Hotspot { keys_percent, accesses_percent } => {
                write!(formatter, "hotspot:{keys_percent}:{accesses_percent}")
            }
        }
    }
}

impl From<Distribution> for String {
    fn from(distribution: Distribution) -> Self {
        distribution.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_round_trip_through_text() {
        for text in ["uniform", "zipfian:0.99", "hotspot:20:80", "hotspot:0.5:99.5"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "normal",
            "zipfian",
            "zipfian:0",
            "zipfian:x",
            "hotspot:20",
            "hotspot:0:80",
            "hotspot:20:101",
            "uniform:1",
            "hotspot:1:2:3",
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
