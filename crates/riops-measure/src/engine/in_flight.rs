//! A transaction in flight, and what an interactive one does between two turns.

use riops_wire::backend::ServerError;

use crate::workload::effects::TransactionEffects;
use crate::workload::transaction::{Transaction, TransactionOutcome};
use crate::workload::turn::ShellCommand;
use riops_model::record::Queries;
use riops_model::units::Nanos;

/// A transaction in flight, from its intended start to its end, including all attempts.
///
/// The fields stay in their declared order (`repr(C)`): the fields that every transaction uses are in the middle, in
/// few cache lines.
#[derive(Debug)]
#[repr(C)]
pub(super) struct InFlight {
    /// The outcome after the last completed step, if any. A step may still fail at the Sync, where it commits.
    completed: TransactionOutcome,
    pub(super) outcome: TransactionOutcome,
    /// Number of the transaction in its session, from 0.
    pub(super) id: u64,
    pub(super) intended: Nanos,
    /// Time of the first send.
    pub(super) started: Nanos,
    /// Time of the last send.
    pub(super) attempt_started: Nanos,
    pub(super) queries: Queries,
    pub(super) step: usize,
    pub(super) retries: u32,
    /// Whether it counts toward the requested number of transactions or rows.
    pub(super) claimed: bool,
    /// Whether the last attempt was rolled back explicitly, which proves that it changed nothing.
    pub(super) rolled_back: bool,
    has_completed: bool,
    pub(super) tx: Transaction,
    /// Time at which the current turn of an interactive transaction began.
    pub(super) turn_started: Nanos,
}

impl InFlight {
    pub(super) fn new(tx: Transaction) -> Self {
        Self {
            completed: TransactionOutcome::default(),
            outcome: TransactionOutcome::default(),
            id: 0,
            intended: Nanos(0),
            started: Nanos(0),
            attempt_started: Nanos(0),
            queries: Queries::default(),
            step: 0,
            retries: 0,
            claimed: false,
            rolled_back: false,
            has_completed: false,
            tx,
            turn_started: Nanos(0),
        }
    }

    /// Starts the transaction that the generator has written, the session's transaction `id`.
    pub(super) fn start(&mut self, id: u64, intended: Nanos, now: Nanos, claimed: bool) {
        self.id = id;
        self.intended = intended;
        self.started = now;
        self.claimed = claimed;
        self.retries = 0;
        self.step = 0;
        self.has_completed = false;
        self.queries = Queries::default();
    }

    /// Forgets the steps of earlier attempts: the generator has written another transaction.
    pub(super) fn forget_steps(&mut self) {
        self.step = 0;
        self.has_completed = false;
    }

    /// Starts an attempt from the first step, or from the failed step if each step commits separately.
    #[inline]
    pub(super) fn start_attempt(&mut self, now: Nanos) {
        self.attempt_started = now;
        self.rolled_back = false;
        if !self.tx.is_autocommit() {
            self.step = 0;
            self.has_completed = false;
        }
        // The retry returns all replies to the failed step again.
        if self.has_completed {
            self.outcome.copy_from(&self.completed);
        } else {
            self.outcome.clear();
        }
        self.tx.rewind();
    }

    /// Excludes time that the transaction did not spend on the server.
    pub(super) fn exclude(&mut self, time: Nanos) {
        for start in [&mut self.intended, &mut self.started, &mut self.attempt_started] {
            *start = start.after(time);
        }
    }

    /// Returns the bytes to send now: the current step, or all steps of a turn.
    #[inline]
    pub(super) fn to_send(&self) -> &[u8] {
        if self.tx.is_interactive() { self.tx.bytes() } else { self.tx.step(self.step).0 }
    }

    /// Continues with the next step.
    pub(super) fn complete_step(&mut self) {
        self.step += 1;
        self.completed.copy_from(&self.outcome);
        self.has_completed = true;
    }

    /// Skips the failed statement of a transaction whose statements commit separately. Returns whether
    /// another statement follows.
    pub(super) fn skip_step(&mut self) -> bool {
        if !self.has_completed {
            self.completed.clear();
            self.has_completed = true;
        }
        self.step += 1;
        self.completed.complete += 1;
        self.outcome.copy_from(&self.completed);
        self.step < self.tx.steps()
    }

    /// Returns the effects of the completed steps.
    pub(super) fn completed_effects(&self) -> TransactionEffects {
        if self.has_completed { self.completed.effects } else { TransactionEffects::default() }
    }

    /// Returns whether the transaction may have been committed without an acknowledgment.
    pub(super) fn may_be_committed(&self) -> bool {
        if self.rolled_back {
            return false;
        }
        if self.tx.is_interactive() {
            return self.tx.may_commit();
        }
        if self.tx.is_autocommit() {
            return self.tx.step_effects(self.step).is_some();
        }
        self.step + 1 >= self.tx.steps()
    }

    /// Returns the effects that are unknown if the reply to the current step is lost.
    pub(super) fn effects_in_doubt(&self) -> TransactionEffects {
        if self.tx.is_autocommit() {
            // Earlier statements are acknowledged, later ones were not sent.
            return self.tx.step_effects(self.step).unwrap_or_default();
        }
        self.tx.expected_effects()
    }
}

/// Result of the start of a transaction.
#[derive(Debug)]
pub(super) enum Begun {
    /// The transaction will be sent.
    Sent,
    /// The generator has no more transactions.
    NoMore,
    /// The transaction is interactive.
    Interactive(Continued),
}

/// Next action of an interactive transaction.
#[derive(Debug)]
pub(super) enum Continued {
    /// Something will be sent.
    Sent,
    /// It is paused for this time.
    Sleeping(Nanos),
    /// It is paused until the command has ended.
    InShell(u64, Box<ShellCommand>),
    /// It has succeeded.
    Ended(Box<InFlight>),
    /// It has failed without the server.
    Failed(Box<InFlight>, Box<ServerError>),
}

/// The end of an interactive transaction that has sent nothing. Other sessions are served before the next one.
pub(super) enum Deferred {
    /// It succeeded: the session continues with the next one.
    Next(usize),
    /// It failed.
    Failed(usize, Box<InFlight>, Box<ServerError>),
}
