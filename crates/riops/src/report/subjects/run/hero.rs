//! The first screen of the page of a run: the main figure, the latency, the bottleneck and the validity, in the
//! words of the terminal; then what ran, where.

use super::document::{judgment, limits, names, rate_verdicts, what};
use super::view::{Group, RunView, Tile};
use crate::figure::{Statistic, Summary};
use crate::record::Record;
use crate::report::document::{Document, facts};
use crate::report::latency::statistic_text;
use crate::report::sections::bottleneck::bottleneck;
use crate::report::sections::cost::cost;
use crate::report::sections::time::time;
use crate::report::setup::{badge, cpu_text, main_settings};
use crate::report::table::{Entry, Table, word};
use crate::report::words::{self, Words};
use crate::units::format::bytes_text;

/// Returns the first screen of a run; its sections are added by the caller.
pub(super) fn view(record: &Record, id: &str, number: Option<usize>) -> RunView {
    let words = words::of(&record.plan.work);
    RunView {
        id: id.to_owned(),
        number,
        title: title(record, number),
        badge: badge(record.validity(), record.status.as_str(), &record.marks().join(", ")),
        target: Summary::of(record).map(|summary| summary.target()).unwrap_or_default(),
        setup: setup(record),
        identity: format!("{} · {}", record.started_at.strftime("%F %T UTC"), record.id),
        figure: words.best(record),
        tiles: tiles(record),
        verdict: facts(|document| verdict_facts(document, record, words)),
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

/// Sessions and time in a line.
fn setup(record: &Record) -> String {
    let words = words::of(&record.plan.work);
    Summary::of(record).and_then(|summary| words.setup(&summary)).unwrap_or_default()
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
    let shown = Statistic::percentiles().filter(|each| each.percent != Some(95.0));
    let tile = |each: &Statistic| {
        let value = statistic_text(each, latency)?;
        Some(Tile { label: format!("{kind}{}", each.name), value })
    };
    shown.filter_map(tile).collect()
}

/// Rate, bottleneck and validity.
fn verdict_facts(document: &mut Document, record: &Record, words: &dyn Words) {
    let stages = Summary::of_each(record);
    rate_verdicts(document, &stages);
    if let [summary] = stages.as_slice() {
        limits(document, summary);
        time(document, summary);
        cost(document, summary);
    } else if stages.iter().all(|summary| summary.stage.statement.is_none())
        && let Some(best) = words.measure().best_stage(&stages)
    {
        // The main figure is that of the best stage, and so is the bottleneck.
        for fact in facts(|document| bottleneck(document, best)) {
            let text = format!("of {}: {}", best.stage.name, fact.texts.join(" "));
            document.line(&fact.label, text);
        }
    }
    judgment(document, record, words);
}

/// Returns what ran, on which server, on which machine.
pub(super) fn environment(record: &Record) -> Vec<Group> {
    [what_ran(record), server(record), machine(record)].into_iter().flatten().collect()
}

fn what_ran(record: &Record) -> Option<Group> {
    Group::of("Run", |document| {
        what(document, record, words::of(&record.plan.work));
        names(document, record);
        if record.plan.seed > 0 {
            document.line("seed", record.plan.seed.to_string());
        }
    })
}

/// Returns all recorded settings of the server.
pub(super) fn settings(record: &Record) -> Option<Table> {
    let settings = &record.target.settings;
    let columns: [Entry<(&String, &String)>; 2] = [
        (word("setting"), |(name, _)| name.as_str().into()),
        (word("value"), |(_, value)| value.as_str().into()),
    ];
    Table::of("server settings", settings, columns).filled()
}

fn server(record: &Record) -> Option<Group> {
    let target = &record.target;
    // Imported results may not name the version.
    let is_known = !target.server_version.is_empty();
    let server = format!("{} {}", target.flavor, target.server_version);
    let server = if is_known { server } else { String::new() };
    Group::of("Server", |document| {
        document.known("server", server);
        document.known("database", target.database.clone());
        document.known("address", target.address.clone());
        document.known("encryption", target.encryption.clone().unwrap_or_default());
        document.known("pooler", target.pooler.clone().unwrap_or_default());
        document.known("settings", main_settings(record));
    })
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
    Group::of("Client machine", |document| {
        document.known("host", machine.host.clone());
        document.known("CPU", cpu_text(record));
        document.known("memory", bytes_text(machine.memory_bytes));
        document.known("kernel", machine.kernel.clone());
        document.known("virtual", machine.virtualization.clone().unwrap_or_default());
        document.known("governor", machine.cpu_governor.clone().unwrap_or_default());
        document.known("clock source", machine.clock_source.clone().unwrap_or_default());
        let huge_pages = machine.transparent_huge_pages.clone().unwrap_or_default();
        document.known("transparent huge pages", huge_pages);
        document.known("client", format!("riops {}{driver}; {shared}", client.riops_version));
    })
}
