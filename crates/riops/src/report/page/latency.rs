//! Charts of single latencies: how they are distributed, over time and over percentiles.

use std::collections::BTreeMap;

use super::chart::{Axis, AxisScale, Chart, Content, Mark, Plot, Series, Unit, rounded};
use super::lines::{Lines, line, percentile_text, value_text};
use super::series::stage_starts;
use super::table::{Cell, Table};
use crate::metrics::Histogram;
use crate::record::{HeatmapRecord, HeatmapSlot, Record, SamplePoint, SampleSet, StageRecord};
use crate::report::format::{count, duration_us};

/// Positions of a percentile curve from one nine to the next.
const STEPS_PER_NINE: u32 = 40;
/// Latency classes per decade and time slots of a heatmap that is made from samples.
const CLASSES_PER_DECADE: u32 = 10;
const SAMPLED_SLOTS: usize = 120;
/// Maximum number of dots of a scatterplot.
const DOTS_MAX: usize = 20_000;
/// Curves whose figures are named one by one.
const CURVES_MAX: usize = 3;
/// Rows of the tables of these charts.
const ROWS_MAX: usize = 24;

/// Returns the charts of the latencies of a record.
pub(super) fn charts(record: &Record, id: &str) -> Vec<Chart> {
    [heatmap(record, id), percentiles(record, id), scatter(record, id)]
        .into_iter()
        .flatten()
        .collect()
}

/// The name of the latency that users wait for.
fn kind(stage: &StageRecord) -> &'static str {
    if stage.session_loop.response_us.is_some() { "response time" } else { "latency" }
}

/// The starts of the stages, if there are several.
fn marks(record: &Record, starts: &[(usize, f64)]) -> Vec<Mark> {
    if starts.len() < 2 {
        return Vec::new();
    }
    let mark = |&(position, t_s): &(usize, f64)| {
        Some(Mark { t_s, label: record.stages.get(position)?.name.clone() })
    };
    starts.iter().filter_map(mark).collect()
}

fn percentiles(record: &Record, id: &str) -> Option<Chart> {
    let mut curves: Vec<(String, Histogram)> = Vec::new();
    let several =
        record.stages.iter().filter(|stage| stage.session_loop.histogram.is_some()).count() > 1;
    for stage in &record.stages {
        let each = &stage.session_loop;
        let mut add = |label: String, text: &Option<String>| {
            let decoded = text.as_ref().and_then(|text| Histogram::from_base64(text).ok());
            curves.extend(decoded.filter(|found| found.count() > 0).map(|found| (label, found)));
        };
        if several {
            let main = each.response_histogram.as_ref().or(each.histogram.as_ref()).cloned();
            add(stage.name.clone(), &main);
        } else {
            let service =
                if each.response_histogram.is_some() { "service time" } else { "latency" };
            add("response time".to_owned(), &each.response_histogram);
            add(service.to_owned(), &each.histogram);
            if each.operations.len() > 1 {
                for operation in &each.operations {
                    add(format!("{} (service time)", operation.name), &operation.histogram);
                }
            }
        }
    }
    let most = curves.iter().map(|(_, histogram)| histogram.count()).max()?;
    let end = (most.max(10) as f64).log10();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 20 nines")]
    let steps = (end * f64::from(STEPS_PER_NINE)).floor() as u32;
    let xs: Vec<f64> =
        (0..=steps).map(|step| f64::from(step) / f64::from(STEPS_PER_NINE)).collect();
    let series: Vec<Series> = curves
        .iter()
        .map(|(label, histogram)| {
            // Beyond its last sample, a curve would only repeat the maximum.
            let last = (histogram.count() as f64).log10();
            let at = |nines: &f64| {
                let latency = histogram.quantile(1.0 - 10f64.powf(-nines)).as_micros();
                (*nines <= last).then_some(latency)
            };
            line(label, xs.iter().map(at))
        })
        .collect();
    let label = "percentile".to_owned();
    let lines = Lines {
        id: format!("{id}-percentiles"),
        title: "Latency by percentile",
        x: Axis { label, unit: Unit::Nines, scale: AxisScale::Nines, range: Some((0.0, end)) },
        y: Axis::of("", Unit::DurationUs, AxisScale::Log),
        marks: &[],
        sync: None,
        xs: &xs,
        series,
    };
    let mut chart = lines.chart()?;
    chart.summary = percentile_summary(&curves);
    chart.table = Some(percentile_table(&curves));
    Some(chart)
}

