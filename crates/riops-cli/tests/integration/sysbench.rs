//! riops beside the original sysbench, on the same server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::crash::kill;
use crate::fixture::{CommandOutput, Database, database, program, start_until, sysbench_server};
use crate::oltp::{reset_statements, statements, sysbench};

/// The values of `k` in sbtest1: their number, mean and standard deviation, and the share of the rows that have one of
/// the most frequent 1,000 values.
fn values_of_k(database: &Database, schema: &str) -> [f64; 4] {
    let sql = format!(
        "with frequent as (select count(*) from {schema}.sbtest1 group by k order by 1 desc limit 1000)
         select concat_ws(' ', count(distinct k), avg(k), stddev(k),
                          (select sum(count) from frequent) / count(*)) from {schema}.sbtest1"
    );
    let numbers = database.value(&sql).unwrap();
    let numbers: Vec<f64> = numbers.split(' ').map(|value| value.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn k_is_distributed_as_in_the_tables_of_sysbench() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let database = database("sysbench_k");
    for kind in ["special", "uniform", "gaussian", "pareto"] {
        // The mean of 100,000 values of pareto has a standard error of 0.6%.
        let prepare = format!("--rand-type={kind} --rand-seed=1 --tables=1 --table-size=100000");
        sysbench(
            &path,
            &database,
            &format!("oltp_read_write {prepare} --create-secondary=off prepare"),
        );
        database.riops(&format!("prepare oltp {prepare} --recreate")).expect(0);
        let theirs = values_of_k(&database, "public");
        let ours = values_of_k(&database, "riops");
        for (their, our) in theirs.iter().zip(&ours) {
            assert!((our / their - 1.0).abs() < 0.03, "{kind}: {theirs:?}, ours {ours:?}");
        }
        sysbench(&path, &database, &format!("oltp_read_write {prepare} cleanup"));
    }
}

/// Options of a run that both accept, one by one. The first ones apply to every test.
const OPTIONS: [&str; 49] = [
    "--threads=1",
    "--num-threads=1",
    "--events=9",
    "--max-requests=9",
    "--time=5",
    "--max-time=5",
    "--forced-shutdown=5",
    "--thread-stack-size=128K",
    "--rate=500",
    "--tx-rate=500",
    // Later than a run beside other load can end: how many reports there are would depend on the time.
    "--report-interval=1000",
    "--report-checkpoints=1000,2000",
    "--debug=on",
    "--validate",
    "--rand-type=uniform",
    "--rand-type=gaussian",
    "--rand-type=special",
    "--rand-type=pareto",
    "--rand-spec-iter=3",
    "--rand-spec-pct=5",
    "--rand-spec-res=50",
    "--rand-seed=7",
    "--rand-pareto-h=0.5",
    "--verbosity=4",
    "--percentile=50",
    "--percentile=0",
    "--histogram",
    "--db-ps-mode=disable",
    "--db-debug=on",
    "--secondary=on",
    "--mysql-host=nowhere",
    "--mysql-ssl",
    "--mysql-ignore-errors=all",
    "--mysql_storage_engine=none",
    "--create_secondary=off",
    "--delete_inserts=2",
    "--distinct_ranges=0",
    "--index_updates=3",
    "--non-index-updates=2",
    "--order_ranges=2",
    "--point_selects=5",
    "--range_selects=off",
    "--range_size=10",
    "--simple_ranges=2",
    "--skip_trx=on",
    "--sum_ranges=2",
    "--table_size=500",
    "--tables=1",
    "--auto_inc=on",
];

/// Tests with their own options. Rows are deleted by no other test, so that the others find all rows.
const TESTS: [(&str, &str); 9] = [
    ("oltp_read_write", ""),
    ("oltp_read_only", ""),
    ("oltp_write_only", ""),
    ("oltp_point_select", ""),
    ("oltp_update_index", ""),
    ("oltp_update_non_index", ""),
    ("oltp_insert", ""),
    ("select_random_points", "--random_points=4"),
    ("select_random_ranges", "--number-of-ranges=3 --delta=2"),
];

/// Lines that both refuse.
const REFUSED: [&str; 13] = [
    "oltp_read_only",
    "oltp_read_only start",
    "oltp_read_only run again",
    "nosuch run",
    "oltp_read_only --nosuch=1 run",
    "oltp_read_only --random-points=3 run",
    "oltp_read_only --skip-trx=maybe run",
    "oltp_read_only --threads=0 run",
    "oltp_read_only --rand-type=foo run",
    "oltp_read_only --forced-shutdown=x run",
    "oltp_read_only --percentile=101 run",
    "bulk_insert help",
    "bulk_insert prewarm",
];

/// What a program did: whether it failed, the names of the lines of its report, the number of events, and the calls of
/// each statement.
#[derive(Debug, PartialEq)]
struct Account {
    succeeded: bool,
    lines: Vec<String>,
    events: Option<String>,
    calls: BTreeMap<String, f64>,
}

/// The two programs on one database.
struct Both {
    database: Database,
    sysbench: PathBuf,
    server: Vec<String>,
}

impl Both {
    fn new(database: Database, sysbench: PathBuf) -> Self {
        database.connect().execute("create extension if not exists pg_stat_statements").unwrap();
        let server = sysbench_server(&database);
        Self { database, sysbench, server }
    }

    /// Creates the tables with sysbench. riops reads their state again before each run, because the other program
    /// changes them.
    fn prepare(&self) {
        let line = "oltp_read_write --tables=2 --table-size=1000 prepare";
        assert_eq!(self.original(line).code, Some(0));
    }

    fn riops(&self, line: &str) -> CommandOutput {
        CommandOutput::run(&mut self.command(line))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = crate::fixture::command("sysbench");
        command.args(&self.server).args(line.split_whitespace());
        command.env("RIOPS_STORE", &self.database.store);
        command
    }

    fn original(&self, line: &str) -> CommandOutput {
        let mut command = Command::new(&self.sysbench);
        CommandOutput::run(command.args(&self.server).args(line.split_whitespace()))
    }

    fn account(&self, run: impl FnOnce(&Self) -> CommandOutput) -> (Account, CommandOutput) {
        reset_statements(&self.database);
        let output = run(self);
        let last = |name: &str| {
            let line = output.stdout.lines().find(|line| line.trim().starts_with(name))?;
            line.split_whitespace().last().map(str::to_owned)
        };
        let account = Account {
            succeeded: output.code == Some(0),
            lines: names(&output.stdout),
            events: last("total number of events:"),
            calls: statements(&self.database),
        };
        (account, output)
    }

    fn require_alike(&self, line: &str) {
        let (theirs, their_output) = self.account(|both| both.original(line));
        let (ours, our_output) = self.account(|both| both.riops(line));
        assert_eq!(
            ours, theirs,
            "{line}\n{}\n{}\n{}{}",
            our_output.stdout, our_output.stderr, their_output.stdout, their_output.stderr
        );
    }
}

/// The names of the lines of a report that have a value, in order. Both print as many intervals as the run takes, and
/// sysbench the messages of its threads.
fn names(report: &str) -> Vec<String> {
    let is_other = |line: &&str| {
        [
            "[",
            "DEBUG",
            "Debug mode",
            "Validation checks",
            "Initializing",
            "Done",
            "Time limit",
            "Event limit",
            "sysbench ",
            "riops ",
            "WARNING",
        ]
        .iter()
        .any(|start| line.starts_with(start))
            || line.contains(" |*")
            || line.contains(" |  ")
    };
    let name = |line: &str| {
        let name = line.split_once(':').map_or(line, |(name, _)| name);
        name.trim().chars().filter(|c| !c.is_ascii_digit()).collect::<String>()
    };
    report
        .lines()
        .filter(|line| !is_other(line))
        .map(name)
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn every_option_is_accepted_or_refused_as_by_sysbench() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let both = Both::new(database("sysbench_options"), path);
    both.prepare();
    let base = "--tables=2 --table-size=1000 --events=8 --time=0";
    for (test, own) in TESTS {
        both.require_alike(&format!("{test} {base} run"));
        if !own.is_empty() {
            both.require_alike(&format!("{test} {base} {own} run"));
        }
    }
    for option in OPTIONS {
        both.require_alike(&format!("oltp_read_write {base} {option} run"));
    }
    for line in REFUSED {
        let (theirs, _) = both.account(|both| both.original(line));
        let (ours, output) = both.account(|both| both.riops(line));
        assert_eq!((theirs.succeeded, ours.succeeded), (false, false), "{line}");
        assert_eq!(output.code, Some(1), "{line}");
        assert!(output.stderr.contains("riops: "), "{line}: {}", output.stderr);
    }
    // riops refuses tables with missing rows, so it must come first.
    let delete = format!("oltp_delete {base} run");
    let (ours, _) = both.account(|both| both.riops(&delete));
    let (theirs, _) = both.account(|both| both.original(&delete));
    assert_eq!(ours, theirs);
    // riops prepares the same tables, and drops them.
    assert_eq!(both.original("oltp_read_write --tables=2 cleanup").code, Some(0));
    let tables = "oltp_read_write --tables=2 --table-size=100";
    both.riops(&format!("{tables} --create_secondary=off prepare")).expect(0);
    assert_eq!(both.original(&format!("{tables} --events=3 run")).code, Some(0));
    // It creates tables again that sysbench has dropped.
    assert_eq!(both.original(&format!("{tables} cleanup")).code, Some(0));
    both.riops(&format!("{tables} --create_secondary=off prepare")).expect(0);
    assert_eq!(both.original(&format!("{tables} --events=3 run")).code, Some(0));
    both.riops(&format!("{tables} cleanup")).expect(0);
    assert_eq!(both.database.value("select to_regclass('public.sbtest1')"), None);
}

#[test]
fn combinations_of_options_are_accepted_as_by_sysbench() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let both = Both::new(database("sysbench_combinations"), path);
    both.prepare();
    // A linear congruential generator (Knuth's MMIX): the same combinations every time.
    let mut state = 20u64;
    let mut pick = |count: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % count
    };
    for _ in 0..50 {
        let (test, own) = TESTS[pick(TESTS.len())];
        let mut line = format!("{test} --tables=2 --table-size=1000 --events=8 --time=0 {own}");
        for _ in 0..2 + pick(4) {
            line = format!("{line} {}", OPTIONS[pick(OPTIONS.len())]);
        }
        both.require_alike(&format!("{line} run"));
    }
}

