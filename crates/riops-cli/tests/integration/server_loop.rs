//! `run rows --loop server`: the record has the same fields as with the client loop, and no update is lost.

use serde_json::Value;

use crate::crash::{kill, postmaster};
use crate::fixture::{CommandOutput, Database, database, folder, start_until};
use crate::server::command_on;

const SHORT: &str = "--duration 400ms --warmup 100ms --interval 100ms";

fn prepare_database(name: &str, options: &str) -> Database {
    let database = database(name);
    database.riops(&format!("prepare rows {options}")).expect(0);
    database
}

/// Runs the server loop and returns the record of the run, which must be valid.
fn run_valid(database: &Database, options: &str) -> Value {
    let run = database.riops(&format!("run rows --loop server --output json {options}")).expect(0);
    let record = run.json();
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    record
}

fn sum(values: &Value, field: &str) -> u64 {
    values.as_array().unwrap().iter().map(|entry| entry[field].as_u64().unwrap()).sum()
}

#[test]
fn the_record_has_the_same_fields_as_with_the_client_loop() {
    let database = prepare_database("loop_fields", "--rows 3000 --tables 2");
    for (options, kinds) in [
        ("--batch 10", 1),
        ("--batch 100 --update-percent 40 --update-batch 7", 2),
        ("--batch 3000 --update-percent 100", 1),
        ("--batch 50 --index-only", 1),
        ("--batch 10 --update-percent 50 --index-only", 2),
        ("--batch 10 --update-percent 50 --protocol simple", 2),
    ] {
        let record = run_valid(&database, &format!("{SHORT} -c 3 {options}"));
        let stage = &record["stages"][0];
        assert_eq!(stage["kind"], "server_loop");
        assert_eq!(stage["operations"].as_array().unwrap().len(), kinds, "{options}");
        let transactions = stage["transactions"].as_u64().unwrap();
        assert!(transactions > 0);
        for (part, field) in [("operations", "transactions"), ("series", "transactions")] {
            assert_eq!(sum(&stage[part], field), transactions, "{options}: {part}");
        }
        assert_eq!(stage["service_us"]["count"].as_u64(), Some(transactions), "{options}");
        let percentiles =
            ["min", "p50", "p99", "max"].map(|name| stage["service_us"][name].as_f64().unwrap());
        assert!(percentiles.is_sorted(), "{percentiles:?}");
        assert_eq!(stage["session_details"].as_array().unwrap().len(), 3);
        for moment in ["before", "middle", "after"] {
            let checked = record["accesses"]
                .as_array()
                .unwrap()
                .iter()
                .any(|access| access["moment"] == moment);
            assert!(checked, "{options}: no access path check with moment {moment}");
        }
    }
    database.riops("verify rows").expect(0);
}

#[test]
fn transaction_and_row_limits_apply_to_all_sessions_together() {
    let database = prepare_database("loop_numbers", "--rows 2000");
    let stage = &run_valid(&database, "--transactions 100 -c 3 --batch 10 --warmup 0")["stages"][0];
    assert_eq!((&stage["transactions"], &stage["rows"]), (&100.into(), &1000.into()));
    let stage = &run_valid(
        &database,
        "--total-rows 101 -c 2 --batch 10 --warmup 0 --update-percent 100",
    )["stages"][0];
    // 51 and 50 rows, in batches of ten.
    assert_eq!(stage["rows"], 110);
    assert_eq!(stage["operations"][0]["acknowledged_rows"], 110);
    let one = &run_valid(&database, "--transactions 1 -c 4 --batch 10 --warmup 0")["stages"][0];
    assert_eq!((&one["transactions"], &one["sessions"]), (&1.into(), &4.into()));
    database.riops("verify rows").expect(0);
}

