//! Connections as libpq reads them: psql and riops try the same connection strings, files, variables and options, generated from a
//! fixed seed, on servers that record who connects where. Both must try the same servers with the same user, database, settings
//! and password, or none. `DIFFERENCES` and docs/connecting.md list the known differences.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use riops::host::Interrupt;
use riops::server::conninfo::Precedence;
use riops::server::{ConnInfo, Connection};

use crate::fixture::{binary, folder, installed_postgresql};
use crate::libpq_forms::{Form, Maker, Places, Random};

/// Number of generated forms.
const FORMS: usize = 600;

/// One attempt to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attempt {
    server: String,
    /// The settings of the startup message.
    settings: BTreeMap<String, String>,
    /// The hash of the password.
    password: Option<String>,
}

/// What the servers share.
#[derive(Default)]
struct Shared {
    attempts: Mutex<Vec<Attempt>>,
    /// Whether another server would refuse as well, instead of "cannot connect now".
    is_final: AtomicBool,
}

/// The servers: four TCP sockets and four Unix sockets.
struct Servers {
    shared: Arc<Shared>,
    places: Places,
}

impl Servers {
    fn start(home: &Path) -> Self {
        let shared = Arc::new(Shared::default());
        let mut ports = [0; 2];
        for port in &mut ports {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            *port = listener.local_addr().unwrap().port();
            serve(&shared, format!("127.0.0.1:{port}"), move || Ok(listener.accept()?.0));
            // Without IPv6, or if something else has this port there, neither program finds a server.
            if let Ok(listener) = TcpListener::bind(("::1", *port)) {
                serve(&shared, format!("[::1]:{port}"), move || Ok(listener.accept()?.0));
            }
        }
        let unused = TcpListener::bind("127.0.0.1:0").unwrap();
        let dead = unused.local_addr().unwrap().port();
        let folders = ["a", "b c"].map(|name| home.join(name));
        for folder in &folders {
            std::fs::create_dir(folder).unwrap();
            for port in ports {
                let path = folder.join(format!(".s.PGSQL.{port}"));
                let listener = UnixListener::bind(&path).unwrap();
                serve(&shared, path.display().to_string(), move || Ok(listener.accept()?.0));
            }
        }
        Self { shared, places: Places { ports, dead, folders } }
    }

    fn take_attempts(&self) -> Vec<Attempt> {
        std::mem::take(&mut *self.shared.attempts.lock().unwrap())
    }
}

/// Serves the connections of a socket, one after another.
fn serve<S: Read + Write>(
    shared: &Arc<Shared>,
    name: String,
    accept: impl Fn() -> io::Result<S> + Send + 'static,
) {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        while let Ok(mut stream) = accept() {
            // A client that disconnects has said what it wanted.
            let _ = answer(&shared, &name, &mut stream);
        }
    });
}

