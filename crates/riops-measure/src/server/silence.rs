//! How long a server has not replied.

use std::time::{Duration, Instant};

/// A silent server is checked after this multiple of the connect timeout: by default 30 s, so that the check costs
/// nothing that matters.
const CONNECT_TIMEOUTS: u32 = 3;
/// Number of characters of the statement that an error shows.
const STATEMENT_CHARACTERS: usize = 200;
/// Number of messages after which an interrupt is noticed although the server never pauses.
const STREAMED_MESSAGES: u32 = 1024;

/// How long the server has been silent, and during which statement.
#[derive(Debug)]
pub(super) struct Silence {
    /// `None` if the server is not checked: it may be silent for ever.
    pub(super) max: Option<Duration>,
    since: Instant,
    checked: Instant,
    /// Whether the last check found that no reply will come.
    is_suspected: bool,
    statement: String,
    messages: u32,
}

impl Silence {
    pub(super) fn new(connect_timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            max: Some(connect_timeout * CONNECT_TIMEOUTS),
            since: now,
            checked: now,
            is_suspected: false,
            statement: String::new(),
            messages: 0,
        }
    }

    /// Notes the statement that is sent.
    pub(super) fn begin(&mut self, sql: &str) {
        self.end();
        self.messages = 0;
        self.statement.clear();
        let words = sql.split_whitespace().flat_map(|word| word.chars().chain([' ']));
        self.statement.extend(words.take(STATEMENT_CHARACTERS));
    }

    /// Whether the server must be checked.
    pub(super) fn is_too_long(&self) -> bool {
        let is_over = |max: Duration| self.checked.elapsed() >= max;
        self.max.is_some_and(is_over) && !self.statement.is_empty()
    }

    /// Returns the start of the statement, and how long the server has been silent.
    pub(super) fn describe(&self) -> (String, u64) {
        (self.statement.trim_end().to_owned(), self.since.elapsed().as_secs())
    }

    /// Notes that the server has sent or accepted something.
    pub(super) fn end(&mut self) {
        self.since = Instant::now();
        self.note_check(true);
    }

    /// Notes the result of a check. Returns whether two in a row found that no reply will come: the first time, the reply
    /// may be on its way, or the server may be too busy for another connection.
    pub(super) fn note_check(&mut self, responds: bool) -> bool {
        self.checked = Instant::now();
        std::mem::replace(&mut self.is_suspected, !responds) && !responds
    }

    /// Whether many messages have arrived since this was last the case.
    pub(super) fn has_streamed(&mut self) -> bool {
        self.messages += 1;
        if self.messages < STREAMED_MESSAGES {
            return false;
        }
        self.messages = 0;
        true
    }
}
