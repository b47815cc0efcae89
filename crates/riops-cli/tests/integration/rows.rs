//! `prepare`, `run`, `verify` and `cleanup` of the workload `rows`.

use riops::host::Interrupt;
use riops::server::Connection;

use crate::fixture::{CommandOutput, Database, database, start_until, tcp_url};

const SHORT: &str = "--transactions 200 --warmup 0 --interval 100ms";

fn prepare_database(name: &str, options: &str) -> Database {
    let database = database(name);
    database.riops(&format!("prepare rows {options}")).expect(0);
    database
}

#[test]
fn keys_are_exactly_1_to_rows_for_every_batch_size_and_order() {
    let database = database("remainders");
    for options in [
        "--rows 10 --batch 3",
        "--rows 1 --batch 1000",
        "--rows 1003 --batch 100 --order key",
        "--rows 1003 --batch 100 --order hash",
        "--rows 1003 --batch 100 --order mykey%7 --primary-key",
        "--rows 5 --batch 5 --tables 3 --filler 100",
    ] {
        database.riops(&format!("prepare rows --recreate --connections 3 {options}")).expect(0);
        let verified = database.riops("verify rows").expect(0);
        assert!(!verified.stdout.contains("WRONG"), "{options}:\n{}", verified.stdout);
        let distinct =
            database.value("select count(distinct mykey) = count(*) from riops.rows_0001");
        assert_eq!(distinct.as_deref(), Some("t"), "{options}");
    }
}

#[test]
fn rows_are_scattered_by_default_and_sorted_with_order_key() {
    let database = prepare_database("correlation", "--rows 20000 --connections 1");
    let correlation = |database: &Database| -> f64 {
        database
            .value("select correlation from pg_stats where tablename = 'rows_0001' and attname = 'mykey'")
            .unwrap()
            .parse()
            .unwrap()
    };
    assert!(correlation(&database).abs() < 0.05);
    database.riops("prepare rows --rows 20000 --connections 1 --order key --recreate").expect(0);
    assert!(correlation(&database) > 0.999);
}

