//! `run script` and `riops pgbench` beside pgbench itself: same statements, same values, same reports, same refusals.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::crash::kill;
use crate::fixture::{self, CommandOutput, Database, database, folder, program, start_until};

/// A database that both programs use, in turns.
pub(crate) struct Both {
    pub(crate) database: Database,
    original: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Both {
    /// Returns `None` if pgbench is not installed.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let original = program("pgbench")?;
        Some(Self { database: database(name), original, folder: folder(name) })
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.database.connect().execute(sql).unwrap();
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        let rows = self.database.connect().query(sql).unwrap();
        rows.into_iter()
            .map(|row| {
                let texts = row.into_iter().map(|value| value.unwrap_or_else(|| "-".to_owned()));
                texts.collect::<Vec<_>>().join("|")
            })
            .collect()
    }

    pub(crate) fn script(&self, text: &str) -> String {
        let file = self.folder.join("script.sql");
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Runs pgbench.
    pub(crate) fn original(&self, line: &str) -> CommandOutput {
        let mut command = Command::new(&self.original);
        command.args(line.split_whitespace()).current_dir(&self.folder);
        CommandOutput::run(command.arg(&self.database.url))
    }

    /// Runs `riops pgbench` with the same arguments.
    pub(crate) fn riops(&self, line: &str) -> CommandOutput {
        let mut command = fixture::command(&format!("pgbench {line}"));
        command.env("RIOPS_STORE", &self.database.store);
        CommandOutput::run(command.arg(&self.database.url).current_dir(&self.folder))
    }
}

#[test]
fn draws_the_same_values_and_scripts_as_pgbench_with_the_same_seed() {
    let Some(both) = Both::new("pgbench_values") else {
        return;
    };
    both.sql("create table seen (client int, script int, n bigint, t text)");
    let texts = [
        "\\set a random(1, 1000000)\n\\set b random_zipfian(1, 1000, 1.3)\ninsert into seen values (:client_id, 1, :a + :b, 'x');\n",
        "\\set a random_gaussian(1, 1000, 4.5)\n\\set b hash(:a) % 1000\n\\if :a > 500\nselect :a * 2 as a, 5 as b \\gset\n\\endif\ninsert into seen values (:client_id, 2, :a, :b % 7);\n",
        "\\set a random_exponential(1, 100, 3)\n\\set b permute(:a, 100)\n\\set seen :seen + 1\ninsert into seen values (:client_id, 3, :a * 1000 + :b + :seen, :random_seed % 97);\n",
    ];
    let mut files = String::new();
    for (weight, text) in (1..).zip(texts) {
        let file = both.folder.join(format!("{weight}.sql"));
        std::fs::write(&file, text).unwrap();
        let _ = write!(files, " -f {}@{weight}", file.display());
    }
    let read = "select client, script, n, t from seen order by ctid";
    // One client for each thread: the choice of scripts depends on the thread.
    let line = format!("-n -c 1 -j 1 -t 60 --random-seed=77 -D seen=0{files}");
    let mut results = Vec::new();
    for is_original in [true, false] {
        both.sql("truncate seen");
        let run = if is_original { both.original(&line) } else { both.riops(&line) };
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        results.push(both.rows(read));
    }
    assert_eq!((results[0].len(), &results[0]), (60, &results[1]));
    let several = format!("-n -c 4 -j 4 -t 20 --random-seed=5 -D seen=0{files}");
    let sorted = "select client, script, n, t from seen order by 1, 2, 3, 4";
    let mut results = Vec::new();
    for is_original in [true, false] {
        both.sql("truncate seen");
        let run = if is_original { both.original(&several) } else { both.riops(&several) };
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        results.push(both.rows(sorted));
    }
    assert_eq!((results[0].len(), &results[0]), (80, &results[1]));
}

/// Scripts of each kind of command. They write what they found into the table `seen`.
const SCRIPTS: [&str; 24] = [
    "select 1 as a, 'x y' as b \\gset\ninsert into seen values (':a :b');\n",
    "select 1 as a, 2 as b \\gset p_\ninsert into seen values (':p_a :p_b');\n",
    "\\set a 5\nselect 7 as a \\gset\ninsert into seen values (':a');\n",
    "select 1 as a \\; select 2 as a \\gset\ninsert into seen values (':a');\n",
    "select 1 as a \\; select 2 as b \\aset\ninsert into seen values (':a :b');\n",
    "select 1 as a \\; select 2 as a where false \\aset\ninsert into seen values (':a');\n",
    "select generate_series(1, 3) as a \\aset\ninsert into seen values (':a');\n",
    "\\set a 1\n\\if :a = 1\ninsert into seen values ('if');\n\\elif 1 / 0 = 1\ninsert into seen values ('elif');\n\\else\ninsert into seen values ('else');\n\\endif\n",
    "\\set a 2\n\\if :a = 1\ninsert into seen values ('if');\n\\elif :a = 2\ninsert into seen values ('elif');\n\\else\ninsert into seen values ('else');\n\\endif\ninsert into seen values ('end');\n",
    "\\if null\ninsert into seen values ('if');\n\\else\n\\if 0.5\ninsert into seen values ('inner');\n\\endif\n\\endif\n",
    "\\if false\n\\if true\ninsert into seen values ('a');\n\\elif true\ninsert into seen values ('b');\n\\endif\n\\else\ninsert into seen values ('c');\n\\endif\n",
    "\\sleep 1 us\n\\sleep 1ms\n\\set a 2\n\\sleep :a ms\ninsert into seen values ('slept');\n",
    "\\set a 0.1 + 0.2\n\\set b 1.0\n\\set c 1e300 * 1e10\ninsert into seen values (':a :b :c');\n",
    "\\set a 1 = 1\n\\set b null\ninsert into seen values (':a :b');\n",
    "insert into seen values ('a'); insert into seen\nvalues ('b'); -- c\ninsert into seen values ('d') \\set a 1\ninsert into seen values (':a');\n",
    "begin;\ninsert into seen values ('a');\nrollback;\ninsert into seen values ('b');\n",
    "insert into seen values ('a::int :1 x:y :undefined');\n",
    "create temp table t (a int);\ninsert into t values (4);\nselect a from t \\gset\ninsert into seen values (':a');\n",
    "do $$ begin perform 1; end $$;\ninsert into seen values ($$a;b$$);\n",
    "/* a */ insert into seen values ('c') /* ; */;\n;\ninsert into seen values (E'd\\'e');\n",
    "\\set a random(1, 6) + \\\n random(1, 6)\ninsert into seen values (':a');\n",
    "insert into seen values (':client_id :scale');\n",
    "select count(*) as n from generate_series(1, 1000) \\gset\n\\set m :n * 2\ninsert into seen values (':m');\n",
    "vacuum seen;\ninsert into seen values ('vacuumed');\n",
];

/// Scripts that need the extended protocol.
const PIPELINES: [&str; 6] = [
    "\\startpipeline\ninsert into seen values ('a');\ninsert into seen values ('b');\n\\endpipeline\n",
    "\\startpipeline\n\\endpipeline\ninsert into seen values ('a');\n",
    "\\set a 1\n\\startpipeline\nselect 1;\n\\set a :a + 1\n\\if :a = 2\nselect 2;\n\\endif\n\\endpipeline\ninsert into seen select 'pipeline';\n",
    "begin;\n\\startpipeline\ninsert into seen values ('a');\nselect 1;\n\\endpipeline\nend;\n",
    "\\set a 3\ninsert into seen values (:a::int::text);\nselect :a::int + 1 as b \\gset\ninsert into seen values (:b::text);\n",
    "\\startpipeline\nset local statement_timeout = 0;\ncreate table if not exists made (a int);\n\\endpipeline\ninsert into seen values ('made');\n",
];

#[test]
fn scripts_write_the_same_rows_as_with_pgbench() {
    let Some(both) = Both::new("pgbench_scripts") else {
        return;
    };
    both.sql("create table seen (t text)");
    let simple = SCRIPTS.iter().map(|script| (*script, "simple"));
    let others = ["extended", "prepared"]
        .into_iter()
        .flat_map(|protocol| PIPELINES.iter().map(move |script| (*script, protocol)));
    for (text, protocol) in simple.chain(others) {
        let file = both.script(text);
        let line = format!("-n -t 3 -M {protocol} --random-seed=9 -f {file}");
        let mut results = Vec::new();
        for is_original in [true, false] {
            both.sql("truncate seen");
            // A script may create temporary tables, whose names must be free in the next transaction.
            let line = line.replace("-t 3", if text.contains("temp") { "-t 1" } else { "-t 3" });
            let run = if is_original { both.original(&line) } else { both.riops(&line) };
            assert_eq!(run.code, Some(0), "{text}\n{}", run.stderr);
            results.push(both.rows("select t from seen order by ctid"));
        }
        assert_eq!(results[0], results[1], "{protocol}: {text}");
        assert!(!results[0].is_empty(), "{protocol}: {text}");
    }
}

#[test]
fn scripts_fail_in_the_same_commands_as_with_pgbench() {
    let Some(both) = Both::new("pgbench_failures") else {
        return;
    };
    both.sql("create table seen (t text)");
    for (text, protocol) in [
        ("select 1 / 0;\n", "prepared"),
        ("select 1;\nselect * from missing;\n", "prepared"),
        ("select 1 where false \\gset\n", "simple"),
        ("select generate_series(1, 2) as a \\gset\n", "simple"),
        ("update seen set t = '' \\gset\n", "simple"),
        ("select 1 \\gset\n", "simple"),
        ("\\set a 1 / 0\n", "simple"),
        ("\\set a 9223372036854775807 + 1\n", "simple"),
        ("\\set a random(2, 1)\n", "simple"),
        ("\\set a permute(1, 0)\n", "simple"),
        ("copy seen from stdin;\n", "simple"),
        ("copy seen from stdin;\n", "extended"),
        ("begin;\nselect 1;\n", "prepared"),
        ("\\startpipeline\nselect 1;\n", "prepared"),
        ("\\endpipeline\n", "prepared"),
        ("\\startpipeline\nselect 1 / 0;\nselect 2;\n\\endpipeline\n", "prepared"),
        ("select 1 +;\n", "simple"),
        ("\\set a 1 +\n", "simple"),
        ("\\if true\n", "simple"),
        ("\\unknown\n", "simple"),
        ("", "simple"),
    ] {
        let file = both.script(text);
        let line = format!("-n -t 5 -M {protocol} -f {file}");
        let (theirs, ours) = (both.original(&line), both.riops(&line));
        assert!(matches!(theirs.code, Some(1 | 2)), "{text}\n{}", theirs.stderr);
        assert_eq!(ours.code, theirs.code, "{text}\n{}", ours.stderr);
        let processed = |output: &CommandOutput| {
            let line = output.stdout.lines().find(|line| line.contains("actually processed"));
            line.map(|line| line.rsplit(' ').next().unwrap().to_owned())
        };
        // pgbench counts a script that ends within a block, although it is undone.
        if !text.starts_with("begin") {
            assert_eq!(processed(&ours), processed(&theirs), "{text}");
        }
        // The session is usable after the error: nothing is left open.
        let open = "select count(*) from pg_stat_activity where state like 'idle in%'";
        assert_eq!(both.rows(open).len(), 1);
    }
}

#[test]
fn command_lines_are_refused_as_by_pgbench() {
    let Some(path) = program("pgbench") else {
        return;
    };
    for line in [
        "-i -c 2",
        "-i -S",
        "-i -t 5",
        "-i -r",
        "-F 50",
        "-I d",
        "--foreign-keys",
        "--partitions=2",
        "-t 1 -T 1",
        "-c 0",
        "-c x",
        "-j 0",
        "-T 0",
        "-t 0",
        "-s 0",
        "-P 0",
        "-R 0",
        "-R x",
        "-L 0",
        "-M other",
        "-D x",
        "--max-tries=0",
        "--max-tries=-1",
        "--sampling-rate=0.1",
        "--aggregate-interval=1",
        "--log-prefix=a",
        "-l --sampling-rate=0",
        "-l --sampling-rate=2",
        "-l --sampling-rate=0.5 --aggregate-interval=1",
        "-l -T 5 --aggregate-interval=2",
        "-l -T 5 --aggregate-interval=7",
        "--progress-timestamp",
        "-i -F 5",
        "-i -F 101",
        "-i --partition-method=hash",
        "-i --partition-method=list",
        "-i -I xyz",
        "-b nothing",
        "-b s",
        "-b tpcb@x",
        "-f missing.sql",
        "-b tpcb@0",
        "--random-seed=x",
        "--show-script=nothing",
        "--unknown",
        "one two",
    ] {
        let theirs = CommandOutput::run(Command::new(&path).args(line.split_whitespace()));
        let ours = CommandOutput::run(&mut fixture::command(&format!("pgbench {line}")));
        assert_eq!((theirs.code, theirs.stdout.as_str()), (Some(1), ""), "{line}");
        assert_eq!((ours.code, ours.stdout.as_str()), (Some(1), ""), "{line}: {}", ours.stderr);
        assert!(!ours.stderr.is_empty(), "{line}");
    }
    for line in ["-b list", "--show-script=tpcb-like", "--show-script=si", "--show-script=sel"] {
        let theirs = CommandOutput::run(Command::new(&path).args(line.split_whitespace()));
        let ours = CommandOutput::run(&mut fixture::command(&format!("pgbench {line}")));
        let text = |output: &CommandOutput| output.stderr.trim_end().to_owned();
        assert_eq!((ours.code, text(&ours)), (theirs.code, text(&theirs)), "{line}");
        assert!(ours.stdout.is_empty(), "{line}");
    }
}

/// Returns the lines of a report with `#` for each number.
pub(crate) fn shapes(report: &str) -> Vec<String> {
    let shape = |line: &str| {
        let mut shape = line.replace(|c: char| c.is_ascii_digit(), "#");
        while shape.contains("##") {
            shape = shape.replace("##", "#");
        }
        shape.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    report.lines().map(shape).collect()
}

#[test]
fn reports_and_progress_have_the_lines_of_pgbench() {
    let Some(both) = Both::new("pgbench_reports") else {
        return;
    };
    let initialized = both.riops("-i -q");
    assert_eq!(initialized.code, Some(0), "{}", initialized.stderr);
    // Lines of progress only where the duration is given: whether there are any depends on that alone.
    for line in [
        "-n -t 20 -P 600",
        "-n -t 20 -P 600 -c 4 -j 2 -M prepared -r -S",
        "-n -T 2 -P 1 -c 2 -N -r --max-tries=3 --failures-detailed",
        "-n -T 2 -R 50 -P 1",
        "-n -T 2 -R 50 -L 1000 -P 1 -r",
        "-n -T 2 -C -S -P 1",
        "-v -t 20 -L 0.001 -P 600",
    ] {
        let (theirs, ours) = (both.original(line), both.riops(line));
        assert_eq!((theirs.code, ours.code), (Some(0), Some(0)), "{line}: {}", ours.stderr);
        // The first line has the versions.
        assert_eq!(shapes(&ours.stdout)[1..], shapes(&theirs.stdout)[1..], "{line}");
        let progress = |output: &CommandOutput| {
            let lines = shapes(&output.stderr);
            lines.into_iter().filter(|line| line.starts_with("progress")).collect::<BTreeSet<_>>()
        };
        assert_eq!(progress(&ours), progress(&theirs), "{line}");
    }
    // For several scripts, version 18 prints two more lines than version 15.
    let ours = both.riops("-n -t 30 -S -N -b tpcb@2 -P 5").expect(0);
    let lines = shapes(&ours.stdout);
    for line in [
        "transaction type: multiple scripts",
        "SQL script #: <builtin: TPC-B (sort of)>",
        "- weight: # (targets #.#% of total)",
        "- # transactions (#.#% of total)",
        "- number of transactions actually processed: # (tps = #.#)",
        "- number of failed transactions: # (#.#%)",
        "- latency average = #.# ms",
        "- latency stddev = #.# ms",
    ] {
        assert!(lines.iter().any(|actual| actual == line), "{line}\n{}", ours.stdout);
    }
}

#[test]
fn percentiles_are_printed_as_neon_and_a_later_pgbench_do() {
    let database = database("pgbench_percentiles");
    let riops = |line: &str| {
        let mut command = crate::fixture::command(&format!("pgbench {line}"));
        command.env("RIOPS_STORE", &database.store);
        CommandOutput::run(command.arg(&database.url))
    };
    riops("-i -q").expect(0);
    let names = |line: &str| {
        let ran = riops(&format!("-n -t 30 {line}")).expect(0);
        let lines = ran.stdout.lines().filter_map(|line| line.split_once("latency percentile "));
        let names = lines.map(|(mark, rest)| {
            let (percent, value) = rest.split_once(" = ").unwrap();
            assert!(value.strip_suffix(" ms").unwrap().parse::<f64>().unwrap() > 0.0, "{value}");
            format!("{mark}{percent}")
        });
        names.collect::<Vec<_>>()
    };
    assert!(names("-S").is_empty());
    assert_eq!(names("-S --latency-percentiles"), ["50", "95", "99"]);
    assert_eq!(names("-S --percentile"), ["50", "90", "99", "99.9", "99.99"]);
    assert_eq!(
        names("-S -N --percentile=75,100"),
        ["75", "100", " - 75", " - 100", " - 75", " - 100"]
    );
    for list in ["0", "50,101", "1,2,3,4,5,6,7,8,9,10,11", "x"] {
        assert_eq!(riops(&format!("-n --latency-percentiles={list}")).code, Some(1), "{list}");
    }
    let line = "run script -b select-only --latency-percentiles --duration 100ms";
    database.riops(line).expect(2).stderr_contains("requires --output pgbench");
}

/// Returns the names and the contents of the logs with this prefix, and removes them.
pub(crate) fn logs(folder: &Path, prefix: &str) -> Vec<(String, String)> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(rest) = name.strip_prefix(prefix) {
            let thread = rest.split('.').nth(2).map_or_else(String::new, str::to_owned);
            logs.push((thread, std::fs::read_to_string(&path).unwrap()));
            std::fs::remove_file(path).unwrap();
        }
    }
    logs.sort();
    logs
}

