//! Tests of the SQLite file and of its earlier versions. What all backends have in common is tested in
//! `riops-cli/tests/integration/stores.rs`, where a PostgreSQL server is available.

use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::host::Interrupt;
use crate::record::{DiskLimit, Record};
use crate::report::{example_cbc, example_record};

fn open_file(path: &Path) -> Result<Store, StoreError> {
    open(&StoreLocation::File(path.to_owned()), &Interrupt::new())
}

/// Creates a store as riops created it before it had a PostgreSQL backend.
fn old_store(path: &Path, version: u32) -> Connection {
    let steps = [
        include_str!("../../sql/store/0001_run.sql"),
        include_str!("../../sql/store/0002_disk_limit.sql"),
        include_str!("../../sql/store/0003_device_limit.sql"),
    ];
    let old = Connection::open(path).unwrap();
    for step in steps.iter().take(version as usize) {
        old.execute_batch(step).unwrap();
    }
    old.pragma_update(None, "user_version", version).unwrap();
    old
}

/// Stores a run as earlier versions did.
fn insert_old(old: &Connection, record: &Record, workload: &str, json: &str) {
    old.execute(
        "insert into run values (?1, ?2, ?3, ?4, 'PostgreSQL 18', 'done', 1, 7, 12.5, 2.5, 900, ?5)",
        rusqlite::params![
            record.id.to_string(),
            record.started_at.to_string(),
            workload,
            record.label,
            json
        ],
    )
    .unwrap();
}

#[test]
fn refuses_a_directory_that_does_not_exist_instead_of_creating_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested/runs.sqlite");
    let error = open_file(&path).err().unwrap();
    assert!(matches!(error, StoreError::NoFolder(_)), "{error}");
    assert!(error.to_string().contains(&folder.path().join("nested").display().to_string()));
    assert!(!folder.path().join("nested").exists());
}

#[test]
fn the_test_whether_a_file_can_be_written_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let store = open_file(&path).unwrap();
    let before = std::fs::read(&path).unwrap();
    store.require_writable().unwrap();
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    open_file(&path).unwrap().require_writable().unwrap();
}

#[test]
fn an_existing_store_is_not_created_by_reading_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let location = StoreLocation::File(path.clone());
    assert!(open_existing(&location, &Interrupt::new()).unwrap().is_none());
    assert!(!path.exists());
    open_file(&path).unwrap();
    assert!(open_existing(&location, &Interrupt::new()).unwrap().is_some());
}

#[test]
fn stores_of_all_earlier_versions_are_migrated_with_their_runs() {
    for version in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let (mut record, mut cbc) = (example_record(), example_cbc());
        cbc.id = uuid::Uuid::now_v7();
        record.label = Some("old".to_owned());
        record.tags.insert("disk".to_owned(), "nvme".to_owned());
        record.stages[0].session_loop.reconnects = 3;
        let old = old_store(&path, version);
        insert_old(&old, &record, "rows", &serde_json::to_string(&record).unwrap());
        insert_old(&old, &cbc, "cbc 1 GB", &serde_json::to_string(&cbc).unwrap());
        drop(old);
        let store = open_file(&path).unwrap();
        assert_eq!(store.find(&record.id.to_string()).unwrap(), record);
        assert_eq!(store.select("disk=nvme").unwrap(), [record.clone()]);
        let runs = store.list(&RunFilter::default()).unwrap();
        let found: Vec<_> = runs.iter().map(|run| (&*run.workload, &*run.title)).collect();
        assert!(found.contains(&("rows", "rows")) && found.contains(&("cbc", "cbc 1 GB")));
        let run = runs.iter().find(|run| run.workload == "rows").unwrap();
        let stage = &record.stages[0];
        // Derived from the record, not from the columns of the old table.
        assert_eq!(run.rows_per_s, Some(stage.throughput.rows_per_s));
        assert_eq!(run.sessions, record.plan.sessions);
        assert_eq!(run.tags, record.tags);
        assert_eq!(run.marks.as_deref(), Some("connections lost"));
        let stages = store.stages(std::slice::from_ref(&run.id)).unwrap();
        assert_eq!(stages.len(), record.stages.len());
    }
}

