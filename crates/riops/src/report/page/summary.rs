//! The first screen of the page of a run: the main figure, the latency, the bottleneck and the validity, in the
//! words of the terminal; then what ran, where.

use super::table::{Cell, Table};
use super::view::{Badge, Fact, Figure, Group, RunView, Tile, facts};
use crate::record::{Record, Validity};
use crate::report::format::{bytes_text, duration_us, number_of, rate};
use crate::report::forms::{rate_verdicts, thresholds, verdict};
use crate::report::model::{Summary, cpu_text};
use crate::report::runs;
use crate::report::sections::bottleneck::bottleneck;
use crate::report::sections::condition::condition;
use crate::report::sections::failures::schedule;
use crate::report::sections::mix::{few_transactions, mix};
use crate::report::sections::steadiness::steadiness;
use crate::report::words::{self, Words};

/// Returns the first screen of a run; its sections are added by the caller.
pub(super) fn view(record: &Record, id: &str, number: Option<usize>) -> RunView {
    let words = words::of(&record.plan.work);
    RunView {
        id: id.to_owned(),
        number,
        title: title(record, number),
        badge: badge(record),
        target: Summary::of(record).map(|summary| summary.target()).unwrap_or_default(),
        setup: setup(record),
        identity: format!("{} · {}", record.started_at.strftime("%F %T UTC"), record.id),
        figure: figure(record, words),
        tiles: tiles(record),
        verdict: verdict_facts(record, words),
        sections: Vec::new(),
    }
}

/// Returns the title of a run.
pub(super) fn title(record: &Record, number: Option<usize>) -> String {
    let number = number.map_or_else(String::new, |number| format!("Run {number}: "));
    match &record.label {
        Some(label) => format!("{number}{} · {label}", record.workload),
        None => format!("{number}{}", record.workload),
    }
}

fn badge(record: &Record) -> Badge {
    let marks = record.marks().join(", ");
    let (text, tone) = runs::badge(record.validity(), record.status.as_str(), &marks);
    Badge { text, tone }
}

/// Sessions and time in a line.
fn setup(record: &Record) -> String {
    let words = words::of(&record.plan.work);
    Summary::of(record).and_then(|summary| words.setup(&summary)).unwrap_or_default()
}

/// Returns the main figure: that of the best stage, if there are several.
pub(super) fn figure(record: &Record, words: &dyn Words) -> Figure {
    if let Some(figure) = words.own_figure(record) {
        return figure;
    }
    let stages = Summary::of_each(record);
    let best = best(&stages, words);
    let Some(best) = best else {
        return Figure {
            label: words.headline().to_owned(),
            value: "–".to_owned(),
            unit: String::new(),
            detail: "nothing was measured".to_owned(),
        };
    };
    Figure {
        label: words.headline().to_owned(),
        value: rate(words.figure(&best.stage.throughput)),
        unit: words.figure_unit().to_owned(),
        detail: detail(best, words, stages.len()),
    }
}

/// The stage with the highest rate.
fn best<'a>(stages: &'a [Summary<'a>], words: &dyn Words) -> Option<&'a Summary<'a>> {
    let value = |summary: &Summary<'_>| words.figure(&summary.stage.throughput);
    stages.iter().max_by(|a, b| value(a).total_cmp(&value(b)))
}

fn detail(summary: &Summary<'_>, words: &dyn Words, stages: usize) -> String {
    if stages > 1 {
        return format!("{}: the best of {stages} stages", summary.stage.name);
    }
    let stage = summary.stage;
    let mut parts = Vec::new();
    if words.has_rows() && words.counts_transactions() {
        parts.push(format!("{} rows/s", rate(stage.throughput.rows_per_s)));
    } else if words.has_rows() {
        parts.push(format!("{} transactions/s", rate(stage.throughput.transactions_per_s)));
    }
    parts.push(number_of(stage.transactions, "transaction"));
    if words.has_rows() {
        parts.push(number_of(stage.rows, "row"));
    }
    match summary.errors() {
        // Another tool may not count them.
        0 if summary.record.imported.is_some() => {}
        0 => parts.push("no errors".to_owned()),
        errors => parts.push(number_of(errors, "error")),
    }
    parts.join(" · ")
}

/// The latency of a run with one stage.
fn tiles(record: &Record) -> Vec<Tile> {
    let [stage] = record.stages.as_slice() else {
        return Vec::new();
    };
    let each = &stage.session_loop;
    let Some(latency) = each.latency_us() else {
        return Vec::new();
    };
    let kind = if each.response_us.is_some() { "response " } else { "" };
    let figures = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let tile =
        |(name, us)| Tile { label: format!("{kind}{name}"), value: duration_us(us), note: None };
    figures.into_iter().map(tile).collect()
}

