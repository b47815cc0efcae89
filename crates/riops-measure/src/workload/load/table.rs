//! The table that `load` fills and `point` reads and updates, or several tables with its rows: their creation and their
//! expected contents.

use std::collections::BTreeMap;
use std::ops::Range;

use super::checksum::hash_text_extended;
use super::rows::binary_piece;
use crate::server::{Dialect, Feature};
use crate::workload::access::Index;
use crate::workload::check::{Bounds, Integers, Ledger, between, exact};
use crate::workload::tables::{CopySource, Dataset, Footprint, Job, TABLES_PER_TRANSACTION, Table};
use crate::workload::texts::Texts;
use crate::workload::{KeyColumn, NON_TRANSACTIONAL, fill};
use riops_model::plan::{Contents, LoadDataset};
use riops_model::record::Check;

/// Length in characters up to which the length of a text is stored in one byte.
const SHORT_TEXT_MAX: u64 = 126;

const CREATE_TABLE: &str = include_str!("../../../sql/load/create_table.sql");
pub(super) const COPY_BINARY: &str = include_str!("../../../sql/load/copy_binary.sql");
const COPY_FROZEN: &str = include_str!("../../../sql/load/copy_frozen.sql");
const ANALYZE: &str = include_str!("../../../sql/load/analyze.sql");
const SETTLE: &str = include_str!("../../../sql/dataset/settle.sql");
const IDS: &str = include_str!("../../../sql/load/ids.sql");
const PARTS: &str = include_str!("../../../sql/load/parts.sql");
const PRESENT: &str = include_str!("../../../sql/load/present.sql");
/// Query for the size of a row, in bytes.
pub(in crate::workload) const ROW_SIZE: &str = include_str!("../../../sql/load/row_size.sql");
/// Query that checks whether the role may read files on the server.
pub const FILE_RIGHTS: &str = include_str!("../../../sql/load/file_rights.sql");

/// Number of columns: the key and the texts.
pub(in crate::workload) const COLUMNS: usize = 5;
/// Maximum number of id ranges, each with a checksum.
const PARTS_MAX: u64 = 100;
/// Number of rows per transaction of `prepare`.
const PREPARE_BATCH: u64 = 50_000;
/// Maximum number of tables of a query: it locks all of them, and the server has a limited number of locks.
const TABLES_PER_QUERY: u32 = 100;

/// The table, or several, with all parameters.
#[derive(Debug, Clone)]
pub struct LoadTable {
    /// Parameters of the dataset.
    pub dataset: LoadDataset,
    /// Dialect of the server.
    pub dialect: Dialect,
}

/// Contents of a range of ids in the database, as the query returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    position: i128,
    rows: i128,
    wrong_lengths: i128,
    checksum: i128,
}

impl LoadTable {
    pub(in crate::workload) fn name(&self) -> &str {
        &self.dataset.table_name
    }

    /// Returns the qualified names of the tables.
    pub(in crate::workload) fn full_names(&self) -> Vec<String> {
        let name = |table| format!("riops.{}", self.dataset.name_of_table(table));
        (0..self.dataset.tables).map(name).collect()
    }

    /// Returns the index of the primary key of a table by its position.
    pub(in crate::workload) fn index(&self, table: u32) -> Index {
        let table = self.dataset.name_of_table(table);
        Index { name: format!("{table}_pkey"), table }
    }

    pub(in crate::workload) fn key_column(&self) -> KeyColumn {
        KeyColumn { name: "id", first: 0, keys: self.dataset.rows }
    }

    pub(in crate::workload) fn texts(&self) -> Texts {
        Texts::new(self.dataset.seed, self.dataset.field_length)
    }

    /// Returns the text of a statement on the first table in the dialect.
    pub(in crate::workload) fn sql(&self, template: &'static str) -> String {
        self.sql_of(0, template)
    }

    /// Returns the text of a statement on a table in the dialect.
    pub(in crate::workload) fn sql_of(&self, table: u32, template: &'static str) -> String {
        fill(self.dialect.sql(template), &[("table", &self.dataset.name_of_table(table))])
    }

