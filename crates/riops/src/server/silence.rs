//! How long a server has not replied.

use std::time::{Duration, Instant};

/// Number of characters of the statement that an error shows.
const STATEMENT_CHARACTERS: usize = 200;
/// Number of messages after which an interrupt is noticed although the server never pauses.
const STREAMED_MESSAGES: u32 = 1024;

/// How long the server has been silent, and during which statement.
#[derive(Debug)]
pub(super) struct Silence {
    /// `None` if the server is not checked.
    max: Option<Duration>,
    since: Instant,
    statement: String,
    messages: u32,
    is_suspected: bool,
}

/// A silent server is checked after this multiple of the connect timeout: by default 30 s, so that the check costs
/// nothing that matters.
const CONNECT_TIMEOUTS: u32 = 3;

impl Silence {
    pub(super) fn new(connect_timeout: Duration) -> Self {
        let max = Some(connect_timeout * CONNECT_TIMEOUTS);
        Self {
            max,
            since: Instant::now(),
            statement: String::new(),
            messages: 0,
            is_suspected: false,
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

    /// Returns the start of the statement, and how long the server has been silent, if that is too long.
    pub(super) fn exceeded(&self) -> Option<(&str, Duration)> {
        let elapsed = self.since.elapsed();
        let is_exceeded = self.max.is_some_and(|max| elapsed >= max) && !self.statement.is_empty();
        is_exceeded.then(|| (self.statement.trim_end(), elapsed))
    }

    /// Lets the server be silent for ever.
    pub(super) fn allow(&mut self) {
        self.max = None;
    }

    /// Notes that the server has sent or accepted something.
    pub(super) fn end(&mut self) {
        self.since = Instant::now();
        self.is_suspected = false;
    }

    /// Notes that the server seems to have replied, and waits as long again for the reply.
    pub(super) fn suspect(&mut self) {
        self.end();
        self.is_suspected = true;
    }

    pub(super) fn is_suspected(&self) -> bool {
        self.is_suspected
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
