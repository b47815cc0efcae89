//! The store on any backend: how it is opened by its location, and its runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use super::backend::{Access, Backend, Session, first, id_by_part, read_json, transact};
use super::derive;
use super::error::StoreError;
use super::filter::RunFilter;
use super::location::StoreLocation;
use super::postgresql::Postgresql;
use super::schema::{create, require_current};
use super::sqlite::Sqlite;
use crate::summary::Sort;
use crate::summary::{Reader, Row, RunKey, RunSummary, StageSummary};

use crate::figure::Value;
use crate::host::Interrupt;
use crate::record::{DiskLimit, Note, Record};
use crate::run::History;
use crate::units::format::joined;
use crate::units::text::nearest;

/// Runs that one query lists: far less than a connection accepts rows.
const PAGE_ROWS: u32 = 20_000;
/// The newest runs whose labels an error names, and the number of these labels.
const LABELS_FROM: u32 = 1_000;
const LABELS_MAX: usize = 5;
/// Ids in one statement: far less than SQLite accepts parameters.
const IDS_MAX: usize = 500;

const LIST: &str = include_str!("../../sql/store/list.sql");
const LIST_TAG: &str = include_str!("../../sql/store/list_tag.sql");
const STAGES: &str = include_str!("../../sql/store/stages.sql");
const LAST: &str = include_str!("../../sql/store/last.sql");
const KEY: &str = include_str!("../../sql/store/key.sql");
const KEYS_BY_LABEL: &str = include_str!("../../sql/store/keys_by_label.sql");
const KEYS_BY_TAG: &str = include_str!("../../sql/store/keys_by_tag.sql");
const UPDATE_RECORD: &str = include_str!("../../sql/store/record_update.sql");
const UPDATE_NOTE: &str = include_str!("../../sql/store/note_update.sql");
const UPDATE_LABEL: &str = include_str!("../../sql/store/label_update.sql");
const DELETE_TAGS: &str = include_str!("../../sql/store/tags_delete.sql");
const DELETE_RUN: &str = include_str!("../../sql/store/run_delete.sql");
const DISK_LIMIT: &str = include_str!("../../sql/store/device_limit.sql");
const DELETE_DISK_LIMIT: &str = include_str!("../../sql/store/device_limit_delete.sql");
const WRITABLE: &str = include_str!("../../sql/store/writable.sql");

/// Opens the store; creates it if necessary. Creates only the directory of [`default_path`](super::default_path): any other
/// missing directory may be a typing error.
///
/// # Errors
/// [`StoreError`] if the store cannot be accessed, or was written by another version of riops.
pub fn open(location: &StoreLocation, interrupt: &Interrupt) -> Result<Store, StoreError> {
    match location {
        StoreLocation::File(path) => Ok(Store::on(Sqlite::open(path, interrupt)?)?),
        StoreLocation::Postgresql(conninfo) => {
            Ok(Store::on(Postgresql::open(conninfo, interrupt)?)?)
        }
    }
}

/// Opens the store as [`open`] does; returns `None` instead of creating one.
///
/// # Errors
/// As [`open`].
pub fn open_existing(
    location: &StoreLocation,
    interrupt: &Interrupt,
) -> Result<Option<Store>, StoreError> {
    match location {
        StoreLocation::File(path) if !path.exists() => Ok(None),
        StoreLocation::File(_) => open(location, interrupt).map(Some),
        StoreLocation::Postgresql(conninfo) => {
            let backend = Postgresql::open(conninfo, interrupt)?;
            let exists = backend.exists()?;
            Ok(if exists { Some(Store::on(backend)?) } else { None })
        }
    }
}

/// A change of notes.
pub type EditNotes<'a> = &'a dyn Fn(&mut Vec<Note>);

/// Stored runs and device limits.
///
/// A run is named by the start or the end of its id, or by `last`, wherever a parameter is called `run`.
pub struct Store {
    pub(super) backend: Box<dyn Backend>,
}

