//! The distribution of the accessed keys.

use std::fmt;
use std::str::FromStr;

use super::error::PlanError;

/// The distribution of the accessed keys.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Distribution {
    /// All ranges with the same frequency.
    #[default]
    Uniform,
    /// Ranges with different frequencies: rank r is about r^−θ times as frequent as the first rank. Ranks are
    /// scattered over the keys.
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
    /// sysbench's `special`: a share of the accesses goes to a share of the keys in their middle, the other keys
    /// are the mean of several random keys.
    Special {
        /// Percentage of the keys, in the middle (`--rand-spec-pct`).
        keys_percent: u8,
        /// Percentage of the accesses to these keys (`--rand-spec-res`).
        accesses_percent: u8,
        /// Number of random keys whose mean the other accesses use (`--rand-spec-iter`).
        draws: u32,
    },
    /// sysbench's `gaussian`: the mean of several random keys.
    Gaussian {
        /// Number of random keys (`--rand-spec-iter`).
        draws: u32,
    },
    /// sysbench's `pareto`: the share 1 − h of the accesses goes to the first share h of the keys, recursively.
    Pareto {
        /// h (`--rand-pareto-h`).
        h: f64,
    },
}

/// Default of sysbench.
const DRAWS: u32 = 12;
/// Maximum number of random keys per access.
const DRAWS_MAX: u32 = 1_000;

impl Distribution {
    /// sysbench's `special` with sysbench's parameters.
    pub const SPECIAL: Self = Self::Special { keys_percent: 1, accesses_percent: 75, draws: DRAWS };
    /// sysbench's `gaussian` with sysbench's parameter.
    pub const GAUSSIAN: Self = Self::Gaussian { draws: DRAWS };
    /// sysbench's `pareto` with sysbench's parameter.
    pub const PARETO: Self = Self::Pareto { h: 0.2 };
}

const DISTRIBUTIONS: &str = "uniform, zipfian:THETA (0.01 to 10), hotspot:KEYS%:ACCESSES% (for example, hotspot:20:80), or sysbench's special[:KEYS%:ACCESSES%:DRAWS], gaussian[:DRAWS] or pareto[:H] (0 < H < 1)";

impl FromStr for Distribution {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        parse_distribution(text).ok_or_else(|| {
            PlanError(format!("unknown distribution \"{text}\": expected {DISTRIBUTIONS}"))
        })
    }
}

fn parse_distribution(text: &str) -> Option<Distribution> {
    let (name, parameters) = match text.split_once(':') {
        Some((name, parameters)) => (name, parameters.split(':').collect::<Vec<_>>()),
        None => (text, Vec::new()),
    };
    let share = |text: &str| -> Option<f64> {
        let percent = text.trim_end_matches('%').parse().ok()?;
        (percent > 0.0 && percent <= 100.0).then_some(percent)
    };
    let whole_percent =
        |text: &str| text.trim_end_matches('%').parse().ok().filter(|&percent: &u8| percent <= 100);
    let draws = |text: &str| text.parse().ok().filter(|draws| (1..=DRAWS_MAX).contains(draws));
    Some(match (name, parameters.as_slice()) {
        ("uniform", []) => Distribution::Uniform,
        ("zipfian", [theta]) => {
            let theta = theta.parse().ok().filter(|theta| (0.01..=10.0).contains(theta))?;
            Distribution::Zipfian { theta }
        }
        ("hotspot", [keys, accesses]) => {
            Distribution::Hotspot { keys_percent: share(keys)?, accesses_percent: share(accesses)? }
        }
        ("special", []) => Distribution::SPECIAL,
        ("special", [keys, accesses, count]) => Distribution::Special {
            keys_percent: whole_percent(keys).filter(|&percent| percent > 0)?,
            accesses_percent: whole_percent(accesses)?,
            draws: draws(count)?,
        },
        ("gaussian", []) => Distribution::GAUSSIAN,
        ("gaussian", [count]) => Distribution::Gaussian { draws: draws(count)? },
        ("pareto", []) => Distribution::PARETO,
        ("pareto", [h]) => {
            let h = h.parse().ok().filter(|h| *h > 0.0 && *h < 1.0)?;
            Distribution::Pareto { h }
        }
        _ => return None,
    })
}

text_in_json!(Distribution);

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => formatter.write_str("uniform"),
            special if *special == Self::SPECIAL => formatter.write_str("special"),
            gaussian if *gaussian == Self::GAUSSIAN => formatter.write_str("gaussian"),
            pareto if *pareto == Self::PARETO => formatter.write_str("pareto"),
            Self::Special { keys_percent, accesses_percent, draws } => {
                write!(formatter, "special:{keys_percent}:{accesses_percent}:{draws}")
            }
            Self::Gaussian { draws } => write!(formatter, "gaussian:{draws}"),
            Self::Pareto { h } => write!(formatter, "pareto:{h}"),
            Self::Zipfian { theta } => write!(formatter, "zipfian:{theta}"),
            Self::Hotspot { keys_percent, accesses_percent } => {
                write!(formatter, "hotspot:{keys_percent}:{accesses_percent}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_round_trip_through_text() {
        for text in [
            "uniform",
            "zipfian:0.99",
            "hotspot:20:80",
            "hotspot:0.5:99.5",
            "special",
            "special:2:60:12",
            "gaussian",
            "gaussian:3",
            "pareto",
            "pareto:0.4",
        ] {
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
            "special:1",
            "special:0:75:12",
            "special:1:101:12",
            "gaussian:0",
            "pareto:1",
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
