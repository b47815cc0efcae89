//! What a transaction costs, and which statements the server executed: counters of several sources that must agree.

use serde_json::Value;

use crate::fixture::{CommandOutput, command, database, folder};

#[test]
fn blocks_and_calls_of_tables_and_statements_agree() {
    let database = database("costs_rows");
    database.connect().execute("create extension pg_stat_statements").unwrap();
    let line = "run rows --prepare --rows 20000 --tables 1 --batch 10 --update-percent 50 -c 2 --duration 2s \
                --warmup 0 --output json";
    let record = database.riops(line).expect(0).json();
    let stage = &record["stages"][0];
    let operations = stage["operations"].as_array().unwrap();
    let transactions: u64 = operations
        .iter()
        .map(|operation| operation["acknowledged_transactions"].as_u64().unwrap())
        .sum();
    let statements = stage["database"]["statements"].as_array().unwrap();
    let own: Vec<_> = statements.iter().filter(|statement| statement["is_own"] == true).collect();
    let sum =
        |field: &str| own.iter().map(|statement| statement[field].as_f64().unwrap()).sum::<f64>();
    assert_eq!(own.len(), 2, "{statements:?}");
    // EXPLAIN and the probes of riops are not statements of the run.
    assert!((sum("calls") - transactions as f64).abs() <= 4.0, "{} {transactions}", sum("calls"));
    let cost = &stage["cost"];
    let value = |field: &str| cost[field].as_f64().unwrap();
    let blocks = value("blocks_hit") + value("blocks_read");
    let of_statements = (sum("blocks_hit") + sum("blocks_read")) / transactions as f64;
    assert!((blocks / of_statements - 1.0).abs() < 0.02, "{blocks} {of_statements}");
    assert!(value("blocks_dirtied") > 0.0 && sum("wal_bytes") > 0.0, "{cost}");
    assert!((value("rows") - 10.0).abs() < 1e-9, "{cost}");
    assert!(value("server_cpu_us") > 0.0 && value("client_cpu_us") > 0.0, "{cost}");
    assert!(value("server_run_queue_us") > 0.0, "{cost}");
    // Through a socket of this machine.
    assert_eq!(cost["received_bytes"], Value::Null);
    let text = database.riops("runs show last").expect(0).stdout;
    assert!(text.contains("cost         per transaction: server CPU"), "{text}");
    assert!(text.contains("per row: server CPU"), "{text}");
    assert!(text.contains("statements   "), "{text}");
    let csv = database.riops("runs export last -o csv").expect(0).stdout;
    let header = csv.lines().next().unwrap();
    assert!(header.contains(",server_cpu_us_per_transaction,server_cpu_us_per_row,"), "{header}");
}

/// The views of PostgreSQL 19 are imitated: PostgreSQL 18 with counters that grow with its transactions. This does not prove that
/// PostgreSQL 19 behaves in this way.
#[test]
fn locks_and_full_page_bytes_are_costs_where_the_server_counts_them() {
    let database = database("costs_19");
    let line = "run point --prepare --rows 1000 -c 2 --transactions 200 --warmup 0 --op update --output json";
    let plain = database.riops(line).expect(0).json();
    assert_eq!(plain["stages"][0]["database"]["locks"], Value::Null);
    assert_eq!(plain["stages"][0]["cost"]["wal_full_page_bytes"], Value::Null);
    let mut connection = database.connect();
    let own = "pg_stat_database where datname = current_database()";
    for sql in [
        "set allow_system_table_mods = on".to_owned(),
        format!(
            "create view pg_catalog.pg_stat_lock as select 'relation' as locktype, 2::bigint as waits,
                    3000.5::float8 as wait_time, 4 * xact_commit as fastpath_exceeded from {own}"
        ),
        // Columns can only be added at the end.
        format!(
            "create or replace view pg_catalog.pg_stat_wal as
             select w.*, (select 100 * xact_commit from {own})::numeric as wal_fpi_bytes from pg_stat_get_wal() w"
        ),
    ] {
        connection.execute(&sql).unwrap();
    }
    let record = database.riops(line).expect(0).json();
    let (counted, cost) = (&record["stages"][0]["database"], &record["stages"][0]["cost"]);
    // The growth of 0.
    assert_eq!(
        (&counted["locks"]["long_waits"], &counted["locks"]["long_waits_ms"]),
        (&0.into(), &0.into())
    );
    let value = |field: &str| cost[field].as_f64().unwrap();
    // The probes have transactions, too.
    let (locks, bytes) = (value("locks_beyond_fast_path"), value("wal_full_page_bytes"));
    assert!((4.0..8.0).contains(&locks), "{locks}");
    assert!((100.0..200.0).contains(&bytes), "{bytes}");
    let text = database.riops("runs show last --output html").expect(0).stdout;
    assert!(text.contains("table locks beyond the fast path"), "{text}");
}

