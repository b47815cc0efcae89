//! A table as text. Its columns are as wide as their widest cell; in a narrow terminal, what does not fit
//! beside the first columns goes below them.

use crate::render::fill::{columns, fill};
use crate::table::{Cell, Column, Table, text_column};
use riops_model::units::format::truncated;

/// Gap between two columns.
const GAP: usize = 2;
/// Indentation of the cells below their row.
const BELOW_INDENT: usize = 4;

/// Number of columns of a terminal that a table takes with one line a row.
pub(crate) fn table_columns(table: &Table) -> usize {
    width_of(table, &shown(table, usize::MAX))
}

/// Characters of the longest bar.
const BAR_WIDTH: usize = 16;
/// Eighths of a character.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of this share of the longest.
fn bar(share: f64) -> String {
    let eighths = truncated((share.clamp(0.0, 1.0) * BAR_WIDTH as f64 * 8.0).round());
    let mut bar = "█".repeat(eighths / 8);
    match EIGHTHS.get(eighths % 8) {
        Some(' ') if bar.is_empty() => bar.push('▏'),
        Some(' ') | None => {}
        Some(&part) => bar.push(part),
    }
    bar
}

/// The table with its bars as columns, which are left out first.
pub(crate) fn with_bars(table: &Table) -> Table {
    let mut columns = Vec::new();
    let mut rows = vec![Vec::new(); table.rows.len()];
    for (at, column) in table.columns.iter().enumerate() {
        columns.push(column.clone());
        if column.drawn {
            columns.push(text_column("").optional());
        }
        for (row, cells) in table.rows.iter().zip(&mut rows) {
            let cell = row.get(at).cloned().unwrap_or_else(|| "".into());
            let bar = cell.share.map(bar);
            cells.push(cell);
            if column.drawn {
                cells.push(bar.unwrap_or_default().into());
            }
        }
    }
    Table { columns, rows, ..table.clone() }
}

/// The titles, then each row, in lines of at most `width` columns.
pub(crate) fn table_lines(table: &Table, width: usize) -> Vec<String> {
    let shown = shown(table, width);
    let mut beside = shown.len();
    while beside > 1 && width_of(table, shown.get(..beside).unwrap_or_default()) > width {
        beside -= 1;
    }
    let (beside, below) = shown.split_at(beside);
    // Once for all rows: each width depends on all of them.
    let widths: Vec<_> = beside.iter().map(|&at| (at, column_width(table, at))).collect();
    let title = |at: usize| table.columns.get(at).map_or("", |column| column.title.as_str());
    let mut lines = vec![line(table, &widths, title)];
    for row in &table.rows {
        let cell = |at: usize| row.get(at).map_or("", Cell::text);
        // A first column that is too wide has no column beside it.
        let first = line(table, &widths, cell);
        let is_wide = columns(&first) > width;
        lines.extend(if is_wide { fill(&first, width) } else { vec![first] });
        let named: Vec<_> = below
            .iter()
            .filter(|&&at| row.get(at).is_some_and(Cell::has_value))
            .map(|&at| format!("{} {}", title(at), cell(at)).trim().to_owned())
            .collect();
        if !named.is_empty() {
            let text = named.join(" · ");
            let space = width.saturating_sub(BELOW_INDENT);
            let below = fill(&text, space).into_iter();
            lines.extend(below.map(|line| format!("{:BELOW_INDENT$}{line}", "")));
        }
    }
    lines
}

/// All columns, or as many of the optional ones as fit.
fn shown(table: &Table, width: usize) -> Vec<usize> {
    let is_optional = |at: usize| table.columns.get(at).is_some_and(|column| column.optional);
    let mut shown: Vec<usize> = (0..table.columns.len()).collect();
    while width_of(table, &shown) > width {
        let Some(last) = shown.iter().rposition(|&at| is_optional(at)) else {
            break;
        };
        shown.remove(last);
    }
    shown
}

fn column_width(table: &Table, at: usize) -> usize {
    let cells = table.rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell.text()));
    let title = table.columns.get(at).map_or(0, |column| columns(&column.title));
    cells.max().unwrap_or(0).max(title)
}

fn width_of(table: &Table, shown: &[usize]) -> usize {
    let cells: usize = shown.iter().map(|&at| column_width(table, at)).sum();
    cells + GAP * shown.len().saturating_sub(1)
}

/// A line with the columns and their widths.
fn line<'a>(table: &Table, shown: &[(usize, usize)], cell: impl Fn(usize) -> &'a str) -> String {
    let cells = shown.iter().map(|&(at, width)| {
        let text = cell(at);
        let padding = width.saturating_sub(columns(text));
        match table.columns.get(at) {
            Some(Column { number: true, .. }) => format!("{:padding$}{text}", ""),
            _ => format!("{text}{:padding$}", ""),
        }
    });
    let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::number_column;

    fn example() -> Table {
        let columns = [
            number_column("batch"),
            number_column("rows/s"),
            text_column("").optional(),
            text_column("bottleneck"),
        ];
        let rows = [["1", "2,377", "▏", "none"], ["1,000,000", "615,000", "████", "CPU"]];
        Table::new("", columns, rows.map(|row| row.map(Cell::from).into()))
    }

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell() {
        assert_eq!(
            table_lines(&example(), usize::MAX),
            [
                "    batch   rows/s        bottleneck",
                "        1    2,377  ▏     none",
                "1,000,000  615,000  ████  CPU",
            ]
        );
    }

    #[test]
    fn bars_are_as_long_as_their_share_and_never_nothing() {
        assert_eq!(bar(1.0).chars().count(), BAR_WIDTH);
        assert_eq!(bar(0.5), "█".repeat(BAR_WIDTH / 2));
        assert_eq!(bar(0.0), "▏");
        assert_eq!(bar(0.07), "█▏");
    }

    #[test]
    fn a_column_without_values_is_not_shown() {
        let cells = vec!["one".into(), "".into(), None::<&str>.into()];
        let table = Table::new(
            "",
            [text_column("name"), text_column("label"), number_column("p99")],
            [cells],
        );
        assert_eq!(table_lines(&table, 80), ["name", "one"]);
    }

    #[test]
    fn in_a_narrow_terminal_the_bars_go_first_and_then_cells_go_below_their_row() {
        let wide = table_columns(&example());
        assert_eq!(table_lines(&example(), wide - 1)[2], "1,000,000  615,000  CPU");
        assert_eq!(
            table_lines(&example(), 20),
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
