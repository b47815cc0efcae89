//! `riops pgbench` beside pgbench: the groups of tests that pgbench has for itself, and statements counted by the server.

use std::collections::BTreeMap;

use crate::fixture::CommandOutput;
use crate::pgbench::{Both, logs, shapes};

/// Returns the calls and rows of each statement of the built-in scripts, as the server has counted them.
fn statement_counts(both: &Both) -> Vec<String> {
    both.rows(
        "select query, calls, rows from pg_stat_statements s join pg_database d on d.oid = s.dbid
          where d.datname = current_database() and toplevel
            and (query in ('BEGIN', 'END') or query ~ '^(UPDATE|SELECT abalance|INSERT INTO) ?pgbench_|^SELECT abalance|^INSERT')
          order by query",
    )
}

#[test]
fn the_server_counts_the_same_statements() {
    let Some(both) = Both::new("pgbench_statements") else {
        return;
    };
    both.sql("create extension pg_stat_statements");
    both.original("-i -q").expect(0);
    let reset = "select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0)";
    for (script, protocol) in
        [("tpcb-like", "prepared"), ("simple-update", "simple"), ("select-only", "extended")]
    {
        let line = format!("-n -b {script} -M {protocol} -c 4 -j 2 -t 2500");
        let mut results = Vec::new();
        for is_original in [true, false] {
            both.sql(reset);
            let run = if is_original { both.original(&line) } else { both.riops(&line) };
            run.expect(0);
            results.push(statement_counts(&both));
        }
        let calls = results[0].iter().filter(|line| line.contains("|10000|")).count();
        // The server does not count BEGIN and END of a prepared statement more than once.
        let expected =
            BTreeMap::from([("tpcb-like", 5), ("simple-update", 5), ("select-only", 1)])[script];
        assert_eq!(calls, expected, "{script}: {:?}", results[0]);
        assert_eq!(results[1], results[0], "{script}");
    }
}

#[test]
fn only_the_scripts_change_the_database() {
    let Some(both) = Both::new("pgbench_as_found") else {
        return;
    };
    both.original("-i -q").expect(0);
    for line in ["-n -S -t 5", "-t 5", "-n -N -t 5 -c 2"] {
        both.riops(line).expect(0);
        assert_eq!(both.rows("select count(*) from pg_namespace where nspname = 'riops'"), ["0"]);
    }
    assert_eq!(both.rows("select count(*) from pgbench_history"), ["15"]);
    // A role without the right to create anything.
    both.sql("create role pgbench_reader login; grant select on all tables in schema public to pgbench_reader");
    both.riops("-n -S -t 5 -U pgbench_reader").expect(0);
    // After changes that were not counted, nothing can be verified; the next run begins with the contents.
    both.original("-i -I d").expect(0);
    both.database.riops("prepare script").expect(0);
    both.database.riops("run script --transactions 20 --warmup 0s").expect(0);
    both.database.riops("verify script").expect(0);
    both.riops("-S -t 5").expect(0);
    let verified = both.database.riops("verify script");
    assert!(verified.stdout.contains("not known, because runs that"), "{}", verified.stdout);
    both.database.riops("run script --transactions 20 --warmup 0s").expect(0);
    both.database.riops("verify script").expect(0);
    // The registry of riops is not required, wherever the tables come from.
    both.sql("grant select on all tables in schema public to pgbench_reader");
    both.riops("-n -S -t 5 -U pgbench_reader").expect(0);
    // Scripts from files may change the tables too, also those that the run has just prepared.
    let file = both.script("update pgbench_accounts set abalance = abalance + 1 where aid = 1;\n");
    let line = format!("run script -b tpcb-like -f {file} --transactions 20 --warmup 0s");
    for prepare in ["", " --prepare"] {
        let run = both.database.riops(&format!("{line}{prepare}")).expect(0);
        run.stderr_contains("the data are not verified");
        both.database.riops("cleanup script").expect(0);
    }
    both.database.riops("prepare script --recreate").expect(0);
    both.database.riops("run script --transactions 20 --warmup 0s").expect(0);
    both.database.riops("verify script").expect(0);
    both.database.riops(&format!("run script -f {file} --transactions 3 --warmup 0s")).expect(0);
    let verified = both.database.riops("verify script").expect(3);
    assert!(verified.stdout.contains("not known, because runs that"), "{}", verified.stdout);
    both.database.riops("run script --transactions 20 --warmup 0s").expect(0);
    let file = both.script("select abalance from pgbench_accounts where aid = 1;\n");
    both.database.riops(&format!("run script -f {file} --transactions 3 --warmup 0s")).expect(0);
    both.database.riops("verify script").expect(0);
}

