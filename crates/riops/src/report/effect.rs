//! The texts of an effect: ratios as changes, intervals, p-values, verdicts.

use crate::report::document::Tone;
use crate::stats::{Interval, Outcome};
use crate::units::format::{factor, rate};

/// `+11.0% to +13.5%`.
pub(in crate::report) fn change_interval(interval: Interval) -> String {
    format!("{} to {}", change_text(interval.low), change_text(interval.high))
}

/// What an inconclusive comparison shows: the interval, not the estimate, which would look like an effect. An interval
/// that excludes 1 without a significant p-value would look like one, too.
pub(in crate::report) fn open_text(
    figure: &str,
    interval: Option<Interval>,
    p_adjusted: Option<f64>,
) -> String {
    match (interval, p_adjusted) {
        (Some(interval), _) if interval.low <= 1.0 && interval.high >= 1.0 => {
            format!("{figure} may differ by {}", change_interval(interval))
        }
        (_, Some(p)) => format!("the difference in {figure} is not significant (p {})", p_text(p)),
        _ => format!("the difference in {figure} is unknown"),
    }
}

/// A ratio as a change: `+12.3%`, or `×3.41` from a doubling on.
pub(crate) fn change_text(ratio: f64) -> String {
    if ratio >= 1e3 {
        return format!("×{}", rate(ratio));
    }
    if ratio >= 2.0 {
        return format!("×{}", factor(ratio));
    }
    match format!("{:+.1}%", (ratio - 1.0) * 100.0).as_str() {
        "+0.0%" | "-0.0%" => "0.0%".to_owned(),
        text => text.to_owned(),
    }
}

/// A p-value.
pub(in crate::report) fn p_text(p: f64) -> String {
    if p < 0.000_1 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The verdict on a figure.
pub(in crate::report) fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Faster => "FASTER",
        Outcome::Slower => "SLOWER",
        Outcome::Equivalent => "equivalent",
        Outcome::Inconclusive => "inconclusive",
    }
}

/// Whether a verdict is good or bad news.
pub(in crate::report) fn outcome_tone(outcome: Outcome) -> Option<Tone> {
    match outcome {
        Outcome::Faster => Some(Tone::Good),
        Outcome::Slower => Some(Tone::Bad),
        Outcome::Equivalent | Outcome::Inconclusive => None,
    }
}
