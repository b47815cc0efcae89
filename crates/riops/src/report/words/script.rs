//! Reporting of `script`.

use super::super::block::Block;
use super::super::format::{count, duration_us, number_of, percent};
use super::super::model::Summary;
use super::super::page::table::{Cell, Table, stages};
use super::super::sections::next::{Commands, Hint};
use super::{DatasetWords, Words};
use crate::plan::Protocol;
use crate::plan::script::{Builtin, PartitionMethod, ScriptDataset, ScriptRun};
use crate::record::{CommandRecord, ErrorEntry, LatencySummary, Record};
use crate::script::{PARAMETER_HINT, is_about_parameters};

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

    fn headline(&self) -> &'static str {
        "TPS"
    }

    fn totals(&self, block: &mut Block, summary: &Summary<'_>) {
        let stage = &summary.stage.session_loop;
        let about_parameters =
            |error: &ErrorEntry| is_about_parameters(&error.sqlstate, &error.sample);
        if summary.record.plan.protocol != Protocol::Simple
            && stage.errors.iter().any(about_parameters)
        {
            block.line("parameters", PARAMETER_HINT);
        }
        let measured: Vec<_> =
            stage.commands.iter().filter(|command| command.is_measured).collect();
        let lines: Vec<_> = measured
            .iter()
            .take(COMMANDS_MAX)
            .map(|command| command_line(command, self.scripts.len() > 1))
            .collect();
        block.pairs("commands", &lines);
        if measured.len() > lines.len() {
            let more = count((measured.len() - lines.len()) as u64);
            block.line("", &format!("and {more} more, in riops runs show --output json"));
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

    fn tables(&self, record: &Record) -> Vec<Table> {
        let commands = record.stages.iter().flat_map(|stage| &stage.session_loop.commands);
        let rows: Vec<_> =
            commands.filter(|command| command.is_measured).map(command_row).collect();
        let head =
            ["script", "number", "command", "executions", "failures", "p50", "p99", "mean", "max"];
        let table = Table::new("Commands", head, 3, rows)
            .with_note("Latency from the send to the end of the reply.");
        vec![stages(record), table]
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        let is_default = self.builtins().eq([Builtin::TpcbLike]);
        if is_default { vec![commands.same("-b select-only", "reads only")] } else { Vec::new() }
    }
}

/// A command as a row of a table.
fn command_row(command: &CommandRecord) -> Vec<Cell> {
    let latency = |pick: fn(&LatencySummary) -> f64| {
        let us = command.service_us.as_ref().map(pick);
        Cell::number(us.map_or_else(|| "–".to_owned(), duration_us))
    };
    vec![
        Cell::word(command.script.to_string()),
        Cell::word(command.number.to_string()),
        Cell::word(command.title.clone()),
        Cell::number(count(command.service_us.as_ref().map_or(0, |us| us.count))),
        Cell::number(count(command.failures)),
        latency(|us| us.p50),
        latency(|us| us.p99),
        latency(|us| us.mean),
        latency(|us| us.max),
    ]
}

/// A command with its latency and its failures.
fn command_line(command: &CommandRecord, with_script: bool) -> (String, String) {
    let script = if with_script { format!("{}.", command.script) } else { String::new() };
    let mut title: String = command.title.chars().take(TITLE_MAX).collect();
    if command.title.chars().count() > TITLE_MAX {
        title.push('…');
    }
    let mut text = match &command.service_us {
        None if command.failures > 0 => "never succeeded".to_owned(),
        None => "not executed".to_owned(),
        Some(us) => format!(
            "p50 {} · p99 {} · mean {} · {} times",
            duration_us(us.p50),
            duration_us(us.p99),
            duration_us(us.mean),
            count(us.count)
        ),
    };
    if command.failures > 0 {
        let errors: Vec<_> = command
            .errors
            .iter()
            .map(|(sqlstate, errors)| format!("{} × {sqlstate}", count(*errors)))
            .collect();
        text = format!("{text} · failed: {}", errors.join(", "));
    }
    (format!("{script}{} {title}", command.number), text)
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
