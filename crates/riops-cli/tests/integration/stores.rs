//! The same tests of the store on both backends: a SQLite file, and a database of the shared server.

use std::collections::BTreeMap;
use std::path::Path;

use riops::host::Interrupt;
use riops::record::{DiskLimit, DiskRate, Record};
use riops::server::Connection;
use riops::store::{
    self, ExperimentState, RunFilter, Store, StoreError, StoreLocation, StoredExperiment,
};
use riops::summary::Sort;

use crate::fixture::{database, folder};

/// Declares each test twice.
macro_rules! on_both_backends {
    ($($name:ident)+) => {
        mod sqlite { $(#[test] fn $name() { super::$name(&super::Place::file(stringify!($name))); })+ }
        mod postgresql { $(#[test] fn $name() { super::$name(&super::Place::database(stringify!($name))); })+ }
    };
}

on_both_backends! {
    finds_runs_by_id_label_and_tag
    stored_records_stay_unchanged_and_all_tables_are_derived
    lists_with_filters_order_and_limit
    changes_tags_and_label_in_the_table_and_in_the_record
    removes_a_run_from_all_tables
    notes_are_changed_and_facts_select_runs
    stores_the_latest_limits_of_a_device_by_its_identity
    refuses_stores_of_other_versions_without_changing_them
    several_riops_create_and_write_the_store_at_once
    stores_a_record_that_is_longer_than_a_message
    any_text_survives
    a_record_that_cannot_be_decoded_is_listed_and_can_be_removed
    finds_experiments_by_name_and_id
    replaces_the_state_of_an_experiment_and_keeps_its_definition
    experiments_are_listed_with_the_number_of_their_runs
    one_process_at_a_time_conducts_an_experiment
}

/// An empty place for a store.
pub(crate) enum Place {
    File(StoreLocation),
    Database(StoreLocation, Box<crate::fixture::Database>),
}

impl Place {
    pub(crate) fn file(name: &str) -> Self {
        Self::File(StoreLocation::File(folder(&format!("stores-{name}")).join("runs.sqlite")))
    }

    pub(crate) fn database(name: &str) -> Self {
        // Names of databases have at most 63 characters.
        let database = database(&format!("stores_{}", &name[..name.len().min(50)]));
        let location = StoreLocation::Postgresql(Box::new(database.conninfo.clone()));
        Self::Database(location, Box::new(database))
    }

    pub(crate) fn location(&self) -> &StoreLocation {
        match self {
            Self::File(location) | Self::Database(location, _) => location,
        }
    }

    pub(crate) fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<Store, StoreError> {
        store::open(self.location(), &Interrupt::new())
    }

    /// Runs SQL independently of riops, and returns the first column.
    pub(crate) fn sql(&self, sql: &str) -> Vec<Option<String>> {
        match self {
            Self::File(StoreLocation::File(path)) => {
                let raw = rusqlite::Connection::open(path).unwrap();
                let mut statement = raw.prepare(sql).unwrap();
                let mut rows = statement.raw_query();
                let mut values = Vec::new();
                while let Some(row) = rows.next().unwrap() {
                    values.push(match row.get_ref(0).unwrap() {
                        rusqlite::types::ValueRef::Null => None,
                        rusqlite::types::ValueRef::Integer(value) => Some(value.to_string()),
                        rusqlite::types::ValueRef::Real(value) => Some(value.to_string()),
                        other => Some(other.as_str().unwrap().to_owned()),
                    });
                }
                values
            }
            Self::Database(_, database) => {
                let mut raw: Connection = database.connect();
                raw.execute("set search_path to riops_store").unwrap();
                raw.query(sql)
                    .unwrap()
                    .into_iter()
                    .map(|row| row.into_iter().next().flatten())
                    .collect()
            }
            Self::File(StoreLocation::Postgresql(_)) => unreachable!(),
        }
    }

    fn count(&self, table: &str) -> usize {
        self.sql(&format!("select count(*) from {table}"))[0].as_ref().unwrap().parse().unwrap()
    }
}

const TABLES: [&str; 9] =
    ["runs", "records", "stages", "operations", "series", "errors", "accesses", "checks", "tags"];

/// The frozen records of earlier releases, each with another id and another start.
pub(crate) fn records() -> Vec<Record> {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records");
    let mut files: Vec<_> =
        std::fs::read_dir(records).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &Path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    files.iter().map(|path| read(path)).collect()
}

/// A record of the workload `rows`, with the given position in time.
pub(crate) fn record(position: u32) -> Record {
    let mut record = records().into_iter().find(|record| record.workload == "rows").unwrap();
    let second = jiff::SignedDuration::from_secs(i64::from(position));
    record.started_at = "2026-01-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap() + second;
    record.id = uuid::Uuid::from_u128(
        0x0189_0000_0000_7000_8000_0000_0000_0000 + u128::from(position) * 0x1111,
    );
    (record.label, record.tags) = (None, BTreeMap::new());
    record
}

fn ids(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| record.id.to_string()).collect()
}

fn finds_runs_by_id_label_and_tag(place: &Place) {
    let store = place.open();
    assert!(matches!(store.find("last"), Err(StoreError::Empty(_))));
    let mut all: Vec<_> = (1..=3).map(record).collect();
    all[0].label = Some("a".to_owned());
    all[1].label = Some("a".to_owned());
    all[2].label = Some("shared_buffers=2GB".to_owned());
    all[1].tags.insert("disk".to_owned(), "nvme".to_owned());
    all[2].tags.insert("disk".to_owned(), "hdd".to_owned());
    // The newest run is saved first: the store orders runs by their start.
    for record in all.iter().rev() {
        store.save(record).unwrap();
    }
    assert!(matches!(store.save(&all[0]), Err(StoreError::Exists(_))));
    let store = place.open();
    let id = all[0].id.to_string();
    for part in [&id, &id[id.len() - 5..], &id.to_uppercase()] {
        assert_eq!(store.find(part).unwrap(), all[0], "{part}");
    }
    assert_eq!(store.find("last").unwrap(), all[2]);
    assert!(matches!(store.find(&id[..8]), Err(StoreError::Ambiguous { count: 3, .. })));
    for part in ["", "%", "zzzz", "ffffffffffff", "'"] {
        assert!(matches!(store.find(part), Err(StoreError::NotFound(_))), "{part}");
    }
    let selected = |text: &str| ids(&store.select(text).unwrap());
    // A label precedes the ids that contain it.
    assert_eq!(selected("a"), ids(&all[..2]));
    assert_eq!(selected("shared_buffers=2GB"), ids(&all[2..]));
    assert_eq!(selected("disk"), ids(&all[1..]));
    assert_eq!(selected("disk=nvme"), ids(&all[1..2]));
    assert_eq!(selected("last"), ids(&all[2..]));
    assert_eq!(selected(&id), ids(&all[..1]));
    assert!(matches!(store.select("disk=tape"), Err(StoreError::NoMatch { .. })));
}

fn stored_records_stay_unchanged_and_all_tables_are_derived(place: &Place) {
    let store = place.open();
    store.require_writable().unwrap();
    let all = records();
    for record in &all {
        store.save(record).unwrap();
        assert_eq!(store.find(&record.id.to_string()).unwrap(), *record);
    }
    let runs = store.list(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), all.len());
    let stages = store.stages(&ids(&all)).unwrap();
    let of_records: Vec<_> = all.iter().flat_map(|record| &record.stages).collect();
    assert_eq!(stages.len(), of_records.len());
    for (stage, recorded) in stages.iter().zip(&of_records) {
        assert_eq!(stage.name, recorded.name);
        assert_eq!(stage.transactions_per_s, recorded.throughput.transactions_per_s);
        assert!(stage.rows_per_s.is_none_or(|rate| rate == recorded.throughput.rows_per_s));
        // With fewer than ten transactions beyond it, the percentile is not known.
        let service = recorded.session_loop.service_us.as_ref();
        let p99_us = service.filter(|latency| latency.count >= 1_000).map(|latency| latency.p99);
        assert_eq!(stage.service_p99_us, p99_us);
    }
    let loops: Vec<_> = of_records.iter().map(|stage| &stage.session_loop).collect();
    for (table, rows) in [
        (
            "operations",
            loops.iter().map(|session_loop| session_loop.operations.len()).sum::<usize>(),
        ),
        ("series", loops.iter().map(|session_loop| session_loop.series.len()).sum()),
        ("errors", loops.iter().map(|session_loop| session_loop.errors.len()).sum()),
        ("accesses", all.iter().map(|record| record.accesses.len()).sum()),
        ("checks", all.iter().map(|record| record.checks.len()).sum()),
        ("tags", all.iter().map(|record| record.tags.len()).sum()),
        ("stage_results", of_records.len()),
    ] {
        assert_eq!(place.count(table), rows, "{table}");
    }
    for view in ["changed_access_paths", "failed_checks", "run_errors", "run_tags"] {
        place.count(view);
    }
}

fn lists_with_filters_order_and_limit(place: &Place) {
    let store = place.open();
    for position in 1..=5_u32 {
        let mut record = record(position);
        record.stages.truncate(1);
        record.stages[0].throughput.rows_per_s =
            [30.0, 10.0, 50.0, 20.0, 40.0][position as usize - 1];
        record.verdict.valid = position != 3;
        record.label = Some(if position < 4 { "day" } else { "night" }.to_owned());
        record.tags.insert("number".to_owned(), position.to_string());
        store.save(&record).unwrap();
    }
    let numbers = |filter: RunFilter| -> String {
        let runs = store.list(&filter).unwrap();
        runs.iter().map(|run| run.tags["number"].as_str()).collect()
    };
    let default = RunFilter::default;
    let time = |text: &str| Some(text.parse().unwrap());
    assert_eq!(numbers(default()), "54321");
    assert_eq!(numbers(RunFilter { limit: Some(2), ..default() }), "54");
    assert_eq!(numbers(RunFilter { label: Some("day".to_owned()), ..default() }), "321");
    assert_eq!(numbers(RunFilter { valid: Some(false), ..default() }), "3");
    assert_eq!(numbers(RunFilter { valid: Some(true), ..default() }), "5421");
    // None of them was imported.
    let with_imported = RunFilter { valid: Some(true), unverified: true, ..default() };
    assert_eq!(numbers(with_imported), "5421");
    assert_eq!(numbers(RunFilter { workload: Some("rows".to_owned()), ..default() }), "54321");
    assert_eq!(numbers(RunFilter { workload: Some("row".to_owned()), ..default() }), "");
    assert_eq!(numbers(RunFilter { since: time("2026-01-01T00:00:04Z"), ..default() }), "54");
    // Fractions of a second sort as numbers, not as texts.
    assert_eq!(numbers(RunFilter { until: time("2026-01-01T00:00:02.5Z"), ..default() }), "21");
    assert_eq!(numbers(RunFilter { until: time("2026-01-01T00:00:02Z"), ..default() }), "1");
    let tag = |value: Option<&str>| ("number".to_owned(), value.map(str::to_owned));
    assert_eq!(numbers(RunFilter { tags: vec![tag(Some("4"))], ..default() }), "4");
    assert_eq!(numbers(RunFilter { tags: vec![tag(None)], limit: Some(1), ..default() }), "5");
    assert_eq!(numbers(RunFilter { tags: vec![tag(None), tag(Some("x"))], ..default() }), "");
    let sorted = |text: &str| numbers(RunFilter { sort: Sort::parse(text).unwrap(), ..default() });
    assert_eq!(sorted("rows_per_s"), "35142");
    assert_eq!(sorted("rows_per_s:asc"), "24153");
    for column in riops::summary::SORT_COLUMNS {
        assert_eq!(sorted(column).len(), 5, "{column}");
    }
}

fn changes_tags_and_label_in_the_table_and_in_the_record(place: &Place) {
    let store = place.open();
    let mut expected = record(1);
    expected.tags.insert("old".to_owned(), "1".to_owned());
    store.save(&expected).unwrap();
    let set = BTreeMap::from([("disk".to_owned(), "nvme".to_owned())]);
    store.tag("last", &set, &["old".to_owned()]).unwrap();
    store.set_label("last", Some("tuned")).unwrap();
    expected.tags = set.clone();
    expected.label = Some("tuned".to_owned());
    assert_eq!(store.find("last").unwrap(), expected);
    let run = store.list(&RunFilter::default()).unwrap().remove(0);
    assert_eq!((run.tags, run.label.as_deref()), (set, Some("tuned")));
    store.set_label("last", None).unwrap();
    assert_eq!(store.find("last").unwrap().label, None);
    assert_eq!(store.list(&RunFilter::default()).unwrap()[0].label, None);
}

fn removes_a_run_from_all_tables(place: &Place) {
    let store = place.open();
    let all = records();
    for record in &all {
        store.save(record).unwrap();
    }
    for record in &all {
        store.remove(&record.id.to_string()).unwrap();
    }
    for table in TABLES {
        assert_eq!(place.count(table), 0, "{table}");
    }
    assert!(matches!(store.remove(&all[0].id.to_string()), Err(StoreError::NotFound(_))));
}

fn stores_the_latest_limits_of_a_device_by_its_identity(place: &Place) {
    let store = place.open();
    let rate = DiskRate { mb_s: 500.0, requests_per_s: 500.0, p99_us: None, jobs: Some(1) };
    let mut limit = DiskLimit {
        device: "vda".to_owned(),
        identity: Some("a1".to_owned()),
        measured_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        tool: "fio-3".to_owned(),
        file_bytes: 1,
        seconds: 1.0,
        sequential_read: rate,
        sequential_write: rate,
        random_read: rate,
        random_write: rate,
        synchronized_write: Some(rate),
        others_busy_share: None,
    };
    store.save_disk_limit("one", &limit).unwrap();
    limit.sequential_read.mb_s = 900.0;
    store.save_disk_limit("one", &limit).unwrap();
    let stored = |host: &str, device: &str, identity: Option<&str>| {
        store.disk_limit(host, device, identity).unwrap()
    };
    assert_eq!(stored("one", "vda", Some("a1")), Some(limit.clone()));
    // The machine and its device were renamed.
    assert_eq!(stored("two", "vdb", Some("a1")), Some(limit.clone()));
    // Another machine has the same name.
    assert_eq!(stored("one", "vda", Some("b2")), None);
    assert_eq!(stored("one", "vda", None), None);
    limit.identity = None;
    store.save_disk_limit("one", &limit).unwrap();
    assert_eq!(stored("one", "vda", None), Some(limit));
    assert_eq!(place.count("device_limits"), 2);
    assert_eq!(
        place.sql("select sequential_read_mb_s from device_limits where identity = 'a1'"),
        [Some("900".to_owned())]
    );
}

fn refuses_stores_of_other_versions_without_changing_them(place: &Place) {
    let store = place.open();
    for (version, advice) in [(99, "use a newer riops"), (10, "`riops runs import runs.json`")] {
        place.sql(&match place {
            Place::File(_) => format!("pragma user_version = {version}"),
            Place::Database(..) => format!("update store_version set version = {version}"),
        });
        // Changed while it was open.
        assert!(matches!(store.save(&record(1)), Err(StoreError::Version { .. })));
        let error = place.try_open().err().unwrap();
        assert!(
            matches!(error, StoreError::Version { version: stored, .. } if stored == version),
            "{error}"
        );
        assert!(error.to_string().contains(advice), "{error}");
        assert_eq!(place.count("runs"), 0);
    }
}

fn several_riops_create_and_write_the_store_at_once(place: &Place) {
    let (writers, count) = (4_u32, 5_u32);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            scope.spawn(move || {
                let store = place.open();
                for position in 0..count {
                    store.save(&record(writer * count + position)).unwrap();
                    store
                        .tag(
                            "last",
                            &BTreeMap::from([(format!("w{writer}"), position.to_string())]),
                            &[],
                        )
                        .unwrap();
                }
            });
        }
    });
    let runs = place.open().list(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), (writers * count) as usize);
    for run in &runs {
        assert_eq!(place.open().find(&run.id).unwrap().tags, run.tags);
    }
}

