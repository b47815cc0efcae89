//! Errors and failures of a real server: how a run handles, counts and reports them.

use serde_json::Value;

use crate::crash::kill;
use crate::fixture::{CommandOutput, Database, database, start_until};

const WORK: &str = "run rows --batch 5 -c 4 -j 2 --warmup 0 --interval 100ms --output json";

fn prepare_database(name: &str) -> Database {
    let database = database(name);
    database.riops("prepare rows --rows 2000").expect(0);
    database
}

/// Returns the attempted, succeeded, failed and unknown transactions; the first is the sum of the others.
fn outcomes(record: &Value) -> [u64; 4] {
    let outcomes = &record["stages"][0]["outcomes"];
    let counts = ["attempted", "succeeded", "failed", "unknown"]
        .map(|name| outcomes[name].as_u64().unwrap());
    assert_eq!(counts[0], counts[1] + counts[2] + counts[3]);
    counts
}

/// Returns the count and the retries of the errors with this SQLSTATE.
fn errors(record: &Value, sqlstate: &str) -> (u64, u64) {
    let all = record["stages"][0]["errors"].as_array().unwrap();
    let entry = all.iter().find(|error| error["sqlstate"] == sqlstate);
    let count = |name: &str| entry.map_or(0, |error| error[name].as_u64().unwrap());
    (count("count"), count("retried"))
}

/// Creates a trigger that makes every n-th row update fail with this SQLSTATE.
fn fail_every(database: &Database, n: u32, sqlstate: &str, when: &str) {
    database
        .connect()
        .execute(&format!(
            "create sequence riops_fault;
             create function riops_fault() returns trigger language plpgsql as $$
             begin
               if nextval('public.riops_fault') % {n} = 0 then
                 raise exception using errcode = '{sqlstate}', message = 'injected {sqlstate}';
               end if;
               return new;
             end $$;
             create {when} on riops.rows_0001 {} for each row execute function riops_fault()",
            if when.starts_with("constraint") { "deferrable initially deferred" } else { "" }
        ))
        .unwrap();
}

const BEFORE: &str = "trigger riops_fault before update";
const AT_COMMIT: &str = "constraint trigger riops_fault after update";

#[test]
fn retries_serialization_failures_up_to_the_limit() {
    let database = prepare_database("fault_40001");
    fail_every(&database, 50, "40001", BEFORE);
    let ran = database.riops(&format!("{WORK} --update-percent 100 --transactions 400")).expect(0);
    let record = ran.json();
    assert_eq!(outcomes(&record)[..3], [400, 400, 0]);
    let (count, retried) = errors(&record, "40001");
    assert!(count > 0 && count == retried, "{count} {retried}");
    assert_eq!(record["stages"][0]["retries"].as_u64(), Some(retried));
    assert_eq!(record["verdict"]["valid"], true);
    let none = format!("{WORK} --update-percent 100 --transactions 400 --max-retries 0");
    let stopped = database.riops(&none).expect(1);
    assert!(stopped.json()["failure"].as_str().unwrap().contains("injected 40001"));
    database.riops("verify rows").expect(0);
}

#[test]
fn a_full_disk_at_commit_ends_the_run_or_is_counted() {
    let database = prepare_database("fault_disk");
    fail_every(&database, 100, "53100", AT_COMMIT);
    let line = format!("{WORK} --update-percent 100 --transactions 300");
    let stopped = database.riops(&line).expect(1).json();
    assert!(stopped["failure"].as_str().unwrap().contains("SQLSTATE 53100"));
    assert_eq!(stopped["status"], "failed");
    let counted = database.riops(&format!("{line} --on-error continue")).expect(0).json();
    let [attempted, _, failed, unknown] = outcomes(&counted);
    assert_eq!((attempted, unknown), (300, 0));
    assert!(failed > 0);
    assert_eq!(errors(&counted, "53100"), (failed, 0));
    // Transactions that failed at commit changed nothing, and acknowledged changes are present.
    assert_eq!(counted["verdict"]["valid"], true, "{}", counted["verdict"]);
    let breached = format!("{line} --on-error continue --threshold errors=0");
    let breached = database.riops(&breached).expect(99).json();
    assert_eq!(breached["thresholds"][0]["held"], false);
}

