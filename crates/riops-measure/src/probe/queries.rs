//! Samples queries of the user: at the start of a measurement, once an interval, and at its end, in a separate thread
//! with a separate connection. No error of a query ends the run.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

use super::reading::leave_untracked;
use crate::host::Interrupt;
use crate::host::http::Http;
use crate::server::{ConnInfo, Connection, ConnectionError};
use riops_model::plan::{NamedQuery, PROMQL, PointLength};
use riops_model::record::{QueryPoint, QuerySeries};

/// Name of the sessions, which sessions.sql leaves out.
pub(crate) const APPLICATION: &str = "riops probe";
/// Maximum time for one execution of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Called with the time in seconds and the values of all queries, in their order.
pub type OnValues = Arc<dyn Fn(f64, &[Option<f64>]) + Send + Sync>;

/// Samples queries from the start of a measurement to its end.
pub struct QueryProbe {
    target: Target,
    queries: Vec<NamedQuery>,
    /// Opened before the sessions connect.
    connection: Option<Connection>,
    running: Option<(SyncSender<()>, JoinHandle<Vec<QuerySeries>>)>,
    /// The values of the last stage, by query.
    pub(super) series: Vec<QuerySeries>,
}

impl QueryProbe {
    /// Creates a probe for queries on a server, with a value per `interval`. Connections that are `dedicated` may have
    /// settings.
    pub fn new(
        conninfo: &ConnInfo,
        dedicated: bool,
        interval: Duration,
        queries: Vec<NamedQuery>,
    ) -> Self {
        let mut conninfo = conninfo.clone();
        conninfo.application_name = Some(APPLICATION.to_owned());
        Self {
            target: Target {
                conninfo,
                dedicated,
                prometheus: None,
                interval,
                length: PointLength::default(),
                on_values: None,
            },
            queries,
            connection: None,
            running: None,
            series: Vec::new(),
        }
    }

    /// Sets the length of the stored points: a point of several intervals stores only the lowest and the highest value.
    pub fn with_length(mut self, length: PointLength) -> Self {
        self.target.length = length;
        self
    }

    /// Sets the address of a Prometheus, which answers the queries that are not in SQL.
    pub fn with_prometheus(mut self, url: Option<String>) -> Self {
        self.target.prometheus = url.map(|url| (Http::new(QUERY_TIMEOUT), url));
        self
    }

    /// Sets the function to call with the values of each interval. The measurement then waits for the first values, and
    /// the last values are read when the sessions have ended.
    pub fn with_values(mut self, on_values: OnValues) -> Self {
        self.target.on_values = Some(on_values);
        self
    }

    /// Executes each of these queries once.
    ///
    /// # Errors
    /// The first query without a number, and why.
    pub fn try_each(&mut self, queries: &[NamedQuery]) -> Result<(), String> {
        let mut thread = self.thread();
        let mut values = queries.iter().map(|query| (query, thread.value(&query.sql)));
        let failed = values.find_map(|(query, value)| Some((query, value.err()?)));
        self.connection = thread.connection;
        failed.map_or(Ok(()), |(query, reason)| {
            Err(format!("the count {} cannot be read: {reason}", query.name))
        })
    }

    fn thread(&mut self) -> QueryThread {
        QueryThread {
            target: self.target.clone(),
            connection: self.connection.take(),
            silence: None,
            series: self.queries.iter().map(series).collect(),
            waiting: vec![Vec::new(); self.queries.len()],
            start: Instant::now(),
        }
    }

    /// Connects. If this fails, the queries connect again and report the error.
    pub(super) fn open(&mut self) {
        if !self.queries.is_empty() && self.connection.is_none() {
            self.connection = self.target.open().ok();
        }
    }

    /// Starts sampling.
    pub(super) fn start(&mut self) {
        if self.queries.is_empty() {
            return;
        }
        let (stop, stopped) = sync_channel(1);
        let (ready, is_ready) = sync_channel(1);
        let thread = self.thread();
        let builder = std::thread::Builder::new().name("riops-queries".to_owned());
        let spawned = builder.spawn(move || thread.run(&ready, &stopped));
        self.running = spawned.ok().map(|thread| (stop, thread));
        if self.target.on_values.is_some() {
            let _ = is_ready.recv_timeout(QUERY_TIMEOUT);
        }
    }

