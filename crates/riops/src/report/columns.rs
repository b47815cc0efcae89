//! A table as text. Its columns are as wide as their widest cell; in a narrow terminal, what does not fit
//! beside the first columns goes below them.

use std::borrow::Cow;

use super::fill::{columns, fill};
use crate::units::text::one_line;

/// Gap between two columns.
const GAP: usize = 2;
/// Indentation of the cells below their row.
const BELOW_INDENT: usize = 4;

/// How the cells of a column are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    /// To the left. Optional columns are left out of a table that is too wide, the last one first.
    Optional,
    /// To the right, and optional.
    OptionalRight,
}

/// A table: titles, and rows with a cell for each.
pub(super) struct Columns {
    titles: Vec<(Cow<'static, str>, Align)>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub(super) fn new<T: Into<Cow<'static, str>>>(
        titles: impl IntoIterator<Item = (T, Align)>,
    ) -> Self {
        let titles = titles.into_iter().map(|(title, align)| (title.into(), align));
        Self { titles: titles.collect(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell).into_owned()).collect());
    }

    /// Number of columns of a terminal that it takes with one line a row.
    pub(super) fn columns(&self) -> usize {
        self.width_of(&self.shown(usize::MAX))
    }

    /// The titles, then each row, in lines of at most `width` columns.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let shown = self.shown(width);
        let mut beside = shown.len();
        while beside > 1 && self.width_of(shown.get(..beside).unwrap_or_default()) > width {
            beside -= 1;
        }
        let (beside, below) = shown.split_at(beside);
        // Once for all rows: each width depends on all of them.
        let widths: Vec<_> =
            beside.iter().map(|&column| (column, self.column_width(column))).collect();
        let mut lines = vec![self.line(&widths, |column| self.title(column))];
        for row in &self.rows {
            let cell = |column: usize| row.get(column).map_or("", String::as_str);
            lines.push(self.line(&widths, cell));
            let named: Vec<_> = below
                .iter()
                .filter(|&&column| !cell(column).is_empty())
                .map(|&column| format!("{} {}", self.title(column), cell(column)).trim().to_owned())
                .collect();
            if !named.is_empty() {
                let text = named.join(" · ");
                let space = width.saturating_sub(BELOW_INDENT);
                lines.extend(
                    fill(&text, space).iter().map(|line| format!("{:BELOW_INDENT$}{line}", "")),
                );
            }
        }
        lines
    }

    /// The columns to show: those that are not empty, and as many of the optional ones as fit.
    fn shown(&self, width: usize) -> Vec<usize> {
        let is_filled =
            |row: &Vec<String>, column: usize| row.get(column).is_some_and(|cell| !cell.is_empty());
        let all: Vec<_> = (0..self.titles.len())
            .filter(|&column| self.rows.iter().any(|row| is_filled(row, column)))
            .collect();
        let optional = |column: usize| {
            self.titles
                .get(column)
                .is_some_and(|(_, align)| matches!(align, Align::Optional | Align::OptionalRight))
        };
        let mut shown = all;
        while self.width_of(&shown) > width {
            let Some(last) = shown.iter().rposition(|&column| optional(column)) else {
                break;
            };
            shown.remove(last);
        }
        shown
    }

    fn title(&self, column: usize) -> &str {
        self.titles.get(column).map_or("", |(title, _)| title)
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell));
        cells.max().unwrap_or(0).max(columns(self.title(column)))
    }

    fn width_of(&self, shown: &[usize]) -> usize {
        let cells: usize = shown.iter().map(|&column| self.column_width(column)).sum();
        cells + GAP * shown.len().saturating_sub(1)
    }

    /// A line with the columns and their widths.
    fn line<'a>(&self, shown: &[(usize, usize)], cell: impl Fn(usize) -> &'a str) -> String {
        let cells = shown.iter().map(|&(column, width)| {
            let text = cell(column);
            let padding = width.saturating_sub(columns(text));
            match self.titles.get(column) {
                Some((_, Align::Right | Align::OptionalRight)) => format!("{:padding$}{text}", ""),
                _ => format!("{text}{:padding$}", ""),
            }
        });
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Columns {
        let mut table = Columns::new([
            ("batch", Align::Right),
            ("rows/s", Align::Right),
            ("", Align::Optional),
            ("bottleneck", Align::Left),
        ]);
        let cells = |cells: [&str; 4]| cells.map(str::to_owned);
        table.row(cells(["1", "2,377", "▏", "none"]));
        table.row(cells(["1,000,000", "615,000", "████", "CPU"]));
        table
    }

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell() {
        assert_eq!(
            table().lines(usize::MAX),
            [
                "    batch   rows/s        bottleneck",
                "        1    2,377  ▏     none",
                "1,000,000  615,000  ████  CPU",
            ]
        );
    }

    #[test]
    fn a_column_without_values_is_not_shown() {
        let mut table = Columns::new([("name", Align::Left), ("label", Align::Left)]);
        table.row(["one".to_owned(), String::new()]);
        assert_eq!(table.lines(80), ["name", "one"]);
    }

    #[test]
    fn in_a_narrow_terminal_the_bars_go_first_and_then_cells_go_below_their_row() {
        let wide = table().columns();
        assert_eq!(table().lines(wide - 1)[2], "1,000,000  615,000  CPU");
        assert_eq!(
            table().lines(20),
            [
                "    batch   rows/s",
                "        1    2,377",
                "    bottleneck none",
                "1,000,000  615,000",
                "    bottleneck CPU",
            ]
        );
    }
}