impl Store {
    /// The store of a database, which gets its tables if it has none.
    fn on(backend: impl Backend + 'static) -> Result<Self, StoreError> {
        create(&backend)?;
        Ok(Self { backend: Box::new(backend) })
    }

    pub(super) fn read<T>(
        &self,
        work: impl FnMut(&mut dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        transact(&*self.backend, Access::Read, work)
    }

    pub(super) fn write<T>(
        &self,
        mut work: impl FnMut(&mut dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        transact(&*self.backend, Access::Write, |session| {
            require_current(&*self.backend, session)?;
            work(session)
        })
    }

    /// Changes a record and what is derived from the change.
    fn change(
        &self,
        run: &str,
        mut change: impl FnMut(&mut dyn Session, &mut Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.write(|session| {
            let id = self.id_in(session, run)?;
            let lock = session.dialect().lock_record;
            if !lock.is_empty() {
                session.query(lock, &[id.as_str().into()])?;
            }
            let mut record = find_in(session, &id)?;
            change(session, &mut record)?;
            session.query(UPDATE_RECORD, &[id.as_str().into(), encode(&record)?.into()]).map(drop)
        })
    }

    fn id_in(&self, session: &mut dyn Session, run: &str) -> Result<String, StoreError> {
        if run == "last" {
            let rows = session.query(LAST, &[])?;
            return first(rows).ok_or_else(|| StoreError::Empty(self.location()));
        }
        id_by_part(session, "runs", run)?.map_err(|count| match count {
            0 => StoreError::NotFound(run.to_owned()),
            count => StoreError::Ambiguous { prefix: run.to_owned(), count },
        })
    }

    /// Returns the result of a write. Its commit may have succeeded although its reply was lost.
    pub(super) fn confirmed(
        &self,
        saved: Result<(), StoreError>,
        exists: impl FnMut(&mut dyn Session) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        match saved {
            Err(error) if error.is_connection_lost() && self.read(exists).unwrap_or(false) => {
                Ok(())
            }
            saved => saved,
        }
    }

    /// Returns the keys of the runs that a label, a tag or a part of an id selects.
    fn keys_in(&self, session: &mut dyn Session, text: &str) -> Result<Vec<RunKey>, StoreError> {
        let (key, value) = text.split_once('=').unzip();
        let tag = [Value::from(key.unwrap_or(text)), Value::from(value)];
        let keys = |session: &mut dyn Session, sql, parameters: &[Value]| {
            let rows = session.query(sql, parameters)?;
            let location = self.location();
            let read = |row| {
                let mut row = Reader::new(&location, row);
                Ok(RunKey { id: row.read()?, workload: row.read()? })
            };
            rows.into_iter().map(read).collect::<Result<Vec<_>, StoreError>>()
        };
        if text != "last" {
            for (sql, parameters) in [(KEYS_BY_LABEL, &[text.into()][..]), (KEYS_BY_TAG, &tag)] {
                let matches = keys(session, sql, parameters)?;
                if !matches.is_empty() {
                    return Ok(matches);
                }
            }
        }
        match self.id_in(session, text) {
            Ok(id) => keys(session, KEY, &[id.into()]),
            Err(StoreError::NotFound(_)) => {
                // A tag resembles no label.
                let known = if value.is_none() {
                    let newest = self.page(session, &RunFilter::default(), LABELS_FROM, 0)?;
                    known_labels(text, &newest)
                } else {
                    String::new()
                };
                Err(StoreError::NoMatch { text: text.to_owned(), known })
            }
            Err(error) => Err(error),
        }
    }

    /// Lists one page of the runs.
    fn page(
        &self,
        session: &mut dyn Session,
        filter: &RunFilter,
        limit: u32,
        offset: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let columns = RunSummary::columns();
        let (sql, parameters) = Self::list_query(session, &columns, filter, limit, offset);
        let location = self.location();
        let rows = session.query(&sql, &parameters)?.into_iter();
        rows.map(|row| Ok(RunSummary::read(&mut Reader::new(&location, row))?)).collect()
    }

    /// Returns the number of the runs that match the filter, whatever its limit is.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        self.read(|session| {
            let (sql, parameters) = Self::list_query(session, "id", filter, u32::MAX, 0);
            let count = format!("select count(*) from ({sql}) as matches");
            let mut rows = session.query(&count, &parameters)?;
            let row = rows.pop().unwrap_or_default();
            Ok(Reader::new(&self.location(), row).read()?)
        })
    }

