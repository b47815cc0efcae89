//! Experiments for tests.
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::should_implement_trait,
    reason = "for tests, of other crates, too"
)]

use super::definition::{Axis, Cell, Experiment, Goal, ServerChoice};
use crate::plan::Plan;
use crate::record::{Record, Status};
use crate::summary::{RunSummary, StageSummary};

/// A sweep over the number of sessions, with this number of cells: 1, 2, 3, …
pub fn sweep(cells: u32) -> Experiment {
    let values: Vec<String> = (1..=cells).map(|sessions| sessions.to_string()).collect();
    let cell = |sessions: u32| Cell {
        values: vec![sessions.to_string()],
        plan: Plan { sessions, ..Plan::default() },
        server: ServerChoice::default(),
    };
    Experiment {
        id: "0190a6f2-0000-7000-8000-000000000019".parse().unwrap(),
        name: "example".to_owned(),
        description: None,
        created_at: "2026-11-23T08:00:00Z".parse().unwrap(),
        goal: Goal::Sweep { baseline: 0 },
        axes: vec![Axis { name: "sessions".to_owned(), values }],
        cells: (1..=cells).map(cell).collect(),
        repeats: 3,
        order: super::Order::default(),
        seed: 1,
        between: super::Between::default(),
        reset: super::Reset::default(),
        database: super::DatabaseChoice::default(),
        time_limit_s: None,
        agents: None,
        notes: Vec::new(),
        effect: 0.02,
    }
}

/// A valid record of a run of this plan, with the figures of another run.
pub fn record(plan: &Plan) -> Record {
    let frozen: Record =
        serde_json::from_str(include_str!("../../tests/records/rows.json")).unwrap();
    let mut verdict = frozen.verdict.clone();
    verdict.valid = true;
    Record {
        id: uuid::Uuid::now_v7(),
        tags: plan.tags.clone(),
        plan: plan.clone(),
        status: Status::Done,
        verdict,
        ..frozen
    }
}

/// Runs with these rates, in thousands of rows per second, and this number of sessions.
pub fn stored(rates: &[f64], sessions: u32) -> (Vec<RunSummary>, Vec<StageSummary>) {
    let pairs = rates.iter().enumerate().map(|(position, thousands)| {
        let id = format!("run-{sessions}-{position:03}");
        let run = RunSummary {
            id: id.clone(),
            started_at: format!("2026-01-{:02}T00:00:00Z", position + 1),
            workload: "rows".to_owned(),
            title: "rows".to_owned(),
            status: "done".to_owned(),
            valid: true,
            stages: 1,
            ..RunSummary::default()
        };
        let stage = StageSummary {
            run_id: id,
            name: "rows".to_owned(),
            sessions: Some(sessions),
            rows: Some(1),
            rows_per_s: Some(thousands * 1e3),
            service_p99_us: Some(100.0),
            ..StageSummary::default()
        };
        (run, stage)
    });
    pairs.unzip()
}

pub const SHIFT: [f64; 12] =
    [99.0, 101.0, 100.0, 99.5, 100.5, 100.0, 94.5, 95.0, 95.5, 94.0, 95.0, 95.5];

/// Numbers with a normal distribution.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> f64 {
        // The sum of twelve uniform numbers has the variance 1.
        let mut uniform = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }
}
