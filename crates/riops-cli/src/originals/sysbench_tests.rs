use super::*;

fn translated(line: &str) -> Result<(String, Vec<String>), Refused> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let read = |path: &str| match path {
        "itself.conf" => Ok("--config-file=itself.conf\n".repeat(2)),
        "sb.conf" => Ok("# defaults\n--threads=7\ntables=3\n\n".to_owned()),
        "./oltp_point_select.lua" | "oltp_join.lua" | "/usr/share/sysbench/oltp_delete.lua" => {
            Ok("-- a script of the user".to_owned())
        }
        _ => Err("No such file".to_owned()),
    };
    let translation = translate(&arguments, &Outside { variable: &|_| None, read: &read })?;
    let text = match translation.meaning {
        Meaning::Commands(commands) | Meaning::Silent(commands) => commands.concat().join("\n"),
        Meaning::Text(text) | Meaning::Message(text) => text,
    };
    Ok((text, translation.notices))
}

fn words(line: &str) -> Vec<String> {
    translated(line).unwrap().0.lines().map(str::to_owned).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    words(line).iter().any(|other| other == word)
}

#[test]
fn the_error_about_a_pooler_names_the_option_of_sysbench() {
    let text = in_its_words("--protocol prepared is not supported by this pooler, which does not");
    assert!(text.unwrap().contains("--db-ps-mode=disable"));
    assert_eq!(in_its_words("cannot read a.conf"), None);
}

#[test]
fn a_run_has_the_defaults_of_sysbench() {
    insta::assert_snapshot!(words("oltp_read_write run").join("\n"));
}

#[test]
fn every_option_is_translated() {
    let line = "/usr/share/sysbench/oltp_read_write.lua --tables=4 --table_size=500 --threads=3 \
        --events=100 --rate=20 --report-interval=2 --report-checkpoints=2,4 --rand-type=special \
        --rand-spec-pct=2 --rand-seed=5 --percentile=99 --histogram --db-ps-mode=disable \
        --pgsql-host=h --pgsql-user=me --skip_trx --range-selects=off --warmup-time=3 run";
    insta::assert_snapshot!(words(line).join("\n"));
    insta::assert_snapshot!(
        words("oltp_insert --auto_inc=off --tables=2 --threads=2 --rand-type=pareto prepare")
            .join("\n")
    );
    assert_eq!(words("oltp_insert cleanup"), ["cleanup", "oltp", "--schema=public"]);
}

#[test]
fn prewarm_reads_the_part_that_a_run_uses() {
    let words = words("oltp_read_only --tables=4 --auto_inc=off prewarm");
    assert_eq!(words, ["warm", "oltp", "--schema=public", "--tables=4", "--table-size=10000"]);
}

#[test]
fn the_events_of_bulk_insert_are_rows() {
    let prepare = words("bulk_insert --threads=4 prepare").join(" ");
    assert_eq!(prepare, "prepare oltp --schema=public --bulk-insert --tables=4");
    let line = "bulk_insert --threads=2 --time=0 --rate=64000 --events=128000 run";
    insta::assert_snapshot!(words(line).join("\n"));
    assert!(has_word("bulk_insert run", "--batch-insert-count=32000"));
    // Each thread has a statement, and all statements have the same length.
    assert!(has_word("bulk_insert --threads=4 --events=100 run", "--batch-insert-count=25"));
    assert!(has_word("bulk_insert --threads=4 --events=3 run", "--transactions=3"));
    let (_, notices) = translated("bulk_insert --threads=3 --events=100 run").unwrap();
    assert_eq!(notices, ["inserts 102 rows instead of 100: all statements have 34"]);
}

#[test]
fn a_run_completes_and_repeats_its_transactions_as_sysbench_does() {
    let line = words("oltp_read_write --time=9 run");
    assert!(line.contains(&"--drain=counted".to_owned()), "{line:?}");
    assert!(line.contains(&"--redraw".to_owned()), "{line:?}");
}

#[test]
fn zero_means_no_limit() {
    let both = words("oltp_read_only --events=5 --time=9 run");
    assert!(both.contains(&"--transactions=5".to_owned()));
    assert!(both.contains(&"--max-duration=9s".to_owned()));
    assert!(both.contains(&"--drain=counted".to_owned()));
    let by_count = words("oltp_read_only --events=5 --time=0 run").join(" ");
    assert!(!by_count.contains("duration") && !by_count.contains("--drain"), "{by_count}");
    assert!(has_word("oltp_read_only --time=0 run", "--duration=2592000s"));
    assert!(has_word("oltp_read_only --time=0 run", "--interval=1s"));
    assert!(has_word("oltp_read_only --time=0 --report-interval=10 run", "--duration=2592000s"));
    assert!(has_word("oltp_read_only --time=604800 run", "--interval=1s"));
    assert!(has_word("oltp_read_only --time=-1 --events=3 run", "--transactions=3"));
    let off = words("oltp_read_only --rate=0 --rand-seed=0 --report-interval=0 run").join(" ");
    assert!(!off.contains("--rate") && !off.contains("--seed") && off.contains("--no-intervals"));
}

