//! `run script` with what pgbench does not have: thresholds for commands, plans that change, sweeps, comparisons, nodes.

use crate::fixture::{CommandOutput, Database, database, folder};

/// Writes a script of this test and returns its path.
fn write_script(name: &str, text: &str) -> String {
    let file = folder(&format!("script_run_{name}")).join(format!("{name}.sql"));
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn thresholds_apply_to_scripts_and_commands() {
    let database = database("script_thresholds");
    let one = write_script("one", "\\set a 1\nselect 1;\nselect pg_sleep(0.02);\n");
    let two = write_script("two", "select :client_id / 0;\n");
    let base = format!("run script -f {one} -c 2 --transactions 20 --warmup 0s");
    let run = |line: &str, code: i32| database.riops(&format!("{base} {line}")).expect(code);
    run("--threshold p50{command=3}>=20ms", 0);
    let breached = run("--threshold p50{command=3}<20ms", 99).stdout;
    assert!(breached.contains("p50{command=3}"), "{breached}");
    run("--threshold p50{command=2}<10s", 0);
    run("--threshold p50{command=4}<1s", 2).stderr_contains("the script has 3 commands");
    run("--threshold p50{script=9}<1s", 2).stderr_contains("\"9\"");
    let both = format!("-f {two} --on-error continue --protocol simple");
    run(&format!("{both} --threshold errors{{script=1}}=0 --threshold errors{{script=2}}>0"), 0);
    run(&format!("{both} --threshold errors{{script={two}}}=0"), 99);
    run(&format!("{both} --threshold errors{{script=2,command=1}}=0"), 99);
}

#[test]
fn a_number_without_a_unit_is_named_as_a_duration() {
    let database = database("script_duration");
    let plan = |time: &str| {
        database
            .riops(&format!("run script -b select-only --seed 1 -t {time} --dump-plan"))
            .expect(0)
    };
    let bare = plan("1000").stderr_contains("measures for 1000 s");
    assert!(bare.stderr.contains("--transactions-per-session 1000"), "{}", bare.stderr);
    let with_unit = plan("1000s");
    assert_eq!((with_unit.stdout, with_unit.stderr), (bare.stdout, String::new()));
}

/// A script whose second statement gets another plan in the middle of the run.
fn changing_script(database: &Database) -> String {
    let sql = "create table big as select n as a, n % 10 as b from generate_series(1, 20000) as n; analyze big; create sequence turns";
    database.connect().execute(sql).unwrap();
    write_script(
        "changing",
        "select nextval('turns') as turn \\gset\nselect b from big where a = 77;\n\\if :turn = 40\ncreate index on big (a);\n\\endif\n",
    )
}

#[test]
fn a_plan_that_changes_is_a_warning_or_makes_the_run_invalid() {
    for (options, code) in [("", 0), ("--strict-plans", 3)] {
        let database = database(if code == 0 { "script_plans" } else { "script_strict_plans" });
        let file = changing_script(&database);
        let line = format!("run script -f {file} -c 1 --transactions 200 --warmup 0s {options}");
        let record = database.riops(&format!("{line} --output json")).expect(code).json();
        let verdict = &record["verdict"];
        let messages = if code == 0 { &verdict["warnings"] } else { &verdict["reasons"] };
        assert!(messages.to_string().contains("the plan of command 2 changed"), "{verdict}");
        assert!(record["accesses"].to_string().contains("Index Scan using big_a_idx"));
        assert_eq!(record["stages"][0]["transactions"], 200);
    }
}

#[test]
fn runs_of_scripts_are_swept_compared_and_reported() {
    let database = database("script_sweep");
    database.riops("prepare script").expect(0);
    let swept = database.riops(
        "sweep script -b select-only --axis sessions=1,2 --repeat 2 --transactions 300 --warmup 0s",
    );
    let swept = swept.expect(0);
    assert!(swept.stdout.contains("sessions"), "{}", swept.stdout);
    for label in ["a", "b"] {
        let line = format!(
            "run script -b tpcb-like --transactions 30 --warmup 0s --label {label} --repeat 3"
        );
        database.riops(&line).expect(0);
    }
    let compared = database.riops("compare a b");
    assert!(matches!(compared.code, Some(0 | 3)), "{}", compared.stderr);
    assert!(compared.stdout.contains("transactions/s"), "{}", compared.stdout);
    let page = folder("script_sweep_page").join("page.html");
    database.riops(&format!("report last -o html={}", page.display())).expect(0);
    let page = std::fs::read_to_string(page).unwrap();
    for text in ["Commands", "UPDATE pgbench_accounts SET abalance", "END;"] {
        assert!(page.contains(text), "{text}");
    }
    database.riops("verify script").expect(0);
}

#[test]
fn plans_of_tables_in_another_schema_are_checked() {
    let database = database("script_schema");
    database.connect().execute("create schema bench").unwrap();
    database.riops("prepare script --schema bench").expect(0);
    let line = "run script -b tpcb-like -c 1 --transactions 50 --warmup 0s --output json";
    for more in ["--schema bench", "--schema bench --protocol simple", "--schema bench --no-verify"]
    {
        let record = database.riops(&format!("{line} {more}")).expect(0).json();
        let paths = record["accesses"].as_array().unwrap();
        let statements: Vec<_> = paths.iter().step_by(3).map(|path| &path["statement"]).collect();
        let commands = ["command 6", "command 7", "command 8", "command 9", "command 10"];
        assert_eq!(statements, commands, "{more}");
        // Five statements with a plan, at the beginning of, during and after the run.
        assert_eq!(paths.len(), 15, "{more}: {paths:?}");
        assert!(paths.iter().all(|path| path["held"] != false), "{more}: {paths:?}");
    }
}

#[test]
fn checks_the_plan_of_a_script_with_its_values() {
    let database = database("script_values");
    database
        .connect()
        .execute(
            "create table people as select n as id, 'u' || n || '@x' as email from generate_series(1, 20000) as n;
             create index people_email on people (email text_pattern_ops);
             analyze people",
        )
        .unwrap();
    // The plan for any values reads the whole table.
    let text = "\\set x random(10000, 20000)\nselect count(*) from people where email like 'u' || :x || '@%';\n";
    let file = write_script("values", text);
    for protocol in ["simple", "extended", "prepared"] {
        let label = format!("{protocol}-with");
        let line = format!(
            "run script -f {file} --protocol {protocol} -c 1 --transactions 60 --warmup 0s --label"
        );
        let shown = database.riops(&format!("{line} {label}")).expect(0).stdout;
        let path = "Aggregate, Index Only Scan using people_email on people (unchanged; checked at the beginning of, during and after the run)";
        let one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line.contains(path), "{protocol}: {shown}");
        assert!(!shown.contains("as expected"), "{protocol}: {shown}");
    }
    database.connect().execute("drop index people_email").unwrap();
    let line = format!("run script -f {file} -c 1 --transactions 60 --warmup 0s --label without");
    let shown = database.riops(&line).expect(0).stdout;
    assert!(shown.contains("Seq Scan on people (unchanged"), "{shown}");
    let compared = database.riops("compare prepared-with without").stdout;
    assert!(compared.contains("access path") && compared.contains("Seq Scan"), "{compared}");
}

