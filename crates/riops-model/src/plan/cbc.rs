//! The parameters of the workload `cbc`: the size and place of its table, and the queries that run in several
//! sessions at once.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::error::{PlanError, refuse};
use super::policy::{SESSIONS_MAX, Stop};
use super::spec::{Common, DatasetSpec, DatasetTraits, Spec, Traits};
use crate::units::split_size;

/// The workload's name.
const NAME: &str = "cbc";
/// Below this size the LIMIT of the query over the table is 0.
const SIZE_MIN_GB: f64 = 0.01;
/// The number of copies of the settings must fit into an `integer`.
const SIZE_MAX_GB: f64 = 100_000.0;
/// Maximum duration of one query stage: one day.
const QUERY_DURATION_S_MAX: f64 = 86_400.0;
/// Maximum pause between two stages: one day.
const COOLDOWN_S_MAX: f64 = 86_400.0;
/// Copies of the settings per gigabyte, as defined by the benchmark.
const COPIES_PER_GB: u128 = 12_500;
/// Sizes are rounded to 10 decimal places, which represents any number of MB in GB exactly.
const DECIMALS: f64 = 1e10;
/// As for every size on the command line.
const BYTES_PER_GB: f64 = (1u64 << 30) as f64;

/// The size of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CbcSize {
    /// Nominal gigabytes.
    Gigabytes(f64),
    /// Three times the memory of the server host.
    Auto,
}

impl FromStr for CbcSize {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(Self::Auto);
        }
        let gigabytes = split_size(text).and_then(|(digits, unit_bytes)| {
            let factor = unit_bytes.map_or(1.0, |bytes| bytes as f64 / BYTES_PER_GB);
            Some(digits.replace('_', "").parse::<f64>().ok()? * factor)
        });
        match gigabytes {
            Some(gigabytes) if gigabytes.is_finite() => Ok(Self::Gigabytes(rounded(gigabytes))),
            _ => refuse(format!(
                "invalid size \"{text}\": expected a size such as 20GB, 0.5, 500MB or 1TB, or auto"
            )),
        }
    }
}

/// Rounds to [`DECIMALS`].
fn rounded(gigabytes: f64) -> f64 {
    (gigabytes * DECIMALS).round() / DECIMALS
}

/// Where the table is created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CbcPlace {
    /// In a dedicated database, `riops_cbc`.
    #[default]
    Database,
    /// In the schema `riops` of the given database.
    Schema,
}

names!(CbcPlace { Database: "database", Schema: "schema" });

/// The parameters of `run cbc`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct CbcRun {
    /// Nominal size in gigabytes. The actual size of the table depends on the server version.
    #[default = 20.0]
    pub size_gb: f64,
    /// Whether the size was derived from the memory.
    #[serde(default)]
    pub auto_size: bool,
    /// Where the table is created.
    pub place: CbcPlace,
    /// Whether the caches are emptied before each of the two selects that are meant to run uncached.
    #[serde(default)]
    pub cold: bool,
    /// With `cold`: whether the run is valid even if a cache could not be emptied.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub cold_try: bool,
    /// Sessions of each query stage; empty: no query stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query_sessions: Vec<u32>,
    /// Duration of each query stage, in seconds.
    #[default = 120.0]
    pub query_duration_s: f64,
    /// Whether the table is kept after the run.
    #[serde(default)]
    pub keep: bool,
    /// Whether the run starts even if the free disk space seems insufficient.
    #[serde(default)]
    pub skip_space_check: bool,
    /// Pause before each stage but the first, in seconds. It is not measured.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub cooldown_s: f64,
}

/// Returns the number of copies of the settings for a nominal size: one for each row of
/// `generate_series(0, size * 12500)`, which begins with the copy number 0 and does not exceed its end.
pub fn copies(size_gb: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "validated size")]
    let (size, unit) = ((size_gb * DECIMALS).round() as u128, DECIMALS as u128);
    // Integer arithmetic, because a floating-point product can be just below a whole number.
    let copies = size * COPIES_PER_GB / unit + 1;
    u64::try_from(copies).unwrap_or(u64::MAX)
}

