//! Complete Block Check with psql and pgbench: the same statements and the same table as with riops, and a log that
//! the benchmark's collector reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use riops::server::{ConnInfo, Connection};

use crate::cbc::{SMALL, STEPS};
use crate::fixture::{CommandOutput, Database, command, database, folder, open, program};
use crate::server::command_on;

/// The scripts for pgbench, in the order of the steps.
const SCRIPTS: [&str; 7] = [
    "cbc-t00-ctas",
    "cbc-t01-vacuum",
    "cbc-t02-index",
    "cbc-t03-select-max",
    "cbc-t04-selectr",
    "cbc-t05-cluster",
    "cbc-t06-iselect-max",
];
/// The selects without EXPLAIN.
const NO_EXPLAIN: [&str; 3] = [
    "cbc-t03-select-max-no-explain",
    "cbc-t04-selectr-no-explain",
    "cbc-t06-iselect-max-no-explain",
];

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sql/cbc").join(format!("{name}.sql"))
}

/// Runs the psql script. Returns its log, to which psql writes both outputs, as the collector calls it.
fn psql_log(name: &str, url: &str, log: &Path) -> String {
    let file = std::fs::File::create(log).unwrap();
    let status = Command::new(program("psql").unwrap())
        .args(["-X", "-v", "ON_ERROR_STOP=1", "-v", "scale=0.01", "-ef"])
        .arg(script(name))
        .args(["-d", url])
        .stdout(Stdio::from(file.try_clone().unwrap()))
        .stderr(Stdio::from(file))
        .status()
        .unwrap();
    let text = std::fs::read_to_string(log).unwrap();
    assert!(status.success(), "{text}");
    text
}

/// Runs a pgbench script with one client.
fn pgbench(name: &str, url: &str, transactions: u32) {
    let count = transactions.to_string();
    // Not --scale, which is an integer in pgbench.
    let line = ["-n", "-t", &count, "-c", "1", "-D", "scale=0.01", "-f"];
    let mut pgbench = Command::new(program("pgbench").unwrap());
    let ran = CommandOutput::run(pgbench.args(line).arg(script(name)).arg(url)).expect(0);
    let done = format!("number of transactions actually processed: {count}/{count}");
    assert!(ran.stdout.contains(&done), "{}", ran.stdout);
}

/// Number of rows and copies, last copy, and the types of the columns.
fn table(database: &Database) -> String {
    let sql = "select count(*) || ' ' || count(distinct seq) || ' ' || max(seq) || ' '
             || (select string_agg(format_type(atttypid, atttypmod), ',' order by attnum)
                   from pg_attribute where attrelid = 'settings_loop'::regclass and attnum > 0)
           from settings_loop";
    database.value(sql).unwrap()
}

fn has_both() -> bool {
    program("psql").is_some() && program("pgbench").is_some()
}

#[test]
fn psql_pgbench_and_riops_create_the_same_table() {
    if !has_both() {
        return;
    }
    let database = database("cbc_drivers");
    let log = folder("cbc-drivers").join("cbc.log");
    psql_log("cbc-psql", &database.url, &log);
    let by_psql = table(&database);
    // With a decimal size, the first column is numeric.
    assert!(by_psql.contains(" 126 125 numeric,text,"), "{by_psql}");
    // A second run replaces the table.
    psql_log("cbc", &database.url, &log);
    for name in SCRIPTS {
        pgbench(name, &database.url, if name == SCRIPTS[0] { 2 } else { 1 });
    }
    assert_eq!(table(&database), by_psql);
    // This table is in the schema public. riops creates its own in another schema.
    database.riops(&format!("{SMALL} --place schema --no-store --keep")).expect(0);
    assert_eq!(table(&database), by_psql);
    database
        .connect()
        .execute("drop table settings_loop; alter table riops.settings_loop set schema public")
        .unwrap();
    assert_eq!(table(&database), by_psql);
}

/// Statements without whitespace and constants, and how often each was called.
type Calls = BTreeMap<String, u64>;

/// Returns the calls since the last reset of all statements that begin like this, and resets the statistics.
fn calls(connection: &mut Connection, starts: &[&str]) -> Calls {
    let rows =
        connection.query("select query, calls from pg_stat_statements where toplevel").unwrap();
    connection.execute("select pg_stat_statements_reset()").unwrap();
    let mut counts = Calls::new();
    for row in rows {
        let [Some(query), Some(calls)] = row.as_slice() else { panic!("{row:?}") };
        let words: Vec<_> = query.split_whitespace().collect();
        // riops parses the plans. The format does not change what the server executes.
        let text = words.join(" ").replace("buffers, format json)", "buffers)");
        let text = text.trim_end_matches(';').to_owned();
        if starts.iter().any(|start| text.starts_with(start)) {
            *counts.entry(text).or_default() += calls.parse::<u64>().unwrap();
        }
    }
    counts
}

