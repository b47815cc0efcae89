//! Several observers of one run.

use std::sync::Arc;

use riops::dataset::prepare::{Prepared, Progress};
use riops::engine;
use riops::plan::Plan;
use riops::probe::sampler::OnPoint;
use riops::record::{LiveStart, Point, ProbePoint, Record};
use riops::run::{History, Observer, OnLoaded, OnMessage};

/// Passes each event to two observers, one after the other. The history comes from the first one.
pub(crate) struct Tee<'a>(pub(crate) &'a mut dyn Observer, pub(crate) &'a mut dyn Observer);

impl engine::Observer for Tee<'_> {
    fn connected(&mut self, sessions: usize) {
        self.0.connected(sessions);
        self.1.connected(sessions);
    }

    fn measuring(&mut self) {
        self.0.measuring();
        self.1.measuring();
    }

    fn point(&mut self, point: &Point) {
        self.0.point(point);
        self.1.point(point);
    }

    fn draining(&mut self) {
        self.0.draining();
        self.1.draining();
    }
}

impl Observer for Tee<'_> {
    fn started(&mut self, start: &LiveStart<'_>) {
        self.0.started(start);
        self.1.started(start);
    }

    fn notice(&mut self, text: &str) {
        self.0.notice(text);
        self.1.notice(text);
    }

    fn left_behind(&mut self, text: &str) {
        self.0.left_behind(text);
        self.1.left_behind(text);
    }

    fn preparing(&mut self) -> OnLoaded {
        let (first, second) = (self.0.preparing(), self.1.preparing());
        Arc::new(move |progress: Progress| {
            first(progress);
            second(progress);
        })
    }

    fn prepared(&mut self, prepared: &Prepared) {
        self.0.prepared(prepared);
        self.1.prepared(prepared);
    }

    fn stage(&mut self, name: &str, plan: &Plan) {
        self.0.stage(name, plan);
        self.1.stage(name, plan);
    }

    fn messages(&mut self) -> OnMessage {
        let (first, second) = (self.0.messages(), self.1.messages());
        Arc::new(move |text| {
            first(text);
            second(text);
        })
    }

    fn step(&mut self, name: &'static str, growth: Option<(u64, u64)>) -> OnPoint {
        let (first, second) = (self.0.step(name, growth), self.1.step(name, growth));
        Arc::new(move |point: &ProbePoint| {
            first(point);
            second(point);
        })
    }

    fn step_done(&mut self, seconds: f64) {
        self.0.step_done(seconds);
        self.1.step_done(seconds);
    }

    fn complete(&mut self, record: &Record) {
        self.0.complete(record);
        self.1.complete(record);
    }

    fn history(&self) -> &dyn History {
        self.0.history()
    }
}
