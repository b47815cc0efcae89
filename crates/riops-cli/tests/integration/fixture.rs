//! One embedded server for all tests, a database for each, and ways to run the command.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use riops::host::Interrupt;
use riops::server::embedded::{Embedded, Options, State};
use riops::server::{ConnInfo, Connection};
use serde_json::Value;

/// The command under test.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_riops"))
}

/// A folder for this test that the server's unprivileged user can reach, empty.
pub(crate) fn folder(name: &str) -> PathBuf {
    let uid = rustix_uid();
    let folder = PathBuf::from(format!("/var/tmp/riops-test-{uid}")).join(name);
    // Left over from a test that was killed.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for open in [folder.parent().unwrap(), &folder] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn rustix_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid()
}

pub(crate) fn is_root() -> bool {
    rustix_uid() == 0
}

/// A program that a test needs beside riops; `None`, with a word about it, where it is not
/// installed. The gate installs them all and lets nothing be left out.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
    let found =
        folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    missing(found, name)
}

/// The newest PostgreSQL that the system has installed.
pub(crate) fn installed_postgresql() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok();
    let newest = versions
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max();
    let found = newest.map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}")));
    missing(found.filter(|path| path.join("bin/initdb").exists()), "PostgreSQL")
}

fn missing(found: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    if found.is_none() {
        assert!(std::env::var_os("RIOPS_TEST_ALL").is_none(), "{name} is not installed");
        let mut out = std::io::stderr();
        std::io::Write::write_all(
            &mut out,
            format!("left out: {name} is not installed\n").as_bytes(),
        )
        .unwrap();
    }
    found
}

/// The server that the tests share. It is never left: when the test process ends, however it
/// ends, the server's keeper stops it.
fn shared() -> &'static Embedded {
    static SERVER: OnceLock<Embedded> = OnceLock::new();
    SERVER.get_or_init(|| {
        let settings = [("shared_buffers", "128MB"), ("max_wal_size", "512MB")];
        let options = Options {
            data: Some(folder(&format!("shared-{}", std::process::id()))),
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..Options::default()
        };
        Embedded::acquire(&options, binary(), &Interrupt::new(), &|_| {}).unwrap()
    })
}

/// A database of a test's own.
pub(crate) struct Database {
    pub(crate) conninfo: ConnInfo,
    pub(crate) state: State,
    pub(crate) url: String,
    pub(crate) store: PathBuf,
}

/// Makes an empty database on the shared server.
pub(crate) fn database(name: &str) -> Database {
    let state = shared().state();
    let mut admin = Connection::open(&state.conninfo(), &Interrupt::new()).unwrap();
    admin.execute(&format!("create database {name}")).unwrap();
    let url = state.url().replace("/postgres?", &format!("/{name}?"));
    let mut conninfo = state.conninfo();
    name.clone_into(&mut conninfo.database);
    let store = folder(&format!("store-{name}")).join("runs.sqlite");
    Database { conninfo, state: state.clone(), url, store }
}

/// The shared server's TCP address, with its password.
pub(crate) fn tcp_url() -> String {
    shared().state().url_tcp()
}

impl Database {
    /// A connection for looking behind the command's back.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(&self.conninfo, &Interrupt::new()).unwrap()
    }

    pub(crate) fn value(&self, sql: &str) -> Option<String> {
        self.connect().query_value(sql).unwrap()
    }

    /// The command on this database.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = command(line);
        command.env("RIOPS_DATABASE", &self.url).env("RIOPS_STORE", &self.store);
        command
    }

    /// Runs the command on this database.
    pub(crate) fn riops(&self, line: &str) -> Ran {
        Ran::of(&mut self.command(line))
    }
}

/// The command with these words, in an environment of its own.
pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(line.split_whitespace());
    for (name, _) in std::env::vars() {
        if name.starts_with("PG") || name.starts_with("RIOPS_") {
            command.env_remove(name);
        }
    }
    command
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    pub(crate) fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Fails the test unless the command ended with this code.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails the test unless standard error says this.
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is not in:\n{}", self.stderr);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Starts the command and waits for a line on its standard error that contains this.
pub(crate) fn until(command: &mut Command, text: &str) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(text)), "`{text}` never came");
    // Somebody has to read the rest, or the command ends by a broken pipe.
    std::thread::spawn(move || lines.for_each(drop));
    child
}
