//! Assigns replies to requests when several requests are sent before the first reply arrives.
//!
//! A batch is everything up to one Sync, or one simple query. The server answers each batch with
//! exactly one ReadyForQuery and skips the rest of a batch after an error. This module only counts: it
//! does not inspect statements or store rows.

use std::collections::VecDeque;

use crate::backend::{Columns, Fields, Message, Row, TransactionStatus};
use crate::reply::Reply;

/// Maximum number of batches in flight. More would only hide the server's latency from the caller.
pub const BATCHES_MAX: usize = 64;

/// Stands for an unknown number of statements in a batch: a query whose text the client has not parsed.
pub const ANY_STATEMENTS: u32 = u32::MAX;

/// Meaning of a server message for the requests in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A row of a statement in the current batch.
    Row {
        /// Position of the statement in its batch, from 0.
        statement: u32,
        /// The row.
        row: Row<'a>,
    },
    /// A statement completed.
    Complete {
        /// Position of the statement in its batch, from 0.
        statement: u32,
        /// Command tag such as `SELECT 1` or `UPDATE 5`; empty for an empty statement.
        tag: &'a str,
    },
    /// A statement failed; the server skips the rest of its batch.
    Failed {
        /// Position of the statement in its batch, from 0.
        statement: u32,
        /// Error fields sent by the server.
        fields: Fields<'a>,
    },
    /// The current batch is complete.
    Ready(TransactionStatus),
    /// An asynchronous message: a notice, a changed setting, or a notification.
    Asynchronous,
    /// A notice or a warning.
    Notice(Fields<'a>),
    /// The columns of the result that follows, or of a described statement.
    Columns(Columns<'a>),
    /// The server waits for the data of a COPY FROM STDIN.
    CopyIn,
    /// A reply without a result: to Parse, Bind, Describe, Close, or COPY TO STDOUT.
    Step,
}

/// A server reply that does not match the requests. The connection cannot be used any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// An unexpected reply: no request in flight, too many replies, or a reply of the wrong kind.
    #[error("the server sent {0} unexpectedly")]
    Unexpected(&'static str),
    /// The batch ended before all its statements were answered.
    #[error("the server answered only {answered} of {sent} statements")]
    Missing {
        /// Number of statements answered.
        answered: u32,
        /// Number of statements sent.
        sent: u32,
    },
    /// Too many batches in flight.
    #[error("more than {BATCHES_MAX} batches in flight")]
    TooMany,
}

/// Requests in flight on one connection. Small, because there is one for each session.
#[derive(Debug, Default)]
pub struct Pipeline {
    /// Number of statements in the oldest batch; `None` if no batch is in flight.
    current: Option<u32>,
    answered: u32,
    failed: bool,
    /// Number of statements in each later batch, oldest first.
    later: VecDeque<u32>,
}

impl Pipeline {
    /// Creates a pipeline without requests in flight.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that a batch of `statements` was sent, including its Sync.
    ///
    /// # Errors
    /// Returns [`PipelineError::TooMany`] if [`BATCHES_MAX`] batches are in flight.
    #[inline]
    pub fn sent(&mut self, statements: u32) -> Result<(), PipelineError> {
        if self.current.is_none() {
            self.current = Some(statements);
            return Ok(());
        }
        if self.batches() == BATCHES_MAX {
            return Err(PipelineError::TooMany);
        }
        self.later.push_back(statements);
        Ok(())
    }

    /// Returns whether no batch is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Returns the number of batches in flight.
    #[must_use]
    pub fn batches(&self) -> usize {
        usize::from(self.current.is_some()) + self.later.len()
    }

    /// Processes a reply. Returns whether it belongs to a request; if not, nothing has changed, and
    /// [`Self::receive`] returns the reason.
    #[inline]
    pub fn accept(&mut self, reply: &Reply<'_>) -> bool {
        let Some(sent) = self.current else {
            return false;
        };
        let is_open = self.answered < sent && !self.failed;
        match reply {
            Reply::Bound => true,
            Reply::Row(_) => is_open,
            Reply::Complete(_) => {
                self.answered += u32::from(is_open);
                is_open
            }
            Reply::Ready(_) => {
                if is_open && sent != ANY_STATEMENTS {
                    return false;
                }
                self.end_batch();
                true
            }
        }
    }

    #[inline]
    fn end_batch(&mut self) {
        self.current = self.later.pop_front();
        self.answered = 0;
        self.failed = false;
    }

    /// Processes the next message from the server.
    ///
    /// # Errors
    /// Returns [`PipelineError`] if the message does not match a request.
    pub fn receive<'a>(&mut self, message: &Message<'a>) -> Result<Event<'a>, PipelineError> {
        match message {
            Message::DataRow(row) => {
                let statement = self.current("a row")?;
                Ok(Event::Row { statement, row: *row })
            }
            Message::CommandComplete(tag) => self.complete(tag),
            Message::EmptyQueryResponse => self.complete(""),
            Message::PortalSuspended => self.complete("SUSPENDED"),
            Message::ErrorResponse(fields) => {
                // Without a request in flight, this is a shutdown message (57P01): an error of the
                // connection, not of a statement.
                if !self.is_idle() && self.failed {
                    return Err(PipelineError::Unexpected("a second error"));
                }
                self.failed = true;
                Ok(Event::Failed { statement: self.answered, fields: *fields })
            }
            Message::ReadyForQuery(status) => self.ready(*status),
            Message::NoticeResponse(fields) => Ok(Event::Notice(*fields)),
            Message::ParameterStatus { .. } | Message::NotificationResponse => {
                Ok(Event::Asynchronous)
            }
            Message::RowDescription(columns) if !self.is_idle() => Ok(Event::Columns(*columns)),
            Message::CopyInResponse(_) if !self.is_idle() => Ok(Event::CopyIn),
            Message::BindComplete
            | Message::ParseComplete
            | Message::CloseComplete
            | Message::NoData
            | Message::ParameterDescription(_)
            | Message::CopyOutResponse(_)
            | Message::CopyData(_)
            | Message::CopyDone
                if !self.is_idle() =>
            {
                Ok(Event::Step)
            }
            _ => Err(PipelineError::Unexpected("a message that does not belong to any request")),
        }
    }

    /// Returns the position of the statement being answered, if any.
    fn current(&self, what: &'static str) -> Result<u32, PipelineError> {
        match self.current {
            Some(sent) if self.answered < sent && !self.failed => Ok(self.answered),
            _ => Err(PipelineError::Unexpected(what)),
        }
    }

    fn complete<'a>(&mut self, tag: &'a str) -> Result<Event<'a>, PipelineError> {
        let statement = self.current("a completion")?;
        self.answered += 1;
        Ok(Event::Complete { statement, tag })
    }

    fn ready<'a>(&mut self, status: TransactionStatus) -> Result<Event<'a>, PipelineError> {
        let sent = self.current.ok_or(PipelineError::Unexpected("a ReadyForQuery"))?;
        if !self.failed && self.answered < sent && sent != ANY_STATEMENTS {
            return Err(PipelineError::Missing { answered: self.answered, sent });
        }
        self.end_batch();
        Ok(Event::Ready(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const READY: Message<'static> = Message::ReadyForQuery(TransactionStatus::Idle);

    fn error_message() -> Message<'static> {
        Message::ErrorResponse(Fields::decode(&[0]).unwrap())
    }

    proptest! {
        #[test]
        fn assigns_replies_to_batches_in_order_after_any_failure(
            batches in prop::collection::vec((0u32..5, 0u32..8), 1..BATCHES_MAX),
        ) {
            let mut pipeline = Pipeline::new();
            for (statements, _) in &batches {
                pipeline.sent(*statements).unwrap();
            }
            for (statements, failing) in &batches {
                let answered = (*statements).min(*failing);
                for statement in 0..answered {
                    let event = pipeline.receive(&Message::CommandComplete("SELECT 1")).unwrap();
                    prop_assert_eq!(event, Event::Complete { statement, tag: "SELECT 1" });
                }
                if failing < statements {
                    let event = pipeline.receive(&error_message()).unwrap();
                    let failed = matches!(event, Event::Failed { statement, .. } if statement == *failing);
                    prop_assert!(failed);
                }
                prop_assert_eq!(pipeline.receive(&READY), Ok(Event::Ready(TransactionStatus::Idle)));
            }
            prop_assert!(pipeline.is_idle());
        }
    }

    proptest! {
        #[test]
        fn accepts_what_it_receives_without_an_error(
            batches in prop::collection::vec(0u32..3, 0..3),
            kinds in prop::collection::vec(0u8..5, 0..12),
        ) {
            let (mut direct, mut other) = (Pipeline::new(), Pipeline::new());
            for statements in batches {
                direct.sent(statements).unwrap();
                other.sent(statements).unwrap();
            }
            let body = [0, 0];
            let row = Row::decode(&body).unwrap();
            for kind in kinds {
                let (reply, message) = match kind {
                    0 => (Reply::Bound, Message::BindComplete),
                    1 => (Reply::Row(row), Message::DataRow(row)),
                    2 => (Reply::Complete("BEGIN"), Message::CommandComplete("BEGIN")),
                    3 => (Reply::Ready(TransactionStatus::Idle), READY),
                    _ => {
                        let failed = [&mut direct, &mut other].map(|each| each.receive(&error_message()).is_ok());
                        prop_assert_eq!(failed[0], failed[1]);
                        continue;
                    }
                };
                prop_assert_eq!(direct.accept(&reply), other.receive(&message).is_ok());
                prop_assert_eq!(format!("{direct:?}"), format!("{other:?}"));
            }
        }
    }

    #[test]
    fn rejects_replies_without_a_request() {
        let mut pipeline = Pipeline::new();
        assert!(pipeline.receive(&READY).is_err());
        assert!(pipeline.receive(&Message::CommandComplete("SELECT 1")).is_err());
        pipeline.sent(1).unwrap();
        assert_eq!(pipeline.receive(&READY), Err(PipelineError::Missing { answered: 0, sent: 1 }));
    }

    #[test]
    fn a_batch_of_unknown_length_ends_with_any_number_of_replies() {
        for answered in 0..3 {
            let mut pipeline = Pipeline::new();
            pipeline.sent(ANY_STATEMENTS).unwrap();
            for _ in 0..answered {
                assert!(pipeline.accept(&Reply::Complete("SELECT 1")));
            }
            assert!(pipeline.accept(&Reply::Ready(TransactionStatus::Idle)) && pipeline.is_idle());
        }
    }

    #[test]
    fn limits_the_number_of_batches_in_flight() {
        let mut pipeline = Pipeline::new();
        for _ in 0..BATCHES_MAX {
            pipeline.sent(1).unwrap();
        }
        assert_eq!(pipeline.sent(1), Err(PipelineError::TooMany));
    }
}
