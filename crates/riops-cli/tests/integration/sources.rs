//! Sources of the rows read (shared buffers, page cache, device), and the state of the caches before a run.

use serde_json::Value;

use crate::fixture::{CommandOutput, Database, database, folder};
use crate::server::command_on;

fn record(database: &Database, options: &str) -> Value {
    let run = database.riops(&format!("run rows --batch 100 --warmup 0 --output json {options}"));
    run.expect(0).json()
}

fn share(stage: &Value, name: &str) -> f64 {
    stage["io"]["sources"][name].as_f64().unwrap()
}

#[test]
fn counts_block_accesses_exactly_and_per_row() {
    let database = database("sources_exact");
    database.riops("prepare rows --rows 4096 --layout block").expect(0);
    let record = record(&database, "--transactions 300 -c 2");
    let stage = &record["stages"][0];
    let blocks = &stage["database"]["blocks"];
    let heap =
        blocks["heap_blks_hit"].as_u64().unwrap() + blocks["heap_blks_read"].as_u64().unwrap();
    // 300 transactions of 100 rows, with one row per block.
    assert_eq!(heap, 30_000);
    let per_row = stage["io"]["blocks_per_row"].as_f64().unwrap();
    assert!((1.0..1.1).contains(&per_row), "{per_row}");
    let liops = stage["io"]["liops"].as_f64().unwrap();
    let rows_per_s = stage["throughput"]["rows_per_s"].as_f64().unwrap();
    assert!((liops / (rows_per_s * per_row) - 1.0).abs() < 1e-6);
}

#[test]
fn cold_runs_miss_and_warm_runs_hit_shared_buffers() {
    // A dedicated server: other tests would evict blocks from shared buffers.
    let home = folder("sources-cold");
    let riops = |line: &str| CommandOutput::run(&mut command_on(&home, line)).expect(0);
    // 8 MB is a quarter of shared_buffers.
    riops("prepare rows --size 8M --layout block");
    // A busy machine reads the counters of the processes later than the counters of the database. The sources of a run of a
    // few milliseconds are then unknown: the run has a rate, so that it takes longer.
    let run = |option: &str| -> Value {
        let line = "run rows --batch 25 --warmup 0 --transactions 20 -c 1 --rate 10 --output json";
        riops(&format!("{line} {option}")).json()
    };
    let cold = run("--cold");
    let stage = &cold["stages"][0];
    assert_eq!(
        (&stage["caches"]["wanted"], &stage["caches"]["reached"]),
        (&"cold".into(), &true.into()),
        "{}",
        stage["caches"]
    );
    // 500 random reads of 1,024 blocks: about 110 hit a block that was read before.
    let buffers = share(stage, "buffers_share");
    assert!((0.05..0.45).contains(&buffers), "{buffers}");
    let names = ["buffers_share", "page_cache_share", "device_share"];
    let sum: f64 = names.iter().map(|name| share(stage, name)).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let warm = run("--warm");
    let stage = &warm["stages"][0];
    assert_eq!(stage["caches"]["reached"], true, "{}", stage["caches"]);
    let buffers = share(stage, "buffers_share");
    assert!(buffers > 0.99, "{buffers}");
    // Blocks read to warm the caches are not counted for the sessions.
    let per_row = stage["io"]["blocks_per_row"].as_f64().unwrap();
    assert!((1.0..1.1).contains(&per_row), "{per_row}");
}

#[test]
fn the_extensions_that_cold_and_warm_runs_create_are_dropped() {
    let database = database("sources_extensions");
    database.riops("prepare rows --rows 1000").expect(0);
    record(&database, "--transactions 1 --cold");
    record(&database, "--transactions 1 --warm");
    assert_eq!(database.value("select count(*) from pg_extension where extname in ('pg_prewarm', 'pg_buffercache')").as_deref(), Some("0"));
}

#[test]
fn a_cold_run_whose_caches_were_not_emptied_is_invalid_unless_trying_is_enough() {
    let database = database("sources_denied");
    database.riops("prepare rows --rows 1000").expect(0);
    let mut connection = database.connect();
    connection.execute("create role sources_reader login; grant usage on schema riops to sources_reader; grant select on all tables in schema riops to sources_reader; revoke create on database sources_denied from public").unwrap();
    let url = database.url.replace("postgres@", "sources_reader@");
    let run = |option: &str, code| {
        let line = format!("run rows --batch 10 --transactions 10 --warmup 0 {option} --no-store");
        let mut command = database.command(&line);
        command.env("RIOPS_DATABASE", &url);
        let run = CommandOutput::run(&mut command)
            .expect(code)
            .stderr_contains("the caches are not as cold as requested");
        assert!(run.stdout.contains("NOT evicted"), "{}", run.stdout);
        run.stdout
    };
    let strict = run("--cold", 3);
    assert!(strict.contains("NO: the caches were not emptied: shared buffers: NOT"), "{strict}");
    assert!(strict.contains("--cold=try"), "{strict}");
    run("--cold=try", 0);
    database.riops("run rows --cold=maybe").expect(2).stderr_contains("expected no value, or try");
}

#[test]
fn doctor_reports_whether_the_dataset_fits_in_shared_buffers_or_memory() {
    let home = folder("doctor-fit");
    let dataset_line = |options: &str| {
        let ran =
            CommandOutput::run(&mut command_on(&home, &format!("doctor {options}"))).expect(0);
        ran.stdout.lines().find(|line| line.contains("dataset")).unwrap_or_default().to_owned()
    };
    assert_eq!(dataset_line(""), "");
    CommandOutput::run(&mut command_on(&home, "prepare rows --rows 2000 --layout block")).expect(0);
    assert!(dataset_line("").contains("fits in shared_buffers"), "{}", dataset_line(""));
    assert!(
        dataset_line("--server-set shared_buffers=8MB")
            .contains("fits in memory, but not in shared_buffers"),
        "{}",
        dataset_line("--server-set shared_buffers=8MB")
    );
}
