//! `riops runs export` and `riops runs import`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::fixture::{CommandOutput, command, database, folder};

/// Returns a file that another tool wrote.
fn results(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops/tests/import").join(file)
}

/// Runs a command with this store.
fn riops(store: &Path, line: &str) -> CommandOutput {
    CommandOutput::run(command(line).env("RIOPS_STORE", store))
}

#[test]
fn a_run_moves_to_another_store_unchanged() {
    let database = database("moved");
    let folder = folder("moved-files");
    let run = "run ping -c 1 --transactions 50 --warmup 0 --label nightly --tag disk=nvme";
    database.riops(run).expect(0);
    let file = folder.join("runs.json");
    let export = format!("runs export disk=nvme -o json={}", file.display());
    database.riops(&export).expect(0).stderr_contains("wrote ");
    database.riops(&export).expect(0).stderr_contains("replaced ");
    let other = folder.join("other.sqlite");
    let import = format!("runs import {}", file.display());
    let stored = riops(&other, &import).expect(0);
    assert!(stored.stdout.starts_with("stored ") && stored.stdout.contains("(ping)"));
    let again = riops(&other, &import).expect(0).stderr_contains("is stored already");
    assert_eq!(again.stdout, "");
    let original = database.riops("runs export nightly").expect(0).stdout;
    let moved = riops(&other, "runs export").expect(0).stdout;
    assert_eq!(moved, original);
    let changed = original.replacen("\"transactions\": 50", "\"transactions\": 51", 1);
    std::fs::write(&file, changed).unwrap();
    riops(&other, &import).expect(1).stderr_contains("different contents");
}

#[test]
fn all_runs_move_from_store_to_store() {
    let folder = folder("all-runs");
    let (one, two) = (folder.join("one.sqlite"), folder.join("two.sqlite"));
    let files = [results("plain.txt"), results("sysbench.txt"), results("benchruns.csv")];
    let import = files.map(|file| file.display().to_string()).join(" ");
    riops(&one, &format!("runs import {import}")).expect(0);
    let all = riops(&one, "runs export --all").expect(0).stdout;
    assert_eq!(all.lines().count(), 4, "{all}");
    let import = format!("runs import {} {}", one.display(), results("plain.txt").display());
    let stored = riops(&two, &import).expect(0).stderr_contains("is stored already");
    assert_eq!(stored.stdout.lines().count(), 4, "{}", stored.stdout);
    assert!(riops(&two, "runs export --all").expect(0).stdout == all);
    riops(&two, &format!("runs import {} --label moved", two.display())).expect(0);
    riops(&two, "runs export --all last").expect(2).stderr_contains("--all");
    let other = folder.join("other.sqlite");
    std::fs::write(&other, b"SQLite format 3\0").unwrap();
    riops(&one, &format!("runs import {}", other.display())).expect(1);
}

#[test]
fn exports_csv_and_openmetrics() {
    let database = database("exported");
    database.riops("run ping -c 1 -t 300ms --interval 100ms --warmup 0 --label =1+1").expect(0);
    let stages = database.riops("runs export -o csv").expect(0).stdout;
    let lines: Vec<_> = stages.split("\r\n").collect();
    assert!(lines[0].starts_with("run_id,run_started_at,workload,label,tags,status,"), "{stages}");
    assert!(lines[1].contains(",ping,'=1+1,,done,true,"), "{stages}");
    assert!(lines[1].contains(",1,\"ping, select1\",loop,"), "{stages}");
    let series = database.riops("runs export -o csv --series").expect(0).stdout;
    assert_eq!(series.lines().count(), 4, "{series}");
    let latencies = database.riops("runs export -o csv --latencies").expect(0).stdout;
    assert!(latencies.lines().last().unwrap().ends_with(",1"), "{latencies}");
    let metrics = database.riops("runs export -o openmetrics").expect(0).stdout;
    assert!(metrics.contains("label=\"=1+1\"") && metrics.ends_with("# EOF\n"), "{metrics}");
    database.riops("runs export --series").expect(2).stderr_contains("--output csv");
    database.riops("runs export nothing").expect(1).stderr_contains("\"nothing\"");
}

