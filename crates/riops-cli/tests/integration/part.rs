//! Runs on a part of a dataset: the first tables, and the first rows of each.

use crate::fixture::{Database, database};

const COUNTED: &str = "--warmup 0 -c 2 --seed 5 --output json";

/// Returns the number of changed rows and the highest changed key since `xid`.
fn changes_since(database: &Database, xid: &str, table: &str, key: &str) -> (u64, u64) {
    let query = |expression: &str| {
        let sql = format!(
            "select coalesce({expression}, 0)::bigint from {table} where xmin::text::bigint > {xid}"
        );
        database.value(&sql).unwrap().parse().unwrap()
    };
    (query("count(*)"), query(&format!("max({key})")))
}

#[test]
fn random_rows_come_from_the_part_only() {
    let database = database("part_rows");
    database.riops("prepare rows --rows 2000 --tables 2").expect(0);
    let run =
        format!("run rows --transactions 300 --update-percent 50 --batch 2 --tables 1 {COUNTED}");
    for percent in [1, 10, 50, 100] {
        let rows = 2000 * percent / 100;
        for options in ["", "--loop server", "--distribution zipfian:0.9", "--distribution special"]
        {
            let xid = database.value("select txid_current()").unwrap();
            let record = database.riops(&format!("{run} --rows {rows} {options}")).expect(0).json();
            assert_eq!(record["verdict"]["valid"], true, "{options}");
            let (changed, highest) = changes_since(&database, &xid, "riops.rows_0001", "mykey");
            assert!(highest <= rows, "{options}: {highest} of {rows}");
            // About 300 rows were updated. Most of `special` are in the middle of the part.
            let least = if options.ends_with("special") { rows / 4 } else { rows * 3 / 4 };
            assert!(changed > rows.min(30) / 3 && highest >= least, "{options}: {highest}");
            assert_eq!(changes_since(&database, &xid, "riops.rows_0002", "mykey"), (0, 0));
            let part = if percent == 100 {
                serde_json::json!({"tables": 1})
            } else {
                serde_json::json!({"tables": 1, "rows": rows})
            };
            assert_eq!(record["plan"]["part"], part, "{options}");
            assert_eq!(record["target"]["dataset"]["rows"]["rows"], 2000);
        }
    }
    let verified = database.riops("verify rows").expect(0);
    assert!(!verified.stdout.contains("WRONG"), "{}", verified.stdout);
    let pgio =
        database.riops(&format!("{run} --rows 200 --output pgio").replace("--output json", ""));
    let pgio = pgio.expect(0).stdout;
    let listed = database.riops("runs list").expect(0).stdout;
    assert!(listed.contains("rows, 5.0% of the dataset"), "{listed}");
    let text = "part of the dataset: 5.0% (the first 200 rows of each table, 1 table)";
    assert!(pgio.contains(text) && pgio.contains(" 1 schemas, 2 threads"), "{pgio}");
}

#[test]
fn a_rerun_uses_the_same_part_of_the_same_dataset() {
    let database = database("part_rerun");
    database.riops("prepare rows --rows 1000").expect(0);
    let run = format!("run rows --transactions 20 --batch 2 --rows 100 {COUNTED}");
    let first = database.riops(&run).expect(0).json();
    let again = database.riops("runs rerun last --output json").expect(0).json();
    assert_eq!(first["plan"]["part"], again["plan"]["part"]);
    assert_eq!(again["plan"]["dataset"]["rows"], 1000);
    // The whole dataset is larger than before: it is another one.
    database.riops("prepare rows --rows 2000 --recreate").expect(0);
    database.riops("runs rerun last").expect(2).stderr_contains("--rows 2000, not 1000");
}

#[test]
fn more_than_the_dataset_is_refused() {
    let database = database("part_more");
    database.riops("prepare rows --rows 1000 --tables 2").expect(0);
    for (options, text) in [
        ("--rows 1001", "prepared with --rows 1000, not 1001"),
        ("--tables 3", "prepared with --tables 2, not 3"),
        ("--rows 10 --batch 11", "--batch 11 exceeds the 10 rows of each table"),
        ("--rows 0", "--rows must be at least 1"),
    ] {
        database.riops(&format!("run rows {options}")).expect(2).stderr_contains(text);
    }
}

#[test]
fn transactions_and_single_rows_come_from_the_part_only() {
    let database = database("part_oltp");
    database.riops("prepare oltp --tables 3 --table-size 1000").expect(0);
    for test in ["read-write", "update-index", "delete"] {
        let xid = database.value("select txid_current()").unwrap();
        let part = "--tables 2 --table-size 100";
        let run = format!("run oltp {test} --transactions 100 {part} {COUNTED}");
        let record = database.riops(&run).expect(0).json();
        assert_eq!(record["verdict"]["valid"], true, "{test}");
        assert_eq!(record["plan"]["part"], serde_json::json!({"tables": 2, "table_size": 100}));
        for table in ["riops.sbtest1", "riops.sbtest2"] {
            let (changed, highest) = changes_since(&database, &xid, table, "id");
            assert!((changed > 20 || test == "delete") && highest <= 100, "{test}: {highest}");
        }
        assert_eq!(changes_since(&database, &xid, "riops.sbtest3", "id"), (0, 0));
    }
    database.riops("verify oltp").expect(0);
    database.riops("run load --rows 1000 --output json").expect(0);
    let xid = database.value("select txid_current()").unwrap();
    let run = format!("run point --op update --transactions 200 --rows 50 {COUNTED}");
    let record = database.riops(&run).expect(0).json();
    assert_eq!(record["verdict"]["valid"], true);
    let table = record["target"]["dataset"]["load"]["table_name"].as_str().unwrap().to_owned();
    let (changed, highest) = changes_since(&database, &xid, &format!("riops.{table}"), "id");
    assert!(changed > 40 && highest < 50, "{changed}, {highest}");
}
