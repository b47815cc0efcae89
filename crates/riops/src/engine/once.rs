//! A stage that is one statement, run once on a connection that is there already.
//!
//! Names no workload: what the answer means is the caller's business.

use std::time::{Duration, Instant};

use crate::probe::Probe;
use crate::server::connection::{Answer, Notice};
use crate::server::{Connection, ConnectionError};

/// Notices that are kept; a statement of riops's has a handful.
const NOTICES_MAX: usize = 1_000;

/// How long a session of an older server keeps its counters to itself.
const HAND_IN: Duration = Duration::from_millis(600);

/// What came of a statement.
#[derive(Debug)]
pub struct OnceResult {
    /// From the send to the end of the reply.
    pub seconds: f64,
    /// Its rows and tags.
    pub answer: Answer,
    /// The texts of its notices.
    pub notices: Vec<String>,
}

/// Runs a statement between the two ends of a probe.
///
/// # Errors
/// [`ConnectionError`]; [`ConnectionError::Interrupted`] where the user did not want to wait. The probe is
/// closed in any case.
pub fn run_once(
    connection: &mut Connection,
    sql: &str,
    probe: &mut Probe<'_>,
) -> Result<OnceResult, ConnectionError> {
    let mut notices = Vec::new();
    probe.open();
    probe.start();
    // The server's process has been idle while the probes looked: it is woken, as it would be where statements
    // follow each other.
    let woken = connection.execute("select 1");
    let start = Instant::now();
    let mut hear = |notice: Notice<'_>| {
        if notices.len() < NOTICES_MAX {
            notices.push(notice.message.to_owned());
        }
    };
    let answer = woken.and_then(|()| connection.query_with_notices(sql, &mut hear));
    let seconds = start.elapsed().as_secs_f64();
    probe.end();
    if answer.is_ok() {
        hand_in(connection, probe.can_flush());
    }
    probe.close(&[]);
    answer.map(|answer| OnceResult { seconds, answer, notices })
}

/// A session hands in what it has counted when it feels like it: it is asked to, where it can be. Before
/// PostgreSQL 15 it does so at the end of a transaction, half a second after it did so last.
fn hand_in(connection: &mut Connection, can_flush: bool) {
    if !can_flush {
        std::thread::sleep(HAND_IN);
    }
    let sql = if can_flush { "select pg_stat_force_next_flush()" } else { "select 1" };
    // Where it fails, the next statement says so.
    let _ = connection.execute(sql);
}
