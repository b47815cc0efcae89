//! The parameters of the workloads `load` and `point`: of the table that one fills and the other
//! reads and updates, and of a run of each.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{PlanError, at_least_one, refuse, require_first};
use super::policy::{Protocol, Stop};
use super::spec::{Common, DatasetSpec, Spec, StageFacts, overlaid};

/// The workload's name, and that of its dataset.
const NAME: &str = "load";
/// Rows that a table may have: as many as an `int` key counts from 0.
const ROWS_MAX: u64 = 1 << 31;
/// Characters of one text field.
const FIELD_LENGTH_MAX: u32 = 1_000_000;
/// Bytes of a batch that is sent as one message: a quarter of what the server takes.
const BATCH_BYTES_MAX: u64 = 256 << 20;
/// The most parameters that a statement can have: the protocol counts them in two bytes.
const PARAMETERS_MAX: u64 = 65_535;
/// Columns of the table: a key and four texts.
const COLUMNS: u64 = 5;
/// Tablets of the table, far more than a cluster takes.
const TABLETS_MAX: u32 = 10_000;
/// PostgreSQL cuts longer names.
const NAME_BYTES_MAX: usize = 48;

/// Where the texts of a table come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// From riops, by the seed and the key: what has to be there can be computed again.
    #[default]
    Seed,
    /// From the server, or from files: only what was there after the load is known.
    Unknown,
}

/// The table that `run load` fills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadDataset {
    /// Its name in the schema `riops`.
    pub table_name: String,
    /// Its rows; the keys are 0…rows−1.
    pub rows: u64,
    /// Characters of each of its four texts.
    pub field_length: u32,
    /// Tablets, where the server has such; 0 is [`Self::TABLETS`].
    pub tablets: u32,
    /// Whether it was loaded without transactions, where the server can do that.
    pub non_transactional: bool,
    /// Where its texts come from.
    pub contents: Contents,
    /// From which they are derived.
    pub seed: u64,
    /// Other lengths that updates have given to texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updated_lengths: Vec<u32>,
}

impl Default for LoadDataset {
    fn default() -> Self {
        Self {
            table_name: "test_table".to_owned(),
            rows: 100_000,
            field_length: 24,
            tablets: 0,
            non_transactional: false,
            contents: Contents::Seed,
            seed: 0,
            updated_lengths: Vec::new(),
        }
    }
}

impl LoadDataset {
    /// Tablets where none are asked for, as in ysql-bench.
    pub const TABLETS: u32 = 3;

    /// Checks what can be checked without a target.
    ///
    /// # Errors
    /// [`PlanError`] that names the option, its value and what is allowed.
    pub fn validate(&self) -> Result<(), PlanError> {
        at_least_one("--rows", self.rows)?;
        if self.rows > ROWS_MAX {
            return refuse(format!(
                "--rows {} is more than {ROWS_MAX}: the key is an int",
                self.rows
            ));
        }
        validate_field_length(self.field_length)?;
        if self.tablets > TABLETS_MAX {
            return refuse(format!("--tablets {} is more than {TABLETS_MAX}", self.tablets));
        }
        let name = &self.table_name;
        let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && name
                .chars()
                .all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_');
        if !is_plain || name.len() > NAME_BYTES_MAX {
            return refuse(format!(
                "--table-name `{name}` is no name of at most {NAME_BYTES_MAX} small letters, digits and underscores"
            ));
        }
        // The registry's own tables, and those of the other workload.
        if ["dataset", "run"].contains(&name.as_str()) || name.starts_with("rows_") {
            return refuse(format!("--table-name {name} is a table of riops itself"));
        }
        Ok(())
    }

    /// Every length that a text may have.
    #[must_use]
    pub fn lengths(&self) -> Vec<u32> {
        std::iter::once(self.field_length).chain(self.updated_lengths.iter().copied()).collect()
    }
}

pub(super) fn validate_field_length(length: u32) -> Result<(), PlanError> {
    at_least_one("--field-length", u64::from(length))?;
    if length > FIELD_LENGTH_MAX {
        return refuse(format!("--field-length {length} is more than {FIELD_LENGTH_MAX}"));
    }
    Ok(())
}