#[test]
fn a_run_whose_updates_fail_did_not_execute_its_mix() {
    let database = prepare_database("fault_mix");
    let line = format!("{WORK} --update-percent 50 --transactions 2000 --on-error continue");
    let kept = database.riops(&line).expect(0).json();
    let mix = &kept["stages"][0]["mix"];
    assert_eq!((&mix["unit"], &mix["asked_percent"]), (&"rows".into(), &50.0.into()), "{mix}");
    assert!((mix["executed_percent"].as_f64().unwrap() - 50.0).abs() < 1.0, "{mix}");
    fail_every(&database, 1, "23514", BEFORE);
    let missed = database.riops(&line).expect(3).json();
    assert_eq!(missed["stages"][0]["mix"]["executed_percent"], 0.0);
    let reason = missed["verdict"]["reasons"][0].as_str().unwrap();
    assert_eq!(reason, "updates were 0.0% of the rows, not the requested 50%");
}

#[test]
fn a_stage_too_short_for_its_mix_says_so() {
    let database = prepare_database("short_mix");
    let line = "run rows --batch 2000 --update-percent 10 --transactions 3 -c 1 --warmup 0";
    let run = database.riops(line).expect(0);
    for text in [
        "configured 10% of the rows, executed 0.0%",
        "too short for this mix: 3 transactions",
        "3 transactions are too few for percentiles",
    ] {
        assert!(run.stdout.contains(text), "{text} is not in:\n{}", run.stdout);
    }
}

#[test]
fn lock_timeouts_count_as_failed_transactions() {
    let database = prepare_database("fault_locks");
    database.connect().execute("alter database fault_locks set lock_timeout = '20ms'").unwrap();
    let mut holder = database.connect();
    holder
        .execute("begin; select count(*) from (select 1 from riops.rows_0001 for update)")
        .unwrap();
    let line = format!("{WORK} --update-percent 50 --transactions 60 --on-error continue");
    // Without any update, the run did not execute the requested mix.
    let record = database.riops(&line).expect(3).json();
    let [attempted, succeeded, failed, _] = outcomes(&record);
    // Half of the transactions of each session are updates, plus or minus one.
    assert!(attempted == 60 && (28..=32).contains(&succeeded), "{succeeded}");
    assert_eq!(errors(&record, "55P03"), (failed, 0));
}

#[test]
fn a_read_only_server_allows_reads_and_rejects_updates() {
    let database = prepare_database("fault_read_only");
    database
        .connect()
        .execute("alter database fault_read_only set default_transaction_read_only = on")
        .unwrap();
    let read = database.riops(&format!("{WORK} --transactions 100")).expect(0).json();
    assert_eq!(outcomes(&read), [100, 100, 0, 0]);
    assert!(read["target"]["storage"]["file_system"].is_string(), "{}", read["target"]);
    database
        .riops(&format!("{WORK} --update-percent 10 --transactions 100"))
        .expect(1)
        .stderr_contains("read-only transaction");
}

#[test]
fn terminated_sessions_reconnect_and_the_run_continues() {
    let database = prepare_database("fault_terminate");
    let line = format!("{WORK} --update-percent 50 --transactions 30000");
    let child = start_until(&mut database.command(&line), " s  ");
    let terminated = database.value(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity
          where datname = 'fault_terminate'
            and (query like 'with updated%' or query like 'select count(*), max%')",
    );
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).expect(0);
    let record = ran.json();
    assert!(terminated.unwrap().parse::<u64>().unwrap() >= 1);
    let stage = &record["stages"][0];
    assert!(stage["reconnects"].as_u64().unwrap() >= 1);
    assert!(errors(&record, "57P01").0 >= 1, "{}", stage["errors"]);
    assert_eq!(outcomes(&record)[0], 30_000);
    // The sum in the database is at least the sum of the acknowledged changes. It exceeds this sum at most by the unknown
    // changes.
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    let accesses = record["accesses"].as_array().unwrap();
    assert!(accesses.iter().all(|access| access["held"] == true));
}

