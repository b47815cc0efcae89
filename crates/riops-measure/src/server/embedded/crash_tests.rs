//! riops is killed at each change of a file: the next command works.

use std::fs;

use super::binaries::Binaries;
use super::cluster::superuser;
use super::files::killed;
use super::*;

/// Makes a cluster with another system identifier at each call, as `initdb` does.
const INITDB: &str = r#"#!/bin/sh
while [ "$1" != --pgdata ]; do shift; done
mkdir "$2/global" && printf '%08d' "$$" >"$2/global/pg_control" && echo 15 >"$2/PG_VERSION"
"#;
/// The same, killed before the cluster is complete.
const KILLED_INITDB: &str = r#"#!/bin/sh
while [ "$1" != --pgdata ]; do shift; done
mkdir "$2/global" && kill -KILL $$
"#;
/// More than there are changes.
const CHANGES_MAX: u32 = 100;

struct Server {
    top: tempfile::TempDir,
    home: Home,
    account: Account,
}

impl Server {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let home = Home { folder: top.path().join("home") };
        fs::create_dir(&home.folder).unwrap();
        let account = Account {
            name: "me".to_owned(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            switched: false,
        };
        for (name, text) in [("complete", INITDB), ("killed", KILLED_INITDB)] {
            let program = top.path().join(name).join("initdb");
            fs::create_dir(top.path().join(name)).unwrap();
            riops_testkit::write_program(&program, text).unwrap();
        }
        Self { top, home, account }
    }

    /// Does the same as `server start` before the server starts.
    fn initialize(&self, programs: &str) -> Result<()> {
        mark::require_usable(&self.home)?;
        let binaries = Binaries {
            bin: self.top.path().join(programs),
            version: "postgres (PostgreSQL) 15.0".to_owned(),
            home_name: "test".to_owned(),
        };
        let state = self.home.read_state();
        let (account, interrupt) = (&self.account, Interrupt::new());
        superuser(&self.home, state.as_ref(), &binaries, account, &interrupt, &|_| {}).map(drop)
    }

    /// Does the same as `server reset` after the server has stopped.
    fn reset(&self) -> Result<()> {
        mark::require_removable(&self.home)?;
        remove_data(&self.home, &Interrupt::new())
    }

    fn require_complete(&self, when: &str) {
        self.initialize("complete").unwrap_or_else(|error| panic!("{when}: {error}"));
        let data = self.home.data();
        assert!(data.join("PG_VERSION").is_file() && mark::is_own(&self.home).unwrap(), "{when}");
        self.require_nothing_left(when);
    }

    fn require_nothing_left(&self, when: &str) {
        let left = fs::read_dir(&self.home.folder).unwrap().map(|entry| entry.unwrap().file_name());
        let known = ["data", "state.json", "riops-server.json", "initdb.lock"];
        let more: Vec<_> = left.filter(|name| !known.iter().any(|known| name == known)).collect();
        assert!(more.is_empty(), "{when}: {more:?}");
    }
}

/// Calls `act` with a new server for each number of changes after which riops is killed. Returns their number.
fn run_at_each_change(act: impl Fn(&Server, u32) -> bool) -> u32 {
    (0..CHANGES_MAX).find(|&changes| !act(&Server::new(), changes)).unwrap()
}

#[test]
fn a_start_after_a_start_that_was_killed_at_any_change_works() {
    for programs in ["complete", "killed"] {
        let changes = run_at_each_change(|server, changes| {
            let is_killed = killed::after(changes, || drop(server.initialize(programs)));
            server.require_complete(&format!("{programs}, {changes}"));
            is_killed
        });
        assert!(changes > 10, "{changes}");
    }
}

#[test]
fn a_start_or_a_reset_after_a_reset_that_was_killed_at_any_change_works() {
    for resets_again in [false, true] {
        let changes = run_at_each_change(|server, changes| {
            let when = format!("{changes}");
            server.require_complete(&when);
            let is_killed = killed::after(changes, || drop(server.reset()));
            if resets_again {
                server.reset().unwrap();
                assert!(!server.home.data().exists() && !WorkDirectory::is_left(&server.home));
                server.require_nothing_left(&when);
            }
            server.require_complete(&when);
            is_killed
        });
        assert!(changes > 5, "{changes}");
    }
}

#[test]
fn a_start_that_is_killed_twice_does_not_block_the_third_one() {
    for first in 0..15 {
        run_at_each_change(|server, changes| {
            killed::after(first, || drop(server.initialize("killed")));
            let is_killed = killed::after(changes, || drop(server.initialize("complete")));
            server.require_complete(&format!("{first}, {changes}"));
            is_killed
        });
    }
}

#[test]
fn a_start_waits_for_the_initdb_of_a_killed_one() {
    let server = Server::new();
    let work = WorkDirectory::create(&server.home, &Interrupt::new()).unwrap();
    let of_initdb = work.lock().unwrap();
    killed::after(0, || drop(work));
    let interrupt = Interrupt::new();
    interrupt.request();
    let waited = WorkDirectory::create(&server.home, &interrupt).map(drop);
    assert!(matches!(waited, Err(EmbeddedError::Interrupted)), "{waited:?}");
    drop(of_initdb);
    server.require_complete("after initdb");
}
