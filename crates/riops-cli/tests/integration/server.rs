//! `riops server` and the lifecycle of the embedded server.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use riops::server::conninfo::ConnInfo;

use crate::fixture::{CommandOutput, binary, command, folder, is_root, open};

/// Returns the command with a dedicated embedded server in this folder.
pub(crate) fn command_on(home: &Path, line: &str) -> Command {
    let mut command = command(line);
    command
        .env("RIOPS_SERVER_DATA", home)
        .env("RIOPS_SERVER_SET", "shared_buffers=32MB")
        .env("RIOPS_STORE", home.join("runs.sqlite"));
    command
}

/// Returns the processes whose working directory is the data folder of this server.
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
fn start_url_status_stop_and_reset_manage_the_server() {
    let home = folder("lifecycle");
    CommandOutput::run(&mut command_on(&home, "server url"))
        .expect(1)
        .stderr_contains("riops server start");
    CommandOutput::run(&mut command_on(&home, "server status")).expect(1);
    let started = CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    assert!(started.stdout.contains("running: postgres (PostgreSQL) 18"), "{}", started.stdout);
    let again = CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let url = CommandOutput::run(&mut command_on(&home, "server url")).expect(0).stdout;
    assert!(again.stdout.contains(url.trim()));
    let tcp = CommandOutput::run(&mut command_on(&home, "server url --tcp")).expect(0).stdout;
    for address in [&url, &tcp] {
        let mut run = command(&format!("{RUN} --prepare --no-store --database {}", address.trim()));
        CommandOutput::run(&mut run).expect(0);
    }
    let status = CommandOutput::run(&mut command_on(&home, "server status")).expect(0).stdout;
    assert!(
        status.contains("runs until riops server stop") && status.contains("shared_buffers=32MB"),
        "{status}"
    );
    // A running server is asked for a setting, and not stopped for it.
    let vary = "ab ping -t 100ms --warmup 0 --vary wrok_mem=1MB,2MB";
    let misspelt = CommandOutput::run(&mut command_on(&home, vary));
    assert!(misspelt.stdout.contains("no setting \"wrok_mem\""), "{}", misspelt.stdout);
    // A run does not stop a server that `riops server start` started.
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    assert!(!processes(&home).is_empty());
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
    assert_eq!(
        CommandOutput::run(&mut command_on(&home, "server stop")).expect(0).stdout,
        "the server was not running\n"
    );
    assert!(home.join("data/PG_VERSION").exists());
    CommandOutput::run(&mut command_on(&home, "server reset --yes")).expect(0);
    assert!(!home.join("data").exists());
}

#[test]
fn a_run_starts_and_stops_the_server_and_keeps_the_dataset() {
    let home = folder("run-alone");
    let first = CommandOutput::run(&mut command_on(&home, RUN))
        .expect(0)
        .stderr_contains("initializing the data directory")
        .stderr_contains("prepared 2,000 rows");
    assert!(
        first.stdout.contains("(embedded)")
            && first.stdout.contains("(as expected; checked before, during and after the run)"),
        "{}",
        first.stdout
    );
    assert_eq!(processes(&home), [0; 0]);
    let second = CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    assert!(!second.stderr.contains("prepared"), "{}", second.stderr);
    assert_eq!(processes(&home), [0; 0]);
    let log = std::fs::read_to_string(home.join("server.log")).unwrap();
    assert!(
        log.contains("database system was shut down at"),
        "the server was not shut down cleanly:\n{log}"
    );
}

/// Runs SQL on the running server of this folder as this role.
fn execute_as(home: &Path, user: &str, sql: &str) {
    let url = CommandOutput::run(&mut command_on(home, "server url")).expect(0).stdout;
    let (_, rest) = url.trim().split_once('@').unwrap();
    let conninfo = ConnInfo::parse(&format!("postgresql://{user}@{rest}"), |_| None).unwrap();
    let mut connection = open(&conninfo);
    connection.execute(sql).unwrap();
}