#[test]
fn bulk_inserts_write_the_same_rows_as_sysbench_and_are_verified() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let both = Both::new(database("sysbench_bulk"), path);
    let rows = || {
        let sql = "select concat_ws(' ', count(*), sum(id), sum(k)) from";
        ["sbtest1", "sbtest2"].map(|table| both.database.value(&format!("{sql} {table}")).unwrap())
    };
    // The sessions of one worker take turns. With two workers, one may take all events before the other one has started.
    let run = |both: &Both| {
        let line = "bulk_insert --threads=2 --events=1000 --time=0 run";
        CommandOutput::run(both.command(line).env("RIOPS_WORKERS", "1"))
    };
    let line = "bulk_insert --threads=2 --events=1000 --time=0";
    for create in [Both::original, Both::riops] {
        assert_eq!(create(&both, &format!("{line} prepare")).code, Some(0));
        let (ours, output) = both.account(run);
        assert!(ours.succeeded, "{}", output.stderr);
        assert_eq!(rows(), ["500 125250 125250"; 2]);
        // A second run continues above the existing ids; in sysbench it fails.
        run(&both).expect(0);
        assert_eq!(rows(), ["1000 500500 500500"; 2]);
        both.database.riops("verify oltp").expect(0);
        let other = both.riops("oltp_read_only --events=1 run").expect(1).stderr;
        // Tables of sysbench are examined, tables of riops are registered with their size.
        let reasons = ["must have the columns id, k, c and pad", "prepared with --table-size 0"];
        assert!(reasons.iter().any(|reason| other.contains(reason)), "{other}");
        // riops drops only its own tables.
        let _ = both.riops(&format!("{line} cleanup"));
        both.original(&format!("{line} cleanup"));
        assert_eq!(both.original(&format!("{line} prepare")).code, Some(0));
        let (theirs, _) = both.account(|both| both.original(&format!("{line} run")));
        assert_eq!((&ours.lines, &ours.events), (&theirs.lines, &theirs.events));
        assert_eq!(both.original(&format!("{line} cleanup")).code, Some(0));
    }
}

