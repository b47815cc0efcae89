//! What each session did.

use crate::sections::{each, stage_name};
use crate::table::{Cell, Table, number, word};
use riops_model::record::{Record, SessionOperation};
use riops_model::units::format::{count, duration_us, percent};

/// What each session did.
pub(crate) fn table(record: &Record) -> Table {
    let sessions = each(record, |stage| &stage.session_loop.session_details);
    Table::of("sessions", sessions, |(stage, session)| {
        let operations = &session.operations;
        let sum = |pick: fn(&SessionOperation) -> u64| operations.iter().map(pick).sum::<u64>();
        let transactions = sum(|each| each.transactions);
        let most = stage.session_loop.sessions_fairness.max.max(1) as f64;
        let longest_us = operations.iter().filter_map(|each| each.max_us).reduce(f64::max);
        let busy_s: f64 = operations.iter().map(|each| each.execution_s).sum();
        let share = transactions as f64 / most;
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("node"), session.node.clone().into()),
            (number("session"), count(session.number).into()),
            (number("server process"), session.server_process.to_string().into()),
            (number("transactions"), Cell::from(count(transactions)).with_bar(share)),
            (number("rows"), count(sum(|each| each.rows)).into()),
            (number("longest"), longest_us.map(duration_us).into()),
            (
                number("time in transactions"),
                percent(busy_s / stage.seconds.max(f64::MIN_POSITIVE)).into(),
            ),
        ]
    })
}
