//! A static site of stored runs: a page and the record of each run, experiments, comparisons, histories, and an index. It needs no
//! server, and loads nothing from elsewhere: the pages share the style and the scripts beside them.
//!
//! The page of a run is written as soon as its record was read. Only the records of experiments and comparisons are in memory
//! together.

mod hosts;
mod of_store;

use hosts::Hosts;
use hosts::Kind::Written;
use jiff::Timestamp;
use minijinja::value::{Serde, Value};
pub use of_store::{GalleryChoice, GalleryStep, gallery_of_store};
use serde::Serialize;

use crate::figure::Summary;
use crate::record::Record;
use crate::report::experiment::{experiment, view};
use crate::report::table::{Cell, Table, number_column, text_column};
use crate::report::{
    ASSETS, Findings, Layout, Link, badge, comparison_of, environment, findings_html, headline,
    history_findings, html_in, title,
};
use crate::stats::ChangeSettings;
use crate::store::StoreError;
use crate::study::{Experiment, Study, history, tag};
use crate::summary::{RunSummary, StageSummary};
use crate::units::format::number_of;
use crate::units::text::hash_text;

const INDEX: &str = include_str!("../../assets/gallery/index.html");
const SCRIPT: &str = include_str!("../../assets/gallery/gallery.js");

/// A file of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteFile {
    /// Its path in the site, with slashes.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// Why a file of the site cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum GalleryError {
    /// A host has the name of something else.
    #[error(
        "the hosts of {what} cannot be left out ({error}): a host is named like something else in it; --with-hosts publishes them"
    )]
    Hosts {
        /// Which run or experiment.
        what: String,
        /// Why its JSON cannot be read without the hosts.
        error: serde_json::Error,
    },
    /// The template engine failed. Not expected in practice: the templates are part of riops.
    #[error(transparent)]
    Page(#[from] minijinja::Error),
    /// A record cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two groups of runs have no comparison.
    #[error("{} and {} cannot be compared: see riops compare", .0[0], .0[1])]
    Incomparable([String; 2]),
    /// Ctrl-C.
    #[error("interrupted: the site is incomplete")]
    Interrupted,
}

/// A page that the index names.
#[derive(Debug)]
struct Entry {
    group: &'static str,
    path: String,
    title: String,
    detail: String,
}

/// A site while it is made.
#[derive(Debug)]
pub struct Gallery {
    title: String,
    /// Absent if hosts are published.
    hosts: Option<Hosts>,
    runs: Vec<Vec<Cell>>,
    entries: Vec<Entry>,
}

/// The groups of pages, in the order of the index.
const GROUPS: [&str; 3] = [EXPERIMENTS, COMPARISONS, HISTORIES];
const EXPERIMENTS: &str = "Experiments";
const COMPARISONS: &str = "Comparisons";
const HISTORIES: &str = "Histories";

/// The values of `gallery.html`.
#[derive(Serialize)]
struct Index<'a> {
    layout: Layout,
    title: &'a str,
    runs: Option<Table>,
    groups: Vec<(&'static str, Table)>,
}

impl Gallery {
    /// Returns an empty site with this title.
    pub fn new(title: String, with_hosts: bool) -> Self {
        let hosts = (!with_hosts).then(Hosts::default);
        Self { title, hosts, runs: Vec::new(), entries: Vec::new() }
    }

    /// Learns the hosts of a record. The hosts of all records must be known before the first record is published, because the
    /// texts of one record may name the host of another.
    ///
    /// # Errors
    /// [`GalleryError::Json`]
    pub fn learn(&mut self, record: &Record) -> Result<(), GalleryError> {
        if let Some(hosts) = &mut self.hosts {
            hosts.learn_record(record)?;
        }
        Ok(())
    }

    /// Learns the hosts of an experiment and its runs.
    ///
    /// # Errors
    /// [`GalleryError::Json`]
    pub fn learn_study(&mut self, study: &Study) -> Result<(), GalleryError> {
        if let Some(hosts) = &mut self.hosts {
            hosts.learn_value(&study.experiment)?;
            hosts.learn_value(&study.experiment.notes)?;
            hosts.learn_value(&study.failures())?;
        }
        let mut records = study.finished.iter().filter_map(|run| run.result.as_deref().ok());
        records.try_for_each(|record| self.learn(record))
    }

