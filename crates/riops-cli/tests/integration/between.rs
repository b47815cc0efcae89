//! Runs through `PgBouncer` (session and transaction pooling) and through `HAProxy`.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use riops::host::Interrupt;
use riops::server::embedded::State;
use riops::server::{ConnInfo, Connection};

use crate::certificates::Certificates;
use crate::connect::TlsServer;
use crate::fixture::{CommandOutput, Database, command, database, folder, is_root, program};

/// A program that listens on a port until this is dropped.
pub(crate) struct Listener {
    child: Child,
    pub(crate) port: u16,
}

impl Listener {
    /// Starts the program and waits until it listens.
    pub(crate) fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut started = Self { child, port };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.child.try_wait().unwrap().is_none(), "{command:?} has exited");
            std::thread::yield_now();
        }
        started
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that is free at this time.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

const RULES: &str = "
host all u_trust 127.0.0.1/32 trust
host all u_scram 127.0.0.1/32 scram-sha-256
host all u_md5 127.0.0.1/32 md5
host all u_password 127.0.0.1/32 password
hostssl all u_cert 127.0.0.1/32 cert
";

/// Starts `PgBouncer` in front of a database. Returns `None` if it is not installed.
pub(crate) fn pgbouncer(
    folder: &Path,
    database: &Database,
    mode: &str,
    certificate: &str,
    certificates: &Certificates,
) -> Option<Listener> {
    pgbouncer_with("", folder, database, mode, (certificate, certificates))
}