#[test]
fn checkpoints_are_sorted() {
    assert!(has_word("oltp_read_only --report-checkpoints=4,2,4 run", "--report-checkpoints=2,4"));
}

#[test]
fn old_names_and_files_with_options_work() {
    assert!(has_word(
        "oltp_read_only --max-requests=3 --num-threads=2 --max-time=0 run",
        "--transactions=3"
    ));
    assert!(has_word("oltp_read_only --num-threads=2 run", "--sessions=2"));
    assert!(has_word("oltp_read_only --config-file=sb.conf run", "--sessions=7"));
    assert!(has_word("oltp_read_only --config-file=sb.conf --tables=5 run", "--tables=5"));
    assert!(has_word("--test=oltp_read_only.lua run", "--test=read-only"));
    assert!(has_word("run --test=oltp_read_only", "--test=read-only"));
}

#[test]
fn inserts_are_not_prepared_as_in_sysbench() {
    assert!(has_word("oltp_insert run", "--protocol=simple"));
    assert!(!has_word("oltp_delete run", "--protocol=simple"));
    assert!(has_word("oltp_insert --auto_inc=off run", "--auto-inc=off"));
    assert!(!has_word("oltp_delete --auto_inc=off run", "--auto-inc=off"));
}

#[test]
fn options_without_meaning_are_accepted_with_a_notice() {
    let line = "oltp_read_only --debug --mysql-host=h --validate --verbosity=5 --forced-shutdown=3 \
        --thread-stack-size=1M --mysql_storage_engine=x --db-debug run";
    let (_, notices) = translated(line).unwrap();
    assert_eq!(notices.len(), 7, "{notices:?}");
    assert!(notices[1].contains("--mysql-host has no effect: it is an option of MySQL"));
}

#[test]
fn refuses_invalid_command_lines_with_the_words_of_sysbench() {
    for (line, text) in [
        ("oltp_read_only", "a command is required"),
        ("oltp_read_only start", "unknown command: start"),
        ("oltp_read_only run again", "unrecognized command line argument: again"),
        ("nosuch run", "cannot find benchmark 'nosuch'"),
        ("read-only run", "cannot find benchmark 'read-only'"),
        ("cpu run", "sysbench's test 'cpu' is not supported"),
        ("oltp_read_only --nosuch=1 run", "invalid option: --nosuch"),
        ("oltp_read_only --random-points=3 run", "invalid option: --random-points"),
        ("oltp_read_only --skip-trx=maybe run", "invalid value for --skip-trx: maybe"),
        ("oltp_read_only --threads=0 run", "invalid value for --threads: 0"),
        ("oltp_read_only --rate=-5 run", "invalid value for --rate: -5"),
        ("oltp_read_only --verbosity=9 run", "invalid value for --verbosity: 9"),
        ("oltp_read_only --time= run", "invalid value for --time: "),
        ("oltp_read_only --rand-type=foo run", "invalid value for --rand-type: foo"),
        ("oltp_read_only --forced-shutdown=x run", "invalid value for --forced-shutdown: 'x'"),
        ("oltp_read_only --db-ps-mode=foo run", "invalid value for --db-ps-mode: foo"),
        ("oltp_read_only --db-driver=mysql run", "--db-driver=mysql is not supported"),
        ("oltp_read_only --pgsql-variant=redshift run", "--pgsql-variant is not supported"),
        ("oltp_read_only --config-file=none run", "cannot read none: No such file"),
        ("oltp_read_only --config-file=itself.conf run", "more than 100 configuration files"),
        ("oltp_read_only --report-checkpoints=a run", "invalid value for --report-checkpoints: a"),
        ("bulk_insert help", "the test 'bulk_insert' has no command 'help'"),
        ("bulk_insert prewarm", "the test 'bulk_insert' has no command 'prewarm'"),
        ("bulk_insert --tables=2 run", "invalid option: --tables"),
    ] {
        let error = translated(line).unwrap_err();
        assert!(error.starts_with(text), "{line}: {error}");
    }
}

