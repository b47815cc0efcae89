//! Reporting of `point`.

use crate::document::{Document, Hint};
use crate::words::Words;
use crate::words::common::{Counted, keys_text, ysql_bench};
use crate::words::next::Commands;
use riops_model::figure::Summary;
use riops_model::plan::PointRun;
use riops_model::record::{Record, StageRecord};

impl Words for PointRun {
    fn work(&self) -> String {
        let operations = match self.op.update_percent {
            0 => "selects of one row by primary key".to_owned(),
            100 => "updates of one row by primary key".to_owned(),
            update => {
                format!("{}% selects and {update}% updates of one row by primary key", 100 - update)
            }
        };
        let length = self.field_length.map_or_else(String::new, |length| {
            format!("; updated columns have {length} characters")
        });
        format!("{operations}{length}{}", keys_text(self.distribution))
    }

    fn totals(&self, document: &mut Document, summary: &Summary<'_>) {
        let counted = Counted {
            unit: "statement",
            total: summary.stage.statements,
            of_session: |operation| operation.transactions,
            batch: None,
            non_transactional: self.non_transactional,
        };
        ysql_bench(document, summary, &counted);
    }

    fn latency_of(&self, _: &StageRecord) -> String {
        "statement".to_owned()
    }

    fn checked(&self, _: &Record) -> &'static str {
        "every statement returned its row, and the table contains all rows"
    }

    fn replies(&self) -> &'static str {
        "every statement returned its row"
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        if self.updates() {
            return Vec::new();
        }
        vec![commands.same("--op mixed:90/10", "selects and updates")]
    }
}
