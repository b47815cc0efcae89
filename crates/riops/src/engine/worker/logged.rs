//! Entries of the log of single transactions that have not succeeded, and its end.

use riops_wire::sqlstate::SqlState;

use super::super::in_flight::InFlight;
use super::super::log_entry::{LogEntry, LoggedOutcome};
use super::super::session::SessionError;
use super::{Clock, Worker};
use crate::units::Nanos;

impl<C: Clock> Worker<C> {
    /// Logs a transaction that failed, if there is a log.
    pub(super) fn log_failure(
        &mut self,
        number: usize,
        flight: &InFlight,
        sqlstate: SqlState,
        now: Nanos,
    ) {
        let outcome = match sqlstate {
            SqlState::SERIALIZATION_FAILURE => LoggedOutcome::SerializationFailure,
            SqlState::DEADLOCK_DETECTED => LoggedOutcome::Deadlock,
            _ => LoggedOutcome::Failed,
        };
        let session = self.share.number(number as u64);
        if let Some(log) = &mut self.log {
            log.add(number, LogEntry::of(flight, session, outcome, now));
        }
    }

    /// Logs a start that was skipped.
    pub(super) fn log_skipped(&mut self, number: usize, operation: Option<usize>, now: Nanos) {
        let session = self.share.number(number as u64);
        if let Some(log) = &mut self.log {
            let entry = LogEntry {
                session,
                transaction: 0,
                operation: operation.unwrap_or(0),
                outcome: LoggedOutcome::Skipped,
                lag: Nanos(0),
                retries: 0,
                end: now,
            };
            log.add(number, entry);
        }
    }

    /// Writes the rest of the log.
    pub(super) fn close_log(&mut self) {
        if let Some(log) = self.log.take()
            && let Err(error) = log.close()
        {
            let error = SessionError::client("cannot write the log", &error);
            self.report.failure.get_or_insert(error);
        }
    }
}