fn read_message(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// Refuses encryption, records the startup message, requests the password, records its hash and ends with an error.
fn answer(shared: &Shared, name: &str, stream: &mut (impl Read + Write)) -> io::Result<()> {
    let body = loop {
        let body = read_message(stream)?;
        match body.get(..4) {
            Some([0x04, 0xd2, 0x16, 0x2f | 0x30]) => stream.write_all(b"N")?,
            _ => break body,
        }
    };
    let texts: Vec<_> =
        body[4..].split(|&byte| byte == 0).map(|text| String::from_utf8_lossy(text)).collect();
    let mut settings: BTreeMap<String, String> = texts
        .chunks_exact(2)
        .filter(|pair| !pair[0].is_empty())
        .map(|pair| (pair[0].to_string(), pair[1].to_string()))
        .collect();
    settings.retain(|name, _| !["client_encoding", "replication"].contains(&name.as_str()));
    // The names of the programs differ.
    settings.retain(|_, value| {
        !["psql", "pgbench"].contains(&value.as_str()) && !value.starts_with("riops")
    });
    let attempt = Attempt { server: name.to_owned(), settings, password: None };
    shared.attempts.lock().unwrap().push(attempt);
    stream.write_all(b"R\0\0\0\x0c\0\0\0\x05salt")?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    let password = String::from_utf8_lossy(&read_message(stream)?).into_owned();
    if let Some(last) = shared.attempts.lock().unwrap().last_mut() {
        last.password = Some(password);
    }
    let code = if shared.is_final.load(Ordering::Acquire) { "28P01" } else { "57P03" };
    let fields = format!("SFATAL\0VFATAL\0C{code}\0Mrefused\0\0");
    let length = u32::try_from(fields.len() + 4).unwrap();
    stream.write_all(&[b"E", &length.to_be_bytes()[..], fields.as_bytes()].concat())
}

/// Forms that riops and psql read differently, as docs/connecting.md says: with the number of servers that psql tries, and a part of
/// the error of riops, which tries none.
const DIFFERENCES: [(&str, usize, &str); 8] = [
    // All values and files are checked before the first connection.
    ("host=127.0.0.1,127.0.0.1 port=PORT,x", 1, "connection parameter port"),
    ("host=127.0.0.1,127.0.0.1 port=70000,PORT", 1, "connection parameter port"),
    ("host=127.0.0.1 port=PORT sslrootcert=/etc/passwd", 1, "root certificate"),
    ("host=127.0.0.1 port=PORT sslcompression=1", 1, "not supported by riops"),
    // Texts that are probably mistakes.
    ("host=127.0.0.1 port=PORT dbname=postgresql://h/x", 1, "a URL starts with"),
    ("postgresql://127.0.0.1:PORT/postgresql:%2F%2Fh", 1, "a URL starts with"),
    // Text of another encoding.
    ("postgresql://%ff@127.0.0.1:PORT/", 1, "percent sign"),
    ("host=127.0.0.1 port=PORT replication=database", 1, "not supported by riops"),
];

struct Bench {
    home: PathBuf,
    servers: Servers,
    programs: PathBuf,
}

impl Bench {
    /// `None` without the programs of PostgreSQL.
    fn start(name: &str) -> Option<Self> {
        let programs = installed_postgresql()?.join("bin");
        let home = folder(name);
        let servers = Servers::start(&home);
        Some(Self { home, servers, programs })
    }

    /// Writes the files of a form. Returns the environment.
    fn environment(&self, form: &Form) -> BTreeMap<String, String> {
        let home = self.home.join("home");
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir(&home).unwrap();
        if let Some(services) = &form.services {
            std::fs::write(home.join(".pg_service.conf"), services).unwrap();
        }
        if let Some(passwords) = &form.passwords {
            let file = home.join(".pgpass");
            std::fs::write(&file, passwords).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let variables =
            form.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let own = [("HOME", home.to_str().unwrap()), ("PGSYSCONFDIR", "/nonexistent")];
        own.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .chain(variables)
            .collect()
    }

    /// Runs a program with the options of a form, which must fail. Returns its attempts and its messages.
    fn run(&self, program: &Path, first: &[&str], form: &Form) -> (Vec<Attempt>, String) {
        let mut command = Command::new(program);
        command.args(first).env_clear().envs(self.environment(form)).stdin(Stdio::null());
        for (name, value) in &form.beside {
            command.arg(format!("--{}={value}", if *name == "user" { "username" } else { name }));
        }
        let output = command.args(&form.database).output().unwrap();
        assert!(!output.status.success());
        (self.servers.take_attempts(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn connect_with_psql(&self, form: &Form) -> (Vec<Attempt>, String) {
        self.run(&self.programs.join("psql"), &["-X", "-w"], form)
    }

    /// The attempts of riops, and why it refused the form, if it did.
    fn connect_with_riops(&self, form: &Form) -> (Vec<Attempt>, String) {
        let environment = self.environment(form);
        let beside: Vec<_> =
            form.beside.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let text = form.database.as_deref().unwrap_or_default();
        let text = ConnInfo::with_settings(text, &beside, Precedence::String);
        let reason = match ConnInfo::parse(&text, |name| environment.get(name).cloned()) {
            Ok(info) => Connection::open(&info, &Interrupt::new()).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        (self.servers.take_attempts(), reason)
    }
}

#[test]
fn riops_and_psql_connect_to_the_same_servers_in_the_same_way() {
    let Some(bench) = Bench::start("libpq") else {
        return;
    };
    let mut maker = Maker { random: Random(56), places: &bench.servers.places };
    let (mut different, mut connected, mut with_password) = (Vec::new(), 0, 0);
    for position in 0..FORMS {
        let form = maker.form();
        let (expected, message) = bench.connect_with_psql(&form);
        let (actual, reason) = bench.connect_with_riops(&form);
        connected += usize::from(!expected.is_empty());
        with_password += usize::from(expected.iter().any(|attempt| attempt.password.is_some()));
        if actual != expected {
            different.push(format!(
                "{position}: {form:#?}\npsql: {expected:#?}\n{message}riops: {actual:#?}\n{reason}"
            ));
        }
    }
    let (count, shown) =
        (different.len(), different.get(..different.len().min(8)).unwrap().join("\n\n"));
    assert!(different.is_empty(), "{count} of {FORMS} forms differ:\n{shown}");
    // The forms are not tested if most of them connect nowhere.
    assert!(connected > FORMS / 3 && with_password > FORMS / 6, "{connected} {with_password}");
}

#[test]
fn differences_from_libpq_are_documented() {
    let Some(bench) = Bench::start("libpq-differences") else {
        return;
    };
    let port = bench.servers.places.ports[0].to_string();
    bench.servers.shared.is_final.store(false, Ordering::Release);
    for (text, count, error) in DIFFERENCES {
        let mut form = Form::new(&text.replace("PORT", &port));
        form.variables.push(("PGPASSWORD", "x".to_owned()));
        let (expected, message) = bench.connect_with_psql(&form);
        let (actual, reason) = bench.connect_with_riops(&form);
        assert!(
            expected.len() == count && actual.is_empty(),
            "{text}: {expected:?} {message} {actual:?}"
        );
        assert!(reason.contains(error), "{text}: {reason}");
    }
    // What psql refuses, and riops connects.
    let folder = bench.servers.places.folders[0].display();
    for form in [
        Form::new(&format!("host=127.0.0.1 port={port} channel_binding=''")),
        Form::new(&format!("host=127.0.0.1 port={port}")).variable("PGSSLMODE", ""),
        Form::new(&format!("host=127.0.0.1 port={port}")).variable("PGSERVICE", ""),
        Form::new(&format!(" postgresql://127.0.0.1:{port}/x")),
        Form::new(&format!("host=127.0.0.1,{folder} port={port} sslmode=require")),
    ] {
        let ((expected, _), (actual, reason)) =
            (bench.connect_with_psql(&form), bench.connect_with_riops(&form));
        assert!(
            expected.is_empty() && actual.len() == 1,
            "{form:?}: {expected:?} {actual:?} {reason}"
        );
    }
}

/// Compares the servers that pgbench and riops choose for the same command line.
#[test]
fn riops_pgbench_and_pgbench_connect_to_the_same_server() {
    let Some(bench) = Bench::start("libpq-pgbench") else {
        return;
    };
    bench.servers.shared.is_final.store(true, Ordering::Release);
    let [first, second] = bench.servers.places.ports;
    let [a, b] = bench.servers.places.folders.each_ref().map(|folder| folder.to_str().unwrap());
    let encoded = utf8_percent_encode(b, NON_ALPHANUMERIC);
    let url = format!("postgresql://me@/bench?host={encoded}&port={second}");
    let all =
        [("host", a.to_owned()), ("port", first.to_string()), ("user", "postgres".to_owned())];
    let service =
        format!("[a]\nhost={a}\nport={first}\nuser=of_a\ndbname=bench\ndbname=postgres\n");
    let with = |database: &str, beside: &[(&'static str, String)]| {
        let database = Some(database.to_owned()).filter(|name| !name.is_empty());
        let form = Form {
            database,
            beside: beside.into(),
            services: Some(service.clone()),
            ..Form::default()
        };
        form.variable("PGPASSWORD", "x")
    };
    let forms = [
        with(&url, &all),
        with(&url, &all[..1]),
        with(&url, &all[1..2]),
        with(&url, &all[2..]),
        with("postgres:///bench", &all),
        with(&format!("host={a} port={second}"), &all),
        with("bench", &all),
        with("", &all),
        with("", &all).variable("PGDATABASE", &url),
        with("", &[]).variable("PGSERVICE", "a"),
        with("service=a", &all[2..]),
        with("", &all[..2]).variable("PGUSER", "you"),
    ];
    for form in forms {
        let lines: [&[&str]; 2] = [&["-n", "-t", "1", "-S"], &["-i"]];
        for line in lines {
            let (expected, message) = bench.run(&bench.programs.join("pgbench"), line, &form);
            let own = [&["pgbench"], line].concat();
            let (actual, reason) = bench.run(binary(), &own, &form);
            assert_eq!(expected.len(), 1, "{form:?} {message}");
            assert_eq!(actual.first(), expected.first(), "{form:?}\n{message}\n{reason}");
        }
    }
}