#[test]
fn results_of_pgbench_are_listed_as_not_verified_and_cannot_be_repeated() {
    let folder = folder("imported");
    let store = folder.join("runs.sqlite");
    let log = [results("plain.1000"), results("plain.1000.1")];
    let import = format!("runs import {} {} --label old", log[0].display(), log[1].display());
    riops(&store, &import).expect(0);
    let list = riops(&store, "runs list").expect(0).stdout;
    assert!(list.contains("imported, pgbench") && list.contains("not verified"), "{list}");
    let shown = riops(&store, "runs show old").code;
    assert_eq!(shown, Some(1));
    let text = riops(&store, "runs show").expect(0).stdout;
    assert!(text.contains("imported from pgbench") && !text.contains("bottleneck  "), "{text}");
    let history = riops(&store, "runs history --label old").expect(0).stdout;
    assert!(history.contains("imported, pgbench, 4 sessions: transactions/s"), "{history}");
    riops(&store, "runs rerun").expect(2).stderr_contains("cannot be executed");
    let page = folder.join("page.html");
    riops(&store, &format!("report -o html={}", page.display())).expect(0);
    assert!(std::fs::read_to_string(page).unwrap().contains("not verified"));
}

#[test]
fn a_damaged_file_stores_nothing_and_an_unknown_one_is_a_usage_error() {
    let folder = folder("damaged-import");
    let store = folder.join("runs.sqlite");
    let damaged = folder.join("damaged.log");
    std::fs::write(&damaged, "0 1 10 0 1795414448 499094\n0 2 x 0 1795414448 499194\n").unwrap();
    let good = results("sysbench.txt");
    let import = format!("runs import {} {}", good.display(), damaged.display());
    riops(&store, &import).expect(1).stderr_contains("damaged.log, line 2: ");
    assert!(riops(&store, "runs list").expect(0).stdout.contains("no stored runs"));
    std::fs::write(&damaged, "hello\n").unwrap();
    let import = format!("runs import {}", damaged.display());
    riops(&store, &import).expect(2).stderr_contains("--from");
    riops(&store, "runs import").expect(2).stderr_contains("nothing to import");
}

#[test]
fn the_table_of_ybio_is_imported_from_its_database_and_from_standard_input() {
    let database = database("benchruns");
    database
        .connect()
        .execute(
            "create table benchruns (job_id serial primary key, start_time timestamp, end_time timestamp, num_batches bigint, num_rows bigint, pct_update int, prepared boolean, batch_size bigint, table_name text, comments text);
             insert into benchruns values (1, '2026-01-01 00:00:00', '2026-01-01 00:00:10', 100, 10000, 0, true, 100, 'bench0001', 'true'),
                                          (2, '2026-01-01 00:01:00', null, null, null, 0, true, 100, 'bench0001', null)",
        )
        .unwrap();
    let stored = database.riops("runs import --from ybio -d").code;
    assert_eq!(stored, Some(2));
    // RIOPS_DATABASE names the database.
    let stored = database.riops("runs import --from ybio").expect(0);
    assert_eq!(stored.stdout.lines().count(), 1);
    let record = database.riops("runs show --output json").expect(0).json();
    assert_eq!(record["stages"][0]["throughput"]["rows_per_s"], 1000.0);
    assert_eq!(record["plan"]["imported"]["facts"]["comments"], "true");
    assert!(record["target"]["version_text"].as_str().unwrap().starts_with("PostgreSQL"));
    let csv = "job_id,start_time,end_time,num_batches,num_rows,pct_update,prepared,batch_size,table_name,comments\n1,2026-01-01 00:00:00,2026-01-01 00:00:10,100,10000,0,t,100,bench0001,true\n";
    let mut command = database.command("runs import -");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), csv.as_bytes()).unwrap();
    let output = CommandOutput::from(child.wait_with_output().unwrap()).expect(0);
    output.stderr_contains("is stored already");
}
