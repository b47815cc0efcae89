//! Initializes and starts the server, also after a crash, until it accepts connections.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use rand::TryRng;

use super::account::Account;
use super::binaries::Binaries;
use super::cache::set_mode;
use super::error::{EmbeddedError, Result};
use super::files::{create_dir, file, remove_marker, rename, write_private};
use super::home::Home;
use super::keeper::{self, KeeperSpec};
use super::options::Options;
use super::postmaster::PidFile;
use super::state::{State, USER, loopback, rename_superuser};
use super::work::WorkDirectory;
use super::{mark, places, postmaster};
use crate::host::files::last_bytes;
use crate::host::{Interrupt, machine};
use crate::server::connection::{Connection, ConnectionError};
use crate::server::conninfo::{ConnInfo, remove_variables};

/// Below this size of /dev/shm, the dynamic shared memory of parallel queries goes to files.
/// Containers have 64 MB by default.
const SHM_BYTES_MIN: u64 = 256 * 1024 * 1024;
/// Number of ports to try before the start fails.
const PORT_TRIES: usize = 5;
/// Number of lines of the server log that an error shows.
const LOG_LINES: usize = 10;
/// More than these lines have.
const LOG_BYTES: u64 = 64 << 10;

/// Starts the server. Initializes its data directory first if there is none.
pub(super) fn start(
    home: &Home,
    binaries: &Binaries,
    account: &Account,
    options: &Options,
    keeper_program: &Path,
    interrupt: &Interrupt,
    notify: &dyn Fn(&str),
) -> Result<State> {
    let data = home.data();
    home.require_no_other_server()?;
    if mark::is_own(home)? {
        postmaster::kill_leftovers(&data)?;
    }
    // The marker was for the previous server.
    remove_marker(&home.path("persistent"))?;
    let previous = home.read_state();
    let (user, password) =
        superuser(home, previous.as_ref(), binaries, account, interrupt, notify)?;
    postmaster::remove_stale_pid_file(&data);
    warn_if_tmpfs(&data, notify);
    let socket_dir = places::socket_folder(home, account)?;
    let settings = settings(binaries, options)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let port = match options.port {
            Some(port) => port,
            None => free_port(previous.as_ref().map(|state| state.port).filter(|_| tries == 1))?,
        };
        let state = State {
            port,
            address: options.address.clone().unwrap_or_else(loopback),
            socket_dir: socket_dir.clone(),
            user: user.clone(),
            password: password.clone(),
            bin_dir: binaries.bin.clone(),
            version: binaries.version.clone(),
            settings: settings.clone(),
            ..State::default()
        };
        match launch(home, account, &state, keeper_program) {
            Ok(mut state) => {
                // The data directory may be from a riops that used another name.
                if state.user != USER {
                    state = rename_superuser(&state, interrupt)?;
                    write_state(home, &state)?;
                }
                enable_statement_statistics(&state.conninfo(), interrupt)?;
                bind(home, &state, interrupt)?;
                return Ok(state);
            }
            Err(EmbeddedError::Program { log, .. })
                if options.port.is_none() && tries < PORT_TRIES && log.contains("in use") => {}
            Err(error) => return Err(error),
        }
    }
}

/// Marks a data directory without its mark: a copy, or a directory of an earlier riops. The stored password, which the
/// server requires over TCP, proves that the directory belongs to the state.
fn bind(home: &Home, state: &State, interrupt: &Interrupt) -> Result<()> {
    if mark::is_own(home)? {
        return Ok(());
    }
    let conninfo = ConnInfo::parse(&state.url_tcp(), |_| None)
        .map_err(|error| EmbeddedError::NoServer(error.to_string()))?;
    Connection::open(&conninfo, interrupt)?;
    mark::write(home, &home.data())
}

/// Returns the superuser and its password. Initializes the data directory first if there is none.
pub(super) fn superuser(
    home: &Home,
    previous: Option<&State>,
    binaries: &Binaries,
    account: &Account,
    interrupt: &Interrupt,
    notify: &dyn Fn(&str),
) -> Result<(String, String)> {
    match previous {
        Some(state) if home.data().join("PG_VERSION").is_file() => {
            if WorkDirectory::is_left(home) {
                // Files that a killed process left only take space: errors are ignored.
                let _ = WorkDirectory::create(home, interrupt);
            }
            Ok((state.user.clone(), state.password.clone()))
        }
        _ => Ok((USER.to_owned(), initialize(home, binaries, account, interrupt, notify)?)),
    }
}

