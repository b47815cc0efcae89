//! The parameters of the workload `load`, and of the table that `load` fills and `point` reads and updates.

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::error::{PlanError, at_least_one, at_most, refuse, require_first};
use super::policy::{Protocol, Stop};
use super::spec::{Common, DatasetSpec, DatasetTraits, Spec, Traits, each_stage, overlaid};
use crate::units::sql::is_plain;

/// Name of the workload and of its dataset.
const NAME: &str = "load";
/// Maximum number of rows of a table: the key is an `int` and starts at 0.
const ROWS_MAX: u64 = 1 << 31;
/// Maximum length of a text field, in characters.
const FIELD_LENGTH_MAX: u32 = 1_000_000;
/// Maximum size of a batch that is sent as one message, in bytes: a quarter of the server's limit.
const BATCH_BYTES_MAX: u64 = 256 << 20;
/// Batches of each session if their size is not given: with fewer, some sessions would wait for others at the end.
const BATCHES_MIN: u64 = 10;
/// Maximum number of parameters of a statement: the protocol counts them in two bytes.
const PARAMETERS_MAX: u64 = 65_535;
/// Columns of the table: a key and four text fields.
const COLUMNS: u64 = 5;
/// Maximum number of tablets of the table, far more than a cluster supports.
const TABLETS_MAX: u32 = 10_000;
/// Maximum number of tables, the same as of `oltp`.
const TABLES_MAX: u32 = 10_000;
/// Maximum length of a table name, in bytes, without its number. PostgreSQL truncates names longer than 63 bytes.
const NAME_BYTES_MAX: usize = 48;

/// The origin of the texts of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// Derived by riops from the seed and the key: the expected contents can be recomputed.
    #[default]
    Seed,
    /// From the server or from files: only the contents found after the load are known.
    Unknown,
}

/// The table that `run load` fills, or several tables with its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, SmartDefault)]
pub struct LoadDataset {
    /// Name of the table in the schema `riops`.
    #[default = "test_table"]
    pub table_name: String,
    /// Number of tables. Each has a range of the keys, and all ranges are equally long, except for one key.
    #[default = 1]
    #[serde(default = "LoadDataset::one_table")]
    pub tables: u32,
    /// Number of rows of all tables together. The keys are 0 to `rows` − 1.
    #[default = 100_000]
    pub rows: u64,
    /// Length of each of the four text fields, in characters.
    #[default = 24]
    pub field_length: u32,
    /// Number of tablets, if the server has tablets; 0: [`Self::TABLETS`].
    pub tablets: u32,
    /// Whether it was loaded without transactions, if the server supports it.
    pub non_transactional: bool,
    /// Origin of the texts.
    pub contents: Contents,
    /// Random seed of the texts.
    pub seed: u64,
    /// Other text lengths written by updates, in characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updated_lengths: Vec<u32>,
}

impl LoadDataset {
    /// Default number of tablets, as in ysql-bench.
    pub const TABLETS: u32 = 3;

    fn one_table() -> u32 {
        1
    }

    /// Returns the name of a table by its position, from 0: the name without a number if there is one table.
    pub fn name_of_table(&self, position: u32) -> String {
        match self.tables {
            1 => self.table_name.clone(),
            _ => format!("{}_{}", self.table_name, position + 1),
        }
    }

    /// Returns the qualified names of all tables in a text for people.
    pub fn names(&self) -> String {
        let name = &self.table_name;
        match self.tables {
            1 => format!("riops.{name}"),
            tables => format!("riops.{name}_1 to {name}_{tables}"),
        }
    }

    /// Returns the keys of a table by its position, from 0.
    pub fn keys_of_table(&self, position: u32) -> Range<u64> {
        let first = |position: u32| self.rows * u64::from(position) / u64::from(self.tables);
        first(position)..first(position + 1)
    }

