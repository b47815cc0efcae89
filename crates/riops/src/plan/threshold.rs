//! What a result has to be: `p99<10ms`, `riops>50000`, `errors=0`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A figure of a latency histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// The latency that this share of all does not exceed, 0 to 1.
    Quantile(f64),
    /// The arithmetic mean.
    Mean,
    /// The longest.
    Max,
}

/// Which time is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeKind {
    /// Response time where a rate is set, else service time.
    Either,
    /// From the send.
    Service,
    /// From the intended start.
    Response,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// A latency, in microseconds.
    Time(TimeKind, Quantity),
    /// Rows per second.
    RowsPerS,
    /// Transactions per second.
    TransactionsPerS,
    /// Errors of all kinds.
    Errors,
    /// Failed transactions, in percent of those that ended.
    ErrorPercent,
    /// Transactions beyond the latency limit, and those that were skipped.
    Late,
    /// Starts that never got their turn.
    Waiting,
    /// Transactions that were sent again.
    Retries,
    /// Connections that broke and were replaced.
    Reconnects,
    /// Transactions whose outcome nobody knows.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
}

/// What a result has to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Threshold {
    text: String,
    /// What is compared.
    pub metric: Metric,
    comparison: Comparison,
    /// With what: microseconds for latencies, else as the metric counts.
    value: f64,
}

/// Why a text is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no threshold: give a metric ([service.|response.]p50 … p99.9, mean, max; riops, tps, errors, error_percent, late, waiting, retries, reconnects, unknown), one of < <= > >= =, and a number, with us, ms or s behind a latency"
)]
pub struct ThresholdError(String);

impl Threshold {
    /// Whether `found`, in the metric's unit, is what is wanted.
    #[must_use]
    pub fn is_held_by(&self, found: f64) -> bool {
        match self.comparison {
            Comparison::Below => found < self.value,
            Comparison::AtMost => found <= self.value,
            Comparison::Above => found > self.value,
            Comparison::AtLeast => found >= self.value,
            Comparison::Equal => found == self.value,
        }
    }
}

/// The error of the histograms by which a run is judged while it goes on.
const TOLERANCE: f64 = 0.01;

