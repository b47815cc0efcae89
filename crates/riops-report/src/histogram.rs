//! The latency histogram in ysql-bench's text format. Buckets have equal widths (linear) or a constant ratio
//! (logarithmic).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::words;
use riops_model::record::{Histogram, LatencySummary, Record, StageRecord};
use riops_model::units::format::count;
use riops_model::units::text::one_line;

/// Length of the longest bar, in characters.
const BAR_WIDTH: u64 = 50;

/// Scale of the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// All buckets have the same width.
    Linear,
    /// Each bucket is wider than the previous one by a constant factor.
    Log,
}

/// A bucket from `from` to `to`, in microseconds. Only the last bucket includes `to`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bucket {
    from: f64,
    to: f64,
    count: u64,
}

/// Returns the histogram of each stage; empty if nothing was measured.
pub(super) fn histogram_text(record: &Record, scale: Scale, buckets: usize) -> String {
    let mut text = String::new();
    for stage in &record.stages {
        for times in Times::from_stage(stage) {
            if !text.is_empty() {
                text.push('\n');
            }
            let stage_name = if record.stages.len() > 1 {
                format!("{}: ", one_line(&stage.name))
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "{stage_name}{} in µs{}, histogram is per {}",
                times.name,
                times.start,
                words::for_work(&record.plan.work).latency_of(stage)
            );
            times_text(&mut text, &times, scale, buckets);
        }
    }
    text
}

/// The times of a stage with one start.
struct Times<'a> {
    name: &'static str,
    start: &'static str,
    latency: &'a LatencySummary,
    histogram: Histogram,
}

impl<'a> Times<'a> {
    /// Returns the latencies of a stage; with a rate the response times, then the service times.
    fn from_stage(stage: &'a StageRecord) -> Vec<Self> {
        let session_loop = &stage.session_loop;
        let service = if session_loop.response_us.is_some() {
            ("service time", " (from the send)")
        } else {
            ("latency", "")
        };
        let response = ("response time", " (from the intended start)");
        [
            (response, &session_loop.response_us, &session_loop.response_histogram),
            (service, &session_loop.service_us, &session_loop.histogram),
        ]
        .into_iter()
        .filter_map(|((name, start), latency, histogram)| {
            let histogram = histogram.as_ref()?.decode().ok()?;
            let latency = latency.as_ref().filter(|_| histogram.count() > 0)?;
            Some(Self { name, start, latency, histogram })
        })
        .collect()
    }
}

fn times_text(text: &mut String, times: &Times<'_>, scale: Scale, buckets: usize) {
    let Times { latency, histogram, .. } = times;
    let _ = writeln!(text, "# samples            = {}", latency.count);
    let _ = writeln!(text, "# min                = {:.0}", latency.min);
    let _ = writeln!(text, "# max                = {:.0}", latency.max);
    let _ = writeln!(text, "# mean               = {:.3}", latency.mean);
    let _ = writeln!(text, "# standard deviation = {:.3}", latency.stdev);
    let _ = writeln!(text, "# variance           = {:.3}", latency.stdev.powi(2));
    let buckets = into_buckets(histogram, latency, scale, buckets);
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let step = most.div_ceil(BAR_WIDTH).max(1);
    let _ = writeln!(text, "# each ■ is a count of {}", count(step));
    let width = |shown: &dyn Fn(&Bucket) -> String| {
        buckets.iter().map(|bucket| shown(bucket).len()).max().unwrap_or(0)
    };
    let bound = |bound: f64| format!("{bound:.0}");
    let (from, to) = (width(&|bucket| bound(bucket.from)), width(&|bucket| bound(bucket.to)));
    let counts = width(&|bucket| bucket.count.to_string());
    for bucket in &buckets {
        let bar = "■".repeat(usize::try_from(bucket.count / step).unwrap_or(0));
        let line = format!(
            "{:>from$} .. {:>to$} [ {:>counts$} ]: {bar}",
            bound(bucket.from),
            bound(bucket.to),
            bucket.count
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Divides the latencies between the minimum and the maximum into buckets.
fn into_buckets(
    histogram: &Histogram,
    latency: &LatencySummary,
    scale: Scale,
    buckets: usize,
) -> Vec<Bucket> {
    let (min, max, buckets) = (latency.min, latency.max, buckets.max(1));
    // Zero has no logarithm.
    let start = if scale == Scale::Log { min.max(1e-3) } else { min };
    let bound = |position: usize| {
        let share = position as f64 / buckets as f64;
        match scale {
            Scale::Linear => start + (max - start) * share,
            Scale::Log => start * (max / start).powf(share),
        }
    };
    let mut counted: Vec<_> = (0..buckets)
        .map(|position| Bucket { from: bound(position), to: bound(position + 1), count: 0 })
        .collect();
    let mut bucket = 0;
    for (latency, count) in histogram.recorded() {
        let us = latency.as_micros();
        while bucket + 1 < buckets && us >= bound(bucket + 1) {
            bucket += 1;
        }
        if let Some(bucket) = counted.get_mut(bucket) {
            bucket.count += count;
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use proptest::prelude::*;
    use riops_model::units::Nanos;

    fn histogram(latencies_us: &[u64]) -> Histogram {
        let mut histogram = Histogram::new().unwrap();
        for us in latencies_us {
            histogram.record(Nanos(us * 1_000));
        }
        histogram
    }

    proptest! {
        #[test]
        fn every_latency_is_in_one_bucket(
            latencies in prop::collection::vec(0u64..2_000_000, 1..200),
            buckets in 1usize..30,
            log in any::<bool>(),
        ) {
            let histogram = histogram(&latencies);
            let summary = histogram.summary().unwrap();
            let scale = if log { Scale::Log } else { Scale::Linear };
            let counted = into_buckets(&histogram, &summary, scale, buckets);
            prop_assert_eq!(counted.len(), buckets);
            let total: u64 = counted.iter().map(|bucket| bucket.count).sum();
            prop_assert_eq!(total, latencies.len() as u64);
            prop_assert!(counted.windows(2).all(|pair| (pair[0].to - pair[1].from).abs() < 1e-9));
        }
    }

    #[test]
    fn bars_are_proportional_to_the_counts() {
        let mut latencies = vec![100; 200];
        latencies.extend([5_000; 20]);
        latencies.push(10_100);
        let histogram = histogram(&latencies);
        let mut record = example_record();
        record.stages[0].session_loop.service_us = histogram.summary();
        record.stages[0].session_loop.histogram = Some(histogram.stored().unwrap());
        insta::assert_snapshot!(histogram_text(&record, Scale::Linear, 10));
        insta::assert_snapshot!("log", histogram_text(&record, Scale::Log, 5));
    }

    #[test]
    fn with_a_rate_the_response_times_precede_the_service_times() {
        let mut record = example_record();
        let session_loop = &mut record.stages[0].session_loop;
        let (service, response) = (histogram(&[7_800; 10]), histogram(&[2_850_000; 10]));
        session_loop.service_us = service.summary();
        session_loop.histogram = Some(service.stored().unwrap());
        session_loop.response_us = response.summary();
        session_loop.response_histogram = Some(response.stored().unwrap());
        let text = histogram_text(&record, Scale::Linear, 2);
        let lines: Vec<_> = text.lines().filter(|line| line.contains("µs")).collect();
        assert_eq!(
            lines,
            [
                "response time in µs (from the intended start), histogram is per transaction",
                "service time in µs (from the send), histogram is per transaction",
            ]
        );
        let maximum = text.lines().find(|line| line.starts_with("# max")).unwrap();
        assert!(maximum.contains("= 285"), "{text}");
    }
}
