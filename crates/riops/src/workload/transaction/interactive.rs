//! Interactive transactions: what they send next depends on the replies.

use riops_wire::frontend::{EncodeError, SYNC};

use super::{Step, Transaction};
use crate::plan::Protocol;

impl Transaction {
    /// Begins an interactive transaction of kind `operation`, an index into the operations of the stage.
    pub fn begin_interactive(&mut self, operation: usize) {
        self.begin(operation, 0);
        self.interactive = true;
    }

    /// Begins the next turn, which `command` sends. `may_commit` states whether a lost connection leaves its outcome
    /// unknown.
    pub fn begin_turn(&mut self, command: usize, may_commit: bool) {
        self.bytes.clear();
        self.steps.clear();
        self.command = command;
        self.may_commit = may_commit;
    }

    /// Sets the command to which the current turn belongs.
    pub fn set_command(&mut self, command: usize) {
        self.command = command;
    }

    /// Appends messages that `write` encodes, with this number of statements.
    pub fn append(
        &mut self,
        statements: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) {
        self.statements += 1;
        self.open_statements = self.open_statements.saturating_add(statements);
        if let Err(error) = write(&mut self.bytes) {
            self.note_error(error);
        }
    }

    /// Ends a step of a turn, with a Sync where the protocol has one.
    pub fn end_batch(&mut self) {
        if self.known.protocol() != Protocol::Simple {
            self.bytes.extend_from_slice(&SYNC);
        }
        let statements = std::mem::take(&mut self.open_statements);
        self.steps.push(Step { end: self.bytes.len(), statements, effects: None });
    }

    /// Returns the number of statements of a step.
    #[must_use]
    #[inline]
    pub fn statements_of(&self, step: usize) -> u32 {
        self.steps.get(step).map_or(0, |step| step.statements)
    }

    /// Returns whether it is interactive.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Returns whether the current turn of an interactive transaction may commit.
    #[must_use]
    pub fn may_commit(&self) -> bool {
        self.may_commit
    }

    /// Returns the command that sent the current turn.
    #[must_use]
    pub fn command(&self) -> usize {
        self.command
    }

    /// Returns the protocol that sends it.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.known.protocol()
    }
}
