//! The command on a fake server that reports the version of YugabyteDB. The tests check the statements that
//! riops sends and how it handles the responses. They need no YugabyteDB, and do not prove that YugabyteDB
//! responds in this way.

use std::sync::atomic::{AtomicU64, Ordering};

use riops_testkit::{Answer, FakeYugabyteDb, SentStatement, VERSION};
use serde_json::{Value, json};

use crate::fixture::{CommandOutput, command, folder};

const ROWS: u64 = 100;

/// Returns the parameters that `prepare oltp --table-size 100 --seed 1` registers.
fn parameters() -> String {
    json!({"schema": "riops", "tables": 1, "table_size": ROWS, "auto_inc": true, "secondary": false,
        "create_secondary": true, "serial_cache_size": 0, "range_key_partitioning": false,
        "manual_range_splitting": true, "num_table_splits": 24, "adopted": false, "seed": 1})
    .to_string()
}

/// Returns the EXPLAIN (ANALYZE, DIST, FORMAT JSON) output of a statement: the expected access path with one
/// storage request.
fn plan(sql: &str) -> Answer {
    let statement = sql.split('"').nth(1).unwrap_or_default();
    let scan = json!({"Node Type": "Index Scan", "Relation Name": "sbtest1",
        "Index Name": "sbtest1_pkey", "Index Cond": "(id = 1)", "Storage Table Read Requests": 1});
    let modify = |operation: &str, below: Value| {
        json!({"Node Type": "ModifyTable", "Operation": operation, "Relation Name": "sbtest1",
            "Plans": [below]})
    };
    let node = match statement.trim_end_matches("_1") {
        // The increment of k needs the row, and the index on k the deleted one.
        "index_update" => modify("Update", scan),
        "delete" => modify("Delete", scan),
        "non_index_update" => modify("Update", json!({"Node Type": "Result"})),
        "insert" => modify("Insert", json!({"Node Type": "Result"})),
        _ => scan,
    };
    let document = json!([{"Plan": node, "Storage Read Requests": 1, "Storage Rows Scanned": 1}]);
    Answer::row(&[&document.to_string()])
}

/// Returns the response that YugabyteDB would send. `complete`: whether the dataset exists and is complete.
fn default_answer(asked: &SentStatement<'_>, complete: bool) -> Answer {
    let sql = asked.sql.trim();
    let has = |text: &str| sql.contains(text);
    let only_if =
        |condition: bool, answer: Answer| if condition { answer } else { Answer::nothing() };
    if asked.prepared && !has("$1") && (sql == "commit") {
        return Answer::Done("COMMIT", None);
    }
    let code = sql.lines().find(|line| !line.starts_with("--")).unwrap_or_default();
    match code.split_whitespace().next().unwrap_or_default() {
        "explain" => plan(sql),
        "set" => Answer::Done("SET", None),
        "alter" | "create" | "comment" | "analyze" | "checkpoint" => Answer::Done("DDL", None),
        "insert" => Answer::Done("INSERT", Some(1)),
        "delete" if has("riops.sbtest") => Answer::Done("DELETE", Some(1)),
        "delete" => Answer::Done("DELETE", Some(0)),
        "update" if has("returning 1") => Answer::row(&["1"]),
        "update" => Answer::Done("UPDATE", Some(1)),
        "show" => Answer::row(&["x"]),
        // PostgreSQL 15 has this function, so probes do not wait for the statistics.
        "select" if has("to_regproc('pg_stat_force_next_flush')") => Answer::row(&["t"]),
        "select" if has("version()") => Answer::row(&[&format!("PostgreSQL {VERSION}")]),
        "select" if has("advisory") => Answer::Error {
            sqlstate: "0A000",
            message: "advisory locks are not yet implemented",
            fatal: false,
        },
        "select" if has("proname = 'yb_servers'") => Answer::nothing(),
        "select" if has("id, state, parameters") => only_if(
            complete,
            Answer::row(&[
                "the-dataset",
                "complete",
                &parameters(),
                r#"[["100","100","5000","0"]]"#,
            ]),
        ),
        "select" if has("from pg_namespace n") => only_if(complete, Answer::row(&["riops"])),
        "select" if has("coalesce(obj_description(c.oid, 'pg_class'), '')") => {
            let registry = matches!(asked.parameters, [table] if table == "riops.dataset" || table == "riops.run");
            let comment = if registry { "riops registry 1" } else { "riops dataset oltp" };
            only_if(complete, Answer::row(&[comment]))
        }
        "select" if has("count(*) filter (where id between") => {
            Answer::row(&["100", "100", "5000", "0"])
        }
        "select" if has("count(*) filter (where ended_at is null)") => {
            Answer::row(&["0", "0", "0"])
        }
        "select" if has("select c from") && asked.prepared => {
            Answer::Rows(vec![vec![Some(vec![b'x'; 120])]])
        }
        _ => Answer::nothing(),
    }
}

