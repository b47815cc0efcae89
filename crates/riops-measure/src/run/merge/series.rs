//! The series and the latency over time of all clients.

use std::collections::BTreeMap;
use std::ops::Add as _;

use super::fit::Window;
use riops_model::plan::Plan;
use riops_model::record::{
    HeatmapRecord, HeatmapSlot, Histogram, HistogramError, LoopRecord, Point, Queries, StageRecord,
    StoredHistogram,
};

/// Intervals of slots may be apart by this share of their length.
const APART_MAX: f64 = 0.5;

/// Returns the intervals in which all clients measured. Their percentiles are absent unless each client has kept its
/// histograms.
pub(super) fn series(
    stages: &[&StageRecord],
    window: &Window,
    plan: &Plan,
) -> Result<Vec<Point>, HistogramError> {
    let length = plan.point_length().after(0);
    let before = window.intervals_before(plan.interval_s * length as f64);
    let all: Vec<&[Point]> = stages
        .iter()
        .zip(&before)
        .map(|(stage, &before)| stage.session_loop.series.get(before..).unwrap_or_default())
        .collect();
    let intervals = all.iter().map(|series| series.len()).min().unwrap_or(0);
    let same_nodes = stages
        .iter()
        .all(|stage| stages.first().is_some_and(|first| node_names(first) == node_names(stage)));
    let mut start_s = 0.0;
    (0..intervals)
        .map(|position| {
            let points: Vec<&Point> =
                all.iter().filter_map(|series| series.get(position)).collect();
            let mut point = sum(&points, same_nodes);
            start_s += point.seconds;
            point.t_s = start_s;
            add_latencies(&mut point, &points, plan)?;
            Ok(point)
        })
        .collect()
}

fn node_names(stage: &StageRecord) -> Vec<&str> {
    stage.session_loop.nodes.iter().map(|node| node.node.as_str()).collect()
}

/// Returns an interval of all clients from the interval of each client; `None` if a histogram is damaged.
pub fn merged_point(parts: &[&Point], plan: &Plan) -> Option<Point> {
    let mut point = sum(parts, false);
    point.t_s = parts.first()?.t_s;
    add_latencies(&mut point, parts, plan).ok()?;
    Some(point)
}

/// Returns the counts of an interval.
fn sum(points: &[&Point], same_nodes: bool) -> Point {
    let mut sum = Point::default();
    for point in points {
        sum.seconds = sum.seconds.max(point.seconds);
        add!(sum, point, transactions, rows, errors, failed, skipped, retries, reconnects);
        sum.late = sum.late.into_iter().chain(point.late).reduce(u64::add);
        sum.backlog = sum.backlog.into_iter().chain(point.backlog).reduce(u64::add);
        sum.busy = sum.busy.into_iter().chain(point.busy).reduce(u64::add);
        sum.queries = queries(sum.queries, point.queries);
        if same_nodes {
            sum.nodes.resize(point.nodes.len().max(sum.nodes.len()), 0);
            sum.nodes.iter_mut().zip(&point.nodes).for_each(|(sum, count)| *sum += count);
        }
    }
    let most = |pick: fn(&Point) -> Option<f64>| {
        points.iter().filter_map(|point| pick(point)).max_by(f64::total_cmp)
    };
    sum.max_us = most(|point| point.max_us);
    sum.response_max_us = most(|point| point.response_max_us);
    sum
}

/// Returns the sum of two numbers of statements.
pub(super) fn queries(mut sum: Queries, more: Queries) -> Queries {
    add!(sum, more, read, write, other);
    sum
}

/// Sets the percentiles of an interval from the histograms of all clients.
fn add_latencies(point: &mut Point, points: &[&Point], plan: &Plan) -> Result<(), HistogramError> {
    let histograms: Vec<_> = points.iter().filter_map(|point| point.histograms.as_ref()).collect();
    if histograms.len() < points.len() {
        return Ok(());
    }
    let service = merged(histograms.iter().map(|stored| &stored.service))?;
    let response = merged(histograms.iter().filter_map(|stored| stored.response.as_ref()))?;
    let (max_us, response_max_us) = (point.max_us, point.response_max_us);
    let at = |histogram: &Option<Histogram>, percent| histogram.as_ref()?.percentile_us(percent);
    point.set_latencies(|percent| at(&service, percent), |percent| at(&response, percent));
    // The maximums of the clients are exact.
    (point.max_us, point.response_max_us) = (max_us, response_max_us);
    let of_users = if response.is_some() { &response } else { &service };
    point.percentile_us = at(of_users, plan.percentile).filter(|_| plan.percentile > 0.0);
    Ok(())
}

/// Merges the histograms of intervals.
fn merged<'a>(
    stored: impl Iterator<Item = &'a StoredHistogram>,
) -> Result<Option<Histogram>, HistogramError> {
    let mut sum: Option<Histogram> = None;
    for histogram in stored {
        let decoded = histogram.decode()?;
        match &mut sum {
            Some(sum) => sum.merge(&decoded)?,
            None => sum = Some(decoded),
        }
    }
    Ok(sum)
}

/// Returns the latency over time of all clients; `None` if their slots are not the same.
pub(super) fn heatmap(loops: &[&LoopRecord], window: &Window) -> Option<HeatmapRecord> {
    let heatmaps: Vec<&HeatmapRecord> =
        loops.iter().filter_map(|record| record.latency_heatmap.as_ref()).collect();
    let (first, others) = heatmaps.split_first()?;
    let shape = |map: &HeatmapRecord| (map.slot_s.to_bits(), map.classes_per_decade);
    let is_apart = window.before_s.iter().any(|before| *before > APART_MAX * first.slot_s);
    let is_same = others.iter().all(|other| shape(other) == shape(first));
    if heatmaps.len() < loops.len() || is_apart || !is_same {
        return None;
    }
    let slots = heatmaps.iter().map(|map| map.slots.len()).max().unwrap_or(0);
    let slot = |position: usize| {
        let mut counts = BTreeMap::new();
        for slot in heatmaps.iter().filter_map(|map| map.slots.get(position)) {
            for (class, count) in (slot.first_class..).zip(&slot.counts) {
                *counts.entry(class).or_insert(0) += count;
            }
        }
        let first_class = counts.first_key_value().map_or(0, |(class, _)| *class);
        let last_class = counts.last_key_value().map_or(-1, |(class, _)| *class);
        let counts = (first_class..=last_class).map(|class| counts.get(&class).copied());
        HeatmapSlot { first_class, counts: counts.map(Option::unwrap_or_default).collect() }
    };
    Some(HeatmapRecord { slots: (0..slots).map(slot).collect(), ..(*first).clone() })
}