#[test]
fn sessions_reconnect_after_crash_recovery_of_the_server() {
    let home = crate::fixture::folder("fault-crash");
    let server_command = |line: &str| crate::server::command_on(&home, line);
    CommandOutput::run(&mut server_command("server start")).expect(0);
    CommandOutput::run(&mut server_command("prepare rows --rows 2000")).expect(0);
    let line = format!("{WORK} --update-percent 50 --rate 400 --duration 1h");
    let mut child = start_until(&mut server_command(&line), " s  ");
    let query = |sql: &str| CommandOutput::run(server_command("server psql -- -Atc").arg(sql));
    // After SIGKILL of one backend, the postmaster terminates all other backends and starts crash recovery.
    let sessions = "from pg_stat_activity where application_name like 'riops/%'
                            and query like '%rows_0001%' and pid <> pg_backend_pid()";
    let before = query(&format!("select string_agg(pid::text, ',') {sessions}")).expect(0).stdout;
    kill(before.split(',').next().unwrap().trim().parse().unwrap(), "-KILL");
    let count = format!("select count(*) {sessions} and pid not in ({before})");
    while query(&count).stdout.trim() != "4" {
        assert!(child.try_wait().unwrap().is_none(), "the run has ended");
    }
    kill(child.id(), "-INT");
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    let record = ran.expect(130).json();
    let stage = &record["stages"][0];
    // A session can lose a second connection, made before the postmaster noticed the end of the backend.
    let lost: u64 = stage["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["count"].as_u64().unwrap())
        .sum();
    assert!(lost >= 4, "{}", stage["errors"]);
    assert_eq!(stage["reconnects"], lost);
    // Only transactions in flight on the lost sessions have failed or are unknown.
    let outcomes = outcomes(&record);
    assert!(outcomes[2] + outcomes[3] <= lost, "{outcomes:?} {}", stage["errors"]);
    assert!(stage["schedule"]["intended"].as_u64().unwrap() >= outcomes[0], "{stage}");
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    // The time without success is reported with the error that occurred.
    let crashed = stage["errors"].as_array().unwrap();
    assert!(crashed.iter().any(|error| error["without_success_s"].as_f64() > Some(0.0)), "{stage}");
    CommandOutput::run(&mut server_command("verify rows")).expect(0);
    CommandOutput::run(&mut server_command("server stop")).expect(0);
}

#[test]
fn thresholds_determine_the_exit_code() {
    let database = prepare_database("thresholds");
    let line = |rest: &str| format!("{WORK} --transactions 200 {rest}");
    let rejected = database.riops(&line("--threshold p99<1h --threshold errors=0")).expect(2);
    assert!(rejected.stderr.contains("invalid threshold"), "{}", rejected.stderr);
    let met = database.riops(&line("--threshold p99<100s --threshold errors=0")).expect(0).json();
    assert_eq!(met["thresholds"][0]["held"], true);
    assert!(met["thresholds"][0]["found"].as_f64().unwrap() > 0.0);
    database.riops(&line("--threshold riops>1e12")).expect(99);
    database.riops(&line("--threshold response.p99<1us --rate 2000")).expect(99);
    let aborted = database
        .riops("run rows --batch 5 --duration 1h --warmup 0 --interval 100ms --threshold riops>1e12 --abort-on-threshold")
        .expect(99);
    assert!(
        aborted.stdout.contains("BREACHED: riops>1e12") && aborted.stdout.contains("ended the run")
    );
    // An invalid result takes precedence over a breached threshold.
    let invalid = "--on-error continue --threshold riops>1e12 --update-percent 100";
    database
        .connect()
        .execute("alter table riops.rows_0001 add check (scratch < 0) not valid")
        .unwrap();
    database.riops(&line(invalid)).expect(3);
}

#[test]
fn every_protocol_and_rate_option_processes_the_same_number_of_rows() {
    let database = prepare_database("protocols");
    for options in [
        "--protocol simple",
        "--protocol extended",
        "--pipeline 8",
        "--protocol simple --pipeline 4",
        "--reconnect 20",
        "--poisson --rate 3000",
        "--rate 3000 --latency-limit 1us",
        "--index-only --protocol extended",
    ] {
        let line = format!("{WORK} --transactions 300 --update-percent 20 {options}");
        let record = database.riops(&line).expect(0).json();
        let stage = &record["stages"][0];
        assert_eq!(stage["transactions"], 300, "{options}");
        assert_eq!(stage["rows"], 1500, "{options}");
        assert_eq!(record["verdict"]["valid"], true, "{options}: {}", record["verdict"]);
        match options {
            "--reconnect 20" => assert!(stage["connect_us"]["count"].as_u64() >= Some(10)),
            "--rate 3000 --latency-limit 1us" => assert_eq!(stage["late"]["transactions"], 300),
            "--poisson --rate 3000" => assert_eq!(stage["response_us"]["count"], 300),
            _ => {}
        }
    }
}

#[test]
fn doctor_reports_on_the_server_and_the_client() {
    let database = database("doctor");
    let text = database.riops("doctor").expect(0).stdout;
    for expected in ["server", "round trip", "settings", "shared_buffers = 128 MB", "note  "] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json = database.riops("doctor --output json").expect(0).json();
    assert!(json["round_trip_min_us"].as_f64().unwrap() > 0.0);
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert_eq!(json["client"]["cpus"], cpus);
    assert!(
        json["findings"].as_array().unwrap().iter().any(|finding| finding["about"] == "machine")
    );
    let client =
        CommandOutput::run(&mut crate::fixture::command("doctor --client -t 300ms --output json"));
    let client = client.expect(0).json();
    assert!(client["transactions_per_s"].as_f64().unwrap() > 0.0);
    assert!(client["cpu_us_per_transaction"].as_f64().unwrap() > 0.0);
}
