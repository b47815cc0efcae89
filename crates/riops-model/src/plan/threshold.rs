//! Thresholds for results: `p99<10ms`, `riops>50000`, `errors=0`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::PlanError;

/// A statistic of a latency histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Percentile; 100 is the maximum.
    Percentile(f64),
    /// Arithmetic mean.
    Mean,
}

/// The start of the latencies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// From the send.
    #[default]
    Service,
    /// From the intended start.
    Response,
}

impl LatencyKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Service, Self::Response];

    /// Returns the first for the service time, and the second for the response time.
    pub fn pick<T>(self, [service, response]: [T; 2]) -> T {
        match self {
            Self::Service => service,
            Self::Response => response,
        }
    }
}

/// The metric of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// Latency, in microseconds; without a kind the response time if a rate is set, otherwise the service time.
    Time(Option<LatencyKind>, Quantity),
    /// Rows per second.
    RowsPerS,
    /// Transactions per second.
    TransactionsPerS,
    /// Errors of all kinds.
    Errors,
    /// Failed transactions, as a percentage of all completed transactions.
    ErrorPercent,
    /// Transactions above the latency limit, including skipped ones.
    Late,
    /// Scheduled transactions that were never started.
    Waiting,
    /// Retries of transactions.
    Retries,
    /// Lost connections that were replaced.
    Reconnects,
    /// Transactions with an unknown outcome: a commit in flight on a lost connection.
    Unknown,
    /// Mean value of a query of the user.
    Probe,
    /// Largest value of a query of the user.
    ProbeMax,
    /// The figure of the catalog that the threshold names.
    Figure,
}

/// The unit with which a limit was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// None.
    Number,
    /// A unit of time. The limit is in microseconds.
    Time,
    /// A unit of size. The limit is in bytes.
    Size,
}

/// The part of a result that a threshold judges: a script, or one of its commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Name of the script, or its number from 1; absent for the only one.
    pub script: Option<String>,
    /// Number of the command in the script, from 1; absent for whole transactions.
    pub command: Option<usize>,
    /// Name of a query of the user.
    pub probe: Option<String>,
}

impl Part {
    /// Returns the position of the script among these names.
    pub fn position<'a>(&self, names: impl ExactSizeIterator<Item = &'a str>) -> Option<usize> {
        let count = names.len();
        let Some(script) = &self.script else {
            return (count == 1).then_some(0);
        };
        let index = script.parse::<usize>().ok().and_then(|ordinal| ordinal.checked_sub(1));
        names
            .enumerate()
            .find_map(|(position, name)| (name == script).then_some(position))
            .or(index.filter(|index| *index < count))
    }
}

/// A threshold for a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    /// Name of the metric, as typed.
    pub name: String,
    /// Metric that is compared.
    pub metric: Metric,
    /// The part that is judged; absent for the whole result.
    pub part: Option<Part>,
    /// How a value that meets it compares with the limit.
    orderings: &'static [Ordering],
    /// Limit: in microseconds for latencies, otherwise in the unit of the metric.
    value: f64,
    /// The unit of the limit.
    pub unit: LimitUnit,
}

const SYNTAX: &str = "expected a metric ([service.|response.]p50 … p99.9, mean, max; riops, tps, errors, error_percent, late, waiting, retries, reconnects, unknown; of a script: p99{script=NAME}, p99{command=N}; of --probe: probe{name=NAME}, probe_max{name=NAME}; or a figure such as server-cpu, wal-bytes), one of < <= > >= =, and a number, with the unit us, ms or s for a time";

/// Relative error of the histograms that are evaluated during a run.
const TOLERANCE: f64 = 0.01;

impl Threshold {
    /// Whether the metric is measured only with a rate.
    pub fn requires_rate(&self) -> bool {
        matches!(self.metric, Metric::Time(Some(LatencyKind::Response), _) | Metric::Waiting)
    }

    /// Whether `value`, in the metric's unit, meets the threshold.
    pub fn is_met_by(&self, value: f64) -> bool {
        value.partial_cmp(&self.value).is_some_and(|ordering| self.orderings.contains(&ordering))
    }

    /// Whether a value that is at least `bound` meets the threshold; `None` if that depends on the value.
    pub fn is_met_from(&self, bound: f64) -> Option<bool> {
        let is_met = self.is_met_by(bound);
        match self.orderings {
            [.., Ordering::Greater] => is_met.then_some(true),
            [Ordering::Less, ..] => (!is_met).then_some(false),
            _ => (bound > self.value).then_some(false),
        }
    }

