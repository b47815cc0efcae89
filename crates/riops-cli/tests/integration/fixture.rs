//! Test fixtures: one embedded server for all tests, a database for each test, and helpers to run riops.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

use riops::host::Interrupt;
use riops::server::embedded::{Embedded, Options, State};
use riops::server::{ConnInfo, Connection};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Returns the path of the riops binary: `RIOPS_TEST_BINARY` if set, with which a new test is seen failing on an older
/// program.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        reset_signals();
        std::env::var_os("RIOPS_TEST_BINARY")
            .map_or_else(|| env!("CARGO_BIN_EXE_riops").into(), PathBuf::from)
    })
}

/// Lets the signals of the user have their default effect in child processes. A shell that runs the tests in the background
/// has them ignored, and riops keeps ignored signals ignored. Handlers are not inherited.
fn reset_signals() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    let ignored = u64::from_str_radix(mask.trim(), 16).unwrap_or(0);
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if ignored & (1 << (signal - 1)) != 0 {
            signal_hook::flag::register(signal, Arc::default()).unwrap();
        }
    }
}

/// Returns the command `outer` with the words and the environment of `inner` added.
pub(crate) fn wrap_command(mut outer: Command, inner: &Command) -> Command {
    outer.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(folder) = inner.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
}

/// Creates an empty folder for a test, accessible to the server's unprivileged user.
pub(crate) fn folder(name: &str) -> PathBuf {
    let uid = current_uid();
    let folder = PathBuf::from(format!("/var/tmp/riops-test-{uid}")).join(name);
    // A killed test may have left the folder behind.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for open in [folder.parent().unwrap(), &folder] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn current_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid()
}

pub(crate) fn is_root() -> bool {
    current_uid() == 0
}

/// Returns the path of an external program. If it is not installed, prints a message and returns `None`;
/// the test is then skipped. `.ci/run` sets `RIOPS_TEST_ALL`; a missing program is then an error.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
    let installed =
        folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    skip_if_missing(installed, name)
}

/// Returns the folder of the newest installed PostgreSQL.
pub(crate) fn installed_postgresql() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok();
    let newest = versions
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max();
    let installed = newest.map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}")));
    skip_if_missing(installed.filter(|path| path.join("bin/initdb").exists()), "PostgreSQL")
}

fn skip_if_missing(installed: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    if installed.is_none() {
        assert!(std::env::var_os("RIOPS_TEST_ALL").is_none(), "{name} is not installed");
        let mut out = std::io::stderr();
        std::io::Write::write_all(
            &mut out,
            format!("skipped: {name} is not installed\n").as_bytes(),
        )
        .unwrap();
    }
    installed
}

/// Returns the server that all tests share. No test stops it: the server's keeper stops it when the test
/// process exits, even after SIGKILL.
fn shared_server() -> &'static Embedded {
    static SERVER: OnceLock<Embedded> = OnceLock::new();
    SERVER.get_or_init(|| {
        let settings = [
            ("shared_buffers", "128MB"),
            ("max_wal_size", "512MB"),
            // Some tests execute more statements than the default of 5,000 at the same time.
            ("pg_stat_statements.max", "20000"),
        ];
        let data = folder(&format!("shared-{}", std::process::id()));
        remove_ended(data.parent().unwrap());
        let options = Options {
            // Another release, see scripts/test-servers.
            server_dir: std::env::var_os("TEST_SERVER_DIR").map(PathBuf::from),
            data: Some(data),
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..Options::default()
        };
        let server = Embedded::acquire(&options, binary(), &Interrupt::new(), &|_| {}).unwrap();
        // `Database::drop` needs it.
        open(&server.state().conninfo())
            .execute("create extension if not exists pg_stat_statements")
            .unwrap();
        server
    })
}

/// Returns the directory of the programs of the server that all tests share.
pub(crate) fn server_dir() -> &'static Path {
    shared_server().state().bin_dir.parent().unwrap()
}

/// Removes the servers of test processes that have ended, gigabytes each.
fn remove_ended(home: &Path) {
    for entry in home.read_dir().unwrap().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("shared-"));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Its keeper may still be stopping it: the next run removes the rest.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A database for one test.
pub(crate) struct Database {
    pub(crate) conninfo: ConnInfo,
    pub(crate) state: State,
    pub(crate) url: String,
    pub(crate) store: PathBuf,
}

impl Drop for Database {
    /// Forgets its statements. Each run reads the statistics of all statements of the server: with the statements of all
    /// tests, this would take a fifth of a second each time. A server with too many statements forgets the rarest ones,
    /// which tests count.
    fn drop(&mut self) {
        if let Ok(mut admin) = Connection::open(&self.state.conninfo(), &Interrupt::new()) {
            let name = &self.conninfo.database;
            let sql = format!(
                "select public.pg_stat_statements_reset(0, oid, 0) from pg_database where datname = '{name}'"
            );
            let reset = admin.execute(&sql);
            // A panic during a panic would hide the message of the first one.
            assert!(reset.is_ok() || std::thread::panicking(), "{reset:?}");
        }
    }
}