    /// Returns the position of the table that has this key.
    #[inline]
    pub fn table_of_key(&self, key: u64) -> u32 {
        // In the path of each transaction: a division for one table is saved.
        if self.tables == 1 {
            return 0;
        }
        let position = ((key + 1) * u64::from(self.tables) - 1) / self.rows.max(1);
        u32::try_from(position).unwrap_or(u32::MAX)
    }

    /// Returns all lengths that a text may have, in characters.
    pub fn lengths(&self) -> Vec<u32> {
        std::iter::once(self.field_length).chain(self.updated_lengths.iter().copied()).collect()
    }
}

pub(super) fn validate_field_length(length: u32) -> Result<(), PlanError> {
    at_least_one("--field-length", length)?;
    at_most("--field-length", length, FIELD_LENGTH_MAX, "")
}

/// The load method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// INSERT with a VALUES list.
    #[default]
    Insert,
    /// COPY FROM STDIN in text format.
    Copy,
    /// COPY FROM STDIN in binary format.
    CopyBinary,
    /// COPY FROM a file on the server, one file per session.
    CopyFile,
    /// A procedure that generates the rows in the server.
    Procedure,
    /// INSERT … SELECT FROM unnest, with one array per column.
    Unnest,
}

names!(Method {
    Insert: "insert",
    Copy: "copy",
    CopyBinary: "copy-binary",
    CopyFile: "copy-file",
    Procedure: "procedure",
    Unnest: "unnest"
});

impl Method {
    /// Returns the origin of the texts.
    pub fn contents(self) -> Contents {
        match self {
            Self::Insert | Self::Copy | Self::CopyBinary | Self::Unnest => Contents::Seed,
            Self::CopyFile | Self::Procedure => Contents::Unknown,
        }
    }
}

impl FromStr for Method {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let name = text.trim().replace('_', "-");
        let name = if name == "copy-mem" { "copy" } else { &name };
        serde_json::from_value(name.into()).or_else(|_| {
            refuse(format!(
                "unknown method \"{text}\": expected insert, copy (or copy_mem), copy-binary, copy-file, procedure or unnest"
            ))
        })
    }
}

/// The parameters of `run load`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, SmartDefault)]
pub struct LoadRun {
    /// Load method.
    pub method: Method,
    /// Methods to compare, one stage for each; empty: only `method`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Method>,
    /// Rows per statement. Each statement is one transaction.
    #[default = 200]
    pub batch_size: u64,
    /// Directory of the files of `copy-file` on the server.
    #[default = "/tmp"]
    pub dir: String,
    /// Whether rows are loaded without a distributed transaction (YugabyteDB).
    pub non_transactional: bool,
    /// Whether an existing table is dropped first.
    pub drop: bool,
}

impl LoadRun {
    /// Returns the rows per statement if none are given: the default of ysql-bench, but more if a method is COPY,
    /// because with 200 rows the commits take longer than the rows. All methods use the same number, so that they
    /// can be compared, and each session has several batches.
    pub fn default_batch(methods: &[Method], rows: u64, sessions: u32) -> u64 {
        let least = Self::default().batch_size;
        if !methods.iter().any(|method| matches!(method, Method::Copy | Method::CopyBinary)) {
            return least;
        }
        (rows / (BATCHES_MIN * u64::from(sessions.max(1)))).clamp(least, Self::COPY_BATCH)
    }

    /// Maximum number of rows of a batch that is not given, if a method is COPY.
    pub const COPY_BATCH: u64 = 10_000;

