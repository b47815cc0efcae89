//! Records in a SQLite file in the user's data directory.
//!
//! Each record is stored as complete JSON, with the few columns that are needed to list and find runs.
//! Migrations only add to the schema; they run when an older file is opened.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use crate::record::{DiskLimit, Record};
use crate::run::History;

/// Migration steps; `user_version` of the file is the number of completed steps.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../../../sql/store/0001_run.sql"),
    include_str!("../../../../sql/store/0002_disk_limit.sql"),
    include_str!("../../../../sql/store/0003_device_limit.sql"),
];

/// A version that is written and rolled back to find out whether the file can be written.
const OTHER_VERSION: u32 = 1_000_000;

/// Two riops processes may save a run at the same time.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Failure to store or find a record.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be created.
    #[error(
        "cannot create the directory {path} for the store: {source}; choose another file with --store"
    )]
    Folder {
        /// Path of the directory.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The directory of a file other than the default one does not exist.
    #[error("the directory {} of the store {} does not exist: create it, or choose another file with --store", .0.parent().unwrap_or(.0).display(), .0.display())]
    NoFolder(PathBuf),
    /// An SQLite operation failed.
    #[error("cannot access the store {path}: {source}")]
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        /// Error from SQLite.
        source: rusqlite::Error,
    },
    /// The file was written by a newer version of riops.
    #[error(
        "the store {path} has format version {found}, but this riops supports only {known}; use a newer riops"
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Format version of the file.
        found: usize,
        /// Newest supported format version.
        known: usize,
    },
    /// A record cannot be encoded or decoded as JSON.
    #[error("cannot read or write the record \"{id}\" as JSON: {source}")]
    Json {
        /// Id of the record.
        id: String,
        /// Reason.
        source: serde_json::Error,
    },
    /// The run does not exist.
    #[error("run \"{0}\" not found in the store; list all runs with `riops runs list`")]
    NotFound(String),
    /// Several runs match.
    #[error("run id \"{prefix}\" is ambiguous: {count} runs match; give more characters of the id")]
    Ambiguous {
        /// Part of the id that was given.
        prefix: String,
        /// Number of matching runs.
        count: usize,
    },
    /// The store contains no runs.
    #[error("the store {0} has no runs yet; start one with `riops run rows`")]
    Empty(PathBuf),
}

