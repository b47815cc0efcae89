//! Invalid options, values and variables, and servers that cannot be used.

use crate::fixture::{CommandOutput, command, database, folder, server_dir};

#[test]
fn reports_usage_errors_with_exit_code_2() {
    let cases = [
        ("", "riops run rows"),
        ("run", "nothing to run: specify a workload"),
        ("run columns", "unrecognized subcommand"),
        ("run rows --color blue", "unexpected argument"),
        ("run rows --sessions 0", "--sessions must be at least 1"),
        ("run rows --sessions -3", "-3 is not in"),
        ("run rows --sessions 99999999", "--sessions 99999999 exceeds the maximum of 10000"),
        ("run rows --duration 0", "--duration must be greater than 0"),
        ("run rows --duration soon", "is not a duration"),
        ("run rows --duration 9999h", "--duration must be greater than 0 and at most 30 days"),
        ("run rows --duration 1 --transactions 5", "cannot be used with"),
        ("run rows --transactions 0", "--transactions must be at least 1"),
        ("run rows --batch 0", "--batch must be at least 1"),
        ("run rows --batch 1.5", "is not a whole number"),
        ("run rows --update-percent 101", "101 is not in 0..=100"),
        ("run rows --distribution normal", "expected uniform"),
        ("run rows --interval 0", "--interval must be between"),
        ("run rows --tag novalue", "expected NAME=VALUE"),
        ("prepare rows --layout block --size 1QB", "is not a size"),
        ("prepare rows --rows 0", "--rows must be at least 1"),
        ("prepare rows --rows 1e30", "is not a whole number"),
        ("prepare rows --tables 100000", "--tables 100000 exceeds the maximum of 9999"),
        ("prepare rows --filler 100000", "--filler 100000 exceeds the maximum of 8000"),
        ("prepare rows --connections 0", "0 is not in 1..=1000"),
        ("run rows --database mysql://localhost", "invalid connection string"),
        ("run rows --database port=1,2,3", "the number of ports differs"),
        ("run rows --database postgresql://h:no/x", "expected a number from 1 to 65535"),
        ("run rows --database postgresql://h?sslmode=verify-full", "requires a root certificate"),
        (
            "run rows --database postgresql://h?sslmode=verify-ca&sslrootcert=/none",
            "root certificate \"/none\"",
        ),
        ("run rows --database service=none", "not found in any service file"),
        ("run rows --rate 0", "not a rate above 0"),
        ("run rows --poisson", "--rate"),
        ("run rows --skip-late", "--latency-limit"),
        ("run rows --latency-limit 1s --skip-late", "--skip-late requires --rate"),
        ("run rows --pipeline 65", "--pipeline must be between 1 and 64"),
        ("run rows --threshold p99<10", "write p99<10ms or p99<10s"),
        ("run rows --threshold speed>1", "there is no figure \"speed\""),
        ("run rows --threshold server-cpu<5", "server-cpu needs a unit of time"),
        ("run rows --threshold wal-bytes<5 --abort-on-threshold", "known when the run has ended"),
        ("run rows --latency-limit 10", "write 10ms or 10s"),
        ("run rows --graph latency.jpg", "use the extension .png, not .jpg"),
        ("run rows --output sysbench", "openmetrics, pgio]"),
        ("run --plan /nonexistent/plan.json", "cannot read the plan /nonexistent/plan.json"),
        ("run rows --threshold response.p99<10ms", "requires --rate"),
        ("run rows --abort-on-threshold", "--threshold"),
        ("doctor -c 5", "--client"),
        ("run rows --config /nonexistent/riops.toml", "cannot read configuration file"),
    ];
    for (line, message) in cases {
        let ran = CommandOutput::run(&mut command(line));
        assert_eq!(ran.code, Some(2), "{line}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(message), "{line}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{line}: {}", ran.stdout);
    }
}

/// Virtual memory of a command, in KiB: four times what the largest limit needs.
const MEMORY_KIB: u64 = 4 << 20;

#[test]
fn a_file_without_an_end_is_refused_at_the_limit_of_its_kind() {
    let folder = crate::fixture::folder("endless");
    let log = folder.join("sparse.log");
    std::fs::write(&log, "0 1 10 0 1795414448 499094\n").unwrap();
    std::fs::File::options().write(true).open(&log).unwrap().set_len(3 << 30).unwrap();
    let import = format!("runs import {}", log.display());
    for (line, limit) in [
        ("run --plan /dev/zero", "64 MiB"),
        ("run rows --config /dev/zero", "16 MiB"),
        ("sweep /dev/zero", "16 MiB"),
        ("ab /dev/zero /dev/zero", "16 MiB"),
        ("script check --offline /dev/zero", "16 MiB"),
        ("pgbench -f /dev/zero", "16 MiB"),
        ("sysbench oltp_read_only --config-file=/dev/zero run", "16 MiB"),
        ("run rows --database postgresql://h?sslrootcert=/dev/zero", "256 MiB"),
        ("run rows --database service=a", "16 MiB"),
        ("runs import --from pgbench-log /dev/zero", "64 KiB"),
        ("runs import --from pgbench-aggregate /dev/zero", "64 KiB"),
        ("runs import --from pgbench /dev/zero", "512 MiB"),
        ("runs import --from ybio /dev/zero", "512 MiB"),
        (&import, "64 KiB"),
    ] {
        let mut limited = std::process::Command::new("sh");
        let shell = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" {line}");
        limited.args(["-c", &shell]).arg(crate::fixture::binary());
        limited.env("HOME", &folder).env("PGSERVICEFILE", "/dev/zero");
        let ran = CommandOutput::run(&mut limited);
        assert!(matches!(ran.code, Some(1 | 2)), "{line}: {:?} {}", ran.code, ran.stderr);
        let file = if line == import { "sparse.log" } else { "/dev/zero" };
        let is_clear =
            ran.stderr.contains(file) && ran.stderr.contains(&format!("limit of {limit}"));
        assert!(is_clear, "{line}: {}", ran.stderr);
    }
}