    /// Checks the run against its table and the protocol.
    ///
    /// # Errors
    /// [`PlanError`] if a batch does not fit into a statement.
    pub fn validate_for(&self, dataset: &LoadDataset, protocol: Protocol) -> Result<(), PlanError> {
        let batch = self.batch_size.min(dataset.rows);
        let bytes = batch.saturating_mul(4 * u64::from(dataset.field_length) + 64);
        for stage in self.stages() {
            let bound = stage.method == Method::Insert && protocol != Protocol::Simple;
            require!(
                !bound || batch <= PARAMETERS_MAX / COLUMNS,
                "--batch-size {batch} requires {} parameters, but a statement can have at most {PARAMETERS_MAX}: use a batch size of at most {}, another --method, or --protocol simple",
                batch.saturating_mul(COLUMNS),
                PARAMETERS_MAX / COLUMNS
            );
            let is_one_message = matches!(stage.method, Method::Insert | Method::Unnest);
            require!(
                !is_one_message || bytes <= BATCH_BYTES_MAX,
                "--batch-size {batch} gives a statement of about {} MB: use a smaller batch size, or --method copy, which streams a batch",
                bytes / 1_000_000
            );
        }
        Ok(())
    }
}

impl DatasetSpec for LoadDataset {
    fn traits(&self) -> DatasetTraits {
        DatasetTraits {
            name: NAME,
            provenance: &["seed", "contents", "non_transactional", "updated_lengths"],
            scale: &["rows"],
            // The rows of an interrupted load were measured and acknowledged, and can be verified.
            stays_when_interrupted: true,
            ..DatasetTraits::default()
        }
    }

    fn validate(&self) -> Result<(), PlanError> {
        at_least_one("--rows", self.rows)?;
        at_most("--rows", self.rows, ROWS_MAX, ": the key is an int")?;
        at_least_one("--tables", self.tables)?;
        at_most("--tables", self.tables, TABLES_MAX, "")?;
        require!(
            u64::from(self.tables) <= self.rows,
            "--tables {} exceeds --rows {}: each table has at least one row",
            self.tables,
            self.rows
        );
        validate_field_length(self.field_length)?;
        at_most("--tablets", self.tablets, TABLETS_MAX, "")?;
        let name = &self.table_name;
        require!(
            is_plain(name) && name.len() <= NAME_BYTES_MAX,
            "--table-name must consist of at most {NAME_BYTES_MAX} lowercase letters, digits and underscores, not \"{name}\""
        );
        // The tables of the registry and of the workload `rows`.
        require!(
            !["dataset", "run"].contains(&name.as_str()) && !name.starts_with("rows_"),
            "--table-name \"{name}\" is reserved for riops"
        );
        Ok(())
    }
}

impl Spec for LoadRun {
    fn traits(&self) -> Traits {
        Traits {
            name: NAME,
            dataset: Some(NAME),
            writes: true,
            counts_rows_of: Some(|_| true),
            needs_dedicated_sessions: true,
            is_exact: true,
            replaces_its_table: true,
            has_several_stages: self.methods.len() > 1,
            // A file is loaded with one statement, regardless of its number of rows.
            batch: (self.method != Method::CopyFile).then_some(self.batch_size),
            method: Some(self.method.as_str()),
            ..Traits::default()
        }
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        require_first("method", &self.method, &self.methods)?;
        at_least_one("--batch-size", self.batch_size)?;
        let dir = &self.dir;
        require!(
            dir.starts_with('/') && !dir.chars().any(char::is_control),
            "--dir must be an absolute path on the server, not \"{dir}\""
        );
        common.refuse_repetition_options(NAME)?;
        let table = overlaid(&LoadDataset::default(), common.dataset)?;
        require!(table.tables == 1, "run load fills one table: --tables is for riops prepare load");
        let own =
            common.share.map_or(0..table.rows, |share| share.rows_of(table.rows, self.batch_size));
        require!(
            common.stop == Stop::Rows(own.end - own.start),
            "invalid plan: a load stops after all {} rows (`dataset.rows`), which contradicts `stop`",
            table.rows
        );
        self.validate_for(&table, common.protocol)
    }

