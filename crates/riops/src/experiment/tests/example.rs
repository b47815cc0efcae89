//! Experiments for the tests.

use super::definition::{Axis, Cell, Experiment, Goal, ServerChoice};
use crate::plan::Plan;
use crate::record::{Record, Status};

/// A sweep over the number of sessions, with this number of cells: 1, 2, 3, …
pub(crate) fn sweep(cells: u32) -> Experiment {
    let values: Vec<String> = (1..=cells).map(|sessions| sessions.to_string()).collect();
    let cell = |sessions: u32| Cell {
        values: vec![sessions.to_string()],
        plan: Plan { sessions, ..Plan::default() },
        server: ServerChoice::default(),
    };
    Experiment {
        id: "0190a6f2-0000-7000-8000-000000000019".to_owned(),
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
pub(crate) fn record(plan: &Plan) -> Record {
    let frozen: Record =
        serde_json::from_str(include_str!("../../../tests/records/rows.json")).unwrap();
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
