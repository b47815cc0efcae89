//! Valid and invalid ways to connect: TLS modes, certificates, authentication methods and host lists,
//! against the embedded PostgreSQL and an installed one.

use std::path::{Path, PathBuf};

use riops::host::Interrupt;
use riops::server::embedded::{Embedded, Options};
use riops::server::{ConnInfo, Connection};

use crate::certificates::Certificates;
use crate::fixture::{CommandOutput, binary, command, folder, open};

/// A server with TLS and a user for each authentication method.
pub(crate) struct TlsServer {
    server: Embedded,
    pub(crate) certificates: Certificates,
    /// Copies of the certificates for clients, readable only by the current user.
    pub(crate) client_certs: Certificates,
    pub(crate) port: u16,
}

const RULES: &str = "
hostnossl all u_nossl 127.0.0.1/32 trust
hostssl   all u_nossl 127.0.0.1/32 reject
hostssl   all u_ssl   127.0.0.1/32 trust
hostnossl all u_ssl   127.0.0.1/32 reject
host      all u_scram 127.0.0.1/32 scram-sha-256
host      all u_md5   127.0.0.1/32 md5
host      all u_password 127.0.0.1/32 password
host      all u_trust 127.0.0.1/32 trust
host      all u_ro    127.0.0.1/32 trust
host      all u_reject 127.0.0.1/32 reject
hostssl   all u_cert  127.0.0.1/32 cert
";

const USERS: &str = "
set password_encryption = 'scram-sha-256';
create role u_scram login password 'right';
create role u_password login password 'right';
create role u_nossl login; create role u_ssl login; create role u_trust login;
create role u_reject login; create role u_cert login;
create role u_ro login; alter role u_ro set default_transaction_read_only = on;
set password_encryption = 'md5';
create role u_md5 login password 'right'";

impl TlsServer {
    /// Starts the embedded server, or the server installed in `server_dir`.
    pub(crate) fn start(name: &str, server_dir: Option<PathBuf>) -> Self {
        let home = folder(name);
        let options = Options { data: Some(home.clone()), server_dir, ..Options::default() };
        let server = Embedded::acquire(&options, binary(), &Interrupt::new(), &|_| {}).unwrap();
        let data = home.join("data");
        let server_certs = home.join("certificates");
        std::fs::create_dir(&server_certs).unwrap();
        let client_certs = home.join("client-certificates");
        let certificates = Certificates::create(server_certs.clone());
        std::fs::create_dir(&client_certs).unwrap();
        for entry in server_certs.read_dir().unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, client_certs.join(path.file_name().unwrap())).unwrap();
        }
        certificates.chown_like(&data);
        let rules = data.join("pg_hba.conf");
        let existing = std::fs::read_to_string(&rules).unwrap();
        std::fs::write(&rules, format!("{RULES}{existing}")).unwrap();
        let state = server.state();
        let port = state.port;
        let mut admin = open(&state.conninfo());
        for statement in USERS.split(';') {
            admin.execute(statement).unwrap();
        }
        let started = Self {
            server,
            certificates,
            client_certs: Certificates::from_folder(client_certs),
            port,
        };
        started.alter("ssl_ca_file", &started.certificates.certificate("ca"));
        started.use_certificate("good");
        admin.execute("alter system set ssl = on").unwrap();
        started.reload();
        started
    }

    fn admin(&self) -> Connection {
        open(&self.server.state().conninfo())
    }

    fn alter(&self, setting: &str, path: &Path) {
        let sql = format!("alter system set {setting} = '{}'", path.display());
        self.admin().execute(&sql).unwrap();
    }

    /// Switches the server to this certificate.
    pub(crate) fn use_certificate(&self, name: &str) {
        self.alter("ssl_cert_file", &self.certificates.certificate(name));
        self.alter("ssl_key_file", &self.certificates.key(name));
        self.reload();
    }

    /// Reloads the configuration and waits until it applies to new sessions.
    fn reload(&self) {
        let mut admin = self.admin();
        let loaded = "select pg_conf_load_time()";
        let before = admin.query_value(loaded).unwrap();
        admin.execute("select pg_reload_conf()").unwrap();
        // The postmaster reloads the configuration first, and new sessions inherit it from the postmaster.
        while self.admin().query_value(loaded).unwrap() == before {
            std::thread::yield_now();
        }
    }

    /// Allows a user to create schemas.
    pub(crate) fn grant_create(&self, user: &str) {
        self.admin().execute(&format!("grant create on database postgres to {user}")).unwrap();
    }

    fn url(&self, user: &str, rest: &str) -> String {
        format!("postgresql://{user}@localhost:{}/postgres?hostaddr=127.0.0.1&{rest}", self.port)
    }
}