/// Initializes the data directory and returns the superuser's password. The directory gets its final
/// name only when it is complete.
fn initialize(
    home: &Home,
    binaries: &Binaries,
    account: &Account,
    interrupt: &Interrupt,
    notify: &dyn Fn(&str),
) -> Result<String> {
    let data = home.data();
    if data.exists() {
        return Err(EmbeddedError::Foreign(data));
    }
    notify(&format!("initializing the data directory {}", data.display()));
    let work = WorkDirectory::create(home, interrupt)?;
    let (fresh, password_file) = (work.path("data"), work.path("password"));
    create_dir(&fresh)?;
    set_mode(&fresh, 0o700)?;
    account.take_ownership(&fresh)?;
    let password = random_password()?;
    write_private(&password_file, password.as_bytes())?;
    account.take_ownership(&password_file)?;
    let program = binaries.bin.join("initdb");
    let output = keeper::command(&program, account, &home.folder)
        .args(["--username", USER, "--auth-local=trust", "--auth-host=scram-sha-256"])
        .args(["--no-locale", "--encoding=UTF8"])
        .arg("--pgdata")
        .arg(&fresh)
        .arg("--pwfile")
        .arg(&password_file)
        // It reads nothing. As long as it runs, no other process changes the directory, also if riops is killed.
        .stdin(work.lock()?)
        .output()
        .map_err(|error| cannot_run(&program, account, error))?;
    if !output.status.success() {
        let log = last_lines(&String::from_utf8_lossy(&output.stderr));
        let cause = output.status.to_string();
        return Err(EmbeddedError::Program { program: "initdb", cause, log });
    }
    // Before any other file, so that all files of riops are recognized after an interruption.
    mark::write(home, &fresh)?;
    // Store the password before the rename: a complete data directory always has a known password.
    let state = State {
        address: loopback(),
        user: USER.to_owned(),
        password: password.clone(),
        bin_dir: binaries.bin.clone(),
        version: binaries.version.clone(),
        ..State::default()
    };
    write_state(home, &state)?;
    rename(&fresh, &data).map_err(file("rename to", &data))?;
    Ok(password)
}

fn cannot_run(program: &Path, account: &Account, error: std::io::Error) -> EmbeddedError {
    match error.raw_os_error() {
        // EPERM comes from changing the user, EACCES from the program itself.
        Some(1) if account.switched => EmbeddedError::NoAccount(format!(
            "root is not permitted to switch to the user {}",
            account.name
        )),
        Some(13) => EmbeddedError::NoServer(format!(
            "cannot execute \"{}\": permission denied; if its file system is mounted with noexec, choose another directory with RIOPS_CACHE_DIR",
            program.display()
        )),
        _ => file("run", program)(error),
    }
}

/// Starts the keeper process, which starts the server, and waits until the server is ready.
fn launch(home: &Home, account: &Account, state: &State, keeper_program: &Path) -> Result<State> {
    let log = home.log();
    // Empty: the keeper and the server append.
    write_private(&log, b"")?;
    account.take_ownership(&log)?;
    let spec = KeeperSpec {
        program: state.bin_dir.join("postgres"),
        arguments: arguments(home, state),
        account: account.clone(),
        home: home.folder.clone(),
    };
    let spec = serde_json::to_vec(&spec)
        .map_err(|error| file("write the keeper specification for", &log)(error.into()))?;
    let mut keeper = remove_variables(Command::new(keeper_program).args(["server", "keep"]))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Not inherited: a program that reads the stderr of riops to EOF would wait for the keeper.
        .stderr(Stdio::null())
        .spawn()
        .map_err(file("run", keeper_program))?;
    if let Some(mut input) = keeper.stdin.take() {
        input.write_all(&spec).map_err(file("run", keeper_program))?;
    }
    let mut answer = String::new();
    if let Some(output) = keeper.stdout.take() {
        BufReader::new(output).read_line(&mut answer).map_err(file("run", keeper_program))?;
    }
    match postmaster::pid_file(&home.data()) {
        Some(PidFile { pid, started, .. }) if answer.trim() == keeper::READY => {
            let state = State { pid, started: Some(started), ..state.clone() };
            write_state(home, &state)?;
            Ok(state)
        }
        _ => {
            let _ = keeper.wait();
            let log = last_bytes(&log, LOG_BYTES).unwrap_or_default();
            Err(EmbeddedError::Program {
                program: "the embedded server",
                cause: match answer.trim() {
                    "" => "the keeper process exited".to_owned(),
                    answer => answer.to_owned(),
                },
                log: last_lines(&String::from_utf8_lossy(&log)),
            })
        }
    }
}

