//! Which reply belongs to which request, when several were sent before the first was answered.
//!
//! A batch is what stands before one Sync (or one simple query); the server answers each batch
//! with exactly one ReadyForQuery, and after an error skips the rest of that batch. This module
//! counts; it looks at no statement and keeps no row.

use crate::backend::{Fields, Message, Row, TransactionStatus};

/// Batches that may be under way at once. More would only hide the server's latency from the one
/// who waits for it.
pub const BATCHES_MAX: usize = 64;

/// What a message from the server means for the requests under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A row of statement `statement` of the current batch, counted from 0.
    Row {
        /// Position of the statement in its batch.
        statement: u32,
        /// The row.
        row: Row<'a>,
    },
    /// A statement is done; the text says how many rows it touched.
    Complete {
        /// Position of the statement in its batch.
        statement: u32,
        /// `SELECT 1`, `UPDATE 5`, …; empty for an empty statement.
        tag: &'a str,
    },
    /// A statement failed; the rest of its batch is not run.
    Failed {
        /// Position of the statement in its batch.
        statement: u32,
        /// What the server says about it.
        fields: Fields<'a>,
    },
    /// The current batch is over.
    Ready(TransactionStatus),
    /// A notice, a changed setting, a notification: no reply to anything.
    Aside,
    /// A step of a request that has no result of its own: Parse, Bind, Describe, Close, COPY.
    Step,
}

/// The server's reply does not fit what was asked. The connection is of no further use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// A reply came while nothing was asked, or one too many, or one of a kind that was not asked.
    #[error("the server sent {0} where none was due")]
    NotDue(&'static str),
    /// The batch ended before all its statements were answered.
    #[error("the server answered {answered} of {asked} statements")]
    Missing {
        /// Statements answered.
        answered: u32,
        /// Statements sent.
        asked: u32,
    },
    /// The caller sends too much at once.
    #[error("more than {BATCHES_MAX} batches under way")]
    TooMany,
}

/// Requests under way on one connection, oldest first.
#[derive(Debug)]
pub struct Pipeline {
    /// Statements of each batch: a ring of fixed size.
    asked: [u32; BATCHES_MAX],
    first: usize,
    batches: usize,
    answered: u32,
    failed: bool,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self { asked: [0; BATCHES_MAX], first: 0, batches: 0, answered: 0, failed: false }
    }
}

impl Pipeline {
    /// Nothing under way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that a batch of `statements` was sent, with its Sync.
    ///
    /// # Errors
    /// [`PipelineError::TooMany`]
    pub fn sent(&mut self, statements: u32) -> Result<(), PipelineError> {
        let position = (self.first + self.batches) % BATCHES_MAX;
        match self.asked.get_mut(position) {
            Some(slot) if self.batches < BATCHES_MAX => {
                *slot = statements;
                self.batches += 1;
                Ok(())
            }
            _ => Err(PipelineError::TooMany),
        }
    }

    /// Whether every batch was answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.batches == 0
    }

    /// Batches that were sent and are not over.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// Takes the next message of the server.
    ///
    /// # Errors
    /// [`PipelineError`] where the message answers nothing that was asked.
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
                // With nothing under way this is the server's farewell (57P01), which is an
                // error of the connection and not of a statement.
                if !self.is_idle() && self.failed {
                    return Err(PipelineError::NotDue("a second error"));
                }
                self.failed = true;
                Ok(Event::Failed { statement: self.answered, fields: *fields })
            }
            Message::ReadyForQuery(status) => self.ready(*status),
            Message::NoticeResponse(_)
            | Message::ParameterStatus { .. }
            | Message::NotificationResponse => Ok(Event::Aside),
            Message::BindComplete
            | Message::ParseComplete
            | Message::CloseComplete
            | Message::NoData
            | Message::ParameterDescription(_)
            | Message::RowDescription(_)
            | Message::CopyInResponse(_)
            | Message::CopyOutResponse(_)
            | Message::CopyData(_)
            | Message::CopyDone
                if !self.is_idle() =>
            {
                Ok(Event::Step)
            }
            _ => Err(PipelineError::NotDue("a message of another conversation")),
        }
    }

    /// Statements of the batch that is being answered.
    fn asked(&self) -> Option<u32> {
        if self.is_idle() {
            return None;
        }
        self.asked.get(self.first).copied()
    }

    /// The statement that is being answered, where one is.
    fn current(&self, what: &'static str) -> Result<u32, PipelineError> {
        match self.asked() {
            Some(asked) if self.answered < asked && !self.failed => Ok(self.answered),
            _ => Err(PipelineError::NotDue(what)),
        }
    }

    fn complete<'a>(&mut self, tag: &'a str) -> Result<Event<'a>, PipelineError> {
        let statement = self.current("a completion")?;
        self.answered += 1;
        Ok(Event::Complete { statement, tag })
    }

    fn ready<'a>(&mut self, status: TransactionStatus) -> Result<Event<'a>, PipelineError> {
        let asked = self.asked().ok_or(PipelineError::NotDue("a ReadyForQuery"))?;
        if !self.failed && self.answered < asked {
            return Err(PipelineError::Missing { answered: self.answered, asked });
        }
        self.first = (self.first + 1) % BATCHES_MAX;
        self.batches -= 1;
        self.answered = 0;
        self.failed = false;
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
        fn each_batch_is_answered_in_order_whatever_fails_in_it(
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

    #[test]
    fn a_reply_to_nothing_is_an_error() {
        let mut pipeline = Pipeline::new();
        assert!(pipeline.receive(&READY).is_err());
        assert!(pipeline.receive(&Message::CommandComplete("SELECT 1")).is_err());
        pipeline.sent(1).unwrap();
        assert_eq!(pipeline.receive(&READY), Err(PipelineError::Missing { answered: 0, asked: 1 }));
    }

    #[test]
    fn the_number_of_batches_under_way_is_bounded() {
        let mut pipeline = Pipeline::new();
        for _ in 0..BATCHES_MAX {
            pipeline.sent(1).unwrap();
        }
        assert_eq!(pipeline.sent(1), Err(PipelineError::TooMany));
    }
}