/// Returns the default path of the store, in the user's data directory.
#[must_use]
pub fn default_path() -> PathBuf {
    let variable =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("XDG_DATA_HOME")
        .or_else(|| {
            variable("HOME").filter(|home| home.is_dir()).map(|home| home.join(".local/share"))
        })
        .map_or_else(
            || {
                let uid = rustix::process::geteuid().as_raw();
                PathBuf::from(format!("/var/tmp/riops-{uid}/runs.sqlite"))
            },
            |data| data.join("riops/runs.sqlite"),
        )
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[expect(missing_docs, reason = "columns of the table, named as in the record")]
pub struct RunSummary {
    pub id: String,
    pub started_at: String,
    pub workload: String,
    pub label: Option<String>,
    pub target: String,
    pub status: String,
    pub valid: bool,
    pub sessions: u32,
    pub rows_per_s: Option<f64>,
    pub transactions_per_s: Option<f64>,
    /// Response time with a rate, otherwise service time.
    pub p99_us: Option<f64>,
    pub service_p99_us: Option<f64>,
    /// Only with a rate.
    pub response_p99_us: Option<f64>,
}

/// The columns of [`RunSummary`]. The latencies of the fastest stage are read from the record, so that runs
/// stored by earlier versions have them too.
const LIST: &str = include_str!("../../../../sql/store/list.sql");

/// A SQLite file with records.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the file; creates or migrates it if necessary. Of all directories, only that of
    /// [`default_path`] is created: any other one may be a typing error.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be accessed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            if path != default_path() {
                return Err(StoreError::NoFolder(path.to_owned()));
            }
            std::fs::create_dir_all(folder)
                .map_err(|source| StoreError::Folder { path: folder.to_owned(), source })?;
        }
        let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(failed)?;
        let mut store = Self { connection, path: path.to_owned() };
        store.connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        store.migrate()?;
        Ok(store)
    }

    /// Fails if no run can be stored: before the run instead of after it. Writes to a page of the file, which
    /// also creates the journal in its directory, and rolls back.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be written.
    pub fn require_writable(&self) -> Result<(), StoreError> {
        let written = || -> rusqlite::Result<()> {
            self.connection.execute_batch("begin immediate")?;
            let written = self.connection.pragma_update(None, "user_version", OTHER_VERSION);
            self.connection.execute_batch("rollback")?;
            written
        };
        written().map_err(self.failed())
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self) -> impl FnOnce(rusqlite::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| StoreError::Sqlite { path, source }
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let failed = self.failed();
        let newer =
            |found| StoreError::Newer { path: self.path.clone(), found, known: MIGRATIONS.len() };
        let version = |connection: &Connection| -> rusqlite::Result<usize> {
            connection
                .query_row("pragma user_version", [], |row| row.get::<_, u32>(0))
                .map(|version| version as usize)
        };
        match version(&self.connection) {
            Ok(found) if found == MIGRATIONS.len() => return Ok(()),
            Ok(found) if found > MIGRATIONS.len() => return Err(newer(found)),
            Ok(_) => {}
            Err(error) => return Err(failed(error)),
        }
        let mut steps = || -> rusqlite::Result<()> {
            // Immediate: prevents two processes that open a new file at once from both migrating it.
            let transaction = self
                .connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for (done, step) in MIGRATIONS.iter().enumerate().skip(version(&transaction)?) {
                transaction.execute_batch(step)?;
                transaction.pragma_update(
                    None,
                    "user_version",
                    u32::try_from(done + 1).unwrap_or(u32::MAX),
                )?;
            }
            transaction.commit()
        };
        steps().map_err(failed)
    }

    /// Stores a record.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be accessed.
    pub fn save(&self, record: &Record) -> Result<(), StoreError> {
        let id = record.id.to_string();
        let json = serde_json::to_string(record)
            .map_err(|source| StoreError::Json { id: id.clone(), source })?;
        // The list shows the fastest of several stages; a statement that ran once has no rate.
        let stage = record
            .stages
            .iter()
            .filter(|stage| stage.statement.is_none())
            .max_by(|a, b| a.throughput.rows_per_s.total_cmp(&b.throughput.rows_per_s));
        self.connection
            .execute(
                "insert into run (id, started_at, workload, label, target, status, valid, sessions,
                                  rows_per_s, transactions_per_s, p99_us, record)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    id,
                    record.started_at.to_string(),
                    workload_title(record),
                    record.label,
                    format!("{} {}", record.target.flavor, record.target.server_version),
                    record.status.as_str(),
                    record.verdict.valid,
                    record.plan.sessions,
                    stage.map(|stage| stage.throughput.rows_per_s),
                    stage.map(|stage| stage.throughput.transactions_per_s),
                    stage
                        .map(|stage| &stage.session_loop)
                        // With a rate, only the response time includes the wait for a session.
                        .and_then(|each| each.response_us.as_ref().or(each.service_us.as_ref()))
                        .map(|latency| latency.p99),
                    json,
                ],
            )
            .map(drop)
            .map_err(self.failed())
    }

    /// Stores the measured limits of a device of a machine; replaces older ones.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be accessed.
    pub fn save_disk_limit(&mut self, host: &str, limit: &DiskLimit) -> Result<(), StoreError> {
        let json = serde_json::to_string(limit)
            .map_err(|source| StoreError::Json { id: limit.device.clone(), source })?;
        let failed = self.failed();
        let measured_at = limit.measured_at.to_string();
        let mut save = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction()?;
            // Names are not unique: without this, the old limits would be found for another device.
            transaction.execute(
                "delete from disk_limit where host = ?1 and device = ?2",
                params![host, limit.device],
            )?;
            match &limit.identity {
                Some(identity) => transaction.execute(
                    "insert or replace into device_limit (identity, host, device, measured_at, figures)
                     values (?1, ?2, ?3, ?4, ?5)",
                    params![identity, host, limit.device, measured_at, json],
                )?,
                None => transaction.execute(
                    "insert into disk_limit (host, device, measured_at, figures) values (?1, ?2, ?3, ?4)",
                    params![host, limit.device, measured_at, json],
                )?,
            };
            transaction.commit()
        };
        save().map_err(failed)
    }

    /// Returns the stored limits of the device with this identity. Limits without identity, measured before
    /// it was stored or on a machine without one, are found by the names of machine and device.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be accessed.
    pub fn disk_limit(
        &self,
        host: &str,
        device: &str,
        identity: Option<&str>,
    ) -> Result<Option<DiskLimit>, StoreError> {
        let sql = "select figures, 1 as place from device_limit where identity = ?3
                    union all
                   select figures, 2 from disk_limit where host = ?1 and device = ?2
                    order by place limit 1";
        let json: Option<String> = self
            .connection
            .query_row(sql, params![host, device, identity], |row| row.get(0))
            .optional()
            .map_err(self.failed())?;
        json.map(|json| serde_json::from_str(&json))
            .transpose()
            .map_err(|source| StoreError::Json { id: device.to_owned(), source })
    }

    /// Returns at most `limit` runs, newest first.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be accessed.
    pub fn list(&self, limit: u32) -> Result<Vec<RunSummary>, StoreError> {
        let read = || -> rusqlite::Result<Vec<RunSummary>> {
            let mut statement = self.connection.prepare(LIST)?;
            let rows = statement.query_map([limit], |row| {
                Ok(RunSummary {
                    id: row.get(0)?,
                    started_at: row.get(1)?,
                    workload: row.get(2)?,
                    label: row.get(3)?,
                    target: row.get(4)?,
                    status: row.get(5)?,
                    valid: row.get(6)?,
                    sessions: row.get(7)?,
                    rows_per_s: row.get(8)?,
                    transactions_per_s: row.get(9)?,
                    p99_us: row.get(10)?,
                    service_p99_us: row.get(11)?,
                    response_p99_us: row.get(12)?,
                })
            })?;
            rows.collect()
        };
        read().map_err(self.failed())
    }

    /// Returns the record whose id starts or ends with `part`, or the newest record for `last`. The
    /// list shows the end of each id because ids created in the same minute share their beginning.
    ///
    /// # Errors
    /// Returns [`StoreError::NotFound`], [`StoreError::Ambiguous`] or [`StoreError::Empty`] if no
    /// single run matches.
    pub fn find(&self, part: &str) -> Result<Record, StoreError> {
        let json = if part == "last" {
            self.connection
                .query_row(
                    "select record from run order by started_at desc, id desc limit 1",
                    [],
                    |row| row.get::<_, String>(0),
                )
                .optional()
                .map_err(self.failed())?
                .ok_or_else(|| StoreError::Empty(self.path.clone()))?
        } else {
            self.find_json(part)?
        };
        serde_json::from_str(&json)
            .map_err(|source| StoreError::Json { id: part.to_owned(), source })
    }

    fn find_json(&self, part: &str) -> Result<String, StoreError> {
        let valid = !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        if !valid {
            return Err(StoreError::NotFound(part.to_owned()));
        }
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self
                .connection
                .prepare("select id from run where id like ?1 || '%' or id like '%' || ?1")?;
            let rows = statement.query_map([part.to_ascii_lowercase()], |row| row.get(0))?;
            rows.collect()
        };
        let found = read().map_err(self.failed())?;
        let [id] = found.as_slice() else {
            return Err(match found.len() {
                0 => StoreError::NotFound(part.to_owned()),
                count => StoreError::Ambiguous { prefix: part.to_owned(), count },
            });
        };
        self.connection
            .query_row("select record from run where id = ?1", [id], |row| row.get(0))
            .map_err(self.failed())
    }
}

