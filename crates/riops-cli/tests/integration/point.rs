//! `run point` on the table that `load` creates.

use crate::crash::kill;
use crate::fixture::{Database, database, folder, start_until};

const SHORT: &str = "--transactions 200 --warmup 0 --interval 100ms";

fn load_database(name: &str, options: &str) -> Database {
    let database = database(name);
    database.riops(&format!("run load --method copy-binary {options}")).expect(0);
    database
}

#[test]
fn runs_with_a_new_field_length_do_not_exclude_others() {
    let database = load_database("point_lengths", "--rows 1000");
    let line = "run point --op mixed:50/50 --field-length 30 --no-store --warmup 0";
    let hour = format!("{line} --duration 1h --interval 100ms");
    let mut first = start_until(&mut database.command(&hour), "tx/s");
    for more in ["--op mixed:50/50 --field-length 30", ""] {
        let other = format!("run point {more} --no-store --warmup 0 --transactions 20");
        database.riops(&other).expect(0);
    }
    // A length that the first run does not know needs the dataset alone.
    let refused = database.riops(&format!("{} --transactions 20", line.replace("30", "31")));
    refused.expect(1).stderr_contains("another riops is using the dataset");
    kill(first.id(), "-INT");
    assert_eq!(first.wait().unwrap().code(), Some(130));
    database.riops("verify point").expect(0);
}