fn percentile_summary(curves: &[(String, Histogram)]) -> String {
    let text = |(label, histogram): &(String, Histogram)| {
        let at = |quantile| duration_us(histogram.quantile(quantile).as_micros());
        format!(
            "{label}: p50 {}, p99 {}, max {}",
            at(0.5),
            at(0.99),
            duration_us(histogram.max().as_micros())
        )
    };
    if curves.len() > CURVES_MAX {
        let p99 = |curve: &&(String, Histogram)| curve.1.quantile(0.99);
        let ends = curves.iter().min_by_key(p99).zip(curves.iter().max_by_key(p99));
        return ends.map_or_else(String::new, |(shortest, longest)| {
            format!("Shortest p99: {}. Longest p99: {}.", text(shortest), text(longest))
        });
    }
    let texts: Vec<_> = curves.iter().map(text).collect();
    format!("{}.", texts.join("; "))
}

/// Percentiles up to the last one that is not the maximum.
fn percentile_table(curves: &[(String, Histogram)]) -> Table {
    let most = curves.iter().map(|(_, histogram)| histogram.count()).max().unwrap_or(0) as f64;
    let named = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999_999];
    let row = |quantile: f64| {
        let nines = -(1.0 - quantile).log10();
        let mut cells = vec![Cell::number(percentile_text(nines))];
        cells.extend(curves.iter().map(|(_, histogram)| {
            let has_enough = histogram.count() as f64 * (1.0 - quantile) >= 1.0 - 1e-6;
            let latency = || duration_us(histogram.quantile(quantile).as_micros());
            Cell::number(if has_enough { latency() } else { "–".to_owned() })
        }));
        cells
    };
    let mut rows: Vec<_> = named
        .into_iter()
        .filter(|quantile| most * (1.0 - quantile) >= 1.0 - 1e-6)
        .map(row)
        .collect();
    let longest = curves.iter().map(|(_, each)| Cell::number(duration_us(each.max().as_micros())));
    rows.push(std::iter::once(Cell::number("max")).chain(longest).collect());
    Table {
        title: "Latency by percentile".to_owned(),
        head: std::iter::once("percentile".to_owned())
            .chain(curves.iter().map(|(label, _)| label.clone()))
            .collect(),
        words: 0,
        rows,
        note: None,
    }
}

/// The heatmap of a stage: the stored one, or one of its samples.
fn heatmap_of(stage: &StageRecord) -> Option<HeatmapRecord> {
    let each = &stage.session_loop;
    each.latency_heatmap.clone().or_else(|| Some(from_samples(each.samples.as_ref()?)))
}

/// Counts the samples that were taken regularly. Those that were taken because they are extreme would be
/// overrepresented.
fn from_samples(samples: &SampleSet) -> HeatmapRecord {
    let slot_s = samples.seconds.max(f64::MIN_POSITIVE) / SAMPLED_SLOTS as f64;
    let mut counted: Vec<BTreeMap<i32, u64>> = vec![BTreeMap::new(); SAMPLED_SLOTS];
    for point in samples.points.iter().filter(|point| !point.extreme && point.latency_us > 0.0) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few slots and classes"
        )]
        let (slot, class) = (
            ((point.t_s / slot_s) as usize).min(SAMPLED_SLOTS - 1),
            (point.latency_us.log10() * f64::from(CLASSES_PER_DECADE)).floor() as i32,
        );
        if let Some(slot) = counted.get_mut(slot) {
            *slot.entry(class).or_default() += samples.every;
        }
    }
    let slots = counted.into_iter().map(|classes| {
        let first_class = classes.keys().next().copied().unwrap_or_default();
        let last = classes.keys().last().copied().unwrap_or(first_class - 1);
        let counts = (first_class..=last).map(|class| classes.get(&class).copied().unwrap_or(0));
        HeatmapSlot { first_class, counts: counts.collect() }
    });
    HeatmapRecord { slot_s, classes_per_decade: CLASSES_PER_DECADE, slots: slots.collect() }
}

