//! The receivers of the events of a run in the command line: they show the progress, and pass the events to programs.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use riops::plan::Plan;
use riops::record::{Events, LiveRun, Point, RunEvent};
use riops::report::{self, Stream};
use riops::serve::{MetricsPush, MetricsServer};
use riops::session::published;
use riops::units::text::lines;
use serde::Serialize;

use crate::args::LiveOptions;
use crate::file::token;
use crate::ui::{LoadProgress, RunProgress, StepProgress, Ui};

/// Returns the receiver of the events that shows the progress.
pub(crate) fn shown(ui: Ui) -> Events {
    let screen = Screen::new(ui);
    Events::new(move |event| screen.show(event))
}

/// Returns the receivers of the events for programs. Opens the port of `--metrics-listen`.
pub(crate) fn programs(options: &LiveOptions, ui: Ui) -> Result<Events> {
    let mut receivers = Vec::new();
    if let Some(listen) = &options.metrics_listen {
        let (text, file) = (&options.metrics_token, &options.metrics_token_file);
        let token = token(text.as_deref(), file.as_deref(), ui)?;
        let server = MetricsServer::start(listen, token)?;
        ui.notice(&format!("metrics: {}", server.url()));
        receivers.push(Events::new(move |event| server.event(event)));
    }
    if let Some(url) = &options.metrics_push {
        let file = options.metrics_push_token_file.as_deref();
        let token = token(None, file, ui)?;
        let failed = move |error: &str| {
            ui.notice(&format!(
                "warning: intervals are missing at the receiver of the metrics: {error}"
            ));
        };
        let push = MetricsPush::start(url, token, failed)?;
        receivers.push(Events::new(move |event| push.event(event)));
    }
    if options.interval_json {
        let json = IntervalJson::default();
        receivers.push(Events::new(move |event| json.event(event)));
    }
    Ok(published(receivers))
}

/// The progress on the screen.
enum Shown {
    Nothing,
    Load(LoadProgress),
    Stage(Box<RunProgress>),
    Step(StepProgress),
}

/// Shows the progress of a run.
struct Screen {
    ui: Ui,
    plan: Mutex<Plan>,
    shown: Mutex<Arc<Shown>>,
}

impl Screen {
    fn new(ui: Ui) -> Self {
        Self { ui, plan: Mutex::default(), shown: Mutex::new(Arc::new(Shown::Nothing)) }
    }