#[test]
fn a_record_that_cannot_be_decoded_survives_the_migration_and_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let record = example_record();
    let id = record.id.to_string();
    let old = old_store(&path, 3);
    insert_old(&old, &record, "oltp, point-select", "{\"damaged\": ");
    drop(old);
    let store = open_file(&path).unwrap();
    let runs = store.list(&RunFilter::default()).unwrap();
    let run = &runs[0];
    assert_eq!((run.workload.as_str(), run.title.as_str()), ("oltp", "oltp, point-select"));
    assert_eq!((run.rows_per_s, run.p99_us, run.stages), (Some(12.5), Some(900.0), 0));
    assert!(run.record_error.as_ref().unwrap().contains("EOF"), "{run:?}");
    assert!(matches!(store.find(&id), Err(StoreError::Json { .. })));
    drop(store);
    let raw = Connection::open(&path).unwrap();
    let json: String = raw.query_row("select record from records", [], |row| row.get(0)).unwrap();
    assert_eq!(json, "{\"damaged\": ");
    open_file(&path).unwrap().remove(&id).unwrap();
    assert_eq!(open_file(&path).unwrap().list(&RunFilter::default()).unwrap(), []);
}

#[test]
fn device_limits_of_earlier_versions_are_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut limit = example_cbc().target.disk_limit.unwrap();
    let old = old_store(&path, 3);
    let json = |limit: &DiskLimit| serde_json::to_string(limit).unwrap();
    old.execute("insert into disk_limit values ('one', 'vda', 'then', ?1)", [json(&limit)])
        .unwrap();
    let unnamed = limit.clone();
    limit.identity = Some("a1".to_owned());
    limit.sequential_read.mb_s = 900.0;
    old.execute("insert into device_limit values ('a1', 'one', 'vdb', 'then', ?1)", [json(&limit)])
        .unwrap();
    drop(old);
    let store = open_file(&path).unwrap();
    let found =
        |device: &str, identity: Option<&str>| store.disk_limit("one", device, identity).unwrap();
    assert_eq!(found("vda", Some("b2")), Some(unnamed.clone()));
    assert_eq!(found("vda", None), Some(unnamed.clone()));
    assert_eq!(found("elsewhere", Some("a1")), Some(limit.clone()));
    assert_eq!(found("vdb", None), None);
    // Measured again, now with an identity: the limits without it are for an unknown device.
    limit.device = "vda".to_owned();
    store.save_disk_limit("one", &limit).unwrap();
    assert_eq!(found("vda", Some("a1")), Some(limit));
    assert_eq!(found("vda", Some("b2")), None);
}

#[test]
fn does_not_modify_newer_stores_and_files_that_are_not_stores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let store = open_file(&path).unwrap();
    let raw = Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    // Migrated while it was open.
    assert!(matches!(store.save(&example_record()), Err(StoreError::Newer { found: 99, .. })));
    assert!(matches!(open_file(&path), Err(StoreError::Newer { found: 99, .. })));
    let other = folder.path().join("notes.txt");
    std::fs::write(&other, "These are my notes, not a database.".repeat(40)).unwrap();
    assert!(matches!(open_file(&other), Err(StoreError::Sqlite { .. })));
    assert!(std::fs::read_to_string(&other).unwrap().starts_with("These are my notes"));
}

#[test]
fn an_earlier_riops_recognizes_the_store_as_newer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    open_file(&path).unwrap();
    let raw = Connection::open(&path).unwrap();
    let version: u32 = raw.query_row("pragma user_version", [], |row| row.get(0)).unwrap();
    // riops 0.1 reads this pragma and supports up to 3.
    assert!(version > 3);
}

#[test]
fn lists_both_latencies_of_the_fastest_stage() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_file(&folder.path().join("runs.sqlite")).unwrap();
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
    let list = store.list(&RunFilter::default()).unwrap();
    assert_eq!((list[0].response_p99_us, list[0].stages), (Some(2_850_000.0), 2));
    assert_eq!((list[0].service_p99_us, list[0].p99_us), (Some(service), Some(2_850_000.0)));
    assert_eq!(list[1].response_p99_us, None);
    assert_eq!((list[1].service_p99_us, list[1].p99_us), (Some(service), Some(service)));
}

