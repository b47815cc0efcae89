use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Returns an environment with these variables only, independent of the machine that runs the test.
fn with(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let variables: BTreeMap<String, String> = variables
        .iter()
        .chain(&[("HOME", "/nonexistent")])
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    move |name| variables.get(name).cloned()
}

fn parse(text: &str) -> Result<ConnInfo, ConnInfoError> {
    ConnInfo::parse(text, with(&[]))
}

fn default_folder() -> Host {
    super::values::host(None)
}

/// Returns `host:port database user` of a connection string.
fn facts(text: &str) -> String {
    let info = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let servers: Vec<_> = info
        .servers
        .iter()
        .map(|server| match &server.host {
            host if *host == default_folder() => format!("socket:{}", server.port),
            Host::Unix(folder) => format!("{}:{}", folder.display(), server.port),
            Host::Tcp(name) => format!("{name}:{}", server.port),
        })
        .collect();
    // The user of the operating system that runs the test.
    let user = ConnInfo::default_user(|_| None);
    let named = |name: &str| if name == user { "tester".to_owned() } else { name.to_owned() };
    format!("{} {} {}", servers.join(","), named(&info.database), named(&info.user))
}

/// The examples of the section "Connection Strings" in the chapter "libpq" of PostgreSQL's manual.
#[test]
fn parses_the_examples_of_the_manual() {
    let cases = [
        ("host=localhost port=5432 dbname=mydb connect_timeout=10", "localhost:5432 mydb tester"),
        ("postgresql://", "socket:5432 tester tester"),
        ("postgresql://localhost", "localhost:5432 tester tester"),
        ("postgresql://localhost:5433", "localhost:5433 tester tester"),
        ("postgresql://localhost/mydb", "localhost:5432 mydb tester"),
        ("postgresql://user@localhost", "localhost:5432 user user"),
        ("postgresql://user:secret@localhost", "localhost:5432 user user"),
        (
            "postgresql://other@localhost/otherdb?connect_timeout=10&application_name=myapp",
            "localhost:5432 otherdb other",
        ),
        (
            "postgresql://host1:123,host2:456/somedb?target_session_attrs=any&application_name=myapp",
            "host1:123,host2:456 somedb tester",
        ),
        (
            "postgresql://user@localhost:5433/mydb?options=-c%20synchronous_commit%3Doff",
            "localhost:5433 mydb user",
        ),
        ("postgresql:///mydb?host=localhost&port=5433", "localhost:5433 mydb tester"),
        ("postgresql://[2001:db8::1234]/database", "2001:db8::1234:5432 database tester"),
        ("postgresql:///dbname?host=/var/lib/postgresql", "/var/lib/postgresql:5432 dbname tester"),
        ("postgresql://%2Fvar%2Flib%2Fpostgresql/dbname", "/var/lib/postgresql:5432 dbname tester"),
        ("host=localhost,localhost port=1,2", "localhost:1,localhost:2 tester tester"),
        ("mydb", "socket:5432 mydb tester"),
        // libpq expands only the text as a whole.
        ("dbname='a=b' user=u", "socket:5432 a=b u"),
        ("postgresql://h/user%3Dme", "h:5432 user=me tester"),
        ("My DB", "socket:5432 My DB tester"),
        (" x ", "socket:5432  x  tester"),
        (" postgresql://h/x ", "h:5432 x tester"),
        // The login ends at the first @ before a slash, wherever it is.
        ("postgresql://h?user=a@b:1/x", "b:1 x h?user=a"),
        ("postgresql://[::1]/x?user=a@b", "::1:5432 x a@b"),
        ("postgresql://a,b/x", "a:5432,b:5432 x tester"),
        ("postgresql://a%2Cb:7/x", "a:7,b:7 x tester"),
        ("postgresql://h/x?dbname=y&", "h:5432 y tester"),
        // A backslash at the end, and a value that is not followed by a space.
        (r"host='h'user=me\", "h:5432 me me"),
        ("user= dbname=h", "socket:5432 dbname=h dbname=h"),
        ("host=h port=+05432 user=a user=b", "h:5432 b b"),
        ("", "socket:5432 tester tester"),
    ];
    for (text, expected) in cases {
        assert_eq!(facts(text), expected, "{text}");
    }
    let options =
        parse("postgresql://user@localhost:5433/mydb?options=-c%20synchronous_commit%3Doff")
            .unwrap();
    assert_eq!(options.options.as_deref(), Some("-c synchronous_commit=off"));
    for (text, password) in [
        ("postgresql://user:secret@localhost", "secret"),
        ("postgresql://user:secret?x=1@localhost/db", "secret?x=1"),
    ] {
        assert_eq!(parse(text).unwrap().password.as_deref(), Some(password));
    }
}

#[test]
fn parses_all_parts_of_a_url() {
    let info = parse(
        "postgresql://bob:s%40cret@db.example:5433/shop?connect_timeout=3&application_name=me",
    )
    .unwrap();
    assert_eq!(info.password.as_deref(), Some("s@cret"));
    assert_eq!(info.application_name.as_deref(), Some("me"));
    let named = parse("host=h application_name=a fallback_application_name=b").unwrap();
    assert_eq!(named.application_name.as_deref(), Some("a"));
    assert_eq!(info.connect_timeout, Duration::from_secs(3));
    assert_eq!(parse("connect_timeout=86400").unwrap().connect_timeout, Duration::from_hours(24));
    for name in ["auto", "UTF8", "Unicode", "utf-8", "UTF_8"] {
        assert!(parse(&format!("client_encoding={name}")).is_ok(), "{name}");
    }
    assert!(parse("client_encoding=LATIN1").is_err());
    assert_eq!(info.to_string(), "database shop on db.example:5433");
    let info = parse("postgresql://a:1,[::1]:2,%2Ftmp/x?ssl=true").unwrap();
    assert_eq!(info.address(), "a:1, [::1]:2, /tmp/.s.PGSQL.5432");
    assert_eq!(info.ssl_mode, SslMode::Require);
}

#[test]
fn combines_hosts_addresses_and_ports() {
    let info = parse("host=a,b,c port=5 hostaddr=10.0.0.1,,::1").unwrap();
    let addresses: Vec<_> = info.servers.iter().map(|server| server.address).collect();
    assert_eq!(addresses, [Some("10.0.0.1".parse().unwrap()), None, Some("::1".parse().unwrap())]);
    assert!(info.servers.iter().all(|server| server.port == 5));
    // An address makes the host a name.
    let info =
        parse("host=/tmp,a hostaddr=127.0.0.1, sslmode=verify-full sslrootcert=system").unwrap();
    assert_eq!(info.servers[0].host, Host::Tcp("/tmp".to_owned()));
    let info = parse("hostaddr=127.0.0.1").unwrap();
    assert!(info.is_local());
    assert_eq!(info.servers[0].host, Host::Tcp("127.0.0.1".to_owned()));
    for wrong in ["host=a,b port=1,2,3", "host=a,b hostaddr=10.0.0.1", "hostaddr=db.example"] {
        assert!(matches!(parse(wrong), Err(ConnInfoError::BadValue { .. })), "{wrong}");
    }
}

#[test]
fn accepts_quotes_and_spaces_in_pairs() {
    let info = parse(r"host = localhost  user='o\'neil' password='' dbname=a\ b").unwrap();
    assert_eq!((info.user.as_str(), info.database.as_str()), ("o'neil", "a b"));
    assert_eq!(info.password, None);
    assert!(info.is_local());
}

#[test]
fn takes_missing_settings_from_the_environment() {
    let environment = with(&[
        ("PGHOST", "10.0.0.1"),
        ("PGPORT", "7"),
        ("PGUSER", "alice"),
        ("PGSSLMODE", "allow"),
    ]);
    let info = ConnInfo::parse("", &environment).unwrap();
    assert_eq!(info.address(), "10.0.0.1:7");
    assert_eq!((info.user.as_str(), info.database.as_str()), ("alice", "alice"));
    assert_eq!(info.ssl_mode, SslMode::Allow);
    assert!(!info.is_local());
    assert!(ConnInfo::is_in_environment(&environment));
    assert!(!ConnInfo::is_in_environment(|_| None));
    for name in ["PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"] {
        assert!(ConnInfo::is_in_environment(with(&[(name, "1")])), "{name}");
        assert!(!ConnInfo::is_in_environment(with(&[(name, "")])), "{name}");
    }
    assert!(!ConnInfo::is_in_environment(with(&[("PGPASSWORD", "x"), ("PGSSLMODE", "disable")])));
    let environment = with(&[
        ("PGTZ", "Asia/Tokyo"),
        ("PGDATESTYLE", "SQL, DMY"),
        ("PGGEQO", "Default"),
        ("PGPORT", "7"),
        ("PGHOST", "10.0.0.1"),
    ]);
    let info = ConnInfo::parse("", &environment).unwrap();
    let settings = info.credentials(&info.servers[0], false, None).settings;
    let settings: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(settings, ["application_name=riops", "datestyle=SQL, DMY", "timezone=Asia/Tokyo"]);
    // The connection string takes precedence, also with an empty value.
    let address = |text: &str| ConnInfo::parse(text, &environment).unwrap().address();
    assert_eq!(address("host=h port=8"), "h:8");
    assert_eq!(address("postgresql://h/?port="), "h:5432");
    assert_eq!(address("postgresql://a,b/"), "a:5432, b:5432");
}

#[test]
fn an_invalid_variable_is_an_error_that_names_it() {
    for (variable, value) in [
        ("PGMINPROTOCOLVERSION", "3.2"),
        ("PGMAXPROTOCOLVERSION", "2"),
        ("PGCLIENTENCODING", "LATIN1"),
        ("PGGSSENCMODE", "require"),
        ("PGSSLCOMPRESSION", "1"),
        ("PGSSLMODE", "strict"),
        ("PGREQUIREAUTH", "kerberos"),
        ("PGPORT", "70000"),
    ] {
        let error = ConnInfo::parse("host=h", with(&[(variable, value)])).unwrap_err().to_string();
        assert!(error.contains(&format!("({variable})")), "{error}");
    }
    let error = ConnInfo::parse("host=h port=0", with(&[("PGPORT", "1")])).unwrap_err().to_string();
    assert!(!error.contains("PGPORT"), "{error}");
}

#[test]
fn every_parameter_of_libpq_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    for text in [
        "max_protocol_version=latest",
        "max_protocol_version=3.2",
        "min_protocol_version=3.0",
        "requirepeer=postgres",
        "gssdelegation=0",
        "gssdelegation=1",
        "krbsrvname=postgres",
        "gsslib=gssapi",
        "gssencmode=disable",
        "sslcompression=0",
        "replication=false",
        "oauth_issuer=https://issuer oauth_client_id=a oauth_client_secret=b oauth_scope=c",
        "requiressl=0",
        "ssl_min_protocol_version=TLSv1",
    ] {
        assert!(parse(&format!("dbname=bench {text}")).is_ok(), "{text}");
    }
    let text = format!("host=h sslkeylogfile={}", keys.display());
    assert!(parse(&text).is_ok() && keys.is_file());
    for name in ["PGKRBSRVNAME", "PGGSSLIB", "PGGSSDELEGATION"] {
        assert!(ConnInfo::parse("", with(&[(name, "x")])).is_ok(), "{name}");
    }
    let mode = |text: &str, variables: &[(&str, &str)]| {
        ConnInfo::parse(text, with(variables)).unwrap().ssl_mode
    };
    assert_eq!(mode("requiressl=1", &[]), SslMode::Require);
    assert_eq!(mode("sslmode=disable requiressl=0", &[]), SslMode::Prefer);
    assert_eq!(mode("", &[("PGREQUIRESSL", "1")]), SslMode::Require);
    assert_eq!(mode("", &[("PGREQUIRESSL", "1"), ("PGSSLMODE", "allow")]), SslMode::Allow);
    let peer = |text: &str| ConnInfo::parse(text, with(&[("PGREQUIREPEER", "me")])).unwrap();
    assert_eq!(peer("host=/tmp").required_peer.as_deref(), Some("me"));
    assert_eq!(peer("host=/tmp requirepeer=you").required_peer.as_deref(), Some("you"));
    // Each one has another name, and none is read that the table does not contain.
    let names: std::collections::BTreeSet<_> =
        PARAMETERS.iter().map(|parameter| parameter.name).collect();
    assert_eq!(names.len(), PARAMETERS.len());
}