#[test]
fn keeps_an_identical_dataset_and_requires_recreate_for_another() {
    let database = prepare_database("same_dataset", "--rows 500 --seed 7");
    let id = || database.value("select id from riops.dataset");
    let first = id();
    let again = database.riops("prepare rows --rows 500").expect(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
    assert_eq!(id(), first);
    database
        .riops("prepare rows --rows 600")
        .expect(2)
        .stderr_contains("--rows 500, not 600")
        .stderr_contains("--recreate");
    database.riops("prepare rows --rows 500 --seed 8").expect(2).stderr_contains("--seed 7, not 8");
    assert_eq!(id(), first);
    database.riops("prepare rows --rows 600 --recreate").expect(0);
    assert_ne!(id(), first);
}

#[test]
fn a_run_measures_reads_and_stores_the_record() {
    let database = prepare_database("reads", "--rows 5000");
    let run = database
        .riops(&format!(
            "run rows {SHORT} -c 3 -j 2 --batch 100 --output json --label one --tag a=b --seed 5"
        ))
        .expect(0);
    let record = run.json();
    assert_eq!(record["schema"], 1);
    assert_eq!(record["status"], "done");
    assert_eq!(record["verdict"]["valid"], true);
    assert_eq!(
        (&record["label"], &record["tags"]["a"], &record["plan"]["seed"]),
        (&"one".into(), &"b".into(), &5.into())
    );
    let stage = &record["stages"][0];
    let transactions = stage["transactions"].as_u64().unwrap();
    assert!(transactions > 0);
    assert_eq!(stage["rows"].as_u64(), Some(transactions * 100));
    assert_eq!(stage["service_us"]["count"].as_u64(), Some(transactions));
    let series: u64 = stage["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["transactions"].as_u64().unwrap())
        .sum();
    assert_eq!(series, transactions);
    assert_eq!(record["accesses"].as_array().unwrap().len(), 3);
    assert!(
        record["accesses"]
            .as_array()
            .unwrap()
            .iter()
            .all(|access| access["held"] == true && access["sessions"] == 3)
    );
    assert_eq!(record["target"]["settings"]["fsync"], "on");
    let shown = database.riops("runs show last --output json").expect(0);
    assert_eq!(shown.json(), record);
}

#[test]
fn the_record_shows_how_the_rate_changed() {
    let database = prepare_database("steadiness", "--rows 5000");
    let line = "run rows --batch 10 -c 1 --duration 1500ms --warmup 0 --interval 100ms";
    let run = database.riops(&format!("{line} --output json")).expect(0).json();
    let steadiness = &run["stages"][0]["steadiness"];
    assert!(steadiness["intervals"].as_u64().unwrap() >= 10, "{steadiness}");
    assert!(steadiness["steady"].is_boolean(), "{steadiness}");
    for field in ["first_fifth_rows_per_s", "last_fifth_transactions_per_s"] {
        assert!(steadiness[field].as_f64().unwrap() > 0.0, "{field}: {steadiness}");
    }
    let few = "run rows --transactions 50 -c 1 --warmup 0 --output json";
    let few = database.riops(few).expect(0).json();
    assert!(few["stages"][0].get("steadiness").is_none());
}

#[test]
fn verifies_the_updates_in_the_database_after_the_run() {
    let database = prepare_database("updates", "--rows 3000 --tables 2");
    for (options, percent) in [
        ("--update-percent 100", 100),
        ("--update-percent 42 --update-batch 7", 42),
        ("--update-percent 20 --table-per-session", 20),
    ] {
        let run = database
            .riops(&format!("run rows {SHORT} -c 4 --batch 20 {options} --output json"))
            .expect(0);
        let record = run.json();
        let checks = record["checks"].as_array().unwrap();
        assert!(checks.iter().all(|check| check["held"] == true), "{checks:?}");
        let operations = record["stages"][0]["operations"].as_array().unwrap();
        let acknowledged = |name: &str| -> u64 {
            operations
                .iter()
                .filter(|operation| operation["name"] == name)
                .map(|operation| operation["acknowledged_rows"].as_u64().unwrap())
                .sum()
        };
        let (read, updated) = (acknowledged("read"), acknowledged("update"));
        let share = 100.0 * updated as f64 / (read + updated) as f64;
        // Each of the four sessions is off by less than one batch.
        assert!(
            (share - f64::from(percent)).abs() < 100.0 * 4.0 * 20.0 / (read + updated) as f64,
            "{share}"
        );
    }
    database.riops("verify rows").expect(0);
}

#[test]
fn verify_detects_a_lost_row_and_a_lost_update() {
    let database = prepare_database("lost", "--rows 1000");
    let mut connection = database.connect();
    connection.execute("update riops.rows_0001 set scratch = scratch - 1 where mykey = 5").unwrap();
    let verified = database.riops("verify rows").expect(3);
    assert!(
        verified
            .stdout
            .contains("WRONG  increments of scratch in riops.rows_0001: expected 0, found -1"),
        "{}",
        verified.stdout
    );
    connection.execute("delete from riops.rows_0001 where mykey = 5").unwrap();
    let verified = database.riops("verify rows").expect(3);
    assert!(
        verified.stdout.contains("WRONG  rows of riops.rows_0001: expected 1000, found 999"),
        "{}",
        verified.stdout
    );
    // A run detects the loss as well: its replies have too few rows.
    let run = database.riops(&format!("run rows {SHORT} --batch 1000")).expect(3);
    assert!(
        run.stdout.contains("NO: ") && run.stdout.contains("fewer or more rows"),
        "{}",
        run.stdout
    );
}

#[test]
fn index_only_runs_with_updates_have_the_expected_access_paths() {
    let database = prepare_database("index_only", "--rows 3000 --primary-key");
    let run = database
        .riops(&format!(
            "run rows {SHORT} --batch 50 --index-only --update-percent 10 --output json"
        ))
        .expect(0);
    let record = run.json();
    let expected: Vec<_> = record["accesses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|access| access["expected"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        expected.iter().any(|path| path
            == "Index Only Scan using rows_0001_pkey on rows_0001, heap fetches allowed")
    );
    assert!(expected.iter().any(|path| path.starts_with("Update on rows_0001")));
}

#[test]
fn a_missing_index_stops_the_run_before_the_measurement_and_shows_the_plan() {
    let database = prepare_database("no_index", "--rows 2000");
    database.connect().execute("drop index riops.rows_0001_asc_mykey").unwrap();
    let run = database.riops("run rows --duration 1h --batch 10").expect(3);
    assert_eq!(run.stdout, "");
    run.stderr_contains("expected access path (Index Scan using rows_0001_asc_mykey")
        .stderr_contains("Seq Scan on rows_0001");
}

#[test]
fn a_dataset_with_a_missing_table_is_rejected() {
    let database = prepare_database("missing_table", "--rows 500 --tables 2");
    database.connect().execute("drop table riops.rows_0001").unwrap();
    for line in ["run rows --batch 5", "prepare rows --rows 500 --tables 2", "verify rows"] {
        database
            .riops(line)
            .expect(1)
            .stderr_contains("\"riops.rows_0001\" is missing")
            .stderr_contains("--recreate");
    }
    database.riops("prepare rows --rows 500 --tables 2 --recreate").expect(0);
    database.riops("verify rows").expect(0);
    // Nothing is left to keep.
    database.connect().execute("drop table riops.rows_0001, riops.rows_0002").unwrap();
    database.riops("run rows --batch 5").expect(1).stderr_contains("is missing");
    database.riops("prepare rows --rows 500 --tables 2").expect(0);
    database.riops("verify rows").expect(0);
}

#[test]
fn a_plan_change_during_the_run_makes_it_invalid_and_shows_both_plans() {
    let database = prepare_database("plan_change", "--rows 2000");
    let run = &mut database.command("run rows --duration 2s --warmup 0 -c 1 --batch 10");
    let child = start_until(run, "measuring");
    // The session replans as soon as the index is dropped. Before the run, the access path was as expected.
    database.connect().execute("drop index riops.rows_0001_asc_mykey").unwrap();
    let run = CommandOutput::from(child.wait_with_output().unwrap()).expect(3);
    assert!(
        run.stdout.contains("plan before the run:") && run.stdout.contains("Index Scan using"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("Seq Scan on rows_0001"), "{}", run.stdout);
}

#[test]
fn a_run_uses_the_registered_dataset_and_rejects_contradicting_options() {
    let database = prepare_database("contradiction", "--rows 700 --tables 2");
    database.riops(&format!("run rows {SHORT} --rows 700 --batch 5")).expect(0);
    database
        .riops(&format!("run rows {SHORT} --rows 800 --batch 5"))
        .expect(2)
        .stderr_contains("--rows 700, not 800");
    database
        .riops(&format!("run rows {SHORT}"))
        .expect(2)
        .stderr_contains("--batch 1000 exceeds the 700 rows");
}

#[test]
fn a_run_creates_the_dataset_only_with_the_prepare_option() {
    let database = database("no_prepare");
    database.riops(&format!("run rows {SHORT}")).expect(1).stderr_contains("riops prepare rows");
    assert_eq!(
        database.value("select count(*) from pg_namespace where nspname = 'riops'").as_deref(),
        Some("0")
    );
    database.riops(&format!("run rows {SHORT} --prepare --rows 1000")).expect(0);
    assert_eq!(database.value("select count(*) from riops.rows_0001").as_deref(), Some("1000"));
}

#[test]
fn cleanup_drops_only_objects_created_by_prepare() {
    let database = prepare_database("cleaned", "--rows 100 --tables 3");
    let mut connection = database.connect();
    connection.execute("create table riops.mine as select 1 as one; create table public.rows_0001 as select 1 as one").unwrap();
    let cleaned = database.riops("cleanup rows").expect(0);
    assert_eq!(cleaned.stdout, "dropped 3 tables\n");
    let left = connection.query("select schemaname || '.' || tablename from pg_tables where schemaname in ('riops', 'public') order by 1").unwrap();
    let left: Vec<_> = left.into_iter().flatten().flatten().collect();
    assert_eq!(left, ["public.rows_0001", "riops.mine"]);
    connection.execute("drop table riops.mine").unwrap();
    database.riops("prepare rows --rows 100").expect(0);
    database.riops("cleanup rows").expect(0);
    assert_eq!(
        database.value("select count(*) from pg_namespace where nspname = 'riops'").as_deref(),
        Some("0")
    );
    assert!(database.riops("cleanup rows").expect(0).stdout.contains("nothing dropped"));
}

#[test]
fn a_table_not_created_by_riops_is_neither_dropped_nor_measured() {
    let database = database("foreign_table");
    database
        .connect()
        .execute("create schema riops; create table riops.rows_0001 as select 1 as precious")
        .unwrap();
    for line in [
        "prepare rows --rows 100",
        "prepare rows --rows 100 --recreate",
        "run rows --prepare --duration 1",
    ] {
        database
            .riops(line)
            .expect(1)
            .stderr_contains("\"riops.rows_0001\" exists and was not created by riops");
    }
    database.riops("cleanup rows").expect(0);
    assert_eq!(database.value("select precious from riops.rows_0001").as_deref(), Some("1"));
}

#[test]
fn an_incomplete_dataset_is_not_measured_and_is_recreated_with_its_parameters() {
    let database = prepare_database("unfinished", "--rows 900 --order key");
    database.connect().execute("update riops.dataset set state = 'loading'; delete from riops.rows_0001 where mykey > 500").unwrap();
    database.riops(&format!("run rows {SHORT} --batch 5")).expect(1).stderr_contains("incomplete");
    database.riops("verify rows").expect(1).stderr_contains("incomplete");
    database.riops(&format!("run rows {SHORT} --batch 5 --prepare")).expect(0);
    assert_eq!(database.value("select count(*) || (parameters::json->>'order') from riops.rows_0001, riops.dataset group by parameters").as_deref(), Some("900key"));
}

#[test]
fn concurrent_runs_share_a_dataset_and_prevent_its_replacement() {
    let database = prepare_database("shared_use", "--rows 2000");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    database.riops(
                        "run rows --transactions 3000 --warmup 0 --batch 20 --update-percent 50",
                    )
                })
            })
            .collect();
        for run in runs {
            run.join().unwrap().expect(0);
        }
    });
    database.riops("verify rows").expect(0);
    let mut other = database.connect();
    other.execute("select pg_advisory_lock_shared(1919512432, hashtext('rows'))").unwrap();
    database
        .riops("prepare rows --rows 50 --recreate")
        .expect(1)
        .stderr_contains("another riops is using the dataset");
}

