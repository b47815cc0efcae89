//! Runs with an existing pgio.conf.

use crate::fixture::{CommandOutput, Database, database, folder};

fn conf(name: &str, update_pct: u8, extra: &str) -> String {
    let path = folder(&format!("conf-{name}")).join("pgio.conf");
    let text = format!(
        "# SLOB\nUPDATE_PCT={update_pct}\nRUN_TIME=1\nNUM_SCHEMAS=2\nNUM_THREADS=2\nWORK_UNIT=32\n\
         UPDATE_WORK_UNIT=8\nSCALE=8M\nDBNAME=pg10\nCONNECT_STRING=\"pg10\"\nCREATE_BASE_TABLE=TRUE\n{extra}"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn prepare_database(name: &str) -> Database {
    let database = database(name);
    let conf = conf(name, 0, "");
    database
        .riops(&format!("prepare rows --config {conf}"))
        .expect(0)
        .stderr_contains("CREATE_BASE_TABLE");
    database
}

#[test]
fn tables_have_one_row_per_block() {
    let database = prepare_database("pgio_tables");
    // The server may have extended the tables by some empty blocks.
    let sizes = "select bool_and(pg_relation_size(oid) / 8192 between 1024 and 1100) from pg_class where relname in ('rows_0001', 'rows_0002')";
    assert_eq!(database.value(sizes).as_deref(), Some("t"));
    let blocks = "select count(distinct split_part(ctid::text, ',', 1)) from riops.rows_0001";
    assert_eq!(database.value(blocks).as_deref(), Some("1024"));
    assert_eq!(database.value("select count(*) from riops.rows_0002").as_deref(), Some("1024"));
}

#[test]
fn report_is_complete_and_its_block_counts_match_pg_stat_io() {
    let database = prepare_database("pgio_report");
    for update_pct in [0, 20, 70, 100] {
        let conf = conf("pgio_report", update_pct, "");
        let detail = folder("pgio-detail").join("pgio_session_detail.out");
        let files = format!("--config {conf} --session-detail {}", detail.display());
        let run = database.riops(&format!("run rows {files} --output pgio")).expect(0);
        let detail = std::fs::read_to_string(detail).unwrap();
        assert!(run.stdout.contains(&detail) && detail.lines().count() == 6, "{detail}");
        let lines: Vec<_> = run.stdout.lines().collect();
        let header = lines.iter().position(|line| line.contains("loop_iterations")).unwrap();
        let mut touched = 0.0;
        // Below the header is a line.
        for session in &lines[header + 2..header + 6] {
            let fields: Vec<f64> =
                session.split('|').map(|field| field.trim().parse().unwrap()).collect();
            assert_eq!(fields.len(), 8, "{session}");
            assert!(fields[0] > 0.0 && fields[1] == fields[2] + fields[3], "{session}");
            assert!(
                (fields[3] - fields[1] * f64::from(update_pct) / 100.0).abs() <= 1.0,
                "{session}"
            );
            touched += fields[6] + fields[7];
        }
        let last = lines.last().unwrap();
        assert!(
            last.starts_with(
                "DBNAME:  pgio_report. 2 schemas, 2 threads(each). Run time: 1 seconds. RIOPS >"
            ),
            "{last}"
        );
        assert!(lines.iter().any(|line| line.trim_start().starts_with("BEFORE:")));
        let record = database.riops("runs show --output json").expect(0).json();
        let stage = &record["stages"][0];
        let blocks = &stage["database"]["blocks"];
        let counted: f64 = ["heap_blks_hit", "heap_blks_read", "idx_blks_hit", "idx_blks_read"]
            .iter()
            .map(|name| blocks[name].as_f64().unwrap())
            .sum();
        // All other block accesses come from transactions during the drain.
        let drained = stage["drained"]["transactions"].as_f64().unwrap() * 200.0;
        assert!((touched - counted).abs() <= counted * 0.02 + drained, "{touched} {counted}");
        let io = &stage["database"]["client_io"];
        // Other tests use the same server, so the server's counters may be higher but not lower.
        assert!(
            io["hits"].as_f64().unwrap() + io["reads"].as_f64().unwrap()
                >= touched * 0.98 - drained
        );
        assert_eq!(record["verdict"]["valid"], true);
    }
    database.riops("verify rows").expect(0);
}

#[test]
fn command_line_overrides_the_file_and_unknown_lines_are_reported() {
    let database = prepare_database("pgio_wins");
    let conf = conf("pgio_wins", 50, "OUTPUT_DIR=/tmp\n");
    let run = database
        .riops(&format!(
            "run rows --config {conf} --update-percent 0 --transactions 20 --output json"
        ))
        .expect(0)
        .stderr_contains("OUTPUT_DIR is not a variable of PGIO");
    let plan = &run.json()["plan"];
    assert_eq!((&plan["rows"]["update_percent"], &plan["sessions"]), (&0.into(), &4.into()));
    assert_eq!(plan["stop"]["transactions"], 20);
    for (line, message) in [
        ("SCALE=100", "SCALE=100"),
        ("RUN_TIME=$TIME", "RUN_TIME must have a literal value"),
        ("if true; then", "is not a variable assignment"),
    ] {
        let bad = folder("conf-bad").join("pgio.conf");
        std::fs::write(&bad, format!("UPDATE_PCT=10\n{line}\n")).unwrap();
        let run = database.riops(&format!("run rows --config {}", bad.display()));
        run.expect(2).stderr_contains(message);
    }
}

#[test]
fn uses_the_connect_string_if_no_database_is_given() {
    let mut run =
        crate::fixture::command(&format!("run rows --config {}", conf("pgio_where", 0, "")));
    run.env("PGHOST", "/nowhere");
    CommandOutput::run(&mut run).expect(1).stderr_contains("database pg10");
}
