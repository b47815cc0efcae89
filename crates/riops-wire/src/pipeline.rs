//! Assigns replies to requests when several requests are sent before the first reply arrives.
//!
//! A batch is everything up to one Sync, or one simple query. The server answers each batch with
//! exactly one ReadyForQuery and skips the rest of a batch after an error. This module only counts: it
//! does not inspect statements or store rows.

use std::collections::VecDeque;

use crate::backend::{Columns, Fields, Message};
use crate::reply::Reply;

/// Maximum number of batches in flight. More would only hide the server's latency from the caller.
pub const BATCHES_MAX: usize = 64;

/// Stands for an unknown number of statements in a batch: a query whose text the client has not parsed.
pub const ANY_STATEMENTS: u32 = u32::MAX;

/// Meaning of a server message for the requests in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// An answer to a statement of the current batch; the command tag of an empty statement is empty.
    Reply(Reply<'a>),
    /// A statement failed; the server skips the rest of its batch.
    Failed(Fields<'a>),
    /// A notice or a warning.
    Notice(Fields<'a>),
    /// The columns of the result that follows, or of a described statement.
    Columns(Columns<'a>),
    /// The server waits for the data of a COPY FROM STDIN.
    CopyIn,
    /// A changed setting, a notification, or a reply without a result: to Parse, Bind, Describe, Close, or COPY TO
    /// STDOUT.
    Other,
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
        if 1 + self.later.len() == BATCHES_MAX {
            return Err(PipelineError::TooMany);
        }
        self.later.push_back(statements);
        Ok(())
    }

    /// Returns whether no batch is in flight.
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
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
                self.current = self.later.pop_front();
                self.answered = 0;
                self.failed = false;
                true
            }
        }
    }

    /// Processes the next message from the server.
    ///
    /// # Errors
    /// Returns [`PipelineError`] if the message does not match a request.
    pub fn receive<'a>(&mut self, message: &Message<'a>) -> Result<Event<'a>, PipelineError> {
        let unexpected = |what| Err(PipelineError::Unexpected(what));
        let reply = match message {
            Message::DataRow(row) => Reply::Row(*row),
            Message::CommandComplete(tag) => Reply::Complete(tag),
            Message::EmptyQueryResponse => Reply::Complete(""),
            Message::PortalSuspended => Reply::Complete("SUSPENDED"),
            Message::ReadyForQuery(status) => Reply::Ready(*status),
            Message::ErrorResponse(fields) => {
                // Without a request in flight, this is a shutdown message (57P01): an error of the
                // connection, not of a statement.
                if !self.is_idle() && self.failed {
                    return unexpected("a second error");
                }
                self.failed = true;
                return Ok(Event::Failed(*fields));
            }
            Message::NoticeResponse(fields) => return Ok(Event::Notice(*fields)),
            Message::ParameterStatus { .. } | Message::NotificationResponse => {
                return Ok(Event::Other);
            }
            Message::RowDescription(columns) if !self.is_idle() => {
                return Ok(Event::Columns(*columns));
            }
            Message::CopyInResponse if !self.is_idle() => return Ok(Event::CopyIn),
            Message::BindComplete
            | Message::ParseComplete
            | Message::CloseComplete
            | Message::NoData
            | Message::ParameterDescription
            | Message::CopyOutResponse
            | Message::CopyData(_)
            | Message::CopyDone
                if !self.is_idle() =>
            {
                return Ok(Event::Other);
            }
            _ => return unexpected("a message that does not belong to any request"),
        };
        if self.accept(&reply) {
            return Ok(Event::Reply(reply));
        }
        match (reply, self.current) {
            (Reply::Ready(_), Some(sent)) => {
                Err(PipelineError::Missing { answered: self.answered, sent })
            }
            (Reply::Ready(_), None) => unexpected("a ReadyForQuery"),
            (Reply::Row(_), _) => unexpected("a row"),
            (Reply::Complete(_) | Reply::Bound, _) => unexpected("a completion"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Row, TransactionStatus};
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
            let mut pipeline = Pipeline::default();
            for (statements, _) in &batches {
                pipeline.sent(*statements).unwrap();
            }
            for (statements, failing) in &batches {
                let answered = (*statements).min(*failing);
                for _ in 0..answered {
                    let event = pipeline.receive(&Message::CommandComplete("SELECT 1")).unwrap();
                    prop_assert_eq!(event, Event::Reply(Reply::Complete("SELECT 1")));
                }
                if failing < statements {
                    let event = pipeline.receive(&error_message()).unwrap();
                    prop_assert!(matches!(event, Event::Failed(_)));
                }
                prop_assert_eq!(pipeline.receive(&READY), Ok(Event::Reply(Reply::Ready(TransactionStatus::Idle))));
            }
            prop_assert!(pipeline.is_idle());
        }
    }

    proptest! {
        #[test]
        fn accepts_a_reply_if_and_only_if_it_receives_it_without_an_error(
            batches in prop::collection::vec(0u32..3, 0..3),
            kinds in prop::collection::vec(0u8..5, 0..12),
        ) {
            let (mut direct, mut other) = (Pipeline::default(), Pipeline::default());
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
                        let failed = [&mut direct, &mut other].map(|pipeline| pipeline.receive(&error_message()).is_ok());
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
        let mut pipeline = Pipeline::default();
        assert!(pipeline.receive(&READY).is_err());
        assert!(pipeline.receive(&Message::CommandComplete("SELECT 1")).is_err());
        pipeline.sent(1).unwrap();
        assert_eq!(pipeline.receive(&READY), Err(PipelineError::Missing { answered: 0, sent: 1 }));
    }

    #[test]
    fn a_batch_of_unknown_length_ends_with_any_number_of_replies() {
        for answered in 0..3 {
            let mut pipeline = Pipeline::default();
            pipeline.sent(ANY_STATEMENTS).unwrap();
            for _ in 0..answered {
                assert!(pipeline.accept(&Reply::Complete("SELECT 1")));
            }
            assert!(pipeline.accept(&Reply::Ready(TransactionStatus::Idle)) && pipeline.is_idle());
        }
    }

    #[test]
    fn limits_the_number_of_batches_in_flight() {
        let mut pipeline = Pipeline::default();
        for _ in 0..BATCHES_MAX {
            pipeline.sent(1).unwrap();
        }
        assert_eq!(pipeline.sent(1), Err(PipelineError::TooMany));
    }
}
