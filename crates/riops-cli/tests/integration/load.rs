//! `generate csv`, `run load`, `prepare load`, `verify load` and `cleanup load`.

use crate::fixture::{CommandOutput, Database, command, database, folder, start_until, tcp_url};

const ALL: &str = "insert,copy_mem,copy-binary,procedure,unnest";

fn csv(folder: &std::path::Path, options: &str) -> CommandOutput {
    let line = format!("generate csv {options} --dir {}", folder.display());
    CommandOutput::run(&mut command(&line)).expect(0)
}

/// Queries the table directly. Returns the numbers of rows and of distinct ids, the smallest and largest id,
/// and the number of rows with a text of another length.
fn table(database: &Database, length: u32) -> String {
    let sql = format!(
        "select concat_ws(' ', count(*), count(distinct id), min(id), max(id),
                count(*) filter (where length(f1) <> {length} or length(f2) <> {length}
                                    or length(f3) <> {length} or length(f4) <> {length}))
           from riops.test_table"
    );
    database.value(&sql).unwrap()
}

#[test]
fn every_method_loads_every_row_exactly_once() {
    let database = database("load_methods");
    for (options, rows, length) in [
        ("--rows 10003 -c 7", 10_003, 24),
        ("--rows 103 -c 7 --batch-size 1 --field-length 1", 103, 1),
        ("--rows 13111 -c 2 --batch-size 13107 --field-length 3", 13_111, 3),
        ("--rows 3 -c 7 --batch-size 1000 --field-length 100", 3, 100),
        ("--rows 500 -c 2 --protocol simple --field-length 40", 500, 40),
        ("--rows 500 -c 2 --protocol extended", 500, 24),
    ] {
        let run = database
            .riops(&format!("run load --method {ALL} --drop {options} --output json"))
            .expect(0);
        let record = run.json();
        assert_eq!(record["verdict"]["valid"], true, "{options}");
        let stages = record["stages"].as_array().unwrap();
        assert_eq!(stages.len(), 5);
        for stage in stages {
            assert_eq!(stage["rows"], rows, "{options}: {}", stage["name"]);
            let operation = &stage["operations"][0];
            assert_eq!(operation["acknowledged_rows"], rows);
            assert_eq!(operation["name"], stage["method"]);
        }
        let expected = format!("{rows} {rows} 0 {} 0", rows - 1);
        assert_eq!(table(&database, length), expected, "{options}");
        database.riops("verify load").expect(0);
    }
}

#[test]
fn copy_file_loads_exactly_the_rows_of_the_files() {
    let database = database("load_files");
    let folder = folder("load-files");
    let written = csv(&folder, "--rows 1003 -c 3 --field-length 5");
    assert!(written.stdout.contains("wrote 1,003 rows to 3 files"), "{}", written.stdout);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [1, 2, 3].map(|file| format!("ysql_bench-t3-r1003-f5--nr{file}.csv"));
    assert_eq!(names, expected);
    let line = format!(
        "run load --method copy_file --rows 1003 -c 3 --field-length 5 --dir {} --output json",
        folder.display()
    );
    let record = database.riops(&line).expect(0).json();
    assert_eq!(record["stages"][0]["rows"], 1_003);
    assert_eq!(record["stages"][0]["transactions"], 3);
    assert!(record["stages"][0].get("batch").is_none());
    assert_eq!(table(&database, 5), "1003 1003 0 1002 0");
    database.riops("verify load").expect(0);
    // Existing files are replaced only with --force.
    let again =
        format!("generate csv --rows 1003 -c 3 --field-length 5 --dir {}", folder.display());
    CommandOutput::run(&mut command(&again)).expect(1).stderr_contains("already exists");
    CommandOutput::run(&mut command(&format!("{again} --force"))).expect(0);
}

#[test]
fn a_missing_file_is_reported_before_the_table_is_dropped() {
    let database = database("load_no_file");
    let folder = folder("load-no-file");
    database.riops("run load --rows 100").expect(0);
    let line =
        format!("run load --method copy-file --rows 7 -c 1 --drop --dir {}", folder.display());
    database
        .riops(&line)
        .expect(1)
        .stderr_contains("ysql_bench-t1-r7-f24--nr1.csv")
        .stderr_contains("riops generate csv");
    database.riops("verify load").expect(0);
}