    fn stages(&self) -> Vec<Self> {
        let stage = |method| Self { method, methods: Vec::new(), ..self.clone() };
        each_stage(self.method, &self.methods).into_iter().map(stage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Protocol;

    #[test]
    fn parses_methods_by_all_their_names() {
        assert_eq!("copy_mem".parse(), Ok(Method::Copy));
        assert_eq!("copy_file".parse(), Ok(Method::CopyFile));
        for method in ["insert", "copy", "copy-binary", "copy-file", "procedure", "unnest"] {
            assert_eq!(method.parse::<Method>().unwrap().as_str(), method);
        }
        assert!("bulk".parse::<Method>().is_err());
    }

    #[test]
    fn a_copy_has_larger_batches_by_default() {
        let default_batch = LoadRun::default_batch;
        assert_eq!(default_batch(&[Method::Insert, Method::Unnest], 10_000_000, 4), 200);
        let with_copy = [Method::Unnest, Method::CopyBinary];
        assert_eq!(default_batch(&with_copy, 10_000_000, 4), 10_000);
        assert_eq!(default_batch(&with_copy, 100_000, 8), 1_250);
        assert_eq!(default_batch(&[Method::Copy], 1_000, 8), 200);
    }

    #[test]
    fn rejects_a_batch_with_too_many_parameters() {
        let dataset = LoadDataset::default();
        let run = |batch_size, method| LoadRun { method, batch_size, ..LoadRun::default() };
        let prepared = Protocol::Prepared;
        assert_eq!(run(13_107, Method::Insert).validate_for(&dataset, prepared), Ok(()));
        let refused = run(13_108, Method::Insert).validate_for(&dataset, prepared).unwrap_err();
        assert!(refused.to_string().contains("65540 parameters"), "{refused}");
        assert_eq!(run(13_108, Method::Insert).validate_for(&dataset, Protocol::Simple), Ok(()));
        assert_eq!(run(13_108, Method::Unnest).validate_for(&dataset, prepared), Ok(()));
        // The batch size is limited to the number of rows of the table.
        let small = LoadDataset { rows: 10, ..LoadDataset::default() };
        assert_eq!(run(1_000_000, Method::Insert).validate_for(&small, prepared), Ok(()));
    }

    #[test]
    fn rejects_a_batch_that_does_not_fit_into_a_message() {
        let dataset = LoadDataset { field_length: 1_000_000, ..LoadDataset::default() };
        let run = |method| LoadRun { method, ..LoadRun::default() };
        for method in [Method::Insert, Method::Unnest] {
            assert!(run(method).validate_for(&dataset, Protocol::Prepared).is_err());
        }
        assert_eq!(run(Method::Copy).validate_for(&dataset, Protocol::Prepared), Ok(()));
    }

    #[test]
    fn each_key_is_in_one_table_and_each_table_has_a_key() {
        for (rows, tables) in [(1, 1), (10, 7), (7, 7), (100_000, 10_000), (2_147_483_648, 9_999)] {
            let dataset = LoadDataset { tables, rows, ..LoadDataset::default() };
            assert_eq!(dataset.validate(), Ok(()));
            let mut next = 0;
            for table in 0..tables {
                let keys = dataset.keys_of_table(table);
                assert_eq!(keys.start, next);
                assert_eq!(dataset.table_of_key(keys.start), table, "{rows} rows, {tables} tables");
                assert_eq!(
                    dataset.table_of_key(keys.end - 1),
                    table,
                    "{rows} rows, {tables} tables"
                );
                next = keys.end;
            }
            assert_eq!(next, rows);
        }
        let too_many = LoadDataset { tables: 4, rows: 3, ..LoadDataset::default() };
        assert!(
            too_many.validate().unwrap_err().to_string().contains("--tables 4 exceeds --rows 3")
        );
    }

    #[test]
    fn rejects_table_names_that_need_quotes_or_are_reserved() {
        let named =
            |name: &str| LoadDataset { table_name: name.to_owned(), ..LoadDataset::default() };
        for good in ["test_table", "t1", "_x"] {
            assert_eq!(named(good).validate(), Ok(()), "{good}");
        }
        for bad in ["", "1t", "T", "a b", "a\"b", "run", "dataset", "rows_0001", "ä"] {
            assert!(named(bad).validate().is_err(), "{bad}");
        }
    }
}