#[test]
fn logs_have_the_names_and_columns_of_pgbench() {
    let Some(both) = Both::new("pgbench_logs") else {
        return;
    };
    both.riops("-i -q").expect(0);
    for line in [
        "-n -S -c 2 -j 2 -t 10 -l --log-prefix=log",
        "-n -S -c 2 -j 1 -t 10 -l --log-prefix=log --max-tries=2",
        "-n -S -c 1 -t 20 -R 1000 -l --log-prefix=log",
        "-n -S -c 2 -t 500 -l --log-prefix=log --sampling-rate=0.1 --random-seed=3",
    ] {
        both.original(line).expect(0);
        let theirs = logs(&both.folder, "log");
        both.riops(line).expect(0);
        let ours = logs(&both.folder, "log");
        let names = |logs: &[(String, String)]| {
            logs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&ours), names(&theirs), "{line}");
        let columns = |logs: &[(String, String)]| {
            let lines = logs.iter().flat_map(|(_, text)| text.lines());
            lines.map(|line| line.split(' ').count()).collect::<BTreeSet<_>>()
        };
        assert_eq!(columns(&ours), columns(&theirs), "{line}");
        let count = |logs: &[(String, String)]| -> usize {
            logs.iter().map(|(_, text)| text.lines().count()).sum()
        };
        if line.contains("sampling") {
            assert!((50..150).contains(&count(&ours)), "{}", count(&ours));
        } else {
            assert_eq!((count(&ours), count(&theirs)), (20, 20), "{line}");
        }
        let clients: BTreeSet<&str> =
            ours.iter().flat_map(|(_, text)| text.lines()).map(|line| &line[..1]).collect();
        assert!(clients.iter().all(|client| ["0", "1"].contains(client)), "{clients:?}");
    }
    // Every transaction is in an interval, including the transactions of the last interval.
    let run = both.riops("-n -S -c 2 -j 1 -T 3 -l --log-prefix=sums --aggregate-interval=1");
    let processed = run.stdout.lines().find_map(|line| line.split_once("processed: ")).unwrap().1;
    let sums = logs(&both.folder, "sums").remove(0).1;
    let counted: u64 =
        sums.lines().map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(processed, counted.to_string());
    assert!(sums.lines().all(|line| line.split(' ').count() == 15), "{sums}");
}

