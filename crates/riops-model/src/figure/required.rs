//! The figure that a threshold requires.

use super::{Figure, Unit, without_unit};
use crate::plan::{LimitUnit, Metric, PlanError, Threshold};

/// Microseconds in a second, the unit of limits with a unit of time.
const US_PER_S: f64 = 1e6;

impl Figure {
    /// Returns the figure that a threshold names: by its key, without the unit or `_per_transaction` at the end, and with `-` or `_`;
    /// `None` for a metric that only thresholds have.
    ///
    /// # Errors
    /// [`PlanError`] if there is no such figure, or its values have another unit than the limit.
    pub fn required(threshold: &Threshold) -> Result<Option<Self>, PlanError> {
        if threshold.metric != Metric::Figure {
            return Ok(None);
        }
        let name = threshold.name.replace('-', "_");
        let Some(figure) = Self::ALL.into_iter().find(|figure| figure.is_named(&name)) else {
            let known: Vec<String> = Self::ALL
                .into_iter()
                .map(|figure| figure.requirement().replace('_', "-"))
                .collect();
            return Err(PlanError(format!(
                "invalid threshold \"{threshold}\": there is no figure \"{}\"; the figures are {}",
                threshold.name,
                known.join(", ")
            )));
        };
        let (is_unit, expected) = match figure.unit() {
            Unit::Microseconds | Unit::Seconds => {
                (threshold.unit == LimitUnit::Time, "a unit of time: us, ms or s")
            }
            Unit::Bytes => (threshold.unit != LimitUnit::Time, "bytes, as in 2000 or 2kB"),
            _ => (threshold.unit == LimitUnit::Number, "a number without a unit"),
        };
        if is_unit {
            return Ok(Some(figure));
        }
        let name = &threshold.name;
        Err(PlanError(format!("invalid threshold \"{threshold}\": {name} needs {expected}")))
    }

    fn is_named(self, name: &str) -> bool {
        let key = self.as_str();
        [key, key.strip_suffix("_per_transaction").unwrap_or(key), self.requirement()]
            .contains(&name)
    }

    /// Returns the shortest name in a threshold.
    fn requirement(self) -> &'static str {
        let key = self.as_str();
        without_unit(key.strip_suffix("_per_transaction").unwrap_or(key))
    }

    /// Returns a value in the unit of limits.
    pub fn in_unit_of_limit(self, value: f64) -> f64 {
        if self.unit() == Unit::Seconds { value * US_PER_S } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(text: &str) -> Result<Option<Figure>, String> {
        Figure::required(&text.parse().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_figure_is_required_by_its_key_with_or_without_its_unit() {
        for (text, figure) in [
            ("server-cpu<200us", Figure::ServerCpuUsPerTransaction),
            ("server_cpu_us_per_transaction<200us", Figure::ServerCpuUsPerTransaction),
            ("server-cpus<1.5", Figure::ServerCpus),
            ("wal-bytes<2kB", Figure::WalBytesPerTransaction),
            ("wal-bytes<2000", Figure::WalBytesPerTransaction),
            ("blocks-read=0", Figure::BlocksReadPerTransaction),
            ("seconds<2s", Figure::Seconds),
            ("rows-written>10", Figure::RowsWrittenPerS),
        ] {
            assert_eq!(required(text), Ok(Some(figure)), "{text}");
        }
        assert_eq!(required("p99<1ms"), Ok(None));
    }

    #[test]
    fn no_two_figures_have_the_same_name() {
        let mut names: Vec<_> = Figure::ALL.into_iter().map(Figure::requirement).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn unknown_figures_and_other_units_are_refused() {
        for (text, expected) in [
            ("speed>1", "there is no figure \"speed\"; the figures are transactions, "),
            ("p101<1s", "there is no figure \"p101\""),
            ("server-cpu<200", "server-cpu needs a unit of time"),
            ("wal-bytes<1ms", "wal-bytes needs bytes"),
            ("blocks-read<1kB", "blocks-read needs a number"),
        ] {
            let error = required(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