/// The stages of a heatmap on one time axis.
#[derive(Default)]
struct Grid {
    slots: Vec<f64>,
    cells: Vec<(usize, i32, u64)>,
}

impl Grid {
    fn add(&mut self, found: &HeatmapRecord, start_s: f64, seconds: f64) {
        let end_s = start_s + seconds;
        if self.slots.is_empty() {
            self.slots.push(start_s);
        }
        for (number, slot) in found.slots.iter().enumerate() {
            let position = self.slots.len() - 1;
            let classes = (slot.first_class..).zip(&slot.counts).filter(|(_, count)| **count > 0);
            self.cells.extend(classes.map(|(class, &count)| (position, class, count)));
            self.slots.push(rounded((start_s + (number + 1) as f64 * found.slot_s).min(end_s)));
        }
    }
}

fn heatmap(record: &Record, id: &str) -> Option<Chart> {
    let (starts, end_s) = stage_starts(record);
    let mut grid = Grid::default();
    let mut classes_per_decade = None;
    for &(position, start_s) in &starts {
        let stage = record.stages.get(position)?;
        let Some(found) = heatmap_of(stage) else {
            continue;
        };
        // Slots of different classes have no common grid.
        if *classes_per_decade.get_or_insert(found.classes_per_decade) == found.classes_per_decade {
            grid.add(&found, start_s, stage.session_loop.series.last()?.t_s);
        }
    }
    let per_decade = f64::from(classes_per_decade?.max(1));
    let least = grid.cells.iter().map(|(_, class, _)| *class).min()?;
    let most = grid.cells.iter().map(|(_, class, _)| *class).max()?;
    let bound = |class: i32| rounded(10f64.powf(f64::from(class) / per_decade));
    let bounds: Vec<f64> = (least..=most + 1).map(bound).collect();
    let cells: Vec<_> = grid
        .cells
        .iter()
        .map(|&(slot, class, count)| (slot, class.abs_diff(least) as usize, count))
        .collect();
    let kind = record.stages.first().map_or("latency", kind);
    let range = bounds.first().copied().zip(bounds.last().copied());
    let total: u64 = cells.iter().map(|(.., count)| count).sum();
    let table = heatmap_table(&grid.slots, &bounds, &cells);
    Some(Chart {
        id: format!("{id}-heatmap"),
        title: "Latency heatmap".to_owned(),
        summary: format!(
            "Number of transactions by time and {kind}; darker means more. {} transactions, between {} and {}.",
            count(total),
            duration_us(range?.0),
            duration_us(range?.1)
        ),
        plot: Plot {
            x: Axis::time(end_s),
            y: Axis { range, ..Axis::of("", Unit::DurationUs, AxisScale::Log) },
            marks: marks(record, &starts),
            sync: None,
            content: Content::Heatmap { slots: grid.slots, bounds, cells },
        },
        table: Some(table),
    })
}