#[test]
fn a_collector_reads_the_report_and_riops_imports_the_log() {
    let Some(both) = Both::new("pgbench_collector") else {
        return;
    };
    both.riops("-i -q").expect(0);
    let run = both.riops("-n -S -c 3 -t 40 -l --log-prefix=run -M prepared").expect(0);
    // What collectors of pgbench results look for at the beginning of lines.
    let value = |name: &str| {
        let line = run.stdout.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {}", run.stdout)).trim().to_owned()
    };
    assert_eq!(value("scaling factor:"), "1");
    assert_eq!(value("query mode:"), "prepared");
    assert_eq!(value("number of clients:"), "3");
    assert_eq!(value("number of threads:"), "1");
    assert_eq!(value("number of transactions actually processed:"), "120/120");
    let figure = |text: &str| text.split_whitespace().next().unwrap().parse::<f64>().unwrap();
    assert!(figure(&value("tps =")) > 0.0 && value("tps =").contains("(without initial"));
    assert!(figure(&value("latency average =")) > 0.0);
    let text: String = logs(&both.folder, "run").into_iter().map(|(_, text)| text).collect();
    let log = both.folder.join("pgbench_log.1");
    std::fs::write(&log, text).unwrap();
    both.database.riops(&format!("runs import {}", log.display())).expect(0);
    let imported = both.database.riops("runs show last --output json").expect(0).json();
    assert_eq!(imported["stages"][0]["transactions"], 120);
}