    /// The page and the record of a run.
    ///
    /// # Errors
    /// [`GalleryError`]
    pub fn run(&mut self, record: Record) -> Result<[SiteFile; 2], GalleryError> {
        let record = self.published(record)?;
        let records = std::slice::from_ref(&record);
        let name = record.id.to_string();
        let mut layout = layout_of(title(records));
        let link = |text: &str, href: String| Link { text: text.to_owned(), href, current: false };
        if let Some(path) =
            record.label.as_deref().map(history_path).filter(|path| self.has_page(path))
        {
            layout.nav.push(link("History of this label", format!("../{path}")));
        }
        layout.nav.push(link("Record as JSON", format!("{name}.json")));
        layout.reproduce =
            Some(format!("riops runs import {name}.json && riops runs rerun {name}"));
        self.runs.push(row(&record));
        let page = html_in(&layout, records, None)?;
        let json = serde_json::to_string(&record)? + "\n";
        Ok([
            SiteFile { path: format!("runs/{name}.html"), text: page },
            SiteFile { path: format!("runs/{name}.json"), text: json },
        ])
    }

    /// The page of an experiment.
    ///
    /// # Errors
    /// [`GalleryError`]
    pub fn experiment(&mut self, mut study: Study) -> Result<SiteFile, GalleryError> {
        if let Some(hosts) = &self.hosts {
            let what = format!("experiment {}", study.experiment.id);
            // They are not part of the definition.
            let notes = hosts.hide(&study.experiment.notes)?;
            let hidden = hosts.hide(&study.experiment);
            let hidden = hidden.map_err(|error| GalleryError::Hosts { what, error })?;
            study.experiment = Experiment { notes, ..hidden };
        }
        for run in &mut study.finished {
            run.result = match std::mem::replace(&mut run.result, Err(String::new())) {
                Ok(record) => Ok(Box::new(self.published(*record)?)),
                Err(error) => Err(self.published_text(&error)),
            };
        }
        let path = format!("experiments/{}.html", study.experiment.id);
        let detail = format!(
            "{}, {}, {}",
            study.experiment.goal.name(),
            number_of(study.finished.len() as u64, "run"),
            study.experiment.created_at.strftime("%F")
        );
        self.page(EXPERIMENTS, path, &experiment(&view(&study)), detail)
    }

    /// The page of a comparison of two groups.
    ///
    /// # Errors
    /// [`GalleryError`]
    pub fn comparison(
        &mut self,
        selections: [(&str, Vec<Record>); 2],
    ) -> Result<Option<SiteFile>, GalleryError> {
        let mut published = Vec::new();
        for (name, records) in selections {
            let records = records.into_iter().map(|record| self.published(record));
            published.push((self.published_text(name), records.collect::<Result<Vec<_>, _>>()?));
        }
        let Some(comparison) = comparison_of(&published) else {
            return Ok(None);
        };
        let names: Vec<_> = published.iter().map(|(name, _)| name.as_str()).collect();
        let path = format!("comparisons/{}.html", file_name(&names.join(" -- ")));
        self.page(COMPARISONS, path, &comparison, String::new()).map(Some)
    }

    /// The page of the history of a label. The pages of its runs, which come later, link to it.
    ///
    /// # Errors
    /// [`GalleryError`]
    pub fn history(
        &mut self,
        label: &str,
        runs: &[RunSummary],
        stages: &[StageSummary],
    ) -> Result<SiteFile, GalleryError> {
        let mut runs = runs.to_vec();
        for run in &mut runs {
            run.client_host = run.client_host.as_ref().map(|host| self.published_text(host));
            run.title = self.published_text(&run.title);
            for reason in run.tags.values_mut() {
                *reason = self.published_text(reason);
            }
        }
        let mut stages = stages.to_vec();
        for stage in &mut stages {
            stage.name = self.published_text(&stage.name);
        }
        let label = self.published_text(label);
        let series = history(&runs, &stages, ChangeSettings::default().change_min);
        let findings = history_findings(&label, &series, &|run| format!("../runs/{run}.html"));
        let detail = number_of(runs.len() as u64, "run");
        self.page(HISTORIES, history_path(&label), &findings, detail)
    }

