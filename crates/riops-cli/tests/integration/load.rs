//! `generate csv`, `run load`, `prepare load`, `verify load` and `cleanup load`.

use crate::fixture::{Database, Ran, command, database, folder, tcp_url, until};

const ALL: &str = "insert,copy_mem,copy-binary,procedure,unnest";

fn csv(folder: &std::path::Path, options: &str) -> Ran {
    let line = format!("generate csv {options} --dir {}", folder.display());
    Ran::of(&mut command(&line)).expect(0)
}

/// What is in the table, from behind riops's back: rows, distinct ids, smallest, largest, and rows
/// whose texts have not all this length.
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
fn every_method_loads_every_row_once_whatever_the_remainders() {
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
fn a_load_from_files_has_their_rows_and_nothing_else() {
    let database = database("load_files");
    let folder = folder("load-files");
    let written = csv(&folder, "--rows 1003 -c 3 --field-length 5");
    assert!(written.stdout.contains("wrote 1,003 rows into 3 files"), "{}", written.stdout);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [1, 2, 3].map(|number| format!("ysql_bench-t3-r1003-f5--nr{number}.csv"));
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
    // Files are not replaced by a slip.
    let again =
        format!("generate csv --rows 1003 -c 3 --field-length 5 --dir {}", folder.display());
    Ran::of(&mut command(&again)).expect(1).says("is there already");
    Ran::of(&mut command(&format!("{again} --force"))).expect(0);
}

#[test]
fn a_file_that_is_missing_is_told_before_anything_is_dropped() {
    let database = database("load_no_file");
    let folder = folder("load-no-file");
    database.riops("run load --rows 100").expect(0);
    let line =
        format!("run load --method copy-file --rows 7 -c 1 --drop --dir {}", folder.display());
    database
        .riops(&line)
        .expect(1)
        .says("ysql_bench-t1-r7-f24--nr1.csv")
        .says("riops generate csv");
    database.riops("verify load").expect(0);
}

#[test]
fn a_role_that_may_not_read_files_is_told_how_it_may() {
    let database = database("load_role");
    database
        .connect()
        .execute("create role load_reader login password 'secret'; grant create on database load_role to load_reader")
        .unwrap();
    let folder = folder("load-role");
    csv(&folder, "--rows 50 -c 1");
    let url = tcp_url().replace("/postgres", "/load_role");
    let (_, behind) = url.split_once('@').unwrap();
    let line = format!(
        "run load --method copy-file --rows 50 -c 1 --no-store --dir {} -d postgresql://load_reader:secret@{behind}",
        folder.display()
    );
    Ran::of(&mut command(&line)).expect(1).says("grant pg_read_server_files to load_reader");
    database.connect().execute("grant pg_read_server_files to load_reader").unwrap();
    Ran::of(&mut command(&line)).expect(0);
    let missing = line.replace("--rows 50", "--rows 51");
    Ran::of(&mut command(&format!("{missing} --drop"))).expect(1).says("riops generate csv");
    assert_eq!(database.value("select count(*) from riops.test_table").as_deref(), Some("50"));
    database
        .connect()
        .execute("drop schema riops cascade; drop owned by load_reader; drop role load_reader")
        .unwrap();
}

#[test]
fn a_table_that_is_filled_is_not_loaded_into_and_not_dropped_unless_that_is_wanted() {
    let database = database("load_filled");
    database.riops("run load --rows 300").expect(0);
    database.riops("run load --rows 300").expect(1).says("duplicate keys").says("--drop");
    database.riops("verify load").expect(0);
    database.riops("run load --rows 400 --drop").expect(0);
    assert_eq!(table(&database, 24), "400 400 0 399 0");
    let cleaned = database.riops("cleanup load").expect(0);
    assert_eq!(cleaned.stdout, "dropped 1 table\n");
    assert_eq!(database.value("select 1 from pg_namespace where nspname = 'riops'"), None);
}

#[test]
fn a_table_of_somebody_else_is_neither_filled_nor_dropped() {
    let database = database("load_foreign");
    database
        .connect()
        .execute("create schema riops; create table riops.test_table (a int); insert into riops.test_table values (7)")
        .unwrap();
    database.riops("run load --rows 10 --drop").expect(1).says("was not made by riops");
    assert_eq!(database.value("select a from riops.test_table").as_deref(), Some("7"));
    database.riops("run load --rows 10 --table-name other_table").expect(0);
    assert_eq!(database.value("select count(*) from riops.other_table").as_deref(), Some("10"));
}

#[test]
fn rows_that_were_lost_added_or_changed_behind_riops_s_back_are_found() {
    let database = database("load_verify");
    database.riops("run load --rows 1000 --method copy-binary").expect(0);
    for (change, found) in [
        ("update riops.test_table set f3 = f2 where id = 700", "from id 700 on"),
        ("update riops.test_table set f1 = f1 || 'x' where id = 3", "has not 24 characters"),
        ("delete from riops.test_table where id = 999", "largest id"),
        ("insert into riops.test_table values (5000, '', '', '', '')", "5000"),
    ] {
        database.connect().execute(change).unwrap();
        let verified = database.riops("verify load").expect(3);
        let wrong: Vec<_> =
            verified.stdout.lines().filter(|line| line.starts_with("WRONG")).collect();
        assert!(wrong.iter().any(|line| line.contains(found)), "{change}:\n{}", verified.stdout);
    }
}

#[test]
fn what_the_server_made_is_compared_with_what_was_there_after_the_load() {
    let database = database("load_baseline");
    database.riops("run load --rows 1000 --method procedure").expect(0);
    database.riops("verify load").expect(0);
    database.connect().execute("update riops.test_table set f3 = f2 where id = 700").unwrap();
    let verified = database.riops("verify load").expect(3);
    assert!(verified.stdout.contains("from id 700 on"), "{}", verified.stdout);
}

#[test]
fn a_duplicate_key_in_the_middle_ends_the_load_and_verify_tells_what_is_there() {
    let database = database("load_duplicate");
    // Somebody else's row comes with the table.
    database
        .connect()
        .execute(
            "create function public.intrude() returns event_trigger language plpgsql as $$
             begin
               if exists (select from pg_event_trigger_ddl_commands() where object_identity = 'riops.test_table') then
                 execute 'insert into riops.test_table values (150, repeat(''a'', 24), repeat(''a'', 24), repeat(''a'', 24), repeat(''a'', 24))';
               end if;
             end $$;
             create event trigger intrude on ddl_command_end when tag in ('CREATE TABLE') execute function public.intrude()",
        )
        .unwrap();
    // In the middle of a batch that is far larger than a socket takes, the server hears to its end
    // what it has refused.
    let copy = "run load --rows 200000 -c 2 --batch-size 100000 --method copy-binary";
    let run = database.riops(copy).expect(1);
    assert!(run.stdout.contains("23505"), "{}", run.stdout);
    let run = database.riops("run load --rows 1000 -c 1 --batch-size 100 --drop").expect(1);
    let text = &run.stdout;
    assert!(text.contains("23505") && text.contains("duplicate key"), "{text}");
    assert!(text.contains("another client writes into riops.test_table"), "{text}");
    assert!(text.contains("next       riops verify load"), "{text}");
    // The first batch and the foreign row.
    let verified = database.riops("verify load").expect(3);
    assert!(verified.stdout.contains("expected 100, found 101"), "{}", verified.stdout);
    assert!(verified.stdout.contains("which is not whole: expected 1000"), "{}", verified.stdout);
    database.riops("run point --transactions 5").expect(1).says("incomplete");
    database.connect().execute("drop event trigger intrude").unwrap();
    database.riops("run load --rows 1000").expect(1).says("an interrupted load has left");
    database.riops("run load --rows 1000 --drop").expect(0);
}

#[test]
fn a_stage_that_does_not_come_about_leaves_those_before_it() {
    let database = database("load_next_stage");
    database.riops("run load --rows 300").expect(0);
    database
        .connect()
        .execute("create function riops.load_batch() returns int language sql as 'select 1'")
        .unwrap();
    // Before anything is dropped.
    database
        .riops("run load --rows 200 --method insert,procedure --drop")
        .expect(1)
        .says("riops.load_batch exists");
    assert_eq!(table(&database, 24), "300 300 0 299 0");
    database
        .connect()
        .execute(
            "drop function riops.load_batch();
             create table public.made (n int); insert into public.made values (0);
             create function public.refuse() returns event_trigger language plpgsql as $$
             begin
               update public.made set n = n + 1;
               if (select n from public.made) > 1 then raise exception 'no second table'; end if;
             end $$;
             create event trigger refuse on ddl_command_end when tag in ('CREATE TABLE') execute function public.refuse()",
        )
        .unwrap();
    let run =
        database.riops("run load --rows 200 --method insert,copy --drop --output json").expect(1);
    let record = run.json();
    assert_eq!(record["stages"].as_array().unwrap().len(), 1);
    assert_eq!(record["stages"][0]["rows"], 200);
    let failure = record["failure"].as_str().unwrap();
    assert!(failure.contains("no second table"), "{failure}");
    database.connect().execute("drop event trigger refuse").unwrap();
    database.riops("run load --rows 100").expect(0);
}

#[test]
fn ctrl_c_ends_a_load_and_what_was_acknowledged_is_there() {
    let database = database("load_interrupted");
    let mut line = database
        .command("run load --rows 100000000 -c 2 --batch-size 500 --interval 100ms --output json");
    let child = until(&mut line, " rows/s");
    crate::crash::kill(child.id(), "-INT");
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(130);
    let record = ran.json();
    assert_eq!(
        (&record["status"], &record["verdict"]["valid"]),
        (&"interrupted".into(), &false.into())
    );
    assert!(
        record["verdict"]["reasons"][0]
            .as_str()
            .unwrap()
            .ends_with("of 100000000 rows were loaded")
    );
    let verified = database.riops("verify load").expect(3);
    let wrong = verified.stdout.lines().filter(|line| line.starts_with("WRONG")).count();
    assert_eq!(wrong, 1, "{}", verified.stdout);
    assert!(verified.stdout.contains("that were acknowledged"), "{}", verified.stdout);
}

#[test]
fn a_server_that_is_killed_in_a_load_is_an_error_and_verify_tells_what_is_there() {
    let home = folder("load-kill");
    let store = home.join("runs.sqlite");
    let on = |line: &str| {
        let mut command = crate::server::on(&home, line);
        command.env("RIOPS_STORE", &store);
        command
    };
    // The table of the first stage is gone, and its rows do not count in the second one's account.
    let mut run = on("run load --rows 300000 -c 2 --method unnest,copy --output json");
    let child = until(&mut run, "stage: load, unnest");
    crate::crash::await_answer(
        &home,
        "select 1 from pg_stat_activity, (select from riops.test_table limit 1) as loaded
          where query like 'copy riops%'",
    );
    crate::crash::kill(crate::crash::postmaster(&home), "-KILL");
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(1);
    let record = ran.json();
    assert_eq!(record["status"], "failed");
    assert!(record["failure"].as_str().unwrap().contains("connection"), "{}", record["failure"]);
    let verified = Ran::of(&mut on("verify load")).expect(3);
    let wrong: Vec<_> = verified.stdout.lines().filter(|line| line.starts_with("WRONG")).collect();
    assert_eq!(wrong.len(), 1, "{}", verified.stdout);
    assert!(wrong[0].contains("which is not whole"), "{}", verified.stdout);
    Ran::of(&mut on("run load --rows 500 --drop")).expect(0);
    Ran::of(&mut on("verify load")).expect(0);
}

#[test]
fn the_text_has_ysql_bench_s_block_a_histogram_and_the_bytes_of_a_row() {
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
        "bytes of a row          128",
        "histogram is per batch (200 rows)",
        "# samples            = 10",
    ] {
        assert!(run.stdout.contains(line), "`{line}` is not in:\n{}", run.stdout);
    }
    assert_eq!(run.stdout.lines().filter(|line| line.contains("]:")).count(), 4);
    // A record that was kept is shown in the same way.
    let shown = database.riops("runs show last --print-histogram=log").expect(0);
    assert!(shown.stdout.contains("histogram is per batch (200 rows)"), "{}", shown.stdout);
    database.riops("runs show last --graph /tmp/x.png").expect(2).says("without --graph");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let database = database("load_refused");
    for (line, message) in [
        ("run load --rows 0", "--rows must be at least 1"),
        ("run load --sessions 5000", "max_connections"),
        ("run load --rows 3e9", "the key is an int"),
        ("run load --method bulk", "none of insert"),
        ("run load --batch-size 0", "--batch-size must be at least 1"),
        ("run load --batch-size 13108", "65540 parameters"),
        ("run load --field-length 0", "--field-length must be at least 1"),
        ("run load --table-name Robert'); --", "is no name"),
        ("run load --dir /tmp", "--dir goes with --method copy-file"),
        ("run load --method copy-file --dir data", "no absolute path"),
        ("run load --non-transactional", "--non-transactional is for YugabyteDB"),
        ("run load --tablets 3", "--tablets is for YugabyteDB"),
        ("run load --duration 5", "unexpected argument"),
        ("run load --output pgio", "does not fit a run of load; these do: text, json"),
        ("run load --histogram-buckets 5", "--print-histogram"),
        ("run load --graph /nonexistent/x.png", "cannot be written"),
    ] {
        let code = if line.contains("nonexistent") { 1 } else { 2 };
        database.riops(line).expect(code).says(message);
    }
    assert_eq!(database.value("select 1 from pg_namespace where nspname = 'riops'"), None);
}
