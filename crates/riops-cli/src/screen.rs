//! The observer of the command line: shows the progress of a run and publishes its record. Several observers of one run.

use std::sync::Arc;

use riops::dataset::prepare::{Prepared, Progress};
use riops::plan::Plan;
use riops::probe::sampler::OnPoint;
use riops::record::{LiveRun, Point, ProbePoint, Record};
use riops::report;
use riops::run::{Agreement, History, Observer, OnLoaded, OnMessage};
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

/// Passes calls on to the progress of the stage.
macro_rules! shown {
    ($($method:ident($($argument:ident: $type:ty)?);)+) => {
        $(fn $method(&mut self, $($argument: $type)?) {
            if let Some(run) = &mut self.run {
                run.$method($($argument)?);
            }
        })+
    };
}

impl Observer for Screen<'_> {
    shown! {
        connected(sessions: usize);
        measuring();
        point(point: &Point);
        draining();
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

/// Passes each event to two observers, one after the other. The history comes from the first one.
pub(crate) struct Tee<'a>(pub(crate) &'a mut dyn Observer, pub(crate) &'a mut dyn Observer);

/// Passes calls without results to both.
macro_rules! both {
    ($($method:ident($($argument:ident: $type:ty),*);)+) => {
        $(fn $method(&mut self, $($argument: $type),*) {
            self.0.$method($($argument),*);
            self.1.$method($($argument),*);
        })+
    };
}

impl Observer for Tee<'_> {
    both! {
        connected(sessions: usize);
        measuring();
        point(point: &Point);
        draining();
        started(run: &LiveRun);
        notice(text: &str);
        left_behind(text: &str);
        prepared(prepared: &Prepared);
        step_done(seconds: f64);
        complete(record: &Record);
    }

    fn preparing(&mut self) -> OnLoaded {
        let (first, second) = (self.0.preparing(), self.1.preparing());
        Arc::new(move |progress: Progress| {
            first(progress);
            second(progress);
        })
    }

    fn messages(&mut self) -> OnMessage {
        let (first, second) = (self.0.messages(), self.1.messages());
        Arc::new(move |text| {
            first(text);
            second(text);
        })
    }

    fn stage(&mut self, name: &str, plan: &Plan) -> OnPoint {
        both_points(self.0.stage(name, plan), self.1.stage(name, plan))
    }

    fn step(&mut self, name: &'static str, growth: Option<(u64, u64)>) -> OnPoint {
        both_points(self.0.step(name, growth), self.1.step(name, growth))
    }

    fn agree_start(&mut self) -> Result<Option<Agreement>, String> {
        Ok(self.0.agree_start()?.or(self.1.agree_start()?))
    }

    fn settled(&mut self) -> bool {
        self.0.settled() && self.1.settled()
    }

    fn history(&self) -> &dyn History {
        self.0.history()
    }
}

fn both_points(first: OnPoint, second: OnPoint) -> OnPoint {
    Arc::new(move |point: &ProbePoint| {
        first(point);
        second(point);
    })
}
