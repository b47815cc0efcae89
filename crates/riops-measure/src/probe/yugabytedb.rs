//! Counters of the nodes of a YugabyteDB cluster: the metrics of each tserver, read over HTTP before
//! and after.
//!
//! The values of a node that does not respond are absent. Not yet tested against a live server.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::host::http::Http;
use riops_model::record::NodeUse;

/// Request timeout: more than a node should need, and short enough to wait for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// The counters of a tserver. Without the parameter, reading would reset the percentiles for other readers.
const METRICS: &str = "/prometheus-metrics?reset_histograms=false";

/// The counters that are used. `cpu_stime` is added to the first one.
const NAMES: [&str; 7] = [
    "cpu_utime",
    "handler_latency_yb_tserver_TabletServerService_Read_count",
    "handler_latency_yb_tserver_TabletServerService_Write_count",
    "rocksdb_number_db_seek",
    "rocksdb_block_cache_hit",
    "rocksdb_block_cache_miss",
    "transaction_conflicts",
];

/// Counters of one node, in the order of [`NAMES`].
type Counters = [Option<f64>; NAMES.len()];

type Reading = Option<(Instant, Counters)>;

/// Requests the metrics of all nodes at the start and at the end of a measurement, without waiting for
/// the responses.
#[derive(Debug)]
pub struct ClusterProbe {
    http: Http,
    addresses: Vec<String>,
    start: Vec<JoinHandle<Reading>>,
    end: Vec<JoinHandle<Reading>>,
    /// The activity of each node in the last stage.
    pub(super) node_uses: Vec<Option<NodeUse>>,
}

impl ClusterProbe {
    /// Creates a probe for the tservers on these hosts.
    pub fn new<'a>(hosts: impl Iterator<Item = &'a str>, port: u16) -> Self {
        let address = |host: &str| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        Self {
            http: Http::new(REQUEST_TIMEOUT),
            addresses: hosts.map(address).collect(),
            start: Vec::new(),
            end: Vec::new(),
            node_uses: Vec::new(),
        }
    }

    pub(super) fn start(&mut self) {
        self.start = self.request_all();
    }

    pub(super) fn end(&mut self) {
        self.end = self.request_all();
    }

    fn request_all(&self) -> Vec<JoinHandle<Reading>> {
        let request = |address: &String| {
            let (http, address) = (self.http.clone(), address.clone());
            std::thread::spawn(move || read(&http, &address))
        };
        self.addresses.iter().map(request).collect()
    }

    /// Waits for the responses.
    pub(super) fn close(&mut self) {
        let wait = |thread: JoinHandle<Reading>| thread.join().ok().flatten();
        self.node_uses = self
            .start
            .drain(..)
            .zip(self.end.drain(..))
            .map(|(start, end)| {
                let ((from, before), (to, after)) = (wait(start)?, wait(end)?);
                Some(between(&before, &after, to.duration_since(from).as_secs_f64()))
            })
            .collect();
    }
}

/// The counters are as of the start of the answer, not as of its end.
fn read(http: &Http, address: &str) -> Reading {
    let (at, text) = http.get(&format!("http://{address}{METRICS}")).ok()?;
    Some((at, counters(&text)))
}

/// Sums the counters over all labels.
fn counters(text: &str) -> Counters {
    let mut counters = Counters::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(name_end) = line.find(['{', ' ']) else {
            continue;
        };
        let (name, rest) = line.split_at(name_end);
        let values = rest.rsplit_once('}').map_or(rest, |(_, values)| values);
        let value = values.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
        let name = if name == "cpu_stime" { "cpu_utime" } else { name };
        let sum = counters.iter_mut().zip(NAMES).find(|(_, known)| *known == name);
        if let (Some((sum, _)), Some(value)) = (sum, value) {
            *sum = Some(sum.unwrap_or(0.0) + value);
        }
    }
    counters
}

fn between(before: &Counters, after: &Counters, seconds: f64) -> NodeUse {
    let mut changes = *after;
    for (change, before) in changes.iter_mut().zip(before) {
        // A restarted node counts from zero.
        *change = change
            .zip(*before)
            .map(|(after, before)| after - before)
            .filter(|difference| *difference >= 0.0);
    }
    let [cpu_ms, reads, writes, seeks, hits, misses, conflicts] = changes;
    let per_s =
        |change: Option<f64>| change.filter(|_| seconds > 0.0).map(|change| change / seconds);
    NodeUse {
        cpu_cores: per_s(cpu_ms).map(|ms_per_s| ms_per_s / 1_000.0),
        storage_reads_per_s: per_s(reads),
        storage_writes_per_s: per_s(writes),
        seeks_per_s: per_s(seeks),
        block_cache_hit_share: hits
            .zip(misses)
            .filter(|(hits, misses)| hits + misses > 0.0)
            .map(|(hits, misses)| hits / (hits + misses)),
        conflicts_per_s: per_s(conflicts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# HELP cpu_utime x\n\
        cpu_utime{metric_id=\"yb.tabletserver\",metric_type=\"server\",exported_instance=\"n1\"} 1000 1700000000000\n\
        cpu_stime{metric_type=\"server\"} 500 1700000000000\n\
        handler_latency_yb_tserver_TabletServerService_Read_count{metric_type=\"server\"} 100 1\n\
        rocksdb_number_db_seek{table_name=\"a\"} 5 1\n\
        rocksdb_number_db_seek{table_name=\"b {x}\"} 7 1\n\
        rocksdb_block_cache_hit{t=\"a\"} 10 1\nrocksdb_block_cache_miss 0 1\nnonsense\nother nan\n";

    #[test]
    fn sums_counters_over_tables_and_leaves_missing_ones_absent() {
        let sums = counters(BEFORE);
        let expected = [Some(1500.0), Some(100.0), None, Some(12.0), Some(10.0), Some(0.0), None];
        assert_eq!(sums, expected);
    }

    #[test]
    fn computes_rates_from_the_differences_between_two_readings() {
        let before = counters(BEFORE);
        let after = [Some(11_500.0), Some(300.0), None, Some(2.0), Some(40.0), Some(10.0), None];
        let usage = between(&before, &after, 4.0);
        assert_eq!(usage.cpu_cores, Some(2.5));
        assert_eq!((usage.storage_reads_per_s, usage.storage_writes_per_s), (Some(50.0), None));
        assert_eq!(usage.seeks_per_s, None, "a decreased counter was reset");
        assert_eq!(usage.block_cache_hit_share, Some(0.75));
    }

    #[test]
    fn reads_nodes_over_http_and_returns_none_for_a_node_that_does_not_respond() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for busy_ms in [1_000, 3_000] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4_096];
                let count = stream.read(&mut request).unwrap();
                requests.push(String::from_utf8_lossy(&request[..count]).into_owned());
                let body = format!("cpu_utime{{a=\"b\"}} {busy_ms} 1\ncpu_stime 0 1\n");
                let status = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n";
                write!(stream, "{status}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
            }
            requests
        });
        // No server listens on this port at 127.0.0.2.
        let mut probe = ClusterProbe::new(["127.0.0.1", "127.0.0.2"].into_iter(), port);
        probe.start();
        let first = probe.start.remove(0).join().unwrap();
        probe.start.insert(0, std::thread::spawn(move || first));
        probe.end();
        probe.close();
        let [Some(usage), None] = probe.node_uses.as_slice() else {
            panic!("{:?}", probe.node_uses)
        };
        assert!(usage.cpu_cores.unwrap() > 0.0);
        for request in server.join().unwrap() {
            assert!(request.contains("reset_histograms=false"), "{request}");
        }
    }
}
