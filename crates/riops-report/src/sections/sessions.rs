//! What each session did.

use crate::sections::{items_of_stages, stage_name};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::record::{Record, SessionOperation};
use riops_model::units::format::{count, duration_us, percent};

/// What each session did.
pub(crate) fn table(record: &Record) -> Table {
    let sessions = items_of_stages(record, |stage| &stage.session_loop.session_details);
    Table::from_items("sessions", sessions, |(stage, session)| {
        let operations = &session.operations;
        let sum = |pick: fn(&SessionOperation) -> u64| operations.iter().map(pick).sum::<u64>();
        let transactions = sum(|operation| operation.transactions);
        let most = stage.session_loop.sessions_fairness.max.max(1) as f64;
        let longest_us =
            operations.iter().filter_map(|operation| operation.max_us).reduce(f64::max);
        let busy_s: f64 = operations.iter().map(|operation| operation.execution_s).sum();
        let share = transactions as f64 / most;
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("node"), session.node.clone().into()),
            (number_column("session"), count(session.number).into()),
            (number_column("server process"), session.server_process.to_string().into()),
            (number_column("transactions"), Cell::from(count(transactions)).with_bar(share)),
            (number_column("rows"), count(sum(|operation| operation.rows)).into()),
            (number_column("longest"), longest_us.map(duration_us).into()),
            (
                number_column("time in transactions"),
                percent(busy_s / stage.seconds.max(f64::MIN_POSITIVE)).into(),
            ),
        ]
    })
}
