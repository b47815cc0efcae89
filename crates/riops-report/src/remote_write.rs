//! The metrics of a run in progress as a request of Prometheus's remote write 1.0: snappy, protocol buffers, one sample for each
//! time series. Names and labels are the same as at the scrape endpoint. Source: "Prometheus Remote-Write 1.0
//! specification", 2023. Pure: a run in, bytes out.

use jiff::Timestamp;
use prost::Message;

use super::metrics_text::families;
use riops_model::record::LiveRun;

/// The message of a request.
#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<TimeSeries>,
}

/// One time series. Its labels are sorted by name.
#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    at_ms: i64,
}

/// Returns the body of a request with the metrics of a run at a time.
///
/// # Errors
/// [`snap::Error`] if the message is too large to be compressed.
pub fn remote_write(run: &LiveRun, at: Timestamp) -> Result<Vec<u8>, snap::Error> {
    let at_ms = at.as_millisecond();
    let mut message = WriteRequest::default();
    for (metric, samples) in families(std::slice::from_ref(run)) {
        let name = metric.sample_name();
        for (labels, value) in samples {
            // An empty value is the same as no label, and is not permitted.
            let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
            let labels = labels.chain([("__name__".to_owned(), name.clone())]);
            let mut labels: Vec<Label> =
                labels.map(|(name, value)| Label { name, value }).collect();
            labels.sort();
            message.series.push(TimeSeries { labels, samples: vec![Sample { value, at_ms }] });
        }
    }
    snap::raw::Encoder::new().compress_vec(&message.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics_text;
    use crate::openmetrics::TextFormat;
    use riops_model::plan::Plan;
    use riops_model::record::{Point, RunEvent, example_live_run};

    #[test]
    fn a_request_has_the_samples_of_the_scrape_endpoint() {
        let mut run = example_live_run(&Plan::default());
        run.apply(&RunEvent::Stage { name: "rows".to_owned() });
        run.apply(&RunEvent::Measuring);
        let point = Point {
            seconds: 1.0,
            transactions: 250,
            p50_us: Some(80.0),
            p99_us: Some(900.0),
            ..Point::default()
        };
        run.apply(&RunEvent::Point(Box::new(point)));
        let at = Timestamp::from_millisecond(1_795_371_628_532).unwrap();
        let body = remote_write(&run, at).unwrap();
        let bytes = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        let message = WriteRequest::decode(bytes.as_slice()).unwrap();
        let text = metrics_text(&[run], TextFormat::Prometheus);
        let mut expected: Vec<(String, f64)> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let (series, value) = line.rsplit_once(' ').unwrap();
                (series.split('{').next().unwrap().to_owned(), value.parse().unwrap())
            })
            .collect();
        let mut samples: Vec<(String, f64)> = message
            .series
            .iter()
            .map(|series| {
                assert!(series.labels.is_sorted());
                let name = series.labels.iter().find(|label| label.name == "__name__").unwrap();
                assert_eq!(series.samples[0].at_ms, 1_795_371_628_532);
                (name.value.clone(), series.samples[0].value)
            })
            .collect();
        let by_name = |one: &(String, f64), two: &(String, f64)| one.partial_cmp(two).unwrap();
        expected.sort_by(by_name);
        samples.sort_by(by_name);
        assert_eq!(samples, expected);
        assert!(samples.contains(&("riops_transactions_total".to_owned(), 250.0)));
    }
}
