//! The first screen of the page of a run: the main figure, the latency, the bottleneck and the validity, in the
//! words of the terminal; then what ran, where.

use super::document::{judgment, limits, names, rate_verdicts, what};
use super::view::{Group, RunView, Section, Tile};
use crate::document::{Document, facts};
use crate::latency::statistic_text;
use crate::sections::bottleneck::bottleneck;
use crate::setup::{badge, cpu_text, main_settings};
use crate::words::{self, Words};
use riops_model::figure::{Statistic, Summary};
use riops_model::record::Record;
use riops_model::units::format::bytes_text;

/// The first screen of a run with its sections.
pub(super) fn view(
    record: &Record,
    id: String,
    position: Option<usize>,
    sections: Vec<Section>,
) -> RunView {
    let words = words::for_work(&record.plan.work);
    let summary = Summary::first_stage(record);
    RunView {
        id,
        number: position,
        title: title(record, position),
        badge: badge(record.validity(), record.status.as_str(), &record.marks().join(", ")),
        target: summary.as_ref().map(Summary::target).unwrap_or_default(),
        setup: summary.and_then(|summary| words.setup(&summary)).unwrap_or_default(),
        identity: format!("{} · {}", record.started_at.strftime("%F %T UTC"), record.id),
        figure: words.best(record),
        tiles: tiles(record),
        verdict: facts(|document| verdict(document, record, words)),
        sections,
    }
}

/// Returns the title of a run.
pub(super) fn title(record: &Record, position: Option<usize>) -> String {
    let prefix = position.map_or_else(String::new, |position| format!("Run {position}: "));
    match &record.label {
        Some(label) => format!("{prefix}{} · {label}", record.workload),
        None => format!("{prefix}{}", record.workload),
    }
}

/// The latency of a run with one stage.
fn tiles(record: &Record) -> Vec<Tile> {
    let [stage] = record.stages.as_slice() else {
        return Vec::new();
    };
    let session_loop = &stage.session_loop;
    let kind = if session_loop.response_us.is_some() { "response " } else { "" };
    let shown = Statistic::percentiles().filter(|statistic| statistic.percent != Some(95.0));
    let tile = |statistic: &Statistic| {
        let value = statistic_text(statistic, session_loop.latency_us()?)?;
        Some(Tile { label: format!("{kind}{}", statistic.name), value })
    };
    shown.filter_map(tile).collect()
}

/// Writes rate, bottleneck and validity.
fn verdict(document: &mut Document, record: &Record, words: &dyn Words) {
    let stages = Summary::of_each(record);
    rate_verdicts(document, &stages);
    if let [summary] = stages.as_slice() {
        limits(document, summary);
    } else if stages.iter().all(|summary| summary.stage.statement.is_none())
        && let Some(best) = words.measure().best_stage(&stages)
    {
        // The main figure and the bottleneck describe the best stage.
        for fact in facts(|document| bottleneck(document, best)) {
            let text = format!("of {}: {}", best.stage.name, fact.texts.join(" "));
            document.line(&fact.label, text);
        }
    }
    judgment(document, record, words);
}

/// Returns what ran, on which server, on which machine.
pub(super) fn environment(record: &Record) -> Vec<Group> {
    let run = facts(|document| {
        what(document, record, words::for_work(&record.plan.work));
        names(document, record);
        if record.plan.seed > 0 {
            document.line("seed", record.plan.seed.to_string());
        }
    });
    let groups = [
        Group::from_facts("Run", run),
        Group::from_facts("Server", facts(|document| server(document, record))),
        Group::from_facts("Client machine", facts(|document| machine(document, record))),
    ];
    groups.into_iter().flatten().collect()
}

fn server(document: &mut Document, record: &Record) {
    let target = &record.target;
    // Imported results may not name the version.
    if !target.server_version.is_empty() {
        document.line("server", format!("{} {}", target.flavor, target.server_version));
    }
    document.known("database", &target.database);
    document.known("address", &target.address);
    document.known("encryption", target.encryption.as_deref().unwrap_or_default());
    document.known("pooler", target.pooler.as_deref().unwrap_or_default());
    document.known("settings", main_settings(record));
}

fn machine(document: &mut Document, record: &Record) {
    // Where another tool ran is not known.
    if record.imported.is_some() {
        return;
    }
    let client = &record.client;
    let machine = &client.machine;
    let shared = if client.shares_machine_with_server {
        "client and server share this machine"
    } else {
        "the server is on another machine"
    };
    let driver = client.driver.map_or(String::new(), |driver| format!(" on {}", driver.as_str()));
    document.known("host", &machine.host);
    document.known("CPU", cpu_text(record));
    document.known("memory", bytes_text(machine.memory_bytes));
    document.known("kernel", &machine.kernel);
    document.known("virtual", machine.virtualization.as_deref().unwrap_or_default());
    document.known("governor", machine.cpu_governor.as_deref().unwrap_or_default());
    document.known("clock source", machine.clock_source.as_deref().unwrap_or_default());
    let huge_pages = machine.transparent_huge_pages.as_deref().unwrap_or_default();
    document.known("transparent huge pages", huge_pages);
    document.known("client", format!("riops {}{driver}; {shared}", client.riops_version));
}