#[test]
fn runs_over_tcp_with_a_password() {
    let database = prepare_database("over_tcp", "--rows 1000");
    let url = tcp_url("over_tcp");
    let run = database
        .riops(&format!("run rows {SHORT} --batch 10 --database {url} --output json"))
        .expect(0);
    assert_eq!(run.json()["verdict"]["valid"], true);
    let password = url.split(['@', ':']).nth(2).unwrap();
    assert!(!run.stdout.contains(password) && !run.stderr.contains(password));
    let wrong = url.replace(password, "wrong");
    database
        .riops(&format!("run rows --database {wrong}"))
        .expect(1)
        .stderr_contains("check the user name and the password");
}

#[test]
fn accepts_the_option_names_of_other_benchmark_tools() {
    let database = prepare_database("option_names", "--rows 1000");
    let run = database
        .riops("run rows --threads=2 --time=0.2 --warmup_time=0 --report_interval=0.1 --batch=10 --output=json --rand_seed=9")
        .expect(0);
    let plan = &run.json()["plan"];
    assert_eq!((&plan["sessions"], &plan["seed"]), (&2.into(), &9.into()));
    let interrupt = Interrupt::new();
    assert!(Connection::open(&database.conninfo, &interrupt).is_ok());
}

#[test]
fn an_index_only_run_is_invalid_if_it_visits_the_table() {
    let database = prepare_database("table_visits", "--rows 3000");
    let mut connection = database.connect();
    connection.execute("alter table riops.rows_0001 set (autovacuum_enabled = off)").unwrap();
    connection.execute("update riops.rows_0001 set scratch = scratch").unwrap();
    database.riops(&format!("run rows {SHORT} --batch 100 --index-only")).expect(0);
    // Updates by another session during the run cause table visits. The plan does not change, but the visits
    // are detected.
    let run =
        &mut database.command("run rows --duration 2s --warmup 0 -c 1 --batch 100 --index-only");
    let child = start_until(run, "measuring");
    connection.execute("update riops.rows_0001 set scratch = scratch").unwrap();
    let run = CommandOutput::from(child.wait_with_output().unwrap()).expect(3);
    assert!(run.stdout.contains("Heap Fetches: "), "{}", run.stdout);
}