/// Gives the state file the form of an earlier riops.
fn remove_user_from_state(home: &Path) {
    let file = home.join("state.json");
    let state = std::fs::read_to_string(&file).unwrap();
    let mut state: serde_json::Value = serde_json::from_str(&state).unwrap();
    state.as_object_mut().unwrap().remove("user").unwrap();
    std::fs::write(file, state.to_string()).unwrap();
}

#[test]
fn renames_the_superuser_of_a_data_directory_from_an_earlier_riops() {
    let home = folder("former-user");
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    execute_as(&home, "postgres", "create role temporary superuser login");
    execute_as(&home, "temporary", "alter role postgres rename to riops");
    execute_as(&home, "riops", "drop role temporary");
    // Left by a rename that was interrupted.
    execute_as(&home, "riops", "create role riops_rename superuser login");
    remove_user_from_state(&home);
    // A server that an earlier riops started keeps its superuser until it stops.
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);

    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let run = CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    assert!(!run.stderr.contains("prepared"), "{}", run.stderr);
    let roles = "do $$ begin assert array(select rolname::text from pg_roles where rolsuper) = '{postgres}'; end $$";
    execute_as(&home, "postgres", roles);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);

    // A rename that was interrupted before the state was written.
    remove_user_from_state(&home);
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let tcp = CommandOutput::run(&mut command_on(&home, "server url --tcp")).expect(0).stdout;
    assert!(tcp.starts_with("postgresql://postgres:"), "{tcp}");
    CommandOutput::run(&mut command(&format!("run ping -t 100ms --warmup 0 --no-store -d {tcp}")))
        .expect(0);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
}