#[test]
fn runs_that_cannot_begin_fail_as_with_pgbench() {
    let Some(both) = Both::new("pgbench_early") else {
        return;
    };
    for line in ["-n -t 1", "-n -S -t 1", "-t 1"] {
        let (theirs, ours) = (both.original(line), both.riops(line));
        assert_eq!((theirs.code, ours.code), (Some(1), Some(1)), "{line}: {}", ours.stderr);
        assert!(!ours.stderr.is_empty() && ours.stdout.is_empty(), "{line}");
    }
    let missing = both.database.url.replace("/pgbench_early?", "/pgbench_nowhere?");
    let mut command = crate::fixture::command("pgbench -n -t 1");
    let ours = CommandOutput::run(command.arg(missing));
    assert_eq!(ours.code, Some(1));
    assert!(ours.stderr.contains("pgbench_nowhere"), "{}", ours.stderr);
}

#[test]
fn built_in_scripts_run_with_every_protocol() {
    let Some(both) = Both::new("pgbench_protocols") else {
        return;
    };
    both.original("-i -q").expect(0);
    for line in [
        "-b tpcb-like -M simple",
        "-b tpcb-like -M extended -C",
        "-N -M extended",
        "-S -M prepared -C",
        "-b se -M extended --debug",
        "-b tpcb-like -M prepared -s 10",
    ] {
        let line = format!("{line} -c 2 -t 10");
        let mut results = Vec::new();
        for is_original in [true, false] {
            let run = if is_original { both.original(&line) } else { both.riops(&line) };
            let run = run.expect(0);
            assert!(run.stdout.contains("actually processed: 20/20"), "{}", run.stdout);
            if line.contains("-s 10") {
                assert!(run.stderr.contains("scale option ignored"), "{}", run.stderr);
                assert!(run.stdout.contains("scaling factor: 1\n"), "{}", run.stdout);
            }
            results.push(both.rows("select count(*) from pgbench_history"));
        }
        assert_eq!(results[0], results[1], "{line}");
    }
}

/// Returns the numbers of the commands in which clients were aborted, counted from 0.
fn aborted_commands(output: &CommandOutput) -> Vec<String> {
    let commands = output.stderr.lines().filter_map(|line| {
        let (client, rest) = line.split_once(" command ")?;
        let command: String = rest.chars().take_while(char::is_ascii_digit).collect();
        (client.contains("client 0") && !command.is_empty()).then_some(command)
    });
    let mut commands: Vec<_> = commands.collect();
    // pgbench may print two lines for one error.
    commands.dedup();
    commands
}

