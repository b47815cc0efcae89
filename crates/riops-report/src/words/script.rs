//! Reporting of `script`.

use crate::document::{Document, Hint};
use crate::latency::latency_cell;
use crate::table::{Table, number_column, text_column};
use crate::words::next::Commands;
use crate::words::{DatasetWords, Words};
use riops_model::figure::Summary;
use riops_model::plan::Protocol;
use riops_model::plan::script::{Builtin, PartitionMethod, ScriptDataset, ScriptRun};
use riops_model::record::checked_statement::{PARAMETER_HINT, is_about_parameters};
use riops_model::record::{CommandRecord, ErrorEntry, Record};
use riops_model::units::format::{count, joined, number_of, percent};
use riops_model::units::text::shortened;

/// Maximum number of commands in the text; the record has all.
const COMMANDS_MAX: usize = 40;
/// Maximum number of characters of a command.
const TITLE_MAX: usize = 48;

impl Words for ScriptRun {
    fn work(&self) -> String {
        if let [script] = self.scripts.as_slice() {
            return format!("script {}", script.file_name());
        }
        let sum: u64 = self.scripts.iter().map(|script| u64::from(script.weight)).sum();
        let scripts = self.scripts.iter().map(|script| {
            let share = percent(f64::from(script.weight) / sum.max(1) as f64);
            format!("{} ({share} of the transactions)", script.file_name())
        });
        format!("scripts {}", joined(scripts, ", "))
    }

    fn access_path(&self, expected: &str, _: &Record) -> String {
        joined(expected.lines().map(str::trim), ", ")
    }

    fn measure_name(&self) -> &'static str {
        "TPS"
    }

    fn totals(&self, document: &mut Document, summary: &Summary<'_>) {
        let stage = &summary.stage.session_loop;
        let about_parameters =
            |error: &ErrorEntry| is_about_parameters(&error.sqlstate, &error.sample);
        if summary.record.plan.protocol != Protocol::Simple
            && stage.errors.iter().any(about_parameters)
        {
            document.line("parameters", PARAMETER_HINT);
        }
        let measured: Vec<_> =
            stage.commands.iter().filter(|command| command.is_measured).collect();
        document.table(commands_table(&measured, self.scripts.len() > 1));
        if measured.len() > COMMANDS_MAX {
            let more = count((measured.len() - COMMANDS_MAX) as u64);
            document.line("", format!("and {more} more, in riops runs show --output json"));
        }
    }

    fn checked(&self, _: &Record) -> &'static str {
        "every statement returned its row, and balances and history match the acknowledged transactions"
    }

    fn replies(&self) -> &'static str {
        if self.scripts.iter().all(|script| script.text.is_none()) {
            "every statement returned its row"
        } else {
            "every statement was acknowledged (what they returned is not checked)"
        }
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        let is_default = self.builtins().eq([Builtin::TpcbLike]);
        if is_default {
            vec![commands.same("--builtin select-only", "reads only")]
        } else {
            Vec::new()
        }
    }
}

/// The commands with their latencies and failures.
fn commands_table(commands: &[&CommandRecord], has_scripts: bool) -> Table {
    Table::from_items("commands", commands.iter().take(COMMANDS_MAX), |command| {
        let service = command.service_us.as_ref();
        let failed = command.errors.iter();
        let failed = failed.map(|(sqlstate, errors)| format!("{} × {sqlstate}", count(*errors)));
        let script = if has_scripts { command.script.to_string() } else { String::new() };
        [
            (number_column("script"), script.into()),
            (number_column("number"), command.number.to_string().into()),
            (text_column("command"), shortened(&command.title, TITLE_MAX).into()),
            (number_column("times"), count(service.map_or(0, |us| us.count)).into()),
            (number_column("p50"), latency_cell(service, "p50")),
            (number_column("p99"), latency_cell(service, "p99")),
            (number_column("mean"), latency_cell(service, "mean")),
            (number_column("max"), latency_cell(service, "max")),
            (text_column("failed"), joined(failed, ", ").into()),
        ]
    })
}

impl DatasetWords for ScriptDataset {
    fn text(&self) -> String {
        let method = match self.partition_method {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        };
        let partitions = match self.partitions {
            0 => String::new(),
            count => format!(", {count} {method} partitions"),
        };
        let unlogged = if self.unlogged_tables { ", unlogged" } else { "" };
        let keys = if self.foreign_keys { ", foreign keys" } else { "" };
        let fillfactor = match self.fillfactor {
            100 => String::new(),
            fillfactor => format!(", fillfactor {fillfactor}"),
        };
        let adopted = if self.adopted { ", created by another program" } else { "" };
        let accounts = number_of(self.scale * 100_000, "account");
        let size = format!("pgbench tables of scale {} ({accounts})", count(self.scale));
        format!("{size}{partitions}{unlogged}{keys}{fillfactor}{adopted}")
    }
}
