//! The metrics of riops in text: names, help, units and the two text formats.
//!
//! `runs export -o openmetrics` and the live metrics share them, so that backfilled and scraped series
//! have the same names. Sources: OpenMetrics 1.0 (github.com/OpenObservability/OpenMetrics) and the text
//! format 0.0.4 of Prometheus. Pure: figures in, text out.

use std::fmt::Write as _;

use jiff::Timestamp;

use riops_model::figure::{Count, Statistic};
use riops_model::record::{LatencyKind, Point};
use riops_model::units::text::is_unprintable;

/// Text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics 1.0: for files that Prometheus backfills. It ends with `# EOF`.
    OpenMetrics,
    /// The text format 0.0.4 of Prometheus, for scrapes.
    Prometheus,
}

impl TextFormat {
    /// Returns the value of the HTTP header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// A total that only grows during a stage.
    Counter,
    /// A value that can fall.
    Gauge,
    /// Quantiles of one interval.
    Summary,
    /// Labels only; the value is 1.
    Info,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name after `riops_` and without the suffix of its type. A unit is its last word: a base unit, in the plural.
    pub name: &'static str,
    /// Type.
    pub kind: MetricType,
    /// Description, without any character that the formats escape.
    pub help: &'static str,
}

pub(super) const fn metric(kind: MetricType, name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind, help }
}

/// Info metric of a run: its workload, label, server and tags, as labels.
pub const RUN: Metric = metric(MetricType::Info, "run", "A run: workload, label, server and tags");
/// Number of sessions.
pub const SESSIONS: Metric = metric(MetricType::Gauge, "sessions", "Sessions of the stage");
/// Statements by kind; label `kind`: read, write, other.
pub const STATEMENTS: Metric =
    metric(MetricType::Counter, "statements", "Statements of these transactions");
/// Transactions of each node; label `node`: its number, from 1.
pub const NODE_TRANSACTIONS: Metric =
    metric(MetricType::Counter, "node_transactions", "Transactions of each node of a cluster");
/// Intended starts that were due but not sent.
pub const BACKLOG: Metric = metric(
    MetricType::Gauge,
    "backlog_starts",
    "Intended starts that were due but not sent at the end of the interval",
);

/// Values of the queries of the user.
pub const PROBE: Metric =
    metric(MetricType::Gauge, "probe", "Value of a query of the user, by its name");

impl From<&Count> for Metric {
    fn from(count: &Count) -> Self {
        metric(MetricType::Counter, count.key, count.help)
    }
}

impl From<LatencyKind> for Metric {
    fn from(kind: LatencyKind) -> Self {
        let (name, help) = match kind {
            LatencyKind::Service => (
                "service_time_seconds",
                "Time from the send to the end of the reply, quantiles of the interval",
            ),
            LatencyKind::Response => (
                "response_time_seconds",
                "Time from the intended start to the end of the reply, quantiles of the interval",
            ),
        };
        metric(MetricType::Summary, name, help)
    }
}

/// Returns the quantiles of an interval with their labels, in seconds; those that were measured.
pub(super) fn quantiles(
    point: &Point,
    kind: LatencyKind,
) -> impl Iterator<Item = ((String, String), f64)> {
    Statistic::of_series().filter_map(move |statistic| {
        Some((
            ("quantile".to_owned(), statistic.quantile()?),
            statistic.of_point(point, kind)? / 1e6,
        ))
    })
}

impl Metric {
    /// Returns the name of a sample: with the suffix of the type, if it has one.
    pub fn sample_name(&self) -> String {
        let suffix = match self.kind {
            MetricType::Counter => "_total",
            MetricType::Info => "_info",
            MetricType::Gauge | MetricType::Summary => "",
        };
        format!("riops_{}{suffix}", self.name)
    }

    /// Returns the name and type in the comments before the samples. The text format of Prometheus names the
    /// samples there and has no type for infos.
    fn family(&self, format: TextFormat) -> (String, &'static str) {
        let name = match format {
            TextFormat::OpenMetrics => format!("riops_{}", self.name),
            TextFormat::Prometheus => self.sample_name(),
        };
        let kind = match (self.kind, format) {
            (MetricType::Counter, _) => "counter",
            (MetricType::Summary, _) => "summary",
            (MetricType::Info, TextFormat::OpenMetrics) => "info",
            (MetricType::Gauge, _) | (MetricType::Info, TextFormat::Prometheus) => "gauge",
        };
        (name, kind)
    }

    fn unit(&self) -> Option<&'static str> {
        let last = self.name.rsplit('_').next()?;
        ["seconds", "ratio"].contains(&last).then_some(last)
    }
}

