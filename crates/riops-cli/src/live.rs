//! Live figures of a run for others: the dashboard, Prometheus, and programs that read standard error.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use riops::dataset::prepare::Progress;
use riops::plan::Plan;
use riops::probe::sampler::OnPoint;
use riops::record::{LiveEvent, LiveRun, Point, ProbePoint, Record};
use riops::run::{Observer, OnLoaded};
use riops::serve::{MetricsPush, MetricsServer};
use riops::store::live::{OpenSink, Publisher};
use serde::Serialize;

use crate::args::LiveOptions;
use crate::file::token;
use crate::ui::Ui;

/// Time between two events about the progress of a preparation or a statement.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Receives the events of a run, possibly from several threads.
trait Consumer: Send + Sync {
    fn started(&self, run: &LiveRun);
    fn event(&self, event: &LiveEvent);
}

/// Opens the place where a run is published beside its store.
pub(crate) type OpenFeed = Box<dyn Fn() -> OpenSink + Send + Sync>;

/// Observes a run for the consumers.
#[derive(Clone)]
pub(crate) struct Live {
    consumers: Arc<Vec<Box<dyn Consumer>>>,
}

impl Live {
    /// Opens the port of `--metrics-listen`. `feed` is `None` if the run is not stored.
    pub(crate) fn open(options: &LiveOptions, feed: Option<OpenFeed>, ui: Ui) -> Result<Self> {
        let mut consumers: Vec<Box<dyn Consumer>> = Vec::new();
        if let Some(listen) = &options.metrics_listen {
            let (text, file) = (&options.metrics_token, &options.metrics_token_file);
            let token = token(text.as_deref(), file.as_deref(), ui)?;
            let server = MetricsServer::start(listen, token)?;
            ui.notice(&format!("metrics: {}", server.url()));
            consumers.push(Box::new(server));
        }
        if let Some(url) = &options.metrics_push {
            let file = options.metrics_push_token_file.as_deref();
            let token = token(None, file, ui)?;
            let failed = move |error: &str| {
                ui.notice(&format!(
                    "warning: intervals are missing at the receiver of the metrics: {error}"
                ));
            };
            consumers.push(Box::new(MetricsPush::start(url, token, failed)?));
        }
        if options.interval_json {
            consumers.push(Box::new(IntervalJson::default()));
        }
        if let Some(open) = feed {
            consumers.push(Box::new(Feed { open, ui, publisher: Mutex::new(None) }));
        }
        Ok(Self { consumers: Arc::new(consumers) })
    }

    /// The run has ended without a record.
    pub(crate) fn failed(&self, error: &dyn std::error::Error) {
        self.send(&LiveEvent::Failed { error: error.to_string() });
    }

    fn send(&self, event: &LiveEvent) {
        for consumer in self.consumers.iter() {
            consumer.event(event);
        }
    }
}

impl Observer for Live {
    fn connected(&mut self, sessions: usize) {
        self.send(&LiveEvent::Connected { sessions: sessions as u64 });
    }

    fn measuring(&mut self) {
        self.send(&LiveEvent::Measuring);
    }

    fn point(&mut self, point: &Point) {
        self.send(&LiveEvent::Point(Box::new(point.clone())));
    }

    fn draining(&mut self) {
        self.send(&LiveEvent::Draining);
    }

    fn started(&mut self, run: &LiveRun) {
        for consumer in self.consumers.iter() {
            consumer.started(run);
        }
    }

    fn notice(&mut self, text: &str) {
        self.send(&LiveEvent::Notice { text: text.to_owned() });
    }

    fn preparing(&mut self) -> OnLoaded {
        self.send(&LiveEvent::Preparing { rows: 0, total: 0 });
        let (live, pace) = (self.clone(), Pace::default());
        Arc::new(move |progress| {
            if let Progress::Loaded { rows, total } = progress
                && (rows == total || pace.is_due())
            {
                live.send(&LiveEvent::Preparing { rows, total });
            }
        })
    }

    fn stage(&mut self, name: &str, _: &Plan) -> OnPoint {
        self.send(&LiveEvent::Stage { name: name.to_owned() });
        Arc::new(|_| {})
    }

    fn step(&mut self, name: &'static str, growth: Option<(u64, u64)>) -> OnPoint {
        self.send(&LiveEvent::Step { name: name.to_owned() });
        let (live, pace) = (self.clone(), Pace::default());
        Arc::new(move |point: &ProbePoint| {
            if pace.is_due() {
                let share = point.share_done(growth);
                live.send(&LiveEvent::StepProgress { t_s: point.t_s, share });
            }
        })
    }

    fn step_done(&mut self, seconds: f64) {
        self.send(&LiveEvent::StepDone { seconds });
    }

    fn complete(&mut self, record: &Record) {
        self.send(&LiveEvent::completed(record));
    }
}

/// Limits the number of events.
#[derive(Debug, Default)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    fn is_due(&self) -> bool {
        let Ok(mut last) = self.0.lock() else {
            return false;
        };
        let is_due = last.is_none_or(|last| last.elapsed() >= PROGRESS_EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

impl Consumer for MetricsServer {
    fn started(&self, run: &LiveRun) {
        self.started(run.clone());
    }

    fn event(&self, event: &LiveEvent) {
        self.event(event);
    }
}

impl Consumer for MetricsPush {
    fn started(&self, run: &LiveRun) {
        self.started(run);
    }

    fn event(&self, event: &LiveEvent) {
        self.event(event);
    }
}

/// Publishes the run beside the store.
struct Feed {
    open: OpenFeed,
    ui: Ui,
    publisher: Mutex<Option<Publisher>>,
}

impl Consumer for Feed {
    fn started(&self, run: &LiveRun) {
        let ui = self.ui;
        let failed = move |error: &dyn std::error::Error| {
            ui.notice(&format!("this run is not shown by `riops serve`: {error}"));
        };
        let started = Publisher::start(run.clone(), (self.open)(), move |error| failed(&error));
        match (started, self.publisher.lock()) {
            (Ok(started), Ok(mut publisher)) => *publisher = Some(started),
            (Err(error), _) => failed(&error),
            _ => {}
        }
    }

    fn event(&self, event: &LiveEvent) {
        if let Ok(publisher) = self.publisher.lock()
            && let Some(publisher) = publisher.as_ref()
        {
            publisher.publish(event.clone());
        }
    }
}

/// Prints each interval as a line of JSON.
#[derive(Debug, Default)]
struct IntervalJson {
    /// Id of the run, and name of the stage.
    current: Mutex<(String, String)>,
}

/// A line of `--interval-json`.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    stage: &'a str,
    #[serde(flatten)]
    point: &'a Point,
}

impl Consumer for IntervalJson {
    fn started(&self, run: &LiveRun) {
        if let Ok(mut current) = self.current.lock() {
            *current = (run.id.to_string(), String::new());
        }
    }

    fn event(&self, event: &LiveEvent) {
        let Ok(mut current) = self.current.lock() else {
            return;
        };
        match event {
            LiveEvent::Stage { name } => current.1.clone_from(name),
            LiveEvent::Point(point) => {
                let (run, stage) = &*current;
                if let Ok(line) = serde_json::to_string(&Line { run, stage, point }) {
                    crate::ui::json_line(&line);
                }
            }
            _ => {}
        }
    }
}