#[test]
fn clients_are_aborted_in_the_same_command() {
    let Some(both) = Both::new("pgbench_aborts") else {
        return;
    };
    let long = format!("select length('{}');\nselect :a;\n\\set a 'x'\n", "x".repeat(3000));
    let cases = [
        ("select 1;\nselect 1 / 0;\n", "prepared"),
        ("select 1;\nselect 2;\nselect * from missing;\n", "extended"),
        ("\\set a 1\n\\set b :a / 0\n", "simple"),
        ("select 1;\n\\set a 1\n\\set b 9223372036854775807 + :a\n", "simple"),
        ("select 1;\nselect 2 where false \\gset\n", "simple"),
        ("select 1;\n\\set a random(:client_id + 2, 1)\n", "simple"),
        ("\\if 1 / 0 = 1\nselect 1;\n\\endif\n", "simple"),
        ("select 1;\n\\if true\n\\set a 1 / 0\n\\endif\n", "simple"),
        ("\\set a double(1) / 0.0\n\\set b int(:a)\n", "simple"),
        ("\\set a ln(0)\n\\set b int(:a)\n", "simple"),
        ("\\startpipeline\n\\startpipeline\n", "prepared"),
        ("select 1;\n\\endpipeline\n", "prepared"),
        ("\\startpipeline\nselect 1 as a \\gset\n\\endpipeline\n", "extended"),
        ("select 1;\n\\set a bad\n", "simple"),
        (long.as_str(), "simple"),
        ("select 1 as a \\gset\nselect :a::int / 0;\n", "prepared"),
        ("select :client_id::int;\nselect 'x'::int;\n", "simple"),
        ("select ':client_id', $1::int;\n", "simple"),
    ];
    for (text, protocol) in cases {
        let file = both.script(text);
        let line = format!("-n -t 1 -M {protocol} -f {file}");
        let (theirs, ours) = (both.original(&line), both.riops(&line));
        assert_eq!(ours.code, theirs.code, "{text}\n{}\n{}", ours.stderr, theirs.stderr);
        assert_eq!(aborted_commands(&ours), aborted_commands(&theirs), "{text}\n{}", ours.stderr);
        if theirs.code == Some(2) {
            assert!(ours.stdout.contains("actually processed: 0/1"), "{text}\n{}", ours.stdout);
            let last = ours.stderr.lines().last().unwrap();
            assert!(last.ends_with("Run was aborted; the above results are incomplete."), "{last}");
        }
    }
    // One client of several: the others go on.
    let file = both.script("\\if :client_id = 1\n\\set a 1 / 0\n\\endif\nselect 1;\n");
    let line = format!("-n -c 3 -t 5 -f {file}");
    let (theirs, ours) = (both.original(&line), both.riops(&line));
    for run in [&theirs, &ours] {
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stdout.contains("actually processed: 10/15"), "{}", run.stdout);
        assert!(run.stderr.contains("client 1"), "{}", run.stderr);
    }
    // Options of later versions.
    let stopped = both.riops(&format!("{line} --exit-on-abort"));
    assert_eq!(stopped.code, Some(2), "{}", stopped.stderr);
    let continued = both.riops(&format!("{line} --continue-on-error")).expect(0);
    assert!(continued.stdout.contains("actually processed: 10/15"), "{}", continued.stdout);
    assert!(continued.stdout.contains("failed transactions: 5 (33.333%)"), "{}", continued.stdout);
}

#[test]
fn skipped_starts_are_counted_as_by_pgbench() {
    let Some(both) = Both::new("pgbench_throttled") else {
        return;
    };
    both.original("-i -q").expect(0);
    let skipped = |run: &CommandOutput| -> u64 {
        let line = run.stdout.lines().find_map(|line| line.split_once("transactions skipped: "));
        line.unwrap().1.split(' ').next().unwrap().parse().unwrap()
    };
    let processed = |run: &CommandOutput| -> u64 {
        let line = run.stdout.lines().find_map(|line| line.split_once("actually processed: "));
        line.unwrap().1.split('/').next().unwrap().parse().unwrap()
    };
    // All are late: pgbench starts at most one of ten.
    let file = both.script("select pg_sleep(0.01);\n");
    let line = format!("-n -t 10 -R 100000 -L 1 -P 1 -f {file}");
    for run in [both.original(&line), both.riops(&line)] {
        let run = run.expect(0);
        assert_eq!(processed(&run) + skipped(&run), 10, "{}", run.stdout);
        assert!(processed(&run) <= 1, "{}", run.stdout);
    }
    let generous = "-n -S -c 2 -t 100 -R 2000 -L 5000 -P 1";
    for run in [both.original(generous), both.riops(generous)] {
        assert_eq!((processed(&run), skipped(&run)), (200, 0), "{}", run.stdout);
    }
    // Skipped starts belong to the script that was chosen.
    let other = both.folder.join("other.sql");
    std::fs::write(&other, "select pg_sleep(0.02);\n").unwrap();
    let line = format!(
        "-n -t 40 -R 1000 -L 5 -l --log-prefix=late --random-seed=3 -f {file}@1 -f {}@2",
        other.display()
    );
    let run = both.riops(&line).expect(0);
    let log = logs(&both.folder, "late").remove(0).1;
    assert_eq!(log.lines().count(), 40, "{log}");
    for (script, name) in [("0", "SQL script 1"), ("1", "SQL script 2")] {
        let own = log.lines().filter(|line| line.split(' ').nth(3) == Some(script));
        let late = own.filter(|line| line.contains(" skipped ")).count() as u64;
        let part = run.stdout.split(name).nth(1).unwrap();
        let count = part.split_once("transactions skipped: ").unwrap().1;
        assert_eq!(count.split(' ').next(), Some(late.to_string().as_str()), "{}", run.stdout);
    }
}

