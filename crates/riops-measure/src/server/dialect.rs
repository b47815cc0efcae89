//! Features of servers. Everything that depends on the product is here, in `nodes` and in the SQL files: the other
//! modules ask for a feature, never for the product.
//!
//! The product is known from the version that the server sends at connect, without a query. A new product is a constant
//! like [`YUGABYTEDB`] in [`PRODUCTS`], with its SQL files. It has only the listed features: a server of the PostgreSQL
//! protocol need not have any others. `capabilities` probes the features that no version reveals.

use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

use riops_model::record::Flavor;

/// A feature that some servers lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// The catalogs, settings and functions of PostgreSQL.
    Catalogs,
    /// Tables are heaps: files of blocks in the data directory, cached in shared buffers, with the row versions (`ctid`,
    /// `xmin`) of MVCC that VACUUM cleans up and freezes. CHECKPOINT writes them.
    Heap,
    /// One server process shows the wait events of all sessions.
    WaitEvents,
    /// Advisory locks, which `pg_locks` shows: they reveal other runs.
    AdvisoryLocks,
    /// Several changes of the catalog are one transaction, and do not disturb other transactions. Otherwise each commits
    /// separately, and is repeated after a concurrent change.
    TransactionalDdl,
    /// CREATE DATABASE copies a database with its tables.
    DatabaseCopies,
    /// Unlogged tables.
    UnloggedTables,
    /// Several ranges of an index are combined with a bitmap.
    BitmapScans,
    /// Tables are stored by their primary keys: keys and indexes are created before the rows are loaded.
    KeysBeforeRows,
    /// Keys are sharded by hash unless they are declared as ranges: a range of hashed keys reads the whole table.
    HashKeys,
    /// Tables are split into tablets when they are created.
    SplitTables,
    /// Writes without a distributed transaction.
    NonTransactionalWrites,
    /// Reads from followers, which may be stale.
    FollowerReads,
    /// EXPLAIN (DIST) counts the requests to the storage.
    StorageCounters,
    /// A row is changed by its primary key without being read, if no index and no other column depends on its contents.
    BlindChanges,
    /// The failure of a request to the storage is an internal error, like any other one.
    HiddenFailures,
}

/// The features of a server, and its SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Name of the product in records.
    flavor: &'static str,
    features: &'static [Feature],
    /// SQL for PostgreSQL, each with the text of a sibling file that replaces it.
    variants: &'static [(&'static str, &'static str)],
    /// Version of PostgreSQL that it is or is compatible with, like `server_version_num`; 0 if unknown.
    pub version: u32,
    /// Function that orders keys by the hash that the server uses.
    pub hash_function: &'static str,
    /// Number of ids that a session should allocate at once; 0 for the default of the server.
    pub sequence_cache: u32,
}

macro_rules! sql_file {
    ($($part:expr),+) => {
        include_str!(concat!("../../sql/", $($part,)+ ".sql"))
    };
}

/// The SQL files that have a sibling file for this product.
macro_rules! variants {
    ($product:literal: $($name:literal),+ $(,)?) => {
        &[$((sql_file!($name), sql_file!($name, ".", $product))),+]
    };
}

const POSTGRESQL: Dialect = Dialect {
    flavor: "postgresql",
    features: &[
        Feature::Catalogs,
        Feature::Heap,
        Feature::WaitEvents,
        Feature::AdvisoryLocks,
        Feature::TransactionalDdl,
        Feature::DatabaseCopies,
        Feature::UnloggedTables,
        Feature::BitmapScans,
    ],
    variants: &[],
    version: 0,
    // Hash function of bigint in hash indexes and hash joins.
    hash_function: "hashint8",
    sequence_cache: 0,
};

/// Advisory locks are missing before 2025.1.
const YUGABYTEDB: Dialect = Dialect {
    flavor: "yugabytedb",
    features: &[
        Feature::Catalogs,
        Feature::KeysBeforeRows,
        Feature::HashKeys,
        Feature::SplitTables,
        Feature::NonTransactionalWrites,
        Feature::FollowerReads,
        Feature::StorageCounters,
        Feature::BlindChanges,
        Feature::HiddenFailures,
    ],
    variants: variants!(
        "yugabytedb": "dataset/settle", "load/copy_binary", "load/copy_file", "load/copy_text", "load/create_table",
        "oltp/copy", "oltp/create_bulk_table", "oltp/create_id_index", "oltp/create_index", "oltp/create_table",
        "oltp/settle", "rows/copy", "rows/create_index", "rows/create_table",
    ),
    hash_function: "yb_hash_code",
    // As in the vendor's sysbench.
    sequence_cache: 1_000,
    ..POSTGRESQL
};

