//! The profile of a rate: steps in which it is constant or changes linearly.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{PlanError, require};
use crate::units::{Span, format::requested_rate};

/// Maximum rate, in transactions per second: more than any client can start.
pub(super) const RATE_MAX: f64 = 1e7;
/// Maximum number of steps: the latencies of each are recorded separately by each worker, in about 350 kB.
const STEPS_MAX: usize = 50;

/// A step of a profile: `500:30s`, or a ramp, `100..5000:2m`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Transactions per second at its start.
    pub from_per_s: f64,
    /// Transactions per second at its end.
    pub to_per_s: f64,
    /// Its length, in seconds.
    pub seconds: f64,
}

impl RateStep {
    /// Returns the number of intended starts.
    #[must_use]
    pub fn starts(self) -> f64 {
        f64::midpoint(self.from_per_s, self.to_per_s) * self.seconds
    }
}

impl FromStr for RateStep {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let step = || {
            let (rates, length) = text.split_once(':')?;
            let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
            let number = |text: &str| text.trim().replace('_', "").parse::<f64>().ok();
            let seconds = length.trim().parse::<Span>().ok()?.0.as_secs_f64();
            Some(Self { from_per_s: number(from)?, to_per_s: number(to)?, seconds })
        };
        let invalid =
            format!("\"{text}\" is no step of a profile (examples: 500:30s, 100..5000:2m)");
        step().ok_or(PlanError(invalid))
    }
}

impl fmt::Display for RateStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", requested_rate(self.from_per_s))?;
        if self.to_per_s != self.from_per_s {
            write!(formatter, " to {}", requested_rate(self.to_per_s))?;
        }
        write!(formatter, "/s for {}", Span::of_seconds(self.seconds))
    }
}

/// Returns the length of a profile, in seconds.
pub(super) fn length_s(steps: &[RateStep]) -> f64 {
    steps.iter().map(|step| step.seconds).sum()
}

/// Returns the mean rate of a profile, in transactions per second.
pub(super) fn mean_per_s(steps: &[RateStep]) -> f64 {
    steps.iter().map(|step| step.starts()).sum::<f64>() / length_s(steps)
}

/// Checks the steps of a profile.
pub(super) fn validate(steps: &[RateStep]) -> Result<(), PlanError> {
    let number = steps.len();
    require!(number <= STEPS_MAX, "--rate has {number} steps; at most {STEPS_MAX} are possible");
    let rates = 0.0..=RATE_MAX;
    for step in steps {
        require!(
            rates.contains(&step.from_per_s) && rates.contains(&step.to_per_s),
            "the rates of --rate must be between 0 and {RATE_MAX}, not {step}"
        );
        require!(step.seconds > 0.0, "each step of --rate must have a length, not {step}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_one_or_two_rates_and_a_length() {
        let step =
            |text: &str| text.parse::<RateStep>().map(|step| (step.to_string(), step.starts()));
        assert_eq!(step("500:30s"), Ok(("500/s for 30s".to_owned(), 15_000.0)));
        assert_eq!(step("100..5_000:2m"), Ok(("100 to 5,000/s for 2m".to_owned(), 306_000.0)));
        for text in ["", "500", "500:", ":30s", "500..:30s", "a:30s", "500:30x", "1..2..3:5s"] {
            assert!(step(text).unwrap_err().0.contains("100..5000:2m"), "{text}");
        }
    }

    #[test]
    fn the_mean_weighs_each_step_by_its_length() {
        let steps = ["0..1000:10s", "2000:30s"].map(|text| text.parse().unwrap());
        assert_eq!((length_s(&steps), mean_per_s(&steps)), (40.0, 1_625.0));
    }
}