    /// Reads the last values at the end of a measurement.
    pub(super) fn end(&mut self) {
        if let (Some((stop, _)), None) = (&self.running, &self.target.on_values) {
            let _ = stop.try_send(());
        }
    }

    pub(super) fn close(&mut self) {
        let Some((stop, thread)) = self.running.take() else {
            return;
        };
        let _ = stop.try_send(());
        self.series = thread.join().unwrap_or_default();
    }
}

/// The lowest and the highest value, in their order.
fn extremes(points: &[QueryPoint]) -> impl Iterator<Item = QueryPoint> {
    let by_value = |one: &&QueryPoint, other: &&QueryPoint| one.value.total_cmp(&other.value);
    let ends = [points.iter().min_by(by_value), points.iter().max_by(by_value)];
    let mut ends: Vec<QueryPoint> = ends.into_iter().flatten().copied().collect();
    ends.sort_by(|one, other| one.t_s.total_cmp(&other.t_s));
    ends.dedup();
    ends.into_iter()
}

fn series(query: &NamedQuery) -> QuerySeries {
    QuerySeries { name: query.name.clone(), sql: query.sql.clone(), ..QuerySeries::default() }
}

/// Where and how the queries are executed.
#[derive(Clone)]
struct Target {
    conninfo: ConnInfo,
    /// Whether no other client gets the session of a connection, as behind a pooler in transaction mode.
    dedicated: bool,
    /// A Prometheus, with its address.
    prometheus: Option<(Http, String)>,
    interval: Duration,
    length: PointLength,
    on_values: Option<OnValues>,
}

struct QueryThread {
    target: Target,
    /// Opened again after an error of the connection.
    connection: Option<Connection>,
    /// The error of a query that Prometheus did not answer in time. Its other queries in this interval are not sent.
    silence: Option<String>,
    series: Vec<QuerySeries>,
    /// Values of each query that are not stored yet.
    waiting: Vec<Vec<QueryPoint>>,
    start: Instant,
}

impl QueryThread {
    fn run(mut self, ready: &SyncSender<()>, stopped: &Receiver<()>) -> Vec<QuerySeries> {
        self.start = Instant::now();
        self.sample();
        let _ = ready.try_send(());
        let mut due = self.start + self.target.interval;
        loop {
            let pause = due.saturating_duration_since(Instant::now());
            let is_over = !matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
            if !is_over {
                self.silence = None;
            }
            self.sample();
            if is_over {
                for (series, waiting) in self.series.iter_mut().zip(self.waiting) {
                    let last = waiting.last().copied();
                    series.points.extend(extremes(&waiting).filter(|point| Some(*point) != last));
                    // A count is the difference of the first and the last value.
                    series.points.extend(last);
                }
                return self.series;
            }
            // Intervals that were missed are left out.
            while due <= Instant::now() {
                due += self.target.interval;
            }
        }
    }

    fn sample(&mut self) {
        let mut all = std::mem::take(&mut self.series);
        let mut waiting_of_all = std::mem::take(&mut self.waiting);
        let mut values = Vec::with_capacity(all.len());
        for (series, waiting) in all.iter_mut().zip(&mut waiting_of_all) {
            let value = self.value(&series.sql);
            values.push(value.as_ref().ok().copied());
            let t_s = self.start.elapsed().as_secs_f64();
            match value {
                Ok(value) => {
                    waiting.push(QueryPoint { t_s, value });
                    let length = self.target.length.after(series.points.len());
                    if length == 1 || series.points.is_empty() {
                        series.points.append(waiting);
                    } else if waiting.len() >= 2 * length {
                        series.points.extend(extremes(waiting));
                        waiting.clear();
                    }
                }
                Err(error) => {
                    series.failures += 1;
                    series.error.get_or_insert(error);
                }
            }
        }
        (self.series, self.waiting) = (all, waiting_of_all);
        if let Some(on_values) = &self.target.on_values {
            on_values(self.start.elapsed().as_secs_f64(), &values);
        }
    }