/// Connects. Returns whether the session is encrypted, or the text of the error.
fn connect(url: &str) -> Result<bool, String> {
    let info = ConnInfo::parse(url, |_| None).map_err(|error| error.to_string())?;
    let mut connection =
        Connection::open(&info, &Interrupt::new()).map_err(|error| error.to_string())?;
    assert_eq!(connection.query_value("select 1").unwrap().as_deref(), Some("1"));
    Ok(connection.encryption().is_some())
}

/// Expected outcome: an unencrypted session, an encrypted session, or an error that contains this text.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Plain,
    Encrypted,
    Refused(&'static str),
}
use Outcome::{Encrypted, Plain, Refused};

fn expect(url: &str, outcome: Outcome) {
    match (connect(url), outcome) {
        (Ok(false), Plain) | (Ok(true), Encrypted) => {}
        (Err(error), Refused(text)) if error.contains(text) => {}
        (actual, _) => panic!("{url}: expected {outcome:?}, got {actual:?}"),
    }
}

impl TlsServer {
    /// Connects as this user.
    fn case(&self, user: &str, rest: &str, outcome: Outcome) {
        expect(&self.url(user, rest), outcome);
    }

    /// Connects with a host name that is not in the certificate.
    fn other_host(&self, rest: &str, outcome: Outcome) {
        let url = self.url("u_trust", rest).replace("@localhost", "@other.example");
        expect(&url, outcome);
    }

    fn root(&self, name: &str) -> String {
        format!("sslrootcert={}", self.client_certs.certificate(name).display())
    }

    fn revocations(&self, name: &str) -> String {
        format!("sslcrl={}", self.client_certs.certificate(name).display())
    }
}

fn tls_matrix(server: &TlsServer, direct: bool) {
    ssl_modes_with_a_valid_certificate(server);
    tls_versions(server);
    let negotiation = if direct { Encrypted } else { Refused("cannot establish TLS with") };
    server.case("u_trust", "sslmode=require&sslnegotiation=direct", negotiation);
    rules_that_require_or_forbid_tls(server);
    client_certificates(server);
    invalid_certificates(server);
}

fn ssl_modes_with_a_valid_certificate(server: &TlsServer) {
    let (ca, other_ca) = (server.root("ca"), server.root("other-ca"));
    let case = |user: &str, rest: &str, outcome| server.case(user, rest, outcome);
    for (mode, outcome) in
        [("disable", Plain), ("allow", Plain), ("prefer", Encrypted), ("require", Encrypted)]
    {
        case("u_trust", &format!("sslmode={mode}"), outcome);
    }
    for mode in ["verify-ca", "verify-full"] {
        case("u_trust", &format!("sslmode={mode}&{ca}"), Encrypted);
        case("u_trust", &format!("sslmode={mode}&{other_ca}"), Refused("UnknownIssuer"));
        case("u_trust", &format!("sslmode={mode}"), Refused("requires a root certificate"));
    }
    server.other_host(&format!("sslmode=verify-ca&{ca}"), Encrypted);
    server.other_host(&format!("sslmode=verify-full&{ca}"), Refused("not valid for name"));
    // With a root certificate, even `require` verifies the server, as in libpq. `prefer` then falls back to
    // a session without TLS.
    case("u_trust", &format!("sslmode=require&{other_ca}"), Refused("UnknownIssuer"));
    case("u_trust", &format!("sslmode=prefer&{other_ca}"), Plain);
    for (list, outcome) in [
        ("revocations", Encrypted),
        ("expired-revocations", Refused("revocation list (sslcrl, sslcrldir) has expired")),
        ("foreign-revocations", Refused("is from the issuer of the server's certificate")),
        ("missing", Refused("cannot use certificate revocation list")),
        ("ca", Refused("it contains no revocation list")),
    ] {
        let crl = server.revocations(list);
        case("u_trust", &format!("sslmode=verify-full&{ca}&{crl}"), outcome);
        // Without a root certificate nothing is verified.
        case("u_trust", &format!("sslmode=require&{crl}"), Encrypted);
    }
}

