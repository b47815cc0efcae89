//! The workload `oltp` on a real server, compared with sysbench.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::crash::kill;
use crate::fixture::{CommandOutput, Database, database, program, start_until, sysbench_server};

const SMALL: &str = "prepare oltp --tables 2 --table-size 1000 --seed 1";
const SHORT: &str = "--transactions 60 --warmup 0 --interval 100ms -c 3 --seed 5 --output json";

/// Runs sysbench on this database.
pub(crate) fn sysbench(path: &Path, database: &Database, arguments: &str) -> CommandOutput {
    let mut command = Command::new(path);
    let ran = CommandOutput::run(
        command.args(arguments.split_whitespace()).args(sysbench_server(database)),
    );
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    ran
}

fn assert_verified(database: &Database) {
    let verified = database.riops("verify oltp").expect(0);
    assert!(!verified.stdout.contains("WRONG"), "{}", verified.stdout);
}

#[test]
fn every_test_runs_and_passes_verification() {
    let database = database("oltp_tests");
    database.riops(SMALL).expect(0);
    for (test, reads, writes) in [
        ("read-write", 14, 4),
        ("oltp_read_only", 14, 0),
        ("write-only", 0, 4),
        ("point-select", 1, 0),
        ("update-index", 0, 1),
        ("update-non-index", 0, 1),
        ("insert", 0, 1),
        ("multi-insert", 0, 10),
        ("multi-value-insert --batch-insert-count 50", 0, 1),
        ("random-points", 1, 0),
        ("random-ranges", 1, 0),
        ("sequential-scan", 1, 0),
        ("primarykey-scan", 1, 0),
        ("index-scan", 1, 0),
        ("sum-scan", 1, 0),
        ("join", 1, 0),
    ] {
        let run = database.riops(&format!("run oltp {test} {SHORT}")).expect(0).json();
        let stage = &run["stages"][0];
        assert_eq!((&run["verdict"]["valid"], &stage["transactions"]), (&true.into(), &60.into()));
        let retries = stage["retries"].as_u64().unwrap();
        let queries = &stage["queries"];
        if retries == 0 {
            assert_eq!(queries["read"], reads * 60, "{test}");
            let changes = queries["write"].as_u64().unwrap();
            // An update does not find a row that another session has just replaced.
            assert!(changes <= writes * 60 && changes + 5 > writes * 60, "{test}: {changes}");
        }
        assert!(!run["accesses"].as_array().unwrap().is_empty(), "{test}");
    }
    assert_verified(&database);
    database.riops(&format!("run oltp delete {SHORT}")).expect(0);
    assert_verified(&database);
    // Rows are missing now, which makes a run that reads them invalid.
    let missing =
        database.riops("run oltp point-select -c 1 --transactions 20000 --warmup 0").expect(3);
    assert!(missing.stdout.contains("loaded rows are missing"), "{}", missing.stdout);
    let cleaned = database.riops("cleanup oltp").expect(0);
    assert!(cleaned.stdout.contains("dropped 2 tables"), "{}", cleaned.stdout);
}

/// Makes the planner prefer parallel index scans in this database.
pub(crate) fn prefer_parallel_plans(database: &Database) {
    let settings = [
        "min_parallel_table_scan_size = 0",
        "min_parallel_index_scan_size = 0",
        "parallel_setup_cost = 0",
        "parallel_tuple_cost = 0",
        "max_parallel_workers_per_gather = 2",
        "enable_seqscan = off",
        "enable_bitmapscan = off",
    ];
    let name = &database.conninfo.database;
    for setting in settings {
        database.connect().execute(&format!("alter database {name} set {setting}")).unwrap();
    }
}

#[test]
fn no_plan_is_parallel_even_if_the_planner_prefers_it() {
    let database = database("oltp_parallel");
    database.riops("prepare oltp --tables 1 --table-size 20000").expect(0);
    prefer_parallel_plans(&database);
    let explain = "explain select sum(k) from riops.sbtest1 where id between 1 and 10000";
    let plan = database.connect().query(explain).unwrap();
    let plan: String = plan.into_iter().flatten().flatten().collect();
    assert!(plan.contains("Gather") && plan.contains("Parallel Index Scan"), "{plan}");
    for test in ["read-only", "sum-scan", "index-scan", "random-points", "sequential-scan"] {
        let run = database.riops(&format!("run oltp --test {test} {SHORT}")).expect(0).json();
        assert_eq!(run["verdict"]["valid"], true, "{test}");
        let accesses = run["accesses"].as_array().unwrap();
        assert!(!accesses.is_empty(), "{test}");
        for access in accesses {
            let plan = access["found"].as_str().unwrap();
            assert!(!plan.contains("Gather") && !plan.contains("Parallel"), "{test}: {plan}");
        }
    }
}