/// A script that fails with the SQLSTATE in every third execution.
fn failing_script(sqlstate: &str) -> String {
    format!(
        "do $$ begin if nextval('attempts') % 3 = 0 then raise sqlstate '{sqlstate}'; end if; end $$;\n"
    )
}

#[test]
fn failures_and_retries_are_counted_as_by_pgbench() {
    let Some(both) = Both::new("pgbench_counts") else {
        return;
    };
    both.sql("create sequence attempts");
    for sqlstate in ["40001", "40P01"] {
        let file = both.script(&failing_script(sqlstate));
        for options in ["--max-tries=1", "--max-tries=2", "--max-tries=5 -C"] {
            let line = format!(
                "-n -t 30 --failures-detailed -r -P 1 -l --log-prefix=failed {options} -f {file}"
            );
            let mut results = Vec::new();
            for is_original in [true, false] {
                both.sql("alter sequence attempts restart");
                let run = if is_original { both.original(&line) } else { both.riops(&line) };
                let run = run.expect(0);
                let counts: Vec<String> = run
                    .stdout
                    .lines()
                    .filter(|line| {
                        ["processed", "fail", "retr"].iter().any(|word| line.contains(word))
                    })
                    .map(str::to_owned)
                    .collect();
                // The outcome and the retries of each transaction.
                let log = logs(&both.folder, "failed").remove(0).1;
                let outcome = |line: &str| {
                    let fields: Vec<&str> = line.split(' ').collect();
                    let outcome = if fields[2].parse::<u64>().is_ok() { "done" } else { fields[2] };
                    format!("{} {outcome} {}", fields[1], fields.get(6).unwrap_or(&""))
                };
                results.push((counts, log.lines().map(outcome).collect::<Vec<_>>()));
            }
            assert_eq!(results[0].0[..4], results[1].0[..4], "{sqlstate} {options}");
            assert_eq!(results[0], results[1], "{sqlstate} {options}");
            assert_eq!(results[0].1.len(), 30);
        }
    }
    // No success at all is a complete run too.
    let file = both.script("do $$ begin raise sqlstate '40001'; end $$;\n");
    let line = format!("-n -t 5 -f {file}");
    for run in [both.original(&line), both.riops(&line)] {
        let run = run.expect(0);
        assert!(run.stdout.contains("failed transactions: 5 (100.000%)"), "{}", run.stdout);
    }
    // Tries without a limit end with the time.
    let run = both.riops(&format!("-n -T 1 --max-tries=0 -c 2 -f {file}")).expect(0);
    assert!(run.stdout.contains("actually processed: 0\n"), "{}", run.stdout);
}

