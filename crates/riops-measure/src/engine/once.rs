//! A stage that consists of one statement, run once on an existing connection.
//!
//! It must not interpret the result; that is the caller's task.

use std::time::{Duration, Instant};

use crate::probe::Probe;
use crate::server::connection::{Answer, Notice};
use crate::server::{Connection, ConnectionError};

/// Maximum number of stored notices. Statements of riops send only a few.
const NOTICES_MAX: usize = 1_000;

/// Minimum time between two statistics reports of a session before PostgreSQL 15, plus a margin.
const STATISTICS_DELAY: Duration = Duration::from_millis(600);

/// Result of a statement.
#[derive(Debug)]
pub struct OnceResult {
    /// Time from the send to the end of the reply.
    pub seconds: f64,
    /// Rows and command tags.
    pub answer: Answer,
    /// Texts of the notices.
    pub notices: Vec<String>,
}

/// Runs a statement once; `probe` samples before and after it.
///
/// # Errors
/// Returns [`ConnectionError`] if the statement failed, and [`ConnectionError::Interrupted`] if the user
/// interrupted it. The probe is closed in either case.
pub fn run_once(
    connection: &mut Connection,
    sql: &str,
    probe: &mut Probe<'_>,
) -> Result<OnceResult, ConnectionError> {
    let mut notices = Vec::new();
    probe.open();
    probe.start();
    // The backend was idle while the probe sampled. The extra statement wakes it, so that the measured one
    // does not include the wake-up.
    let woken = connection.execute("select 1");
    let start = Instant::now();
    let mut on_notice = |notice: Notice<'_>| {
        if notices.len() < NOTICES_MAX {
            notices.push(notice.message.to_owned());
        }
    };
    let answer = woken.and_then(|()| connection.query_with_notices(sql, &mut on_notice));
    let seconds = start.elapsed().as_secs_f64();
    probe.end();
    if answer.is_ok() {
        flush_statistics(connection, probe.can_flush());
    }
    probe.close(&[]);
    answer.map(|answer| OnceResult { seconds, answer, notices })
}

/// Makes the session report its pending statistics, which it otherwise delays. PostgreSQL before version 15
/// cannot be asked to: it reports at the end of a transaction, at most every half second.
fn flush_statistics(connection: &mut Connection, can_flush: bool) {
    if !can_flush {
        std::thread::sleep(STATISTICS_DELAY);
    }
    let sql = if can_flush { "select pg_stat_force_next_flush()" } else { "select 1" };
    // If the connection is lost here, the next statement reports it.
    let _ = connection.execute(sql);
}
