//! The heatmap: how many transactions had which latency, over time.

use super::series::{kind, marks, stage_starts};
use crate::chart::lines::value_text;
use crate::chart::{Axis, AxisScale, Chart, Content, Unit, rounded};
use crate::table::{Cell, Table, number_column};
use riops_model::record::{HeatmapRecord, Record, StageRecord};
use riops_model::units::format::{count, duration_us};

/// Limit of the class numbers: no latency reaches it.
const CLASS_MAX: i32 = 1_000;
/// Rows and columns of the table.
const ROWS_MAX: usize = 24;
const COLUMNS_MAX: usize = 12;

/// Returns the stored heatmap of a stage, or a heatmap of its samples.
fn heatmap_of(stage: &StageRecord) -> Option<HeatmapRecord> {
    let session_loop = &stage.session_loop;
    session_loop
        .latency_heatmap
        .clone()
        .or_else(|| Some(HeatmapRecord::of_samples(session_loop.samples.as_ref()?)))
}

/// The stages of a heatmap on one time axis.
#[derive(Default)]
struct Grid {
    slots: Vec<f64>,
    cells: Vec<(usize, i32, u64)>,
}

impl Grid {
    fn add(&mut self, heatmap: &HeatmapRecord, start_s: f64, seconds: f64) {
        let end_s = start_s + seconds;
        if self.slots.is_empty() {
            self.slots.push(start_s);
        }
        for (slot_index, slot) in heatmap.slots.iter().enumerate() {
            let position = self.slots.len() - 1;
            let first = slot.first_class.clamp(-CLASS_MAX, CLASS_MAX);
            let classes = (first..CLASS_MAX).zip(&slot.counts).filter(|(_, count)| **count > 0);
            self.cells.extend(classes.map(|(class, &count)| (position, class, count)));
            self.slots
                .push(rounded((start_s + (slot_index + 1) as f64 * heatmap.slot_s).min(end_s)));
        }
    }
}

pub(super) fn chart(record: &Record, id: &str) -> Option<Chart> {
    let (starts, end_s) = stage_starts(record);
    let mut grid = Grid::default();
    let mut classes_per_decade = None;
    for &(stage, start_s) in &starts {
        let Some(heatmap) = heatmap_of(stage) else {
            continue;
        };
        // Slots of different classes have no common grid.
        if *classes_per_decade.get_or_insert(heatmap.classes_per_decade)
            == heatmap.classes_per_decade
        {
            grid.add(&heatmap, start_s, stage.session_loop.series.last()?.t_s);
        }
    }
    let per_decade = f64::from(classes_per_decade?.max(1));
    let least = grid.cells.iter().map(|(_, class, _)| *class).min()?;
    let most = grid.cells.iter().map(|(_, class, _)| *class).max()?;
    let bound = |class: i32| rounded(10f64.powf(f64::from(class) / per_decade));
    let bounds: Vec<f64> = (least..=most + 1).map(bound).collect();
    let cells = grid.cells.iter();
    let cells: Vec<_> =
        cells.map(|&(slot, class, count)| (slot, class.abs_diff(least) as usize, count)).collect();
    let (low, high) = (*bounds.first()?, *bounds.last()?);
    let total = count(cells.iter().map(|(.., count)| count).sum());
    let table = heatmap_table(&grid.slots, &bounds, &cells);
    let (kind, from, to) = (kind(record), duration_us(low), duration_us(high));
    let summary = format!(
        "Number of transactions by time and {kind}; more contrast means more. {total} transactions, between {from} and {to}."
    );
    let axes =
        [Axis::time(end_s), Axis::new("", Unit::DurationUs, AxisScale::Log).within(low..=high)];
    let content = Content::Heatmap { slots: grid.slots, bounds, cells };
    let chart = Chart::new(format!("{id}-heatmap"), "Latency heatmap", summary, axes, content);
    Some(chart.with_marks(marks(&starts)).with_table(table))
}

