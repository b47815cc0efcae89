//! `run script` with what pgbench does not have: thresholds for commands, plans that change, sweeps, comparisons, nodes.

use crate::fixture::{Database, database, folder};

/// Writes a script of this test and returns its path.
fn written(name: &str, text: &str) -> String {
    let file = folder(&format!("script_run_{name}")).join(format!("{name}.sql"));
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn thresholds_apply_to_scripts_and_commands() {
    let database = database("script_thresholds");
    let one = written("one", "\\set a 1\nselect 1;\nselect pg_sleep(0.02);\n");
    let two = written("two", "select :client_id / 0;\n");
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

/// A script whose second statement gets another plan in the middle of the run.
fn changing(database: &Database) -> String {
    let sql = "create table big as select n as a, n % 10 as b from generate_series(1, 20000) as n; analyze big; create sequence turns";
    database.connect().execute(sql).unwrap();
    written(
        "changing",
        "select nextval('turns') as turn \\gset\nselect b from big where a = 77;\n\\if :turn = 40\ncreate index on big (a);\n\\endif\n",
    )
}

#[test]
fn a_plan_that_changes_is_a_warning_or_makes_the_run_invalid() {
    for (options, code) in [("", 0), ("--strict-plans", 3)] {
        let database = database(if code == 0 { "script_plans" } else { "script_strict_plans" });
        let file = changing(&database);
        let line = format!("run script -f {file} --transactions 200 --warmup 0s {options}");
        let record = database.riops(&format!("{line} --output json")).expect(code).json();
        let verdict = &record["verdict"];
        let found = if code == 0 { &verdict["warnings"] } else { &verdict["reasons"] };
        assert!(found.to_string().contains("access path of command 2"), "{verdict}");
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
    database.riops(&format!("report last --file {}", page.display())).expect(0);
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
    let line = "run script -b tpcb-like --transactions 50 --warmup 0s --output json";
    for more in ["--schema bench", "--schema bench --protocol simple", "--schema bench --no-verify"]
    {
        let record = database.riops(&format!("{line} {more}")).expect(0).json();
        let paths = record["accesses"].as_array().unwrap();
        // Five statements with a plan, before, during and after the run.
        assert_eq!(paths.len(), 15, "{more}: {paths:?}");
        assert!(paths.iter().all(|path| path["held"] != false), "{more}: {paths:?}");
    }
}
