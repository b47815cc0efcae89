use super::*;

fn translated(line: &str) -> Result<String, String> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let outside = Outside { variable: &|_| None, read: &|_| Err(String::new()) };
    translate(&arguments, &outside).map(|translation| match translation.meaning {
        Meaning::Commands(commands) | Meaning::Silent(commands) => commands[0].join(" "),
        Meaning::Text(text) | Meaning::Message(text) => text,
    })
}

#[test]
fn refusals_have_the_words_of_pgbench() {
    for (line, text) in [
        ("-c three", "invalid value \"three\" for option -c/--clients"),
        ("-j 0", "-j/--jobs must be in range 1.."),
        ("-F 3", "-F/--fillfactor must be in range 10..100"),
        ("-P 0", "-P/--progress must be in range"),
        ("-i --partitions=-1", "--partitions must be in range"),
        ("--max-tries=-10", "invalid number of maximum tries: \"-10\""),
        ("-M binary", "invalid query mode (-M): \"binary\""),
        ("-i --partition-method=BAD", "expecting \"range\" or \"hash\", got: \"BAD\""),
        ("-l --sampling-rate=0", "invalid sampling rate"),
        ("-T 5 -l --aggregate-interval=9", "aggregation (9) must not be higher than"),
        ("-D foobla", "invalid variable definition: \"foobla\""),
        ("-b sel@one", "invalid weight specification: @one"),
        ("-b sel@-1", "weight specification out of range"),
        ("-b s", "ambiguous builtin name: 2 builtin scripts found for prefix \"s\""),
        ("-b nosuch", "no builtin script found for name \"nosuch\""),
        ("-b sel@0", "total script weight must not be zero"),
        ("--nosuch", "Try \"pgbench --help\" for more information."),
    ] {
        let error = translated(line).unwrap_err();
        assert!(error.contains(text), "{line}: {error}");
    }
}

#[test]
fn a_run_has_the_defaults_of_pgbench() {
    assert_eq!(
        translated("").unwrap(),
        "--quiet run script --output=pgbench --warmup=0s --no-verify --allow-no-success --sessions=1 --workers=1 --protocol=simple --transactions-per-session=10 --max-retries=0 --on-error=end-session --allow-shell --vacuum-first=short"
    );
    let line = translated("-S -c 8 -j 4 -T 60 -M prepared -P 5 -r -n bench").unwrap();
    for word in [
        "--builtin=select-only",
        "--sessions=8",
        "--workers=4",
        "--duration=60s --drain=counted-once",
        "--interval=5s --progress",
        "--report-per-command",
        "--database=bench",
    ] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert!(!line.contains("--vacuum"), "{line}");
}

#[test]
fn scripts_keep_their_order() {
    let line = translated("-f a.sql@2 -S -b tpcb@3 -f b.sql").unwrap();
    let order = "--file=a.sql@2 --builtin=select-only --builtin=tpcb@3 --file=b.sql";
    assert!(line.contains(order) && !line.contains("scale="), "{line}");
    assert!(translated("-f a.sql").unwrap().contains("--define=scale=1"));
    assert!(translated("-f a.sql -s 7").unwrap().contains("--define=scale=7"));
    assert!(!translated("-f a.sql -D scale=2").unwrap().contains("scale=1"));
}

#[test]
fn everything_in_the_connection_string_counts_more_than_the_options() {
    let with = |line: &str, variables: &[(&str, &str)]| {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let variable = |name: &str| {
            let pair = variables.iter().find(|(known, _)| *known == name);
            pair.map(|(_, value)| (*value).to_owned())
        };
        let outside = Outside { variable: &variable, read: &|_| Err(String::new()) };
        let Meaning::Commands(commands) = translate(&arguments, &outside).unwrap().meaning else {
            panic!("{line}");
        };
        commands[0].iter().find_map(|word| word.strip_prefix("--database=")).map(str::to_owned)
    };
    let both = |line: &str, expected: &str| {
        assert_eq!(with(line, &[]).as_deref(), Some(expected), "{line}");
        assert_eq!(with(&format!("-i {line}"), &[]).as_deref(), Some(expected), "-i {line}");
    };
    both("-h db -p 5 -U me x", "dbname=x host=db port=5 user=me");
    both("-p 5 host=db", "host=db port=5");
    both("-h a -p 5 host=db,dc", "host=db,dc port=5");
    let server = "-h /a -p 6115 -U postgres";
    both(
        &format!("{server} postgresql://me@/bench?host=/b&port=6118"),
        "dbname=bench host=/b port=6118 user=me",
    );
    both(&format!("{server} postgres:///bench"), "dbname=bench host=/a port=6115 user=postgres");
    both("-h a postgresql://b/x", "dbname=x host=b");
    both("-p 1 postgresql://b:2,c/x", "dbname=x host=b,c port=2,");
    both("-U a postgresql://b@/x", "dbname=x user=b");
    both("-U a postgresql:///x?host=", "dbname=x host='' user=a");
    both("postgresql://b/x?application_name=a%20b", "postgresql://b/x?application_name=a%20b");
    // Without a name, pgbench itself chooses the database.
    assert_eq!(with("-n", &[]), None);
    assert_eq!(with("-n", &[("PGPASSWORD", "x")]), None);
    let database_of = |line: &str, variables: &[(&str, &str)]| with(line, variables).unwrap();
    let user = ConnInfo::default_user(|_| None);
    assert_eq!(database_of("-U me", &[]), format!("dbname={user} user=me"));
    assert_eq!(database_of("-U me", &[("PGUSER", "you")]), "dbname=you user=me");
    assert_eq!(database_of("-n", &[("PGSERVICE", "a"), ("PGDATABASE", "d")]), "d");
    let variables = [("PGDATABASE", "postgresql://b/x")];
    assert_eq!(database_of("-h a -p 1", &variables), "dbname=x host=b port=1");
}

