//! The state of a dataset before a run: what the record contains, and what the text shows of it.

use serde_json::Value;

use crate::fixture::{Database, database};

const RUN: &str = "--warmup 0 --transactions 200 -c 1 --interval 100ms";

fn condition(record: &Value) -> &Value {
    &record["target"]["dataset"]["condition"]
}

/// Runs the statements, and then publishes their statistics.
fn execute(database: &Database, sql: &str) {
    let mut connection = database.connect();
    connection.execute(sql).unwrap();
    connection.execute("select pg_stat_force_next_flush()").unwrap();
}

#[test]
fn a_run_shows_how_its_dataset_differs_from_the_fresh_one() {
    let database = database("aged_rows");
    database.riops("prepare rows --rows 20000 --order key --connections 1").expect(0);
    execute(&database, "alter table riops.rows_0001 set (autovacuum_enabled = off)");
    let line = format!("run rows --batch 10 {RUN}");
    let run = database.riops(&line).expect(0);
    assert!(!run.stdout.contains("fragmented"), "{}", run.stdout);
    let record = database.riops("runs show last --output json").expect(0).json();
    let fresh = condition(&record);
    assert!(fresh["sampled_keys"].as_u64().unwrap() >= 390, "{fresh}");
    assert_eq!(fresh["order_correlation"], 1.0, "{fresh}");
    assert!(fresh["neighbors_share"].as_f64().unwrap() > 0.95, "{fresh}");
    for name in ["order_correlation", "neighbors_share", "bytes"] {
        assert_eq!(fresh[name], fresh["fresh"][name], "{name}: {fresh}");
    }
    assert_eq!((&fresh["live_rows"], &fresh["dead_rows"]), (&20_000.into(), &0.into()), "{fresh}");
    assert!(fresh["vacuumed_at"].is_string() && fresh["analyzed_at"].is_string(), "{fresh}");
    // The rows with even keys move to the end, in key order. The rank correlation is then 1/2.
    execute(&database, "update riops.rows_0001 set scratch = scratch where mykey % 2 = 0");
    let run = database.riops(&line).expect(0);
    for text in [
        "dataset fragmented by earlier runs: correlation 0.5",
        "(fresh 1.00)",
        "of neighboring keys in the same block (fresh 9",
        " × its size after preparing",
        "33% dead rows",
        "0.500 updates per row, ",
        "riops prepare rows … --recreate -d …",
    ] {
        assert!(run.stdout.contains(text), "{text} is not in:\n{}", run.stdout);
    }
    let record = database.riops("runs show last --output json").expect(0).json();
    let aged = condition(&record);
    assert_eq!((&aged["updated_rows"], &aged["dead_rows"]), (&10_000.into(), &10_000.into()));
    assert_eq!(aged["fresh"], fresh["fresh"]);
    assert!(aged["bytes"].as_f64().unwrap() > 1.3 * fresh["bytes"].as_f64().unwrap(), "{aged}");
    // The same keys are sampled again: the result changes only if rows move.
    database.riops(&line).expect(0);
    let again = database.riops("runs show last --output json").expect(0).json();
    assert_eq!(condition(&again)["order_correlation"], aged["order_correlation"]);
    database.riops("prepare rows --rows 20000 --order key --recreate").expect(0);
    assert!(!database.riops(&line).expect(0).stdout.contains("fragmented"));
}

#[test]
fn an_update_in_key_order_clusters_scattered_rows() {
    let database = database("aged_scattered");
    database.riops("prepare rows --rows 20000").expect(0);
    let run = database.riops(&format!("run rows --batch 10 {RUN} --output json")).expect(0);
    let record = run.json();
    let fresh = condition(&record);
    assert!(fresh["order_correlation"].as_f64().unwrap().abs() < 0.2, "{fresh}");
    assert!(fresh["neighbors_share"].as_f64().unwrap() < 0.1, "{fresh}");
    // In one transaction: no new version reuses the space of an old one in the same block.
    execute(
        &database,
        "set enable_seqscan = off; set enable_bitmapscan = off;
         update riops.rows_0001 set scratch = scratch where mykey between 1 and 20000",
    );
    let run = database.riops(&format!("run rows --batch 10 {RUN}")).expect(0);
    assert!(
        run.stdout.contains("dataset fragmented by earlier runs: correlation 1.00 (fresh "),
        "{}",
        run.stdout
    );
    let text = "of neighboring keys in the same block (fresh ";
    assert!(run.stdout.contains(text), "{}", run.stdout);
}

#[test]
fn a_dataset_registered_by_an_older_version_has_no_fresh_values() {
    let database = database("aged_older");
    database.riops("prepare rows --rows 2000").expect(0);
    execute(&database, "alter table riops.dataset drop column fresh");
    let line = format!("run rows --batch 10 {RUN} --output json");
    let record = database.riops(&line).expect(0).json();
    let state = condition(&record);
    assert!(state.get("fresh").is_none() && state["bytes"].as_u64().unwrap() > 0, "{state}");
    // The next preparation adds the column.
    database.riops("prepare rows --rows 2000 --recreate").expect(0);
    let record = database.riops(&line).expect(0).json();
    assert!(condition(&record)["fresh"]["bytes"].as_u64().unwrap() > 0, "{record}");
}

#[test]
fn loaded_and_adopted_tables_are_examined_too() {
    let database = database("aged_others");
    database.riops("run load --rows 5000 --method copy -c 1").expect(0);
    let record = database.riops(&format!("run point {RUN} --output json")).expect(0).json();
    let loaded = condition(&record);
    assert_eq!(loaded["order_correlation"], 1.0, "{loaded}");
    assert_eq!(loaded["bytes"], loaded["fresh"]["bytes"], "{loaded}");
    execute(
        &database,
        "create table sbtest1 (id int primary key, k int not null, c char(120) not null, pad char(60) not null)
           with (autovacuum_enabled = off);
         insert into sbtest1 select n, n, '', '' from generate_series(1, 3000) as n;
         create index k_1 on sbtest1 (k);
         update sbtest1 set k = k + 1 where id <= 1000",
    );
    let line = format!("run oltp --schema public --test point-select {RUN}");
    let run = database.riops(&line).expect(0);
    assert!(
        run.stdout.contains("dataset fragmented by earlier runs: 25% dead rows"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("its state after preparing is unknown"), "{}", run.stdout);
    let record = database.riops("runs show last --output json").expect(0).json();
    let adopted = condition(&record);
    assert!(adopted.get("fresh").is_none(), "{adopted}");
    assert!(adopted["sampled_keys"].as_u64().unwrap() >= 390, "{adopted}");
}

#[test]
fn a_sample_that_the_server_refuses_is_left_out() {
    let database = database("aged_refused");
    database.riops("prepare rows --rows 2000").expect(0);
    // A role with rights on the columns of the workload may not read ctid.
    execute(
        &database,
        "create role aged_reader login; grant usage on schema riops to aged_reader;
         grant select on riops.dataset to aged_reader;
         grant select (mykey, scratch) on riops.rows_0001 to aged_reader",
    );
    let url = database.url.replace("postgres@", "aged_reader@");
    let mut command =
        database.command(&format!("run rows --batch 10 {RUN} --no-store --output json"));
    command.env("RIOPS_DATABASE", url);
    let record = crate::fixture::CommandOutput::run(&mut command).expect(0).json();
    let state = condition(&record);
    assert!(state.get("order_correlation").is_none(), "{state}");
    assert!(state["bytes"].as_u64().unwrap() > 0, "{state}");
    execute(&database, "drop owned by aged_reader; drop role aged_reader");
}
