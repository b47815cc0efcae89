//! Interactive transactions of a session, turn by turn, and transactions that wait or are done.

use riops_wire::backend::ServerError;

use super::{Session, SessionError};
use crate::engine::in_flight::{Continued, InFlight};
use crate::workload::turn::{ShellOutput, Turn};
use riops_model::units::Nanos;

impl Session {
    /// Continues an interactive transaction, after its beginning, a turn or a pause.
    pub(in crate::engine) fn proceed(
        &mut self,
        mut flight: Box<InFlight>,
        now: Nanos,
        output: Option<&ShellOutput>,
    ) -> Result<Continued, SessionError> {
        match self.answers.generator.proceed(&mut flight.tx, self.in_block, output) {
            Turn::Send => {
                if let Some(error) = flight.tx.error() {
                    return Err(SessionError::protocol(error));
                }
                flight.step = 0;
                flight.turn_started = now;
                self.answers.in_flight.push(flight);
                self.send_step()?;
                Ok(Continued::Sent)
            }
            Turn::Sleep(time) => {
                flight.turn_started = now;
                self.paused = Some(flight);
                Ok(Continued::Sleeping(time))
            }
            Turn::Shell(command) => {
                flight.turn_started = now;
                let id = flight.id;
                self.paused = Some(flight);
                Ok(Continued::InShell(id, command))
            }
            Turn::End => Ok(Continued::Ended(flight)),
            Turn::Fail(error) if self.in_block => {
                self.answers.in_flight.push(flight);
                self.answers.rolled_back = Some(error);
                self.send_query("rollback")?;
                Ok(Continued::Sent)
            }
            Turn::Fail(error) => Ok(Continued::Failed(flight, error)),
        }
    }

    /// Starts another attempt of an interactive transaction.
    pub(in crate::engine) fn repeat(
        &mut self,
        mut flight: Box<InFlight>,
        now: Nanos,
    ) -> Result<Continued, SessionError> {
        flight.start_attempt(now);
        self.answers.generator.restart(&mut flight.tx);
        self.proceed(flight, now, None)
    }

    /// Starts another attempt of a transaction: with the same bytes, or with new random values if `redraw`.
    pub(in crate::engine) fn resend(
        &mut self,
        mut flight: Box<InFlight>,
        redraw: bool,
        now: Nanos,
    ) -> Result<(), SessionError> {
        if redraw && self.answers.generator.next(&mut flight.tx) {
            if let Some(error) = flight.tx.error() {
                return Err(SessionError::protocol(error));
            }
            flight.forget_steps();
        }
        self.queue(flight, now)
    }

    /// Passes an error of an attempt to the generator.
    pub(in crate::engine) fn note_error(
        &mut self,
        flight: &InFlight,
        error: &ServerError,
        is_repeated: bool,
    ) {
        self.answers.generator.failed(&flight.tx, error, is_repeated);
    }

    /// Adds the place of the statement in its script to an error of the server.
    pub(in crate::engine) fn add_place(&self, flight: &InFlight, error: &mut ServerError) {
        // An error of the script itself has no severity, and has its place.
        let is_placed = error.severity.is_empty();
        if let Some(place) = self.answers.generator.place(&flight.tx).filter(|_| !is_placed) {
            error.message = format!("{place}: {}", error.message);
        }
    }

    /// Takes a transaction that waits for its retry.
    pub(in crate::engine) fn take_postponed(&mut self, transaction: u64) -> Option<Box<InFlight>> {
        let position = self.postponed.iter().position(|flight| flight.id == transaction)?;
        self.postponed.remove(position)
    }

    /// Stores the memory of a completed transaction for reuse.
    #[inline]
    pub(in crate::engine) fn recycle(&mut self, flight: Box<InFlight>) {
        self.spare.push(flight);
    }
}