#[test]
fn concurrent_runs_share_a_new_server() {
    let home = folder("run-twice");
    let start = |line: &str| {
        command_on(&home, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..3).map(|_| start(RUN)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn rejects_other_settings_for_a_running_server() {
    let home = folder("other-settings");
    CommandOutput::run(&mut command_on(&home, "server start --server-set work_mem=5MB")).expect(0);
    let other = format!("{RUN} --server-set work_mem=6MB");
    CommandOutput::run(&mut command_on(&home, &other))
        .expect(1)
        .stderr_contains("already running")
        .stderr_contains("riops server stop");
    let same = format!("{RUN} --server-set work_mem=5MB --output json");
    let run = CommandOutput::run(&mut command_on(&home, &same)).expect(0);
    assert_eq!(run.json()["target"]["settings"]["work_mem"], "5MB");
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
}

#[test]
fn an_invalid_setting_shows_the_end_of_the_server_log() {
    let home = folder("bad-setting");
    CommandOutput::run(&mut command_on(&home, "server start --server-set shared_buffers=lots"))
        .expect(1)
        .stderr_contains("invalid value for parameter \"shared_buffers\"");
    CommandOutput::run(&mut command_on(&home, "server start --server-set =5")).expect(2);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn a_port_in_use_shows_the_end_of_the_server_log() {
    let home = folder("taken-port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let line = format!("server start --server-port {port}");
    CommandOutput::run(&mut command_on(&home, &line))
        .expect(1)
        .stderr_contains("Address already in use");
}

#[test]
fn stops_a_server_in_use_only_with_force() {
    let home = folder("in-use");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let users = std::fs::File::options().write(true).open(home.join("users.lock")).unwrap();
    users.lock_shared().unwrap();
    CommandOutput::run(&mut command_on(&home, "server stop"))
        .expect(1)
        .stderr_contains("in use by another riops");
    CommandOutput::run(&mut command_on(&home, "server reset --yes"))
        .expect(1)
        .stderr_contains("in use by another riops");
    assert!(!processes(&home).is_empty());
    CommandOutput::run(&mut command_on(&home, "server stop --force")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn stops_a_server_whose_state_file_is_lost() {
    let home = folder("lost-state");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    std::fs::remove_file(home.join("state.json")).unwrap();
    let stopped = CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    assert_eq!((stopped.stdout.as_str(), processes(&home)), ("stopped\n", vec![]));
}

#[test]
fn a_server_that_survives_is_not_reported_as_stopped() {
    if !is_root() {
        // Only root can start riops as another user, who may not end the server.
        return;
    }
    let home = folder("survives");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let modes = [
        ("", 0o777),
        ("users.lock", 0o666),
        ("state.json", 0o644),
        ("riops-server.json", 0o644),
        ("data", 0o755),
        ("data/global", 0o755),
        ("data/global/pg_control", 0o644),
        ("data/postmaster.pid", 0o644),
    ];
    for (path, mode) in modes {
        let path = home.join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    for action in ["stop", "reset --yes"] {
        let mut command = command_on(&home, &format!("server {action}"));
        CommandOutput::run(command.current_dir("/").uid(54_321).gid(54_321))
            .expect(1)
            .stderr_contains("are still running");
        assert!(home.join("data/PG_VERSION").exists());
        // The keeper would stop the server now.
        std::fs::write(home.join("persistent"), "").unwrap();
    }
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn uses_an_installed_server_and_rejects_a_folder_without_one() {
    let home = folder("installed");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let status = CommandOutput::run(&mut command_on(&home, "server status")).expect(0).stdout;
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    let programs =
        status.lines().find_map(|line| line.strip_prefix("programs ")).unwrap().to_owned();
    let other = folder("installed-other");
    let line = format!("{RUN} --server-dir {programs} --server-data {}", other.display());
    CommandOutput::run(&mut command_on(&other, &line))
        .expect(0)
        .stderr_contains("initializing the data directory");
    CommandOutput::run(&mut command_on(&home, "server start --server-dir /etc"))
        .expect(1)
        .stderr_contains("no PostgreSQL server in \"/etc\"");
}

#[test]
fn reports_a_cache_folder_that_cannot_be_written() {
    let home = folder("bad-cache");
    std::fs::write(home.join("file"), b"").unwrap();
    let mut start = command("server start");
    CommandOutput::run(start.env("RIOPS_CACHE_DIR", home.join("file/cache")))
        .expect(1)
        .stderr_contains("RIOPS_CACHE_DIR");
}

/// Simulates a machine without a network: the proxy's port is closed.
fn forbid_network(command: &mut Command) -> &mut Command {
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        command.env(variable, "http://127.0.0.1:1");
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy")
}

#[test]
fn works_without_a_network_after_the_download() {
    let (first, second) = (folder("online"), folder("offline"));
    CommandOutput::run(&mut command_on(&first, RUN)).expect(0);
    CommandOutput::run(forbid_network(&mut command_on(&second, RUN))).expect(0);
}

#[test]
fn a_failed_download_reports_the_cause_and_leaves_no_partial_files() {
    let cache = folder("no-network");
    let mut start = command("server start");
    start.env("RIOPS_CACHE_DIR", &cache);
    CommandOutput::run(forbid_network(&mut start))
        .expect(1)
        .stderr_contains("cannot download PostgreSQL")
        .stderr_contains("--server-dir")
        .stderr_contains("HTTPS_PROXY");
    let left: Vec<_> =
        std::fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["download.lock"]);
}

#[test]
fn runs_as_an_ordinary_user_without_a_home_folder() {
    if !is_root() {
        // The other tests already run as an ordinary user.
        return;
    }
    let home = folder("ordinary");
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = home.join("riops");
    riops_testkit::copy_program(binary(), &program).unwrap();
    let mut run = Command::new(&program);
    run.args(RUN.split_whitespace())
        .env_clear()
        .env("RIOPS_SERVER_DATA", home.join("server"))
        .env("RIOPS_SERVER_SET", "shared_buffers=32MB")
        .env("RIOPS_STORE", home.join("runs.sqlite"))
        .current_dir("/")
        .uid(65_534)
        .gid(65_534);
    CommandOutput::run(&mut run).expect(0);
    assert_eq!(processes(&home.join("server")), [0; 0]);
}