/// The same, with other settings.
pub(crate) fn pgbouncer_with(
    others: &str,
    folder: &Path,
    database: &Database,
    mode: &str,
    (certificate, certificates): (&str, &Certificates),
) -> Option<Listener> {
    let program = program("pgbouncer")?;
    let state: &State = &database.state;
    let port = free_port();
    std::fs::write(folder.join("rules"), RULES).unwrap();
    let users = ["u_trust", "u_scram", "u_md5", "u_password", "u_cert"];
    let users = users.map(|user| format!("\"{user}\" \"right\"")).join("\n");
    std::fs::write(folder.join("users"), users).unwrap();
    let settings = format!(
        "[databases]
{database} = host={socket} port={server_port} user={user} dbname={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = hba
auth_hba_file = {folder}/rules
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = 10
max_client_conn = 3000
client_tls_sslmode = allow
client_tls_cert_file = {certificate}
client_tls_key_file = {key}
client_tls_ca_file = {ca}
{others}
",
        database = database.conninfo.database,
        user = database.conninfo.user,
        socket = state.socket_dir.display(),
        server_port = state.port,
        folder = folder.display(),
        certificate = certificates.certificate(certificate).display(),
        key = certificates.key(certificate).display(),
        ca = certificates.certificate("ca").display(),
    );
    let file = folder.join(format!("{mode}-{certificate}.ini"));
    std::fs::write(&file, settings).unwrap();
    let mut command = Command::new(program);
    command.arg(&file);
    if is_root() {
        // PgBouncer refuses to run as root. The user of the server owns the keys.
        command.args(["-u", "postgres"]);
    }
    Some(Listener::start(&mut command, port))
}

/// Creates a folder with certificates that the user of `PgBouncer` can read.
pub(crate) fn folder_with_certificates(name: &str, database: &Database) -> (PathBuf, Certificates) {
    let folder = folder(name);
    let certificates = folder.join("certificates");
    std::fs::create_dir(&certificates).unwrap();
    let certificates = Certificates::create(certificates);
    if is_root() {
        certificates.chown_like(&database.state.socket_dir);
    }
    (folder, certificates)
}

fn session(url: &str) -> Result<Connection, String> {
    let info = ConnInfo::parse(url, |_| None).map_err(|error| error.to_string())?;
    let mut connection =
        Connection::open(&info, &Interrupt::new()).map_err(|error| error.to_string())?;
    assert_eq!(connection.query_value("select 1").unwrap().as_deref(), Some("1"));
    Ok(connection)
}

#[test]
fn tls_modes_and_authentication_methods_work_through_pgbouncer() {
    let database = database("pgbouncer_modes");
    let (folder, certificates) = folder_with_certificates("pgbouncer-modes", &database);
    let url = |port: u16, user: &str, rest: &str| {
        format!("postgresql://{user}@localhost:{port}/pgbouncer_modes?hostaddr=127.0.0.1&{rest}")
    };
    let expect = |url: &str, outcome: Result<bool, &str>| match (session(url), outcome) {
        (Ok(connection), Ok(encrypted)) => {
            assert_eq!(connection.encryption().is_some(), encrypted, "{url}");
        }
        (Err(error), Err(text)) => assert!(error.contains(text), "{url}: {error}"),
        (Ok(_), Err(text)) => panic!("{url}: no error with {text}"),
        (Err(error), Ok(_)) => panic!("{url}: {error}"),
    };
    let root = format!("sslrootcert={}", certificates.certificate("ca").display());
    let full = format!("sslmode=verify-full&{root}");
    let Some(good) = pgbouncer(&folder, &database, "session", "good", &certificates) else {
        return;
    };
    let case = |user: &str, rest: &str, outcome| expect(&url(good.port, user, rest), outcome);
    for (rest, outcome) in [
        ("sslmode=disable", Ok(false)),
        ("sslmode=prefer", Ok(true)),
        ("sslmode=require", Ok(true)),
        (&full, Ok(true)),
        ("sslmode=verify-full", Err("requires a root certificate")),
    ] {
        case("u_trust", rest, outcome);
    }
    for user in ["u_scram", "u_md5"] {
        case(user, "sslmode=disable&password=right", Ok(false));
        case(user, "sslmode=require&password=right", Ok(true));
        case(user, "sslmode=require&password=wrong", Err(""));
        case(user, "sslmode=require", Err("requires a password"));
    }
    case("u_password", "sslmode=disable&password=right", Err("cleartext password"));
    case("u_password", "sslmode=require&password=right", Ok(true));
    case("u_password", "sslmode=disable&password=right&require_auth=password", Ok(false));
    let certificate = certificates.certificate("client");
    // The key now belongs to the user of PgBouncer. root can still read it.
    let key = certificates.key("client");
    let client = format!("sslcert={}&sslkey={}", certificate.display(), key.display());
    case("u_cert", &format!("{full}&{client}"), Ok(true));
    case("u_cert", &full, Err(""));
    for (certificate, refusal) in
        [("expired", "xpired"), ("foreign", "UnknownIssuer"), ("self-signed", "nvalid")]
    {
        let other = pgbouncer(&folder, &database, "session", certificate, &certificates).unwrap();
        expect(&url(other.port, "u_trust", &full), Err(refusal));
        expect(&url(other.port, "u_trust", "sslmode=require"), Ok(true));
    }
}

const WORK: &str = "--batch 1 --duration 300ms --warmup 0 --interval 100ms --output json";

#[test]
fn transaction_pooling_requires_an_unprepared_protocol_and_keeps_no_session_state() {
    let database = database("pgbouncer_tx");
    let (folder, certificates) = folder_with_certificates("pgbouncer-tx", &database);
    let Some(pooler) = pgbouncer(&folder, &database, "transaction", "good", &certificates) else {
        return;
    };
    database.riops("prepare rows --rows 5000").expect(0);
    let url = format!("postgresql://u_trust@127.0.0.1:{}/pgbouncer_tx", pooler.port);
    let riops = |line: &str| {
        let mut command = command(line);
        command.env("RIOPS_DATABASE", &url).env("RIOPS_STORE", &database.store);
        command.env("PGAPPNAME", "x".repeat(80));
        CommandOutput::run(&mut command)
    };
    // This version of PgBouncer does not track prepared statements; newer versions do.
    riops(&format!("run rows {WORK}")).expect(2).stderr_contains("--protocol extended or simple");
    // An observed command has its own sessions.
    let observed = riops("observe --output json -- true").expect(0);
    assert!(!observed.stderr.contains("session settings are not applied"), "{}", observed.stderr);
    for protocol in ["extended", "simple"] {
        let line = format!("run rows -c 40 -j 2 --update-percent 50 --protocol {protocol} {WORK}");
        let ran = riops(&line).expect(0).stderr_contains("a connection pooler in transaction mode");
        let record = ran.json();
        assert_eq!(record["verdict"]["valid"], true);
        assert!(record["target"]["pooler"].as_str().unwrap().contains("in transaction mode"));
        // riops cannot distinguish the sessions of others from its own.
        let includes = record["stages"][0]["cost"]["includes"].as_str().unwrap();
        assert!(includes.contains("include the work of other clients"), "{includes}");
        let named = format!(
            "select 1 from pg_stat_activity where application_name like '{}/%' and application_name like '%/{}' limit 1",
            "x".repeat(26),
            record["id"].as_str().unwrap()
        );
        assert_eq!(database.value(&named).as_deref(), Some("1"), "{protocol}");
        assert!(record["stages"][0]["transactions"].as_u64().unwrap() > 0);
    }
    // The queries of the user do not get riops's session settings: other clients' sessions would get them, too.
    let tracked = "tracked=select (current_setting('pg_stat_statements.track') <> 'none')::int";
    let mut probed = command(&format!("run rows --protocol simple {WORK}"));
    probed.args(["--probe", tracked]).env("RIOPS_DATABASE", &url);
    let probed = CommandOutput::run(probed.env("RIOPS_STORE", &database.store)).expect(0).json();
    let points = probed["stages"][0]["query_series"][0]["points"].as_array().unwrap().clone();
    assert!(points.len() >= 2 && points.iter().all(|point| point["value"] == 1.0), "{points:?}");
    for line in ["prepare rows --rows 100 --recreate", "verify rows", "cleanup rows"] {
        riops(line).expect(2).stderr_contains("requires dedicated server connections");
    }
    let left = "select count(*) from pg_locks where locktype = 'advisory' and database =
                (select oid from pg_database where datname = current_database())";
    assert_eq!(database.value(left).as_deref(), Some("0"));
    let mut through_pool = session(&url).unwrap();
    for _ in 0..20 {
        assert_eq!(through_pool.query_value("show enable_seqscan").unwrap().as_deref(), Some("on"));
    }
    database.riops("verify rows").expect(0);
    // The check of a script leaves no setting and no statement, either.
    let script = folder.join("read.sql");
    std::fs::write(&script, "\\set key 1\nselect * from pg_class where oid = :key;").unwrap();
    riops(&format!("script check {}", script.display())).expect(0);
    let left =
        "select current_setting('plan_cache_mode') || ' ' || count(*) from pg_prepared_statements";
    for _ in 0..20 {
        assert_eq!(through_pool.query_value(left).unwrap().as_deref(), Some("auto 0"));
    }
}

#[test]
fn tables_of_others_are_used_as_they_are_through_a_transaction_pool() {
    let database = database("pgbouncer_sysbench");
    let (folder, certificates) = folder_with_certificates("pgbouncer-sysbench", &database);
    let Some(pooler) = pgbouncer(&folder, &database, "transaction", "good", &certificates) else {
        return;
    };
    crate::ownership::create_sysbench_table(&database, 1000);
    // riops sends no settings to a pool. A table without statistics has bitmap scans of the same index.
    let sql = "alter database pgbouncer_sysbench set enable_seqscan = off";
    database.connect().execute(sql).unwrap();
    let riops = |line: &str| {
        CommandOutput::run(
            command(line).env("RIOPS_STORE", &database.store).env("PGSSLMODE", "disable"),
        )
    };
    let server = format!(
        "sysbench --pgsql-host=127.0.0.1 --pgsql-port={} --pgsql-user=u_trust --pgsql-db=pgbouncer_sysbench --tables=1 --table-size=1000 --events=30 --threads=2",
        pooler.port
    );
    let ran = riops(&format!("{server} --db-ps-mode=disable oltp_read_write run")).expect(0);
    ran.stdout_contains("total number of events:              30")
        .stderr_contains("the data are not verified");
    assert_eq!(database.value("select to_regnamespace('riops')"), None);
    // This version of PgBouncer does not track prepared statements.
    riops(&format!("{server} oltp_read_write run"))
        .expect(1)
        .stderr_contains("prepared statements need --db-ps-mode=disable");
}

#[test]
fn statement_pooling_permits_scripts_of_single_statements() {
    let database = database("pgbouncer_stmt");
    let (folder, certificates) = folder_with_certificates("pgbouncer-stmt", &database);
    let Some(pooler) = pgbouncer(&folder, &database, "statement", "good", &certificates) else {
        return;
    };
    let url = format!("postgresql://u_trust@127.0.0.1:{}/pgbouncer_stmt", pooler.port);
    let riops = |line: &str| CommandOutput::run(command(line).env("RIOPS_DATABASE", &url));
    riops("doctor").expect(0).stdout_contains("in statement mode");
    let script = folder.join("one.sql");
    std::fs::write(&script, "select 1").unwrap();
    let line = format!(
        "run script -f {} --protocol extended --transactions 20 -c 2 --warmup 0 --no-store",
        script.display()
    );
    riops(&line).expect(0).stderr_contains("permits no transactions of several statements");
}

#[test]
fn a_session_pool_of_one_connection_is_enough_for_one_session_of_a_script() {
    let database = database("pgbouncer_one");
    let (folder, certificates) = folder_with_certificates("pgbouncer-one", &database);
    let good = ("good", &certificates);
    let one = "default_pool_size = 1";
    let Some(pooler) = pgbouncer_with(one, &folder, &database, "session", good) else {
        return;
    };
    let script = folder.join("one.sql");
    std::fs::write(&script, "select 1").unwrap();
    let url =
        format!("postgresql://u_trust@127.0.0.1:{}/pgbouncer_one?connect_timeout=2", pooler.port);
    let line = format!(
        "run script -f {} --transactions 20 -c 1 --warmup 0 --no-store -d {url}",
        script.display()
    );
    CommandOutput::run(&mut command(&line))
        .expect(0)
        .stderr_contains("the counters of the database are not read");
}

#[test]
fn the_connections_of_a_small_pool_are_counted() {
    let database = database("pgbouncer_two");
    let (folder, certificates) = folder_with_certificates("pgbouncer-two", &database);
    let good = ("good", &certificates);
    let two = "default_pool_size = 2";
    let Some(pooler) = pgbouncer_with(two, &folder, &database, "transaction", good) else {
        return;
    };
    let script = folder.join("sleep.sql");
    std::fs::write(&script, "select pg_sleep(0.02)").unwrap();
    let line = format!(
        "run script -f {} --time 3 -c 8 --protocol simple --warmup 0 --no-store --output json -d postgresql://u_trust@127.0.0.1:{}/pgbouncer_two",
        script.display(),
        pooler.port
    );
    let record = CommandOutput::run(&mut command(&line)).expect(0).json();
    // The sample takes one of the two connections.
    assert_eq!(record["stages"][0]["probes"]["backends_max"], 1, "{record}");
}

#[test]
fn parallel_plans_through_a_transaction_pool_break_the_access_path() {
    let database = database("pgbouncer_parallel");
    let (folder, certificates) = folder_with_certificates("pgbouncer-parallel", &database);
    let Some(pooler) = pgbouncer(&folder, &database, "transaction", "good", &certificates) else {
        return;
    };
    database.riops("prepare oltp --tables 1 --table-size 20000").expect(0);
    crate::oltp::prefer_parallel_plans(&database);
    let run = |port: u16, code| {
        let url = format!("postgresql://u_trust@127.0.0.1:{port}/pgbouncer_parallel");
        let line = "run oltp --test sum-scan --range-size 10000 --protocol simple -c 1 --warmup 0";
        let mut command = command(&format!("{line} --transactions 5 --no-store"));
        CommandOutput::run(command.env("RIOPS_DATABASE", url)).expect(code)
    };
    // riops sends no settings to a pool.
    run(pooler.port, 3).stderr_contains("Gather");
    let sql = "alter database pgbouncer_parallel set max_parallel_workers_per_gather = 0";
    database.connect().execute(sql).unwrap();
    // The server connections of the pool have the old settings.
    drop(pooler);
    let again = pgbouncer(&folder, &database, "transaction", "good", &certificates).unwrap();
    run(again.port, 0);
}

#[test]
fn session_pooling_behaves_like_a_direct_connection() {
    let database = database("pgbouncer_session");
    let (folder, certificates) = folder_with_certificates("pgbouncer-session", &database);
    let Some(pooler) = pgbouncer(&folder, &database, "session", "good", &certificates) else {
        return;
    };
    let url = format!("postgresql://u_trust@127.0.0.1:{}/pgbouncer_session", pooler.port);
    let line = format!(
        "run rows --prepare --rows 5000 -c 4 --update-percent 30 {WORK} -d {url} --no-store"
    );
    let ran = CommandOutput::run(&mut command(&line))
        .expect(0)
        .stderr_contains("a connection pooler in session mode");
    assert_eq!(ran.json()["verdict"]["valid"], true);
    // The server sessions outlive the run, and with them counts that they have not reported.
    let stage = &ran.json()["stages"][0];
    let includes = stage["cost"]["includes"].as_str().unwrap();
    assert!(includes.contains("report the last second of their work late"), "{includes}");
    // If all counts are late, there is no figure.
    let (blocks, others) = (&stage["io"]["liops"], stage["io"]["blocks_include"].to_string());
    assert!(blocks.is_null() || others.contains("earlier sessions of the pooler"), "{others}");
    CommandOutput::run(&mut command(&format!("verify rows -d {url}"))).expect(0);
    let diagnosis = CommandOutput::run(&mut command(&format!("doctor --output json -d {url}")))
        .expect(0)
        .json();
    assert_eq!(diagnosis["pooler"]["by_transaction"], false);
}

#[test]
fn nine_hundred_sessions_through_pgbouncer_use_less_than_200_mib() {
    let database = database("pgbouncer_many");
    let (folder, certificates) = folder_with_certificates("pgbouncer-many", &database);
    let Some(pooler) = pgbouncer(&folder, &database, "transaction", "good", &certificates) else {
        return;
    };
    database.riops("prepare rows --rows 5000").expect(0);
    let url = format!("postgresql://u_trust@127.0.0.1:{}/pgbouncer_many", pooler.port);
    let line = format!(
        "run rows -c 900 -j 2 --rate 200 --protocol extended --batch 1 --duration 1 --warmup 0 --no-store --output json -d {url}"
    );
    let child = crate::fixture::start_until(&mut command(&line), "measuring");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 200 * 1024, "{kilobytes} kB");
    let output = CommandOutput::from(child.wait_with_output().unwrap()).expect(0);
    let stage = &output.json()["stages"][0];
    assert_eq!(
        (stage["sessions"].as_u64(), stage["schedule"]["intended"].as_u64()),
        (Some(900), Some(200))
    );
    assert_eq!(stage["outcomes"]["failed"], 0);
}