#[test]
fn an_invalid_order_is_rejected_before_the_old_dataset_is_dropped() {
    let database = prepare_database("bad_order", "--rows 300");
    database
        .riops("prepare rows --rows 300 --recreate --order nosuchcolumn")
        .expect(1)
        .stderr_contains("nosuchcolumn");
    let mut injection = database.command("prepare rows --rows 300 --recreate");
    injection.args(["--order", "mykey; create table public.injected (); select 1"]);
    CommandOutput::run(&mut injection).expect(1).stderr_contains("cannot insert multiple commands");
    assert_eq!(
        database.value("select count(*) from pg_tables where tablename = 'injected'").as_deref(),
        Some("0")
    );
    database.riops("verify rows").expect(0);
}

#[test]
fn rejects_yugabytedb_options_on_postgresql() {
    let database = prepare_database("not_yugabytedb", "--rows 500");
    for line in [
        "prepare rows --recreate --rows 500 --tablets 3",
        "prepare rows --recreate --rows 500 --index-tablets 3",
        "prepare rows --recreate --rows 500 --non-transactional-writes",
        "run rows --batch 5 --follower-reads 30s",
        "run rows --batch 5 --update-percent 10 --non-transactional-writes",
    ] {
        database.riops(line).expect(2).stderr_contains("is not supported by PostgreSQL");
    }
    // The dataset is unchanged.
    database.riops("verify rows").expect(0);
}