/// Returns the properties of the tables of pgbench.
fn properties(both: &Both) -> Vec<String> {
    let tables = "select c.relname, c.relpersistence, c.reloptions, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
        from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relname like 'pgbench%' and c.relkind in ('r', 'p') and a.attnum > 0 order by c.relname, a.attnum";
    let constraints = "select conname, pg_get_constraintdef(oid) from pg_constraint where conname like 'pgbench%' order by 1, 2";
    let bounds = "select relname, pg_get_expr(relpartbound, oid) from pg_class where relname like 'pgbench%' and relispartition order by 1";
    let contents = "select (select string_agg(b::text, ',' order by bid) from pgbench_branches b), (select md5(string_agg(t::text, ',' order by tid)) from pgbench_tellers t), (select md5(string_agg(a::text, ',' order by aid)) from pgbench_accounts a), (select count(*) from pgbench_history)";
    [tables, constraints, bounds, contents].iter().flat_map(|sql| both.rows(sql)).collect()
}

#[test]
fn prepares_the_same_tables_as_pgbench() {
    let Some(both) = Both::new("pgbench_tables") else {
        return;
    };
    for options in [
        "",
        "-F 90 --foreign-keys",
        "--partitions 3 -F 80",
        "--partitions 2 --partition-method hash --foreign-keys",
        "--unlogged-tables",
        "-I dtGvp",
    ] {
        let line = format!("-i -q {options}");
        both.original(&line).expect(0);
        let theirs = properties(&both);
        both.riops(&line).expect(0);
        assert_eq!(properties(&both), theirs, "{options}");
        if !options.starts_with("-I") {
            both.original("-i -I d").expect(0);
            both.database.riops(&format!("prepare script {options}")).expect(0);
            assert_eq!(properties(&both), theirs, "{options}");
            // Usable by pgbench, and verified after it has changed them.
            both.original("-n -t 5").expect(0);
            both.database.riops("run script --transactions 20 --warmup 0s").expect(0);
            both.database.riops("verify script").expect(0);
            both.database.riops("cleanup script").expect(0);
        }
    }
    // Tables of pgbench are adopted, and not dropped.
    both.original("-i -q -s 2").expect(0);
    let run = both.database.riops("run script -b simple-update --transactions 20 --warmup 0s");
    assert!(run.expect(0).stdout.contains("created by another program"));
    let simple_update = "run script -b simple-update --warmup 0s";
    let hour = format!("{simple_update} --duration 1h --interval 100ms");
    let mut first = start_until(&mut both.database.command(&hour), "tx/s");
    both.database.riops(&format!("{simple_update} --transactions 20")).expect(0);
    kill(first.id(), "-INT");
    assert_eq!(first.wait().unwrap().code(), Some(130));
    both.database.riops("verify script").expect(0);
    let cleaned = both.database.riops("cleanup script").expect(0);
    assert!(cleaned.stdout.contains("did not drop"), "{}", cleaned.stdout);
    assert_eq!(both.rows("select count(*) from pgbench_branches"), ["2"]);
}

