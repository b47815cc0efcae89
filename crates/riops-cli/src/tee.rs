//! Several observers of one run.

use std::sync::Arc;

use riops::dataset::prepare::{Prepared, Progress};
use riops::plan::Plan;
use riops::probe::sampler::OnPoint;
use riops::record::{LiveRun, Point, ProbePoint, Record};
use riops::run::{Agreement, History, Observer, OnLoaded, OnMessage};

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