#[test]
fn plans_that_the_statistics_of_the_server_contradict_are_named() {
    let database = database("script_contradicted");
    database
        .connect()
        .execute(
            "create table skew as select case when n <= 20 then n else 0 end as k, n from generate_series(1, 20000) as n;
             create index skew_k on skew (k);
             analyze skew",
        )
        .unwrap();
    // The first values are rare: the index finds their rows. Nearly all rows have the later value.
    let text = "\\set n :n + 1\n\\set k case when :n < 10 then :n else 0 end\nselect sum(n) from skew where k = :k;\n";
    let file = write_script("contradicted", text);
    let line = format!(
        "run script -f {file} -D n=0 --protocol simple -c 1 --transactions 100 --warmup 0s"
    );
    let ran = database.riops(&format!("{line} --output json --no-store")).expect(0).json();
    let scans = &ran["stages"][0]["database"]["scans"][0];
    assert_eq!((&scans["table"], &scans["sequential"]), (&"skew".into(), &91.into()), "{scans}");
    let warnings = ran["verdict"]["warnings"].to_string();
    let named = "the server counted 91 sequential scans of skew, but the checked plans have none";
    assert!(warnings.contains(named), "{warnings}");
    let strict = database.riops(&format!("{line} --strict-plans --no-store")).expect(3);
    assert!(strict.stdout.contains("91 sequential scans of skew"), "{}", strict.stdout);
}

