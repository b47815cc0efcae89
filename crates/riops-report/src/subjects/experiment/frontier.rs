//! The frontier of throughput, latency and price: the cells that no other one beats in all three.

use super::cells::settings;
use super::chart_axes::{estimated, from_zero, range_of};
use crate::chart::{Axis, Chart, Content, Estimated, PointSeries, PointStyle, Unit, rounded};
use crate::table::{Table, number_column, text_column};
use riops_model::figure::Figure;
use riops_model::study::evaluation::{Offer, StudyView};
use riops_model::units::format::count;

/// The table of the frontier.
pub(super) fn table(view: &StudyView) -> Option<Table> {
    let offers = view.offers();
    let (throughput, price) = (Figure::TransactionsPerS, Figure::PricePerMillionTransactions);
    let table = Table::from_items("Frontier of throughput, p99 and price", &offers, |offer| {
        let better = offer.beaten_by;
        let verdict = better.map_or("yes".to_owned(), |cell| format!("beaten by {}", cell.name));
        let mut row = settings(view, offer.cell);
        row.extend([
            (number_column(throughput.heading()), throughput.text(offer.throughput.value).into()),
            (number_column("p99"), Figure::P99Us.text(offer.p99_us).into()),
            (number_column("price per hour"), price.text(offer.price).into()),
            (number_column(price.heading()), price.text(offer.price_of_million).into()),
            (text_column("frontier"), verdict.into()),
        ]);
        row
    });
    table
        .with_note("A cell is on the frontier if no other one has at least its throughput, at most its p99 and at most its price. Based on averages; differences within the intervals may be chance.")
        .filled()
}

/// Throughput against the price: the cells of the frontier, and the others.
pub(super) fn chart(view: &StudyView) -> Option<Chart> {
    let offers = view.offers();
    let (beaten, best): (Vec<_>, Vec<_>) =
        offers.iter().partition(|offer| offer.beaten_by.is_some());
    let on = best.len();
    let series = |label: &str, offers: Vec<&Offer<'_>>| {
        let point = |offer: &&Offer<'_>| {
            let label = format!("{}, p99 {}", offer.cell.name, Figure::P99Us.text(offer.p99_us));
            let plain = estimated(rounded(offer.price), offer.throughput);
            Estimated { label: Some(label), ..plain }
        };
        let points = offers.iter().map(point).collect();
        PointSeries { label: label.to_owned(), style: PointStyle::Dots, points }
    };
    let series: Vec<_> = [series("on the frontier", best), series("beaten", beaten)]
        .into_iter()
        .filter(|one_series| !one_series.points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    let (range, scale) = range_of(offers.iter().map(|offer| offer.price));
    let [on, all] = [on, offers.len()].map(|value| count(value as u64));
    let summary = format!(
        "{on} of {all} cells are on the frontier of throughput, p99 and price: a higher throughput at a lower price is better."
    );
    let x = Axis::new("price per hour", Unit::Count, scale).within(range);
    let y = from_zero(Figure::TransactionsPerS.heading(), Unit::PerSecond, &series);
    let (title, content) = ("Throughput against price", Content::points(series));
    Some(Chart::new("study-frontier", title, summary, [x, y], content))
}