#[test]
fn prewarm_reads_the_tables_into_the_caches() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let both = Both::new(database("sysbench_prewarm"), path);
    let tables = "oltp_read_only --tables=2 --table-size=1000";
    let missing = both.riops(&format!("{tables} prewarm")).expect(1).stderr;
    assert!(missing.contains("no dataset for the workload oltp"), "{missing}");
    both.prepare();
    let connection = &mut both.database.connect();
    connection.execute("create extension pg_buffercache").unwrap();
    let buffers = "select count(*) from pg_buffercache where relfilenode in (
        select pg_relation_filenode(c.oid) from pg_class c where relname ~ '{}')";
    let cached = |connection: &mut riops::server::Connection, name: &str| -> u64 {
        connection.query_value(&buffers.replace("{}", name)).unwrap().unwrap().parse().unwrap()
    };
    // A block that another process has in use at this moment remains. Autovacuum would read them again.
    for table in ["sbtest1", "sbtest2"] {
        connection.execute(&format!("alter table {table} set (autovacuum_enabled = off)")).unwrap();
    }
    let evict = "select pg_buffercache_evict_relation(c.oid) from pg_class c where relname ~ '^(sbtest|k_)'";
    let evicted = (0..1_000).any(|_| {
        connection.execute(evict).unwrap();
        cached(connection, "^(sbtest|k_)") == 0
    });
    assert!(evicted, "{} blocks remain", cached(connection, "^(sbtest|k_)"));
    let text = both.riops(&format!("{} prewarm", tables.replace("=2", "=1"))).expect(0).stdout;
    assert!(text.starts_with("1 table with all indexes: shared buffers: "), "{text}");
    assert!(cached(connection, "^(sbtest1|k_1)") > 20);
    both.riops(&format!("{tables} prewarm")).expect(0);
    assert!(cached(connection, "^sbtest2$") > 20);
    let larger =
        both.riops(&format!("{} prewarm", tables.replace("1000", "2000"))).expect(1).stderr;
    assert!(larger.contains("use --table-size 1000"), "{larger}");
}