#[test]
fn lists_a_block_check_with_its_size_and_the_rate_of_its_selects() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_file(&folder.path().join("runs.sqlite")).unwrap();
    let mut record = example_cbc();
    store.save(&record).unwrap();
    record.id = uuid::Uuid::now_v7();
    record.stages.retain(|stage| stage.statement.is_some());
    store.save(&record).unwrap();
    let list = store.list(&RunFilter::default()).unwrap();
    assert!(list.iter().all(|run| run.title == "cbc 1 GB" && run.workload == "cbc"), "{list:?}");
    let mut rates: Vec<_> = list.iter().map(|run| run.transactions_per_s).collect();
    rates.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(rates, [None, Some(1200.0)]);
}

#[test]
fn lists_a_block_check_with_the_highest_rate_of_its_long_steps_or_that_of_the_longest_step() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_file(&folder.path().join("runs.sqlite")).unwrap();
    let mut record = example_cbc();
    store.save(&record).unwrap();
    record.id = uuid::Uuid::now_v7();
    for stage in &mut record.stages {
        // CREATE_TABLE is the longest step, and SELECT_r has the highest rate.
        stage.seconds /= 100.0;
    }
    store.save(&record).unwrap();
    record.id = uuid::Uuid::now_v7();
    record.stages.iter_mut().filter_map(|stage| stage.io.as_mut()).for_each(|io| io.device = None);
    store.save(&record).unwrap();
    let filter = RunFilter { sort: Sort::parse("MB/s").unwrap(), ..RunFilter::default() };
    let list = store.list(&filter).unwrap();
    let rates: Vec<_> = list.iter().map(|run| run.device_mb_s).collect();
    assert_eq!(rates, [Some(680.0), Some(480.0), None]);
    let stages = store.stages(&[list[0].id.clone()]).unwrap();
    let rates: Vec<_> = stages.iter().map(|stage| stage.device_mb_s).collect();
    // The last stage repeats a SELECT.
    assert_eq!(rates.last(), Some(&None));
    assert_eq!(rates[..2], [Some(480.0), Some(590.0)]);
}

#[test]
fn a_file_of_another_program_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    for version in 0..=4 {
        let path = folder.path().join(format!("{version}.sqlite"));
        let raw = Connection::open(&path).unwrap();
        raw.execute_batch(&format!(
            "create table run (id text, name text); insert into run values ('1', 'mine');
             pragma user_version = {version}"
        ))
        .unwrap();
        let refused = open_file(&path).map(drop).unwrap_err();
        assert!(refused.to_string().contains("is not a store of riops"), "{refused}");
        let name: String = raw.query_row("select name from run", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "mine");
        let tables = "select count(*) from sqlite_master";
        assert_eq!(raw.query_row(tables, [], |row| row.get::<_, u32>(0)).unwrap(), 1);
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_a_locked_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let interrupt = Interrupt::new();
    let store = open(&StoreLocation::File(path.clone()), &interrupt).unwrap();
    let other = Connection::open(&path).unwrap();
    // A writer, and a reader that only delays the commit.
    for lock in ["begin exclusive", "begin; select count(*) from runs"] {
        other.execute_batch(lock).unwrap();
        interrupt.request();
        assert!(matches!(store.save(&example_record()), Err(StoreError::Locked(_))), "{lock}");
        other.execute_batch("rollback").unwrap();
    }
    // The failed attempts have left no transaction and no record.
    assert!(store.list(&RunFilter::default()).unwrap().is_empty());
    store.save(&example_record()).unwrap();
}

#[test]
fn a_record_with_a_whole_id_is_found_by_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let record = example_record();
    let store = open_file(&path).unwrap();
    store.save(&record).unwrap();
    assert_eq!(store.find(&record.id.to_string().to_uppercase()).unwrap(), record);
    let sql = include_str!("../../sql/store/id.sql").replace("{table}", "runs");
    let steps: String = Connection::open(&path)
        .unwrap()
        .query_row(&format!("explain query plan {sql}"), ["x"], |row| row.get(3))
        .unwrap();
    assert!(steps.starts_with("SEARCH runs USING"), "{steps}");
}