#[test]
fn tls_passes_through_haproxy_and_a_run_survives_its_restart() {
    let Some(program) = program("haproxy") else {
        return;
    };
    let server = TlsServer::start("haproxy", None);
    let folder = folder("haproxy-config");
    let port = free_port();
    let settings = format!(
        "defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen postgresql
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{}
",
        server.port
    );
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, settings).unwrap();
    let start = || Listener::start(Command::new(&program).arg("-f").arg(&file), port);
    let proxy = start();
    let root = server.client_certs.certificate("ca");
    let url = |user: &str, rest: &str| {
        format!(
            "postgresql://{user}@localhost:{port}/postgres?hostaddr=127.0.0.1&sslrootcert={}&{rest}",
            root.display()
        )
    };
    for (user, rest, encrypted) in [
        ("u_trust", "sslmode=disable", false),
        ("u_trust", "sslmode=verify-full", true),
        ("u_scram:right", "sslmode=verify-full&channel_binding=require", true),
        ("u_md5:right", "sslmode=disable", false),
        ("u_trust", "sslmode=require&sslnegotiation=direct", true),
    ] {
        let connection = session(&url(user, rest)).unwrap();
        assert_eq!(connection.encryption().is_some(), encrypted, "{user} {rest}");
    }
    let wrong = session(&url("u_scram:wrong", "sslmode=verify-full")).unwrap_err();
    assert!(wrong.contains("28P01"), "{wrong}");
    server.use_certificate("expired");
    let expired = session(&url("u_trust", "sslmode=verify-full")).unwrap_err();
    assert!(expired.contains("xpired"), "{expired}");
    server.use_certificate("good");

    server.grant_create("u_trust");
    let target = url("u_trust", "sslmode=verify-full");
    let prepare = format!("prepare rows --rows 5000 -d {target}");
    CommandOutput::run(&mut command(&prepare)).expect(0);
    let line = format!(
        "run rows --batch 1 -c 4 --rate 500 --update-percent 50 --transactions 1000 --warmup 0 --interval 100ms --no-store --output json -d {target}"
    );
    let child = crate::fixture::start_until(&mut command(&line), " s  ");
    drop(proxy);
    let _again = start();
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).expect(0);
    let record = ran.json();
    let stage = &record["stages"][0];
    assert!(stage["reconnects"].as_u64().unwrap() >= 1, "{stage}");
    let outcome = |name: &str| stage["outcomes"][name].as_u64().unwrap();
    assert_eq!(outcome("attempted"), 1000);
    assert_eq!(outcome("succeeded") + outcome("failed") + outcome("unknown"), 1000);
    assert_eq!(stage["schedule"]["intended"], 1000);
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
}