#[test]
fn shell_commands_have_the_same_effects_as_with_pgbench() {
    let Some(both) = Both::new("pgbench_shell") else {
        return;
    };
    both.sql("create table seen (t text)");
    for (text, code) in [
        ("\\setshell a echo 7\ninsert into seen values (':a');\n", 0),
        ("\\set b 3\n\\setshell a expr :b + \\\n 4\ninsert into seen values (':a');\n", 0),
        ("\\shell true\ninsert into seen values ('a');\n", 0),
        ("insert into seen values ('a');\n\\shell false\n", 2),
        ("insert into seen values ('a');\n\\setshell a echo x\n", 2),
        ("insert into seen values ('a');\n\\setshell a no-such-command\n", 2),
    ] {
        let file = both.script(text);
        let line = format!("-n -t 2 -f {file}");
        let mut results = Vec::new();
        for is_original in [true, false] {
            both.sql("truncate seen");
            let run = if is_original {
                both.original(&line)
            } else {
                both.riops(&format!("--allow-shell {line}"))
            };
            assert_eq!(run.code, Some(code), "{text}\n{}", run.stderr);
            results.push((both.rows("select t from seen"), aborted_commands(&run)));
        }
        assert_eq!(results[0], results[1], "{text}");
    }
    // The time of `\shell` does not count as time of the database.
    let file = both.script("\\shell sleep 0.5\nselect 1;\n");
    let line = format!("run script -f {file} --allow-shell --transactions 2 --warmup 0s");
    let record = both.database.riops(&format!("{line} --output json")).expect(0).json();
    let stage = &record["stages"][0];
    let command = stage["commands"][0]["service_us"]["min"].as_f64().unwrap();
    assert!(command >= 500_000.0, "{command}");
    assert!(stage["service_us"]["max"].as_f64().unwrap() < command, "{}", stage["service_us"]);
}

#[test]
fn pipelines_have_the_same_effects_as_with_pgbench() {
    let Some(both) = Both::new("pgbench_pipelines") else {
        return;
    };
    both.sql("create table seen (t text); create table t (a int primary key)");
    for text in [
        "\\startpipeline\nbegin isolation level serializable;\ninsert into seen values ('a');\nend;\n\\endpipeline\n",
        "\\startpipeline\nset local statement_timeout to '1h';\nselect current_setting('statement_timeout') as t;\n\\endpipeline\ninsert into seen values (current_setting('statement_timeout'));\n",
        "\\startpipeline\nlock t;\ninsert into seen values ('locked');\n\\endpipeline\n",
        "\\startpipeline\nsavepoint a;\ninsert into seen values ('b');\nrollback to savepoint a;\nrelease savepoint a;\n\\endpipeline\ninsert into seen values ('after');\n",
        "\\startpipeline\ninsert into seen values ('undone');\nselect 1 / 0;\n\\endpipeline\n",
        "\\startpipeline\ninsert into seen values ('x');\nvacuum seen;\n\\endpipeline\n",
        "\\startpipeline\nreindex table t;\n\\endpipeline\ninsert into seen values ('reindexed');\n",
        "\\startpipeline\n\\sleep 1 ms\ninsert into seen values ('slept');\n\\endpipeline\n",
    ] {
        let file = both.script(text);
        for protocol in ["extended", "prepared"] {
            let line = format!("-n -t 2 -M {protocol} -f {file}");
            let mut results = Vec::new();
            for is_original in [true, false] {
                both.sql("truncate seen");
                let run = if is_original { both.original(&line) } else { both.riops(&line) };
                results.push((run.code, both.rows("select t from seen"), aborted_commands(&run)));
            }
            assert_eq!(results[0], results[1], "{protocol}: {text}");
        }
    }
    // Version 17 has it: the second part is executed although the first one failed.
    let file = both.script("\\startpipeline\ninsert into seen values ('one');\n\\syncpipeline\nselect 1 / 0;\n\\syncpipeline\ninsert into seen values ('three');\n\\endpipeline\n");
    both.sql("truncate seen");
    let run = both.riops(&format!("-n -t 2 -M prepared -f {file}"));
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert_eq!(both.rows("select t from seen order by 1"), ["one", "three"]);
}

