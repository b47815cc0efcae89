//! What a page shows of a run: texts, tables and charts in their order, as plain data for the templates.

use serde::Serialize;

use super::super::block::{Block, Labeled};
use super::chart::Chart;
use super::table::Table;

/// A run.
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
    pub(super) figure: Figure,
    pub(super) tiles: Vec<Tile>,
    /// Rate, bottleneck and validity, in the words of the terminal.
    pub(super) verdict: Vec<Fact>,
    pub(super) sections: Vec<Section>,
}

/// Whether the result is valid, in a word.
#[derive(Debug, Serialize)]
pub(super) struct Badge {
    pub(super) text: String,
    pub(super) tone: &'static str,
}

/// The main figure.
#[derive(Debug, Clone, Serialize)]
pub(in crate::report) struct Figure {
    pub(in crate::report) label: String,
    pub(in crate::report) value: String,
    pub(in crate::report) unit: String,
    pub(in crate::report) detail: String,
}

/// A figure beside the main figure.
#[derive(Debug, Serialize)]
pub(super) struct Tile {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) note: Option<String>,
}

/// A labeled text with the texts that continue it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Fact {
    pub(super) label: String,
    pub(super) texts: Vec<String>,
    /// `good`, `warn` or `bad`, if it matters.
    pub(super) tone: Option<&'static str>,
}

impl Fact {
    /// A text; `None` if it is empty.
    pub(super) fn of(label: &str, text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then(|| Self { label: label.to_owned(), texts: vec![text], tone: None })
    }
}

/// What sections of the terminal write, as facts.
pub(super) fn facts(write: impl FnOnce(&mut Block)) -> Vec<Fact> {
    let mut block = Block::new(usize::MAX);
    write(&mut block);
    let fact = |Labeled { label, texts }| Fact { label, texts, tone: None };
    block.into_lines().into_iter().map(fact).collect()
}

/// Labeled texts under a title.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) facts: Vec<Fact>,
}

impl Group {
    /// A group; `None` without facts.
    pub(super) fn of(title: &str, facts: Vec<Fact>) -> Option<Self> {
        (!facts.is_empty()).then(|| Self { title: title.to_owned(), facts })
    }
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
    pub(super) texts: Vec<Details>,
}

impl Section {
    /// A section without contents. Its id is the title in lowercase letters, after that of the run.
    pub(super) fn new(run: &str, title: &'static str) -> Self {
        let name: Vec<_> = title.split_whitespace().map(str::to_lowercase).collect();
        Self { id: format!("{run}-{}", name.join("-")), title, ..Self::default() }
    }

    /// The section, if it has contents.
    pub(super) fn filled(self) -> Option<Self> {
        let is_empty = self.groups.is_empty()
            && self.tables.is_empty()
            && self.folded.is_empty()
            && self.charts.is_empty()
            && self.texts.is_empty();
        (!is_empty).then_some(self)
    }
}
