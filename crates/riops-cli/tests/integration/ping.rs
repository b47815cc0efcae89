//! `riops run ping`: round trips without a dataset.

use crate::fixture::database;

#[test]
fn every_statement_works_with_every_protocol_and_creates_no_objects() {
    let database = database("ping_statements");
    for (statement, rows) in [("select1", 300), ("empty", 0), ("sync", 0)] {
        for protocol in ["prepared", "extended", "simple"] {
            let line = format!(
                "run ping --statement {statement} --protocol {protocol} -c 2 --warmup 0 \
                 --transactions 300 --output json"
            );
            let ran = database.riops(&line);
            if (statement, protocol) == ("sync", "simple") {
                ran.expect(2).stderr_contains("the simple query protocol has no Sync message");
                continue;
            }
            let record = ran.expect(0).json();
            assert_eq!(record["stages"][0]["transactions"], 300, "{line}");
            assert_eq!(record["stages"][0]["rows"], rows, "{line}");
            assert_eq!(record["verdict"]["valid"], true, "{line}");
            assert!(record["target"].get("dataset").is_none(), "{line}");
        }
    }
    let schemas = "select count(*)::text from pg_namespace where nspname = 'riops'";
    assert_eq!(database.value(schemas).as_deref(), Some("0"));
    database.riops("run ping --rows 5").expect(2).stderr_contains("unexpected argument '--rows'");
    database.riops("verify ping").expect(2).stderr_contains("unrecognized subcommand");
}

#[test]
fn accepts_the_common_options_and_can_be_rerun() {
    let database = database("ping_options");
    let line = "run ping -c 3 --pipeline 4 --warmup 0 --rate 2000 --transactions 200 \
                --threshold errors=0 --latency-limit 1s --label path";
    let text = database.riops(line).expect(0).stdout;
    assert!(text.contains("round trips of SELECT 1"), "{text}");
    assert!(text.contains("valid        yes: every statement returned its row"), "{text}");
    let again = database.riops("runs rerun --output json").expect(0).json();
    assert_eq!(again["label"], "path");
    assert_eq!(again["stages"][0]["transactions"], 200);
    database.riops("run ping --warmup 0 --transactions 50 --threshold p50>10s").expect(99);
}
