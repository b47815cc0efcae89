//! The command line's observer: shows a run on the terminal, and hands its record over.

use std::path::Path;
use std::sync::Arc;

use riops::dataset::prepare::Prepared;
use riops::engine;
use riops::metrics::Point;
use riops::plan::RunPlan;
use riops::probe::sampler::{OnPoint, ProbePoint};
use riops::record::Record;
use riops::report;
use riops::run::{History, Nothing, Observer, OnLoaded};
use riops::store::SqliteStore;

use crate::ui::{LoadProgress, RunProgress, StepProgress, Ui};

/// What takes the complete record.
pub(crate) type Publish<'a> = &'a mut dyn FnMut(&Record, Option<&SqliteStore>);

/// Shows what happens.
pub(crate) struct Screen<'a> {
    ui: Ui,
    store: Option<SqliteStore>,
    /// What earlier runs are known from, where this one is not stored.
    known: Option<SqliteStore>,
    publish: Option<Publish<'a>>,
    run: Option<RunProgress>,
    step: Option<Arc<StepProgress>>,
}

impl<'a> Screen<'a> {
    /// For a run whose record goes to `publish`, with the store that it is to be stored in. Earlier runs are
    /// known from the file at `path` in any case.
    pub(crate) fn new(
        ui: Ui,
        store: Option<SqliteStore>,
        path: &Path,
        publish: Publish<'a>,
    ) -> Self {
        let known = if store.is_none() { existing_store(path) } else { None };
        Self { ui, store, known, publish: Some(publish), run: None, step: None }
    }

    /// For what gives no record: a preparation, a verification.
    pub(crate) fn without_record(ui: Ui, known: Option<SqliteStore>) -> Self {
        Self { ui, store: None, known, publish: None, run: None, step: None }
    }
}

impl engine::Observer for Screen<'_> {
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
}

impl Observer for Screen<'_> {
    fn notice(&mut self, text: &str) {
        // A bar of the stage before would be drawn over it.
        self.run = None;
        self.ui.notice(text);
    }

    fn left_behind(&mut self, text: &str) {
        // Also where nobody wants notices.
        crate::ui::error(text);
    }

    fn preparing(&mut self) -> OnLoaded {
        let progress = LoadProgress::new(self.ui);
        Arc::new(move |step| progress.show(step))
    }

    fn prepared(&mut self, prepared: &Prepared) {
        self.ui.notice(&report::prepared_text(prepared));
    }

    fn stage(&mut self, plan: &RunPlan) {
        self.run = Some(RunProgress::new(self.ui, plan));
    }

    fn step(&mut self, name: &'static str, growth: Option<(u64, u64)>) -> OnPoint {
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
        if let Some(publish) = &mut self.publish {
            publish(record, self.store.as_ref());
        }
    }

    fn history(&self) -> &dyn History {
        match self.store.as_ref().or(self.known.as_ref()) {
            Some(store) => store,
            None => &Nothing,
        }
    }
}

/// The file of the store, for reading: reading makes no file.
fn existing_store(path: &Path) -> Option<SqliteStore> {
    if path.exists() { SqliteStore::open(path).ok() } else { None }
}