fn arguments(home: &Home, state: &State) -> Vec<String> {
    let data = home.data();
    let data = fs::canonicalize(&data).unwrap_or(data);
    let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
    let reserved = [
        ("port".to_owned(), state.port.to_string()),
        ("listen_addresses".to_owned(), state.address.clone()),
        ("unix_socket_directories".to_owned(), state.socket_dir.display().to_string()),
        ("unix_socket_permissions".to_owned(), "0700".to_owned()),
    ];
    let settings = reserved.iter().chain(&state.settings);
    arguments
        .extend(settings.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
    arguments
}

/// Locations and addresses that riops sets itself. With other values it could not find the server.
const RESERVED_SETTINGS: [&str; 8] = [
    "port",
    "listen_addresses",
    "unix_socket_directories",
    "unix_socket_permissions",
    "data_directory",
    "config_file",
    "hba_file",
    "external_pid_file",
];

/// Returns the default settings for benchmarks with the user's settings, which take precedence.
fn settings(binaries: &Binaries, options: &Options) -> Result<Vec<(String, String)>> {
    let memory_mb = machine::memory_bytes() / (1024 * 1024);
    let mut settings: Vec<(String, String)> = [
        // 25 % of the memory, as PostgreSQL's documentation recommends; at least its default.
        ("shared_buffers", format!("{}MB", (memory_mb / 4).max(128))),
        ("effective_cache_size", format!("{}MB", (memory_mb / 4 * 3).max(512))),
        ("maintenance_work_mem", "256MB".to_owned()),
        ("max_connections", "500".to_owned()),
        // With frequent checkpoints, the benchmark would measure checkpoints instead of statements.
        ("max_wal_size", "4GB".to_owned()),
        ("checkpoint_timeout", "15min".to_owned()),
        ("track_io_timing", "on".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if binaries.has_library("pg_stat_statements") {
        settings.push(("shared_preload_libraries".to_owned(), "pg_stat_statements".to_owned()));
    }
    if is_shm_small() {
        settings.push(("dynamic_shared_memory_type".to_owned(), "mmap".to_owned()));
    }
    for (name, value) in &options.settings {
        let plain = |character: char| character.is_ascii_alphanumeric() || "_.".contains(character);
        if name.is_empty() || !name.chars().all(plain) {
            return Err(EmbeddedError::NoServer(format!(
                "invalid value \"{name}={value}\" for --server-set: \"{name}\" is not a valid parameter name"
            )));
        }
        if RESERVED_SETTINGS.contains(&name.as_str()) {
            return Err(EmbeddedError::NoServer(format!(
                "cannot change parameter \"{name}\" with --server-set: riops sets it; use --server-port or --server-data"
            )));
        }
        settings.retain(|(known, _)| known != name);
        settings.push((name.clone(), value.clone()));
    }
    Ok(settings)
}

fn is_shm_small() -> bool {
    rustix::fs::statvfs("/dev/shm").is_ok_and(|shm| shm.f_bavail * shm.f_frsize < SHM_BYTES_MIN)
}

fn warn_if_tmpfs(data: &Path, notify: &dyn Fn(&str)) {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    #[cfg(target_os = "linux")]
    if rustix::fs::statfs(data).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(TMPFS_MAGIC)) {
        notify(&format!(
            "the data directory {} is on tmpfs: reads never reach a device, and commit latency is not realistic",
            data.display()
        ));
    }
}

/// Returns a free port: `preferred`, the port of the previous start, if it is still free.
fn free_port(preferred: Option<u16>) -> Result<u16> {
    let bind =
        |port: u16| TcpListener::bind(("127.0.0.1", port)).and_then(|socket| socket.local_addr());
    preferred
        .filter(|&port| port != 0)
        .and_then(|port| bind(port).ok())
        .map_or_else(|| bind(0), Ok)
        .map(|address| address.port())
        .map_err(|error| EmbeddedError::NoServer(format!("no free TCP port on 127.0.0.1: {error}")))
}

/// Creates `pg_stat_statements` in a database of a server that has loaded it, so that statement statistics are available for
/// diagnosis.
///
/// # Errors
/// [`ConnectionError`] if the server cannot be reached or refuses it.
pub fn enable_statement_statistics(
    conninfo: &ConnInfo,
    interrupt: &Interrupt,
) -> std::result::Result<(), ConnectionError> {
    let mut connection = Connection::open(conninfo, interrupt)?;
    let loaded = connection.query_value("show shared_preload_libraries")?;
    if loaded.is_some_and(|names| names.contains("pg_stat_statements")) {
        connection.execute("create extension if not exists pg_stat_statements schema public")?;
    }
    Ok(())
}

/// Returns 128 bits from the random number generator of the operating system, in hexadecimal.
fn random_password() -> Result<String> {
    let half = || {
        rand::rngs::SysRng.try_next_u64().map_err(|error| {
            EmbeddedError::NoServer(format!("cannot generate a password: {error}"))
        })
    };
    Ok(format!("{:016x}{:016x}", half()?, half()?))
}

fn write_state(home: &Home, state: &State) -> Result<()> {
    let path = home.path("state.json");
    let json =
        serde_json::to_vec_pretty(state).map_err(|error| file("write", &path)(error.into()))?;
    write_private(&path, &json)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let start = lines.len().saturating_sub(LOG_LINES);
    lines.into_iter().skip(start).collect::<Vec<_>>().join("\n")
}