#[test]
fn transactions_in_flight_at_the_end_are_finished_and_count() {
    let Some(both) = Both::new("pgbench_in_flight") else {
        return;
    };
    let file = both.script("select pg_sleep(1.2);\n");
    let line = format!("-n -c 2 -T 1 -f {file}");
    for ran in [both.original(&line), both.riops(&line)] {
        let report = ran.expect(0).stdout;
        assert!(report.contains("\nduration: 1 s\n"), "{report}");
        assert!(report.contains("actually processed: 2\n"), "{report}");
        // They took longer than the duration.
        let tps = report.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap();
        let tps: f64 = tps.split(' ').next().unwrap().parse().unwrap();
        assert!(tps > 0.0 && tps <= 2.0 / 1.2, "{report}");
    }
    // A run of riops ends on time, and a measurement without an answer is not valid.
    let run = format!("run script -f {file} -c 2 --warmup 0s --duration 1s --output json");
    let record = both.database.riops(&run).expect(3).json();
    assert_eq!(record["stages"][0]["transactions"], 0, "{record}");
    assert_eq!(record["stages"][0]["drained"]["transactions"], 2, "{record}");
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(reasons.contains("no transaction ended within the measurement"), "{reasons}");
    let counted = both.database.riops(&format!("{run} --drain counted")).expect(0).json();
    assert_eq!(counted["stages"][0]["transactions"], 2, "{counted}");
}

