//! The improvement summary: throughput, latency and errors of the best cell relative to the baseline.

use super::model::{GroupView, Improvement, ImprovementRow, StudyKind, StudyView};
use crate::figure::Figure;
use crate::stats::Direction;
use crate::units::format::factor;

/// Below this factor a change is written as a percentage.
const FACTOR_MIN: f64 = 2.0;

/// A smaller change is shown as none, as a share.
const UNCHANGED: f64 = 0.000_5;

/// Returns the best cell relative to the baseline, of an A/B test the second variant relative to the first. `None` if
/// the baseline is the best.
pub(super) fn improvement(view: &StudyView) -> Option<Improvement> {
    let from = view.baseline?;
    let to = match view.kind {
        StudyKind::Ab => 1,
        StudyKind::Sweep if view.cells.len() == 2 => 1 - from.min(1),
        StudyKind::Sweep | StudyKind::Saturation => view.best?,
    };
    let (base, other) = (&view.cells.get(from)?.group, &view.cells.get(to)?.group);
    if from == to {
        return None;
    }
    let figures = [
        if view.main == Figure::Seconds { Figure::Seconds } else { throughput(view) },
        Figure::StatementsPerS,
        Figure::P50Us,
        Figure::P95Us,
        Figure::P99Us,
        Figure::ErrorsPerS,
    ];
    let row = |figure| row(view, base, other, figure);
    let mut rows: Vec<ImprovementRow> = figures.into_iter().filter_map(row).collect();
    let main_per_s = rows.first().filter(|row| row.figure != Figure::P95Us).map(|row| row.from);
    // One statement a transaction: the same figure again.
    rows.retain(|row| {
        // An A/B test compares other percentiles than a sweep shows.
        let is_of_test = if view.kind == StudyKind::Ab {
            row.figure != Figure::P95Us
        } else {
            row.figure != Figure::P50Us
        };
        let is_new = row.figure != Figure::StatementsPerS
            || (view.main == Figure::TransactionsPerS
                && main_per_s.is_some_and(|per_s| row.from > per_s * 1.01));
        is_of_test && is_new
    });
    (!rows.is_empty()).then_some(Improvement { from, to, rows })
}

/// The throughput; with a rate the latency is the main figure.
fn throughput(view: &StudyView) -> Figure {
    if view.main.is_percentile() { view.throughput() } else { view.main }
}

fn row(
    view: &StudyView,
    base: &GroupView,
    other: &GroupView,
    figure: Figure,
) -> Option<ImprovementRow> {
    let (from, to) =
        (base.figure(view.main_stage, figure)?, other.figure(view.main_stage, figure)?);
    let (a, b) = (from.estimate.value, to.estimate.value);
    if a == 0.0 && b == 0.0 {
        return None;
    }
    let is_best = view
        .best
        .and_then(|best| view.cells.get(best))
        .is_some_and(|best| std::ptr::eq(&raw const best.group, other));
    let of_all = view.best_against.as_ref().filter(|_| is_best && figure == view.main);
    // The geometric means in blocks, whose quotient is the change.
    let [a, b] = to.against_baseline.as_ref().map_or([a, b], |against| against.means);
    Some(ImprovementRow {
        figure,
        from: a,
        to: b,
        text: change(figure, a, b),
        against: of_all.or(to.against_baseline.as_ref()).cloned(),
    })
}

/// The change in words: `23x higher`, `+51%`, `27x faster`, `77% lower`.
fn change(figure: Figure, from: f64, to: f64) -> String {
    if from <= 0.0 {
        return "from none".to_owned();
    }
    if to <= 0.0 {
        return "none left".to_owned();
    }
    let ratio = to / from;
    if (ratio - 1.0).abs() < UNCHANGED {
        return "no change".to_owned();
    }
    let (more, less) = match (figure.direction(), figure.is_percentile()) {
        (Direction::HigherIsBetter, _) => ("higher", "lower"),
        (Direction::LowerIsBetter, true) => ("slower", "faster"),
        (Direction::LowerIsBetter, false) if figure == Figure::Seconds => ("longer", "shorter"),
        (Direction::LowerIsBetter, false) => ("more", "fewer"),
    };
    if ratio >= FACTOR_MIN {
        format!("{}x {more}", factor(ratio))
    } else if ratio <= 1.0 / FACTOR_MIN && figure.is_percentile() {
        format!("{}x {less}", factor(1.0 / ratio))
    } else if ratio >= 1.0 {
        format!(
            "{:.1}% {}",
            (ratio - 1.0) * 100.0,
            if figure.is_percentile() { "higher" } else { more }
        )
    } else {
        format!(
            "{:.1}% {}",
            (1.0 - ratio) * 100.0,
            if figure.is_percentile() { "lower" } else { less }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_factors_from_a_doubling_on_and_percentages_below() {
        let cases = [
            (Figure::TransactionsPerS, 8.63, 199.82, "23.2x higher"),
            (Figure::TransactionsPerS, 213.32, 321.63, "50.8% higher"),
            (Figure::TransactionsPerS, 409.87, 396.65, "3.2% lower"),
            (Figure::P95Us, 10_158e3, 376e3, "27.0x faster"),
            (Figure::P95Us, 1304e3, 877e3, "32.7% lower"),
            (Figure::P95Us, 682e3, 1051e3, "54.1% higher"),
            (Figure::ErrorsPerS, 23.0, 5.2, "77.4% fewer"),
            (Figure::ErrorsPerS, 5.0, 0.0, "none left"),
        ];
        for (figure, from, to, text) in cases {
            assert_eq!(change(figure, from, to), text);
        }
    }
}
