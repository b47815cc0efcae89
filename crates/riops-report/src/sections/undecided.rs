//! The certain differences of a comparison whose main figure is undecided, and the runs that would decide it.

use crate::document::{Document, Tone};
use crate::effect::change_text;
use crate::sections::why::signed;
use riops_model::comparison::{Certain, Difference, Undecided};
use riops_model::study::time_left;
use riops_model::units::format::{joined, number_of, percent};

/// Maximum number of differences in the line.
const SHOWN_MAX: usize = 4;
/// From this number of runs on, the estimate does not help.
const RUNS_MAX: usize = 200;

/// How the runs to come are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Runs of each side.
    Runs,
    /// Rounds of an A/B test: two runs of both variants.
    Rounds,
}

/// Adds a line for the differences that are certain, and one for what would decide.
pub(crate) fn undecided(document: &mut Document, undecided: &Undecided, counted: Counted) {
    let (text, tone) = certain_text(&undecided.certain);
    if !text.is_empty() {
        document.push_line("certain", text, tone);
    }
    document.known("to decide", to_decide(undecided, counted));
}

/// `p50 -29.0% · WAL per transaction -1.76 ms`; bad news if one of them is for the worse.
pub(crate) fn certain_text(certain: &[Certain]) -> (String, Option<Tone>) {
    let text = |certain: &Certain| {
        let change = match certain.difference {
            Difference::Ratio(ratio) => change_text(ratio),
            Difference::ChangeUs(us) => signed(us),
        };
        format!("{} {change}", certain.name)
    };
    let more = certain.len().saturating_sub(SHOWN_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    let shown = certain.iter().take(SHOWN_MAX).map(text);
    let tone = if certain.iter().any(|certain| certain.is_worse) { Tone::Bad } else { Tone::Good };
    (joined(shown.chain(more), " · "), Some(tone).filter(|_| !certain.is_empty()))
}

/// `about 14 more rounds (4min), or a quieter machine (other processes used 96% of one CPU)`.
pub(crate) fn to_decide(undecided: &Undecided, counted: Counted) -> String {
    let runs = undecided.further_runs.map(|runs| {
        let (count, noun, side) = match counted {
            Counted::Runs => (runs, "more run", " of each"),
            Counted::Rounds => (runs.div_ceil(2), "more round", ""),
        };
        if count >= RUNS_MAX {
            return format!("more than {}", number_of(RUNS_MAX as u64, "run"));
        }
        let time = undecided.further_s.map(time_left);
        let time = time.map_or_else(String::new, |time| format!(" ({time})"));
        format!("about {}{side}{time}", number_of(two_digits(count) as u64, noun))
    });
    let quieter = undecided.others_cpus.map(|cpus| {
        format!("a quieter machine (other processes used {} of one CPU)", percent(cpus))
    });
    joined(runs.into_iter().chain(quieter), ", or ")
}

/// An estimate: two significant digits, rounded up.
fn two_digits(count: usize) -> usize {
    if count < 100 { count } else { count.div_ceil(10) * 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(open: &Undecided, counted: Counted) -> String {
        let mut document = Document::default();
        undecided(&mut document, open, counted);
        crate::document_text(&document, usize::MAX)
    }

    #[test]
    fn certain_differences_and_the_runs_that_decide_are_a_line_each() {
        let certain = |name: &str, difference, is_worse| Certain {
            name: name.to_owned(),
            difference,
            is_worse,
        };
        let mut open = Undecided {
            certain: vec![
                certain("p50", Difference::Ratio(0.71), false),
                certain("WAL per transaction", Difference::ChangeUs(-1_760.0), false),
            ],
            further_runs: Some(28),
            further_s: Some(231.0),
            others_cpus: Some(0.48),
        };
        assert_eq!(
            lines(&open, Counted::Rounds),
            "  certain      p50 -29.0% · WAL per transaction -1.76 ms\n  \
             to decide    about 14 more rounds (4min), or a quieter machine (other processes used 48% of one CPU)\n"
        );
        open.others_cpus = None;
        open.certain.clear();
        assert_eq!(
            lines(&open, Counted::Runs),
            "  to decide    about 28 more runs of each (4min)\n"
        );
        open.further_runs = Some(161);
        assert!(lines(&open, Counted::Runs).contains("about 170 more runs of each"));
        open.further_runs = Some(4_000);
        assert!(
            lines(&open, Counted::Runs).contains("more than 200 runs"),
            "{}",
            lines(&open, Counted::Runs)
        );
        assert_eq!(lines(&Undecided::default(), Counted::Runs), "");
    }

    #[test]
    fn a_difference_for_the_worse_is_bad_news_and_more_than_four_are_counted() {
        let certain = |at: usize| Certain {
            name: format!("figure {at}"),
            difference: Difference::Ratio(1.5),
            is_worse: at == 5,
        };
        let text_of = |count: usize| certain_text(&(0..count).map(certain).collect::<Vec<_>>());
        assert_eq!(text_of(0), (String::new(), None));
        assert_eq!(text_of(2).1, Some(Tone::Good));
        let (text, tone) = text_of(6);
        assert!(text.ends_with("figure 3 +50.0% · and 2 more"), "{text}");
        assert_eq!(tone, Some(Tone::Bad));
    }
}