#[test]
fn tables_and_indexes_are_in_their_tablespaces() {
    let Some(both) = Both::new("pgbench_tablespaces") else {
        return;
    };
    let mut connection = both.database.connect();
    connection.execute("set allow_in_place_tablespaces = on").unwrap();
    for name in ["pgbench_one", "pgbench_two"] {
        connection.execute(&format!("create tablespace {name} location ''")).unwrap();
    }
    let places = "select c.relname, s.spcname from pg_class c left join pg_tablespace s on s.oid = c.reltablespace
        where c.relname like 'pgbench%' order by 1";
    for more in ["", " --partitions 2 --foreign-keys -F 70"] {
        let options = format!("--tablespace=pgbench_one --index-tablespace=pgbench_two{more}");
        both.original(&format!("-i -q {options}")).expect(0);
        let theirs = both.rows(places);
        both.riops(&format!("-i -q {options}")).expect(0);
        assert_eq!(both.rows(places), theirs, "{options}");
        both.original("-i -I d").expect(0);
        both.database.riops(&format!("prepare script {options}")).expect(0);
        assert_eq!(both.rows(places), theirs, "{options}");
        both.database.riops("cleanup script").expect(0);
    }
    both.original("-i -q -n --foreign-keys -I dtpvGvv").expect(0);
    both.riops("-i -q -n --foreign-keys -I dtpvGvv").expect(0);
    assert_eq!(both.rows("select count(*) from pgbench_accounts"), ["100000"]);
    both.original("-i -I d").expect(0);
    connection.execute("drop tablespace pgbench_one").unwrap();
    connection.execute("drop tablespace pgbench_two").unwrap();
}

#[test]
fn connections_and_tables_are_found_as_by_pgbench() {
    let Some(both) = Both::new("pgbench_connections") else {
        return;
    };
    both.sql(
        "create schema elsewhere; alter database pgbench_connections set search_path = elsewhere",
    );
    let url = crate::fixture::tcp_url("pgbench_connections");
    let run = |line: &str, last: &str| {
        let mut command = crate::fixture::command(&format!("pgbench {line}"));
        command.env("RIOPS_STORE", &both.database.store);
        CommandOutput::run(command.arg(last).current_dir(&both.folder))
    };
    // With a password, in the forms of libpq.
    run("-i -q", &url).expect(0);
    run("-n -S -t 5 -d", &url).expect(0);
    run("-n --trans=5 --cl=2", &url).expect(0);
    assert_eq!(both.rows("select count(*) from elsewhere.pgbench_branches"), ["1"]);
    // A script that drops what the plan check has prepared, and lost connections.
    for protocol in ["simple", "extended"] {
        let file = both.script("select 1;\ndeallocate all;\n");
        let run = both.riops(&format!("-n -t 5 -M {protocol} -f {file}")).expect(0);
        assert!(run.stdout.contains("actually processed: 5/5"), "{}", run.stdout);
    }
    let file = both.script("select pg_terminate_backend(pg_backend_pid());\n");
    let lost = both.riops(&format!("-n -t 3 -f {file}")).expect(0);
    assert!(lost.stdout.contains("failed transactions: 3 (100.000%)"), "{}", lost.stdout);
    lost.stderr_contains("terminating connection due to administrator command");
    // Variables of riops do not change what is measured.
    let mut command = crate::fixture::command("pgbench -n -S -c 2 -t 5 -d");
    command.env("RIOPS_SESSIONS", "3").env("RIOPS_RATE", "2").env("RIOPS_LABEL", "from outside");
    command.env("RIOPS_CONFIG", both.folder.join("missing.toml"));
    command.env("RIOPS_STORE", &both.database.store);
    let run = CommandOutput::run(command.arg(&url)).expect(0);
    assert!(run.stdout.contains("number of clients: 2\n"), "{}", run.stdout);
    assert!(!run.stdout.contains("rate limit"), "{}", run.stdout);
    let record = both.database.riops("runs show last --output json").expect(0).json();
    assert_eq!(record["label"], "from outside");
}