    /// Whether `value` breaches the threshold by more than the error of a preliminary value.
    pub fn is_clearly_breached(&self, value: f64) -> bool {
        let near = match self.metric {
            Metric::Time(..) => [1.0 - TOLERANCE, 1.0, 1.0 + TOLERANCE],
            _ => [1.0; 3],
        };
        near.iter().all(|factor| !self.is_met_by(value * factor))
    }
}

impl FromStr for Threshold {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        parse(text).ok_or_else(|| {
            let text = text.trim();
            // With a unit it would be valid.
            let lacks_unit = text.ends_with(|last: char| last.is_ascii_digit())
                && parse(&format!("{text}s")).is_some();
            let unit = format!("a latency needs a unit: write {text}ms or {text}s");
            let separate = text.contains(',').then(|| separate_options(text)).flatten();
            let reason = match &separate {
                Some(reason) => reason,
                None if lacks_unit => &unit,
                None => SYNTAX,
            };
            PlanError(format!("invalid threshold \"{text}\": {reason}"))
        })
    }
}

/// The options for several conditions in one.
fn separate_options(text: &str) -> Option<String> {
    let conditions: Vec<&str> = text.split(',').map(str::trim).collect();
    let all_valid = conditions.iter().all(|condition| parse(condition).is_some());
    let options = conditions.iter().map(|condition| format!("--threshold '{condition}'"));
    let options = options.collect::<Vec<_>>().join(" ");
    all_valid.then(|| format!("each condition needs its own --threshold: {options}"))
}

fn parse(text: &str) -> Option<Threshold> {
    let (part, name, rest) = if let Some((name, rest)) = text.split_once('{') {
        let (part, rest) = rest.split_once('}')?;
        (Some(self::part(part)?), name, rest.trim_start())
    } else {
        let (name, rest) = text.split_at(text.find(['<', '>', '='])?);
        (None, name, rest)
    };
    let end = rest.find(|c: char| !matches!(c, '<' | '>' | '=')).unwrap_or(rest.len());
    let (comparison, value) = rest.split_at(end);
    let orderings: &[_] = match comparison {
        "<" => &[Ordering::Less],
        "<=" => &[Ordering::Less, Ordering::Equal],
        ">" => &[Ordering::Greater],
        ">=" => &[Ordering::Equal, Ordering::Greater],
        "=" | "==" => &[Ordering::Equal],
        _ => return None,
    };
    let metric = metric(name.trim())?;
    let is_of_parts = matches!(metric, Metric::Time(..) | Metric::Errors | Metric::Retries);
    let is_of_probe = matches!(metric, Metric::Probe | Metric::ProbeMax);
    let has_probe = part.as_ref().is_some_and(|part| part.probe.is_some());
    if is_of_probe != has_probe || part.is_some() && !is_of_parts && !is_of_probe {
        return None;
    }
    let value = value.trim();
    let time = || Some((microseconds(value)?, LimitUnit::Time));
    let size = || Some((bytes(value)?, LimitUnit::Size));
    let plain = || Some((parse_number(value)?, LimitUnit::Number));
    let (value, unit) = match metric {
        Metric::Time(..) => time()?,
        Metric::Figure => plain().or_else(time).or_else(size)?,
        _ => plain()?,
    };
    let (text, name) = (text.trim().to_owned(), name.trim().to_owned());
    Some(Threshold { text, name, metric, part, orderings, value, unit })
}

/// Parses `script=NAME,command=N`.
fn part(text: &str) -> Option<Part> {
    let mut part = Part::default();
    for pair in text.split(',') {
        match pair.split_once('=')? {
            (name, value) if name.trim() == "script" && part.script.is_none() => {
                part.script = Some(value.trim().to_owned());
            }
            (name, value) if name.trim() == "command" && part.command.is_none() => {
                part.command = Some(value.trim().parse().ok()?);
            }
            (name, value) if name.trim() == "name" && part == Part::default() => {
                part.probe = Some(value.trim().to_owned());
            }
            _ => return None,
        }
    }
    Some(part)
}

fn metric(name: &str) -> Option<Metric> {
    let (kind, figure) = match name.split_once('.') {
        Some(("service", figure)) => (Some(LatencyKind::Service), figure),
        Some(("response", figure)) => (Some(LatencyKind::Response), figure),
        _ => (None, name),
    };
    let quantity = match figure {
        "mean" => Some(Quantity::Mean),
        "max" => Some(Quantity::Percentile(100.0)),
        _ => figure.strip_prefix('p').and_then(percent).map(Quantity::Percentile),
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
        "probe" => Some(Metric::Probe),
        "probe_max" => Some(Metric::ProbeMax),
        name => is_name(name).then_some(Metric::Figure),
    }
}

/// Whether a figure may have this name.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
}