#[test]
fn every_execution_option_passes_verification() {
    let database = database("oltp_options");
    database.riops(SMALL).expect(0);
    for options in [
        "",
        "--pipeline",
        "--skip-trx",
        "--protocol simple",
        "--protocol extended",
        "--protocol simple --pipeline",
        "--protocol simple --skip-trx=on",
        "--rand-type special",
        "--reconnect 7",
    ] {
        let run = database.riops(&format!("run oltp {options} {SHORT}")).expect(0).json();
        assert_eq!(run["verdict"]["valid"], true, "{options}");
        assert_eq!(run["stages"][0]["transactions"], 60, "{options}");
    }
    assert_verified(&database);
}

#[test]
fn statements_that_fail_at_their_commit_count_once() {
    let database = database("oltp_deferred");
    database.riops(SMALL).expect(0);
    // Every seventh commit fails after its statement was completed.
    let triggers = "create sequence commits;
        create function fail_at_commit() returns trigger language plpgsql as $$
          begin
            if nextval('public.commits') % 7 = 0 then
              raise exception 'commit refused' using errcode = '40001';
            end if;
            return null;
          end $$;
        create constraint trigger refuse after insert or update or delete on riops.sbtest1
          deferrable initially deferred for each row execute function fail_at_commit();
        create constraint trigger refuse after insert or update or delete on riops.sbtest2
          deferrable initially deferred for each row execute function fail_at_commit()";
    database.connect().execute(triggers).unwrap();
    for options in ["write-only", "update-index", "write-only --protocol simple"] {
        let run = database.riops(&format!("run oltp {options} --skip-trx {SHORT}")).expect(0);
        let run = run.json();
        assert_eq!(run["verdict"]["valid"], true, "{options}: {}", run["verdict"]);
        assert!(run["stages"][0]["retries"].as_u64().unwrap() > 0, "{options}");
    }
    assert_verified(&database);
}

#[test]
fn rejects_options_that_contradict_the_dataset_or_each_other() {
    let database = database("oltp_contradictions");
    database.riops("run oltp").expect(1).stderr_contains("riops prepare oltp");
    database.riops(SMALL).expect(0);
    database.riops("run oltp --tables 3").expect(2).stderr_contains("--tables 2, not 3");
    database
        .riops("run oltp --table_size=1001")
        .expect(2)
        .stderr_contains("--table-size 1000, not 1001");
    database.riops("run oltp --range-size 1001").expect(2).stderr_contains("--range-size 1001");
    database
        .riops("run oltp --pipeline --skip-trx")
        .expect(2)
        .stderr_contains("cannot be combined");
    database.riops("run oltp --test nonsense").expect(2).stderr_contains("nonsense");
    database.riops("run oltp --spread here").expect(2).stderr_contains("--spread");
    database.riops("run oltp --percentile 0.5").expect(2).stderr_contains("--percentile");
    let unfit = database.riops("run rows --output sysbench --prepare --rows 100").expect(2);
    unfit.stderr_contains("invalid value 'sysbench' for '--output <FORM[=FILE]>'");
    database
        .riops("prepare oltp --range-key-partitioning")
        .expect(2)
        .stderr_contains("is not supported by PostgreSQL");
    let unchanged = database.riops(&SMALL.replace(" --seed 1", "")).expect(0);
    assert!(unchanged.stdout.contains("nothing to do"), "{}", unchanged.stdout);
}

