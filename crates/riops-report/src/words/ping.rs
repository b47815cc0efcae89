//! Reporting of `ping`.

use crate::document::Hint;
use crate::words::Words;
use crate::words::next::Commands;
use riops_model::plan::ping::{PingRun, PingStatement};
use riops_model::record::StageRecord;

impl Words for PingRun {
    fn work(&self) -> String {
        match self.statement {
            PingStatement::Select1 => "round trips of SELECT 1",
            PingStatement::Empty => "round trips of an empty query",
            PingStatement::Sync => "round trips of a lone Sync",
        }
        .to_owned()
    }

    fn measure_name(&self) -> &'static str {
        "ping"
    }

    fn latency_of(&self, _: &StageRecord) -> String {
        "round trip".to_owned()
    }

    fn replies(&self) -> &'static str {
        match self.statement {
            PingStatement::Select1 => "every statement returned its row",
            PingStatement::Empty | PingStatement::Sync => "every message got a reply",
        }
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        match self.statement {
            PingStatement::Sync => Vec::new(),
            _ => vec![commands.same("--statement sync", "a round trip without a query")],
        }
    }
}