#[test]
fn errors_of_the_option_parser_have_the_prefix_of_all_errors() {
    let ran = CommandOutput::run(&mut command("run rows --sessions many")).expect(2);
    assert!(ran.stderr.starts_with("riops: invalid value 'many'"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("error:"), "{}", ran.stderr);
}

#[test]
fn a_variable_sets_a_switch_with_1_or_true() {
    let store = crate::fixture::folder("quiet-variable").join("runs.sqlite");
    for value in ["1", "true", "on"] {
        let mut list = command("runs list");
        list.env("RIOPS_STORE", &store).env("RIOPS_QUIET", value);
        CommandOutput::run(&mut list).expect(0);
    }
    let mut list = command("runs list");
    list.env("RIOPS_QUIET", "perhaps");
    CommandOutput::run(&mut list).expect(2).stderr_contains("invalid value 'perhaps'");
}

#[test]
fn a_graph_with_another_extension_is_refused_before_anything_is_written() {
    let graph = crate::fixture::folder("other-graph").join("latency.jpg");
    let line = format!("run rows --no-store --graph {}", graph.display());
    CommandOutput::run(&mut command(&line)).expect(2);
    assert!(!graph.exists());
}

#[test]
fn reports_an_unknown_option_in_the_config_file() {
    let folder = crate::fixture::folder("bad-config");
    let file = folder.join("riops.toml");
    std::fs::write(&file, "sesions = 4\n").unwrap();
    CommandOutput::run(command("run rows").env("RIOPS_CONFIG", &file))
        .expect(2)
        .stderr_contains("unrecognized option \"sesions\" in configuration file")
        .stderr_contains("hint: did you mean sessions?");
}

#[test]
fn reports_an_invalid_value_in_the_environment() {
    CommandOutput::run(command("run rows").env("RIOPS_SESSIONS", "many"))
        .expect(2)
        .stderr_contains("invalid value 'many'");
}

#[test]
fn reports_an_unknown_variable_and_suggests_the_nearest_name() {
    let ran = CommandOutput::run(command("run rows").env("RIOPS_SESIONS", "4")).expect(2);
    assert_eq!(
        ran.stderr,
        "riops: unrecognized environment variable \"RIOPS_SESIONS\"\n\
         riops: hint: did you mean RIOPS_SESSIONS?\n"
    );
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    let ran = CommandOutput::run(command("doctor").env("RIOPS_FAVORITE_COLOR", "blue")).expect(2);
    assert_eq!(ran.stderr, "riops: unrecognized environment variable \"RIOPS_FAVORITE_COLOR\"\n");
    CommandOutput::run(command("run rows --help").env("RIOPS_SESIONS", "4")).expect(0);
}

#[test]
fn ignores_variables_of_other_commands() {
    let store = crate::fixture::folder("other-variable").join("runs.sqlite");
    let mut list = command("runs list");
    list.env("RIOPS_STORE", store).env("RIOPS_TABLE_SIZE", "many").env("RIOPS_TEST_ALL", "1");
    CommandOutput::run(&mut list).expect(0);
}

#[test]
fn connection_errors_include_a_hint() {
    let refused = "run rows --no-store --database postgresql://me@127.0.0.1:1/x";
    CommandOutput::run(&mut command(refused))
        .expect(1)
        .stderr_contains("cannot connect to 127.0.0.1:1")
        .stderr_contains("is the server running");
    let missing = "run rows --no-store --database host=/nonexistent";
    CommandOutput::run(&mut command(missing))
        .expect(1)
        .stderr_contains("/nonexistent/.s.PGSQL.5432");
    let database = database("refusing");
    let url = database.url.replace("/refusing?", "/no_such_database?");
    let ran = CommandOutput::run(&mut command(&format!("run rows --no-store --database {url}")));
    ran.expect(1).stderr_contains("no_such_database").stderr_contains("create the database first");
}

#[test]
fn a_full_disk_during_prepare_leaves_no_tables() {
    // An event trigger raises the server's error for a full disk during CREATE INDEX.
    let database = database("full_disk");
    let mut connection = database.connect();
    connection
        .execute(
            "create function full_disk() returns event_trigger language plpgsql as $$
             begin
               if tg_tag = 'CREATE INDEX' then
                 raise exception using errcode = '53100', message = 'could not extend file',
                       hint = 'Check free disk space.';
               end if;
             end $$;
             create event trigger full_disk on ddl_command_end execute function full_disk()",
        )
        .unwrap();
    database
        .riops("prepare rows --rows 5000")
        .expect(1)
        .stderr_contains("could not extend file")
        .stderr_contains("Check free disk space");
    assert_eq!(
        database.value("select count(*) from pg_tables where schemaname = 'riops'").as_deref(),
        Some("0")
    );
    connection.execute("drop event trigger full_disk").unwrap();
    database.riops("prepare rows --rows 5000").expect(0);
}

#[test]
fn an_invalid_order_expression_leaves_no_tables() {
    let database = database("wrong_order");
    database
        .riops("prepare rows --rows 100 --order nosuchcolumn")
        .expect(1)
        .stderr_contains("nosuchcolumn");
    assert_eq!(
        database.value("select count(*) from pg_tables where schemaname = 'riops'").as_deref(),
        Some("0")
    );
}

#[test]
fn reports_more_sessions_than_the_server_allows() {
    // Not on the shared server: the other tests need its connections.
    let home = folder("too_many");
    let mut run =
        command("run rows --rows 1000 -c 30 --duration 1 --server-set max_connections=20");
    run.env("RIOPS_SERVER_DIR", server_dir()).env("RIOPS_SERVER_DATA", home.join("server"));
    CommandOutput::run(run.env("RIOPS_STORE", home.join("runs.sqlite")))
        .expect(1)
        .stderr_contains("cannot open session")
        .stderr_contains("too many clients");
}

#[test]
fn options_without_effect_on_an_experiment_are_refused_before_it_starts() {
    let folder = folder("no-effect");
    let file = |name: &str, setting: &str| {
        let path = folder.join(name);
        std::fs::write(&path, format!("workload = \"ping\"\n{setting}\n")).unwrap();
        path.display().to_string()
    };
    let refused = |line: &str, expected: &str| {
        let mut command = command(line);
        // No server is needed.
        command
            .env("RIOPS_DATABASE", "host=/nonexistent")
            .env("RIOPS_STORE", folder.join("s.sqlite"));
        CommandOutput::run(&mut command).expect(2).stderr_contains(expected);
    };
    let (a, b) = (file("a.toml", "server-set = \"shared_buffers=128MB\""), file("b.toml", ""));
    for line in [
        format!("ab {a} {b} --set duration=1s"),
        "sweep ping --axis server-set=shared_buffers=128MB,shared_buffers=1GB".to_owned(),
        "sweep compare-two-servers".to_owned(),
    ] {
        refused(&line, "selects another server than the embedded one");
    }
    for key in ["metrics-push", "metrics-listen", "graph", "store", "note"] {
        let expected = format!("\"{key}\" has no effect on the runs of an experiment");
        let setting = format!("{key} = \"127.0.0.1:9\"");
        refused(&format!("ab {} {b}", file("c.toml", &setting)), &expected);
        let gate = folder.join("gate.toml");
        let text = format!("[options]\n{setting}\n[[workload]]\nrun = \"ping\"\n");
        std::fs::write(&gate, text).unwrap();
        refused(&format!("gate {}", gate.display()), &expected);
    }
    refused(
        &format!("ab {} --dry-run", file("d.toml", "baseline = \"x\"\n[axes]\nsessions = [1, 2]")),
        "\"baseline\" has no effect on an A/B test",
    );
    refused("sweep ping --axis sessions=1,2 --own-database", "\"own-database\" has no effect");
    refused("sweep ping --axis sessions=1,2 --vacuum", "\"vacuum\" has no effect");
    let reset = file("f.toml", "reset = \"prepare\"\n[axes]\nsessions = [1, 2]");
    refused(&format!("sweep {reset}"), "\"reset\" has no effect");
    let own = file("e.toml", "own-database = true\n[axes]\nsessions = [1, 2]");
    refused(&format!("sweep {own}"), "\"own-database\" has no effect");
    let gate = folder.join("gate.toml");
    let text = "[options]\nthreshold = \"tps>1e9\"\n[[workload]]\nrun = \"ping\"\n";
    std::fs::write(&gate, text).unwrap();
    refused(&format!("gate {}", gate.display()), "\"threshold\" has no effect");
}
