//! The words of `ping`.

use super::super::sections::next::{Commands, Hint};
use super::Words;
use crate::plan::ping::{PingRun, PingStatement};
use crate::record::{Record, StageRecord};

impl Words for PingRun {
    fn work(&self) -> String {
        match self.statement {
            PingStatement::Select1 => "round trips of select 1",
            PingStatement::Empty => "round trips of an empty query",
            PingStatement::Sync => "round trips of a lone Sync",
        }
        .to_owned()
    }

    fn headline(&self) -> &'static str {
        "ping"
    }

    fn counts_transactions(&self) -> bool {
        true
    }

    fn latency_of(&self, _: &StageRecord) -> String {
        "round trip".to_owned()
    }

    fn proof(&self, _: &Record) -> &'static str {
        match self.statement {
            PingStatement::Select1 => "every reply had its row",
            PingStatement::Empty | PingStatement::Sync => "every message was answered",
        }
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        match self.statement {
            PingStatement::Sync => Vec::new(),
            _ => vec![commands.same("--statement sync", "the floor of the protocol")],
        }
    }
}
