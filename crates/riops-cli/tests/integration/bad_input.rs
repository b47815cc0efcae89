//! Wrong words, impossible numbers, and targets that do not play along.

use crate::fixture::{Ran, command, database};

#[test]
fn wrong_usage_is_told_with_exit_code_2() {
    let cases = [
        ("", "Usage"),
        ("run", "nothing to run: name a workload"),
        ("run columns", "unrecognized subcommand"),
        ("run rows --colour blue", "unexpected argument"),
        ("run rows --sessions 0", "--sessions must be at least 1"),
        ("run rows --sessions -3", "-3 is not in"),
        ("run rows --sessions 99999999", "--sessions 99999999 is more than 10000"),
        ("run rows -c 2 -j 5", "--workers 5 is more than --sessions 2"),
        ("run rows --duration 0", "--duration must be above 0"),
        ("run rows --duration soon", "is not a duration"),
        ("run rows --duration 9999h", "--duration must be above 0 and at most 30 days"),
        ("run rows --duration 1 --transactions 5", "cannot be used with"),
        ("run rows --transactions 0", "--transactions must be at least 1"),
        ("run rows --batch 0", "--batch must be at least 1"),
        ("run rows --batch 1.5", "is not a whole number"),
        ("run rows --update-percent 101", "101 is not in 0..=100"),
        ("run rows --distribution normal", "none of uniform"),
        ("run rows --interval 0", "--interval must be between"),
        ("run rows --tag novalue", "no form NAME=VALUE"),
        ("prepare rows --layout block --size 1QB", "is not a size"),
        ("prepare rows --rows 0", "--rows must be at least 1"),
        ("prepare rows --rows 1e30", "is not a whole number"),
        ("prepare rows --tables 100000", "--tables 100000 is more than 9999"),
        ("prepare rows --filler 100000", "--filler 100000 is more than 8000"),
        ("prepare rows --connections 0", "0 is not in 1..=1000"),
        ("run rows --database mysql://localhost", "is not understood"),
        ("run rows --database port=1,2,3", "not as many ports as hosts"),
        ("run rows --database postgresql://h:no/x", "a port is a number"),
        ("run rows --database postgresql://h?sslmode=verify-full", "needs the certificate"),
        ("run rows --database postgresql://h?sslrootcert=/none", "the root certificate /none"),
        ("run rows --database service=none", "is in no service file"),
        ("run rows --rate 0", "is no rate above 0"),
        ("run rows --poisson", "--rate"),
        ("run rows --skip-late", "--latency-limit"),
        ("run rows --latency-limit 1s --skip-late", "--skip-late needs --rate"),
        ("run rows --pipeline 65", "--pipeline must be between 1 and 64"),
        ("run rows --threshold p99<10", "is no threshold"),
        ("run rows --threshold response.p99<10ms", "needs --rate"),
        ("run rows --abort-on-threshold", "--threshold"),
        ("doctor -c 5", "--client"),
        ("doctor --client -c 2 -j 5", "--workers 5"),
        ("run rows --config /nonexistent/riops.toml", "cannot read the file of --config"),
    ];
    for (line, message) in cases {
        let ran = Ran::of(&mut command(line));
        assert_eq!(ran.code, Some(2), "{line}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(message), "{line}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{line}: {}", ran.stdout);
    }
}

#[test]
fn an_unknown_option_in_the_file_is_named() {
    let folder = crate::fixture::folder("bad-config");
    let file = folder.join("riops.toml");
    std::fs::write(&file, "sesions = 4\n").unwrap();
    Ran::of(command("run rows").env("RIOPS_CONFIG", &file))
        .expect(2)
        .says("unrecognized option \"sesions\" in the file of --config")
        .says("hint: did you mean sessions?");
}

#[test]
fn a_bad_value_in_the_environment_is_told_like_one_on_the_command_line() {
    Ran::of(command("run rows").env("RIOPS_SESSIONS", "many"))
        .expect(2)
        .says("invalid value 'many'");
}

#[test]
fn an_unknown_variable_is_named_with_the_nearest_known_one() {
    let ran = Ran::of(command("run rows").env("RIOPS_SESIONS", "4")).expect(2);
    assert_eq!(
        ran.stderr,
        "riops: unrecognized environment variable \"RIOPS_SESIONS\"\n\
         riops: hint: did you mean RIOPS_SESSIONS?\n"
    );
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    let ran = Ran::of(command("doctor").env("RIOPS_FAVOURITE_COLOUR", "blue")).expect(2);
    assert_eq!(ran.stderr, "riops: unrecognized environment variable \"RIOPS_FAVOURITE_COLOUR\"\n");
    Ran::of(command("run rows --help").env("RIOPS_SESIONS", "4")).expect(0);
}

#[test]
fn a_variable_of_another_command_is_ignored() {
    let store = crate::fixture::folder("other-variable").join("runs.sqlite");
    let mut list = command("runs list");
    list.env("RIOPS_STORE", store).env("RIOPS_TABLE_SIZE", "many").env("RIOPS_TEST_ALL", "1");
    Ran::of(&mut list).expect(0);
}

#[test]
fn a_target_that_refuses_is_told_with_what_to_do() {
    let refused = "run rows --no-store --database postgresql://me@127.0.0.1:1/x";
    Ran::of(&mut command(refused))
        .expect(1)
        .says("cannot connect to 127.0.0.1:1")
        .says("is the server running");
    let missing = "run rows --no-store --database host=/nonexistent";
    Ran::of(&mut command(missing)).expect(1).says("/nonexistent/.s.PGSQL.5432");
    let database = database("refusing");
    let url = database.url.replace("/refusing?", "/no_such_database?");
    let ran = Ran::of(&mut command(&format!("run rows --no-store --database {url}")));
    ran.expect(1).says("no_such_database").says("create the database first");
}

#[test]
fn a_full_disk_during_prepare_leaves_nothing_half_made() {
    // The server's own way to run out of space: a limit on what the role may write.
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
        .says("could not extend file")
        .says("Check free disk space");
    assert_eq!(
        database.value("select count(*) from pg_tables where schemaname = 'riops'").as_deref(),
        Some("0")
    );
    connection.execute("drop event trigger full_disk").unwrap();
    database.riops("prepare rows --rows 5000").expect(0);
}

#[test]
fn a_wrong_expression_for_the_order_is_told_and_leaves_nothing() {
    let database = database("wrong_order");
    database.riops("prepare rows --rows 100 --order nosuchcolumn").expect(1).says("nosuchcolumn");
    assert_eq!(
        database.value("select count(*) from pg_tables where schemaname = 'riops'").as_deref(),
        Some("0")
    );
}

#[test]
fn too_many_sessions_for_the_server_are_told() {
    let database = database("too_many");
    database.riops("prepare rows --rows 1000").expect(0);
    database
        .riops("run rows -c 600 --batch 1 --duration 1")
        .expect(1)
        .says("could not be opened")
        .says("too many clients");
}