    /// Returns an option in use that is not supported in this dialect. `non_transactional`: whether the run uses it.
    pub(in crate::workload) fn unsupported(
        &self,
        dialect: Dialect,
        non_transactional: bool,
    ) -> Option<&'static str> {
        let non_transactional = non_transactional || self.dataset.non_transactional;
        dialect.lacked_option(&[
            ("--tablets", self.dataset.tablets > 0, Feature::SplitTables),
            ("--non-transactional", non_transactional, Feature::NonTransactionalWrites),
        ])
    }

    fn create_sql(&self, table: u32) -> String {
        let tablets = match self.dataset.tablets {
            0 => LoadDataset::TABLETS,
            tablets => tablets,
        };
        let name = self.dataset.name_of_table(table);
        let values = [("table", name.as_str()), ("tablets", &tablets.to_string())];
        fill(self.dialect.sql(CREATE_TABLE), &values)
    }

    /// Returns the statement to execute after the load.
    pub fn finish_sql(&self) -> String {
        self.sql(SETTLE)
    }

    /// Returns the tables and the jobs with which `prepare` fills them in parallel.
    pub(in crate::workload) fn filled(&self) -> Dataset {
        let settings = self.dataset.non_transactional.then(|| NON_TRANSACTIONAL.to_owned());
        Dataset {
            parameters: serde_json::to_value(&self.dataset).unwrap_or_default(),
            footprint: self.footprint(),
            settings: settings.into_iter().collect(),
            tables: (0..self.dataset.tables).map(|table| self.filled_table(table)).collect(),
            ..Dataset::default()
        }
    }

    fn filled_table(&self, table: u32) -> Table {
        let (keys, texts) = (self.dataset.keys_of_table(table), self.texts());
        let (rows, sql) = (keys.end - keys.start, self.sql_of(table, COPY_BINARY));
        let is_frozen = self.dialect.has(Feature::Heap)
            && self.dataset.tables as usize > TABLES_PER_TRANSACTION;
        // A vacuum of many tables takes longer than their load, and frozen rows do not need it.
        let finish = self.sql_of(table, if is_frozen { ANALYZE } else { SETTLE });
        let job = move |position: u64| {
            let first = keys.start + position * PREPARE_BATCH;
            let end = keys.end.min(first + PREPARE_BATCH);
            Job::Copy { sql: sql.clone(), rows: end - first, source: source(texts, first..end) }
        };
        Table {
            name: format!("riops.{}", self.dataset.name_of_table(table)),
            create: vec![self.create_sql(table)],
            jobs: rows.div_ceil(PREPARE_BATCH),
            job: Box::new(job),
            frozen_copy: is_frozen.then(|| self.sql_of(table, COPY_FROZEN)),
            finish: vec![finish],
            zeros: Vec::new(),
            rows,
        }
    }

    /// Estimates the size of the tables. A text is preceded by its length in one or four bytes.
    fn footprint(&self) -> Footprint {
        let characters = u64::from(self.dataset.field_length);
        let length_bytes = if characters <= SHORT_TEXT_MAX { 1 } else { 4 };
        let tables = u64::from(self.dataset.tables);
        let rows = self.dataset.rows.div_ceil(tables);
        Footprint::of_table(rows, 4 + 4 * (characters + length_bytes), 1).times(tables)
    }

    /// Returns the number of rows of each range of ids except the last.
    fn part_rows(&self) -> u64 {
        self.dataset.rows.div_ceil(PARTS_MAX).max(1)
    }

    pub(in crate::workload) fn contents_sql(&self) -> Vec<String> {
        let (part, lengths) = (self.part_rows().to_string(), self.lengths().join(", "));
        let of_all = |template: &'static str| {
            let values = [("part", part.as_str()), ("lengths", lengths.as_str())];
            let sql = fill(template, &values);
            self.sources().into_iter().map(move |source| fill(&sql, &[("source", &source)]))
        };
        of_all(IDS).chain(of_all(PARTS)).collect()
    }

    /// Returns what the queries of the contents read: the table, or groups of several tables.
    fn sources(&self) -> Vec<String> {
        let names = self.full_names();
        let source = |names: &[String]| match names {
            [name] => name.clone(),
            names => {
                format!("(select * from {}) as tables", names.join(" union all select * from "))
            }
        };
        names.chunks(TABLES_PER_QUERY as usize).map(source).collect()
    }

    /// Divides the results of `contents_sql`, and of `ledger_sql` after them: the ids of each source, and the parts of all.
    fn divided<'a>(&self, contents: &'a Integers) -> (&'a [Vec<i128>], Vec<Part>, &'a [Vec<i128>]) {
        let sources = self.dataset.tables.div_ceil(TABLES_PER_QUERY) as usize;
        let (ids, rest) = contents.split_at(sources.min(contents.len()));
        let (numbers, rest) = rest.split_at(sources.min(rest.len()));
        (ids, parts(numbers), rest)
    }

    /// Compares the results of `contents_sql` for complete tables with the acknowledged updates.
    pub fn checks(&self, contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
        let rows = i128::from(self.dataset.rows);
        let (ids, parts, _) = self.divided(contents);
        let id = |position: usize| {
            ids.iter().map(move |ids| ids.get(position).copied().unwrap_or_default())
        };
        let name = self.dataset.names();
        let expected = match self.dataset.contents {
            Contents::Seed => Some(self.expected()),
            Contents::Unknown if baseline.len() > 1 => {
                let (_, parts, _) = self.divided(baseline);
                Some(parts.into_iter().map(|part| part.checksum).collect())
            }
            Contents::Unknown => None,
        };
        let mut checks = vec![
            exact(format!("rows of {name}"), rows, total(&parts, |part| part.rows)),
            exact(format!("distinct ids of {name}"), rows, id(0).sum()),
            exact(format!("smallest id of {name}"), 0, id(1).min().unwrap_or_default()),
            exact(format!("largest id of {name}"), rows - 1, id(2).max().unwrap_or_default()),
            self.lengths_check(&parts),
        ];
        checks.extend(expected.map(|expected| self.checksum_check(&parts, &expected, ledger)));
        checks
    }

    fn lengths(&self) -> Vec<String> {
        self.dataset.lengths().iter().map(ToString::to_string).collect()
    }

    fn lengths_check(&self, parts: &[Part]) -> Check {
        let lengths = self.lengths().join(" or ");
        let what = format!("rows with a text that is not {lengths} characters long");
        exact(what, 0, total(parts, |part| part.wrong_lengths))
    }

    /// Compares the checksums of the ranges. Each update changes the checksum of at most one range.
    fn checksum_check(&self, parts: &[Part], expected: &[i128], ledger: &Ledger) -> Check {
        let changed = (0..).zip(expected).filter(|(position, expected)| {
            let part = parts.iter().find(|part| part.position == *position);
            part.map(|part| part.checksum) != Some(**expected)
        });
        let changed: Vec<i128> = changed.map(|(position, _)| position).collect();
        let bounds = ledger.bounds();
        let all = i128::try_from(expected.len()).unwrap_or(i128::MAX);
        let most = bounds.most.unwrap_or(all).min(all);
        let (differing, part_rows) = (changed.len() as i128, self.part_rows());
        let mut check = Check {
            name: format!("ranges of {part_rows} ids with texts that differ from those loaded"),
            expected: match bounds.most {
                None => format!("0 to {most}, because a run did not report its changes"),
                Some(_) if most == 0 => "0".to_owned(),
                Some(_) => format!("0 to {most}"),
            },
            found: differing.to_string(),
            held: differing <= most,
            unknown: bounds.most.is_none(),
            ..Check::default()
        };
        if let Some(first) = changed.first().filter(|_| !check.held) {
            check.found = format!("{differing}, the first at id {}", first * i128::from(part_rows));
        }
        check
    }

    /// Compares an incompletely loaded table with the acknowledged rows.
    pub(in crate::workload) fn checks_of_incomplete_load(
        &self,
        contents: &Integers,
        ledger: &Ledger,
    ) -> Vec<Check> {
        let (ids, parts, batches) = self.divided(contents);
        let rows = total(&parts, |part| part.rows);
        let distinct = ids.iter().filter_map(|ids| ids.first()).sum();
        let name = self.dataset.names();
        let batches = Batches::count(ledger, batches);
        let bounds = Bounds::new(ledger.rows_changed, 0, batches.unresolved_rows, ledger.open_runs);
        let acknowledged = format!("acknowledged rows of {name}");
        let all = format!("rows of {name} (load incomplete)");
        let mut checks = vec![between(acknowledged, bounds, rows - batches.rows)];
        checks.extend(batches.check(self.dataset.non_transactional));
        checks.extend([
            exact(format!("distinct ids of {name}"), rows, distinct),
            self.lengths_check(&parts),
            exact(all, i128::from(self.dataset.rows), rows),
        ]);
        checks
    }

    /// Returns the queries for the number of rows in each batch with an unknown outcome.
    pub(in crate::workload) fn ledger_sql(&self, ledger: &Ledger) -> Vec<String> {
        let query = |(first, last): &(i64, i64)| {
            let (first, last) = (first.to_string(), last.to_string());
            fill(PRESENT, &[("table", self.name()), ("first", &first), ("last", &last)])
        };
        ledger.batches_unknown.iter().map(query).collect()
    }

    /// Returns the expected checksum of each range, computed from the texts that riops generates.
    pub(super) fn expected(&self) -> Vec<i128> {
        let (rows, part) = (self.dataset.rows, self.part_rows());
        let texts = self.texts();
        let mut row = vec![0; texts.length() * 4];
        let mut sum = |ids: Range<u64>| -> i128 {
            ids.map(|id| {
                for (column, text) in (0..).zip(row.chunks_exact_mut(texts.length())) {
                    texts.write(id, column, text);
                }
                i128::from(hash_text_extended(&row, id))
            })
            .sum()
        };
        (0..rows.div_ceil(part))
            .map(|position| sum(position * part..rows.min((position + 1) * part)))
            .collect()
    }
}

