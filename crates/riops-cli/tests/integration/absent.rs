//! Runs of a role without privileges that have little or nothing to count: a figure that nothing counted is absent, never zero.

use std::ffi::OsStr;
use std::process::Stdio;

use serde_json::Value;

use crate::fixture::{CommandOutput, command, database, folder};

/// Numbers of a record that are zero only if nothing counted them.
const NEVER_ZERO: [&str; 20] = [
    "server_cpu_s",
    "server_run_queue_s",
    "server_cpu_us",
    "server_run_queue_us",
    "client_cpu_us",
    "command_cpu_s",
    "us_per_transaction",
    "seconds",
    "mean",
    "p50",
    "p90",
    "p95",
    "p99",
    "p999",
    "p9999",
    "max",
    "max_us",
    "liops",
    "blocks_per_row",
    "counters_s",
];

/// Texts of a number that is not a number, or that nothing counted.
const NEVER_SHOWN: [&str; 7] =
    ["-0.0", " 0.00 µs", "0.0% hits", "sum 0.000 s", "NaN", "inf ", "tx/s 0.00"];

/// Adds the paths of the numbers of a record that must be absent.
fn collect(value: &Value, path: &str, defects: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let zero = field.as_f64().filter(|zero| *zero == 0.0);
                let is_false = zero.is_some_and(|zero| {
                    zero.is_sign_negative() || NEVER_ZERO.contains(&name.as_str())
                });
                if is_false {
                    defects.push(format!("{path}.{name}: {field}"));
                }
                collect(field, &format!("{path}.{name}"), defects);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, defects)),
        _ => {}
    }
}

/// Commands that store a run. The drop-in command lines print the reports of other tools, which are not read.
const RUNS: [&str; 18] = [
    "run ping -c 1 --transactions 3 --warmup 0",
    "run ping -c 2 --duration 1s --warmup 0",
    "run script --file none.sql -c 1 --transactions 5 --warmup 0 --label counted",
    "run script -b tpcb-like -c 1 --transactions 5 --warmup 0",
    "run rows -c 1 --batch 10 --transactions 5 --warmup 0",
    "run rows -c 1 --batch 10 --rate 20 --duration 1s --warmup 0",
    "run rows -c 1 --batch 10 --update-percent 50 --transactions 5 --warmup 0",
    "run point -c 1 --transactions 5 --warmup 0",
    "run oltp read-only -c 1 --transactions 5 --warmup 0",
    "run load --rows 100 -c 1 --drop",
    "run cbc --size 0.01 --place schema",
    "run ping -c 1 --transactions 3 --warmup 0 --repeat 2",
    "observe --for 100ms",
    "observe -- true",
    "observe --count x=select(5) --label counted -- true",
    "pgbench -n -c 1 -t 5",
    "ysql-bench -o insert -r 50 -t 1 -b 10",
    "sysbench oltp_read_only --tables=1 --table-size=100 --threads=1 --events=5 --time=0 run",
];

/// Commands about the stored runs, and about several new ones.
const OTHERS: [&str; 7] = [
    "runs list --stages",
    "runs list",
    "runs history",
    "sweep ping --axis sessions=1,2 --transactions 3 --warmup 0 --repeat 2",
    "ab a.toml b.toml --rounds-max 4",
    "runs show last",
    "doctor",
];

/// Adds the lines of a text that show a number that nothing counted.
fn read(command: &str, text: &str, defects: &mut Vec<String>) {
    let is_wrong = |shown: &&str| NEVER_SHOWN.iter().any(|wrong| shown.contains(wrong));
    defects.extend(text.lines().filter(is_wrong).map(|shown| format!("{command}: {shown}")));
}

/// Reads the record of the last run and all its forms.
fn read_last(line: &str, riops: &dyn Fn(&str) -> CommandOutput, defects: &mut Vec<String>) {
    let record = riops("runs show last --output json").expect(0).json();
    collect(&record["stages"], line, defects);
    for form in ["runs show last", "report last -o markdown", "compare last last"] {
        read(&format!("{line}, {form}"), &riops(form).stdout, defects);
    }
    let csv = riops("runs export last -o csv").expect(0).stdout;
    let numbers = csv.split([',', '\n']).filter_map(|cell| cell.parse::<f64>().ok());
    if numbers.into_iter().any(|value| value == 0.0 && value.is_sign_negative()) {
        defects.push(format!("{line}: {csv}"));
    }
}

#[test]
fn figures_that_nothing_counted_are_absent_from_records_and_texts() {
    let database = database("absent");
    let sql = "create role absent_plain login; grant create on database absent to absent_plain; grant create on schema public to absent_plain";
    database.connect().execute(sql).unwrap();
    let url = database.url.replace("postgresql://postgres@", "postgresql://absent_plain@");
    let folder = folder("absent");
    std::fs::write(folder.join("none.sql"), "select 1 where false;\n").unwrap();
    for name in ["a.toml", "b.toml"] {
        let plan = "workload = 'ping'\nsessions = 1\ntransactions = 3\nwarmup = '0'\n";
        std::fs::write(folder.join(name), plan).unwrap();
    }
    let in_store = |store: &OsStr, line: &str| {
        let mut command = command(line);
        command.current_dir(&folder).env("RIOPS_DATABASE", &url).env("RIOPS_STORE", store);
        command
    };
    let riops = |line: &str| CommandOutput::run(&mut in_store(database.store.as_os_str(), line));
    for line in [
        "prepare rows --rows 100",
        "prepare point --rows 100",
        "prepare oltp --table-size 100",
        "prepare script",
    ] {
        riops(line).expect(0);
    }
    let mut defects = Vec::new();
    for line in RUNS {
        if line.starts_with("sysbench") {
            riops("cleanup oltp").expect(0);
            riops(&line.replace(" run", " prepare")).expect(0);
        }
        let ran = riops(line).expect(0);
        if line.starts_with("run ") || line.starts_with("observe") {
            read(line, &format!("{}{}", ran.stdout, ran.stderr), &mut defects);
        }
        read_last(line, &riops, &mut defects);
    }
    for line in OTHERS {
        let ran = riops(line).expect(0);
        read(line, &format!("{}{}", ran.stdout, ran.stderr), &mut defects);
        if line.starts_with("runs list") {
            // A script that never finds a row, and a count that does not change.
            let is_zero = |shown: &&str| shown.contains(" 0.00 ") && !shown.contains(" counted ");
            defects.extend(ran.stdout.lines().filter(is_zero).map(str::to_owned));
        }
    }
    let fleet = "run ping -c 2 --transactions 4 --warmup 0 --fleet f --agents 2";
    let store = OsStr::new(&url);
    let mut other = in_store(store, fleet);
    let other = other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    CommandOutput::run(&mut in_store(store, fleet)).expect(0);
    assert!(other.wait_with_output().unwrap().status.success());
    let shared = |line: &str| CommandOutput::run(&mut in_store(store, line));
    read_last(fleet, &shared, &mut defects);
    assert!(defects.is_empty(), "{defects:#?}");
}