fn riops(server: &FakeYugabyteDb, store: &str, line: &str) -> CommandOutput {
    let mut command = command(line);
    let url = format!("host=127.0.0.1 port={} user=u dbname=d sslmode=disable", server.port());
    command.env("RIOPS_DATABASE", url);
    command.env("RIOPS_STORE", folder(&format!("yb-{store}")).join("runs.sqlite"));
    CommandOutput::run(&mut command)
}

#[test]
fn prepare_sends_the_expected_statements() {
    let server = FakeYugabyteDb::start(|asked| default_answer(asked, false)).unwrap();
    let line = "prepare oltp --table-size 100 --seed 1 --connections 1";
    let ran = riops(&server, "prepare", line).expect(0);
    assert!(ran.stdout.starts_with("prepared 100 rows"), "{}", ran.stdout);
    let mut statements = server.statements();
    // Another connection sends it while the rows are counted.
    let checkpoint = statements.iter().position(|sql| sql == "checkpoint").unwrap();
    statements.remove(checkpoint);
    insta::assert_snapshot!(statements.join("\n"));
}

/// A run with one session on existing tables.
const RUN: &str = "run oltp -c 1 --warmup 0 --seed 1 --range-selects=off --point-selects 2 \
                   --interval 100ms --max-retries 3 --output json --no-verify --transactions";

#[test]
fn run_sends_the_expected_statements() {
    let server = FakeYugabyteDb::start(|asked| default_answer(asked, true)).unwrap();
    let run = riops(&server, "run", &format!("{RUN} 3")).expect(0).json();
    assert_eq!(
        (&run["target"]["flavour"], &run["verdict"]["valid"]),
        (&json!("yugabytedb"), &true.into())
    );
    assert_eq!(run["target"]["server_version"], VERSION);
    assert_eq!(run["stages"][0]["queries"], json!({"read": 6, "write": 12, "other": 6}));
    // The access paths include the number of storage requests.
    assert_eq!(run["accesses"][0]["storage"]["reads"], 1);
    // Sessions and probes send statements concurrently, so the order and the number of repetitions vary.
    let mut statements = server.statements();
    statements.sort_unstable();
    statements.dedup();
    insta::assert_snapshot!(statements.join("\n"));
}

/// Runs with `answer` as the response to the n-th execution of statements with this prefix.
fn run_with_answer(
    name: &str,
    statement: &'static str,
    nth: u64,
    answer: Answer,
    line: &str,
) -> CommandOutput {
    let count = AtomicU64::new(0);
    let server = FakeYugabyteDb::start(move |asked| {
        let matches = asked.prepared && asked.sql.starts_with(statement);
        if matches && count.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            answer.clone()
        } else {
            default_answer(asked, true)
        }
    })
    .unwrap();
    riops(&server, name, &format!("{RUN} {line}"))
}

fn error(sqlstate: &'static str, message: &'static str) -> Answer {
    Answer::Error { sqlstate, message, fatal: false }
}