impl Threshold {
    /// Whether `found` is not what is wanted, by more than a preliminary figure may be wrong.
    #[must_use]
    pub fn is_clearly_breached(&self, found: f64) -> bool {
        let near = match self.metric {
            Metric::Time(..) => [1.0 - TOLERANCE, 1.0, 1.0 + TOLERANCE],
            _ => [1.0; 3],
        };
        near.iter().all(|factor| !self.is_held_by(found * factor))
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        parse(text).ok_or_else(|| ThresholdError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Threshold> {
    let start = text.find(['<', '>', '='])?;
    let (name, rest) = text.split_at(start);
    let end = rest.find(|c: char| !matches!(c, '<' | '>' | '=')).unwrap_or(rest.len());
    let (comparison, value) = rest.split_at(end);
    let comparison = match comparison {
        "<" => Comparison::Below,
        "<=" => Comparison::AtMost,
        ">" => Comparison::Above,
        ">=" => Comparison::AtLeast,
        "=" | "==" => Comparison::Equal,
        _ => return None,
    };
    let metric = metric(name.trim())?;
    let value = match metric {
        Metric::Time(..) => microseconds(value.trim())?,
        _ => number(value.trim())?,
    };
    Some(Threshold { text: text.trim().to_owned(), metric, comparison, value })
}

fn metric(name: &str) -> Option<Metric> {
    let (kind, figure) = match name.split_once('.') {
        Some(("service", figure)) => (TimeKind::Service, figure),
        Some(("response", figure)) => (TimeKind::Response, figure),
        _ => (TimeKind::Either, name),
    };
    let quantity = match figure {
        "mean" => Some(Quantity::Mean),
        "max" => Some(Quantity::Max),
        "p999" => Some(Quantity::Quantile(0.999)),
        _ => figure
            .strip_prefix('p')
            .and_then(number)
            .filter(|percent| (0.0..=100.0).contains(percent))
            // 99.9 / 100 is a hair above 0.999, which of a thousand would be the one after.
            .map(|percent| Quantity::Quantile((percent * 1e3).round() / 1e5)),
    };
    if let Some(quantity) = quantity {
        return Some(Metric::Time(kind, quantity));
    }
    match name {
        "riops" | "rows_per_s" => Some(Metric::RowsPerS),
        "tps" | "transactions_per_s" => Some(Metric::TransactionsPerS),
        "errors" => Some(Metric::Errors),
        "error_percent" => Some(Metric::ErrorPercent),
        "late" => Some(Metric::Late),
        "waiting" => Some(Metric::Waiting),
        "retries" => Some(Metric::Retries),
        "reconnects" => Some(Metric::Reconnects),
        "unknown" => Some(Metric::Unknown),
        _ => None,
    }
}

fn number(text: &str) -> Option<f64> {
    text.replace('_', "").parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// A latency without a unit would be a guess.
fn microseconds(text: &str) -> Option<f64> {
    let (digits, factor) = match text {
        text if text.ends_with("us") => (text.strip_suffix("us")?, 1.0),
        text if text.ends_with("ms") => (text.strip_suffix("ms")?, 1e3),
        text => (text.strip_suffix('s')?, 1e6),
    };
    Some(number(digits.trim())? * factor)
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl TryFrom<String> for Threshold {
    type Error = ThresholdError;

    fn try_from(text: String) -> Result<Self, ThresholdError> {
        text.parse()
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> Self {
        threshold.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_held_or_not() {
        let cases = [
            ("p99<10ms", 9_999.0, true),
            ("p99<10ms", 10_000.0, false),
            ("p99 <= 10ms", 10_000.0, true),
            ("max<=1.5s", 1_500_001.0, false),
            ("mean<500us", 100.0, true),
            ("riops>50_000", 50_000.0, false),
            ("riops>=5e4", 50_000.0, true),
            ("errors=0", 0.0, true),
            ("errors==0", 1.0, false),
        ];
        for (text, found, held) in cases {
            assert_eq!(
                text.parse::<Threshold>().unwrap().is_held_by(found),
                held,
                "{text} {found}"
            );
        }
    }

    #[test]
    fn a_preliminary_figure_breaches_only_clearly() {
        let p99: Threshold = "p99<10ms".parse().unwrap();
        assert!(!p99.is_clearly_breached(10_050.0) && p99.is_clearly_breached(10_200.0));
        let errors: Threshold = "errors=0".parse().unwrap();
        assert!(errors.is_clearly_breached(1.0) && !errors.is_clearly_breached(0.0));
    }

    #[test]
    fn a_metric_is_known_by_its_name() {
        let metric = |text: &str| text.parse::<Threshold>().unwrap().metric;
        let quantile = |kind, share| Metric::Time(kind, Quantity::Quantile(share));
        assert_eq!(metric("p99.9<1s"), quantile(TimeKind::Either, 0.999));
        assert_eq!(metric("response.p50<1s"), quantile(TimeKind::Response, 0.5));
        assert_eq!(metric("service.max<1s"), Metric::Time(TimeKind::Service, Quantity::Max));
        assert_eq!(metric("tps>1"), Metric::TransactionsPerS);
    }

    #[test]
    fn what_is_no_threshold_is_refused_with_what_would_be_one() {
        for text in
            ["", "p99", "p99<", "p99<10", "p101<1s", "speed>1", "riops>fast", "p99=<1s", "riops>-1"]
        {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains("give a metric"), "{text}");
        }
    }

    #[test]
    fn a_threshold_survives_its_json() {
        let threshold: Threshold = "p99<10ms".parse().unwrap();
        let json = serde_json::to_string(&threshold).unwrap();
        assert_eq!(json, "\"p99<10ms\"");
        assert_eq!(serde_json::from_str::<Threshold>(&json).unwrap(), threshold);
    }
}