/// The table of a run of `cbc`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CbcDataset {
    /// Nominal size in gigabytes.
    pub size_gb: f64,
    /// Rows of `pg_settings` that are visible to the role.
    pub settings_rows: u64,
    /// Number of copies of these rows in the table.
    pub copies: u64,
    /// Final `pg_relation_size` of the table; absent if the run did not get that far.
    pub table_bytes: Option<u64>,
    /// Final `pg_relation_size` of its index.
    pub index_bytes: Option<u64>,
}

impl CbcDataset {
    /// Returns the number of rows of the table.
    pub fn rows(&self) -> u64 {
        self.copies * self.settings_rows
    }
}

impl DatasetSpec for CbcDataset {
    fn traits(&self) -> DatasetTraits {
        DatasetTraits { name: NAME, may_use_dedicated_database: true, ..DatasetTraits::default() }
    }

    fn validate(&self) -> Result<(), PlanError> {
        Ok(())
    }
}

impl Spec for CbcRun {
    fn traits(&self) -> Traits {
        Traits {
            name: NAME,
            is_undivided: true,
            terminates_sessions: true,
            needs_dedicated_sessions: true,
            // A select over a whole table may take longer than its stage, which is a valid result.
            accepts_no_transactions: true,
            shows_messages: true,
            empties_caches: self.cold && !self.cold_try,
            wrong_replies: Some("no row or more than one row"),
            ..Traits::default()
        }
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        let Self { size_gb, query_duration_s: duration_s, cooldown_s, .. } = *self;
        require!(
            (SIZE_MIN_GB..=SIZE_MAX_GB).contains(&size_gb),
            "--size must be between {SIZE_MIN_GB} and {SIZE_MAX_GB} GB, not {size_gb}"
        );
        require!(
            self.query_sessions.iter().all(|sessions| (1..=SESSIONS_MAX).contains(sessions)),
            "--query-sessions must be between 1 and {SESSIONS_MAX}"
        );
        require!(
            duration_s > 0.0 && duration_s <= QUERY_DURATION_S_MAX,
            "--query-duration must be greater than 0 and at most 1 day, not {duration_s} s"
        );
        require!(
            (0.0..=COOLDOWN_S_MAX).contains(&cooldown_s),
            "--cooldown must be at most 1 day, not {cooldown_s} s"
        );
        common.refuse_repetition_options(NAME)?;
        common.refuse_settings(NAME)?;
        require!(
            common.stop == Stop::DurationS(duration_s),
            "the query stages of {NAME} stop after --query-duration ({duration_s} s): no other limit is supported"
        );
        Ok(())
    }

    fn repeated(&self) -> Self {
        // `size_gb` holds the chosen size; another machine would choose a different one.
        Self { auto_size: false, ..self.clone() }
    }

    fn title(&self) -> String {
        format!("{NAME} {} GB", self.size_gb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_match_the_benchmark_definition() {
        assert_eq!([0.1, 0.5, 1.0, 2.5].map(copies), [1_251, 6_251, 12_501, 31_251]);
        // A series to 12.5 ends with 12.
        assert_eq!((copies(0.001), copies(20.0), copies(20.5)), (13, 250_001, 256_251));
        // 500MB (6103.5 copies) and the largest size.
        assert_eq!((copies(500.0 / 1024.0), copies(SIZE_MAX_GB)), (6_104, 1_250_000_001));
    }

    #[test]
    fn parses_sizes_with_and_without_units() {
        let pairs = [
            ("20", 20.0),
            ("20GB", 20.0),
            ("0.1", 0.1),
            ("512MB", 0.5),
            ("500MB", 500.0 / 1024.0),
            ("3MiB", 3.0 / 1024.0),
            ("524288kB", 0.5),
            ("2.5g", 2.5),
            ("1.5 GiB", 1.5),
            ("1T", 1024.0),
            ("1TB", 1024.0),
            ("1_0", 10.0),
        ];
        for (text, size) in pairs {
            assert_eq!(text.parse(), Ok(CbcSize::Gigabytes(size)), "{text}");
        }
        assert_eq!("auto".parse(), Ok(CbcSize::Auto));
        for text in ["", "GB", "1 KB x", "1GBB", "nan", "inf", "much"] {
            assert!(text.parse::<CbcSize>().is_err(), "{text}");
        }
    }
}
