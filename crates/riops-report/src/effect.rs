//! The texts of an effect: ratios as changes, intervals, p-values, verdicts.

use crate::document::Tone;
use crate::table::{Column, text_column};
use riops_model::stats::{Outcome, RatioInterval};
use riops_model::units::format::{factor, rate};

/// From this ratio on, a change is a factor.
const DOUBLED: f64 = 2.0;
/// Level of an interval whose text does not have it.
const USUAL_LEVEL: &str = "95%";

/// `+11.0% to +13.5%`.
pub(crate) fn change_interval(interval: RatioInterval) -> String {
    // Both limits in the same unit.
    if interval.high >= DOUBLED && interval.low < DOUBLED {
        return format!("×{} to ×{}", factor(interval.low), factor(interval.high));
    }
    format!("{} to {}", limit_text(interval.low), limit_text(interval.high))
}

/// The same in a sentence, with its level unless it is the usual one: `+11.0% to +13.5%, 99.4% interval`.
pub(crate) fn leveled_interval(interval: RatioInterval) -> String {
    let (text, level) = (change_interval(interval), level_text(interval.coverage));
    if level == USUAL_LEVEL { text } else { format!("{text}, {level} interval") }
}

/// A limit of an interval as a change. One that is not 1 has as many decimals as show on which side of it it is.
fn limit_text(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    match change_text(ratio) {
        text if text == "0.0%" && change.abs() >= 5e-5 => {
            let decimals = (2..4).find(|decimals| change.abs() >= 0.5 * 0.1_f64.powi(*decimals));
            let decimals = usize::try_from(decimals.unwrap_or(4)).unwrap_or(4);
            format!("{change:+.decimals$}%")
        }
        text => text,
    }
}

/// `95%`, `97.7%`: never more than it is.
fn level_text(coverage: f64) -> String {
    let text = format!("{:.1}", (coverage * 1e3 + 1e-6).floor() / 10.0);
    format!("{}%", text.trim_end_matches(".0"))
}

/// A column with the intervals of ratios: their level is in its title, or beside each one if they have several.
pub(crate) struct IntervalColumn {
    /// The title.
    pub(crate) title: String,
    is_mixed: bool,
}

impl IntervalColumn {
    /// Returns the column of all these intervals.
    pub(crate) fn for_intervals(intervals: impl Iterator<Item = RatioInterval>) -> Self {
        let mut levels: Vec<String> =
            intervals.map(|interval| level_text(interval.coverage)).collect();
        levels.dedup();
        let title = match levels.as_slice() {
            [] => format!("{USUAL_LEVEL} interval"),
            [only] => format!("{only} interval"),
            _ => "interval".to_owned(),
        };
        Self { title, is_mixed: levels.len() > 1 }
    }

    /// Returns the column.
    pub(crate) fn column(&self) -> Column {
        text_column(&self.title)
    }

    /// Returns the text of an interval.
    pub(crate) fn text(&self, interval: RatioInterval) -> String {
        let text = change_interval(interval);
        let level = || level_text(interval.coverage);
        if self.is_mixed { format!("{text} ({})", level()) } else { text }
    }
}

/// What an inconclusive comparison shows: the interval, not the estimate, which would look like an effect.
pub(crate) fn open_text(figure: &str, interval: Option<RatioInterval>) -> String {
    match interval {
        Some(interval) => format!("{figure} may differ by {}", leveled_interval(interval)),
        None => format!("the difference in {figure} is unknown"),
    }
}

/// A ratio as a change: `+12.3%`, or `×3.41` from a doubling on.
pub fn change_text(ratio: f64) -> String {
    if ratio >= 1e3 {
        return format!("×{}", rate(ratio));
    }
    if ratio >= DOUBLED {
        return format!("×{}", factor(ratio));
    }
    match format!("{:+.1}%", (ratio - 1.0) * 100.0).as_str() {
        "+0.0%" | "-0.0%" => "0.0%".to_owned(),
        text => text.to_owned(),
    }
}

/// A p-value.
pub(crate) fn p_text(p: f64) -> String {
    if p < 0.000_1 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The verdict on a figure.
pub(crate) fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Faster => "FASTER",
        Outcome::Slower => "SLOWER",
        Outcome::Equivalent => "equivalent",
        Outcome::Inconclusive => "inconclusive",
    }
}

/// Whether a verdict is good or bad news.
pub(crate) fn outcome_tone(outcome: Outcome) -> Option<Tone> {
    match outcome {
        Outcome::Faster => Some(Tone::Good),
        Outcome::Slower => Some(Tone::Bad),
        Outcome::Equivalent | Outcome::Inconclusive => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64, coverage: f64) -> RatioInterval {
        RatioInterval { low, high, coverage }
    }

    #[test]
    fn a_column_has_the_level_of_its_intervals() {
        let title = |levels: &[f64]| {
            let intervals = levels.iter().map(|level| interval(0.9, 1.1, *level));
            let column = IntervalColumn::for_intervals(intervals);
            (column.title.clone(), column.text(interval(0.9, 1.1, 0.95)))
        };
        let text = "-10.0% to +10.0%".to_owned();
        assert_eq!(title(&[]), ("95% interval".to_owned(), text.clone()));
        assert_eq!(title(&[0.95, 0.95]), ("95% interval".to_owned(), text.clone()));
        assert_eq!(title(&[1.0 - 0.0226]), ("97.7% interval".to_owned(), text.clone()));
        assert_eq!(title(&[1.0 - 0.0063]), ("99.3% interval".to_owned(), text.clone()));
        assert_eq!(title(&[0.95, 0.99]), ("interval".to_owned(), format!("{text} (95%)")));
    }

    #[test]
    fn both_limits_of_an_interval_are_in_one_unit() {
        let text = |low, high| change_interval(interval(low, high, 0.95));
        assert_eq!(text(0.38, 2.69), "×0.38 to ×2.69");
        assert_eq!(text(0.004, 12.0), "×0.004 to ×12.0");
        assert_eq!(text(2.1, 2.5), "×2.10 to ×2.50");
        assert_eq!(text(0.5, 1.99), "-50.0% to +99.0%");
    }

    #[test]
    fn a_sentence_has_every_level_but_the_usual_one() {
        assert_eq!(leveled_interval(interval(0.9, 1.1, 0.95)), "-10.0% to +10.0%");
        let other = "TPS may differ by -10.0% to +10.0%, 99% interval";
        assert_eq!(open_text("TPS", Some(interval(0.9, 1.1, 0.99))), other);
    }

    #[test]
    fn a_limit_shows_on_which_side_of_1_it_is() {
        let texts = [1.0, 1.0004, 0.9996, 1.00001, 0.999_996, 1.0005, 1.3].map(limit_text);
        let expected = ["0.0%", "+0.04%", "-0.04%", "+0.001%", "-0.0004%", "+0.05%", "+30.0%"];
        assert_eq!(texts, expected);
    }
}