/// The different lines of intervals and checkpoints, without their numbers.
fn interval_lines(report: &str) -> BTreeSet<String> {
    let shape = |line: &str| {
        let mut shape = line.replace(|c: char| c.is_ascii_digit(), "#");
        while shape.contains("##") {
            shape = shape.replace("##", "#");
        }
        shape
    };
    report.lines().filter(|line| line.starts_with('[')).map(shape).collect()
}

#[test]
fn intervals_checkpoints_and_limits_are_the_same_as_with_sysbench() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let both = Both::new(database("sysbench_intervals"), path);
    both.prepare();
    let tables = "oltp_read_only --tables=2 --table-size=1000 --threads=2";
    let limits = "--events=1000000 --time=3 --rate=40";
    let line = format!("{tables} {limits} --report-interval=1 --report-checkpoints=2,1 run");
    let (theirs, ours) = (both.original(&line), both.riops(&line));
    assert_eq!((theirs.code, ours.code), (Some(0), Some(0)), "{}", ours.stderr);
    assert_eq!(interval_lines(&ours.stdout), interval_lines(&theirs.stdout));
    let reports = |output: &CommandOutput| output.stdout.matches("SQL statistics:").count();
    assert_eq!((reports(&ours), reports(&theirs)), (3, 3), "{}", ours.stdout);
    // Each interval once, and none twice.
    for second in 1..=3 {
        let start = format!("[ {second}s ] thds: 2 ");
        assert_eq!(ours.stdout.matches(&start).count(), 1, "{}", ours.stdout);
    }
    let total = |output: &CommandOutput| {
        let line = output.stdout.lines().rfind(|line| line.contains("total time:")).unwrap();
        line.split_whitespace().last().unwrap().trim_end_matches('s').parse::<f64>().unwrap()
    };
    // The maximum time ends the run, and not before it has passed.
    assert!(total(&ours) >= 3.0 && total(&theirs) >= 3.0, "{}", ours.stdout);
    // About 40 of 1,000,000 transactions per second started.
    let stored = both.database.riops("runs show last --output json").expect(0).json();
    let starts = &stored["stages"][0]["schedule"];
    assert!((80..160).contains(&starts["intended"].as_u64().unwrap()), "{starts}");
    // Without an interval, nothing is printed before the end.
    let quiet = both.riops(&format!("{tables} --events=5 run"));
    assert!(interval_lines(&quiet.stdout).is_empty(), "{}", quiet.stdout);
}