/// Parses a percentage: `99.9`, or `999` as in the names of the record.
fn percent(text: &str) -> Option<f64> {
    let decimals =
        text.strip_prefix("99").filter(|rest| !rest.is_empty() && !rest.starts_with('.'));
    let percent =
        decimals.map_or_else(|| parse_number(text), |rest| parse_number(&format!("99.{rest}")));
    percent.filter(|percent| (0.0..=100.0).contains(percent))
}

fn parse_number(text: &str) -> Option<f64> {
    text.replace('_', "").parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

/// Parses a latency. The unit is required.
fn microseconds(text: &str) -> Option<f64> {
    let (digits, factor) = match text {
        text if text.ends_with("us") => (text.strip_suffix("us")?, 1.0),
        text if text.ends_with("ms") => (text.strip_suffix("ms")?, 1e3),
        text => (text.strip_suffix('s')?, 1e6),
    };
    Some(parse_number(digits.trim())? * factor)
}

/// Parses a size as it is shown: a kB has 1,000 bytes.
fn bytes(text: &str) -> Option<f64> {
    let units = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("B", 1.0)];
    let (digits, factor) =
        units.into_iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(parse_number(digits.trim())? * factor)
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

text_in_json!(Threshold);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_values_with_the_limit() {
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
        for (text, value, is_met) in cases {
            assert_eq!(
                text.parse::<Threshold>().unwrap().is_met_by(value),
                is_met,
                "{text} {value}"
            );
        }
    }

    #[test]
    fn preliminary_values_breach_only_beyond_the_tolerance() {
        let p99: Threshold = "p99<10ms".parse().unwrap();
        assert!(!p99.is_clearly_breached(10_050.0) && p99.is_clearly_breached(10_200.0));
        let errors: Threshold = "errors=0".parse().unwrap();
        assert!(errors.is_clearly_breached(1.0) && !errors.is_clearly_breached(0.0));
    }

    #[test]
    fn parses_metrics_by_name() {
        let metric = |text: &str| text.parse::<Threshold>().unwrap().metric;
        let percentile = |kind, percent| Metric::Time(kind, Quantity::Percentile(percent));
        assert_eq!(metric("p99.9<1s"), percentile(None, 99.9));
        assert_eq!(metric("p9999<1s"), percentile(None, 99.99));
        assert_eq!(metric("response.p50<1s"), percentile(Some(LatencyKind::Response), 50.0));
        assert_eq!(metric("service.max<1s"), percentile(Some(LatencyKind::Service), 100.0));
        assert_eq!(metric("tps>1"), Metric::TransactionsPerS);
    }

    #[test]
    fn thresholds_of_scripts_and_commands_name_them() {
        let part = |text: &str| text.parse::<Threshold>().unwrap().part;
        let expected = Part { command: Some(3), ..Part::default() };
        assert_eq!((part("p99{command=3}<5ms"), part("p99<5ms")), (Some(expected), None));
        let both = part("errors{script=a.sql, command=1} = 0").unwrap();
        assert_eq!((both.script.as_deref(), both.command), (Some("a.sql"), Some(1)));
        let names = ["b.sql", "a.sql"];
        assert_eq!(both.position(names.into_iter()), Some(1));
        let second = part("p99{script=2}<1s").unwrap();
        assert_eq!(second.position(names.into_iter()), Some(1));
        assert_eq!(Part::default().position(names.into_iter()), None);
        let probe = part("probe_max{name=lag} < 5").unwrap();
        assert_eq!(probe.probe.as_deref(), Some("lag"));
        for text in [
            "probe<5",
            "probe{command=1}<5",
            "p99{name=lag}<1s",
            "tps{command=1}>5",
            "p99{}<1s",
            "p99{command=x}<1s",
            "p99{table=1}<1s",
        ] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
    }

    #[test]
    fn rejects_invalid_thresholds_with_the_expected_syntax() {
        for text in [
            "",
            "p99",
            "p99<",
            "p99<1m",
            "a b>1",
            "speed>fast",
            "riops>fast",
            "p99=<1s",
            "riops>-1",
        ] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains("expected a metric"), "{text}");
        }
    }

    #[test]
    fn a_latency_without_a_unit_is_refused_with_both_spellings() {
        let error = "p99<10".parse::<Threshold>().unwrap_err().to_string();
        assert!(error.contains("write p99<10ms or p99<10s"), "{error}");
    }

    #[test]
    fn thresholds_round_trip_through_json() {
        let threshold: Threshold = "p99<10ms".parse().unwrap();
        let json = serde_json::to_string(&threshold).unwrap();
        assert_eq!(json, "\"p99<10ms\"");
        assert_eq!(serde_json::from_str::<Threshold>(&json).unwrap(), threshold);
    }
}