fn verdict_facts(record: &Record, words: &dyn Words) -> Vec<Fact> {
    let stages = Summary::of_each(record);
    let mut found = facts(|block| {
        rate_verdicts(block, &stages);
        if let [summary] = stages.as_slice() {
            schedule(block, summary.stage);
            bottleneck(block, summary);
        }
        // The main figure is that of the best stage, and so is the bottleneck.
        if stages.len() > 1
            && words.own_figure(record).is_none()
            && let Some(best) = best(&stages, words)
        {
            bottleneck(block, best);
        }
        few_transactions(block, record);
        steadiness(block, record, words);
        verdict(block, record, words);
        thresholds(block, record);
    });
    for fact in &mut found {
        if fact.label == "bottleneck" && stages.len() > 1 {
            let name = best(&stages, words).map_or("", |best| best.stage.name.as_str());
            fact.texts.insert(0, format!("of {name}:"));
            fact.texts = vec![fact.texts.join(" ")];
        }
        let text = fact.texts.first().map_or("", String::as_str);
        fact.tone = match fact.label.as_str() {
            "valid" => Some(match record.validity() {
                Validity::Valid => "good",
                Validity::Invalid => "bad",
                Validity::NotVerified => "warn",
            }),
            "NOT steady" | "warning" | "DISTURBED" | "percentiles" | "backlog" => Some("warn"),
            "threshold" if text.starts_with("BREACHED") => Some("bad"),
            "rate" if text.contains("NOT reached") => Some("bad"),
            _ => None,
        };
    }
    found
}

/// Returns what ran, on which server, on which machine.
pub(super) fn environment(record: &Record) -> Vec<Group> {
    [what(record), server(record), machine(record)].into_iter().flatten().collect()
}

fn what(record: &Record) -> Option<Group> {
    let words = words::of(&record.plan.work);
    let summary = Summary::of(record);
    let written = facts(|block| {
        block.line("workload", &words.work());
        if let Some(summary) = &summary {
            for line in [words.setup(summary), summary.drive()].into_iter().flatten() {
                block.line("", &line);
            }
        }
        if let Some(dataset) = words::dataset_text(record) {
            block.line("dataset", &dataset);
        }
        if let Some(summary) = &summary {
            condition(block, summary);
        }
        mix(block, record);
        if let Some(label) = &record.label {
            block.line("label", label);
        }
        if !record.tags.is_empty() {
            let tags = record.tags.iter().map(|(name, value)| format!("{name}={value}"));
            block.line("tags", &tags.collect::<Vec<_>>().join(", "));
        }
        if record.plan.seed > 0 {
            block.line("seed", &record.plan.seed.to_string());
        }
    });
    Group::of("Run", written)
}

/// The settings that explain most differences between two runs. The page lists all of them in a table.
const MAIN_SETTINGS: [&str; 7] = [
    "shared_buffers",
    "max_wal_size",
    "synchronous_commit",
    "full_page_writes",
    "fsync",
    "huge_pages",
    "debug_io_direct",
];

/// Returns all recorded settings of the server.
pub(super) fn settings(record: &Record) -> Option<Table> {
    let settings = &record.target.settings;
    let rows = settings
        .iter()
        .map(|(name, value)| vec![Cell::word(name.as_str()), Cell::word(value.as_str())]);
    (!settings.is_empty())
        .then(|| Table::new("Server settings", ["setting", "value"], 2, rows.collect()))
}

/// These settings in a line.
pub(in crate::report) fn main_settings(record: &Record) -> String {
    let settings = &record.target.settings;
    let known = MAIN_SETTINGS.iter().filter_map(|name| Some((name, settings.get(*name)?)));
    let texts: Vec<_> = known.map(|(name, value)| format!("{name} = {value}")).collect();
    texts.join(" · ")
}

fn server(record: &Record) -> Option<Group> {
    let target = &record.target;
    // Imported results may not name the version.
    let is_known = !target.server_version.is_empty();
    let server = format!("{} {}", target.flavor, target.server_version);
    let server = if is_known { server } else { String::new() };
    let facts = [
        Fact::of("server", server),
        Fact::of("database", target.database.clone()),
        Fact::of("address", target.address.clone()),
        Fact::of("encryption", target.encryption.clone().unwrap_or_default()),
        Fact::of("pooler", target.pooler.clone().unwrap_or_default()),
        Fact::of("settings", main_settings(record)),
    ];
    Group::of("Server", facts.into_iter().flatten().collect())
}

fn machine(record: &Record) -> Option<Group> {
    // Where another tool ran is not known.
    if record.imported.is_some() {
        return None;
    }
    let client = &record.client;
    let machine = &client.machine;
    let shared = if client.shares_machine_with_server {
        "client and server share this machine"
    } else {
        "the server is on another machine"
    };
    let driver = client.driver.map_or(String::new(), |driver| format!(" on {}", driver.as_str()));
    let facts = [
        Fact::of("host", machine.host.clone()),
        Fact::of("CPU", cpu_text(record)),
        Fact::of("memory", bytes_text(machine.memory_bytes)),
        Fact::of("kernel", machine.kernel.clone()),
        Fact::of("virtual", machine.virtualization.clone().unwrap_or_default()),
        Fact::of("governor", machine.cpu_governor.clone().unwrap_or_default()),
        Fact::of("client", format!("riops {}{driver}; {shared}", client.riops_version)),
    ];
    Group::of("Client machine", facts.into_iter().flatten().collect())
}