#[test]
fn a_role_without_pg_read_server_files_gets_a_hint() {
    let database = database("load_role");
    database
        .connect()
        .execute("create role load_reader login password 'secret'; grant create on database load_role to load_reader")
        .unwrap();
    let folder = folder("load-role");
    csv(&folder, "--rows 50 -c 1");
    let url = tcp_url("load_role");
    let (_, address) = url.split_once('@').unwrap();
    let line = format!(
        "run load --method copy-file --rows 50 -c 1 --no-store --dir {} -d postgresql://load_reader:secret@{address}",
        folder.display()
    );
    CommandOutput::run(&mut command(&line))
        .expect(1)
        .stderr_contains("GRANT pg_read_server_files TO load_reader");
    database.connect().execute("GRANT pg_read_server_files TO load_reader").unwrap();
    CommandOutput::run(&mut command(&line)).expect(0);
    let missing = line.replace("--rows 50", "--rows 51");
    CommandOutput::run(&mut command(&format!("{missing} --drop")))
        .expect(1)
        .stderr_contains("riops generate csv");
    assert_eq!(database.value("select count(*) from riops.test_table").as_deref(), Some("50"));
    database
        .connect()
        .execute("drop schema riops cascade; drop owned by load_reader; drop role load_reader")
        .unwrap();
}

#[test]
fn a_loaded_table_is_replaced_only_with_the_drop_option() {
    let database = database("load_filled");
    database.riops("run load --rows 300").expect(0);
    database
        .riops("run load --rows 300")
        .expect(1)
        .stderr_contains("duplicate keys")
        .stderr_contains("--drop");
    database.riops("verify load").expect(0);
    database.riops("run load --rows 400 --drop").expect(0);
    assert_eq!(table(&database, 24), "400 400 0 399 0");
    let cleaned = database.riops("cleanup load").expect(0);
    assert_eq!(cleaned.stdout, "dropped 1 table\n");
    assert_eq!(database.value("select 1 from pg_namespace where nspname = 'riops'"), None);
}

#[test]
fn a_table_not_created_by_riops_is_neither_loaded_nor_dropped() {
    let database = database("load_foreign");
    database
        .connect()
        .execute("create schema riops; create table riops.test_table (a int); insert into riops.test_table values (7)")
        .unwrap();
    database
        .riops("run load --rows 10 --drop")
        .expect(1)
        .stderr_contains("was not created by riops");
    assert_eq!(database.value("select a from riops.test_table").as_deref(), Some("7"));
    database.riops("run load --rows 10 --table-name other_table").expect(0);
    assert_eq!(database.value("select count(*) from riops.other_table").as_deref(), Some("10"));
}

#[test]
fn verify_detects_lost_added_and_changed_rows() {
    let database = database("load_verify");
    database.riops("run load --rows 1000 --method copy-binary").expect(0);
    for (change, finding) in [
        ("update riops.test_table set f3 = f2 where id = 700", "the first at id 700"),
        ("update riops.test_table set f1 = f1 || 'x' where id = 3", "not 24 characters long"),
        ("delete from riops.test_table where id = 999", "largest id"),
        ("insert into riops.test_table values (5000, '', '', '', '')", "5000"),
    ] {
        database.connect().execute(change).unwrap();
        let verified = database.riops("verify load").expect(3);
        let wrong: Vec<_> =
            verified.stdout.lines().filter(|line| line.starts_with("WRONG")).collect();
        assert!(wrong.iter().any(|line| line.contains(finding)), "{change}:\n{}", verified.stdout);
    }
}

#[test]
fn verify_compares_server_generated_rows_with_the_baseline_of_the_load() {
    let database = database("load_baseline");
    database.riops("run load --rows 1000 --method procedure").expect(0);
    database.riops("verify load").expect(0);
    database.connect().execute("update riops.test_table set f3 = f2 where id = 700").unwrap();
    let verified = database.riops("verify load").expect(3);
    assert!(verified.stdout.contains("the first at id 700"), "{}", verified.stdout);
}

