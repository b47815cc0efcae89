//! The latency over the percentiles, from the stored histograms. The axis has the same length from each nine to the
//! next, so that the tail is visible.

use crate::chart::lines::{Lines, line, percentile_text};
use crate::chart::{Axis, AxisScale, Chart, Series, Unit};
use crate::table::{Table, number_column};
use riops_model::record::{Histogram, Record, StoredHistogram};
use riops_model::units::format::{duration_us, joined};

/// A name and its latencies.
type Curve = (String, Histogram);

/// Positions of a percentile curve from one nine to the next.
const STEPS_PER_NINE: u32 = 40;
/// Curves whose figures are named one by one.
const CURVES_MAX: usize = 3;

/// The curves of a run.
pub(super) fn chart(record: &Record, id: &str) -> Option<Chart> {
    let mut curves: Vec<Curve> = Vec::new();
    let several =
        record.stages.iter().filter(|stage| stage.session_loop.histogram.is_some()).count() > 1;
    for stage in &record.stages {
        let session_loop = &stage.session_loop;
        let mut add = |label: String, stored: Option<&StoredHistogram>| {
            let decoded = stored.and_then(|stored| stored.decode().ok());
            curves.extend(decoded.map(|histogram| (label, histogram)));
        };
        if several {
            add(stage.name.clone(), session_loop.latency_histogram());
        } else {
            let service =
                if session_loop.response_histogram.is_some() { "service time" } else { "latency" };
            add("response time".to_owned(), session_loop.response_histogram.as_ref());
            add(service.to_owned(), session_loop.histogram.as_ref());
            if session_loop.operations.len() > 1 {
                for operation in &session_loop.operations {
                    add(format!("{} (service time)", operation.name), operation.histogram.as_ref());
                }
            }
        }
    }
    chart_of(curves, id)
}

/// A curve for each histogram that is not empty.
pub(in crate::subjects) fn chart_of(mut curves: Vec<Curve>, id: &str) -> Option<Chart> {
    curves.retain(|(_, histogram)| histogram.count() > 0);
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
    let lines = Lines {
        id: format!("{id}-percentiles"),
        title: "Latency by percentile",
        x: Axis::new("percentile", Unit::Nines, AxisScale::Nines).within(0.0..=end),
        y: Axis::new("", Unit::DurationUs, AxisScale::Log),
        marks: &[],
        sync: None,
        xs: &xs,
        series,
    };
    let (summary, table) = (percentile_summary(&curves), Some(percentile_table(&curves)));
    Some(Chart { summary, table, ..lines.chart()? })
}

fn percentile_summary(curves: &[Curve]) -> String {
    let text = |(label, histogram): &Curve| {
        let values = [histogram.quantile(0.5), histogram.quantile(0.99), histogram.max()];
        let [p50, p99, max] = values.map(|latency| duration_us(latency.as_micros()));
        format!("{label}: p50 {p50}, p99 {p99}, max {max}")
    };
    if curves.len() > CURVES_MAX {
        let p99 = |curve: &&Curve| curve.1.quantile(0.99);
        let ends = curves.iter().min_by_key(p99).zip(curves.iter().max_by_key(p99));
        return ends.map_or_else(String::new, |(shortest, longest)| {
            format!("Shortest p99: {}. Longest p99: {}.", text(shortest), text(longest))
        });
    }
    format!("{}.", joined(curves.iter().map(text), "; "))
}

/// Returns the percentiles, up to the last one that is not the maximum, and the maximum.
fn percentile_table(curves: &[Curve]) -> Table {
    let most = curves.iter().map(|(_, histogram)| histogram.count()).max().unwrap_or(0) as f64;
    let named = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999_999];
    // The maximum has no quantile: every curve has a value for it.
    let has_enough = |count: f64, quantile: Option<f64>| {
        quantile.is_none_or(|quantile| count * (1.0 - quantile) >= 1.0 - 1e-6)
    };
    let rows =
        named.into_iter().map(Some).filter(|quantile| has_enough(most, *quantile)).chain([None]);
    Table::from_items("latency by percentile", rows, |quantile| {
        let name = quantile.map(|quantile| percentile_text(-(1.0 - quantile).log10()));
        let values = curves.iter().map(|(label, histogram)| {
            let latency =
                quantile.map_or_else(|| histogram.max(), |quantile| histogram.quantile(quantile));
            let is_known = has_enough(histogram.count() as f64, quantile);
            (number_column(label), is_known.then(|| duration_us(latency.as_micros())).into())
        });
        let name = (number_column("percentile"), name.unwrap_or_else(|| "max".to_owned()).into());
        std::iter::once(name).chain(values).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Content;
    use crate::example_record;
    use riops_model::units::Nanos;

    #[test]
    fn a_curve_ends_at_its_last_transaction() {
        let mut histogram = Histogram::new().unwrap();
        (1..=1_000).for_each(|us| histogram.record(Nanos(us * 1_000)));
        let mut record = example_record();
        record.stages[0].session_loop.histogram = Some(histogram.stored().unwrap());
        let chart = chart(&record, "run-1").unwrap();
        let Content::Lines { xs, series } = &chart.plot.content else { panic!() };
        assert_eq!((xs.first(), xs.last()), (Some(&0.0), Some(&3.0)));
        let at = |nines: f64| {
            let position = xs.iter().position(|x| *x == nines).unwrap();
            series[0].values[position].unwrap()
        };
        assert!((at(1.0) - 900.0).abs() < 2.0 && (at(2.0) - 990.0).abs() < 2.0);
        let names: Vec<_> =
            chart.table.unwrap().rows.iter().map(|row| row[0].text().to_owned()).collect();
        assert_eq!(names, ["50%", "75%", "90%", "95%", "99%", "99.9%", "max"]);
        record.stages[0].session_loop.histogram = serde_json::from_str("\"damaged\"").unwrap();
        assert!(super::chart(&record, "run-1").is_none());
    }
}
