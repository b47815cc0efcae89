//! `riops runs`, and what happens to records.

use crate::fixture::{Ran, command, database, folder, until};

#[test]
fn runs_are_listed_newest_first_and_shown_by_a_part_of_their_id() {
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
    database.riops("runs show ffffffff").expect(1).says("there is no run ffffffff");
}

#[test]
fn a_run_that_is_not_to_be_kept_is_not_kept() {
    let database = database("not_kept");
    database.riops("prepare rows --rows 1000").expect(0);
    let run = database
        .riops("run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --no-store")
        .expect(0);
    assert!(run.stdout.contains("no (--no-store)"));
    assert!(!database.store.exists());
}

#[test]
fn an_empty_store_says_what_to_do() {
    let store = folder("empty-store").join("runs.sqlite");
    let listed = Ran::of(command("runs list").env("RIOPS_STORE", &store)).expect(0);
    assert!(listed.stdout.contains("riops run rows"));
    Ran::of(command("runs show").env("RIOPS_STORE", &store)).expect(1).says("has no runs yet");
}

#[test]
fn a_store_that_cannot_be_written_is_known_before_the_run() {
    let folder = folder("blocked-store");
    std::fs::write(folder.join("file"), b"").unwrap();
    let mut run = command("run rows --database postgresql://nobody@127.0.0.1:1/x");
    Ran::of(run.env("RIOPS_STORE", folder.join("file/runs.sqlite"))).expect(1).says("--store");
}

#[test]
fn a_result_that_cannot_be_kept_is_printed_and_one_that_cannot_be_printed_is_an_error() {
    let database = database("lost_result");
    database.riops("prepare rows --rows 1000").expect(0);
    let line = "run rows --duration 2s --warmup 0 --batch 10";
    let child = until(&mut database.command(line), "measuring");
    // Somebody takes the store away in the meantime.
    std::fs::write(&database.store, "no database any more").unwrap();
    let run = Ran::from(child.wait_with_output().unwrap()).expect(1);
    assert!(
        run.stdout.contains("RIOPS") && run.stdout.contains("kept       NO:"),
        "{}",
        run.stdout
    );
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let short = "run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --no-store";
    Ran::of(database.command(short).stdout(full)).expect(1).says("could not be written");
}
