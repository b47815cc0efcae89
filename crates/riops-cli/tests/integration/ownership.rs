//! What riops did not create is neither overwritten nor stopped nor removed: directories and servers.

use std::path::Path;

use crate::fixture::{CommandOutput, folder};
use crate::server::{on, processes};

const RUN: &str = "run ping --duration 100ms --warmup 0 --no-store";
const MARK: &str = "riops-server.json";

/// Asserts that no command removes or stops anything in this home directory.
fn assert_refused(home: &Path, reason: &str) {
    for line in
        ["server stop", "server stop --force", "server reset --yes", "server reset -y --force"]
    {
        CommandOutput::of(&mut on(home, line)).expect(1).stderr_contains(reason);
    }
}

#[test]
fn a_directory_of_others_is_neither_used_nor_removed() {
    let home = folder("foreign-data");
    std::fs::create_dir(home.join("data")).unwrap();
    std::fs::write(home.join("data/photo.jpg"), "p").unwrap();
    assert_refused(&home, "was not created by riops");
    for line in [RUN, "server start", "server status", "server url"] {
        CommandOutput::of(&mut on(&home, line))
            .expect(1)
            .stderr_contains("was not created by riops");
    }
    let left: Vec<_> = std::fs::read_dir(&home).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["data"]);
    assert_eq!(std::fs::read_to_string(home.join("data/photo.jpg")).unwrap(), "p");
}

#[test]
fn files_of_others_are_not_overwritten() {
    let home = folder("foreign-log");
    for name in ["server.log", "state.json", "persistent"] {
        std::fs::write(home.join(name), "mine").unwrap();
        CommandOutput::of(&mut on(&home, RUN)).expect(1).stderr_contains(name);
        assert_eq!(std::fs::read_to_string(home.join(name)).unwrap(), "mine");
        std::fs::remove_file(home.join(name)).unwrap();
    }
    // The directory in which a data directory is initialized.
    std::fs::create_dir(home.join("initdb.riops")).unwrap();
    std::fs::write(home.join("initdb.riops/mine"), "mine").unwrap();
    CommandOutput::of(&mut on(&home, RUN)).expect(1).stderr_contains("was not created by riops");
    assert!(home.join("initdb.riops/mine").exists());
    // Left by a killed riops.
    std::fs::write(home.join("initdb.riops/created-by-riops"), "").unwrap();
    CommandOutput::of(&mut on(&home, RUN)).expect(0);
    assert!(!home.join("initdb.riops").exists());
}

#[test]
fn a_server_that_riops_did_not_start_is_neither_stopped_nor_reset() {
    let (home, other) = (folder("foreign-server"), folder("foreign-server-link"));
    CommandOutput::of(&mut on(&home, "server start")).expect(0);
    // A directory of the user that refers to the data directory of a running server.
    std::os::unix::fs::symlink(home.join("data"), other.join("data")).unwrap();
    assert_refused(&other, "was not created by riops");
    // Without the mark and the state, it is like any server of the user.
    for name in [MARK, "state.json"] {
        std::fs::rename(home.join(name), other.join(name)).unwrap();
    }
    assert_refused(&home, "was not created by riops");
    // Another server on the data directory, here recognized by its start time.
    let state = std::fs::read_to_string(other.join("state.json")).unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&state).unwrap();
    changed["started"] = "1".into();
    std::fs::write(home.join("state.json"), changed.to_string()).unwrap();
    std::fs::rename(other.join(MARK), home.join(MARK)).unwrap();
    assert_refused(&home, "that riops did not start");
    CommandOutput::of(&mut on(&home, RUN)).expect(1).stderr_contains("that riops did not start");
    assert!(!processes(&home).is_empty());

    std::fs::write(home.join("state.json"), state).unwrap();
    CommandOutput::of(&mut on(&home, "server stop")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn a_copy_is_only_removed_after_riops_has_started_it() {
    let (home, copy) = (folder("original"), folder("copy"));
    CommandOutput::of(&mut on(&home, RUN)).expect(0);
    let copied = std::process::Command::new("cp").arg("-a").arg(home.join(".")).arg(&copy).status();
    assert!(copied.unwrap().success());
    assert_refused(&copy, "server start");
    CommandOutput::of(&mut on(&copy, RUN)).expect(0);
    // Replaced by a data directory that riops initialized elsewhere.
    CommandOutput::of(&mut on(&home, "server reset --yes")).expect(0);
    CommandOutput::of(&mut on(&home, RUN)).expect(0);
    std::fs::rename(copy.join("data"), copy.join("before")).unwrap();
    std::fs::rename(home.join("data"), copy.join("data")).unwrap();
    assert_refused(&copy, "was not created by riops");
    CommandOutput::of(&mut on(&copy, RUN)).expect(1).stderr_contains("was not created by riops");
    std::fs::rename(copy.join("data"), home.join("data")).unwrap();
    std::fs::rename(copy.join("before"), copy.join("data")).unwrap();
    CommandOutput::of(&mut on(&copy, "server reset --yes")).expect(0);
    assert!(!copy.join("data").exists() && home.join("data").exists());
}

#[test]
fn a_reset_is_confirmed_with_yes_where_there_is_no_terminal() {
    let home = folder("unconfirmed");
    CommandOutput::of(&mut on(&home, RUN)).expect(0);
    CommandOutput::of(&mut on(&home, "server reset")).expect(2).stderr_contains("--yes");
    assert!(home.join("data/PG_VERSION").exists());
    CommandOutput::of(&mut on(&home, "server reset --yes")).expect(0);
    assert!(!home.join("data").exists());
    CommandOutput::of(&mut on(&home, "server reset")).expect(0);
}

#[test]
fn a_data_directory_behind_a_link_is_not_removed() {
    let (home, disk) = (folder("linked"), folder("linked-disk"));
    CommandOutput::of(&mut on(&home, RUN)).expect(0);
    std::fs::rename(home.join("data"), disk.join("data")).unwrap();
    std::os::unix::fs::symlink(disk.join("data"), home.join("data")).unwrap();
    CommandOutput::of(&mut on(&home, RUN)).expect(0);
    CommandOutput::of(&mut on(&home, "server reset --yes"))
        .expect(1)
        .stderr_contains("linked/data");
    assert!(disk.join("data/PG_VERSION").exists());
}

#[test]
fn files_of_the_server_are_private_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let home = folder("private").join("server");
    let mut shell = std::process::Command::new("sh");
    let run = on(&home, RUN);
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    CommandOutput::of(&mut shell).expect(0);
    let mode =
        |name: &str| std::fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
    for name in ["users.lock", "start.lock", "state.json", "server.log", "leaving", MARK] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    for name in ["data", "socket"] {
        assert_eq!(mode(name), 0o700, "{name}");
    }
    assert_eq!(mode("") & 0o022, 0);
}
