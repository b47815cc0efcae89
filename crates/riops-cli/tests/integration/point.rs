//! `run point`, on the table of `load`.

use crate::fixture::{Database, database, folder};

const SHORT: &str = "--duration 300ms --warmup 0 --interval 100ms";

fn loaded(name: &str, options: &str) -> Database {
    let database = database(name);
    database.riops(&format!("run load --method copy-binary {options}")).expect(0);
    database
}

#[test]
fn selects_and_updates_are_counted_and_their_access_paths_proved() {
    let database = loaded("point_ops", "--rows 5000");
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
    // 400 and 100, three times; each of three sessions is off by less than one.
    assert!(updates.parse::<u64>().unwrap() > 1_490, "{updates}");
}

#[test]
fn updates_may_write_texts_of_another_length_and_selects_know_it() {
    let database = loaded("point_length", "--rows 20000");
    database.riops(&format!("run point --op mixed:50/50 --field-length 30 {SHORT}")).expect(0);
    let lengths = database.value("select count(distinct length(f1)) from riops.test_table");
    assert_eq!(lengths.as_deref(), Some("2"));
    database.riops(&format!("run point {SHORT}")).expect(0);
    let verified = database.riops("verify point").expect(0);
    assert!(verified.stdout.contains("not 24 or 30 characters"), "{}", verified.stdout);
    database.connect().execute("update riops.test_table set f2 = 'x' where id < 10000").unwrap();
    database.riops(&format!("run point {SHORT}")).expect(3);
    database.riops("run point --field-length 30").expect(2).says("--op update or mixed");
}

#[test]
fn a_row_that_is_missing_makes_a_run_invalid() {
    let database = loaded("point_missing", "--rows 20");
    database.connect().execute("delete from riops.test_table where id = 7").unwrap();
    for op in ["select", "update"] {
        let run = database.riops(&format!("run point --op {op} {SHORT} --no-verify")).expect(3);
        assert!(run.stdout.contains("replies had no row"), "{}", run.stdout);
    }
}

#[test]
fn the_table_is_loaded_first_where_that_is_wanted_and_its_options_are_compared() {
    let database = database("point_prepare");
    database.riops("run point").expect(1).says("riops prepare load").says("--prepare");
    database.riops(&format!("run point --prepare --rows 700 {SHORT}")).expect(0);
    assert_eq!(database.value("select count(*) from riops.test_table").as_deref(), Some("700"));
    database.riops(&format!("run point --rows 800 {SHORT}")).expect(2).says("--rows 700, not 800");
    let again = database.riops("prepare load --rows 700").expect(0);
    assert!(again.stdout.contains("kept"), "{}", again.stdout);
}

#[test]
fn a_plan_that_reads_the_whole_table_is_not_measured() {
    let database = loaded("point_flip", "--rows 1000");
    database
        .connect()
        .execute("alter table riops.test_table drop constraint test_table_pkey")
        .unwrap();
    database.riops(&format!("run point {SHORT}")).expect(3).says("test_table_pkey");
}

#[test]
fn the_picture_shows_each_transaction_and_can_be_drawn_again() {
    let database = loaded("point_graph", "--rows 1000");
    let folder = folder("point-graph");
    let (first, second) = (folder.join("first.png"), folder.join("second.png"));
    let line = format!("run point --transactions 500 --warmup 0 -c 2 --graph {}", first.display());
    let run = database.riops(&line).expect(0);
    assert!(run.stderr.contains("drawn: "), "{}", run.stderr);
    database.riops(&format!("runs show last --graph {}", second.display())).expect(0);
    let (first, second) = (std::fs::read(first).unwrap(), std::fs::read(second).unwrap());
    assert!(first.starts_with(b"\x89PNG\r\n") && first == second);
    // What cannot be drawn leaves nothing behind.
    let third = folder.join("third.png");
    let line = format!("run point --rows 5 {SHORT} --graph {}", third.display());
    database.riops(&line).expect(2);
    assert!(!third.exists());
    database
        .riops(&format!(
            "run rows --prepare --rows 100 --batch 1 --loop server {SHORT} --graph x.png"
        ))
        .expect(2)
        .says("--loop client");
}

#[test]
fn what_an_interrupted_load_has_left_is_kept_for_its_verification() {
    let database = database("point_interrupted");
    database.riops("run load --rows 3000").expect(0);
    // As a load leaves it that was killed.
    let mut connection = database.connect();
    connection.execute("update riops.dataset set state = 'loading'").unwrap();
    let run = "run point -c 1 --warmup 0 --transactions 20";
    for line in [run.to_owned(), format!("{run} --prepare")] {
        database.riops(&line).expect(1).says("is incomplete");
        let rows = database.value("select count(*)::text from riops.test_table");
        assert_eq!(rows.as_deref(), Some("3000"));
    }
}
