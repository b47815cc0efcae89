//! The frontier of throughput, latency and price: the cells that no other one beats in all three.

use super::cells::settings;
use super::chart_axes::{estimated, from_zero, range_of};
use crate::experiment::evaluation::{CellView, StudyView};
use crate::figure::{Estimate, Figure};
use crate::report::chart::{
    Axis, Chart, Content, Estimated, PointSeries, PointStyle, Unit, rounded,
};
use crate::report::table::{Table, number, word};
use crate::units::format::count;

/// A cell with the figures that it is judged by.
struct Offer<'a> {
    cell: &'a CellView,
    throughput: &'a Estimate,
    p99_us: f64,
    /// Price of an hour.
    price: f64,
    /// Price of a million transactions.
    price_of_million: f64,
}

impl<'a> Offer<'a> {
    fn of(view: &StudyView, cell: &'a CellView) -> Option<Self> {
        let figure = |figure: Figure| Some(&cell.group.figure(view.main_stage, figure)?.estimate);
        Some(Self {
            cell,
            throughput: figure(Figure::TransactionsPerS)?,
            p99_us: figure(Figure::P99Us)?.value,
            price: cell.price_per_hour?,
            price_of_million: figure(Figure::PricePerMillionTransactions)?.value,
        })
    }

    /// Whether it is as good in everything and better in something.
    fn beats(&self, other: &Self) -> bool {
        let (own, others) = (self.throughput.value, other.throughput.value);
        // Equal prices of an hour and of a day may differ in the last digit.
        let rounding = 1e-9 * other.price;
        let as_good =
            own >= others && self.p99_us <= other.p99_us && self.price <= other.price + rounding;
        as_good
            && (own > others || self.p99_us < other.p99_us || self.price < other.price - rounding)
    }
}

/// The cells with a price; none if fewer than two have one.
fn offers(view: &StudyView) -> Vec<Offer<'_>> {
    let offers: Vec<_> = view.cells.iter().filter_map(|cell| Offer::of(view, cell)).collect();
    if offers.len() < 2 { Vec::new() } else { offers }
}

/// The table of the frontier.
pub(super) fn table(view: &StudyView) -> Option<Table> {
    let offers = offers(view);
    let (throughput, price) = (Figure::TransactionsPerS, Figure::PricePerMillionTransactions);
    let table = Table::of("Frontier of throughput, p99 and price", &offers, |offer| {
        let better = offers.iter().find(|other| other.beats(offer));
        let verdict =
            better.map_or("yes".to_owned(), |other| format!("beaten by {}", other.cell.name));
        let mut row = settings(view, offer.cell);
        row.extend([
            (number(throughput.heading()), throughput.text(offer.throughput.value).into()),
            (number("p99"), Figure::P99Us.text(offer.p99_us).into()),
            (number("price per hour"), price.text(offer.price).into()),
            (number(price.heading()), price.text(offer.price_of_million).into()),
            (word("frontier"), verdict.into()),
        ]);
        row
    });
    table
        .with_note("A cell is on the frontier if no other one has at least its throughput, at most its p99 and at most its price. By the means: a difference within the intervals is not certain.")
        .filled()
}

/// Throughput against the price: the cells of the frontier, and the others.
pub(super) fn chart(view: &StudyView) -> Option<Chart> {
    let offers = offers(view);
    let is_beaten = |offer: &&Offer<'_>| offers.iter().any(|other| other.beats(offer));
    let (beaten, best): (Vec<_>, Vec<_>) = offers.iter().partition(is_beaten);
    let series = |label: &str, offers: Vec<&Offer<'_>>| {
        let point = |offer: &&Offer<'_>| {
            let label = format!("{}, p99 {}", offer.cell.name, Figure::P99Us.text(offer.p99_us));
            let found = estimated(rounded(offer.price), offer.throughput);
            Estimated { label: Some(label), ..found }
        };
        let points = offers.iter().map(point).collect();
        PointSeries { label: label.to_owned(), style: PointStyle::Dots, points }
    };
    let series: Vec<_> = [series("on the frontier", best), series("beaten", beaten)]
        .into_iter()
        .filter(|each| !each.points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    let (range, scale) = range_of(offers.iter().map(|offer| offer.price));
    let on = offers.len() - series.get(1).map_or(0, |beaten| beaten.points.len());
    let [on, all] = [on, offers.len()].map(|number| count(number as u64));
    let summary = format!(
        "{on} of {all} cells are on the frontier of throughput, p99 and price: more to the left and higher is better."
    );
    let x = Axis::of("price per hour", Unit::Count, scale).within(range);
    let y = from_zero(Figure::TransactionsPerS.heading(), Unit::PerSecond, &series);
    let (title, content) = ("Throughput against price", Content::points(series));
    Some(Chart::new("study-frontier", title, summary, [x, y], content))
}