    /// Returns the progress on the screen. The lock is released before the terminal is written: a slow one must not delay the threads that sample.
    fn current(&self) -> Arc<Shown> {
        Arc::clone(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, shown: Shown) {
        let shown = Arc::new(shown);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn show(&self, event: &RunEvent) {
        match event {
            RunEvent::Started { plan, .. } => {
                self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone_from(plan);
            }
            RunEvent::Notice { text, is_important: true } => self.ui.error(text),
            RunEvent::Notice { text, .. } => self.notice(text),
            RunEvent::Message { text } => {
                let print = || crate::ui::print_error(&(lines(text) + "\n"));
                match &*self.current() {
                    Shown::Stage(run) => run.above_view(print),
                    _ => print(),
                }
            }
            RunEvent::Preparing { .. } | RunEvent::Indexing | RunEvent::Counting => {
                self.load(event);
            }
            RunEvent::Prepared(prepared) => {
                self.set(Shown::Nothing);
                self.ui.notice(&report::prepared_text(prepared));
            }
            RunEvent::Stage { .. } => {
                let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let is_first = plan.is_first();
                let ui = if is_first { self.ui } else { self.ui.without_intervals() };
                self.set(Shown::Stage(Box::new(RunProgress::new(ui, plan))));
            }
            RunEvent::Step { name } => self.set(Shown::Step(StepProgress::new(self.ui, name))),
            RunEvent::Completed { .. } | RunEvent::Failed { .. } => self.set(Shown::Nothing),
            RunEvent::StepDone { .. } => {
                self.progress(event);
                self.set(Shown::Nothing);
            }
            event => self.progress(event),
        }
    }

    fn notice(&self, text: &str) {
        if matches!(&*self.current(), Shown::Stage(run) if run.is_over()) {
            self.set(Shown::Nothing);
        }
        match &*self.current() {
            Shown::Stage(run) => run.above_view(|| self.ui.notice(text)),
            _ => self.ui.notice(text),
        }
    }

    fn load(&self, event: &RunEvent) {
        if !matches!(*self.current(), Shown::Load(_)) {
            self.set(Shown::Load(LoadProgress::new(self.ui)));
        }
        if let Shown::Load(load) = &*self.current() {
            match event {
                RunEvent::Preparing { rows, total } if *total > 0 => load.loaded(*rows, *total),
                RunEvent::Indexing => load.step("creating indexes"),
                RunEvent::Counting => load.step("counting rows"),
                _ => {}
            }
        }
    }

    /// Shows an event of a stage in progress.
    fn progress(&self, event: &RunEvent) {
        match (&*self.current(), event) {
            (Shown::Stage(run), RunEvent::Sampled(sample)) => run.sampled(sample),
            (Shown::Stage(run), RunEvent::Connected { sessions }) => run.connected(*sessions),
            (Shown::Stage(run), RunEvent::Measuring) => run.measuring(),
            (Shown::Stage(run), RunEvent::Point(point)) => run.point(point),
            (Shown::Stage(run), RunEvent::Draining) => run.draining(),
            (Shown::Step(step), RunEvent::StepProgress { share, sample, .. }) => {
                step.show(sample, *share);
            }
            (Shown::Step(step), RunEvent::StepDone { seconds }) => step.done(*seconds),
            _ => {}
        }
    }
}

/// Prints the parts of a form as they happen.
pub(crate) struct Streaming {
    stream: &'static dyn Stream,
    /// Whether the form has its intervals.
    intervals: bool,
    /// The plan of the run, if this client prints: in a fleet, the first agent does.
    plan: Mutex<Option<Plan>>,
}

impl Streaming {
    pub(crate) fn new(stream: &'static dyn Stream, intervals: bool) -> Self {
        Self { stream, intervals, plan: Mutex::new(None) }
    }

    fn plan(&self) -> Option<Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The form, if its first parts were printed.
    pub(crate) fn begun(&self) -> Option<&'static dyn Stream> {
        self.plan().map(|_| self.stream)
    }

    pub(crate) fn event(&self, event: &RunEvent) {
        if let RunEvent::Started { plan, .. } = event {
            let plan = Some(plan.as_ref().clone()).filter(Plan::is_first);
            *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        }
        let Some(plan) = self.plan() else { return };
        let text = match event {
            RunEvent::Stage { .. } => self.stream.opening(&plan, self.intervals),
            RunEvent::Connected { .. } => self.stream.connected().to_owned(),
            RunEvent::Point(point) => {
                let text = self.stream.interval(point, &plan, self.intervals);
                if self.stream.has_intervals_on_standard_error() {
                    return crate::ui::print_error(&text);
                }
                text
            }
            _ => return,
        };
        // The end of the report tells of an output that cannot be written.
        let _ = crate::ui::print(&text);
    }
}

/// Prints each interval as a line of JSON.
#[derive(Debug, Default)]
struct IntervalJson {
    run: Mutex<Option<LiveRun>>,
}

/// A line of `--interval-json`.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    stage: &'a str,
    #[serde(flatten)]
    point: &'a Point,
}

impl IntervalJson {
    fn event(&self, event: &RunEvent) {
        let Ok(mut run) = self.run.lock() else { return };
        LiveRun::follow(&mut run, event);
        if let (Some(run), RunEvent::Point(point)) = (run.as_ref(), event) {
            let stage = run.stages.last().map_or("", |stage| stage.name.as_str());
            let line = Line { run: &run.id.to_string(), stage, point };
            if let Ok(line) = serde_json::to_string(&line) {
                crate::ui::json_line(&line);
            }
        }
    }
}
