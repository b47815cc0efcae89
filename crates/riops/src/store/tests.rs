//! Tests of the SQLite file. Tests of all backends are in `riops-cli/tests/integration/stores.rs`, where a PostgreSQL
//! server is available.

use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::host::Interrupt;
use crate::record::example::example_record;
use crate::record::example_cbc::example_cbc;
use crate::summary::Sort;

fn open_file(path: &Path) -> Result<Store, StoreError> {
    open(&StoreLocation::File(path.to_owned()), &Interrupt::new())
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
fn does_not_modify_stores_of_other_versions_and_files_that_are_not_stores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let store = open_file(&path).unwrap();
    let raw = Connection::open(&path).unwrap();
    for (version, advice) in [(99, "use a newer riops"), (10, "OLD-RIOPS runs export --all")] {
        raw.pragma_update(None, "user_version", version).unwrap();
        // Changed while it was open.
        for refused in [store.save(&example_record()), open_file(&path).map(drop)] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(&format!("format version {version}")), "{error}");
            assert!(error.contains(advice), "{error}");
        }
    }
    let other = folder.path().join("notes.txt");
    std::fs::write(&other, "These are my notes, not a database.".repeat(40)).unwrap();
    assert!(matches!(open_file(&other), Err(StoreError::Sqlite { .. })));
    assert!(std::fs::read_to_string(&other).unwrap().starts_with("These are my notes"));
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
fn lists_a_block_check_with_the_highest_rate_of_its_long_steps_or_the_rate_of_its_longest_step() {
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