#[test]
fn statements_of_a_script_are_recognized_with_every_protocol() {
    let database = database("costs_script");
    database.connect().execute("create extension pg_stat_statements").unwrap();
    database.riops("prepare script --scale 1").expect(0);
    for protocol in ["simple", "extended", "prepared"] {
        let line = format!(
            "run script -b simple-update -c 1 --transactions 50 --warmup 0 --protocol {protocol} --output json"
        );
        let record = database.riops(&line).expect(0).json();
        let statements = record["stages"][0]["database"]["statements"].as_array().unwrap();
        let calls = |start: &str| {
            let own = statements.iter().filter(|statement| statement["is_own"] == true);
            own.filter(|statement| statement["query"].as_str().unwrap().starts_with(start))
                .map(|statement| statement["calls"].as_u64().unwrap())
                .sum::<u64>()
        };
        for start in ["UPDATE pgbench_accounts", "SELECT abalance", "INSERT INTO pgbench_history"] {
            assert_eq!(calls(start), 50, "{protocol}: {start}: {statements:?}");
        }
    }
}

#[test]
fn the_parts_of_the_time_of_a_transaction_add_up() {
    let database = database("costs_time");
    database.riops("prepare point --rows 1000").expect(0);
    let line = "run point -c 4 --duration 3s --warmup 0 --op update";
    let text = database.riops(line).expect(0).stdout;
    let record = database.riops("runs show last --output json").expect(0).json();
    let stage = &record["stages"][0];
    let parts = stage["probes"]["session_time"].as_array().unwrap();
    assert!(!parts.is_empty(), "{stage}");
    let shares: f64 = parts.iter().map(|part| part["share"].as_f64().unwrap()).sum();
    assert!(shares > 0.0 && shares <= 1.0 + 1e-9, "{parts:?}");
    assert!(text.contains("time         ") && text.contains("per transaction: "), "{text}");
}

#[test]
fn figures_of_the_catalog_can_be_required() {
    let database = database("costs_required");
    let line = "run point --prepare --rows 1000 -c 1 --transactions 100 --warmup 0 --op update";
    let required = |threshold: &str| database.riops(&format!("{line} --threshold {threshold}"));
    let met = required("wal-bytes<1GB").expect(0).stdout;
    assert!(met.contains("met: wal-bytes<1GB (measured "), "{met}");
    let breached = required("wal-bytes<1").expect(99).stdout;
    assert!(breached.contains("BREACHED: wal-bytes<1 (measured "), "{breached}");
    let record = database.riops("runs show last --output json").expect(0).json();
    let wal = record["stages"][0]["cost"]["wal_bytes"].as_f64().unwrap();
    assert_eq!(record["thresholds"][0]["found"], wal);
    // A value that was not counted does not meet a threshold.
    let unknown = required("received-bytes<1GB").expect(99).stdout;
    assert!(unknown.contains("BREACHED: received-bytes<1GB (measured no value)"), "{unknown}");
}

/// Counts instructions as perf does, without the counter that most virtual machines hide.
const PERF: &str = r#"#!/bin/sh
[ "$1 $2 $3 $4 $5" = "stat -x, -e instructions:u -p" ] || exit 1
shift 6
line="5000000,,instructions:u,1000,100.00,,"
if [ "$1" = -o ]; then
  file=$2
  shift 3
  "$@"
  echo "$line" > "$file"
else
  "$@"
  echo "$line" >&2
fi
"#;

#[test]
fn instructions_are_a_cost_that_a_gate_judges() {
    let database = database("costs_instructions");
    let programs = folder("instructions-perf");
    riops_testkit::write_program(&programs.join("perf"), PERF).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let run = |line: &str| {
        let mut run = command(line);
        run.env("PATH", &path).env("RIOPS_DATABASE", &database.url);
        CommandOutput::run(run.env("RIOPS_STORE", &database.store))
    };
    // On a busy machine, the counters of a short run are read too late for its costs.
    let measure = |duration: &str| {
        let line =
            format!("run ping -c 1 --duration {duration} --warmup 0 --instructions --output json");
        run(&line).expect(0).json()
    };
    let has_cost = |record: &Value| !record["stages"][0]["cost"]["server_instructions"].is_null();
    let record = ["2s", "10s"].into_iter().map(measure).find(has_cost).unwrap();
    let stage = &record["stages"][0];
    let per_s = stage["server_instructions_per_s"].as_f64().unwrap();
    assert!(per_s > 0.0, "{stage}");
    let instructions = stage["cost"]["server_instructions"].as_f64().unwrap();
    let tps = stage["throughput"]["transactions_per_s"].as_f64().unwrap();
    assert!((instructions * tps / per_s - 1.0).abs() < 1e-6, "{instructions} {tps} {per_s}");
    assert_eq!(record["plan"]["instructions"], true);
    let text = run("runs show last").expect(0).stdout;
    assert!(text.contains("server instructions"), "{text}");
    // An observed command has them, too.
    let observed = run("observe --instructions --output json -- sleep 0.3").json();
    let per_s = &observed["stages"][0]["server_instructions_per_s"];
    assert!(per_s.as_f64().is_some_and(|per_s| per_s > 0.0), "{observed}");
    let gate = programs.join("gate.toml");
    let figures = |duration: &str| {
        let file = format!(
            "rounds-max = 4\ncosts = [\"instructions\"]\n[options]\nsessions = 1\nwarmup = \"0s\"\nduration = \"{duration}\"\n[[workload]]\nrun = \"ping\"\n"
        );
        std::fs::write(&gate, file).unwrap();
        let gated = run(&format!("gate {} --output json", gate.display()));
        gated.json()["workloads"][0]["figures"].to_string()
    };
    let is_judged = |figures: &String| figures.contains("server_instructions_per_transaction");
    assert!(["2s", "10s"].into_iter().map(figures).any(|figures| is_judged(&figures)));
}