#[test]
fn errors_of_parameters_name_the_protocol_that_needs_none() {
    let database = database("script_parameters");
    let file = write_script("parameters", "\\set x 64\nset work_mem = :x;\n");
    let line = format!("run script -f {file} -c 1 --transactions 10 --warmup 0s --no-store");
    let hint = "--protocol simple replaces the variables in the text";
    for protocol in ["extended", "prepared"] {
        let ran = database.riops(&format!("{line} --protocol {protocol}")).expect(1);
        assert!(ran.stdout.contains(hint), "{}", ran.stdout);
    }
    let ran = database.riops(&format!("{line} --protocol simple")).expect(0);
    assert!(!ran.stdout.contains(hint), "{}", ran.stdout);
    let checked = database.riops(&format!("script check {file}"));
    assert!(checked.stdout.contains(hint), "{}", checked.stdout);
}

#[test]
fn several_plans_of_one_statement_are_shown() {
    let database = database("script_skew");
    database
        .connect()
        .execute(
            "create table skewed as select case when n > 9990 then n else 0 end as a from generate_series(1, 10000) as n;
             create index skewed_a on skewed (a);
             analyze skewed",
        )
        .unwrap();
    let text = "\\if :turn % 2\n\\set a 0\n\\else\n\\set a 9995\n\\endif\n\\set turn :turn + 1\nselect count(a + 0) from skewed where a = :a;\n";
    let file = write_script("skew", text);
    let line = format!(
        "run script -f {file} -D turn=0 --protocol simple -c 1 --transactions 20 --warmup 0s --output json"
    );
    let record = database.riops(&line).expect(0).json();
    let accesses = record["accesses"].to_string();
    assert!(
        accesses.contains("Seq Scan on skewed") && accesses.contains("using skewed_a"),
        "{accesses}"
    );
    assert!(!accesses.contains("\"held\":false"), "{accesses}");
}

#[test]
fn a_plan_check_neither_fails_a_session_nor_counts_as_an_error() {
    let database = database("script_unchecked");
    database.connect().execute("create table t as select 1 as a").unwrap();
    for (name, text) in [
        ("ctas", "create table if not exists made as select a from t;\nselect a from t;\n"),
        ("matview", "create materialized view if not exists seen as select a from t;\nselect 1;\n"),
        ("cursor", "begin;\ndeclare c cursor for select a from t;\nfetch c;\nend;\n"),
        ("deallocate", "select a from t;\ndeallocate all;\n"),
        ("discard", "select a from t;\ndiscard all;\n"),
        (
            "temporary",
            "begin;\ncreate temporary table own (a int) on commit drop;\nselect a from own;\nend;\n",
        ),
    ] {
        for protocol in ["simple", "extended", "prepared"] {
            // Skipped: these scripts invalidate their own prepared statements.
            if protocol == "prepared" && ["deallocate", "discard", "temporary"].contains(&name) {
                continue;
            }
            let file = write_script(name, text);
            let line = format!(
                "run script -f {file} --protocol {protocol} -c 1 --transactions 12 --warmup 0s --threshold errors=0 --output json"
            );
            let record = database.riops(&line).expect(0).json();
            assert_eq!(record["stages"][0]["transactions"], 12, "{name} {protocol}");
            assert_eq!(
                record["verdict"]["valid"], true,
                "{name} {protocol}: {}",
                record["verdict"]
            );
        }
    }
    let file = write_script(
        "temporary_text",
        "begin;\ncreate temporary table own (a int) on commit drop;\nselect a from own;\nend;\n",
    );
    let line = format!("run script -f {file} --protocol simple -c 1 --transactions 12 --warmup 0s");
    let shown = database.riops(&line).expect(0).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("NOT CHECKED at the beginning of the run by 1 execution: EXPLAIN failed"),
        "{shown}"
    );
}