/// The batches with an unknown outcome. Their rows show whether they were applied: no other batch has the same
/// ids.
#[derive(Debug, Default)]
struct Batches {
    /// Number of batches with all their rows, with none of them, and with some of them.
    applied: usize,
    not_applied: usize,
    partial: usize,
    /// Number of rows found in these batches.
    rows: i128,
    /// Maximum number of rows of further batches, whose ids are not known.
    unresolved_rows: i128,
}

impl Batches {
    fn count(ledger: &Ledger, row_counts: &[Vec<i128>]) -> Self {
        let mut all = Self { unresolved_rows: ledger.rows_unknown, ..Self::default() };
        for (&(first, last), rows) in ledger.batches_unknown.iter().zip(row_counts) {
            let expected = i128::from(last) - i128::from(first) + 1;
            let rows = rows.first().copied().unwrap_or(0);
            match rows {
                0 => all.not_applied += 1,
                _ if rows == expected => all.applied += 1,
                _ => all.partial += 1,
            }
            all.rows += rows;
            all.unresolved_rows -= expected;
        }
        Self { unresolved_rows: all.unresolved_rows.max(0), ..all }
    }

    /// Returns the check that each batch has all its rows or none; `None` without such batches. Batches that
    /// are not transactions may have some of them.
    fn check(&self, non_transactional: bool) -> Option<Check> {
        let Self { applied, not_applied, partial, .. } = self;
        (applied + not_applied + partial > 0).then(|| Check {
            name: "batches with an unknown outcome".to_owned(),
            expected: "all of their rows or none".to_owned(),
            found: format!("{applied} with all, {not_applied} with none, {partial} with some"),
            held: *partial == 0 || non_transactional,
            ..Check::default()
        })
    }
}

/// Returns the ranges of ids. Several tables may have rows of the same range.
fn parts(contents: &[Vec<i128>]) -> Vec<Part> {
    let mut parts = BTreeMap::new();
    let numbers = contents.iter().flat_map(|numbers| numbers.as_chunks().0);
    for &[position, rows, wrong_lengths, checksum] in numbers {
        let empty = Part { position, rows: 0, wrong_lengths: 0, checksum: 0 };
        let part = parts.entry(position).or_insert(empty);
        part.rows += rows;
        part.wrong_lengths += wrong_lengths;
        part.checksum += checksum;
    }
    parts.into_values().collect()
}

fn total(parts: &[Part], value: impl Fn(&Part) -> i128) -> i128 {
    parts.iter().map(value).sum()
}

/// Returns the source of the binary COPY data of these rows.
fn source(texts: Texts, ids: Range<u64>) -> CopySource {
    let mut next = ids.start;
    Box::new(move |out| {
        next = binary_piece(texts, &ids, next, out);
        next < ids.end
    })
}