fn stores_a_record_that_is_longer_than_a_message(place: &Place) {
    let mut record = record(1);
    // A message of the protocol has at most 16 MiB.
    record.failure = Some("ä€x".repeat(3_000_000));
    let store = place.open();
    store.save(&record).unwrap();
    assert!(store.find("last").unwrap() == record);
    let set = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    store.tag("last", &set, &[]).unwrap();
    record.tags = set;
    assert!(store.find("last").unwrap() == record);
}

fn any_text_survives(place: &Place) {
    let mut record = record(1);
    let text = "tab\t line\n return\r \\N \\. 'quote' \"double\" $1 ?1 ä€𝄞 %like_";
    record.label = Some(text.to_owned());
    record.tags.insert(text.to_owned(), text.to_owned());
    // PostgreSQL has no such character; in JSON it is escaped.
    record.failure = Some("a\0b".to_owned());
    let store = place.open();
    store.save(&record).unwrap();
    assert_eq!(store.select(text).unwrap(), [record.clone()]);
    let run = store.list(&RunFilter { label: Some(text.to_owned()), ..RunFilter::default() });
    let run = run.unwrap().remove(0);
    assert_eq!((run.label, run.tags), (record.label, record.tags));
}

fn a_record_that_cannot_be_decoded_is_listed_and_can_be_removed(place: &Place) {
    let store = place.open();
    store.save(&record(1)).unwrap();
    place.sql("update records set record = '{'");
    assert_eq!(store.list(&RunFilter::default()).unwrap().len(), 1);
    assert!(matches!(store.find("last"), Err(StoreError::Json { .. })));
    store.remove("last").unwrap();
    assert_eq!(place.count("records"), 0);
}