    /// The files that all pages use, and the index.
    ///
    /// # Errors
    /// [`GalleryError`]
    pub fn end(self) -> Result<Vec<SiteFile>, GalleryError> {
        let title = self.published_text(&self.title);
        let mut layout = Layout::beside(&title, "");
        layout.reproduce = Some("riops runs import runs/*.json".to_owned());
        let columns = [
            text_column("started (UTC)"),
            text_column("run"),
            text_column("result"),
            number_column("figure"),
            text_column("unit"),
            text_column("server"),
            text_column("tags and facts"),
        ];
        let groups = GROUPS.into_iter().filter_map(|name| {
            let entries = self.entries.iter().filter(|entry| entry.group == name);
            let rows = entries.map(|Entry { title, path, detail, .. }| {
                vec![Cell::from(title.as_str()).with_link(path), detail.as_str().into()]
            });
            Some((
                name,
                Table::new(name, [text_column("page"), text_column("about")], rows).filled()?,
            ))
        });
        let index = Index {
            title: &title,
            runs: Table::new("Runs", columns, self.runs).filled(),
            groups: groups.collect(),
            layout,
        };
        let mut environment = environment()?;
        environment.add_template("gallery.html", INDEX)?;
        let text = environment.get_template("gallery.html")?.render(Value::from(Serde(index)))?;
        let asset = |name: &str, text: &str| SiteFile {
            path: format!("assets/{name}"),
            text: text.to_owned(),
        };
        let mut files: Vec<_> = ASSETS.iter().map(|file| asset(file.name, file.text)).collect();
        files.push(asset("gallery.js", SCRIPT));
        files.push(SiteFile { path: "index.html".to_owned(), text });
        Ok(files)
    }

    fn has_page(&self, path: &str) -> bool {
        self.entries.iter().any(|entry| entry.path == path)
    }

    fn published(&self, record: Record) -> Result<Record, GalleryError> {
        let Some(hosts) = &self.hosts else { return Ok(record) };
        let hidden = hosts.hide(&record);
        let what = format!("run {}", record.id);
        hidden.map_err(|error| GalleryError::Hosts { what, error })
    }

    /// What people wrote, without hosts.
    fn published_text(&self, text: &str) -> String {
        self.hosts.as_ref().map_or_else(|| text.to_owned(), |hosts| hosts.text(text, Written))
    }

    fn page(
        &mut self,
        group: &'static str,
        path: String,
        findings: &Findings,
        detail: String,
    ) -> Result<SiteFile, GalleryError> {
        let text = findings_html(findings, &layout_of(findings.title.clone()))?;
        self.entries.push(Entry {
            group,
            path: path.clone(),
            title: findings.title.clone(),
            detail,
        });
        Ok(SiteFile { path, text })
    }
}

/// The frame of a page in a folder of the site.
fn layout_of(title: String) -> Layout {
    let mut layout = Layout::beside(title, "../");
    let index = "../index.html".to_owned();
    layout.nav.push(Link { text: "Index".to_owned(), href: index, current: false });
    layout
}

/// The row of a run in the index.
fn row(record: &Record) -> Vec<Cell> {
    let figure = headline(record);
    let badge = badge(record.validity(), record.status.as_str(), &record.marks().join(", "));
    let name = record.label.as_ref().map(|label| format!(" · {label}")).unwrap_or_default();
    // The tags that link a run to its experiment are of no use to readers.
    let is_own = |key: &str| [tag::EXPERIMENT, tag::BLOCK, tag::TURN].contains(&key);
    let tags = record.tags.iter().filter(|(key, _)| !is_own(key));
    let tags = tags.map(|(key, value)| format!("{key}={value}"));
    let facts = record.plan.facts.iter().map(|(name, value)| format!("{name} {value}"));
    let started: Timestamp = record.started_at;
    vec![
        Cell::from(started.strftime("%F\u{a0}%H:%M").to_string())
            .with_link(format!("runs/{}.html", record.id)),
        format!("{}{name}", record.workload).into(),
        badge.text.into(),
        figure.value.into(),
        figure.unit.into(),
        Summary::first_stage(record).map(|summary| summary.target()).into(),
        tags.chain(facts).collect::<Vec<_>>().join(" · ").into(),
    ]
}

/// The address of the history of a label.
fn history_path(label: &str) -> String {
    format!("histories/{}.html", file_name(label))
}

/// A name of a file for a text, the same one each time. Texts that differ have different names.
fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !text.is_empty() && text.len() <= 60 && text.chars().all(plain) {
        return text.to_owned();
    }
    let lower = text.chars().take(40).map(|c| c.to_ascii_lowercase());
    let words: String = lower.map(|c| if plain(c) { c } else { '-' }).collect();
    let hash = hash_text(text);
    format!("{words}-{}", hash.get(..8).unwrap_or_default())
}