#[test]
fn counts_selects_and_updates_and_checks_their_access_paths() {
    let database = load_database("point_ops", "--rows 5000");
    for (op, operations) in [
        ("select", vec!["select"]),
        ("update", vec!["update"]),
        ("mixed:75/25", vec!["select", "update"]),
    ] {
        for protocol in ["prepared", "extended", "simple"] {
            let line = format!(
                "run point --op {op} --protocol {protocol} --transactions 400 --warmup 0 -c 3 --output json"
            );
            let record = database.riops(&line).expect(0).json();
            assert_eq!(record["verdict"]["valid"], true, "{line}");
            let stage = &record["stages"][0];
            assert_eq!(
                (stage["rows"].as_u64(), stage["transactions"].as_u64()),
                (Some(400), Some(400))
            );
            let names: Vec<_> = stage["operations"]
                .as_array()
                .unwrap()
                .iter()
                .map(|operation| operation["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, operations, "{line}");
            let accesses = record["accesses"].as_array().unwrap();
            assert!(accesses.iter().all(|access| access["held"] == true));
            for moment in ["before", "middle", "after"] {
                assert!(
                    accesses.iter().any(|access| access["moment"] == moment),
                    "{line}: {moment}"
                );
            }
        }
    }
    let updates = database.value("select sum(rows_changed) from riops.run").unwrap();
    // 400 and 100 updates with each of three protocols. Each of the three sessions is off by less than one.
    assert!(updates.parse::<u64>().unwrap() > 1_490, "{updates}");
}

#[test]
fn updates_may_change_the_field_length_and_selects_accept_both_lengths() {
    let database = load_database("point_length", "--rows 20000");
    database.riops(&format!("run point --op mixed:50/50 --field-length 30 {SHORT}")).expect(0);
    let lengths = database.value("select count(distinct length(f1)) from riops.test_table");
    assert_eq!(lengths.as_deref(), Some("2"));
    database.riops(&format!("run point {SHORT}")).expect(0);
    let verified = database.riops("verify point").expect(0);
    assert!(verified.stdout.contains("not 24 or 30 characters"), "{}", verified.stdout);
    database.connect().execute("update riops.test_table set f2 = 'x' where id < 10000").unwrap();
    database.riops(&format!("run point {SHORT}")).expect(3);
    database.riops("run point --field-length 30").expect(2).stderr_contains("--op update or mixed");
}

#[test]
fn a_missing_row_makes_a_run_invalid() {
    let database = load_database("point_missing", "--rows 20");
    database.connect().execute("delete from riops.test_table where id = 7").unwrap();
    for op in ["select", "update"] {
        let line = format!("run point --op {op} --transactions 500 --warmup 0 --no-verify");
        let run = database.riops(&line).expect(3);
        assert!(run.stdout.contains("replies had no row"), "{}", run.stdout);
    }
}

#[test]
fn prepare_option_loads_the_table_and_load_options_must_match_it() {
    let database = database("point_prepare");
    database
        .riops("run point")
        .expect(1)
        .stderr_contains("riops prepare load")
        .stderr_contains("--prepare");
    database.riops(&format!("run point --prepare --rows 700 {SHORT}")).expect(0);
    assert_eq!(database.value("select count(*) from riops.test_table").as_deref(), Some("700"));
    database
        .riops(&format!("run point --rows 800 {SHORT}"))
        .expect(2)
        .stderr_contains("--rows 700, not 800");
    let again = database.riops("prepare load --rows 700").expect(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
}

#[test]
fn a_sequential_scan_is_not_measured() {
    let database = load_database("point_flip", "--rows 1000");
    database
        .connect()
        .execute("alter table riops.test_table drop constraint test_table_pkey")
        .unwrap();
    database.riops(&format!("run point {SHORT}")).expect(3).stderr_contains("test_table_pkey");
}

#[test]
fn the_graph_of_a_run_can_be_redrawn_from_the_stored_record() {
    let database = load_database("point_graph", "--rows 1000");
    let folder = folder("point-graph");
    let (first, second) = (folder.join("first.png"), folder.join("second.png"));
    let line = format!("run point --transactions 500 --warmup 0 -c 2 --graph {}", first.display());
    let run = database.riops(&line).expect(0);
    assert!(run.stderr.contains(&format!("wrote {}", first.display())), "{}", run.stderr);
    database.riops(&format!("runs show last --graph {}", second.display())).expect(0);
    let (first, second) = (std::fs::read(first).unwrap(), std::fs::read(second).unwrap());
    assert!(first.starts_with(b"\x89PNG\r\n") && first == second);
    // A rejected run leaves no graph file.
    let third = folder.join("third.png");
    let line = format!("run point --rows 5000 {SHORT} --graph {}", third.display());
    database.riops(&line).expect(2);
    assert!(!third.exists());
    database
        .riops(&format!(
            "run rows --prepare --rows 100 --batch 1 --loop server {SHORT} --graph x.png"
        ))
        .expect(2)
        .stderr_contains("--loop client");
}

#[test]
fn keeps_the_rows_of_an_interrupted_load_for_verification() {
    let database = database("point_interrupted");
    database.riops("run load --rows 3000").expect(0);
    // The state that a killed load leaves.
    let mut connection = database.connect();
    connection.execute("update riops.dataset set state = 'loading'").unwrap();
    let run = "run point -c 1 --warmup 0 --transactions 20";
    for line in [run.to_owned(), format!("{run} --prepare")] {
        database.riops(&line).expect(1).stderr_contains("is incomplete");
        let rows = database.value("select count(*)::text from riops.test_table");
        assert_eq!(rows.as_deref(), Some("3000"));
    }
}

#[test]
fn many_tables_share_the_rows_and_each_is_read_by_its_own_key() {
    let database = database("point_tables");
    // More tables than one transaction creates.
    let prepared = database.riops("prepare load --tables 211 --rows 1000").expect(0);
    assert!(prepared.stdout.contains("prepared 1,000 rows"), "{}", prepared.stdout);
    // Its rows are frozen, all visible, and known to the planner.
    let tables =
        "select count(*) || ' with ' || min(reltuples) || ' to ' || max(reltuples) from pg_class
                   where relname ~ '^test_table_[0-9]+$' and relallvisible = relpages";
    assert_eq!(database.value(tables).as_deref(), Some("211 with 4 to 5"));
    for protocol in ["prepared", "simple"] {
        let line = format!(
            "run point --op mixed:50/50 -c 3 --protocol {protocol} --transactions 600 --warmup 0 --output json"
        );
        let record = database.riops(&line).expect(0).json();
        assert_eq!(record["verdict"]["valid"], true, "{line}");
        assert_eq!(record["stages"][0]["rows"].as_u64(), Some(600));
        let accesses = record["accesses"].as_array().unwrap();
        // Each of the three sessions checks the plans on another table.
        for table in ["test_table_1_pkey", "test_table_2_pkey", "test_table_3_pkey"] {
            assert!(accesses.iter().any(|access| access["expected"].to_string().contains(table)));
        }
        // The kernel may not list the children of a process.
        if std::path::Path::new("/proc/thread-self/children").exists() {
            let memory = record["stages"][0]["probes"]["points"][0]["server_memory_bytes"].as_u64();
            assert!(
                memory.is_some_and(|bytes| (1_000_000..1_000_000_000).contains(&bytes)),
                "{memory:?}"
            );
        }
    }
    database.riops("verify load").expect(0);
    // The first 20 rows are in the first five tables.
    let part = "run point --rows 20 -c 2 --transactions 100 --warmup 0 --output json";
    database.riops(part).expect(0);
    database.connect().execute("drop table riops.test_table_200").unwrap();
    database.riops(&format!("run point {SHORT}")).expect(1).stderr_contains("test_table_200");
    database.riops("run point --tables 3").expect(2).stderr_contains("--tables 211, not 3");
    database
        .riops("prepare load --tables 4 --rows 3")
        .expect(2)
        .stderr_contains("--tables 4 exceeds --rows 3");
    let dropped = database.riops("cleanup load").expect(0);
    assert!(dropped.stdout.contains("dropped 210 tables"), "{}", dropped.stdout);
}
