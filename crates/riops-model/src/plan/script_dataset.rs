//! The parameters of the tables of pgbench.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::error::{PlanError, at_least_one, at_most, validate_schema};
use super::spec::{DatasetSpec, DatasetTraits};

/// Name of the dataset.
const NAME: &str = "script";
/// Maximum scale: the ids of the accounts are of 64 bits, and there are 100,000 for each.
const SCALE_MAX: u64 = 1_000_000;
/// Maximum number of partitions.
const PARTITIONS_MAX: u32 = 10_000;

/// How the accounts are partitioned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMethod {
    /// By ranges of ids.
    #[default]
    Range,
    /// By a hash of the id.
    Hash,
}

names!(PartitionMethod { Range: "range", Hash: "hash" });

/// The parameters of the dataset of `prepare script`: the tables of pgbench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default)]
pub struct ScriptDataset {
    /// Schema of the tables.
    #[default = "public"]
    pub schema: String,
    /// Number of branches, with 10 tellers and 100,000 accounts each.
    #[default = 1]
    pub scale: u64,
    /// Number of partitions of the accounts; 0: not partitioned.
    pub partitions: u32,
    /// How they are partitioned.
    pub partition_method: PartitionMethod,
    /// Whether the tables have foreign keys.
    pub foreign_keys: bool,
    /// Whether the tables are unlogged.
    pub unlogged_tables: bool,
    /// Fill factor of branches, tellers and accounts, in percent.
    #[default = 100]
    pub fillfactor: u32,
    /// Tablespace of the tables; null: the default.
    pub tablespace: Option<String>,
    /// Tablespace of the indexes; null: the default.
    pub index_tablespace: Option<String>,
    /// Whether the tables were not created by riops. Such tables are never dropped.
    pub adopted: bool,
}

impl DatasetSpec for ScriptDataset {
    fn traits(&self) -> DatasetTraits {
        DatasetTraits { name: NAME, provenance: &["adopted"], ..DatasetTraits::default() }
    }

    fn validate(&self) -> Result<(), PlanError> {
        validate_schema(&self.schema)?;
        at_least_one("--scale", self.scale)?;
        at_most("--scale", self.scale, SCALE_MAX, "")?;
        require!(
            (10..=100).contains(&self.fillfactor),
            "--fillfactor must be between 10 and 100, not {}",
            self.fillfactor
        );
        at_most("--partitions", self.partitions, PARTITIONS_MAX, "")?;
        require!(
            self.partitions > 0 || self.partition_method == PartitionMethod::default(),
            "--partition-method requires --partitions"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_invalid_datasets_with_the_name_of_the_option() {
        type Change = fn(&mut ScriptDataset);
        let cases: [(Change, &str); 5] = [
            (|dataset| dataset.scale = 0, "--scale"),
            (|dataset| dataset.fillfactor = 5, "--fillfactor"),
            (|dataset| dataset.partitions = 20_000, "--partitions"),
            (|dataset| dataset.partition_method = PartitionMethod::Hash, "--partition-method"),
            (|dataset| dataset.schema = "A".to_owned(), "--schema"),
        ];
        for (change, option) in cases {
            let mut dataset = ScriptDataset::default();
            assert_eq!(dataset.validate(), Ok(()));
            change(&mut dataset);
            assert!(dataset.validate().unwrap_err().to_string().contains(option));
        }
    }
}
