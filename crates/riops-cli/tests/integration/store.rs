//! `riops runs` and the run store.

use crate::fixture::{CommandOutput, command, database, folder, until};

#[test]
fn lists_runs_newest_first_and_shows_a_run_by_part_of_its_id() {
    let database = database("listed");
    database.riops("prepare rows --rows 1000").expect(0);
    for label in ["first", "second"] {
        database
            .riops(&format!(
                "run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --label {label}"
            ))
            .expect(0);
    }
    let list = database.riops("runs list").expect(0).stdout;
    assert!(list.find("second").unwrap() < list.find("first").unwrap(), "{list}");
    let listed = database.riops("runs list --output json").expect(0).json();
    let id = listed[1]["id"].as_str().unwrap();
    let shown = database.riops(&format!("runs show {}", &id[id.len() - 8..])).expect(0).stdout;
    assert!(shown.contains("first") && shown.contains(id), "{shown}");
    database.riops("runs show ffffffff").expect(1).stderr_contains("run \"ffffffff\" not found");
}

#[test]
fn a_run_with_no_store_is_not_stored() {
    let database = database("not_stored");
    database.riops("prepare rows --rows 1000").expect(0);
    let run = database
        .riops("run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --no-store")
        .expect(0);
    assert!(run.stdout.contains("no (--no-store)"));
    assert!(!database.store.exists());
}

#[test]
fn an_empty_store_prints_a_hint() {
    let store = folder("empty-store").join("runs.sqlite");
    let listed = CommandOutput::of(command("runs list").env("RIOPS_STORE", &store)).expect(0);
    assert!(listed.stdout.contains("riops run rows"));
    CommandOutput::of(command("runs show").env("RIOPS_STORE", &store))
        .expect(1)
        .stderr_contains("has no runs yet");
}

#[test]
fn reports_an_unwritable_store_before_the_run() {
    let folder = folder("blocked-store");
    std::fs::write(folder.join("file"), b"").unwrap();
    let mut run = command("run rows --database postgresql://nobody@127.0.0.1:1/x");
    CommandOutput::of(run.env("RIOPS_STORE", folder.join("file/runs.sqlite")))
        .expect(1)
        .stderr_contains("--store");
}

#[test]
fn prints_a_result_that_cannot_be_stored_and_fails_if_it_cannot_be_printed() {
    let database = database("lost_result");
    database.riops("prepare rows --rows 1000").expect(0);
    let line = "run rows --duration 2s --warmup 0 --batch 10";
    let child = until(&mut database.command(line), "measuring");
    // The store is damaged during the run.
    std::fs::write(&database.store, "not a database").unwrap();
    let run = CommandOutput::from(child.wait_with_output().unwrap()).expect(1);
    assert!(
        run.stdout.contains("RIOPS") && run.stdout.contains("stored       NO:"),
        "{}",
        run.stdout
    );
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let short = "run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --no-store";
    CommandOutput::of(database.command(short).stdout(full))
        .expect(1)
        .stderr_contains("cannot write the result");
}