#[test]
fn a_stage_that_fails_to_start_keeps_the_earlier_stages() {
    let database = prepare_database("next_stage", "--rows 2000");
    let run = &mut database.command("run rows --batch 10,20 --duration 1s --warmup 0 -c 1");
    let child = start_until(run, "measuring");
    database
        .connect()
        .execute("alter index riops.rows_0001_asc_mykey rename to elsewhere")
        .unwrap();
    let run = CommandOutput::from(child.wait_with_output().unwrap());
    assert!(run.code == Some(1) || run.code == Some(3), "{:?}", run.code);
    let shown = database.riops("runs show --output json").expect(0).json();
    assert_eq!(shown["stages"].as_array().unwrap().len(), 1);
    assert_eq!(shown["verdict"]["valid"], false);
}

#[test]
fn accepts_a_dataset_registered_by_an_older_version() {
    let database = prepare_database("older_version", "--rows 500");
    database
        .connect()
        .execute("update riops.dataset set parameters = (parameters::jsonb - 'layout' - 'tablets' - 'index_tablets' - 'non_transactional')::text")
        .unwrap();
    let again = database.riops("prepare rows --rows 500").expect(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
    database.riops(&format!("run rows {SHORT} --batch 5 --layout packed")).expect(0);
    database
        .riops(&format!("run rows {SHORT} --batch 5 --layout block"))
        .expect(2)
        .stderr_contains("--layout packed, not block");
}

#[test]
fn a_working_set_leaves_the_other_rows_untouched() {
    let database = database("working_set");
    database.riops("prepare rows --rows 1000 --layout block").expect(0);
    let changed =
        "select coalesce(max(mykey), 0) from riops.rows_0001 where xmin::text::bigint > $x";
    let run =
        "run rows --transactions 60 --warmup 0 --batch 5 --update-percent 100 -c 2 --output json";
    for (options, rows) in [
        ("--working-set 40", 40),
        ("--working-set 40 --loop server", 40),
        ("--layout block --working-set 320kB", 40),
    ] {
        let loaded = database.value("select txid_current()").unwrap();
        let record = database.riops(&format!("{run} {options}")).expect(0).json();
        assert_eq!(record["plan"]["rows"]["working_set"], rows, "{options}");
        let largest: u64 =
            database.value(&changed.replace("$x", &loaded)).unwrap().parse().unwrap();
        // The chance that 60 updates of 5 keys leave out the last ten is negligible.
        assert!((31..=40).contains(&largest), "{options}: {largest}");
    }
    let shown = database.riops("runs show last").expect(0).stdout;
    assert!(shown.contains("in the first 40 rows of each table"), "{shown}");
    for (options, text) in [
        ("--working-set 1001", "exceeds the 1000 rows of each table"),
        ("--working-set 4", "batch 5 exceeds --working-set 4"),
        ("--working-set 320kB", "requires --layout block"),
        ("--working-set 0", "--working-set must be at least 1"),
        ("--working-set many", "not a number of rows or a size"),
    ] {
        database.riops(&format!("{run} {options}")).expect(2).stderr_contains(text);
    }
}