/// An experiment with the given position in time.
fn experiment(position: u32, name: &str) -> StoredExperiment {
    let record = record(position);
    StoredExperiment {
        id: record.id.to_string().parse().unwrap(),
        name: name.to_owned(),
        kind: "sweep".to_owned(),
        created_at: record.started_at,
        definition: "{\"name\": \"ä\\tb\"}".to_owned(),
        state: ExperimentState::default(),
        notes: Vec::new(),
    }
}

fn notes_are_changed_and_facts_select_runs(place: &Place) {
    let store = place.open();
    let mut runs = [record(1), record(2)];
    for (run, instance) in runs.iter_mut().zip(["small", "large"]) {
        run.plan.facts.insert("instance".to_owned(), instance.to_owned());
        store.save(run).unwrap();
    }
    let listed = |key: &str, value: Option<&str>| -> Vec<String> {
        let facts = vec![(key.to_owned(), value.map(str::to_owned))];
        let runs = store.list(&RunFilter { facts, ..RunFilter::default() }).unwrap();
        runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!(listed("instance", Some("large")), [runs[1].id.to_string()]);
    assert_eq!((listed("instance", None).len(), listed("vcpu", None).len()), (2, 0));
    let note = |text: &str| riops::record::Note::new(text, "ann".to_owned()).unwrap();
    let id = runs[0].id.to_string();
    let (one, two) = (note("one\nmore"), note("two"));
    store.edit_notes(&id, &|notes| notes.extend([one.clone(), two.clone()])).unwrap();
    let line = || {
        store
            .list(&RunFilter::default())
            .unwrap()
            .into_iter()
            .find(|run| run.id == id)
            .unwrap()
            .note
    };
    assert_eq!(line().as_deref(), Some("two"));
    store.edit_notes(&id, &|notes| drop(notes.pop())).unwrap();
    assert_eq!(line().as_deref(), Some("one"));
    assert_eq!(store.find(&id).unwrap().notes, std::slice::from_ref(&one));
    let noted = experiment(1, "noted");
    store.save_experiment(&noted).unwrap();
    store.edit_experiment_notes(&noted.id, &|notes| notes.push(one.clone())).unwrap();
    store.update_experiment(&noted.id, &ExperimentState::default()).unwrap();
    assert_eq!(store.experiment("noted").unwrap().notes, std::slice::from_ref(&one));
    assert_eq!(store.experiments().unwrap()[0].notes, [one]);
    assert!(store.edit_experiment_notes("none", &|_| {}).is_err());
}

fn finds_experiments_by_name_and_id(place: &Place) {
    let store = place.open();
    assert!(matches!(store.experiment("last"), Err(StoreError::NoExperiments(_))));
    assert_eq!(store.experiments().unwrap(), []);
    let all = [experiment(1, "batch"), experiment(2, "batch"), experiment(3, "what's \"it\" ä")];
    for experiment in all.iter().rev() {
        store.save_experiment(experiment).unwrap();
    }
    let error = store.save_experiment(&all[0]).unwrap_err();
    assert!(matches!(error, StoreError::ExperimentExists(_)), "{error}");
    let store = place.open();
    let id = &all[0].id;
    for part in [id.as_str(), &id[id.len() - 5..], &id.to_uppercase()] {
        assert_eq!(store.experiment(part).unwrap(), all[0], "{part}");
    }
    assert_eq!(store.experiment("last").unwrap(), all[2]);
    assert_eq!(store.experiment("batch").unwrap(), all[1], "the newest");
    assert_eq!(store.experiment(&all[2].name).unwrap(), all[2]);
    let ambiguous = store.experiment(&id[..8]).unwrap_err();
    assert!(matches!(ambiguous, StoreError::AmbiguousExperiment { count: 3, .. }), "{ambiguous}");
    for part in ["", "%", "batc", "ffffffffffff", "'"] {
        let error = store.experiment(part).unwrap_err();
        assert!(matches!(error, StoreError::ExperimentNotFound(_)), "{part}: {error}");
    }
    let listed = store.experiments().unwrap();
    let ids: Vec<_> = listed.iter().map(|experiment| experiment.id.as_str()).collect();
    assert_eq!(ids, [&*all[2].id, &*all[1].id, &*all[0].id], "the newest first");
}

fn replaces_the_state_of_an_experiment_and_keeps_its_definition(place: &Place) {
    let store = place.open();
    let (mut expected, other) = (experiment(1, "a"), experiment(2, "b"));
    store.save_experiment(&expected).unwrap();
    store.save_experiment(&other).unwrap();
    let states = [
        ExperimentState {
            finished_at: Some("2026-01-02T03:04:05.678901Z".parse().unwrap()),
            failures: "[{\"error\": \"x\"}]".to_owned(),
            environment: Some("{}".to_owned()),
        },
        ExperimentState::default(),
    ];
    for state in states {
        store.update_experiment(&expected.id, &state).unwrap();
        expected.state = state;
        assert_eq!(store.experiment("a").unwrap(), expected);
        let listed = store.experiments().unwrap();
        assert_eq!(listed[1].finished_at, expected.state.finished_at);
    }
    assert_eq!(store.experiment("b").unwrap(), other);
    let unknown = record(9).id.to_string();
    let error = store.update_experiment(&unknown, &ExperimentState::default()).unwrap_err();
    assert!(matches!(error, StoreError::ExperimentNotFound(_)), "{error}");
}

fn experiments_are_listed_with_the_number_of_their_runs(place: &Place) {
    let store = place.open();
    let (one, two) = (experiment(1, "one"), experiment(2, "two"));
    for (position, experiment) in [(3, &one), (4, &two), (5, &two)] {
        let mut record = record(position);
        record.tags.insert("experiment".to_owned(), experiment.id.to_string());
        store.save(&record).unwrap();
    }
    store.save_experiment(&one).unwrap();
    store.save_experiment(&two).unwrap();
    let runs: Vec<_> =
        store.experiments().unwrap().iter().map(|experiment| experiment.runs).collect();
    assert_eq!(runs, [2, 1]);
}

fn one_process_at_a_time_conducts_an_experiment(place: &Place) {
    let (first, second) = (place.open(), place.open());
    let (one, two) = (experiment(1, "one").id, experiment(2, "two").id);
    let mut held = first.lock_experiment(&one).unwrap().unwrap();
    assert!(second.lock_experiment(&one).unwrap().is_none());
    assert!(first.lock_experiment(&one).unwrap().is_none());
    let other = second.lock_experiment(&two).unwrap();
    assert!(other.is_some());
    // Work in the store does not release it.
    first.save_experiment(&experiment(1, "one")).unwrap();
    held.check().unwrap();
    assert!(second.lock_experiment(&one).unwrap().is_none());
    drop(held);
    // A server ends a session after the client has closed it.
    let mut again = None;
    while again.is_none() {
        again = second.lock_experiment(&one).unwrap();
    }
    drop((again, other));
    if let Place::File(StoreLocation::File(path)) = place {
        let beside: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(beside.len(), 1, "only the store: {beside:?}");
    }
}
