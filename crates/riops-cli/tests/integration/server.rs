//! `riops server`, and the life of the embedded server.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fixture::{Ran, binary, command, folder, is_root};

/// The command on a server of the test's own.
pub(crate) fn on(home: &Path, line: &str) -> Command {
    let mut command = command(line);
    command
        .env("RIOPS_SERVER_DATA", home)
        .env("RIOPS_SERVER_SET", "shared_buffers=32MB")
        .env("RIOPS_STORE", home.join("runs.sqlite"));
    command
}

/// The processes that work in this server's data folder.
pub(crate) fn processes(home: &Path) -> Vec<u32> {
    let data = home.join("data");
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == data)
        })
        .collect()
}

const RUN: &str = "run rows --rows 2000 --batch 10 --duration 200ms --warmup 0 --interval 100ms";

#[test]
fn start_url_status_stop_and_reset_do_what_they_say() {
    let home = folder("lifecycle");
    Ran::of(&mut on(&home, "server url")).expect(1).says("riops server start");
    Ran::of(&mut on(&home, "server status")).expect(1);
    let started = Ran::of(&mut on(&home, "server start")).expect(0);
    assert!(started.stdout.contains("running: postgres (PostgreSQL) 18"), "{}", started.stdout);
    let again = Ran::of(&mut on(&home, "server start")).expect(0);
    let url = Ran::of(&mut on(&home, "server url")).expect(0).stdout;
    assert!(again.stdout.contains(url.trim()));
    let tcp = Ran::of(&mut on(&home, "server url --tcp")).expect(0).stdout;
    for address in [&url, &tcp] {
        let mut run = command(&format!("{RUN} --prepare --no-store --database {}", address.trim()));
        Ran::of(&mut run).expect(0);
    }
    let status = Ran::of(&mut on(&home, "server status")).expect(0).stdout;
    assert!(
        status.contains("stays until: riops server stop") && status.contains("shared_buffers=32MB"),
        "{status}"
    );
    // A run on a server that is to stay leaves it running.
    Ran::of(&mut on(&home, RUN)).expect(0);
    assert!(!processes(&home).is_empty());
    Ran::of(&mut on(&home, "server stop")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
    assert_eq!(Ran::of(&mut on(&home, "server stop")).expect(0).stdout, "it was not running\n");
    assert!(home.join("data/PG_VERSION").exists());
    Ran::of(&mut on(&home, "server reset")).expect(0);
    assert!(!home.join("data").exists());
}

#[test]
fn a_run_starts_the_server_and_stops_it_and_the_dataset_stays() {
    let home = folder("run-alone");
    let first = Ran::of(&mut on(&home, RUN))
        .expect(0)
        .says("making the data folder")
        .says("prepared 2,000 rows");
    assert!(
        first.stdout.contains("(embedded)") && first.stdout.contains("held: Index Scan"),
        "{}",
        first.stdout
    );
    assert_eq!(processes(&home), [0; 0]);
    let second = Ran::of(&mut on(&home, RUN)).expect(0);
    assert!(!second.stderr.contains("prepared"), "{}", second.stderr);
    assert_eq!(processes(&home), [0; 0]);
    let log = std::fs::read_to_string(home.join("server.log")).unwrap();
    assert!(
        log.contains("database system was shut down at"),
        "a clean shutdown leaves nothing to recover:\n{log}"
    );
}

#[test]
fn two_runs_at_once_share_a_fresh_server_without_harm() {
    let home = folder("run-twice");
    let start =
        |line: &str| on(&home, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<_> = (0..3).map(|_| start(RUN)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn other_settings_for_a_running_server_are_refused() {
    let home = folder("other-settings");
    Ran::of(&mut on(&home, "server start --server-set work_mem=5MB")).expect(0);
    let other = format!("{RUN} --server-set work_mem=6MB");
    Ran::of(&mut on(&home, &other)).expect(1).says("already running").says("riops server stop");
    let same = format!("{RUN} --server-set work_mem=5MB --output json");
    let run = Ran::of(&mut on(&home, &same)).expect(0);
    assert_eq!(run.json()["target"]["settings"]["work_mem"], "5MB");
    Ran::of(&mut on(&home, "server stop")).expect(0);
}

#[test]
fn a_setting_that_the_server_refuses_shows_the_end_of_its_log() {
    let home = folder("bad-setting");
    Ran::of(&mut on(&home, "server start --server-set shared_buffers=lots"))
        .expect(1)
        .says("invalid value for parameter \"shared_buffers\"");
    Ran::of(&mut on(&home, "server start --server-set =5")).expect(2);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn a_fixed_port_that_is_taken_is_told_with_the_servers_log() {
    let home = folder("taken-port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let line = format!("server start --server-port {port}");
    Ran::of(&mut on(&home, &line)).expect(1).says("Address already in use");
}

#[test]
fn a_server_in_use_is_not_stopped_under_somebodys_feet() {
    let home = folder("in-use");
    Ran::of(&mut on(&home, "server start")).expect(0);
    let users = std::fs::File::options().write(true).open(home.join("users.lock")).unwrap();
    users.lock_shared().unwrap();
    Ran::of(&mut on(&home, "server stop")).expect(1).says("in use by another riops");
    Ran::of(&mut on(&home, "server reset")).expect(1).says("in use by another riops");
    assert!(!processes(&home).is_empty());
    Ran::of(&mut on(&home, "server stop --force")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn an_installed_server_can_be_used_and_a_folder_without_one_is_named() {
    let home = folder("installed");
    Ran::of(&mut on(&home, "server start")).expect(0);
    let status = Ran::of(&mut on(&home, "server status")).expect(0).stdout;
    Ran::of(&mut on(&home, "server stop")).expect(0);
    let programs =
        status.lines().find_map(|line| line.strip_prefix("programs ")).unwrap().to_owned();
    let other = folder("installed-other");
    let line = format!("{RUN} --server-dir {programs} --server-data {}", other.display());
    Ran::of(&mut on(&other, &line)).expect(0).says("making the data folder");
    Ran::of(&mut on(&home, "server start --server-dir /etc"))
        .expect(1)
        .says("/etc holds no PostgreSQL server");
}

#[test]
fn a_cache_that_cannot_be_written_is_told() {
    let home = folder("bad-cache");
    std::fs::write(home.join("file"), b"").unwrap();
    let mut start = command("server start");
    Ran::of(start.env("RIOPS_CACHE_DIR", home.join("file/cache")))
        .expect(1)
        .says("RIOPS_CACHE_DIR");
}

/// Nobody listens there: what a machine without a network answers.
fn without_network(command: &mut Command) -> &mut Command {
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        command.env(variable, "http://127.0.0.1:1");
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy")
}

#[test]
fn once_downloaded_it_works_without_a_network() {
    let (first, second) = (folder("online"), folder("offline"));
    Ran::of(&mut on(&first, RUN)).expect(0);
    Ran::of(without_network(&mut on(&second, RUN))).expect(0);
}

#[test]
fn a_download_that_fails_says_why_and_leaves_nothing_behind() {
    let cache = folder("no-network");
    let mut start = command("server start");
    start.env("RIOPS_CACHE_DIR", &cache);
    Ran::of(without_network(&mut start))
        .expect(1)
        .says("cannot download PostgreSQL")
        .says("--server-dir")
        .says("HTTPS_PROXY");
    let left: Vec<_> =
        std::fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["download.lock"]);
}

#[test]
fn an_ordinary_user_without_a_home_runs_it_too() {
    if !is_root() {
        // The other tests have shown it already.
        return;
    }
    let home = folder("ordinary");
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = home.join("riops");
    std::fs::copy(binary(), &program).unwrap();
    let mut run = Command::new(&program);
    run.args(RUN.split_whitespace())
        .env_clear()
        .env("RIOPS_SERVER_DATA", home.join("server"))
        .env("RIOPS_SERVER_SET", "shared_buffers=32MB")
        .env("RIOPS_STORE", home.join("runs.sqlite"))
        .current_dir("/")
        .uid(65_534)
        .gid(65_534);
    Ran::of(&mut run).expect(0);
    assert_eq!(processes(&home.join("server")), [0; 0]);
}