/// How rows get into the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// INSERT with a list of rows.
    #[default]
    Insert,
    /// COPY FROM STDIN as text.
    Copy,
    /// COPY FROM STDIN in the binary format.
    CopyBinary,
    /// COPY of a file on the server, one for each session.
    CopyFile,
    /// A procedure in the server that makes the rows itself.
    Procedure,
    /// INSERT of an array for each column.
    Unnest,
}

impl Method {
    /// As it is typed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Copy => "copy",
            Self::CopyBinary => "copy-binary",
            Self::CopyFile => "copy-file",
            Self::Procedure => "procedure",
            Self::Unnest => "unnest",
        }
    }

    /// Where the texts come from.
    #[must_use]
    pub fn contents(self) -> Contents {
        match self {
            Self::Insert | Self::Copy | Self::CopyBinary | Self::Unnest => Contents::Seed,
            Self::CopyFile | Self::Procedure => Contents::Unknown,
        }
    }

    /// Whether a batch is made whole before it is sent.
    fn makes_whole_batches(self) -> bool {
        matches!(self, Self::Insert | Self::Unnest)
    }
}

impl FromStr for Method {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        Ok(match text.trim().replace('_', "-").as_str() {
            "insert" => Self::Insert,
            "copy" | "copy-mem" => Self::Copy,
            "copy-binary" => Self::CopyBinary,
            "copy-file" => Self::CopyFile,
            "procedure" => Self::Procedure,
            "unnest" => Self::Unnest,
            _ => {
                return refuse(format!(
                    "--method `{text}` is none of insert, copy (copy_mem), copy-binary, copy-file, procedure and unnest"
                ));
            }
        })
    }
}

/// What the sessions of `run load` do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRun {
    /// How rows get into the table.
    pub method: Method,
    /// The methods of a comparison, each a stage of its own; empty: only `method`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Method>,
    /// Rows of one statement, which is one transaction.
    pub batch_size: u64,
    /// Where the files of `copy-file` are on the server.
    pub dir: String,
    /// Whether rows are loaded without a distributed transaction (YugabyteDB).
    pub non_transactional: bool,
    /// Whether a table that is there already is dropped first.
    pub drop: bool,
}

impl Default for LoadRun {
    fn default() -> Self {
        Self {
            method: Method::Insert,
            methods: Vec::new(),
            batch_size: 200,
            dir: "/tmp".to_owned(),
            non_transactional: false,
            drop: false,
        }
    }
}

impl LoadRun {
    fn validate_alone(&self) -> Result<(), PlanError> {
        require_first("method", &self.method, &self.methods)?;
        at_least_one("--batch-size", self.batch_size)?;
        if !self.dir.starts_with('/') || self.dir.chars().any(char::is_control) {
            return refuse(format!("--dir `{}` is no absolute path on the server", self.dir));
        }
        Ok(())
    }

    /// Checks the run against the table that it is to fill, and the protocol that it uses.
    ///
    /// # Errors
    /// [`PlanError`] where a batch is larger than a statement can be.
    pub fn validate_for(&self, dataset: &LoadDataset, protocol: Protocol) -> Result<(), PlanError> {
        let batch = self.batch_size.min(dataset.rows);
        let bytes = batch.saturating_mul(4 * u64::from(dataset.field_length) + 64);
        for stage in self.stages() {
            let bound = stage.method == Method::Insert && protocol != Protocol::Simple;
            if bound && batch > PARAMETERS_MAX / COLUMNS {
                return refuse(format!(
                    "--batch-size {batch} makes {} parameters, and a statement can have {PARAMETERS_MAX}: use at most {}, or another --method, or --protocol simple",
                    batch.saturating_mul(COLUMNS),
                    PARAMETERS_MAX / COLUMNS
                ));
            }
            if stage.method.makes_whole_batches() && bytes > BATCH_BYTES_MAX {
                return refuse(format!(
                    "--batch-size {batch} makes a statement of about {} MB: use a smaller one, or --method copy, which sends a batch piece by piece",
                    bytes / 1_000_000
                ));
            }
        }
        Ok(())
    }