#[test]
fn scripts_of_the_user_are_refused() {
    for (line, text) in [
        (
            "./oltp_point_select.lua run",
            "Lua scripts are not supported, and ./oltp_point_select.lua differs from all scripts of sysbench; built-in tests: oltp_read_write, ",
        ),
        // sysbench looks in the working directory first.
        ("oltp_join run", "Lua scripts are not supported, and oltp_join.lua differs from all"),
        ("--test=./oltp_point_select.lua run", "Lua scripts are not supported"),
        // A file of the name is not the script.
        ("/usr/share/sysbench/oltp_delete.lua run", "Lua scripts are not supported"),
        ("./missing.lua run", "cannot find benchmark './missing.lua': no such file"),
        ("/tmp/oltp_read_write.lua run", "cannot find benchmark '/tmp/oltp_read_write.lua'"),
        ("--test=oltp run", "cannot find benchmark 'oltp': its name is oltp_read_write"),
        ("idleconnection run", "cannot find benchmark 'idleconnection': it sends nothing"),
    ] {
        let error = translated(line).unwrap_err();
        assert!(error.starts_with(text), "{line}: {error}");
    }
    let own = "/usr/local/share/sysbench/oltp_read_write.lua";
    let (text, notices) = translated(&format!("{own} run")).unwrap();
    assert!(text.contains("--test=read-write"), "{text}");
    assert_eq!(notices, [format!("runs the built-in test oltp_read_write; {own} does not exist")]);
    assert!(has_word("oltp_read_write.lua run", "--test=read-write"));
}

#[test]
fn options_of_version_1_1_select_the_format_of_its_report() {
    for option in [
        "--pgsql-sslmode=require",
        "--luajit-cmd=off",
        "--num_rows_in_insert=10",
        "--batch_insert_count=100",
        "--create_table_options=x",
        "--start_id=1",
        "--warmup-time=1",
    ] {
        assert!(
            has_word(&format!("oltp_read_only {option} run"), "--output=sysbench-1.1"),
            "{option}"
        );
    }
    assert!(has_word("oltp_read_only run", "--output=sysbench"));
    let arguments = ["oltp_read_only".to_owned(), "run".to_owned()];
    let with = |version: &'static str| {
        let variable = |name: &str| (name == SYSBENCH_VERSION).then(|| version.to_owned());
        let read = |_: &str| Err(String::new());
        translate(&arguments, &Outside { variable: &variable, read: &read })
    };
    assert!(format!("{:?}", with("1.1").unwrap()).contains("--output=sysbench-1.1"));
    assert!(with("2").unwrap_err().contains("expected 1.0 or 1.1"));
    let database = words("oltp_read_only --pgsql-sslmode=require run").join(" ");
    assert!(database.contains("sslmode=require user=sbtest"), "{database}");
    assert!(has_word(
        "oltp_read_only --create_table_options=x prepare",
        "--create-table-options=x"
    ));
}

#[test]
fn create_and_load_prepare_the_tables() {
    let prepare = words("oltp_read_only --tables=2 prepare");
    for command in ["create", "load"] {
        assert_eq!(words(&format!("oltp_read_only --tables=2 {command}")), prepare);
    }
    assert_eq!(words("oltp_read_only warmup"), words("oltp_read_only prewarm"));
}

#[test]
fn a_low_verbosity_prints_no_report() {
    let meaning = |line: &str| {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let read = |_: &str| Err(String::new());
        translate(&arguments, &Outside { variable: &|_| None, read: &read }).unwrap().meaning
    };
    for level in 0..=5 {
        let silent = matches!(
            meaning(&format!("oltp_read_only --verbosity={level} run")),
            Meaning::Silent(commands) if commands[0][0] == "--quiet"
        );
        assert_eq!(silent, level < 3, "{level}");
    }
}

#[test]
fn help_and_version_need_no_command() {
    assert!(translated("--version").unwrap().0.starts_with("sysbench 1.0.20 (riops "));
    assert!(translated("").unwrap().0.contains("--report_checkpoints=STRING"));
    let help = translated("select_random_ranges help").unwrap().0;
    assert!(help.contains("--number_of_ranges=N") && help.contains("--table_size=N"), "{help}");
    assert_eq!(
        translated("oltp_read_only --help").unwrap().0,
        translated("oltp_read_only help").unwrap().0
    );
}

#[test]
fn finds_the_password_in_every_spelling() {
    let arguments = ["a", "--pgsql_password=s'x", "run"].map(str::to_owned);
    let secret = password(&arguments).unwrap();
    assert_eq!(
        (secret.variable, secret.value.as_str(), secret.positions),
        ("PGPASSWORD", "s'x", vec![1])
    );
    assert!(password(&["--pgsql-password=".to_owned()]).is_none());
}