fn tls_versions(server: &TlsServer) {
    for (version, name) in [("TLSv1.2", "TLS 1.2"), ("TLSv1.3", "TLS 1.3")] {
        let rest = format!(
            "sslmode=require&ssl_min_protocol_version={version}&ssl_max_protocol_version={version}"
        );
        let info = ConnInfo::parse(&server.url("u_trust", &rest), |_| None).unwrap();
        let connection = open(&info);
        let encryption = connection.encryption().unwrap();
        assert!(encryption.starts_with(name), "{encryption}");
    }
}

fn rules_that_require_or_forbid_tls(server: &TlsServer) {
    for (user, mode, outcome) in [
        ("u_ssl", "disable", Refused("28000")),
        ("u_ssl", "allow", Encrypted),
        ("u_ssl", "prefer", Encrypted),
        ("u_nossl", "prefer", Plain),
        ("u_nossl", "allow", Plain),
        ("u_nossl", "require", Refused("28000")),
    ] {
        server.case(user, &format!("sslmode={mode}"), outcome);
    }
}

fn client_certificates(server: &TlsServer) {
    let case = |user: &str, rest: &str, outcome| server.case(user, rest, outcome);
    let client = |name: &str| {
        let (certificate, key) =
            (server.client_certs.certificate(name), server.client_certs.key(name));
        format!("sslmode=require&sslcert={}&sslkey={}", certificate.display(), key.display())
    };
    case("u_cert", &client("client"), Encrypted);
    case("u_cert", "sslmode=require", Refused("28000"));
    case("u_cert", &client("foreign-client"), Refused("cannot establish TLS with"));
    case("u_cert", &format!("{}&sslcertmode=disable", client("client")), Refused("28000"));
    case("u_trust", &client("client"), Encrypted);
}

/// Each server certificate is invalid in one way.
fn invalid_certificates(server: &TlsServer) {
    let (ca, crl) = (server.root("ca"), server.revocations("revocations"));
    let other_host = |rest: &str, outcome| server.other_host(rest, outcome);
    let with = |certificate: &str, cases: &[(&str, Outcome)]| {
        server.use_certificate(certificate);
        for (rest, outcome) in cases {
            server.case("u_trust", rest, *outcome);
        }
    };
    let full = format!("sslmode=verify-full&{ca}");
    let chain = format!("sslmode=verify-ca&{ca}");
    with(
        "expired",
        &[(&chain, Refused("xpired")), (&full, Refused("xpired")), ("sslmode=require", Encrypted)],
    );
    with("foreign", &[(&chain, Refused("UnknownIssuer")), ("sslmode=require", Encrypted)]);
    with("other-name", &[(&chain, Encrypted), (&full, Refused("not valid for name"))]);
    with("common-name", &[(&chain, Encrypted), (&full, Encrypted)]);
    other_host(&full, Refused("not valid for name"));
    let revoked = format!("{full}&{crl}");
    with("revoked", &[(&full, Encrypted), (&revoked, Refused("Revoked"))]);
    // A self-signed certificate is valid if it is also the root, as in the PostgreSQL documentation.
    let itself = format!("sslmode=verify-full&{}", server.root("self-signed"));
    with(
        "self-signed",
        &[(&full, Refused("nvalid")), (&itself, Encrypted), ("sslmode=require", Encrypted)],
    );
    other_host(&itself, Refused("not valid for name"));
    server.use_certificate("good");
}

fn authentication_methods(server: &TlsServer) {
    let case = |user: &str, rest: &str, outcome| expect(&server.url(user, rest), outcome);
    let (plain, tls) = ("sslmode=disable", "sslmode=require");
    for user in ["u_scram", "u_md5"] {
        case(user, &format!("{plain}&password=right"), Plain);
        case(user, &format!("{tls}&password=right"), Encrypted);
        case(user, &format!("{plain}&password=wrong"), Refused("28P01"));
        case(user, &format!("{tls}&password=wrong"), Refused("28P01"));
        case(user, plain, Refused("requires a password"));
    }
    // A cleartext password is sent only over TLS or with require_auth=password.
    case("u_password", &format!("{tls}&password=right"), Encrypted);
    case("u_password", &format!("{tls}&password=wrong"), Refused("28P01"));
    case("u_password", &format!("{plain}&password=right"), Refused("cleartext password"));
    case("u_password", &format!("{plain}&password=right&require_auth=password"), Plain);
    case(
        "u_password",
        &format!("{tls}&password=right&require_auth=!password"),
        Refused("not allow"),
    );
    // Channel binding.
    let bound = "password=right&channel_binding=require";
    case("u_scram", &format!("{tls}&{bound}"), Encrypted);
    case("u_scram", &format!("{plain}&{bound}"), Refused("channel_binding=require"));
    case("u_md5", &format!("{tls}&{bound}"), Refused("channel_binding=require"));
    case("u_trust", &format!("{tls}&{bound}"), Refused("channel_binding=require"));
    case("u_scram", &format!("{tls}&password=right&channel_binding=disable"), Encrypted);
    // Required methods.
    case("u_trust", &format!("{plain}&require_auth=scram-sha-256"), Refused("not allow"));
    case("u_trust", &format!("{plain}&require_auth=none"), Plain);
    case("u_scram", &format!("{plain}&password=right&require_auth=md5,!none"), Refused("negated"));
    case(
        "u_md5",
        &format!("{plain}&password=right&require_auth=scram-sha-256"),
        Refused("not allow"),
    );
    case("u_reject", plain, Refused("28000"));
    case("u_nobody", &format!("{plain}&password=any"), Refused("28P01"));
}

