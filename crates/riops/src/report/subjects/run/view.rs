//! What the page of a run shows, as plain data for its template. The first screen: the main figure, the latency, the
//! bottleneck and the validity, in the words of the terminal; then what ran, where.

use serde::Serialize;

use super::document::{judgment, limits, names, rate_verdicts, what};
use crate::figure::{Statistic, Summary};
use crate::record::Record;
use crate::report::chart::Chart;
use crate::report::document::{Badge, Document, Fact, Headline, facts};
use crate::report::flame::Flame;
use crate::report::latency::statistic_text;
use crate::report::sections::bottleneck::bottleneck;
use crate::report::setup::{badge, cpu_text, main_settings};
use crate::report::table::Table;
use crate::report::words::{self, Words};
use crate::units::format::bytes_text;

/// A run, as its template shows it.
#[derive(Debug, Serialize)]
pub(super) struct RunView {
    /// Id of its element.
    pub(super) id: String,
    /// Its number, if the page has several runs.
    pub(super) number: Option<usize>,
    pub(super) title: String,
    pub(super) badge: Badge,
    pub(super) target: String,
    pub(super) setup: String,
    /// When it started, and its id.
    pub(super) identity: String,
    pub(super) figure: Headline,
    pub(super) tiles: Vec<Tile>,
    /// Rate, bottleneck and validity, in the words of the terminal.
    pub(super) verdict: Vec<Fact>,
    pub(super) sections: Vec<Section>,
}

/// A figure beside the main figure.
#[derive(Debug, Serialize)]
pub(super) struct Tile {
    pub(super) label: String,
    pub(super) value: String,
}

impl RunView {
    /// The first screen of a run with its sections.
    pub(super) fn of(
        record: &Record,
        id: String,
        number: Option<usize>,
        sections: Vec<Section>,
    ) -> Self {
        let words = words::of(&record.plan.work);
        let summary = Summary::of(record);
        Self {
            id,
            number,
            title: title(record, number),
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
}

/// Returns the title of a run.
pub(super) fn title(record: &Record, number: Option<usize>) -> String {
    let number = number.map_or_else(String::new, |number| format!("Run {number}: "));
    match &record.label {
        Some(label) => format!("{number}{} · {label}", record.workload),
        None => format!("{number}{}", record.workload),
    }
}

/// The latency of a run with one stage.
fn tiles(record: &Record) -> Vec<Tile> {
    let [stage] = record.stages.as_slice() else {
        return Vec::new();
    };
    let each = &stage.session_loop;
    let kind = if each.response_us.is_some() { "response " } else { "" };
    let shown = Statistic::percentiles().filter(|each| each.percent != Some(95.0));
    let tile = |statistic: &Statistic| {
        let value = statistic_text(statistic, each.latency_us()?)?;
        Some(Tile { label: format!("{kind}{}", statistic.name), value })
    };
    shown.filter_map(tile).collect()
}

/// Rate, bottleneck and validity.
fn verdict(document: &mut Document, record: &Record, words: &dyn Words) {
    let stages = Summary::of_each(record);
    rate_verdicts(document, &stages);
    if let [summary] = stages.as_slice() {
        limits(document, summary);
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

/// Labeled texts under a title.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) facts: Vec<Fact>,
}

impl Group {
    /// A group; `None` without facts.
    fn of(title: &str, facts: Vec<Fact>) -> Option<Self> {
        (!facts.is_empty()).then(|| Self { title: title.to_owned(), facts })
    }
}

/// Returns what ran, on which server, on which machine.
pub(super) fn environment(record: &Record) -> Vec<Group> {
    let run = facts(|document| {
        what(document, record, words::of(&record.plan.work));
        names(document, record);
        if record.plan.seed > 0 {
            document.line("seed", record.plan.seed.to_string());
        }
    });
    let groups = [
        Group::of("Run", run),
        Group::of("Server", facts(|document| server(document, record))),
        Group::of("Client machine", facts(|document| machine(document, record))),
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

/// A text that is shown on request.
#[derive(Debug, Serialize)]
pub(super) struct Details {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) open: bool,
}

/// A part of the page of a run.
#[derive(Debug, Default, Serialize)]
pub(super) struct Section {
    pub(super) id: String,
    pub(super) title: &'static str,
    pub(super) groups: Vec<Group>,
    pub(super) tables: Vec<Table>,
    /// Long tables, shown on request.
    pub(super) folded: Vec<Table>,
    pub(super) charts: Vec<Chart>,
    pub(super) flames: Vec<Flame>,
    pub(super) texts: Vec<Details>,
}

impl Section {
    /// A section without contents. Its id is the title in lowercase letters, after that of the run.
    pub(super) fn new(run: &str, title: &'static str) -> Self {
        Self {
            id: format!("{run}-{}", title.to_lowercase().replace(' ', "-")),
            title,
            ..Self::default()
        }
    }

    /// A section with what `write` adds to a document.
    pub(super) fn of(run: &str, title: &'static str, write: impl FnOnce(&mut Document)) -> Self {
        let mut document = Document::default();
        write(&mut document);
        let groups = Group::of("", document.facts()).into_iter().collect();
        Self { groups, ..Self::new(run, title) }.with_tables(document.tables().cloned())
    }

    /// The section with those of the tables that have rows.
    pub(super) fn with_tables(mut self, tables: impl IntoIterator<Item = Table>) -> Self {
        self.tables.extend(tables.into_iter().filter_map(Table::filled));
        self
    }

    /// The section, if it has contents.
    pub(super) fn filled(self) -> Option<Self> {
        let is_empty = self.groups.is_empty()
            && self.tables.is_empty()
            && self.folded.is_empty()
            && self.charts.is_empty()
            && self.flames.is_empty()
            && self.texts.is_empty();
        (!is_empty).then_some(self)
    }
}