#[test]
fn a_duplicate_key_ends_the_load_and_verify_reports_the_loaded_rows() {
    let database = database("load_duplicate");
    // An event trigger inserts a row as soon as the table is created.
    database
        .connect()
        .execute(
            "create function public.insert_duplicate() returns event_trigger language plpgsql as $$
             begin
               if exists (select from pg_event_trigger_ddl_commands() where object_identity = 'riops.test_table') then
                 execute 'insert into riops.test_table values (150, repeat(''a'', 24), repeat(''a'', 24), repeat(''a'', 24), repeat(''a'', 24))';
               end if;
             end $$;
             create event trigger insert_duplicate on ddl_command_end when tag in ('CREATE TABLE') execute function public.insert_duplicate()",
        )
        .unwrap();
    // The error occurs in the middle of a batch far larger than the socket buffer. The server reads and
    // discards the rest.
    let copy = "run load --rows 200000 -c 2 --batch-size 100000 --method copy-binary";
    let run = database.riops(copy).expect(1);
    assert!(run.stdout.contains("23505"), "{}", run.stdout);
    let run = database.riops("run load --rows 1000 -c 1 --batch-size 100 --drop").expect(1);
    let text = &run.stdout;
    assert!(text.contains("23505") && text.contains("duplicate key"), "{text}");
    assert!(text.contains("another client writes to table \"riops.test_table\""), "{text}");
    assert!(text.contains("riops verify load"), "{text}");
    // The first batch and the row inserted by the trigger.
    let verified = database.riops("verify load").expect(3);
    assert!(verified.stdout.contains("expected 100, found 101"), "{}", verified.stdout);
    assert!(verified.stdout.contains("(load incomplete): expected 1000"), "{}", verified.stdout);
    database.riops("run point --transactions 5").expect(1).stderr_contains("incomplete");
    database.connect().execute("drop event trigger insert_duplicate").unwrap();
    database.riops("run load --rows 1000").expect(1).stderr_contains("rows of an interrupted load");
    database.riops("run load --rows 1000 --drop").expect(0);
}

#[test]
fn a_stage_that_fails_to_start_keeps_the_earlier_stages() {
    let database = database("load_next_stage");
    database.riops("run load --rows 300").expect(0);
    database
        .connect()
        .execute("create function riops.load_batch() returns int language sql as 'select 1'")
        .unwrap();
    // The error comes before anything is dropped.
    database
        .riops("run load --rows 200 --method insert,procedure --drop")
        .expect(1)
        .stderr_contains("\"riops.load_batch\" exists");
    assert_eq!(table(&database, 24), "300 300 0 299 0");
    database
        .connect()
        .execute(
            "drop function riops.load_batch();
             create table public.table_count (n int); insert into public.table_count values (0);
             create function public.reject_second_table() returns event_trigger language plpgsql as $$
             begin
               update public.table_count set n = n + 1;
               if (select n from public.table_count) > 1 then raise exception 'no second table'; end if;
             end $$;
             create event trigger reject_second_table on ddl_command_end when tag in ('CREATE TABLE') execute function public.reject_second_table()",
        )
        .unwrap();
    let run =
        database.riops("run load --rows 200 --method insert,copy --drop --output json").expect(1);
    let record = run.json();
    assert_eq!(record["stages"].as_array().unwrap().len(), 1);
    assert_eq!(record["stages"][0]["rows"], 200);
    let failure = record["failure"].as_str().unwrap();
    assert!(failure.contains("no second table"), "{failure}");
    database.connect().execute("drop event trigger reject_second_table").unwrap();
    database.riops("run load --rows 100").expect(0);
}

#[test]
fn ctrl_c_ends_a_load_and_acknowledged_rows_are_present() {
    let database = database("load_interrupted");
    let mut line = database
        .command("run load --rows 100000000 -c 2 --batch-size 500 --interval 100ms --output json");
    let child = start_until(&mut line, " rows/s");
    crate::crash::kill(child.id(), "-INT");
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).expect(130);
    let record = ran.json();
    assert_eq!(
        (&record["status"], &record["verdict"]["valid"]),
        (&"interrupted".into(), &false.into())
    );
    assert!(
        record["verdict"]["reasons"][0]
            .as_str()
            .unwrap()
            .ends_with("of 100,000,000 rows were loaded")
    );
    let verified = database.riops("verify load").expect(3);
    let wrong = verified.stdout.lines().filter(|line| line.starts_with("WRONG")).count();
    assert_eq!(wrong, 1, "{}", verified.stdout);
    assert!(verified.stdout.contains("acknowledged rows of riops."), "{}", verified.stdout);
}

