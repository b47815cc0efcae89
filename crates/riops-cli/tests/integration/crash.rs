//! SIGKILL of riops, of the server, and of both, during prepare and during run: the next run works
//! and measures no half-made dataset.

use std::path::Path;

use riops::host::Interrupt;
use riops::server::Connection;
use riops::server::embedded::State;

use crate::fixture::{Ran, folder, until};
use crate::server::{on, processes};

/// Large enough to be still loading when the kill comes.
const LONG_PREPARE: &str =
    "run rows --rows 3000000 --batch 10 --duration 200ms --warmup 0 --interval 100ms";
const SMALL: &str = "run rows --rows 2000 --batch 10 --warmup 0 --interval 100ms";
/// Ends long after the test would.
const LONG_RUN: &str =
    "run rows --batch 10 --update-percent 30 --duration 1h --warmup 0 --interval 100ms";

pub(crate) fn kill(pid: u32, signal: &str) {
    let killed =
        std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

/// Waits until the dataset is being loaded: registered, and with rows.
fn await_loading(home: &Path) {
    await_answer(
        home,
        "select 1 from riops.dataset, (select from riops.rows_0001 limit 1) as loaded
          where state = 'loading'",
    );
}

/// Waits until a query has an answer.
pub(crate) fn await_answer(home: &Path, sql: &str) {
    let state = std::fs::read(home.join("state.json")).unwrap();
    let state: State = serde_json::from_slice(&state).unwrap();
    let mut connection = Connection::open(&state.conninfo(), &Interrupt::new()).unwrap();
    while !matches!(connection.query_value(sql), Ok(Some(_))) {
        std::thread::yield_now();
    }
}

/// The process in postmaster.pid.
pub(crate) fn postmaster(home: &Path) -> u32 {
    let text = std::fs::read_to_string(home.join("data/postmaster.pid")).unwrap();
    text.lines().next().unwrap().parse().unwrap()
}

/// After riops was killed nothing of the server may be left; it takes the keeper a moment.
fn await_no_process(home: &Path) {
    let start = std::time::Instant::now();
    while !processes(home).is_empty() {
        assert!(start.elapsed().as_secs() < 30, "still there: {:?}", processes(home));
        std::thread::yield_now();
    }
}

/// The dataset is whole, as the registry says and as its rows say.
fn assert_works_again(home: &Path, line: &str) {
    let run = Ran::of(&mut on(home, &format!("{line} --output json"))).expect(0);
    assert_eq!(run.json()["verdict"]["valid"], true);
    Ran::of(&mut on(home, "verify rows")).expect(0);
    assert_eq!(processes(home), [0; 0]);
}

#[test]
fn riops_killed_during_prepare() {
    let home = folder("kill-prepare");
    let mut child = until(&mut on(&home, LONG_PREPARE), "target:");
    await_loading(&home);
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    await_no_process(&home);
    assert_works_again(
        &home,
        "run rows --rows 3000 --batch 10 --duration 200ms --warmup 0 --interval 100ms",
    );
}

#[test]
fn the_server_killed_during_prepare() {
    let home = folder("kill-server-prepare");
    let mut child = until(&mut on(&home, LONG_PREPARE), "target:");
    await_loading(&home);
    kill(postmaster(&home), "-KILL");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_works_again(
        &home,
        "run rows --rows 3000 --batch 10 --duration 200ms --warmup 0 --interval 100ms",
    );
}

#[test]
fn both_killed_during_prepare() {
    let home = folder("kill-both-prepare");
    let mut child = until(&mut on(&home, LONG_PREPARE), "target:");
    await_loading(&home);
    kill(postmaster(&home), "-KILL");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    assert_works_again(
        &home,
        "run rows --rows 3000 --batch 10 --duration 200ms --warmup 0 --interval 100ms",
    );
}

#[test]
fn riops_killed_during_run() {
    let home = folder("kill-run");
    Ran::of(&mut on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
    let mut child = until(&mut on(&home, LONG_RUN), " s  ");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    await_no_process(&home);
    // The killed run's updates were never reported: the proof says so and goes on.
    assert_works_again(&home, "run rows --batch 10 --duration 200ms --warmup 0 --interval 100ms");
    let verified = Ran::of(&mut on(&home, "verify rows")).expect(0);
    assert!(verified.stdout.contains("since a run did not report"), "{}", verified.stdout);
}

#[test]
fn the_server_killed_during_run() {
    let home = folder("kill-server-run");
    Ran::of(&mut on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
    let patient = format!("{LONG_RUN} --reconnect-timeout 1s");
    let child = until(&mut on(&home, &patient), " s  ");
    kill(postmaster(&home), "-KILL");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("NO: a broken connection could not be replaced")
            || text.contains("NO: the statement failed"),
        "{text}"
    );
    assert_works_again(&home, "run rows --batch 10 --duration 200ms --warmup 0 --interval 100ms");
    // What was acknowledged before the server died is known from the record, and is proved.
    let verified = Ran::of(&mut on(&home, "verify rows")).expect(0);
    assert!(!verified.stdout.contains("did not report"), "{}", verified.stdout);
    assert!(!verified.stdout.contains("increments of scratch: expected 0"), "{}", verified.stdout);
}

#[test]
fn both_killed_during_run() {
    let home = folder("kill-both-run");
    Ran::of(&mut on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
    let mut child = until(&mut on(&home, LONG_RUN), " s  ");
    kill(postmaster(&home), "-KILL");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    assert_works_again(&home, "run rows --batch 10 --duration 200ms --warmup 0 --interval 100ms");
}

#[test]
fn the_keeper_killed_takes_the_server_along() {
    let home = folder("kill-keeper");
    Ran::of(&mut on(&home, "server start")).expect(0);
    let status = std::fs::read_to_string(format!("/proc/{}/status", postmaster(&home))).unwrap();
    let keeper =
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    kill(keeper, "-KILL");
    await_no_process(&home);
    assert_works_again(
        &home,
        "run rows --rows 2000 --batch 10 --duration 100ms --warmup 0 --interval 100ms --server-set work_mem=4MB",
    );
}

#[test]
fn ctrl_c_and_sigterm_keep_what_was_measured() {
    for (name, signal) in [("interrupt-int", "-INT"), ("interrupt-term", "-TERM")] {
        let home = folder(name);
        Ran::of(&mut on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
        let child = until(&mut on(&home, LONG_RUN), " s  ");
        kill(child.id(), signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("RIOPS") && text.contains("interrupted"), "{text}");
        let shown = Ran::of(&mut on(&home, "runs show --output json")).expect(0).json();
        assert_eq!(shown["status"], "interrupted");
        assert!(shown["stages"][0]["transactions"].as_u64().unwrap() > 0);
        assert_eq!(processes(&home), [0; 0]);
        Ran::of(&mut on(&home, "verify rows")).expect(0);
    }
}

#[test]
fn ctrl_c_during_prepare_leaves_nothing_that_looks_whole() {
    let home = folder("interrupt-prepare");
    let mut child = until(&mut on(&home, LONG_PREPARE), "target:");
    await_loading(&home);
    kill(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(processes(&home), [0; 0]);
    assert_works_again(
        &home,
        "run rows --rows 3000 --batch 10 --duration 200ms --warmup 0 --interval 100ms",
    );
}