#[test]
fn sysbench_variables_set_options_and_riops_variables_override_them() {
    let database = database("oltp_variables");
    let with = |line: &str, own: &[(&str, &str)]| {
        let mut command = database.command(line);
        command.envs([
            ("SYSBENCH_TABLES", "2"),
            ("SYSBENCH_TABLE_SIZE", "500"),
            ("SYSBENCH_THREADS", "3"),
            ("SYSBENCH_TIME", "1"),
            ("SYSBENCH_WARMUP", "0"),
            ("SYSBENCH_RANGE_SELECTS", "false"),
            ("SYSBENCH_POINT_SELECTS", "2"),
            ("SYSBENCH_INDEX_UPDATES", "3"),
            ("SYSBENCH_NON_INDEX_UPDATES", "4"),
        ]);
        // The server is given in parts, as in the documented container deployment.
        command.env_remove("RIOPS_DATABASE").env("PG_HOST", &database.state.socket_dir);
        command.env("PG_PORT", database.state.port.to_string());
        command.env("PG_USER", "postgres").env("PG_DB", &database.conninfo.database);
        command.envs(own.iter().copied());
        CommandOutput::run(&mut command)
    };
    with("prepare oltp", &[]).expect(0);
    let run = with("run oltp --output json", &[("RIOPS_POINT_SELECTS", "5")]).expect(0).json();
    let plan = &run["plan"];
    assert_eq!((&plan["sessions"], &plan["stop"]["duration_s"]), (&3.into(), &1.0.into()));
    assert_eq!(
        (&plan["oltp"]["point_selects"], &plan["oltp"]["index_updates"]),
        (&5.into(), &3.into())
    );
    assert_eq!(plan["oltp"]["range_selects"], false);
    assert_eq!(run["target"]["dataset"]["oltp"]["table_size"], 500);
    let typed = with("run oltp -c 1 --transactions 5 --output json", &[]).expect(0).json();
    assert_eq!(
        (&typed["plan"]["sessions"], &typed["stages"][0]["transactions"]),
        (&1.into(), &5.into())
    );
    let cleaned = with("cleanup oltp", &[]).expect(0);
    assert!(cleaned.stdout.contains("dropped 2 tables"));
}

/// Removes the statistics of the statements on this database.
pub(crate) fn reset_statements(database: &Database) {
    database.value(
        "select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0)",
    );
}

/// Returns the calls of each statement of the tests since [`reset_statements`]. The texts are normalized. BEGIN and
/// COMMIT are excluded: `pg_stat_statements` does not count them reliably if they are prepared.
pub(crate) fn statements(database: &Database) -> BTreeMap<String, f64> {
    let rows = database
        .connect()
        .query(
            "select query, sum(calls) from pg_stat_statements
              where dbid = (select oid from pg_database where datname = current_database())
              group by query",
        )
        .unwrap();
    let mut calls: BTreeMap<String, f64> = BTreeMap::new();
    for row in rows {
        let text = row[0].clone().unwrap().to_lowercase();
        let text: String = text.split_whitespace().collect();
        let text = text.replace("public.", "");
        // A text without constants has parameters instead, except after the server has discarded it.
        let is_kept = |c: &char| !c.is_ascii_digit() && *c != '$';
        let kind: String = text.chars().filter(is_kept).collect();
        let known = [
            "selectcfrom",
            "selectsum(k)fromsbtestwhere",
            "selectdistinct",
            "selectid,k,c,pad",
            "selectcount(k)",
            "updatesbtest",
            "deletefromsbtest",
            "insertintosbtest",
        ];
        if known.iter().any(|known| kind.starts_with(known)) {
            *calls.entry(kind).or_default() += row[1].as_ref().unwrap().parse::<f64>().unwrap();
        }
    }
    calls
}

/// Returns the calls of each statement per DELETE, because every transaction has one DELETE.
fn statements_per_transaction(database: &Database) -> BTreeMap<String, String> {
    let calls = statements(database);
    let transactions = calls["deletefromsbtestwhereid="];
    calls.into_iter().map(|(kind, calls)| (kind, format!("{:.2}", calls / transactions))).collect()
}

