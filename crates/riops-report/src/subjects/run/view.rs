//! What the page of a run shows, as plain data for its template.

use serde::Serialize;

use crate::chart::Chart;
use crate::document::{Badge, Document, Fact, Headline};
use crate::table::Table;

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

/// Labeled texts under a title.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) facts: Vec<Fact>,
}

impl Group {
    /// A group; `None` without facts.
    pub(super) fn from_facts(title: &str, facts: Vec<Fact>) -> Option<Self> {
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
    #[serde(flatten)]
    pub(super) document: Document,
    pub(super) groups: Vec<Group>,
    /// Long tables, shown on request.
    pub(super) folded: Vec<Table>,
    pub(super) texts: Vec<Details>,
}

impl Section {
    /// Returns a section without contents. Its id is the id of the run, followed by the title in lowercase letters.
    pub(super) fn new(run: &str, title: &'static str) -> Self {
        Self {
            id: format!("{run}-{}", title.to_lowercase().replace(' ', "-")),
            title,
            ..Self::default()
        }
    }

    /// Returns a section whose document `write` fills.
    pub(super) fn with_document(
        run: &str,
        title: &'static str,
        write: impl FnOnce(&mut Document),
    ) -> Self {
        let mut section = Self::new(run, title);
        write(&mut section.document);
        section
    }

    /// Adds the tables that have rows.
    pub(super) fn with_tables(mut self, tables: impl IntoIterator<Item = Table>) -> Self {
        tables.into_iter().for_each(|table| self.document.table(table));
        self
    }

    /// Adds these charts.
    pub(super) fn with_charts(mut self, charts: Vec<Chart>) -> Self {
        for chart in charts {
            self.document.chart(chart);
        }
        self
    }

    /// Returns the section if it has contents.
    pub(super) fn filled(self) -> Option<Self> {
        let is_empty = self.document.is_empty()
            && self.groups.is_empty()
            && self.folded.is_empty()
            && self.texts.is_empty();
        (!is_empty).then_some(self)
    }
}
