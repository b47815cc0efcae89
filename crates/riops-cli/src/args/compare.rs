//! Options of `riops compare` and `riops runs history`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use riops::figure::CostKind;
use riops::study::HistoryChoice;

use super::output::{AnswerOptions, FINDINGS, Forms};
use super::runs::FilterOptions;
use super::shared::StoreOptions;

/// Smallest relevant effect by default: runs on one machine often differ by 1 to 2 %.
const EFFECT: Share = Share(0.02);

/// Two groups of stored runs
#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.value_parser(Forms::new(FINDINGS))))]
pub(crate) struct Compare {
    /// A run (start or end of its id, or `last`), a label, or a tag (KEY=VALUE or KEY)
    pub(crate) a: String,
    /// The runs that are judged relative to A, selected in the same way
    pub(crate) b: String,
    /// Only runs of this workload
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Smallest relevant difference
    #[arg(long, value_name = "PERCENT", default_value_t = EFFECT, value_parser = parse_share)]
    pub(crate) effect: Share,
    /// Exit with 99 if a figure of B is slower, if there is no verdict, or if a cost of a transaction is higher
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub(crate) fail_on: Vec<FailOnVerdict>,
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// Which runs, and what counts as a change
#[derive(Debug, Args)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) filter: FilterOptions,
    /// Figure [default: the main figure of the workload]
    #[arg(long, value_name = "NAME", value_parser = history_figure())]
    pub(crate) figure: Option<HistoryChoice>,
    /// Maximum number of runs, the newest ones
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Smallest change that is reported
    #[arg(long, value_name = "PERCENT", default_value_t = EFFECT, value_parser = parse_share)]
    pub(crate) effect: Share,
    /// Exit with 99 if a figure changed, or only if it became slower
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailOn>,
    /// Judge the newest level of each series against the best one since the last acknowledged run: exit with 1 if it is slower
    #[arg(long, conflicts_with = "fail_on")]
    pub(crate) gate: bool,
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

// When a comparison fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailOnVerdict {
    Slower,
    Inconclusive,
    Cost(CostKind),
}

impl ValueEnum for FailOnVerdict {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Slower,
            Self::Inconclusive,
            Self::Cost(CostKind::Wal),
            Self::Cost(CostKind::Blocks),
            Self::Cost(CostKind::Cpu),
            Self::Cost(CostKind::Instructions),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Slower => "slower",
            Self::Inconclusive => "inconclusive",
            Self::Cost(kind) => kind.option(),
        }))
    }
}

// When a history fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Change,
    Slower,
}

/// Parses a figure of stored stages.
fn history_figure() -> impl TypedValueParser<Value = HistoryChoice> {
    PossibleValuesParser::new(HistoryChoice::all().map(|choice| choice.option)).try_map(|name| {
        let choice = HistoryChoice::all().find(|choice| choice.option == name);
        choice.ok_or("not a figure of stored stages")
    })
}

/// A share, typed in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl std::fmt::Display for Share {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}%", self.0 * 100.0)
    }
}

/// Parses a percentage: `2%`.
pub(crate) fn parse_share(text: &str) -> Result<Share, String> {
    let percent =
        text.trim().strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(Share(percent / 100.0)),
        _ => Err("expected a percentage above 0% and below 100%, for example 2%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_a_percentage() {
        assert_eq!(parse_share("2%"), Ok(Share(0.02)));
        assert_eq!(parse_share(" 0.5 %"), Ok(Share(0.005)));
        assert_eq!(EFFECT.to_string(), "2%");
        for text in ["2", "0%", "100%", "-1%", "%", "NaN%", "two%"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