#[test]
fn sends_the_same_statements_as_sysbench_and_shares_its_tables() {
    let Some(path) = program("sysbench") else { return };
    let database = database("oltp_sysbench");
    database.connect().execute("create extension if not exists pg_stat_statements").unwrap();
    // One session: two can replace the same row, and the INSERT of the second fails in either program.
    let options = "--tables=2 --table_size=1000 --threads=1 --rand-type=uniform";
    sysbench(&path, &database, &format!("oltp_read_write {options} prepare"));
    database.riops("run oltp").expect(1).stderr_contains("--schema public");
    // riops adopts the tables of sysbench, measures and verifies them, and never drops them.
    let ours = "run oltp --schema public --transactions 60 --warmup 0 -c 1 --seed 5 --output json";
    reset_statements(&database);
    let run = database.riops(ours).expect(0).stderr_contains("found 2 sysbench tables").json();
    let dataset = &run["target"]["dataset"]["oltp"];
    assert_eq!((&dataset["tables"], &dataset["table_size"]), (&2.into(), &1000.into()));
    assert_eq!((&dataset["adopted"], &run["verdict"]["valid"]), (&true.into(), &true.into()));
    let sent_by_riops = statements_per_transaction(&database);
    assert_verified(&database);
    reset_statements(&database);
    let line = format!("oltp_read_write {options} --events=60 --time=0 run");
    let report = sysbench(&path, &database, &line).stdout;
    let sent_by_sysbench = statements_per_transaction(&database);
    assert_eq!(sent_by_riops, sent_by_sysbench);
    assert_eq!(sent_by_riops.len(), 9, "{sent_by_riops:?}");
    // The counts in both reports are the same, too.
    let queries = &run["stages"][0]["queries"];
    for (kind, count) in [("read", 14), ("write", 4), ("other", 2)] {
        assert_eq!(queries[kind], count * 60, "{queries}");
        let line =
            report.lines().find(|line| line.trim().starts_with(&format!("{kind}:"))).unwrap();
        assert_eq!(
            line.split_whitespace().last(),
            Some((count * 60).to_string().as_str()),
            "{report}"
        );
    }
    // Sysbench has changed the tables, so the next run reads their state again.
    database.riops(ours).expect(0);
    let nothing = database.riops("cleanup oltp").expect(0);
    assert!(nothing.stdout.contains("did not drop them"), "{}", nothing.stdout);
    assert_eq!(database.value("select count(*) from public.sbtest2").as_deref(), Some("1000"));
    sysbench(&path, &database, &format!("oltp_read_write {options} cleanup"));
    // Sysbench also runs on the tables of riops.
    database.riops(&format!("{SMALL} --schema public")).expect(0);
    sysbench(&path, &database, &format!("oltp_read_write {options} --events=60 --time=0 run"));
    assert_eq!(database.value("select count(*) from public.sbtest2").as_deref(), Some("1000"));
    let dropped = database.riops("cleanup oltp").expect(0);
    assert!(dropped.stdout.contains("dropped 2 tables"), "{}", dropped.stdout);
}

#[test]
fn sysbench_output_has_the_exact_format_of_sysbench() {
    let Some(path) = program("sysbench") else { return };
    let database = database("oltp_shape");
    database.riops(&format!("{SMALL} --schema public")).expect(0);
    let options =
        "--tables=2 --table_size=1000 --threads=2 --time=2 --report-interval=1 --rand-seed=7";
    let theirs = sysbench(&path, &database, &format!("oltp_read_write {options} run")).stdout;
    let ours = database
        .riops("run oltp --schema public --threads 2 --time 2 --warmup 0 --rand-seed 7 --output sysbench")
        .expect(0)
        .stdout;
    // Only numbers, their padding and the first line may differ.
    let shape = |text: &str| -> Vec<String> {
        let digits = |line: &str| {
            let mut out = String::new();
            for c in line.chars() {
                let c = if c.is_ascii_digit() { '#' } else { c };
                if !((c == '#' || c == ' ') && out.ends_with(c)) {
                    out.push(c);
                }
            }
            out
        };
        let mut lines: Vec<String> = text.lines().skip(1).map(digits).collect();
        // sysbench prints the line of the last interval only if it is still running then.
        lines.dedup_by(|line, previous| line.starts_with('[') && line == previous);
        lines
    };
    let (theirs, ours) = (shape(&theirs), shape(&ours));
    let same_seed = |line: &String| !line.starts_with("Initializing random");
    let without_seed = |lines: Vec<String>| lines.into_iter().filter(same_seed).collect::<Vec<_>>();
    assert_eq!(without_seed(ours), without_seed(theirs));
}

#[test]
fn retries_deadlocks_and_reports_their_cost() {
    let database = database("oltp_deadlocks");
    database.riops("prepare oltp --table-size 10").expect(0);
    database
        .connect()
        .execute("alter database oltp_deadlocks set deadlock_timeout = '20ms'")
        .unwrap();
    let line = "run oltp write-only --index-updates 8 --non-index-updates 8 --delete-inserts 0 -c 6 \
                --transactions 600 --warmup 0 --max-retries 1000 --interval 100ms";
    let run = database.riops(&format!("{line} --output json")).expect(0).json();
    let stage = &run["stages"][0];
    let deadlocks = &stage["errors"][0];
    assert_eq!((&deadlocks["sqlstate"], &run["verdict"]["valid"]), (&"40P01".into(), &true.into()));
    assert_eq!(deadlocks["count"], deadlocks["retried"]);
    assert_eq!(deadlocks["count"], stage["retries"]);
    assert!(deadlocks["attempts_s"].as_f64().unwrap() > 0.0);
    let attempts = stage["attempt_us"]["count"].as_u64().unwrap();
    assert_eq!(attempts, 600 + stage["retries"].as_u64().unwrap());
    // The service time of a transaction includes all its attempts.
    assert!(stage["service_us"]["max"].as_f64() >= stage["attempt_us"]["max"].as_f64());
    let text = database.riops("runs show last").expect(0).stdout;
    assert!(text.contains("deadlocks (") && text.contains("deadlock_timeout"), "{text}");
    assert_verified(&database);
}

