//! The observer of the command line: shows the progress of a run and publishes its record.

use std::sync::Arc;

use riops::dataset::prepare::Prepared;
use riops::plan::Plan;
use riops::probe::sampler::OnPoint;
use riops::record::{Point, ProbePoint, Record};
use riops::report;
use riops::run::{History, Observer, OnLoaded, OnMessage};
use riops::units::text::lines;

use crate::ui::{LoadProgress, RunProgress, StepProgress, Ui};

/// Shows the progress of a run.
pub(crate) struct Screen<'a> {
    ui: Ui,
    history: &'a dyn History,
    /// Called with the complete record.
    publish: &'a mut dyn FnMut(&Record),
    run: Option<RunProgress>,
    step: Option<Arc<StepProgress>>,
}

impl<'a> Screen<'a> {
    /// Creates an observer that passes the record to `publish`.
    pub(crate) fn new(
        ui: Ui,
        history: &'a dyn History,
        publish: &'a mut dyn FnMut(&Record),
    ) -> Self {
        Self { ui, history, publish, run: None, step: None }
    }
}

impl Observer for Screen<'_> {
    fn connected(&mut self, sessions: usize) {
        if let Some(run) = &mut self.run {
            run.connected(sessions);
        }
    }

    fn measuring(&mut self) {
        if let Some(run) = &mut self.run {
            run.measuring();
        }
    }

    fn point(&mut self, point: &Point) {
        if let Some(run) = &mut self.run {
            run.point(point);
        }
    }

    fn draining(&mut self) {
        if let Some(run) = &mut self.run {
            run.draining();
        }
    }

    fn notice(&mut self, text: &str) {
        self.run.take_if(|run| run.is_over());
        match &self.run {
            Some(run) => run.above_view(|| self.ui.notice(text)),
            None => self.ui.notice(text),
        }
    }

    fn left_behind(&mut self, text: &str) {
        self.ui.error(text);
    }

    fn preparing(&mut self) -> OnLoaded {
        let progress = LoadProgress::new(self.ui);
        Arc::new(move |step| progress.show(step))
    }

    fn prepared(&mut self, prepared: &Prepared) {
        self.ui.notice(&report::prepared_text(prepared));
    }

    fn stage(&mut self, _: &str, plan: &Plan) -> OnPoint {
        self.run.insert(RunProgress::new(self.ui, plan)).on_sample()
    }

    fn messages(&mut self) -> OnMessage {
        let print = |text: &str| crate::ui::print_error(&(lines(text) + "\n"));
        match &self.run {
            Some(run) => run.above_view_of_threads(print),
            None => Arc::new(print),
        }
    }

    fn step(&mut self, name: &'static str, growth: Option<(u64, u64)>) -> OnPoint {
        self.run = None;
        let shown = Arc::new(StepProgress::new(self.ui, name, growth));
        self.step = Some(Arc::clone(&shown));
        Arc::new(move |point: &ProbePoint| shown.show(point))
    }

    fn step_done(&mut self, seconds: f64) {
        if let Some(step) = self.step.take() {
            step.done(seconds);
        }
    }

    fn complete(&mut self, record: &Record) {
        self.run = None;
        (self.publish)(record);
    }

    fn history(&self) -> &dyn History {
        self.history
    }
}
