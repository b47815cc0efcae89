//! What a run tells while it lasts, and what it asks about earlier runs.

use std::sync::Arc;

use crate::dataset::prepare::{Prepared, Progress};
use crate::plan::Plan;
use crate::probe::sampler::OnPoint;
use crate::record::{DiskLimit, Record};

/// Takes the progress of a preparation, from several threads.
pub type OnLoaded = Arc<dyn Fn(Progress) + Send + Sync>;

/// Sees a run while it lasts. Whoever shows nothing needs none of the methods.
pub trait Observer: crate::engine::Observer {
    /// Something that the user should know and that is no result.
    fn notice(&mut self, _text: &str) {}

    /// Something that the user has to know in any case: the run has left something behind.
    fn left_behind(&mut self, text: &str) {
        self.notice(text);
    }

    /// A dataset is about to be prepared; what takes its progress.
    fn preparing(&mut self) -> OnLoaded {
        Arc::new(|_| {})
    }

    /// It is prepared.
    fn prepared(&mut self, _prepared: &Prepared) {}

    /// A stage is about to start whose sessions repeat transactions as this plan says.
    fn stage(&mut self, _plan: &Plan) {}

    /// A statement is about to run that is a stage of its own; what takes its progress. `growth` is the
    /// size of the database before it, and by how much it will grow, in bytes, where that is known.
    fn step(&mut self, _name: &'static str, _growth: Option<(u64, u64)>) -> OnPoint {
        Arc::new(|_| {})
    }

    /// That statement has ended after so many seconds.
    fn step_done(&mut self, _seconds: f64) {}

    /// The record is complete. It has to be stored here: the run has yet to drop what it made, and nothing
    /// that happens then may cost the result.
    fn complete(&mut self, _record: &Record) {}

    /// What is known of earlier runs.
    fn history(&self) -> &dyn History {
        &Nothing
    }
}

/// What is known of earlier runs.
pub trait History {
    /// The record of a run.
    fn record(&self, id: &str) -> Option<Record>;

    /// What a device of a machine can do.
    fn disk_limit(&self, host: &str, device: &str) -> Option<DiskLimit>;
}

/// No earlier runs.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl History for Nothing {
    fn record(&self, _: &str) -> Option<Record> {
        None
    }

    fn disk_limit(&self, _: &str, _: &str) -> Option<DiskLimit> {
        None
    }
}