#[test]
fn every_parameter_is_documented() {
    let page = include_str!("../../../../../docs/connecting.md");
    for parameter in &PARAMETERS {
        for name in [Some(parameter.name), parameter.variable].into_iter().flatten() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}

#[test]
fn a_named_file_that_is_missing_is_ignored_with_a_warning() {
    let warnings = |text: &str| parse(text).unwrap().warnings;
    for mode in ["allow", "prefer", "require"] {
        let lines = warnings(&format!("host=h sslmode={mode} sslrootcert=/nonexistent.crt"));
        let expected = format!(
            "the root certificate \"/nonexistent.crt\" does not exist: the server's certificate is not verified (sslmode={mode})"
        );
        assert_eq!(lines, [expected]);
    }
    let lines = warnings("host=h sslmode=require sslcert=/dev/null/x sslkey=/nonexistent");
    assert!(
        lines[0].starts_with("the client certificate \"/dev/null/x\" does not exist"),
        "{lines:?}"
    );
    // Without TLS, no file is used.
    assert!(warnings("host=/tmp sslrootcert=/nonexistent.crt").is_empty());
    assert!(warnings("host=h sslmode=disable sslrootcert=/nonexistent.crt").is_empty());
}

#[test]
fn a_string_keeps_its_own_settings_or_gets_the_settings_beside_it() {
    let beside = [("host", "a"), ("port", "1"), ("user", "")];
    for (text, string, separate) in [
        ("bench", "dbname=bench host=a port=1", "dbname=bench host=a port=1"),
        ("", "host=a port=1", "host=a port=1"),
        ("host='' user='x y'", "host='' port=1 user='x y'", "host=a port=1 user='x y'"),
        (
            "postgres://me:p%20w@b/d",
            "dbname=d host=b password='p w' port=1 user=me",
            "dbname=d host=a password='p w' port=1 user=me",
        ),
        ("postgresql:///d?port=2", "dbname=d host=a port=2", "dbname=d host=a port=1"),
        ("u:s3cret@h", "u:s3cret@h", "u:s3cret@h"),
    ] {
        assert_eq!(ConnInfo::with_settings(text, &beside, Precedence::String), string);
        assert_eq!(ConnInfo::with_settings(text, &beside, Precedence::Beside), separate);
    }
    assert_eq!(
        ConnInfo::with_settings("postgres://h/d", &[], Precedence::String),
        "postgres://h/d"
    );
}

#[test]
fn a_service_overrides_the_environment_but_not_the_string() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("services");
    std::fs::write(&file, "[mydb]\nhost=somehost\nport=5433\nuser=admin\n").unwrap();
    let environment = with(&[
        ("PGSERVICEFILE", file.to_str().unwrap()),
        ("PGUSER", "nobody"),
        ("PGDATABASE", "d"),
    ]);
    let info = ConnInfo::parse("service=mydb port=1", &environment).unwrap();
    assert_eq!(info.address(), "somehost:1");
    assert_eq!((info.user.as_str(), info.database.as_str()), ("admin", "d"));
    let info = ConnInfo::parse("postgresql://?service=mydb", &environment).unwrap();
    assert_eq!(info.address(), "somehost:5433");
    let error = ConnInfo::parse("service=none", &environment).unwrap_err();
    assert_eq!(error, ConnInfoError::UnknownService("none".to_owned()));
}

