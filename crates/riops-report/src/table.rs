//! A table of a report, independent of its form.

use serde::{Serialize, Serializer};

use riops_model::units::format::percent;
use riops_model::units::text::one_line;

/// Text of a value that was not measured.
pub const ABSENT: &str = "n/a";

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Title.
    pub title: String,
    /// Whether its cells are numbers, which are aligned to the right.
    pub number: bool,
    /// Whether it is left out where the table is too wide, the last one first.
    #[serde(skip)]
    pub(super) optional: bool,
    /// Whether texts show the bars of its cells, too.
    #[serde(skip)]
    pub(super) drawn: bool,
}

impl Column {
    pub(super) fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    pub(super) fn drawn(self) -> Self {
        Self { drawn: true, ..self }
    }
}

/// A column of texts.
pub fn text_column(title: impl Into<String>) -> Column {
    Column { title: title.into(), number: false, optional: false, drawn: false }
}

/// A column of numbers.
pub fn number_column(title: impl Into<String>) -> Column {
    Column { number: true, ..text_column(title) }
}

/// A table: columns, and rows with a cell for each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Title.
    pub title: String,
    /// The columns that have a value in a row.
    pub columns: Vec<Column>,
    /// The rows: a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Explanation below the table.
    pub note: Option<String>,
    /// Whether it has a row for each cell, workload or step of an experiment, as many as there are.
    #[serde(skip)]
    pub(super) has_cells: bool,
}

impl Table {
    /// Returns a table without the columns that have no value.
    pub fn new(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = Column>,
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Self {
        let rows: Vec<Vec<Cell>> = rows.into_iter().collect();
        let columns: Vec<Column> = columns.into_iter().collect();
        let is_used: Vec<bool> = (0..columns.len())
            .map(|at| rows.iter().any(|row| row.get(at).is_some_and(Cell::has_value)))
            .collect();
        let columns = used(columns, &is_used);
        let rows = rows.into_iter().map(|row| used(row, &is_used)).collect();
        Self { title: title.into(), columns, rows, note: None, has_cells: false }
    }

    /// Returns a table of one row for each of `items`. All rows have the same columns, each with its cell.
    pub(super) fn from_items<R, C: IntoIterator<Item = (Column, Cell)>>(
        title: impl Into<String>,
        items: impl IntoIterator<Item = R>,
        row: impl Fn(R) -> C,
    ) -> Self {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for item in items {
            let (of_row, cells) = row(item).into_iter().unzip();
            columns = of_row;
            rows.push(cells);
        }
        Self::new(title, columns, rows)
    }

    /// Adds an explanation below the table.
    pub(super) fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// The table without the column with this title.
    pub(super) fn without(self, title: &str) -> Self {
        let is_used: Vec<bool> = self.columns.iter().map(|column| column.title != title).collect();
        let rows = self.rows.into_iter().map(|row| used(row, &is_used)).collect();
        Self { columns: used(self.columns, &is_used), rows, ..self }
    }

    /// Marks the rows as the cells of an experiment.
    pub(super) fn for_cells(self) -> Self {
        Self { has_cells: true, ..self }
    }

    /// The table, unless it has no rows.
    pub fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}

fn used<T>(all: Vec<T>, is_used: &[bool]) -> Vec<T> {
    all.into_iter().zip(is_used).filter_map(|(item, is_used)| is_used.then_some(item)).collect()
}

/// A cell of a table. Without a value, its text is `n/a`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    text: String,
    /// Length of the bar behind the text, 0 to 1; in JSON in percent.
    #[serde(serialize_with = "whole_percent")]
    pub(super) share: Option<f64>,
    /// Address of a link.
    href: Option<String>,
    #[serde(skip)]
    is_absent: bool,
}

impl Cell {
    /// Makes the text a link.
    pub fn with_link(self, href: impl Into<String>) -> Self {
        Self { href: Some(href.into()), ..self }
    }

    /// Returns the text, in one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A number with one decimal.
    pub(super) fn decimal(value: Option<f64>) -> Self {
        value.map(|value| format!("{value:.1}")).into()
    }

    pub(super) fn share(value: Option<f64>) -> Self {
        value.map(percent).into()
    }

    /// Adds a bar of this length, 0 to 1.
    pub fn with_bar(self, share: f64) -> Self {
        Self { share: Some(share.clamp(0.0, 1.0)), ..self }
    }

    pub(super) fn has_value(&self) -> bool {
        !self.is_absent && !self.text.is_empty()
    }
}

#[expect(clippy::ref_option, reason = "the signature of serialize_with")]
fn whole_percent<S: Serializer>(share: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    share.map(|share| (share * 100.0).round()).serialize(serializer)
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: one_line(text).into_owned(), share: None, href: None, is_absent: false }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(|| Self { is_absent: true, ..ABSENT.into() }, Into::into)
    }
}