/// Opens a connection as a client of the user does, with the search path of the role.
pub(crate) fn open(conninfo: &ConnInfo) -> Connection {
    let mut connection = Connection::open(conninfo, &Interrupt::new()).unwrap();
    connection.execute("reset search_path").unwrap();
    connection
}

/// Creates an empty database on the shared server.
pub(crate) fn database(name: &str) -> Database {
    let state = shared_server().state();
    let mut admin = open(&state.conninfo());
    admin.execute(&format!("create database {name}")).unwrap();
    let url = state.url().replace("/postgres?", &format!("/{name}?"));
    let mut conninfo = state.conninfo();
    name.clone_into(&mut conninfo.database);
    let store = folder(&format!("store-{name}")).join("runs.sqlite");
    Database { conninfo, state: state.clone(), url, store }
}

/// Returns the TCP URL of a database of the shared server, with the password.
pub(crate) fn tcp_url(database: &str) -> String {
    let url = shared_server().state().url_tcp();
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{database}")
}

/// Returns the TCP URL of a database of the shared server for another role, whose password is `x`.
pub(crate) fn url_of_role(role: &str, database: &str) -> String {
    let url = tcp_url(database);
    let (_, server) = url.split_once('@').unwrap();
    format!("postgresql://{role}:x@{server}")
}

/// Returns the options with which sysbench connects to a database of the shared server.
pub(crate) fn sysbench_server(database: &Database) -> Vec<String> {
    let name = &database.conninfo.database;
    let url = tcp_url(name);
    let (user, rest) = url.trim_start_matches("postgresql://").split_once(':').unwrap();
    let (password, rest) = rest.split_once('@').unwrap();
    let (host, rest) = rest.split_once(':').unwrap();
    let port = rest.split('/').next().unwrap();
    vec![
        "--db-driver=pgsql".to_owned(),
        format!("--pgsql-host={host}"),
        format!("--pgsql-port={port}"),
        format!("--pgsql-user={user}"),
        format!("--pgsql-password={password}"),
        format!("--pgsql-db={name}"),
    ]
}

impl Database {
    /// Opens a connection to check or change the database independently of riops.
    pub(crate) fn connect(&self) -> Connection {
        open(&self.conninfo)
    }

    pub(crate) fn value(&self, sql: &str) -> Option<String> {
        self.connect().query_value(sql).unwrap()
    }

    /// Returns the command with this database as its target.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = command(line);
        command.env("RIOPS_DATABASE", &self.url).env("RIOPS_STORE", &self.store);
        command
    }

    /// The variables of libpq that name this database.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        let State { socket_dir, port, user, .. } = &self.state;
        [
            ("PGHOST", socket_dir.display().to_string()),
            ("PGPORT", port.to_string()),
            ("PGUSER", user.clone()),
            ("PGDATABASE", self.conninfo.database.clone()),
        ]
    }

    /// Runs the command on this database.
    pub(crate) fn riops(&self, line: &str) -> CommandOutput {
        CommandOutput::run(&mut self.command(line))
    }
}

/// Returns the command with these arguments, without the `PG*` and `RIOPS_*` environment variables.
pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(line.split_whitespace());
    for (name, _) in std::env::vars() {
        if name.starts_with("PG") || name.starts_with("RIOPS_") || name == "CLICOLOR_FORCE" {
            command.env_remove(name);
        }
    }
    // The tests read the whole text of a run; `answer.rs` reads what is printed without it.
    command.env("RIOPS_DETAILS", "true");
    command.env("XDG_DATA_HOME", data_home());
    command
}

/// The folder of the default store. The store of the user may have another version, and tests must not change it.
pub(crate) fn data_home() -> &'static Path {
    static DATA: OnceLock<PathBuf> = OnceLock::new();
    DATA.get_or_init(|| folder("data"))
}

/// Exit code and output of a finished command.
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    pub(crate) fn run(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    pub(crate) fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Fails the test unless the command exited with this code.
    pub(crate) fn expect(self, code: i32) -> Self {
        // Logs are cut at the front: the result comes after the progress, and the error is last.
        let skipped = self.stderr.lines().count().saturating_sub(5);
        let last: Vec<_> = self.stderr.lines().skip(skipped).collect();
        let last = last.join("\n");
        assert!(
            self.code == Some(code),
            "stderr:\n{}\nstdout:\n{}\nexit code {:?}, not {code}, after:\n{last}",
            self.stderr,
            self.stdout,
            self.code,
        );
        self
    }

    /// Fails the test unless standard output contains this text.
    pub(crate) fn stdout_contains(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "`{text}` is not in:\n{}", self.stdout);
        self
    }

    /// Fails the test unless standard error contains this text.
    pub(crate) fn stderr_contains(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "standard error does not contain `{text}`:\n{}",
            self.stderr
        );
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Spends some processor time. To yield instead would take a time slice of each busy process of the machine.
pub(crate) fn spin(rounds: u64) {
    (0..rounds).for_each(|_| std::hint::spin_loop());
}

/// Starts the command and waits until a line on its standard error contains this text.
pub(crate) fn start_until(command: &mut Command, text: &str) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap().contains(text)),
        "no line on standard error contains `{text}`"
    );
    // If the rest is not read, the command fails with a broken pipe.
    std::thread::spawn(move || lines.for_each(drop));
    child
}
