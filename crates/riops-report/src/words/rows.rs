//! Reporting of `rows`.

use crate::document::Hint;
use crate::words::common::keys_text;
use crate::words::next::Commands;
use crate::words::{DatasetWords, Words};
use riops_model::plan::{Layout, RowsDataset, RowsRun, Spec as _, UpdateShare};
use riops_model::record::Record;
use riops_model::units::format::{count, number_of};

impl Words for RowsRun {
    fn work(&self) -> String {
        let mut parts = Vec::new();
        let study = self.stages().len() > 1;
        let per_statement = |batch: u64| {
            if study {
                String::new()
            } else {
                format!(", {} per statement", number_of(batch, "row"))
            }
        };
        if self.reads() {
            let kind = if self.index_only { "index-only reads" } else { "random row reads" };
            parts.push(format!("{kind}{}", per_statement(self.batch)));
        }
        if self.updates() {
            let unit = match self.update_share {
                UpdateShare::Rows => "rows",
                UpdateShare::Transactions => "transactions",
            };
            let share = match self.update_percent {
                100 => String::new(),
                percent => format!(" of {percent}% of the {unit}"),
            };
            parts.push(format!("updates{share}{}", per_statement(self.update_batch())));
        }
        let part = |rows| format!(", in the first {} of each table", number_of(rows, "row"));
        let part = self.working_set.map(part).unwrap_or_default();
        format!("{}{part}{}", parts.join("; "), keys_text(self.distribution))
    }

    fn checked(&self, _: &Record) -> &'static str {
        if self.index_only {
            // An index-only update leaves no trace in the rows.
            "every statement returned all its rows, and the tables contain all rows"
        } else {
            "every statement returned all its rows, and every acknowledged change is in the database"
        }
    }

    fn replies(&self) -> &'static str {
        "every statement returned all its rows"
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        let mut hints = Vec::new();
        if !self.updates() {
            hints.push(commands.same("--update-percent 20", "reads and writes"));
        }
        if self.batch > 1 && self.stages().len() == 1 {
            hints.push(commands.same("--batch 1", "one row per statement"));
        }
        hints
    }
}

impl DatasetWords for RowsDataset {
    fn text(&self) -> String {
        let key = if self.primary_key { ", primary key" } else { "" };
        let filler = match self.filler {
            1 => String::new(),
            filler => format!(", filler of {} characters", count(filler.into())),
        };
        let layout = match self.layout {
            Layout::Packed => "",
            Layout::Block => ", one row per block",
        };
        let (tables, rows) = (number_of(self.tables.into(), "table"), count(self.rows));
        format!("{tables} × {rows} rows, {}{key}{layout}{filler}", self.order)
    }

    fn tables(&self) -> u32 {
        self.tables
    }
}