impl History for SqliteStore {
    fn record(&self, id: &str) -> Option<Record> {
        self.find(id).ok()
    }

    fn disk_limit(&self, host: &str, device: &str, identity: Option<&str>) -> Option<DiskLimit> {
        Self::disk_limit(self, host, device, identity).ok().flatten()
    }
}

/// Returns the workload and, for a single operation, its name: `oltp, point-select`.
fn workload_title(record: &Record) -> Cow<'_, str> {
    match record.stages.as_slice() {
        [stage] if stage.name.starts_with(&record.workload) => stage.name.as_str().into(),
        _ => record.plan.work.spec().title().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{example_cbc, example_record};

    #[test]
    fn finds_a_stored_record_by_part_of_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let record = example_record();
        let id = record.id.to_string();
        SqliteStore::open(&path).unwrap().save(&record).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        for part in [&id, &id[..10], &id[..1], &id[id.len() - 8..], &id[id.len() - 1..], "last"] {
            assert_eq!(store.find(part).unwrap(), record, "{part}");
        }
        let listed = store.list(10).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].id.as_str(), listed[0].valid), (id.as_str(), true));
    }

    #[test]
    fn refuses_a_directory_that_does_not_exist_instead_of_creating_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nested/runs.sqlite");
        let error = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::NoFolder(_)), "{error}");
        assert!(error.to_string().contains(&folder.path().join("nested").display().to_string()));
        assert!(!folder.path().join("nested").exists());
    }

    #[test]
    fn the_test_whether_a_store_can_be_written_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let store = SqliteStore::open(&path).unwrap();
        let before = std::fs::read(&path).unwrap();
        store.require_writable().unwrap();
        drop(store);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        SqliteStore::open(&path).unwrap().require_writable().unwrap();
    }

    #[test]
    fn lists_both_latencies_of_the_fastest_stage() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("runs.sqlite")).unwrap();
        let mut record = example_record();
        store.save(&record).unwrap();
        record.id = uuid::Uuid::now_v7();
        record.started_at = jiff::Timestamp::now();
        let mut slow = record.stages[0].clone();
        slow.throughput.rows_per_s /= 2.0;
        slow.session_loop.service_us.as_mut().unwrap().p99 = 1.0;
        let mut response = record.stages[0].session_loop.service_us.clone().unwrap();
        response.p99 = 2_850_000.0;
        record.stages[0].session_loop.response_us = Some(response);
        record.stages.push(slow);
        store.save(&record).unwrap();
        let service = record.stages[0].session_loop.service_us.as_ref().unwrap().p99;
        let list = store.list(9).unwrap();
        assert_eq!(list[0].response_p99_us, Some(2_850_000.0));
        assert_eq!((list[0].service_p99_us, list[0].p99_us), (Some(service), Some(2_850_000.0)));
        assert_eq!(list[1].response_p99_us, None);
        assert_eq!((list[1].service_p99_us, list[1].p99_us), (Some(service), Some(service)));
    }

    #[test]
    fn rejects_unknown_and_ambiguous_parts_of_an_id() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("runs.sqlite")).unwrap();
        assert!(matches!(store.find("last"), Err(StoreError::Empty(_))));
        let mut record = example_record();
        store.save(&record).unwrap();
        let prefix = record.id.to_string()[..8].to_owned();
        let mut bytes = *record.id.as_bytes();
        bytes[15] ^= 0xff;
        record.id = uuid::Uuid::from_bytes(bytes);
        store.save(&record).unwrap();
        assert!(matches!(store.find(&prefix), Err(StoreError::Ambiguous { count: 2, .. })));
        for part in ["", "%", "zzzz", "ffffffffffff"] {
            assert!(matches!(store.find(part), Err(StoreError::NotFound(_))), "{part}");
        }
    }

    #[test]
    fn lists_a_block_check_with_its_size_and_the_rate_of_its_selects() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("runs.sqlite")).unwrap();
        let mut record = example_cbc();
        store.save(&record).unwrap();
        record.id = uuid::Uuid::now_v7();
        record.stages.retain(|stage| stage.statement.is_some());
        store.save(&record).unwrap();
        let list = store.list(9).unwrap();
        assert!(list.iter().all(|run| run.workload == "cbc 1 GB"), "{list:?}");
        let mut rates: Vec<_> = list.iter().map(|run| run.transactions_per_s).collect();
        rates.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(rates, [None, Some(1200.0)]);
    }

    #[test]
    fn stores_the_latest_limits_of_a_device_by_its_identity() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(&folder.path().join("runs.sqlite")).unwrap();
        let mut limit = example_cbc().target.disk_limit.unwrap();
        limit.identity = Some("a1".to_owned());
        store.save_disk_limit("one", &limit).unwrap();
        limit.sequential_read.mb_s = 900.0;
        store.save_disk_limit("one", &limit).unwrap();
        let found = |host: &str, device: &str, identity: Option<&str>| {
            store.disk_limit(host, device, identity).unwrap()
        };
        assert_eq!(found("one", "vda", Some("a1")), Some(limit.clone()));
        // The machine and its device were renamed.
        assert_eq!(found("two", "vdb", Some("a1")), Some(limit));
        // Another machine has the same name.
        assert_eq!(found("one", "vda", Some("b2")), None);
        assert_eq!(found("one", "vda", None), None);
    }

    #[test]
    fn limits_without_identity_are_found_by_name_until_the_device_is_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let mut limit = example_cbc().target.disk_limit.unwrap();
        let old = Connection::open(&path).unwrap();
        for step in &MIGRATIONS[..2] {
            old.execute_batch(step).unwrap();
        }
        old.pragma_update(None, "user_version", 2).unwrap();
        let json = serde_json::to_string(&limit).unwrap();
        old.execute("insert into disk_limit values ('one', 'vda', 'then', ?1)", [json]).unwrap();
        drop(old);
        let mut store = SqliteStore::open(&path).unwrap();
        let found = |store: &SqliteStore, device: &str, identity: Option<&str>| {
            store.disk_limit("one", device, identity).unwrap()
        };
        assert_eq!(found(&store, "vda", Some("a1")), Some(limit.clone()));
        assert_eq!(found(&store, "vda", None), Some(limit.clone()));
        assert_eq!(found(&store, "vdb", Some("a1")), None);
        store.save_disk_limit("one", &limit).unwrap();
        assert_eq!(found(&store, "vda", Some("a1")), Some(limit.clone()));
        limit.identity = Some("a1".to_owned());
        store.save_disk_limit("one", &limit).unwrap();
        assert_eq!(found(&store, "vda", Some("a1")), Some(limit));
        assert_eq!(found(&store, "vda", Some("b2")), None);
    }

    #[test]
    fn does_not_modify_newer_stores_and_files_that_are_not_stores() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        SqliteStore::open(&path)
            .unwrap()
            .connection
            .pragma_update(None, "user_version", 99)
            .unwrap();
        assert!(matches!(SqliteStore::open(&path), Err(StoreError::Newer { found: 99, .. })));
        let other = folder.path().join("notes.txt");
        std::fs::write(&other, "These are my notes, not a database.".repeat(40)).unwrap();
        assert!(matches!(SqliteStore::open(&other), Err(StoreError::Sqlite { .. })));
        assert!(std::fs::read_to_string(&other).unwrap().starts_with("These are my notes"));
    }
}