fn host_lists(server: &TlsServer) {
    let port = server.port;
    let several = |hosts: &str, ports: &str, rest: &str| {
        format!("host={hosts} port={ports} user=u_trust dbname=postgres sslmode=disable {rest}")
    };
    expect(&several("127.0.0.1,127.0.0.1", &format!("1,{port}"), ""), Plain);
    expect(
        &several("127.0.0.1,127.0.0.1", &format!("1,{port}"), "load_balance_hosts=random"),
        Plain,
    );
    expect(
        &several("127.0.0.1,127.0.0.1", "1,2", ""),
        Refused("no server accepted the connection"),
    );
    // An authentication failure is final: the next host is not tried.
    let refused = several("127.0.0.1,127.0.0.1", &port.to_string(), "user=u_reject");
    let error = connect(&refused.replace("user=u_trust ", "")).unwrap_err();
    assert!(error.contains("28000") && !error.contains("no server"), "{error}");
    let attrs = |user: &str, wanted: &str, outcome| {
        let url = server.url(user, &format!("sslmode=disable&target_session_attrs={wanted}"));
        expect(&url, outcome);
    };
    for (user, wanted, outcome) in [
        ("u_trust", "read-write", Plain),
        ("u_trust", "read-only", Refused("target_session_attrs=read-only")),
        ("u_trust", "primary", Plain),
        ("u_trust", "standby", Refused("target_session_attrs=standby")),
        ("u_trust", "prefer-standby", Plain),
        ("u_ro", "read-write", Refused("target_session_attrs=read-write")),
        ("u_ro", "read-only", Plain),
        ("u_ro", "primary", Plain),
    ] {
        attrs(user, wanted, outcome);
    }
    let options = server.url("u_trust", "sslmode=disable&options=-c%20work_mem%3D7MB");
    let info = ConnInfo::parse(&options, |_| None).unwrap();
    let mut connection = open(&info);
    assert_eq!(connection.query_value("show work_mem").unwrap().as_deref(), Some("7MB"));
}

/// An interrupt also cancels the statement on the server, with and without TLS.
fn cancellation(server: &TlsServer) {
    for mode in ["disable", "require"] {
        let info =
            ConnInfo::parse(&server.url("u_trust", &format!("sslmode={mode}")), |_| None).unwrap();
        let interrupt = Interrupt::new();
        let mut connection = Connection::open(&info, &interrupt).unwrap();
        let process = connection.session_info().process;
        interrupt.request();
        let error = connection.query("select pg_sleep(3600)").unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
        drop(connection);
        let gone = format!("select count(*) from pg_stat_activity where pid = {process}");
        while server.admin().query_value(&gone).unwrap().as_deref() != Some("0") {
            std::thread::yield_now();
        }
    }
}

fn all_cases(server: &TlsServer, direct: bool) {
    tls_matrix(server, direct);
    authentication_methods(server);
    host_lists(server);
    cancellation(server);
}

#[test]
fn tls_modes_certificates_and_methods_work_with_the_embedded_server() {
    all_cases(&TlsServer::start("tls-embedded", None), true);
}

#[test]
fn tls_modes_certificates_and_methods_work_with_an_installed_server() {
    let Some(installed) = crate::fixture::installed_postgresql() else {
        return;
    };
    all_cases(&TlsServer::start("tls-installed", Some(installed)), false);
}

