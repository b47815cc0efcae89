//! Reporting of `script`.

use crate::figure::Summary;
use crate::plan::Protocol;
use crate::plan::script::{Builtin, PartitionMethod, ScriptDataset, ScriptRun};
use crate::record::{CommandRecord, ErrorEntry, Record};
use crate::report::document::{Document, Hint};
use crate::report::latency::latency_cell;
use crate::report::table::{Cell, Table, number, word};
use crate::report::words::next::Commands;
use crate::report::words::{DatasetWords, Measure, Words};
use crate::script::{PARAMETER_HINT, is_about_parameters};
use crate::units::format::{count, number_of, percent};

/// Maximum number of commands in the text; the record has all.
const COMMANDS_MAX: usize = 40;
/// Maximum number of characters of a command.
const TITLE_MAX: usize = 48;

impl Words for ScriptRun {
    fn work(&self) -> String {
        let sum: u64 = self.scripts.iter().map(|script| u64::from(script.weight)).sum();
        let script = |script: &crate::plan::ScriptSource| {
            let share = f64::from(script.weight) / sum.max(1) as f64;
            let share = if self.scripts.len() > 1 {
                format!(" ({} of the transactions)", percent(share))
            } else {
                String::new()
            };
            format!("{}{share}", script.file_name())
        };
        let scripts: Vec<String> = self.scripts.iter().map(script).collect();
        let kind = match scripts.len() {
            1 => "script",
            _ => "scripts",
        };
        format!("{kind} {}", scripts.join(", "))
    }

    fn access_path(&self, expected: &str, _: &Record) -> String {
        let nodes: Vec<&str> = expected.lines().map(str::trim).collect();
        nodes.join(", ")
    }

    fn measure(&self) -> Measure {
        Measure::of("TPS", true)
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

    fn proof(&self, record: &Record) -> &'static str {
        if record.checks.is_empty() {
            self.replies()
        } else {
            "every statement returned its row, and balances and history are those of the acknowledged transactions"
        }
    }

    fn replies(&self) -> &'static str {
        if self.scripts.iter().all(|script| script.text.is_none()) {
            "every statement returned its row"
        } else {
            "every statement was acknowledged"
        }
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        let is_default = self.builtins().eq([Builtin::TpcbLike]);
        if is_default { vec![commands.same("-b select-only", "reads only")] } else { Vec::new() }
    }
}

/// The commands with their latencies and failures.
fn commands_table(commands: &[&CommandRecord], has_scripts: bool) -> Table {
    fn latency(command: &CommandRecord, key: &str) -> Cell {
        latency_cell(command.service_us.as_ref(), key)
    }
    Table::of(
        "commands",
        commands.iter().take(COMMANDS_MAX).map(|command| (*command, has_scripts)),
        [
            (number("script"), |(command, has_scripts)| {
                if *has_scripts { command.script.to_string().into() } else { "".into() }
            }),
            (number("number"), |(command, _)| command.number.to_string().into()),
            (word("command"), |(command, _)| {
                let mut title: String = command.title.chars().take(TITLE_MAX).collect();
                if command.title.chars().count() > TITLE_MAX {
                    title.push('…');
                }
                title.into()
            }),
            (number("times"), |(command, _)| {
                count(command.service_us.as_ref().map_or(0, |us| us.count)).into()
            }),
            (number("p50"), |(command, _)| latency(command, "p50")),
            (number("p99"), |(command, _)| latency(command, "p99")),
            (number("mean"), |(command, _)| latency(command, "mean")),
            (number("max"), |(command, _)| latency(command, "max")),
            (word("failed"), |(command, _)| {
                let each = |(sqlstate, errors): (&String, &u64)| {
                    format!("{} × {sqlstate}", count(*errors))
                };
                command.errors.iter().map(each).collect::<Vec<_>>().join(", ").into()
            }),
        ],
    )
}

impl DatasetWords for ScriptDataset {
    fn text(&self) -> String {
        let partitions = match (self.partitions, self.partition_method) {
            (0, _) => String::new(),
            (partitions, PartitionMethod::Range) => format!(", {partitions} range partitions"),
            (partitions, PartitionMethod::Hash) => format!(", {partitions} hash partitions"),
        };
        let unlogged = if self.unlogged_tables { ", unlogged" } else { "" };
        let keys = if self.foreign_keys { ", foreign keys" } else { "" };
        let fillfactor = match self.fillfactor {
            100 => String::new(),
            fillfactor => format!(", fillfactor {fillfactor}"),
        };
        let adopted = if self.adopted { ", created by another program" } else { "" };
        format!(
            "pgbench tables of scale {} ({}){partitions}{unlogged}{keys}{fillfactor}{adopted}",
            count(self.scale),
            number_of(self.scale * 100_000, "account")
        )
    }
}