#[test]
fn scripts_with_the_same_name_have_their_own_figures() {
    let Some(both) = Both::new("pgbench_twice") else {
        return;
    };
    let file = both.script("select 1;\n");
    let line = format!("-n -t 400 -M prepared --random-seed=1 -r -f {file}@1 -f {file}@3");
    let (theirs, ours) = (both.original(&line).expect(0), both.riops(&line).expect(0));
    let counts = |run: &CommandOutput, mark: &str| -> Vec<String> {
        let all = run.stdout.lines().filter_map(|line| line.strip_prefix(mark));
        all.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
    };
    // Version 15 has only the first of these lines.
    let of_theirs = counts(&theirs, " - ")[1..]
        .iter()
        .filter(|word| word.parse::<u64>().is_ok())
        .cloned()
        .collect::<Vec<_>>();
    let of_ours = counts(&ours, " - number of transactions actually processed: ");
    assert_eq!(of_ours, of_theirs, "{}", ours.stdout);
    assert_eq!(of_ours.iter().map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), 400);
    assert_eq!(shapes(&ours.stdout).iter().filter(|line| line.ends_with("select #;")).count(), 2);
}

#[test]
fn a_symbolic_link_named_pgbench_is_pgbench() {
    let Some(both) = Both::new("pgbench_link") else {
        return;
    };
    let run = |name: &str, line: &str| {
        let link = both.folder.join(name);
        std::os::unix::fs::symlink(crate::fixture::binary(), &link).unwrap();
        let mut command = std::process::Command::new(&link);
        command.args(line.split_whitespace()).arg(&both.database.url);
        command.env("RIOPS_STORE", &both.database.store).current_dir(&both.folder);
        CommandOutput::run(&mut command)
    };
    run("riops-pgbench", "-i -q").expect(0);
    let ran = run("pgbench", "-S -t 7 --random-seed=9").expect(0);
    assert!(ran.stdout.contains("actually processed: 7/7"), "{}", ran.stdout);
    assert!(ran.stderr.contains("pgbench: setting random seed to 9\n"), "{}", ran.stderr);
}

#[test]
fn failed_and_skipped_transactions_are_in_no_latency_of_the_report() {
    let Some(both) = Both::new("pgbench_latencies") else {
        return;
    };
    let file = both.script(
        "\\set r random(1, 10)\n\\if :r <= 3\nselect pg_sleep(0.1);\ndo $$ begin raise 'x' using errcode = '40001'; end $$;\n\\else\nselect 1;\n\\endif\n",
    );
    for options in ["", "-R 40", "-R 40 -L 50"] {
        let line = format!("-n -c 2 -T 2 --random-seed=7 -l --log-prefix=log {options} -f {file}");
        let run = both.riops(&line).expect(0);
        let log: String = logs(&both.folder, "log").into_iter().map(|(_, text)| text).collect();
        // The third column of a failed or skipped transaction is a word.
        let columns = |line: &str| line.split(' ').map(|column| column.parse().ok()).collect();
        let lines: Vec<Vec<Option<f64>>> = log.lines().map(columns).collect();
        assert!(lines.iter().any(|line| line[2].is_none()), "{log}");
        let answered: Vec<_> = lines.iter().filter(|line| line[2].is_some()).collect();
        let mean_ms = |column: usize| {
            let sum: f64 = answered.iter().map(|line| line[column].unwrap()).sum();
            sum / answered.len() as f64 / 1e3
        };
        let reported = |start: &str| -> f64 {
            let line = run.stdout.lines().find_map(|line| line.strip_prefix(start)).unwrap();
            line.split(' ').next().unwrap().parse().unwrap()
        };
        let average = reported("latency average = ");
        assert!((average - mean_ms(2)).abs() < 0.002, "{options}: {log}{}", run.stdout);
        if !options.is_empty() {
            let lag = reported("rate limit schedule lag: avg ");
            assert!((lag - mean_ms(6)).abs() < 0.002, "{options}: {log}{}", run.stdout);
        }
    }
}