#[test]
fn runs_over_tls_without_printing_the_password() {
    let server = TlsServer::start("tls-run", None);
    server.grant_create("u_scram");
    let ca = server.client_certs.certificate("ca");
    let url = server.url(
        "u_scram:right",
        &format!("sslmode=verify-full&sslrootcert={}&channel_binding=require", ca.display()),
    );
    let line = format!(
        "run rows --prepare --rows 5000 --batch 10 -c 3 -j 2 --update-percent 20 --duration 300ms --warmup 0 --interval 100ms --no-store --output json -d {url}"
    );
    let ran = CommandOutput::run(&mut command(&line)).expect(0);
    assert!(!ran.stdout.contains("right") && !ran.stderr.contains("right"));
    let record = ran.json();
    assert_eq!(record["verdict"]["valid"], true);
    assert!(record["target"]["encryption"].as_str().unwrap().starts_with("TLS 1.3"));
    assert!(record["stages"][0]["transactions"].as_u64().unwrap() > 0);
    // A batch far larger than the TLS and socket buffers.
    let load = format!(
        "run load --method copy-binary --rows 40000 --batch-size 20000 -c 1 --no-store -d {url}"
    );
    CommandOutput::run(&mut command(&load)).expect(0);
    // `SSL_CERT_FILE` replaces the root certificates of the system.
    let system = format!("doctor -d {}", url.replace(&ca.display().to_string(), "system"));
    CommandOutput::run(command(&system).env("SSL_CERT_FILE", &ca)).expect(0);
    let other = server.client_certs.certificate("other-ca");
    CommandOutput::run(command(&system).env("SSL_CERT_FILE", other))
        .expect(1)
        .stderr_contains("UnknownIssuer");
}

#[test]
fn removes_the_password_from_the_process_title_of_a_run() {
    let server = TlsServer::start("tls-title", None);
    let url = server.url("u_scram:right", "sslmode=disable");
    server.grant_create("u_scram");
    let line = format!(
        "run rows --prepare --rows 2000 --batch 10 --duration 1h --warmup 0 --no-store --database={url}"
    );
    let child = crate::fixture::start_until(&mut command(&line), "measuring");
    let title = std::fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap();
    assert!(title.contains("rows") && !title.contains("right"), "{title}");
    let signaled =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signaled.unwrap().success());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}

#[test]
fn copies_rows_in_and_continues_after_a_failed_copy() {
    let server = TlsServer::start("tls-copy", None);
    let info = ConnInfo::parse(&server.url("u_trust", "sslmode=require"), |_| None).unwrap();
    let mut connection = open(&info);
    connection.execute("create temp table t (n bigint)").unwrap();
    let mut pieces = vec!["3\n", "1\n2\n"];
    connection
        .copy_in("copy t from stdin", |data| {
            data.extend_from_slice(pieces.pop().unwrap().as_bytes());
            !pieces.is_empty()
        })
        .unwrap();
    let rows =
        connection.query("select n from t union all select generate_series(4, 100000)").unwrap();
    let numbers: Vec<u32> =
        rows.into_iter().flatten().flatten().map(|value| value.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=100_000).collect::<Vec<u32>>());
    for (copy, reason) in [
        ("copy missing from stdin", "\"missing\" does not exist"),
        ("copy t from stdin", "invalid input syntax"),
    ] {
        let fill = |data: &mut Vec<u8>| {
            data.extend_from_slice(b"x\n");
            false
        };
        let error = connection.copy_in(copy, fill).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(connection.query_value("select 7").unwrap().as_deref(), Some("7"));
}

/// Replies that are longer than the share of a session in a turn of its worker: while they wait for their next share, the poller
/// reports more bytes.
#[test]
fn several_sessions_of_a_worker_read_large_replies_over_tls_to_their_end() {
    let server = TlsServer::start("tls-large", None);
    let script = folder("tls-large-script").join("large.sql");
    std::fs::write(&script, "select repeat('x', 300000);\n").unwrap();
    for driver in ["epoll", "io-uring"] {
        let line = format!(
            "run script -c 4 -j 1 --driver {driver} --transactions 4000 --warmup 0 --max-duration 60s --no-store --output json --file {}",
            script.display()
        );
        let mut command = command(&line);
        let url =
            format!("postgresql://u_trust@127.0.0.1:{}/postgres?sslmode=require", server.port);
        let output = CommandOutput::run(command.env("RIOPS_DATABASE", url));
        if driver == "io-uring" && output.code == Some(2) {
            continue;
        }
        let record = output.expect(0).json();
        assert_eq!(record["stages"][0]["transactions"], 4_000, "{driver}");
    }
}
