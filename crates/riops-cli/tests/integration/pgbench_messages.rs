//! What `riops pgbench` prints on standard error: the words and lines that scripts around pgbench search for.

use crate::fixture::CommandOutput;
use crate::pgbench::Both;

fn run(both: &Both, options: &str, script: &str) -> CommandOutput {
    let file = both.script(script);
    both.riops(&format!("-n {options} -f {file}"))
}

#[test]
fn messages_of_the_server_keep_their_lines() {
    let Some(both) = Both::new("pgbench_messages") else {
        return;
    };
    both.sql("create table t (a int unique)");
    let duplicate = run(&both, "-t 1", "insert into t values (1), (1);\n").expect(2).stderr;
    for line in [
        "riops: client 0 script 0 aborted in command 0 query 0: ERROR:  duplicate key value",
        "\nDETAIL:  Key (a)=(1) already exists.\n",
    ] {
        assert!(duplicate.contains(line), "{line}: {duplicate}");
    }
    let hint = run(&both, "-t 1", "select no_such_function();\n").expect(2).stderr;
    assert!(hint.contains("\nHINT:  No function matches"), "{hint}");
    let context = "do $$ begin raise exception 'a' using detail = 'b', hint = 'c'; end $$;\n";
    let context = run(&both, "-t 1", context).expect(2).stderr;
    assert!(context.contains("ERROR:  a\nDETAIL:  b\nHINT:  c\nCONTEXT:  PL/pgSQL"), "{context}");
    // A line of the server must not look like one of riops.
    let forged = "do $$ begin raise exception E'a\\nriops: done'; end $$;\n";
    let forged = run(&both, "-t 1", forged).expect(2).stderr;
    assert!(forged.contains("\n  riops: done"), "{forged}");
    let missing = both.riops("-S -t 1").expect(1).stderr;
    assert!(
        missing.contains("Perhaps you need to do initialization (\"pgbench -i\")"),
        "{missing}"
    );
}

#[test]
fn notices_of_the_server_are_shown_and_counted() {
    let Some(both) = Both::new("pgbench_notices") else {
        return;
    };
    // Each transaction causes the warning of its first statement and the notice of its second statement.
    let script = "set local jit = off;\ndo $$ begin raise notice 'seen'; end $$;\n";
    for protocol in ["simple", "prepared"] {
        let shown = run(&both, &format!("-c 2 -t 15 -M {protocol}"), script).expect(0).stderr;
        let warning = "WARNING:  SET LOCAL can only be used in transaction blocks\n";
        assert_eq!(shown.matches(warning).count(), 30, "{shown}");
        assert_eq!(shown.matches("NOTICE:  seen\n").count(), 30, "{shown}");
        let stored = both.database.riops("runs show last --output json").expect(0).json();
        assert_eq!(stored["stages"][0]["notices"], 60);
    }
    // A run of riops shows the first ones and their number.
    let file = both.script(script);
    let line = format!("run script -c 1 --warmup 0 --transactions-per-session 50 -f {file}");
    let text = both.database.riops(&line).expect(0).stderr;
    assert_eq!(text.matches("NOTICE:  seen\n").count(), 10, "{text}");
    assert!(text.contains("100 notices and warnings of the server"), "{text}");
}

#[test]
fn errors_of_a_script_are_found_when_it_is_executed() {
    let Some(both) = Both::new("pgbench_late") else {
        return;
    };
    let never = "\\if false\n\\set x 1 + true\n\\set y :nothing\n\\endif\nselect 1;\n";
    run(&both, "-t 1", never).expect(0);
    for (script, text) in [
        ("\\set x 1 + true\n", "cannot coerce boolean to int"),
        ("\\set x :nothing\n", "undefined variable \"nothing\""),
    ] {
        let error = run(&both, "-t 1", script).expect(2).stderr;
        let end =
            "client 0 aborted in command 0 (set) of script 0; evaluation of meta-command failed";
        assert!(error.contains(text) && error.contains(end), "{error}");
        let (own, original) =
            (error, both.original(&format!("-n -t 1 -f {}", both.script(script))));
        assert!(original.stderr.contains(text) && original.stderr.contains(end), "{own}");
    }
    // pgbench sends NULL.
    run(&both, "-t 1 -M prepared", "select 1 / (:nothing::text is null)::int;\n").expect(0);
    both.sql("create table t (a text)");
    run(&both, "-t 1", "\\setshell x echo 5\n\\shell true\ninsert into t values (:x);\n").expect(0);
    assert_eq!(both.rows("select a from t"), ["5"]);
    run(&both, "-t 3 -M extended", "\\; insert into t values ('e');\n").expect(0);
    run(&both, "-t 3", "\\; insert into t values ('s') \\;\\; select 1 \\;\n").expect(0);
    assert_eq!(
        both.rows("select a, count(*) from t where a <> '5' group by 1 order by 1"),
        ["e|3", "s|3"]
    );
}

#[test]
fn the_log_has_no_line_for_an_aborted_client() {
    let Some(both) = Both::new("pgbench_aborted") else {
        return;
    };
    let script = "\\set n :n + 1\nselect 1 / (5 - :n);\n";
    run(&both, "-l -t 10 -D n=0", script).expect(2);
    let log = std::fs::read_dir(&both.folder).unwrap().map(|entry| entry.unwrap().path());
    let log = log.filter(|path| path.to_str().unwrap().contains("pgbench_log."));
    let text: String = log.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(!text.contains("failed"), "{text}");
}

#[test]
fn commands_and_repeated_errors_are_shown_on_request() {
    let Some(both) = Both::new("pgbench_debug") else {
        return;
    };
    let text = run(&both, "-t 1 --debug", "\\set a 7\nselect :a;\n").expect(0).stderr;
    for line in ["client 0 executing \\set a 7", "client 0 sending select 7;", "client 0 receiving"]
    {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    both.sql("create sequence s");
    let once = "select case nextval('s') when 1 then 1 else 2 end as n \\gset\ndo $$ begin if currval('s') = 1 then raise serialization_failure; end if; end $$;\n";
    let text = run(&both, "-t 1 --max-tries=2 --verbose-errors", once).expect(0).stderr;
    let error =
        "client 0 got an error in command 1 (SQL) of script 0; ERROR:  serialization_failure";
    assert!(text.contains(error), "{text}");
    assert!(text.contains("client 0 repeats the transaction after the error\n"), "{text}");
}

#[test]
fn unlogged_partitions_can_have_foreign_keys() {
    let Some(both) = Both::new("pgbench_unlogged") else {
        return;
    };
    let line = "-i --unlogged-tables --partitions=2 --foreign-keys";
    let text = both.riops(line).expect(0).stderr;
    assert!(text.contains("creating 2 partitions..."), "{text}");
    let sql = "select relpersistence, count(*) from pg_class where relname like 'pgbench%' and relkind in ('r', 'p') group by 1 order by 1";
    assert_eq!(both.rows(sql), ["p|4", "u|2"]);
}

#[test]
fn samples_of_wait_events_are_not_in_the_statistics_of_statements() {
    let Some(both) = Both::new("pgbench_tracked") else {
        return;
    };
    both.sql("create extension if not exists pg_stat_statements");
    run(&both, "-T 2", "select 'of the load' as t;\n").expect(0);
    let calls = |text: &str| {
        let sql = format!(
            "select count(*) from pg_stat_statements s join pg_database d on d.oid = s.dbid where datname = current_database() and query like '{text}'"
        );
        both.rows(&sql).concat()
    };
    assert_eq!(calls("select $1 as t"), "1");
    assert_eq!(calls("%wait_event%pg_stat_get_activity%"), "0");
}
