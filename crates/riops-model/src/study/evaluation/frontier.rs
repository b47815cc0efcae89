//! The frontier of throughput, latency and price: the cells that no other one beats in all three.

use super::model::{CellView, StudyView};
use crate::figure::{Estimate, Figure};

/// A cell with the figures that it is judged by.
#[derive(Debug)]
pub struct Offer<'a> {
    /// The cell.
    pub cell: &'a CellView,
    /// Its transactions per second.
    pub throughput: &'a Estimate,
    /// The 99th percentile of its latency, in microseconds.
    pub p99_us: f64,
    /// Price of an hour.
    pub price: f64,
    /// Price of a million transactions.
    pub price_of_million: f64,
    /// A cell that is better.
    pub beaten_by: Option<&'a CellView>,
}

impl<'a> Offer<'a> {
    fn from_cell(view: &StudyView, cell: &'a CellView) -> Option<Self> {
        let figure = |figure: Figure| Some(&cell.group.figure(view.main_stage, figure)?.estimate);
        Some(Self {
            cell,
            throughput: figure(Figure::TransactionsPerS)?,
            p99_us: figure(Figure::P99Us)?.value,
            price: cell.price_per_hour?,
            price_of_million: figure(Figure::PricePerMillionTransactions)?.value,
            beaten_by: None,
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

impl StudyView {
    /// Returns the cells with a price; none if fewer than two have one.
    pub fn offers(&self) -> Vec<Offer<'_>> {
        let mut offers: Vec<_> =
            self.cells.iter().filter_map(|cell| Offer::from_cell(self, cell)).collect();
        if offers.len() < 2 {
            return Vec::new();
        }
        let better = |offer: &Offer<'_>| offers.iter().position(|other| other.beats(offer));
        let better: Vec<_> = offers.iter().map(better).collect();
        let cells: Vec<_> = offers.iter().map(|offer| offer.cell).collect();
        for (offer, better) in offers.iter_mut().zip(better) {
            offer.beaten_by = better.and_then(|at| cells.get(at).copied());
        }
        offers
    }
}