#[test]
fn update_percent_is_a_share_of_rows_or_of_transactions() {
    let database = prepare_database("loop_shares", "--rows 2000");
    let share = |options: &str, field: &str| {
        let record = run_valid(
            &database,
            &format!(
                "--transactions 200 -c 1 --batch 50 --update-batch 5 --warmup 0 --update-percent 20 {options}"
            ),
        );
        let operations = record["stages"][0]["operations"].clone();
        let amount = |name: &str| {
            let all = operations.as_array().unwrap();
            all.iter().find(|operation| operation["name"] == name).unwrap()[field].as_f64().unwrap()
        };
        amount("update") / (amount("read") + amount("update"))
    };
    // 200 transactions of 5 or 50 rows: a batch is 1.5 % of the rows.
    assert!((share("", "rows") - 0.20).abs() < 0.016);
    assert!((share("--update-share transactions", "transactions") - 0.20).abs() < 0.006);
}

#[test]
fn one_run_compares_both_loops_with_a_line_and_a_bar_each() {
    let database = prepare_database("loop_study", "--rows 2000");
    let run = database
        .riops("run rows --loop client,server --batch 1,100 --duration 200ms --warmup 0 --interval 100ms --update-percent 30 --threshold errors=0")
        .expect(0);
    let lines: Vec<_> = run
        .stdout
        .lines()
        .filter(|line| line.contains("▏") || line.contains("█") || line.contains("▍"))
        .collect();
    assert!(lines.len() >= 2, "{}", run.stdout);
    for words in [" 1  client", " 1  server", "100  client", "100  server"] {
        assert!(run.stdout.contains(words), "{words}:\n{}", run.stdout);
    }
    let shown = database.riops("runs show --output json").expect(0).json();
    let names: Vec<_> = shown["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "rows, batch 1, client loop",
            "rows, batch 1, server loop",
            "rows, batch 100, client loop",
            "rows, batch 100, server loop"
        ]
    );
    assert_eq!(shown["thresholds"].as_array().unwrap().len(), 4);
    // The ledger contains the updates of all stages.
    database.riops("verify rows").expect(0);
}