    /// What each stage does, in the order in which they are run.
    #[must_use]
    pub fn stages(&self) -> Vec<Self> {
        let methods =
            if self.methods.is_empty() { vec![self.method] } else { self.methods.clone() };
        methods
            .into_iter()
            .map(|method| Self { method, methods: Vec::new(), ..self.clone() })
            .collect()
    }
}

impl DatasetSpec for LoadDataset {
    fn name(&self) -> &'static str {
        NAME
    }

    fn validate(&self) -> Result<(), PlanError> {
        Self::validate(self)
    }

    fn provenance(&self) -> &'static [&'static str] {
        &["seed", "contents", "non_transactional", "updated_lengths"]
    }

    fn stays_when_interrupted(&self) -> bool {
        // A load was measured: its rows were acknowledged, and can be verified.
        true
    }
}

impl Spec for LoadRun {
    fn name(&self) -> &'static str {
        NAME
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        self.validate_alone()?;
        common.require_no_repetition(NAME)?;
        let table = overlaid(&LoadDataset::default(), common.dataset)?;
        if common.stop != Stop::Rows(table.rows) {
            return refuse(format!(
                "a load ends with the last of its {} rows (`dataset.rows`), and `stop` says otherwise",
                table.rows
            ));
        }
        self.validate_for(&table, common.protocol)
    }

    fn dataset(&self) -> Option<&'static str> {
        Some(NAME)
    }

    fn stages(&self) -> Vec<Self> {
        Self::stages(self)
    }

    fn facts(&self) -> StageFacts {
        StageFacts {
            // A file is one statement, however many rows it has.
            batch: (self.method != Method::CopyFile).then_some(self.batch_size),
            method: Some(self.method.as_str().to_owned()),
            ..StageFacts::default()
        }
    }

    fn writes(&self) -> bool {
        true
    }

    fn counts_changes_of(&self, _operation: &str) -> bool {
        true
    }

    fn needs_own_sessions(&self) -> bool {
        true
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn replaces_its_table(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Protocol;

    #[test]
    fn methods_are_read_under_both_names() {
        assert_eq!("copy_mem".parse(), Ok(Method::Copy));
        assert_eq!("copy_file".parse(), Ok(Method::CopyFile));
        for method in ["insert", "copy", "copy-binary", "copy-file", "procedure", "unnest"] {
            assert_eq!(method.parse::<Method>().unwrap().as_str(), method);
        }
        assert!("bulk".parse::<Method>().is_err());
    }

    #[test]
    fn a_batch_has_at_most_as_many_rows_as_parameters_allow() {
        let dataset = LoadDataset::default();
        let run = |batch_size, method| LoadRun { method, batch_size, ..LoadRun::default() };
        let prepared = Protocol::Prepared;
        assert_eq!(run(13_107, Method::Insert).validate_for(&dataset, prepared), Ok(()));
        let refused = run(13_108, Method::Insert).validate_for(&dataset, prepared).unwrap_err();
        assert!(refused.to_string().contains("65540 parameters"), "{refused}");
        assert_eq!(run(13_108, Method::Insert).validate_for(&dataset, Protocol::Simple), Ok(()));
        assert_eq!(run(13_108, Method::Unnest).validate_for(&dataset, prepared), Ok(()));
        // A table that is smaller than a batch makes smaller batches.
        let small = LoadDataset { rows: 10, ..LoadDataset::default() };
        assert_eq!(run(1_000_000, Method::Insert).validate_for(&small, prepared), Ok(()));
    }

    #[test]
    fn a_batch_that_does_not_fit_into_a_message_is_refused() {
        let dataset = LoadDataset { field_length: 1_000_000, ..LoadDataset::default() };
        let run = |method| LoadRun { method, ..LoadRun::default() };
        for method in [Method::Insert, Method::Unnest] {
            assert!(run(method).validate_for(&dataset, Protocol::Prepared).is_err());
        }
        assert_eq!(run(Method::Copy).validate_for(&dataset, Protocol::Prepared), Ok(()));
    }

    #[test]
    fn a_table_name_is_plain_and_not_one_of_riops_itself() {
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