    /// Returns the query of a page of the runs, with its parameters.
    fn list_query(
        session: &dyn Session,
        columns: &str,
        filter: &RunFilter,
        limit: u32,
        offset: usize,
    ) -> (String, Vec<Value>) {
        let time = |time: Option<jiff::Timestamp>| Value::from(time);
        let mut parameters = vec![
            Value::from(filter.workload.clone()),
            Value::from(filter.label.clone()),
            time(filter.since),
            time(filter.until),
            Value::from(filter.valid),
            limit.into(),
            offset.into(),
            Value::from(filter.id.clone()),
            Value::from(Some(filter.unverified)),
        ];
        let mut conditions = String::new();
        let tags = filter.tags.iter().map(|tag| ("tags", tag));
        for (table, (key, value)) in tags.chain(filter.facts.iter().map(|fact| ("facts", fact))) {
            let next = parameters.len() + 1;
            conditions += &LIST_TAG
                .replace("{table}", table)
                .replace("{key}", &format!("${next}"))
                .replace("{value}", &format!("${}", next + 1));
            parameters.extend([key.clone().into(), value.clone().into()]);
        }
        let direction = if filter.sort.is_descending() { "desc" } else { "asc" };
        let order = format!(
            "{column} is null, {column} {direction}, started_at desc, id desc",
            column = filter.sort.column()
        );
        let sql = LIST
            .replace("{columns}", columns)
            .replace("{conditions}", &conditions)
            .replace("{order}", &order);
        (session.dialect().fill(&sql), parameters)
    }
}

/// Returns the label that is most similar to a text, or the newest ones, as the end of a sentence.
fn known_labels(text: &str, newest: &[RunSummary]) -> String {
    let mut labels: Vec<&str> = Vec::new();
    for label in newest.iter().filter_map(|run| run.label.as_deref()) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    match (nearest(text, labels.iter().copied()), labels.as_slice()) {
        (Some(label), _) => format!(": did you mean \"{label}\"?"),
        (None, []) => ": no run has a label".to_owned(),
        (None, labels) => {
            let shown = labels.iter().take(LABELS_MAX).map(|label| format!("\"{label}\""));
            let more = if labels.len() > LABELS_MAX { ", …" } else { "" };
            format!(": the newest labels are {}{more}", joined(shown, ", "))
        }
    }
}

/// Runs a query with a list of ids, in several parts if necessary.
fn query_ids(session: &mut dyn Session, sql: &str, ids: &[&str]) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for part in ids.chunks(IDS_MAX) {
        let names: Vec<_> = (1..=part.len()).map(|at| format!("${at}")).collect();
        let parameters: Vec<_> = part.iter().map(|&id| Value::from(id)).collect();
        rows.extend(session.query(&sql.replace("{ids}", &names.join(", ")), &parameters)?);
    }
    Ok(rows)
}

fn find_in(session: &mut dyn Session, id: &str) -> Result<Record, StoreError> {
    serde_json::from_str(&read_json(session, id)?)
        .map_err(|source| StoreError::Json { id: id.to_owned(), source })
}

fn encode(record: &Record) -> Result<String, StoreError> {
    serde_json::to_string(record)
        .map_err(|source| StoreError::Json { id: record.id.to_string(), source })
}

impl Store {
    /// Returns the path of the file, or the URL of the database without its password.
    pub fn location(&self) -> String {
        self.backend.location()
    }

    /// Fails if no run can be stored: before the run instead of after it. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written.
    pub fn require_writable(&self) -> Result<(), StoreError> {
        transact(&*self.backend, Access::Attempt, |session| {
            let sql = session.dialect().fill(WRITABLE);
            session.script(&sql)
        })
    }

