//! Samples queries of the user: at the start of a measurement, once an interval, and at its end, in a separate thread
//! with a separate connection. No error of a query ends the run.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::extension::leave_untracked;
use super::prometheus;
use crate::host::Interrupt;
use crate::host::http::Http;
use crate::plan::{NamedQuery, PROMQL};
use crate::record::{QueryPoint, QuerySeries};
use crate::server::{ConnInfo, Connection, ConnectionError};

/// Name of the sessions, which sessions.sql leaves out.
pub(crate) const APPLICATION: &str = "riops probe";
/// Maximum time for one execution of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of values of a query: about one day at one per second.
const POINTS_MAX: usize = 100_000;

/// Called with the time in seconds and the values of all queries, in their order.
pub type OnValues = Arc<dyn Fn(f64, &[Option<f64>]) + Send + Sync>;

/// Samples queries from the start of a measurement to its end.
pub struct QueryProbe {
    target: Target,
    interval: Duration,
    queries: Vec<NamedQuery>,
    on_values: Option<OnValues>,
    /// Opened before the sessions connect.
    connection: Option<Connection>,
    running: Option<(SyncSender<()>, JoinHandle<Vec<QuerySeries>>)>,
    found: Vec<QuerySeries>,
}

impl QueryProbe {
    /// Creates a probe for queries on a server, with a value per `interval`. Connections that are `dedicated` may have
    /// settings.
    #[must_use]
    pub fn new(
        conninfo: &ConnInfo,
        dedicated: bool,
        interval: Duration,
        queries: Vec<NamedQuery>,
    ) -> Self {
        let mut conninfo = conninfo.clone();
        conninfo.application_name = Some(APPLICATION.to_owned());
        Self {
            target: Target { conninfo, dedicated, prometheus: None },
            interval,
            queries,
            on_values: None,
            connection: None,
            running: None,
            found: Vec::new(),
        }
    }

    /// Sets the address of a Prometheus, which answers the queries that are not in SQL.
    #[must_use]
    pub fn with_prometheus(mut self, url: Option<String>) -> Self {
        self.target.prometheus = url.map(|url| (Http::new(QUERY_TIMEOUT), url));
        self
    }

    /// Sets what is called with the values of each interval. The measurement then waits for the first ones, and the last ones are
    /// read when the sessions have ended.
    #[must_use]
    pub fn with_values(self, on_values: OnValues) -> Self {
        Self { on_values: Some(on_values), ..self }
    }

    /// Connects. Errors are those of the queries.
    pub(super) fn open(&mut self) {
        if !self.queries.is_empty() {
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
        let thread = QueryThread {
            target: self.target.clone(),
            interval: self.interval,
            connection: self.connection.take(),
            series: self.queries.iter().map(series).collect(),
            on_values: self.on_values.clone(),
            start: Instant::now(),
        };
        let builder = std::thread::Builder::new().name("riops-queries".to_owned());
        let spawned = builder.spawn(move || thread.run(&ready, &stopped));
        self.running = spawned.ok().map(|thread| (stop, thread));
        if self.on_values.is_some() {
            let _ = is_ready.recv_timeout(QUERY_TIMEOUT);
        }
    }

    /// Reads the last values at the end of a measurement.
    pub(super) fn end(&mut self) {
        if let (Some((stop, _)), None) = (&self.running, &self.on_values) {
            let _ = stop.try_send(());
        }
    }

    pub(super) fn close(&mut self) {
        let Some((stop, thread)) = self.running.take() else {
            return;
        };
        let _ = stop.try_send(());
        self.found = thread.join().unwrap_or_default();
    }

    /// Returns the values of the last stage.
    pub(super) fn found(&self) -> &[QuerySeries] {
        &self.found
    }
}

fn series(query: &NamedQuery) -> QuerySeries {
    QuerySeries { name: query.name.clone(), sql: query.sql.clone(), ..QuerySeries::default() }
}

/// Where the queries are executed.
#[derive(Debug, Clone)]
struct Target {
    conninfo: ConnInfo,
    /// Whether no other client gets the session of a connection, as behind a pooler in transaction mode.
    dedicated: bool,
    /// A Prometheus, with its address.
    prometheus: Option<(Http, String)>,
}

struct QueryThread {
    target: Target,
    interval: Duration,
    /// Opened again after an error of the connection.
    connection: Option<Connection>,
    series: Vec<QuerySeries>,
    on_values: Option<OnValues>,
    start: Instant,
}

impl QueryThread {
    fn run(mut self, ready: &SyncSender<()>, stopped: &Receiver<()>) -> Vec<QuerySeries> {
        self.start = Instant::now();
        self.sample();
        let _ = ready.try_send(());
        let mut due = self.start + self.interval;
        loop {
            let pause = due.saturating_duration_since(Instant::now());
            let is_over = !matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
            self.sample();
            if is_over {
                return self.series;
            }
            // Intervals that were missed are left out.
            while due <= Instant::now() {
                due += self.interval;
            }
        }
    }

    fn sample(&mut self) {
        let mut values = Vec::with_capacity(self.series.len());
        for at in 0..self.series.len() {
            let sql = self.series.get(at).map(|each| each.sql.clone()).unwrap_or_default();
            let value = self.value(&sql);
            values.push(value.as_ref().ok().copied());
            let t_s = self.start.elapsed().as_secs_f64();
            let Some(series) = self.series.get_mut(at) else {
                continue;
            };
            match value {
                Ok(value) if series.points.len() < POINTS_MAX => {
                    series.points.push(QueryPoint { t_s, value });
                }
                Ok(_) => {}
                Err(error) => {
                    series.failures += 1;
                    series.error.get_or_insert(error);
                }
            }
        }
        if let Some(on_values) = &self.on_values {
            on_values(self.start.elapsed().as_secs_f64(), &values);
        }
    }

    fn value(&mut self, sql: &str) -> Result<f64, String> {
        if let (Some(query), Some((http, url))) =
            (sql.strip_prefix(PROMQL), &self.target.prometheus)
        {
            return prometheus::value(http, url, query);
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.target.open().map_err(|each| each.to_string())?),
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
                // A late reply would be taken for that to the next query.
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
            // The queries are those of the user, who expects the search path of the role.
            connection.execute("reset search_path")?;
        }
        Ok(connection)
    }
}