#[test]
fn cleanup_fails_on_tables_that_riops_did_not_create() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let both = Both::new(database("sysbench_cleanup"), path);
    let line = "oltp_read_write --tables=2 --table-size=100";
    both.prepare();
    // Also after a run on them.
    for _ in 0..2 {
        let error = both.riops(&format!("{line} cleanup")).expect(1).stderr;
        assert!(error.contains("did not drop them: public.sbtest1, public.sbtest2"), "{error}");
        both.riops(&format!("{line} --events=1 run")).expect(0);
    }
    assert_eq!(both.original(&format!("{line} cleanup")).code, Some(0));
    both.riops(&format!("{line} cleanup")).expect(0);
    // Nor does it drop the dataset in another schema.
    both.database.riops("prepare oltp --tables 2 --table-size 100").expect(0);
    both.riops(&format!("{line} cleanup"))
        .expect(1)
        .stderr_contains("in schema \"riops\", not in \"public\"");
    both.database.riops("cleanup oltp --schema elsewhere").expect(2);
    both.database.riops("verify oltp").expect(0);
    both.database
        .riops("cleanup oltp --schema riops")
        .expect(0)
        .stdout_contains("dropped 2 tables");
}

#[test]
fn a_script_of_sysbench_is_known_by_its_contents() {
    let own = Path::new("/usr/share/sysbench/oltp_point_select.lua");
    let Ok(text) = std::fs::read_to_string(own) else {
        return;
    };
    let folder = crate::fixture::folder("stock_scripts");
    let named = folder.join("renamed.lua");
    let help = |path: &Path| {
        let mut command = crate::fixture::command("sysbench");
        CommandOutput::run(command.arg(path).arg("help").current_dir(&folder))
    };
    std::fs::write(&named, &text).unwrap();
    for path in [own, &named] {
        help(path).expect(0).stdout_contains("oltp_point_select options:");
    }
    // Changed by one byte, under the name of the script.
    let changed = folder.join("oltp_point_select.lua");
    std::fs::write(&changed, format!("{text}\n")).unwrap();
    help(&changed).expect(1).stderr_contains("differs from all scripts of sysbench");
    help(Path::new("oltp_point_select")).expect(1).stderr_contains("oltp_point_select.lua differs");
    // It loads another script, which is changed.
    std::fs::write(folder.join("oltp_common.lua"), "-- mine\n").unwrap();
    help(&named).expect(1).stderr_contains("oltp_common.lua differs from all scripts of sysbench");
}

#[test]
fn several_processes_use_the_same_tables_at_once() {
    let Some(path) = program("sysbench") else {
        return;
    };
    for (name, by_riops) in [("sysbench_own", true), ("sysbench_adopted", false)] {
        let both = Both::new(database(name), path.clone());
        let line = "oltp_insert --tables=2 --table-size=1000";
        if by_riops {
            both.riops(&format!("{line} prepare")).expect(0);
        } else {
            both.prepare();
        }
        let hour = format!("{line} --time=3600 run");
        let mut first = start_until(&mut both.command(&hour), "measuring");
        both.riops(&format!("{line} --threads=2 --events=20 run")).expect(0);
        kill(first.id(), "-INT");
        assert!(first.wait().unwrap().code().is_some());
        both.database.riops("verify oltp").expect(0);
    }
}

#[test]
fn the_tests_of_the_yugabytedb_variant_run_on_postgresql() {
    let database = database("sysbench_variant");
    let sysbench = |line: &str| {
        let mut command = crate::fixture::command("sysbench");
        command.args(sysbench_server(&database)).args(line.split(' '));
        CommandOutput::run(command.env("RIOPS_STORE", &database.store))
    };
    // No tables.
    let one =
        sysbench("select_one --num_rows_in_insert=10 --events=5 --time=0 run").expect(0).stdout;
    assert!(one.starts_with("sysbench 1.1.0 (riops ") && one.contains("events/s (eps)"), "{one}");
    assert!(one.contains("    read:                            5\n"), "{one}");
    let tables = "oltp_simple_ranges --table-size=1000 --create_table_options=with(fillfactor=70)";
    sysbench(&format!("{tables} create")).expect(0);
    sysbench(&format!("{tables} load")).expect(0);
    let options = "select reloptions[1] from pg_class where relname = 'sbtest1'";
    assert_eq!(database.value(options).as_deref(), Some("fillfactor=70"));
    let ranges = "oltp_simple_ranges --table-size=1000 --simple_ranges=2 --events=5 --time=0 run";
    let text = sysbench(ranges).expect(0).stdout;
    assert!(text.contains("    read:                            10\n"), "{text}");
    assert_eq!(
        sysbench("oltp_read_only --verbosity=0 --events=1 --time=0 run").expect(1).stdout,
        ""
    );
    sysbench(&format!("{tables} cleanup")).expect(0);
}