#[test]
fn instructions_without_a_counter_are_refused_before_the_run() {
    let database = database("costs_no_counter");
    let ran = database.riops("run ping -c 1 --transactions 10 --instructions");
    if ran.code == Some(0) {
        let record = database.riops("runs show last --output json").expect(0).json();
        assert!(record["stages"][0]["server_instructions_per_s"].as_f64().unwrap() > 0.0);
        return;
    }
    assert!(ran.expect(2).stderr.contains("--instructions"));
}

/// The server as an installed PostgreSQL of this machine; needs perf and the right to use it.
#[test]
fn a_profile_shows_the_functions_of_an_index_scan() {
    let database = database("costs_profile");
    let line = "run rows --prepare --rows 20000 --tables 1 --batch 1000 -c 2 --duration 2s --warmup 0 --profile";
    let output = database.riops(line);
    if output.code == Some(2) {
        assert!(std::env::var_os("RIOPS_TEST_ALL").is_none(), "{}", output.stderr);
        assert!(
            output.stderr.contains("--profile requires perf")
                || output.stderr.contains("perf_event_paranoid")
        );
        return;
    }
    let text = output.expect(0).stdout;
    assert!(text.contains("profile      ") && text.contains(" samples at 99 Hz"), "{text}");
    let file = crate::fixture::folder("page-profile").join("page.html");
    let report = || {
        database.riops(&format!("report last -o html={}", file.display())).expect(0);
        std::fs::read_to_string(&file).unwrap()
    };
    let has_scan = |page: &String| {
        ["index_getnext", "btgettuple"].iter().any(|name| page.contains(&format!("<title>{name}")))
    };
    // On a busy machine, perf does not run for a while and loses most samples.
    let longer = ["8s", "30s"].into_iter().map(|duration| {
        database.riops(&line.replace("2s", duration)).expect(0);
        report()
    });
    let page = std::iter::once(report()).chain(longer).find(has_scan).expect("no index scan");
    assert!(page.contains("<figure class=\"flame\">"), "no flame graph");
    assert!(!page.contains("onload"), "a script in the graph");
}

/// The processes that a process has started and that are perf.
fn perf_of(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_perf = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parts = stat.split_once("(perf) ");
        parts.is_some_and(|(_, rest)| rest.split(' ').nth(1) == Some(&parent.to_string()))
    };
    numbers.filter(is_perf).collect()
}

#[test]
fn perf_ends_with_a_run_that_was_killed() {
    let database = database("costs_killed");
    let line = "run ping -c 1 --duration 60s --warmup 0 --interval 100ms --profile";
    if database.riops(&line.replace("60s", "100ms")).code == Some(2) {
        return;
    }
    let mut child = crate::fixture::start_until(&mut database.command(line), "0.1 s ");
    let [perf] = perf_of(child.id())[..] else {
        panic!("perf does not run");
    };
    crate::crash::kill(child.id(), "-KILL");
    child.wait().unwrap();
    let start = std::time::Instant::now();
    while std::fs::read_to_string(format!("/proc/{perf}/comm")).is_ok_and(|name| name == "perf\n") {
        assert!(start.elapsed().as_secs() < 60, "perf {perf} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn figures_that_are_not_counted_are_named_and_never_zero() {
    let database = database("costs_missing");
    let mut admin = database.connect();
    admin
        .execute("drop role if exists costs_plain; create role costs_plain login password 'x'")
        .unwrap();
    let url = crate::fixture::tcp_url("costs_missing");
    let (_, rest) = url.split_once('@').unwrap();
    let mut command = crate::fixture::command("run ping -c 2 --duration 1s --warmup 0");
    command.env("RIOPS_DATABASE", format!("postgresql://costs_plain:x@{rest}"));
    let output =
        crate::fixture::CommandOutput::run(command.env("RIOPS_STORE", &database.store)).expect(0);
    let statements =
        "statements (pg_stat_statements is not installed in the database or not visible)";
    assert!(
        output.stdout.contains("not counted: ") && output.stdout.contains(statements),
        "{}",
        output.stdout
    );
    let record = database.riops("runs show last --output json").expect(0).json();
    let cost = &record["stages"][0]["cost"];
    for absent in ["blocks_dirtied", "received_bytes", "table_bytes"] {
        assert_eq!(cost[absent], Value::Null, "{absent}: {cost}");
    }
    assert!(cost["client_cpu_us"].as_f64() > Some(0.0), "{cost}");
    admin.execute("drop role costs_plain").unwrap();
}