/// Counts by time and latency, with groups of slots as rows and groups of classes as columns.
fn heatmap_table(slots: &[f64], bounds: &[f64], cells: &[(usize, usize, u64)]) -> Table {
    const COLUMNS_MAX: usize = 12;
    let slot_count = slots.len().saturating_sub(1).max(1);
    let class_count = bounds.len().saturating_sub(1).max(1);
    let (tall, wide) = (slot_count.div_ceil(ROWS_MAX), class_count.div_ceil(COLUMNS_MAX));
    let mut sums = vec![vec![0u64; class_count.div_ceil(wide)]; slot_count.div_ceil(tall)];
    for &(slot, class, count) in cells {
        if let Some(sum) = sums.get_mut(slot / tall).and_then(|row| row.get_mut(class / wide)) {
            *sum += count;
        }
    }
    let end = |group: usize| slots.get(((group + 1) * tall).min(slot_count)).copied();
    let rows = sums.iter().enumerate().map(|(group, sums)| {
        let time = value_text(end(group).unwrap_or_default(), Unit::Seconds);
        let counts = sums.iter().map(|sum| Cell::number(count(*sum)));
        std::iter::once(Cell::number(time)).chain(counts).collect()
    });
    let from = bounds.iter().step_by(wide).take(class_count.div_ceil(wide));
    Table {
        title: "Latency heatmap".to_owned(),
        head: std::iter::once("until".to_owned())
            .chain(from.map(|us| format!("from {}", duration_us(*us))))
            .collect(),
        words: 0,
        rows: rows.collect(),
        note: Some("number of transactions with a latency from the bound of the column to that of the next".to_owned()),
    }
}

fn scatter(record: &Record, id: &str) -> Option<Chart> {
    let (starts, end_s) = stage_starts(record);
    let mut points: Vec<(f64, SamplePoint)> = Vec::new();
    let mut transactions = 0;
    for &(position, start_s) in &starts {
        let Some(samples) = &record.stages.get(position)?.session_loop.samples else {
            continue;
        };
        transactions += samples.transactions;
        points.extend(samples.points.iter().map(|point| (start_s + point.t_s, *point)));
    }
    // The extremes are kept, because they are what a scatterplot is read for.
    let (extremes, regular): (Vec<_>, Vec<_>) = points
        .into_iter()
        .filter(|(_, point)| point.latency_us > 0.0)
        .partition(|(_, point)| point.extreme);
    let spread = |points: Vec<(f64, SamplePoint)>, most: usize| {
        let step = points.len().div_ceil(most.max(1)).max(1);
        points.into_iter().step_by(step)
    };
    let mut kept: Vec<_> = spread(extremes, DOTS_MAX / 2).collect();
    kept.extend(spread(regular, DOTS_MAX - kept.len()));
    let latencies = || kept.iter().map(|(_, point)| point.latency_us);
    let (least, most) = (latencies().min_by(f64::total_cmp)?, latencies().max_by(f64::total_cmp)?);
    let kind = record.stages.first().map_or("latency", kind);
    let mut longest: Vec<_> = kept.iter().collect();
    longest.sort_by(|a, b| b.1.latency_us.total_cmp(&a.1.latency_us));
    let rows = longest.iter().take(ROWS_MAX).map(|(t_s, point)| {
        vec![
            Cell::number(value_text(*t_s, Unit::Seconds)),
            Cell::number(duration_us(point.latency_us)),
            Cell::number((point.session + 1).to_string()),
        ]
    });
    let table =
        Table::new("Longest transactions", ["end", "latency", "session"], 0, rows.collect());
    let dot = |(t_s, point): &(f64, SamplePoint)| {
        ((t_s * 1e3).round() / 1e3, rounded(point.latency_us), point.session)
    };
    Some(Chart {
        id: format!("{id}-scatter"),
        title: "Single transactions".to_owned(),
        summary: format!(
            "One dot per transaction: {kind} at its end time, a color for each session. {} of {} transactions are drawn, from {} to {}.",
            count(kept.len() as u64),
            count(transactions),
            duration_us(least),
            duration_us(most)
        ),
        plot: Plot {
            x: Axis::time(end_s),
            y: Axis {
                range: Some((rounded(least / 1.3), rounded(most * 1.3))),
                ..Axis::of("", Unit::DurationUs, AxisScale::Log)
            },
            marks: marks(record, &starts),
            sync: None,
            content: Content::Dots { points: kept.iter().map(dot).collect() },
        },
        table: Some(table),
    })
}