/// Counts by time and latency, with groups of slots as rows and groups of classes as columns.
fn heatmap_table(slots: &[f64], bounds: &[f64], cells: &[(usize, usize, u64)]) -> Table {
    let slot_count = slots.len().saturating_sub(1).max(1);
    let class_count = bounds.len().saturating_sub(1).max(1);
    let (tall, wide) = (slot_count.div_ceil(ROWS_MAX), class_count.div_ceil(COLUMNS_MAX));
    let mut sums = vec![vec![0u64; class_count.div_ceil(wide)]; slot_count.div_ceil(tall)];
    for &(slot, class, count) in cells {
        if let Some(sum) = sums.get_mut(slot / tall).and_then(|row| row.get_mut(class / wide)) {
            *sum += count;
        }
    }
    let table = Table::from_items("latency heatmap", sums.iter().enumerate(), |(group, sums)| {
        let end = slots.get(((group + 1) * tall).min(slot_count)).copied().unwrap_or_default();
        let counts = bounds.iter().step_by(wide).zip(sums).map(|(us, sum)| {
            (number_column(format!("from {}", duration_us(*us))), count(*sum).into())
        });
        let time = (number_column("until"), Cell::from(value_text(end, Unit::Seconds)));
        std::iter::once(time).chain(counts).collect::<Vec<_>>()
    });
    table.with_note(
        "number of transactions with a latency from the column's bound to the next column's bound",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{HeatmapSlot, SampleSet};

    fn with(heatmap: HeatmapRecord) -> Option<Chart> {
        let mut record = example_record();
        record.stages[0].session_loop.latency_heatmap = Some(heatmap);
        chart(&record, "run-1")
    }

    fn slot(first_class: i32, counts: &[u64]) -> HeatmapSlot {
        HeatmapSlot { first_class, counts: counts.to_vec() }
    }

    #[test]
    fn cells_have_their_slot_class_and_count() {
        let slots = vec![slot(20, &[5, 0, 1]), HeatmapSlot::default(), slot(21, &[7])];
        let chart = with(HeatmapRecord { slot_s: 0.4, classes_per_decade: 10, slots }).unwrap();
        let Content::Heatmap { slots, bounds, cells } = chart.plot.content else { panic!() };
        // The last slot ends with the measurement.
        assert_eq!(slots, [0.0, 0.4, 0.8, 1.0]);
        assert_eq!(bounds, [100.0, 125.89, 158.49, 199.53]);
        assert_eq!(cells, [(0, 0, 5), (0, 2, 1), (2, 1, 7)]);
        assert!(chart.summary.contains("13 transactions, between 100 µs and 200 µs"));
    }

    #[test]
    fn classes_that_cannot_be_latencies_are_bounded() {
        let slots = vec![slot(i32::MAX, &[1]), slot(i32::MIN, &[1]), slot(20, &[1])];
        let chart = with(HeatmapRecord { slot_s: 0.5, classes_per_decade: 0, slots }).unwrap();
        let Content::Heatmap { bounds, .. } = chart.plot.content else { panic!() };
        assert!(bounds.len() < 2_100);
    }

    #[test]
    fn samples_replace_a_heatmap_that_was_not_recorded() {
        let mut record = example_record();
        let point = |t_s, latency_us, extreme| riops_model::record::SamplePoint {
            t_s,
            latency_us,
            session: 0,
            extreme,
        };
        record.stages[0].session_loop.samples = Some(SampleSet {
            transactions: 40,
            every: 10,
            slot_s: 0.1,
            longest: 1,
            seconds: 1.0,
            points: vec![point(0.1, 150.0, false), point(1.0, 150.0, false), point(0.5, 9e3, true)],
        });
        let chart = chart(&record, "run-1").unwrap();
        let Content::Heatmap { cells, .. } = chart.plot.content else { panic!() };
        assert_eq!(cells, [(12, 0, 10), (119, 0, 10)]);
        assert!(super::chart(&example_record(), "run-1").is_none());
    }
}
