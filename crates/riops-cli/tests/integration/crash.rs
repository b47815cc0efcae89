//! SIGKILL of riops, of the server and of both, during prepare and during a run. The next run must succeed
//! and must not measure an incomplete dataset.

use std::path::Path;
use std::process::Command;

use riops::server::embedded::State;

use crate::fixture::{CommandOutput, folder, open, start_until, wrap_command};
use crate::server::{command_on, processes};

/// Large enough that the load is still in progress at the time of the kill.
const LONG_PREPARE: &str =
    "run rows --rows 3000000 --batch 10 --duration 200ms --warmup 0 --interval 100ms";
const SMALL: &str = "run rows --rows 2000 --batch 10 --warmup 0 --interval 100ms";
/// Runs far longer than the test.
const LONG_RUN: &str =
    "run rows --batch 10 --update-percent 30 --duration 1h --warmup 0 --interval 100ms";

pub(crate) fn kill(pid: u32, signal: &str) {
    let killed = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

/// Waits until the dataset is registered and its table contains rows.
fn await_loading(home: &Path) {
    await_value(
        home,
        "select 1 from riops.dataset, (select from riops.rows_0001 limit 1) as loaded
          where state = 'loading'",
    );
}

/// Waits until a query returns a value.
pub(crate) fn await_value(home: &Path, sql: &str) {
    let state = std::fs::read(home.join("state.json")).unwrap();
    let state: State = serde_json::from_slice(&state).unwrap();
    let mut connection = open(&state.conninfo());
    while !matches!(connection.query_value(sql), Ok(Some(_))) {
        std::thread::yield_now();
    }
}

/// Returns the process id in postmaster.pid.
pub(crate) fn postmaster(home: &Path) -> u32 {
    let text = std::fs::read_to_string(home.join("data/postmaster.pid")).unwrap();
    text.lines().next().unwrap().parse().unwrap()
}

/// Waits until all processes of the server have exited. The keeper stops them after riops was killed.
fn await_no_process(home: &Path) {
    let start = std::time::Instant::now();
    while !processes(home).is_empty() {
        assert!(start.elapsed().as_secs() < 30, "still running: {:?}", processes(home));
        std::thread::yield_now();
    }
}

/// Asserts that a run is valid and that the dataset passes verification.
fn assert_works_again(home: &Path, line: &str) {
    let run = CommandOutput::run(&mut command_on(home, &format!("{line} --output json"))).expect(0);
    assert_eq!(run.json()["verdict"]["valid"], true);
    CommandOutput::run(&mut command_on(home, "verify rows")).expect(0);
    assert_eq!(processes(home), [0; 0]);
}

#[test]
fn recovers_if_riops_is_killed_during_prepare() {
    let home = folder("kill-prepare");
    let mut child = start_until(&mut command_on(&home, LONG_PREPARE), "target:");
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
fn recovers_if_the_server_is_killed_during_prepare() {
    let home = folder("kill-server-prepare");
    let mut child = start_until(&mut command_on(&home, LONG_PREPARE), "target:");
    await_loading(&home);
    kill(postmaster(&home), "-KILL");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_works_again(
        &home,
        "run rows --rows 3000 --batch 10 --duration 200ms --warmup 0 --interval 100ms",
    );
}

#[test]
fn recovers_if_riops_and_the_server_are_killed_during_prepare() {
    let home = folder("kill-both-prepare");
    let mut child = start_until(&mut command_on(&home, LONG_PREPARE), "target:");
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
fn recovers_if_riops_is_killed_during_a_run() {
    let home = folder("kill-run");
    CommandOutput::run(&mut command_on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
    let mut child = start_until(&mut command_on(&home, LONG_RUN), " s  ");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    await_no_process(&home);
    // The killed run did not report its updates.
    let verified = CommandOutput::run(&mut command_on(&home, "verify rows")).expect(3);
    assert!(verified.stdout.contains("a run did not report its changes"), "{}", verified.stdout);
    // A run that only reads changes nothing about that.
    CommandOutput::run(&mut command_on(&home, "run rows --batch 10 --duration 200ms --warmup 0"))
        .expect(0);
    CommandOutput::run(&mut command_on(&home, "verify rows")).expect(3);
    // The next run with updates begins with the current contents. From then on, every loss is noticed.
    let updates =
        "run rows --update-percent 50 --batch 10 --duration 200ms --warmup 0 --interval 100ms";
    CommandOutput::run(&mut command_on(&home, updates))
        .expect(0)
        .stderr_contains("the current contents become the new baseline");
    let verified = CommandOutput::run(&mut command_on(&home, "verify rows")).expect(0);
    assert!(!verified.stdout.contains("did not report"), "{}", verified.stdout);
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let sql = "update riops.rows_0001 set scratch = scratch - 1 where mykey = 7";
    CommandOutput::run(command_on(&home, "server psql -- -c").arg(sql)).expect(0);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    let verified = CommandOutput::run(&mut command_on(&home, "verify rows")).expect(3);
    assert!(verified.stdout.contains("WRONG  increments of scratch"), "{}", verified.stdout);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn a_known_loss_stays_visible_after_a_killed_run() {
    let home = folder("kill-run-loss");
    let updates =
        "run rows --update-percent 50 --batch 10 --duration 100ms --warmup 0 --interval 100ms";
    CommandOutput::run(&mut command_on(&home, &format!("{updates} --rows 2000"))).expect(0);
    let mut child = start_until(&mut command_on(&home, LONG_RUN), " s  ");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    await_no_process(&home);
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    // More than the killed run can have added.
    let sql = "update riops.rows_0001 set scratch = scratch - 1000000000 where mykey = 7";
    CommandOutput::run(command_on(&home, "server psql -- -c").arg(sql)).expect(0);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    CommandOutput::run(&mut command_on(&home, updates))
        .expect(3)
        .stderr_contains("acknowledged changes of earlier runs are missing in the tables");
    let verified = CommandOutput::run(&mut command_on(&home, "verify rows")).expect(3);
    assert!(verified.stdout.contains("WRONG  increments of scratch"), "{}", verified.stdout);
}

#[test]
fn recovers_if_the_server_is_killed_during_a_run() {
    let home = folder("kill-server-run");
    CommandOutput::run(&mut command_on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
    let line = format!("{LONG_RUN} --reconnect-timeout 1s");
    let child = start_until(&mut command_on(&home, &line), " s  ");
    kill(postmaster(&home), "-KILL");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("NO: reconnect failed") || text.contains("NO: statement failed"),
        "{text}"
    );
    assert_works_again(&home, "run rows --batch 10 --duration 200ms --warmup 0 --interval 100ms");
    // The record contains the updates acknowledged before the crash, so they are verified.
    let verified = CommandOutput::run(&mut command_on(&home, "verify rows")).expect(0);
    assert!(!verified.stdout.contains("did not report"), "{}", verified.stdout);
    assert!(
        !verified.stdout.contains("increments of scratch in riops.rows_0001: expected 0"),
        "{}",
        verified.stdout
    );
}

#[test]
fn a_run_that_ends_without_its_server_is_invalid_and_has_no_bottleneck() {
    let home = folder("kill-server-until-the-end");
    CommandOutput::run(&mut command_on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
    // The sessions try to reconnect beyond the end of the run.
    let line = "run rows --batch 10 --duration 4s --warmup 0 --interval 100ms";
    let child = start_until(&mut command_on(&home, line), " s  ");
    kill(postmaster(&home), "-KILL");
    let output = CommandOutput::from(child.wait_with_output().unwrap()).expect(3);
    let reason = "NO: the server was not available at the end of the measurement";
    assert!(output.stdout.contains(reason), "{}", output.stdout);
    assert!(!output.stdout.contains("bottleneck"), "{}", output.stdout);
    let shown =
        CommandOutput::run(&mut command_on(&home, "runs show --output json")).expect(0).json();
    assert_eq!(shown["verdict"]["valid"], false);
}

#[test]
fn recovers_if_riops_and_the_server_are_killed_during_a_run() {
    let home = folder("kill-both-run");
    CommandOutput::run(&mut command_on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
    let mut child = start_until(&mut command_on(&home, LONG_RUN), " s  ");
    kill(postmaster(&home), "-KILL");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    assert_works_again(
        &home,
        "run rows --update-percent 30 --batch 10 --duration 200ms --warmup 0 --interval 100ms",
    );
}

#[test]
fn the_server_stops_if_the_keeper_is_killed() {
    let home = folder("kill-keeper");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
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
fn signals_end_a_run_and_store_its_record() {
    for (name, signal) in
        [("interrupt-int", "-INT"), ("interrupt-term", "-TERM"), ("interrupt-hup", "-HUP")]
    {
        let home = folder(name);
        CommandOutput::run(&mut command_on(&home, &format!("{SMALL} --duration 100ms"))).expect(0);
        let riops = command_on(&home, LONG_RUN);
        // The tests themselves may have been started by nohup.
        let mut run = Command::new("env");
        run.arg("--default-signal=HUP");
        let mut run = wrap_command(run, &riops);
        let child = start_until(&mut run, " s  ");
        kill(child.id(), signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("RIOPS") && text.contains("interrupted"), "{text}");
        let shown =
            CommandOutput::run(&mut command_on(&home, "runs show --output json")).expect(0).json();
        assert_eq!(shown["status"], "interrupted");
        assert!(shown["stages"][0]["transactions"].as_u64().unwrap() > 0);
        assert_eq!(processes(&home), [0; 0]);
        CommandOutput::run(&mut command_on(&home, "verify rows")).expect(0);
    }
}

#[test]
fn ctrl_c_during_prepare_leaves_no_complete_dataset() {
    let home = folder("interrupt-prepare");
    let mut child = start_until(&mut command_on(&home, LONG_PREPARE), "target:");
    await_loading(&home);
    kill(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(processes(&home), [0; 0]);
    assert_works_again(
        &home,
        "run rows --rows 3000 --batch 10 --duration 200ms --warmup 0 --interval 100ms",
    );
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let database = crate::fixture::database("ignored_signals");
    let ping = database.command("run ping --warmup 0s --duration 1s --interval 100ms");
    for signal in ["INT", "TERM", "HUP"] {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' \"$0\"; exec \"$@\"", signal]);
        let mut command = wrap_command(command, &ping);
        let child = start_until(&mut command, "tx/s");
        kill(child.id(), &format!("-{signal}"));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}");
    }
}