#[test]
fn a_variable_in_quotes_is_a_warning_and_one_behind_a_name_an_error() {
    let database = database("script_quoted");
    database.connect().execute("create table t_0 as select 'x' as name").unwrap();
    let quoted = write_script("quoted", "\\set n 7\nselect * from t_0 where name = ':n';\n");
    let line = format!("run script -f {quoted} -c 1 --transactions 5 --warmup 0s --output json");
    let warning = "the variable \"n\" is not replaced in quotes";
    for (protocol, count) in [("prepared", 1), ("extended", 1), ("simple", 0)] {
        let record = database.riops(&format!("{line} --protocol {protocol}")).expect(0).json();
        let warnings = record["verdict"]["warnings"].to_string();
        assert_eq!(warnings.matches("is not replaced in quotes").count(), count, "{warnings}");
    }
    // The line of the script and a caret, in lines of their own.
    let source = "select * from t_0 where name = ':n';\n";
    let caret = format!("{:32}^\n", "");
    let checked = database.riops(&format!("script check {quoted}")).expect(0);
    let lines = format!(
        "warning: {quoted}:2:33: {warning}: remove the quotes, or use --protocol simple\n  {source}  {caret}"
    );
    assert!(checked.stderr.contains(&lines), "{}", checked.stderr);
    let ran = database.riops(&line.replace("--output json", "")).expect(0).stdout;
    let shown = ran.split_once("is not replaced in quotes").unwrap().1;
    assert!(!ran.contains("\\u{a}") && !ran.contains("error found here"), "{ran}");
    let mut shown = shown.lines().skip_while(|line| !line.contains("':n'"));
    let (above, below) = (shown.next().unwrap(), shown.next().unwrap());
    assert_eq!(below.find('^'), above.find("':n'").map(|quote| quote + 1), "{ran}");
    let commented = write_script(
        "commented",
        "\\set n 1\nDO $body$\nBEGIN\n  -- it's :n here\n  PERFORM 1;\nEND;\n$body$;\n",
    );
    let checked = database.riops(&format!("script check {commented}")).expect(0);
    assert!(!checked.stderr.contains("warning"), "{}", checked.stderr);
    let glued = write_script("glued", "select count(*) from t_:client_id;\n");
    for line in [
        format!("script check {glued}"),
        format!("run script -f {glued} -c 1 --transactions 5 --warmup 0s"),
    ] {
        database.riops(&line).expect(2).stderr_contains("use --protocol simple");
    }
    let simple = "-c 1 --transactions 5 --warmup 0s --protocol simple";
    database.riops(&format!("run script -f {glued} {simple}")).expect(0);
}

#[test]
fn lists_and_histories_distinguish_scripts_by_their_texts() {
    let database = database("script_titles");
    let (one, two) = (folder("script_titles_one"), folder("script_titles_two"));
    std::fs::write(one.join("s.sql"), "select 1;\n").unwrap();
    std::fs::write(two.join("s.sql"), "select 2;\n").unwrap();
    let run = |folder: &std::path::Path, file: &str, label: &str| {
        let line = format!("run script -f {file} --transactions 20 --warmup 0s --label {label}");
        let run =
            CommandOutput::from(database.command(&line).current_dir(folder).output().unwrap());
        run.expect(0)
    };
    let shown = run(&one, "s.sql", "relative").stdout;
    // The tables are not known, so that the database is.
    assert!(shown.contains("database     ") && shown.contains(" block accesses ("), "{shown}");
    run(&one, one.join("s.sql").to_str().unwrap(), "absolute");
    run(&two, "s.sql", "other");
    let listed = database.riops("runs list --output json").expect(0).json();
    let title = |at: usize| listed[at]["title"].as_str().unwrap().to_owned();
    let (other, absolute, relative) = (title(0), title(1), title(2));
    assert!(relative.starts_with("script s.sql ("), "{relative}");
    assert!(absolute == relative && other != relative, "{absolute} {other}");
    let history = database.riops("runs history --output json").expect(0).json();
    let lengths: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|series| series["points"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths.iter().sum::<usize>(), 3);
    assert_eq!(lengths.len(), 2, "{history}");
    let compared = database.riops("compare relative absolute").expect(0).stdout;
    assert!(!compared.contains("scripts"), "{compared}");
    assert!(compared.contains("command 1 mean: select 1;"), "{compared}");
    let compared = database.riops("compare relative other").expect(0).stdout;
    assert!(compared.contains("script.scripts") && !compared.contains("select 2"), "{compared}");
}

#[test]
fn the_error_of_a_statement_has_the_file_and_the_line() {
    let database = database("script_places");
    let file = write_script("places", "select 1;\n\nselect 1 / :client_id;\n");
    for option in ["--file", "--script"] {
        let line = format!("run script {option} {file} -c 1 --transactions 5 --warmup 0s");
        let failed = database.riops(&line).expect(1).stdout;
        let place = "places.sql:3: division by zero (SQLSTATE 22012)";
        assert!(failed.contains("NO: statement failed: ") && failed.contains(place), "{failed}");
    }
}