#[test]
fn psql_pgbench_and_riops_execute_the_same_statements() {
    if !has_both() {
        return;
    }
    let home = folder("cbc-statements");
    // The embedded server loads pg_stat_statements. Other tests use the statistics of the shared server.
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let url =
        CommandOutput::run(&mut command_on(&home, "server url")).expect(0).stdout.trim().to_owned();
    let conninfo = ConnInfo::parse(&url, |_| None).unwrap();
    let mut connection = open(&conninfo);
    connection.execute("create extension if not exists pg_stat_statements").unwrap();
    let riops = |options: &str| {
        let line = format!("{SMALL} --place schema --no-store {options} -d {url}");
        CommandOutput::run(&mut command(&line)).expect(0);
    };
    let steps =
        ["create table settings_loop", "vacuum", "create index by_name", "explain", "cluster"];
    psql_log("cbc-psql", &url, &home.join("cbc.log"));
    let by_psql = calls(&mut connection, &steps);
    assert_eq!(by_psql.values().sum::<u64>(), 9, "{by_psql:#?}");
    assert_eq!(by_psql.len(), 6, "{by_psql:#?}");
    riops("");
    assert_eq!(calls(&mut connection, &steps), by_psql);
    for name in SCRIPTS {
        pgbench(name, &url, if name.contains("select-max") { 2 } else { 1 });
    }
    assert_eq!(calls(&mut connection, &steps), by_psql);
    // The sessions of riops repeat the selects without EXPLAIN.
    let texts = |calls: &Calls| calls.keys().cloned().collect::<BTreeSet<_>>();
    for name in NO_EXPLAIN {
        pgbench(name, &url, 1);
    }
    let selects = ["select max(sourceline)"];
    let by_pgbench = texts(&calls(&mut connection, &selects));
    assert_eq!(by_pgbench.len(), 2, "{by_pgbench:#?}");
    riops("--query-sessions 1 --query-duration 100ms");
    assert_eq!(texts(&calls(&mut connection, &selects)), by_pgbench);
    drop(connection);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
}

/// The keys of the collector, after `SERVER`.
fn keys() -> Vec<&'static str> {
    [&STEPS[..], &["SIZE_T", "SIZE_I", "READ_RATE", "WRITE_RATE"]].concat()
}

/// Reads a psql log as the benchmark's collector does: by the beginnings of lines and the words between single
/// spaces. Returns a value for each of [`keys`].
fn collect_values(log: &str) -> Vec<f64> {
    let lines = |start: &'static str| log.lines().filter(move |line| line.starts_with(start));
    let word = |line: &str, ordinal: usize| -> f64 {
        let word = line.split(' ').nth(ordinal - 1).unwrap_or_default();
        word.parse().unwrap_or_else(|_| panic!("{line}"))
    };
    let times = lines("Time: ").map(|line| word(line, 2));
    let sizes = lines("Size-").map(|line| word(line, 3));
    // The first line of VACUUM belongs to the table, the next ones to its TOAST table and to ANALYZE.
    let rates = lines("avg read rate").take(1).flat_map(|line| [word(line, 4), word(line, 9)]);
    times.chain(sizes).chain(rates).collect()
}

#[test]
fn the_collector_reads_the_log_of_psql_and_the_output_of_riops() {
    if !has_both() {
        return;
    }
    let database = database("cbc_collector");
    let folder = folder("cbc-collector");
    let log = psql_log("cbc-psql", &database.url, &folder.join("cbc.log"));
    assert_eq!(log.matches("\nTime: ").count(), STEPS.len(), "{log}");
    for label in [" autovacuum ", " shared_buffers ", "\nSize-Table ", "\nSize-Index "] {
        assert!(log.contains(label), "{label} is not in:\n{log}");
    }
    let by_psql = collect_values(&log);
    assert_eq!(by_psql.len(), keys().len(), "{log}");
    assert!(by_psql.iter().all(|value| *value >= 0.0), "{by_psql:?}");
    // The short name of the script makes the same log.
    assert_eq!(
        collect_values(&psql_log("cbc", &database.url, &folder.join("cbc.log"))).len(),
        by_psql.len()
    );

    let ran = database.riops(&format!("{SMALL} --place schema --no-store --output cbc")).expect(0);
    let mut lines = ran.stdout.lines().map(|line| line.split_once('\t').unwrap());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(lines.next(), Some(("SERVER", host.trim().split('.').next().unwrap())));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys());
    let by_riops: Vec<f64> = lines.iter().map(|(_, value)| value.parse().unwrap()).collect();
    assert!(by_riops.iter().all(|value| *value >= 0.0), "{by_riops:?}");
    // Both tools report the size of the same rows, in bytes. Some values of pg_settings differ between sessions.
    for (a, b) in by_psql.iter().zip(&by_riops).skip(STEPS.len()).take(2) {
        assert!((a / b - 1.0).abs() < 0.02 && b.fract() == 0.0, "{a} {b}");
    }
    let other = database.riops("run rows --prepare --rows 1000 --output cbc");
    other.expect(2).stderr_contains("openmetrics, pgio]");
}