#[test]
fn retryable_errors_repeat_the_whole_transaction() {
    for (name, statement, sqlstate, message) in [
        ("restart", "select c from", "40001", "Restart read required at: read: { days: 1 }"),
        ("conflict", "update", "40001", "could not serialize access due to concurrent update"),
        ("expired", "commit", "40001", "Operation expired: Transaction expired or aborted"),
        ("deadlock", "update", "40P01", "deadlock detected"),
        (
            "schema",
            "select c from",
            "XX000",
            "schema version mismatch for table 0000: expected 1, got 0",
        ),
        (
            "catalog",
            "delete",
            "XX000",
            "The catalog snapshot used for this transaction has been invalidated: Catalog Version Mismatch",
        ),
        (
            "again",
            "insert into riops.sbtest",
            "XX000",
            "Try again (yb/tserver/service_util.h:1): Leader not ready",
        ),
        // Any request to the storage that failed before the commit.
        ("request", "update", "XX000", "Network error: recvmsg got EOF from remote"),
        ("restart-required", "update", "YB003", "Restart read required"),
    ] {
        let run =
            run_with_answer(name, statement, 2, error(sqlstate, message), "4").expect(0).json();
        let stage = &run["stages"][0];
        assert_eq!((&stage["transactions"], &stage["retries"]), (&4.into(), &1.into()), "{name}");
        assert_eq!(stage["errors"][0]["sqlstate"], sqlstate, "{name}");
        assert_eq!(stage["errors"][0]["retried"], 1, "{name}");
        assert_eq!(stage["attempt_us"]["count"], 5, "{name}");
    }
}

#[test]
fn a_lost_connection_costs_one_transaction_and_is_reconnected() {
    let fatal = |sqlstate, message| Answer::Error { sqlstate, message, fatal: true };
    for (name, statement, answer, unknown) in [
        (
            "shutdown",
            "select c from",
            fatal("57P01", "terminating connection due to administrator command"),
            0,
        ),
        ("broken", "update", Answer::Close, 0),
        // The outcome of the commit is unknown.
        ("commit", "commit", Answer::Close, 1),
    ] {
        let run = run_with_answer(name, statement, 2, answer, "4").expect(0).json();
        let stage = &run["stages"][0];
        assert_eq!(
            (&stage["reconnects"], &stage["unknown_commits"]),
            (&1.into(), &unknown.into()),
            "{name}"
        );
        assert_eq!(
            (&stage["transactions"], &stage["outcomes"]["attempted"]),
            (&3.into(), &4.into()),
            "{name}"
        );
    }
}

#[test]
fn an_internal_error_of_a_commit_has_an_unknown_outcome_and_is_not_retried() {
    for (name, message) in [
        ("again-at-commit", "Try again (yb/tserver/service_util.h:1): Leader not ready"),
        ("timed-out-at-commit", "Timed out: UpdateTransaction RPC timed out after 15.000s"),
    ] {
        let run = run_with_answer(name, "commit", 2, error("XX000", message), "4").expect(0).json();
        let stage = &run["stages"][0];
        assert_eq!(
            (&stage["unknown_commits"], &stage["retries"]),
            (&1.into(), &0.into()),
            "{name}"
        );
        assert_eq!(
            (&stage["transactions"], &stage["outcomes"]["attempted"]),
            (&3.into(), &4.into()),
            "{name}"
        );
    }
}

#[test]
fn other_errors_end_the_run_with_their_message() {
    for (name, sqlstate, message) in [
        ("not-supported", "0A000", "this is not yet supported"),
        ("aborted", "25P02", "current transaction is aborted"),
    ] {
        let ran = run_with_answer(name, "update", 2, error(sqlstate, message), "4").expect(1);
        assert!(ran.stdout.contains(message) && ran.stdout.contains(sqlstate), "{}", ran.stdout);
        let counted =
            run_with_answer(name, "update", 2, error(sqlstate, message), "4 --on-error continue")
                .expect(0);
        assert_eq!(counted.json()["stages"][0]["outcomes"]["failed"], 1, "{name}");
    }
}