#[test]
fn conflicting_transactions_are_retried_with_the_same_values() {
    let Some(both) = Both::new("pgbench_retries") else {
        return;
    };
    both.sql("create table t (a int); insert into t values (0); create table seen (n int)");
    let text = "\\set n :n + 1\nbegin isolation level serializable;\nselect a from t;\nupdate t set a = a + 1;\ninsert into seen values (:n);\nend;\n";
    let file = both.script(text);
    let line = format!("-n -c 4 -j 2 -t 50 -D n=0 --max-tries=100000 -M prepared -r -f {file}");
    let run = both.riops(&line).expect(0);
    assert!(run.stdout.contains("actually processed: 200/200"), "{}", run.stdout);
    assert!(!run.stdout.contains("total number of retries: 0\n"), "{}", run.stdout);
    assert_eq!(both.rows("select a from t"), ["200"]);
    // A retry returns to the value before the transaction; with pgbench it counts every try.
    let query = "select count(*), count(distinct n), min(n), max(n) from seen";
    assert_eq!(both.rows(query), ["200|50|1|50"]);
}

/// Scripts of random commands, which write the values of their variables into the table `seen`.
fn random_scripts() -> impl Strategy<Value = String> {
    let variable = || prop::sample::select(vec!["a", "b", "c"]);
    let expression = prop_oneof![
        (0i64..50).prop_map(|n| n.to_string()),
        variable().prop_map(|name| format!(":{name} + 1")),
        (variable(), variable()).prop_map(|(one, other)| format!(":{one} * :{other} % 97")),
        (1i64..40).prop_map(|n| format!("random(1, {n})")),
        (1i64..40, variable()).prop_map(|(n, name)| format!("hash(:{name}) % {n}")),
        variable().prop_map(|name| format!("case when :{name} > 20 then 1 else :{name} end")),
    ];
    let condition = (variable(), prop::sample::select(vec!["<", ">=", "=", "<>"]), 0i64..30)
        .prop_map(|(name, operator, n)| format!(":{name} {operator} {n}"));
    let command = prop_oneof![
        4 => (variable(), expression).prop_map(|(name, value)| format!("\\set {name} {value}\n")),
        3 => variable().prop_map(|name| format!("insert into seen values ('{name}=:{name}');\n")),
        2 => (variable(), variable())
            .prop_map(|(to, from)| format!("select :{from} + 1 as {to} \\gset\n")),
        1 => variable().prop_map(|to| format!("select 3 as {to} \\; select 5 as x_{to} \\aset\n")),
        1 => (variable(), 0i64..3).prop_map(|(to, rows)| {
            format!("select n * 2 as {to} from generate_series(1, {rows}) as n \\aset\n")
        }),
        1 => Just("begin;\ninsert into seen values ('block :a');\nend;\n".to_owned()),
        1 => Just("begin;\ninsert into seen values ('undone :a');\nrollback;\n".to_owned()),
    ];
    let block = command.prop_recursive(3, 24, 6, move |inner| {
        let several = || prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.concat());
        prop_oneof![
            2 => several(),
            2 => (condition.clone(), several())
                .prop_map(|(when, then)| format!("\\if {when}\n{then}\\endif\n")),
            2 => (condition.clone(), several(), several()).prop_map(|(when, then, otherwise)| {
                format!("\\if {when}\n{then}\\else\n{otherwise}\\endif\n")
            }),
            1 => (condition.clone(), condition.clone(), several(), several()).prop_map(
                |(when, or, then, otherwise)| {
                    format!("\\if {when}\n{then}\\elif {or}\n{otherwise}\\endif\n")
                }
            ),
        ]
    });
    prop::collection::vec(block, 3..8)
        .prop_map(|all| all.concat() + "insert into seen values ('end :a :b :c :client_id');\n")
}

#[test]
fn random_scripts_write_the_same_rows_as_with_pgbench() {
    let Some(both) = Both::new("pgbench_random") else {
        return;
    };
    both.sql("create table seen (t text)");
    let mut runner = TestRunner::deterministic();
    for _ in 0..60 {
        let text = random_scripts().new_tree(&mut runner).unwrap().current();
        let file = both.script(&text);
        let line = format!("-n -t 4 --random-seed=11 -D a=1 -D b=2 -D c=3 -f {file}");
        let mut results = Vec::new();
        for is_original in [true, false] {
            both.sql("truncate seen");
            let run = if is_original { both.original(&line) } else { both.riops(&line) };
            assert_eq!(run.code, Some(0), "{text}\n{}", run.stderr);
            results.push(both.rows("select t from seen order by ctid"));
        }
        assert_eq!(results[0], results[1], "{text}");
        assert!(results[0].len() >= 4, "{text}");
    }
}