#[test]
fn a_load_fails_if_the_server_is_killed_and_verify_reports_the_loaded_rows() {
    let home = folder("load-kill");
    let store = home.join("runs.sqlite");
    let server_command = |line: &str| {
        let mut command = crate::server::command_on(&home, line);
        command.env("RIOPS_STORE", &store);
        command
    };
    // The second stage has replaced the table of the first, whose rows no longer count.
    let mut run = server_command("run load --rows 300000 -c 2 --method unnest,copy --output json");
    let child = start_until(&mut run, "stage: load, unnest");
    crate::crash::await_value(
        &home,
        "select 1 from pg_stat_activity, (select from riops.test_table limit 1) as loaded
          where query like 'copy riops%'",
    );
    crate::crash::kill(crate::crash::postmaster(&home), "-KILL");
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).expect(1);
    let record = ran.json();
    assert_eq!(record["status"], "failed");
    assert!(record["failure"].as_str().unwrap().contains("connection"), "{}", record["failure"]);
    let verified = CommandOutput::run(&mut server_command("verify load")).expect(3);
    let wrong: Vec<_> = verified.stdout.lines().filter(|line| line.starts_with("WRONG")).collect();
    assert_eq!(wrong.len(), 1, "{}", verified.stdout);
    assert!(wrong[0].contains("(load incomplete)"), "{}", verified.stdout);
    CommandOutput::run(&mut server_command("run load --rows 500 --drop")).expect(0);
    CommandOutput::run(&mut server_command("verify load")).expect(0);
}

#[test]
fn text_output_has_the_ysql_bench_block_a_histogram_and_the_row_size() {
    let database = database("load_text");
    let run = database
        .riops("run load --rows 2000 -c 2 --print-histogram --histogram-buckets 4 --show-rowsize")
        .expect(0);
    for line in [
        "wallclock time",
        "total database time",
        "rows per session",
        "batch                   200",
        "total rows              2,000",
        "non-transactional       false",
        "wallclock time per row",
        "database time per row",
        "bytes per row           128",
        "histogram is per batch (200 rows)",
        "# samples            = 10",
    ] {
        assert!(run.stdout.contains(line), "`{line}` is not in:\n{}", run.stdout);
    }
    assert_eq!(run.stdout.lines().filter(|line| line.contains("]:")).count(), 4);
    // A stored run is shown in the same way.
    let shown = database.riops("runs show last --print-histogram=log").expect(0);
    assert!(shown.stdout.contains("histogram is per batch (200 rows)"), "{}", shown.stdout);
    database
        .riops("runs show last --graph /tmp/x.png")
        .expect(2)
        .stderr_contains("without --graph");
}

#[test]
fn rejects_invalid_options_before_creating_anything() {
    let database = database("load_refused");
    for (line, message) in [
        ("run load --rows 0", "--rows must be at least 1"),
        ("run load --sessions 600", "max_connections"),
        ("run load --rows 3e9", "the key is an int"),
        ("run load --method bulk", "expected insert"),
        ("run load --batch-size 0", "--batch-size must be at least 1"),
        ("run load --batch-size 13108", "65540 parameters"),
        ("run load --field-length 0", "--field-length must be at least 1"),
        ("run load --table-name Robert'); --", "--table-name must consist"),
        ("run load --dir /tmp", "--dir requires --method copy-file"),
        ("run load --method copy-file --dir data", "absolute path"),
        ("run load --non-transactional", "--non-transactional is not supported by PostgreSQL"),
        ("run load --tablets 3", "--tablets is not supported by PostgreSQL"),
        ("run load --duration 5", "unexpected argument"),
        ("run load --output pgio", "openmetrics, ysql-bench]"),
        ("run load --histogram-buckets 5", "--print-histogram"),
        ("run load --graph /nonexistent/x.png", "cannot write /nonexistent/x.png"),
    ] {
        let code = if line.contains("nonexistent") { 1 } else { 2 };
        database.riops(line).expect(code).stderr_contains(message);
    }
    assert_eq!(database.value("select 1 from pg_namespace where nspname = 'riops'"), None);
}