#[test]
fn concurrent_replacement_of_a_row_is_not_a_failure() {
    let database = database("oltp_replaced");
    database.riops("prepare oltp --table-size 2").expect(0);
    let line = "run oltp write-only --index-updates 0 --non-index-updates 0 -c 8 --transactions 400 \
                --warmup 0 --max-retries 1000";
    for options in ["", "--pipeline", "--protocol simple"] {
        let run = database.riops(&format!("{line} {options} --output json")).expect(0).json();
        assert_eq!(run["stages"][0]["transactions"], 400, "{options}");
    }
    assert_verified(&database);
}

#[test]
fn client_generated_ids_continue_below_the_existing_ids() {
    let database = database("oltp_ids");
    database.riops("prepare oltp --tables 2 --table-size 100 --auto-inc=off").expect(0);
    for test in ["insert", "multi-insert", "multi-value-insert --batch-insert-count 7"] {
        database.riops(&format!("run oltp {test} {SHORT}")).expect(0);
    }
    assert_verified(&database);
    let negative = "select sum(n) from (select count(*) as n from riops.sbtest1 where id < 0
                    union all select count(*) from riops.sbtest2 where id < 0) as all_ids";
    assert_eq!(database.value(negative).as_deref(), Some("1080"));
}

#[test]
fn accepts_and_counts_duplicate_rows_without_a_primary_key() {
    let database = database("oltp_duplicates");
    let options = "--tables 1 --table-size 300";
    database.riops(&format!("prepare oltp {options} --secondary")).expect(0);
    database.riops(&format!("run oltp {SHORT}")).expect(0);
    assert_verified(&database);
    database.riops("cleanup oltp").expect(0);
    // The duplicates that remain if two sessions replace a row at the same time.
    let twice = "create table public.sbtest1 (id serial, k integer, c char(120), pad char(60));
        create index xid_1 on public.sbtest1 (id);
        create index k_1 on public.sbtest1 (k);
        insert into public.sbtest1
        select id, id, repeat('c', 119), repeat('p', 59) from generate_series(1, 300) as id, generate_series(1, 2)";
    database.connect().execute(twice).unwrap();
    for test in ["point-select", "read-only", "update-index", "read-write", "--skip-trx=on"] {
        let line = format!("run oltp {test} --schema public {SHORT}");
        let run = database.riops(&line).expect(0).json();
        assert_eq!(run["target"]["dataset"]["oltp"]["table_size"], 300, "{test}");
        assert_verified(&database);
    }
}

#[test]
fn verification_fails_after_a_killed_run_until_the_next_run_counts_the_rows() {
    let database = database("oltp_killed");
    database.riops(SMALL).expect(0);
    let mut child =
        start_until(&mut database.command("run oltp update-index -t 1h --warmup 0"), " tx/s");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    let unknown = database.riops("verify oltp").expect(3);
    assert!(
        unknown.stdout.contains("unknown (a run did not report its changes"),
        "{}",
        unknown.stdout
    );
    let next = database.riops(&format!("run oltp {SHORT}")).expect(0);
    assert_eq!(next.stderr_contains("new baseline").json()["verdict"]["valid"], true);
    assert_verified(&database);
    let tampered = "delete from riops.sbtest2 where id = 7;
                    update riops.sbtest1 set c = left(c, 118) where id = 3";
    database.connect().execute(tampered).unwrap();
    let missed = database.riops("verify oltp").expect(3);
    for wrong in
        ["WRONG  rows in the loaded id range", "WRONG  rows whose texts are not 119 and 59"]
    {
        assert!(missed.stdout.contains(wrong), "{}", missed.stdout);
    }
}

#[test]
fn reports_the_usable_size_of_tables_with_missing_rows() {
    let Some(path) = program("sysbench") else { return };
    let database = database("oltp_gaps");
    sysbench(&path, &database, "oltp_read_write --tables=1 --table_size=100 prepare");
    database.connect().execute("delete from public.sbtest1 where id = 61").unwrap();
    let line = format!("run oltp point-select --schema public {SHORT}");
    database.riops(&line).expect(2).stderr_contains("--table-size 60");
    let run = database.riops(&format!("{line} --table-size 60")).expect(0).json();
    assert_eq!(run["target"]["dataset"]["oltp"]["table_size"], 60);
    database.riops("run oltp --schema nowhere").expect(1).stderr_contains("add --schema public");
}
