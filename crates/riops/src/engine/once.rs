//! A stage that is one statement, run once on a connection that is there already.
//!
//! Names no workload: what the answer means is the caller's business.

use std::time::Instant;

use crate::probe::Probe;
use crate::target::connection::Answer;
use crate::target::{Connection, ConnectionError};

/// Notices that are kept; a statement of riops's has a handful.
const NOTICES_MAX: usize = 1_000;

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
    let start = Instant::now();
    let answer = connection.query_with_notices(sql, &mut |notice| {
        if notices.len() < NOTICES_MAX {
            notices.push(notice.message.to_owned());
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    probe.end();
    if answer.is_ok() {
        // A session hands in what it has counted when it feels like it: it is asked to, where it can be.
        let _ = connection.execute("select pg_stat_force_next_flush()");
    }
    probe.close(&[]);
    answer.map(|answer| OnceResult { seconds, answer, notices })
}