#[test]
fn a_plan_change_during_the_call_is_detected_within_the_call() {
    let database = prepare_database("loop_flip", "--rows 2000");
    let run =
        &mut database.command("run rows --loop server --duration 2s --warmup 0 -c 1 --batch 10");
    let child = start_until(run, "measuring");
    database.connect().execute("drop index riops.rows_0001_asc_mykey").unwrap();
    let run = CommandOutput::from(child.wait_with_output().unwrap()).expect(3);
    assert!(
        run.stdout.contains("plan during the run:") && run.stdout.contains("Seq Scan"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_server_error_ends_the_run_with_its_message() {
    let database = prepare_database("loop_error", "--rows 2000");
    let run = &mut database.command(
        "run rows --loop server --duration 1h --warmup 0 -c 2 --batch 10 --update-percent 50",
    );
    let child = start_until(run, "measuring");
    let refuse = "create function reject_update() returns trigger language plpgsql as $$ begin raise 'no more' using errcode = '53100'; end $$;
        create trigger reject_update before update on riops.rows_0001 execute function reject_update()";
    database.connect().execute(refuse).unwrap();
    let run = CommandOutput::from(child.wait_with_output().unwrap()).expect(1);
    assert!(run.stdout.contains("53100") && run.stdout.contains("no more"), "{}", run.stdout);
    database.connect().execute("drop trigger reject_update on riops.rows_0001").unwrap();
    // Commits since the last report are unknown, but within the announced number.
    let verified = database.riops("verify rows").expect(0);
    assert!(verified.stdout.contains(" to "), "{}", verified.stdout);
}

#[test]
fn the_sum_is_within_the_unknown_range_if_the_server_is_killed_during_the_calls() {
    let home = folder("kill-server-loop");
    CommandOutput::run(&mut command_on(&home, "prepare rows --rows 2000")).expect(0);
    let long = "run rows --loop server --batch 10 --update-percent 30 --duration 1h --warmup 0 --interval 100ms -c 3 --reconnect-timeout 1s";
    let child = start_until(&mut command_on(&home, long), " s  ");
    kill(postmaster(&home), "-KILL");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let shown =
        CommandOutput::run(&mut command_on(&home, "runs show --output json")).expect(0).json();
    assert!(shown["stages"][0]["unknown_commits"].as_u64().unwrap() > 0);
    // The verification settles the ledger from the record.
    let verified = CommandOutput::run(&mut command_on(&home, "verify rows"));
    let increments = verified.stdout.lines().find(|line| line.contains("increments")).unwrap();
    // A loop whose end was not confirmed may have continued: then there is no upper bound.
    let has_continued = increments.contains("may have continued");
    assert!(has_continued || increments.contains("unresolved"), "{increments}");
    assert!(!increments.contains("did not report"), "{increments}");
    assert_eq!(verified.code, Some(if has_continued { 3 } else { 0 }));
    // The next run can be verified.
    let run = CommandOutput::run(&mut command_on(
        &home,
        "run rows --loop server --batch 10 --update-percent 30 --transactions 50 --warmup 0",
    ));
    run.expect(0);
    CommandOutput::run(&mut command_on(&home, "verify rows")).expect(0);
}

#[test]
fn ctrl_c_ends_the_calls_and_stores_the_measurement() {
    let home = folder("interrupt-loop");
    CommandOutput::run(&mut command_on(&home, "prepare rows --rows 2000")).expect(0);
    let long = "run rows --loop server --batch 10 --update-percent 30 --duration 1h --warmup 0 --interval 100ms -c 3";
    let child = start_until(&mut command_on(&home, long), " s  ");
    kill(child.id(), "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stdout));
    let shown =
        CommandOutput::run(&mut command_on(&home, "runs show --output json")).expect(0).json();
    assert!(shown["stages"][0]["transactions"].as_u64().unwrap() > 0);
    assert_eq!(shown["verdict"]["valid"], true, "{}", shown["verdict"]);
    CommandOutput::run(&mut command_on(&home, "verify rows")).expect(0);
}

#[test]
fn options_applied_per_transaction_require_the_client_loop() {
    let database = prepare_database("loop_refused", "--rows 500");
    for (options, message) in [
        ("--rate 100", "--rate requires --loop client"),
        ("--pipeline 4", "--pipeline"),
        ("--reconnect 10", "--reconnect"),
        ("--protocol extended", "--protocol extended"),
        ("--distribution zipfian:0.9", "--distribution"),
        ("-j 2", "--workers"),
    ] {
        database
            .riops(&format!("run rows --loop server --batch 10 {options}"))
            .expect(2)
            .stderr_contains(message);
    }
}

#[test]
fn routines_are_created_once_and_dropped_with_the_dataset() {
    let database = prepare_database("loop_routines", "--rows 500");
    let routines = "select string_agg(proname, ',' order by proname) from pg_proc join pg_namespace n on n.oid = pronamespace where nspname = 'riops'";
    run_valid(&database, "--batch 10 --transactions 10 --warmup 0");
    assert_eq!(database.value(routines).as_deref(), Some("ybio_loop,ybio_report"));
    // A routine that an older riops created.
    database
        .connect()
        .execute("comment on routine riops.ybio_loop is 'riops routine old'")
        .unwrap();
    run_valid(&database, "--batch 10 --transactions 10 --warmup 0");
    database.riops("cleanup rows").expect(0);
    assert_eq!(
        database.value("select count(*) from pg_namespace where nspname = 'riops'").as_deref(),
        Some("0")
    );
    database.riops("prepare rows --rows 500").expect(0);
    database
        .connect()
        .execute("create function riops.ybio_loop() returns int language sql as 'select 1'")
        .unwrap();
    database
        .riops("run rows --loop server --batch 10 --transactions 10")
        .expect(1)
        .stderr_contains("\"riops.ybio_loop\" exists and was not created by riops");
}

#[test]
fn statement_timeout_does_not_end_the_loop() {
    let database = prepare_database("loop_timeout", "--rows 500");
    database
        .connect()
        .execute("alter database loop_timeout set statement_timeout = '100ms'")
        .unwrap();
    run_valid(&database, "--batch 10 --duration 400ms --warmup 0 --interval 100ms");
}

#[test]
fn a_breached_threshold_ends_the_calls() {
    let database = prepare_database("loop_threshold", "--rows 500");
    let run = database
        .riops("run rows --loop server -c 2 --batch 10 --duration 1h --warmup 0 --interval 100ms --threshold 'riops>1e12' --abort-on-threshold --output json".replace('\'', "").as_str())
        .expect(99);
    let record = run.json();
    assert_eq!(record["thresholds"][0]["ended_run"], true);
    assert!(record["stages"][0]["transactions"].as_u64().unwrap() > 0);
}

#[test]
fn excludes_the_warmup_from_the_measurement() {
    let database = prepare_database("loop_warmup", "--rows 500");
    // Far more than 1,000 updates before the measurement, on a busy machine with a longer warm-up. The loop announces
    // every 1,000 updates.
    let mut warmups = ["1500ms", "8s", "40s"].into_iter();
    let acknowledged = warmups.find_map(|warmup| {
        let line = format!(
            "--transactions 50 -c 1 --batch 1 --update-percent 100 --warmup {warmup} --interval 100ms"
        );
        let record = run_valid(&database, &line);
        let stage = &record["stages"][0];
        assert_eq!((&stage["transactions"], &stage["rows"]), (&50.into(), &50.into()));
        assert_eq!(stage["service_us"]["count"], 50);
        database.riops("verify rows").expect(0);
        let acknowledged = stage["operations"][0]["acknowledged_transactions"].as_u64().unwrap();
        (acknowledged > 1_050).then_some(acknowledged)
    });
    assert!(acknowledged.is_some());
}

#[test]
fn runs_as_any_role_with_any_default_isolation_level() {
    let database = prepare_database("loop_role", "--rows 500");
    let mut connection = database.connect();
    connection.execute("create role loop_role_user login superuser; alter role loop_role_user set default_transaction_isolation = 'repeatable read'").unwrap();
    let url = database.url.replace("postgres@", "loop_role_user@");
    let mut command = database.command("run rows --loop server -c 4 --batch 250 --update-percent 100 --transactions 200 --warmup 0 --output json");
    command.env("RIOPS_DATABASE", url);
    let record = CommandOutput::run(&mut command).expect(0).json();
    let stage = &record["stages"][0];
    assert_eq!((&record["verdict"]["valid"], &stage["transactions"]), (&true.into(), &200.into()));
    // Each session updates half of the table, so conflicts are certain. Each attempt needs a new snapshot.
    let retries = stage["retries"].as_u64().unwrap();
    let counted: u64 = stage["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["retried"].as_u64().unwrap())
        .sum();
    assert!(retries > 0 && retries == counted, "{retries} {counted}");
    database.riops("verify rows").expect(0);
}

#[test]
fn a_view_left_by_a_killed_loop_does_not_prevent_dropping_the_table() {
    let database = prepare_database("loop_leftover", "--rows 500");
    let mut killed = database.connect();
    killed
        .execute("create temporary view ybio_rows as select mykey, scratch from riops.rows_0001")
        .unwrap();
    database.riops("prepare rows --rows 600 --recreate").expect(0);
    killed
        .execute("create temporary view ybio_rows as select mykey, scratch from riops.rows_0001")
        .unwrap();
    database.riops("cleanup rows").expect(0);
}

#[test]
fn a_terminated_session_reconnects_and_calls_again() {
    let database = prepare_database("loop_ended", "--rows 2000");
    let run = &mut database.command("run rows --loop server --duration 2s --warmup 0 -c 2 --batch 10 --update-percent 50 --output json");
    let child = start_until(run, "measuring");
    let mut connection = database.connect();
    let ended = connection.query_value("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'loop_ended' and query like 'call %' limit 1").unwrap();
    assert_eq!(ended.as_deref(), Some("t"));
    let run = CommandOutput::from(child.wait_with_output().unwrap()).expect(0);
    let stage = &run.json()["stages"][0];
    assert_eq!(stage["reconnects"], 1);
    assert!(stage["unknown_commits"].as_u64().unwrap() > 0);
    // Blocks per row would be wrong because not all rows are known.
    assert_eq!(stage["io"]["blocks_per_row"], Value::Null);
    database.riops("verify rows").expect(0);
}