#[test]
fn only_a_connection_string_can_have_a_password() {
    let changed = |line: &str| {
        let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let secret = password(&arguments)?;
        let [position] = secret.positions[..] else { panic!("{line}") };
        arguments[position] = secret.replacement.unwrap();
        Some((secret.value, arguments.join(" ")))
    };
    for (typed, shown) in [
        ("-n -d password=x -S", "-n -d (hidden) -S"),
        ("-dpassword=x -S", "-d(hidden) -S"),
        ("-Snd password=x", "-Snd (hidden)"),
        ("-Sndpassword=x", "-Snd(hidden)"),
        ("-d=password=x", "-d=(hidden)"),
        ("--dbn=password=x -S", "--dbn=(hidden) -S"),
        ("-S --dbname password=x", "-S --dbname (hidden)"),
        ("-D password=x password=x", "-D password=x (hidden)"),
        ("-D a=password=x -dpassword=x", "-D a=password=x -d(hidden)"),
    ] {
        assert_eq!(changed(typed), Some(("password=x".to_owned(), shown.to_owned())));
    }
    let uri = "postgres://a:b@db/x";
    let shown = Some((uri.to_owned(), "-S (hidden)".to_owned()));
    assert_eq!(changed(&format!("-S {uri}")), shown);
    assert_eq!(changed("-D password=x -f a.sql"), None);
}

#[test]
fn announces_a_given_seed_and_an_ignored_scale() {
    let notices = |line: &str| {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let outside = Outside { variable: &|_| None, read: &|_| Err(String::new()) };
        translate(&arguments, &outside).unwrap().notices
    };
    assert_eq!(notices("-n"), Vec::<String>::new());
    assert_eq!(notices("-f a.sql -s 5 --random-seed=7"), ["pgbench: setting random seed to 7"]);
    assert!(notices("-S -s 5")[0].starts_with("pgbench: warning: scale option ignored"));
    assert!(notices("--random-seed rand")[0].starts_with("pgbench: setting random seed to "));
}

#[test]
fn initialization_has_the_steps_of_pgbench() {
    assert_eq!(translated("-i").unwrap(), "script initialize --steps=dtgvp");
    let line = translated("-i -s 10 -I dtpvGvv -n --foreign-keys --partitions 2").unwrap();
    assert_eq!(line, "script initialize --steps=dtpGf --scale=10 --partitions=2");
}

#[test]
fn refuses_command_lines_that_pgbench_refuses() {
    for line in [
        "-t 1 -T 1",
        "-i -c 2",
        "-F 50",
        "--max-tries=0",
        "--sampling-rate=0.1",
        "-l --sampling-rate=0.1 --aggregate-interval=1",
        "--progress-timestamp",
        "-i -I x",
        "-i --partition-method=hash",
        "-c 0",
        "-T 5 -l --aggregate-interval=2",
        "a b",
        "--random-seed=x",
        "-M binary",
        "--show-script=x",
        "-L 0",
        "--log-prefix=a",
        "-i -I=",
        "-i --verbose-errors",
    ] {
        assert!(translated(line).is_err(), "{line}");
    }
}

#[test]
fn information_is_a_text() {
    assert!(translated("-b list").unwrap().contains("  tpcb-like: <builtin: TPC-B (sort of)>\n"));
    assert!(translated("--show-script=sel").unwrap().starts_with("-- select-only: <builtin"));
    assert!(translated("-V").unwrap().starts_with("pgbench (PostgreSQL) 18"));
}
