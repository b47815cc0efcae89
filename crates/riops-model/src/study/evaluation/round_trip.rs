//! The time of a round trip in an A/B test of `ping`: what a pooler, a proxy, encryption or a network adds to each statement.

use super::model::{RoundTrip, StudyView};
use crate::figure::Figure;
use crate::plan::ping::PingRun;
use crate::plan::{Plan, Schedule};
use crate::stats::{Interval, RatioInterval};
use crate::study::Experiment;

/// The time of a round trip in both variants of a closed loop of pings.
pub(super) fn round_trip(view: &StudyView, experiment: &Experiment) -> Option<RoundTrip> {
    let [a, b] = experiment.cells.as_slice() else {
        return None;
    };
    let is_closed = |plan: &Plan| {
        plan.work.get::<PingRun>().is_some()
            && plan.schedule == Schedule::Closed
            && plan.pipeline == 1
    };
    let is_same = is_closed(&a.plan) && is_closed(&b.plan) && a.plan.sessions == b.plan.sessions;
    let improvement = view.improvement.as_ref().filter(|_| is_same && view.ab.is_some())?;
    let row = improvement.rows.iter().find(|row| row.figure == Figure::TransactionsPerS)?;
    let against = row.against.as_ref()?;
    let a_us = f64::from(a.plan.sessions) * 1e6 / row.from;
    let change_us = |ratio: f64| a_us * (1.0 / ratio - 1.0);
    // A higher rate is a shorter time.
    let interval =
        |ratio: RatioInterval| Interval { low: change_us(ratio.high), high: change_us(ratio.low) };
    let client_us = |cell: usize| {
        let group = &view.cells.get(cell)?.group;
        Some(group.figure(view.main_stage, Figure::ClientCpuUsPerTransaction)?.estimate.value)
    };
    let of_both = client_us(improvement.to).zip(client_us(improvement.from));
    Some(RoundTrip {
        a_us,
        change_us: change_us(against.ratio),
        interval: against.interval.map(interval),
        client_us: of_both.map(|(to, from)| to - from),
    })
}
