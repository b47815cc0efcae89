//! Runs of a role without privileges that have little or nothing to count: a figure that nothing counted is absent, never zero.

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

/// Texts of a number that is no number, or that nothing counted.
const NEVER_SHOWN: [&str; 7] =
    ["-0.0", "0.00 µs", "0.0% hits", "sum 0.000 s", "NaN", "inf ", "tx/s 0.00"];

/// Adds the paths of the numbers of a record that must be absent.
fn collect(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, each) in fields {
                let number = each.as_f64().filter(|number| *number == 0.0);
                let is_false = number.is_some_and(|number| {
                    number.is_sign_negative() || NEVER_ZERO.contains(&name.as_str())
                });
                if is_false {
                    found.push(format!("{path}.{name}: {each}"));
                }
                // The sessions of a stage without any have no transactions.
                if name != "sessions_fairness" {
                    collect(each, &format!("{path}.{name}"), found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|each| collect(each, path, found)),
        _ => {}
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
    let riops = |line: &str| {
        let mut command = command(line);
        command.current_dir(&folder).env("RIOPS_DATABASE", &url);
        CommandOutput::of(command.env("RIOPS_STORE", &database.store))
    };
    for line in [
        "prepare rows --rows 100",
        "prepare point --rows 100",
        "prepare oltp --table-size 100",
        "prepare script",
    ] {
        riops(line).expect(0);
    }
    let mut found = Vec::new();
    for line in [
        "run ping -c 1 --transactions 3 --warmup 0",
        "run ping -c 2 --duration 1s --warmup 0",
        "run script --file none.sql -c 1 --transactions 5 --warmup 0",
        "run script -b tpcb-like -c 1 --transactions 5 --warmup 0",
        "run rows -c 1 --batch 10 --transactions 5 --warmup 0",
        "run rows -c 1 --batch 10 --rate 20 --duration 1s --warmup 0",
        "run rows -c 1 --batch 10 --update-percent 50 --transactions 5 --warmup 0",
        "run point -c 1 --transactions 5 --warmup 0",
        "run oltp read-only -c 1 --transactions 5 --warmup 0",
        "run load --rows 100 -c 1 --drop",
        "observe --for 100ms",
        "observe -- true",
        "observe --count x=select(5) -- true",
    ] {
        let ran = riops(line).expect(0);
        let record = riops("runs show last --output json").expect(0).json();
        collect(&record["stages"], line, &mut found);
        let forms = [
            format!("{}{}", ran.stdout, ran.stderr),
            riops("runs show last").expect(0).stdout,
            riops("report last --markdown").expect(0).stdout,
            riops("compare last last").stdout,
        ];
        for text in forms {
            let is_wrong = |shown: &&str| NEVER_SHOWN.iter().any(|each| shown.contains(each));
            found.extend(text.lines().filter(is_wrong).map(|shown| format!("{line}: {shown}")));
        }
        let csv = riops("runs export last --format csv").expect(0).stdout;
        let numbers = csv.split([',', '\n']).filter_map(|cell| cell.parse::<f64>().ok());
        if numbers.into_iter().any(|number| number == 0.0 && number.is_sign_negative()) {
            found.push(format!("{line}: {csv}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