#[test]
fn reads_the_password_of_each_host_from_the_file_unless_one_is_given() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pgpass");
    std::fs::write(&file, "a:*:*:*:first\nb:*:*:*:second\nlocalhost:*:*:*:third\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let environment = with(&[("PGPASSFILE", file.to_str().unwrap())]);
    let passwords = |text: &str| -> Vec<Option<String>> {
        let info = ConnInfo::parse(text, &environment).unwrap();
        let password = |server| info.credentials(server, false, None).password;
        info.servers.iter().map(password).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(passwords("host=a,b,c"), [some("first"), some("second"), None]);
    // A socket in the default directory has the host name localhost in the file.
    assert_eq!(passwords("dbname=x"), [some("third")]);
    assert_eq!(passwords("host=a password=own"), [some("own")]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(passwords("host=a"), [None]);
    let info = ConnInfo::parse("host=a", &environment).unwrap();
    assert!(info.warnings[0].contains("chmod 600"), "{:?}", info.warnings);
}

#[test]
fn require_auth_lists_or_excludes_methods() {
    let policy = |text: &str| {
        let info = parse(text).unwrap();
        info.credentials(&info.servers[0], false, None).policy
    };
    let any = policy("host=h");
    assert!(any.allowed.is_none() && !any.cleartext);
    let named = policy("host=h require_auth=password,scram-sha-256");
    assert_eq!(named.allowed, Some(vec![Method::Password, Method::ScramSha256]));
    assert!(named.cleartext);
    let excluded = policy("host=h require_auth=!md5,!password,!none,!gss");
    assert_eq!(excluded.allowed, Some(vec![Method::ScramSha256]));
    assert!(!excluded.cleartext);
    // A cleartext password is safe on a Unix socket.
    assert!(policy("host=/tmp").cleartext);
    for wrong in ["host=h require_auth=md5,!password", "host=h require_auth=kerberos"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn rejects_invalid_settings_without_showing_a_password() {
    for text in [
        "postgresql://h?sslmode=strict",
        "postgresql://h?sslmode=verify-full&sslrootcert=/nonexistent",
        "postgresql://h?sslmode=require&sslrootcert=system",
        "postgresql://h?sslnegotiation=direct",
        "postgresql://h?ssl_max_protocol_version=TLSv1.1",
        "host=h sslpassword=s3cret",
        "host=h sslmode=require sslcert=/dev/null",
        "host=h target_session_attrs=best",
        "host=h load_balance_hosts=yes",
        "host=h channel_binding=maybe",
        "host=h connect_timeout=soon",
        "host=h keepalives_idle=x",
        "host=h gssencmode=require",
        "host=h min_protocol_version=3.2",
        "host=h max_protocol_version=2.0",
        "host=h replication=database",
        "host=h sslcompression=1",
        "host=h scram_client_key=s3cret",
        "host=h sslmode=require sslkeylogfile=/nonexistent/keys",
        "host=h sslmode=verify-full sslrootcert=/nonexistent",
        "hostaddr=127.0.0.1 sslmode=verify-full",
        "hostaddr=127.0.0.1,127.0.0.2 host=h, sslmode=verify-full",
        "host=h port=0",
        "host=h port=x",
        "host=h colour=blue",
        "mysql://localhost",
        "password='s3cret",
        "host=h password=abc s3cret==",
        "host=h password='x's3cret",
        "host=h password=my 's3cret",
        "host=h password=s3cret port",
        "postgresql://%ff@h",
        "postgresql://u:%zz@h",
        "postgresql://u:100%@h",
        "postgresql://a%00b@h",
        "postgresql://h?novalue",
        "postgresql://h?&user=a",
        "postgresql://h?options=-c a=b",
        "postgresql://h?options=-ca=b",
        "postgresql://[::1/x",
        "postgresql://[]/x",
        "postgresql://[::1]x/y",
        "postgres:/u:s3cret@h/x",
        "postgresql:u:s3cret@h",
        "postgresql//u:s3cret@h/x",
        "//u:s3cret@h/x",
        "Postgresql://u:s3cret@h/x",
        "u:s3cret@h",
        "u/s3cret@h",
        "u/s3cret@h:5432/x",
        "u:s3cret@h/x?sslmode=require",
        "u:s3cret@h/x?user=me",
        "jdbc:postgresql://h/x?password=s3cret",
        "jdbc:postgresql://h/x?user=me&password=s3cret",
        "jdbc:postgresql://u:s3cret@h/x?ssl=true",
        "postgresql://u:s3cret/x@h/db",
        "host=h;password=s3cret",
        "host=h,password=s3cret",
        "host=u:s3cret@h port=1",
        "postgresql://h/x?a=1&pass-s3cret=2",
    ] {
        match parse(text) {
            Err(error) => assert!(!error.to_string().contains("s3cret"), "{error}"),
            Ok(info) => panic!("{text} gave {info:?}"),
        }
    }
}

#[test]
fn no_text_shows_a_password() {
    for shown in ["scram_client_key", "oauth_client_secret", "sslpassword", "password"] {
        let text = format!("host=h {shown}=s3cret");
        let shown = format!("host=h {shown}=***");
        assert_eq!(ConnInfo::without_password(&text), Some(shown));
    }
    let info = parse("host=h password=s3cret").unwrap();
    assert!(!format!("{info:?} {info} {:?}", info.servers).contains("s3cret"));
}

#[test]
fn the_default_revocation_list_is_used_if_it_exists_and_no_other_is_set() {
    let home = tempfile::tempdir().unwrap();
    let default = home.path().join(".postgresql").join("root.crl");
    let files = |settings: &[(&str, &str)]| {
        let mut take = |name: &str| {
            let setting = settings.iter().find(|(key, _)| *key == name);
            setting.map(|(_, value)| (*value).to_owned())
        };
        let tls =
            super::values::tls_settings(&mut take, Some(home.path()), &mut Vec::new()).unwrap();
        (tls.revocations, tls.revocations_folder)
    };
    assert_eq!(files(&[]), (None, None));
    std::fs::create_dir(default.parent().unwrap()).unwrap();
    std::fs::write(&default, "").unwrap();
    assert_eq!(files(&[]), (Some(default), None));
    assert_eq!(files(&[("sslcrldir", "lists")]), (None, Some("lists".into())));
    // A given file is used even if it is missing, which is an error later.
    assert_eq!(files(&[("sslcrl", "missing")]), (Some("missing".into()), None));
}

#[test]
fn a_password_is_hidden_in_every_form_of_a_connection_string() {
    for (text, shown) in [
        (
            "postgresql://me:secret@h:1,k/db?sslmode=disable",
            "postgresql://me:***@h:1,k/db?sslmode=disable",
        ),
        ("postgres://me:a%40@h", "postgres://me:***@h"),
        ("postgres://me:@h/?password=", "postgres://me:@h/?password="),
        ("host=h sslpassword='' password=x", "host=h password=*** sslpassword=''"),
        ("postgresql://h/db?user=me&password=secret", "postgresql://h/db?user=me&password=***"),
        ("postgresql://h/db?p%61ssword=secret", "postgresql://h/db?p%61ssword=***"),
        ("postgresql://me@h/db", "postgresql://me@h/db"),
        ("postgresql://h/postgresql://me:secret@k/db", "postgresql://h/postgresql://me:***%40k/db"),
        ("postgresql://h/password%3Dsecret", "postgresql://h/password=***"),
        ("postgresql://h:x/postgresql://h:1/a=b%20c", "postgresql://h:x/***"),
        ("postgresql://u:secret?x=1@h/db?user=me", "postgresql://u:***@h/db?user=me"),
        ("postgresql://u:sec@ret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://h?password=secret@k/db", "postgresql://***@k/db"),
        ("postgresql://h/user%3Dme", "postgresql://h/user%3Dme"),
        ("host=h password='se cret' user=me", "host=h password=*** user=me"),
        ("dbname=postgresql://me:secret@h/db port=1", "dbname=postgresql://me:***@h/db port=1"),
        ("host=h options='-c a=b' password=x", "host=h options='-c a=b' password=***"),
        ("host=h  user=me", "host=h  user=me"),
        ("bench", "bench"),
    ] {
        assert_eq!(ConnInfo::without_password(text).as_deref(), Some(shown), "{text}");
    }
    assert_eq!(ConnInfo::without_password("host=h password=a b"), None);
}

#[test]
fn a_connection_string_to_type_again_has_no_password() {
    for (text, again) in [
        (
            "postgresql://me:s3cret@h:1,k/db?sslmode=disable",
            "postgresql://me@h:1,k/db?sslmode=disable",
        ),
        ("postgresql://h/db?password=s3cret", "postgresql://h/db"),
        ("postgresql://h/db?user=me&password=s3cret&port=1", "postgresql://h/db?user=me&port=1"),
        ("host=h password='s3 cret' user=me", "host=h user=me"),
        ("postgresql://me@h/db", "postgresql://me@h/db"),
        ("bench", "bench"),
    ] {
        assert_eq!(ConnInfo::to_type_again(text).as_deref(), Some(again), "{text}");
        assert!(parse(again).is_ok(), "{again}");
    }
    assert_eq!(ConnInfo::to_type_again("host=h password=a b"), None);
}

proptest! {
    #[test]
    fn reads_back_the_text_shown_instead_of_a_password(
        host in "[a\\s'\\\\=]{0,5}", user in any::<String>(), password in any::<String>(),
    ) {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let text = format!(
            "host='{}' password='{}' user='{}'", quoted(&host), quoted(&password), quoted(&user)
        );
        let shown = ConnInfo::without_password(&text).unwrap();
        let hidden = if password.is_empty() { "" } else { "***" };
        let expected = [("host", host.as_str()), ("password", hidden), ("user", &user)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        prop_assert_eq!(super::text::parse(&shown).ok(), Some(expected), "{}", shown);
    }
}

#[test]
fn the_variables_of_sessions_have_an_effect_without_a_connection_string() {
    let environment = with(&[
        ("PGOPTIONS", "-c work_mem=1MB"),
        ("PGTZ", "Asia/Tokyo"),
        ("PGAPPNAME", "me"),
        ("PGSSLMODE", "verify-full"),
    ]);
    let own = ConnInfo::unix(std::path::Path::new("/tmp"), 1, "u", "d");
    let extended = own.clone().with_session_variables(&environment);
    assert_eq!(extended.options.as_deref(), Some("-c work_mem=1MB"));
    assert_eq!(extended.session_settings, [("timezone", "Asia/Tokyo".to_owned())]);
    assert_eq!(extended.application_name.as_deref(), Some("me"));
    assert_eq!(extended.ssl_mode, own.ssl_mode);
}