/// Labels of a sample: valid names, and values with any characters.
pub type Labels = Vec<(String, String)>;

/// A text of metrics in one of the two formats. All samples of a metric follow its head; the caller passes the
/// samples of one set of labels one after the other, in the order of their times.
#[derive(Debug)]
pub struct MetricsText {
    format: TextFormat,
    text: String,
}

impl MetricsText {
    /// Creates an empty text.
    pub fn new(format: TextFormat) -> Self {
        Self { format, text: String::new() }
    }

    /// Writes a metric with its samples, unless it has none. A sample has a time if it is not the current one.
    pub fn family(
        &mut self,
        metric: &Metric,
        samples: impl IntoIterator<Item = (Labels, f64, Option<Timestamp>)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let (name, kind) = metric.family(self.format);
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if let (Some(unit), TextFormat::OpenMetrics) = (metric.unit(), self.format) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", metric.help);
        for (labels, value, at) in samples {
            self.sample(metric, &labels, value, at);
        }
    }

    fn sample(
        &mut self,
        metric: &Metric,
        labels: &[(String, String)],
        value: f64,
        at: Option<Timestamp>,
    ) {
        self.text.push_str(&metric.sample_name());
        for (position, (name, text)) in labels.iter().enumerate() {
            let before = if position == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped_label(text));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = write!(self.text, " {}", number_text(value));
        if let Some(at) = at {
            let ms = at.as_millisecond();
            let _ = match self.format {
                // Seconds with a fraction.
                TextFormat::OpenMetrics => {
                    write!(self.text, " {}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000))
                }
                TextFormat::Prometheus => write!(self.text, " {ms}"),
            };
        }
        self.text.push('\n');
    }

    /// Returns the complete text.
    pub fn finish(mut self) -> String {
        if self.format == TextFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Returns the value of a label with the escapes of both formats.
pub fn escaped_label(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            // The format requires the first backslash, which escapes the second one. Prometheus and its clients may
            // split lines at a carriage return.
            c if is_unprintable(c) && c != '\t' => {
                text.push('\\');
                text.extend(c.escape_unicode());
            }
            other => text.push(other),
        }
    }
    text
}

/// Returns a valid name of a label: `tag_` before the key of a tag, and `_` for each other character.
pub fn tag_label(key: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    format!("tag_{}", key.chars().map(valid).collect::<String>())
}

/// A number as both formats read it: the shortest text that gives the same number.
fn number_text(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        finite => finite.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use riops_model::figure::TRANSACTIONS;
    use riops_model::units::text::lines;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn text(format: TextFormat) -> String {
        let mut text = MetricsText::new(format);
        let at = Timestamp::from_millisecond(1_795_371_628_532).unwrap();
        let labeled = |pairs, value, at| [(labels(pairs), value, at)];
        text.family(&(&TRANSACTIONS).into(), labeled(&[("run", "1")], 12.0, Some(at)));
        let quantile = labeled(&[("run", "1"), ("quantile", "0.5")], 0.000_25, None);
        text.family(&LatencyKind::Service.into(), quantile);
        text.family(&RUN, labeled(&[("label", "a \"b\"\\\n")], 1.0, None));
        text.finish()
    }

    #[test]
    fn openmetrics_has_units_seconds_and_an_end() {
        insta::assert_snapshot!(text(TextFormat::OpenMetrics));
    }

    #[test]
    fn the_text_of_prometheus_names_the_samples_and_has_milliseconds() {
        insta::assert_snapshot!(text(TextFormat::Prometheus));
    }

    /// Reads the value of a label as a parser does.
    fn unescaped(text: &str) -> Option<String> {
        let mut value = String::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '"' | '\n' => return None,
                '\\' => value.push(match rest.next()? {
                    'n' => '\n',
                    c @ ('"' | '\\') => c,
                    _ => return None,
                }),
                other => value.push(other),
            }
        }
        Some(value)
    }

    proptest! {
        #[test]
        fn a_label_value_is_one_line_and_reads_as_it_was(value in any::<String>()) {
            let escaped = escaped_label(&value);
            prop_assert!(!escaped.replace('\t', "").contains(is_unprintable));
            prop_assert_eq!(unescaped(&escaped), Some(lines(&value.replace("\r\n", "\\u{d}\n")).into_owned()));
        }

        #[test]
        fn the_label_of_a_tag_has_a_valid_name(key in any::<String>()) {
            let name = tag_label(&key);
            let valid = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            prop_assert!(valid && name.starts_with("tag_"));
        }

        #[test]
        fn a_number_reads_as_it_was(value in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            prop_assert_eq!(number_text(value).parse::<f64>(), Ok(value));
        }
    }
}