    /// Stores a record, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if a run with this id is stored already, otherwise as for every method:
    /// [`StoreError`] if the store cannot be accessed.
    pub fn save(&self, record: &Record) -> Result<(), StoreError> {
        let id = record.id.to_string();
        let json = encode(record)?;
        let exists = |session: &mut dyn Session| match self.id_in(session, &id) {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        };
        let saved = self.write(|session| {
            if exists(session)? {
                return Err(StoreError::Exists(id.clone()));
            }
            derive::insert(session, record, json.clone())
        });
        self.confirmed(saved, exists)
    }

    /// Returns the full id of a run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Ambiguous`] or [`StoreError::Empty`] if no single run matches.
    pub fn id(&self, run: &str) -> Result<String, StoreError> {
        self.read(|session| self.id_in(session, run))
    }

    /// Returns a record.
    ///
    /// # Errors
    /// As [`Self::id`], and [`StoreError::Json`] if the record cannot be decoded.
    pub fn find(&self, run: &str) -> Result<Record, StoreError> {
        self.read(|session| {
            let id = self.id_in(session, run)?;
            find_in(session, &id)
        })
    }

    /// Returns the id of a stored run that was merged from the same runs.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn merged_from_the_same(&self, merged: &Record) -> Result<Option<String>, StoreError> {
        let parts = |record: &Record| -> BTreeSet<Option<Uuid>> {
            record.agents.iter().map(|agent| agent.run).collect()
        };
        // Both start with the first of these runs.
        let start = merged.started_at;
        let until = Some(start + Duration::from_secs(1));
        for run in self.list(&RunFilter { since: Some(start), until, ..RunFilter::default() })? {
            if parts(&self.find(&run.id)?) == parts(merged) {
                return Ok(Some(run.id));
            }
        }
        Ok(None)
    }

    /// Returns the records with a label, with a tag (`key=value` or `key`), or the record of a run, oldest
    /// first. A label precedes a tag, and a tag precedes an id.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn select(&self, text: &str) -> Result<Vec<Record>, StoreError> {
        self.read(|session| {
            let keys = self.keys_in(session, text)?;
            keys.iter().map(|key| find_in(session, &key.id)).collect()
        })
    }

    /// Returns the keys of the runs that [`Self::select`] returns. Reads no records.
    ///
    /// # Errors
    /// As [`Self::id`].
    pub fn select_keys(&self, text: &str) -> Result<Vec<RunKey>, StoreError> {
        self.read(|session| self.keys_in(session, text))
    }

    /// Returns the records of these runs in one transaction, in their order.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn records(&self, keys: &[RunKey]) -> Result<Vec<Record>, StoreError> {
        self.read(|session| keys.iter().map(|key| find_in(session, &key.id)).collect())
    }

    /// Returns the runs that match the filter. Reads no records.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    pub fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        self.read(|session| {
            let mut runs = Vec::new();
            loop {
                let rest = u32::try_from(limit - runs.len()).unwrap_or(u32::MAX).min(PAGE_ROWS);
                let offset = filter.offset as usize + runs.len();
                let page = self.page(session, filter, rest, offset)?;
                let is_last = page.len() < rest as usize;
                runs.extend(page);
                if is_last || runs.len() >= limit {
                    break;
                }
            }
            Ok(runs)
        })
    }

    /// Returns the stages of these runs, in the order of the given full ids. Reads no records.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    pub fn stages(&self, run_ids: &[String]) -> Result<Vec<StageSummary>, StoreError> {
        let ids: Vec<_> = run_ids.iter().map(String::as_str).collect();
        let sql = STAGES.replace("{columns}", &StageSummary::columns());
        let rows = self.read(|session| query_ids(session, &sql, &ids))?;
        let location = self.location();
        let mut by_run: BTreeMap<String, Vec<StageSummary>> = BTreeMap::new();
        for row in rows {
            let stage = StageSummary::read(&mut Reader::new(&location, row))?;
            by_run.entry(stage.run_id.clone()).or_default().push(stage);
        }
        Ok(ids.into_iter().flat_map(|id| by_run.remove(id).unwrap_or_default()).collect())
    }

    /// Sets and removes tags, in the table and in the record.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn tag(
        &self,
        run: &str,
        set: &BTreeMap<String, String>,
        remove: &[String],
    ) -> Result<(), StoreError> {
        self.change(run, |session, record| {
            record.tags.retain(|key, _| !remove.contains(key));
            record.tags.extend(set.clone());
            let id = record.id.to_string();
            session.query(DELETE_TAGS, &[id.as_str().into()])?;
            let rows: Vec<_> =
                record.tags.iter().map(|(key, value)| derive::tag(&id, key, value)).collect();
            session.insert("tags", &rows)
        })
    }

    /// Sets or removes the label, in the table and in the record.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn set_label(&self, run: &str, label: Option<&str>) -> Result<(), StoreError> {
        self.change(run, |session, record| {
            record.label = label.map(str::to_owned);
            session
                .query(UPDATE_LABEL, &[record.id.to_string().into(), Value::from(label)])
                .map(drop)
        })
    }

    /// Changes the notes of a run. The edit may be made again, if the store has to repeat its transaction.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn edit_notes(&self, run: &str, edit: EditNotes<'_>) -> Result<(), StoreError> {
        self.change(run, |session, record| {
            edit(&mut record.notes);
            let line = Value::from(Note::newest_line(&record.notes));
            session.query(UPDATE_NOTE, &[record.id.to_string().into(), line]).map(drop)
        })
    }

    /// Removes a run.
    ///
    /// # Errors
    /// As [`Self::id`].
    pub fn remove(&self, run: &str) -> Result<(), StoreError> {
        self.write(|session| {
            let id = self.id_in(session, run)?;
            session.query(DELETE_RUN, &[id.into()]).map(drop)
        })
    }

    /// Stores the measured limits of a device of a machine; replaces older ones.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    pub fn save_disk_limit(&self, host: &str, limit: &DiskLimit) -> Result<(), StoreError> {
        let json = serde_json::to_string(limit)
            .map_err(|source| StoreError::Json { id: limit.device.clone(), source })?;
        let key =
            [host.into(), limit.device.as_str().into(), Value::from(limit.identity.as_deref())];
        self.write(|session| {
            session.query(DELETE_DISK_LIMIT, &key)?;
            let [host, device, identity] = key.clone();
            let key = [host, device, identity, limit.measured_at.into()];
            let row = derive::device_limit(key, Some(limit), json.clone());
            session.insert("device_limits", &[row])
        })
    }

    /// Returns the stored limits of the device with this identity. Limits without identity, measured before
    /// it was stored or on a machine without one, are found by the names of machine and device.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    pub fn disk_limit(
        &self,
        host: &str,
        device: &str,
        identity: Option<&str>,
    ) -> Result<Option<DiskLimit>, StoreError> {
        let key = [host.into(), device.into(), Value::from(identity)];
        let json = self.read(|session| session.query(DISK_LIMIT, &key).map(first))?;
        json.map(|json| serde_json::from_str(&json))
            .transpose()
            .map_err(|source| StoreError::Json { id: device.to_owned(), source })
    }
}

/// Returns the records of all runs, oldest first.
///
/// # Errors
/// [`StoreError`] if the store cannot be accessed or a record cannot be decoded.
pub fn all_runs(store: &Store) -> Result<Vec<Record>, StoreError> {
    let filter = RunFilter { sort: Sort::parse("started_at:asc")?, ..RunFilter::default() };
    store.list(&filter)?.iter().map(|run| store.find(&run.id)).collect()
}

impl History for Store {
    fn record(&self, id: &str) -> Option<Record> {
        self.find(id).ok()
    }

    fn disk_limit(&self, host: &str, device: &str, identity: Option<&str>) -> Option<DiskLimit> {
        self.disk_limit(host, device, identity).ok().flatten()
    }
}