    fn value(&mut self, sql: &str) -> Result<f64, String> {
        if let (Some(query), Some((http, url))) =
            (sql.strip_prefix(PROMQL), &self.target.prometheus)
        {
            if let Some(error) = &self.silence {
                return Err(error.clone());
            }
            let asked = Instant::now();
            let value = prometheus_value(http, url, query);
            self.silence = value.clone().err().filter(|_| asked.elapsed() >= QUERY_TIMEOUT);
            return value;
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.target.open().map_err(|error| error.to_string())?),
        };
        connection.set_deadline(Some(Instant::now() + QUERY_TIMEOUT));
        match connection.query_value(sql) {
            Ok(Some(text)) => {
                let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
                value.ok_or_else(|| format!("the query returned no number: \"{text}\""))
            }
            Ok(None) => Err("the query returned no value".to_owned()),
            Err(error @ ConnectionError::Server(_)) => Err(error.to_string()),
            Err(error) => {
                // A late reply would be taken for the reply to the next query.
                let _ = connection.cancel();
                self.connection = None;
                Err(error.to_string())
            }
        }
    }
}

impl Target {
    fn open(&self) -> Result<Connection, ConnectionError> {
        let mut connection = Connection::open(&self.conninfo, &Interrupt::new())?;
        connection.set_deadline(Some(Instant::now() + QUERY_TIMEOUT));
        if self.dedicated {
            leave_untracked(&mut connection)?;
            // The user wrote the queries and expects the search path of the role.
            connection.execute("reset search_path")?;
        }
        Ok(connection)
    }
}

/// The answer of the interface for queries (Prometheus documentation, "HTTP API", instant queries).
#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

/// Returns the value of a query.
///
/// # Errors
/// A text if Prometheus does not answer, refuses the query, or returns anything but one number.
fn prometheus_value(http: &Http, url: &str, query: &str) -> Result<f64, String> {
    let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
    let address = format!("{}/api/v1/query?query={query}", url.trim_end_matches('/'));
    let (_, text) = http.get(&address).map_err(|error| format!("Prometheus: {error}"))?;
    let answer: Answer =
        serde_json::from_str(&text).map_err(|error| format!("no answer of Prometheus: {error}"))?;
    let Data { result_type, result } = answer.data;
    // A pair of time and value.
    let pair = match (result_type.as_str(), result.as_array().map(Vec::as_slice)) {
        ("scalar", Some(_)) => Some(&result),
        ("vector", Some([only])) => only.get("value"),
        ("vector", Some([])) => return Err("Prometheus has no such metric".to_owned()),
        ("vector", Some(several)) => {
            return Err(format!(
                "the query returned {} series, not one: use an aggregation",
                several.len()
            ));
        }
        _ => None,
    };
    let value = pair.and_then(|pair| pair.get(1)?.as_str()?.parse::<f64>().ok());
    value.filter(|value| value.is_finite()).ok_or_else(|| "the query returned no number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_and_the_highest_value_keep_their_order() {
        let kept = |values: &[f64]| -> Vec<f64> {
            let point = |(at, &value): (usize, &f64)| QueryPoint { t_s: at as f64, value };
            let points: Vec<QueryPoint> = values.iter().enumerate().map(point).collect();
            extremes(&points).map(|point| point.value).collect()
        };
        assert_eq!(kept(&[3.0, 9.0, 4.0, 1.0]), [9.0, 1.0]);
        assert_eq!(kept(&[1.0, 5.0, 2.0, 2.0]), [1.0, 5.0]);
        assert_eq!(kept(&[7.0, 7.0]), [7.0, 7.0]);
        assert_eq!(kept(&[7.0]), [7.0]);
        assert_eq!(kept(&[]), [0.0; 0]);
    }
}