/// Products, with the text in `server_version` by which each is recognized.
const PRODUCTS: [(&str, Dialect); 1] = [("-YB-", YUGABYTEDB)];

impl Default for Dialect {
    /// Returns the dialect of PostgreSQL, which also applies to servers that do not identify themselves.
    fn default() -> Self {
        POSTGRESQL
    }
}

impl Dialect {
    /// Returns the dialect of a server that sends this `server_version` at connect.
    pub fn from_version(server_version: &str) -> Self {
        let product = PRODUCTS.iter().find(|(mark, _)| server_version.contains(mark));
        let product = product.map_or(POSTGRESQL, |(_, product)| *product);
        Self { version: version_number(server_version), ..product }
    }

    /// Returns the dialect without all that the catalogs are needed for.
    pub(super) fn without_catalogs(self) -> Self {
        Self { features: &[], ..self }
    }

    /// Returns whether the server has a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Returns the product, for display.
    pub fn flavor(&self) -> Flavor {
        Flavor::named(self.flavor)
    }

    /// Returns the text that replaces a text for PostgreSQL: the text of its sibling file, or the same text.
    pub fn sql(&self, default: &'static str) -> &'static str {
        let variant = self.variants.iter().find(|(replaced, _)| *replaced == default);
        variant.map_or(default, |(_, sql)| sql)
    }

    /// Returns the first option in use whose feature the server lacks.
    pub fn lacked_option(&self, options: &[(&'static str, bool, Feature)]) -> Option<&'static str> {
        let lacked = options.iter().find(|(_, used, feature)| *used && !self.has(*feature));
        lacked.map(|(option, ..)| *option)
    }

    /// Returns whether an error may be the failure of a request to the storage. After a commit or an autocommitted
    /// change, the outcome is then unknown.
    pub fn is_failed_request(&self, error: &ServerError) -> bool {
        self.has(Feature::HiddenFailures) && error.sqlstate == SqlState::INTERNAL_ERROR
    }
}

/// Returns `server_version` as a number: 180001 for 18.1, 180000 for 18beta2, 0 if there is none.
fn version_number(text: &str) -> u32 {
    let leading = |text: &str| -> u32 {
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        text.get(..digits).and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    let minor = text.split_once('.').map_or(0, |(_, rest)| leading(rest));
    leading(text).saturating_mul(10_000).saturating_add(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_recognized_by_its_version() {
        let yugabytedb = Dialect::from_version("11.2-YB-2024.2.0.0-b0");
        assert_eq!(yugabytedb.flavor().to_string(), "YugabyteDB");
        assert!(yugabytedb.has(Feature::HashKeys) && !yugabytedb.has(Feature::Heap));
        assert_eq!(yugabytedb.sql(sql_file!("rows/copy")), sql_file!("rows/copy.yugabytedb"));
        let other = Dialect::from_version("16.3-Other-1.2");
        assert_eq!(other, Dialect { version: 160_003, ..POSTGRESQL });
        assert_eq!(other.sql(sql_file!("rows/copy")), sql_file!("rows/copy"));
    }

    #[test]
    fn versions_are_numbers() {
        let texts = ["18.1", "18beta2", "11.2-YB-2024.2.0.0-b0", "16.3 (Debian 16.3-1)", ""];
        let numbers = [180_001, 180_000, 110_002, 160_003, 0];
        assert_eq!(texts.map(version_number), numbers);
    }

    #[test]
    fn each_variant_replaces_one_text() {
        for (_, product) in PRODUCTS {
            let mut replaced: Vec<_> = product.variants.iter().map(|(text, _)| text).collect();
            let variants = replaced.len();
            replaced.sort_unstable();
            replaced.dedup();
            assert_eq!(replaced.len(), variants);
        }
    }
}
