//! `riops runs` and the run store.

use std::process::Command;

use crate::fixture::{CommandOutput, binary, command, database, folder, start_until};

#[test]
fn lists_runs_newest_first_and_shows_a_run_by_part_of_its_id() {
    let database = database("listed");
    database.riops("prepare rows --rows 1000").expect(0);
    for label in ["first", "second"] {
        database
            .riops(&format!(
                "run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --label {label}"
            ))
            .expect(0);
    }
    let list = database.riops("runs list").expect(0).stdout;
    assert!(list.find("second").unwrap() < list.find("first").unwrap(), "{list}");
    let listed = database.riops("runs list --output json").expect(0).json();
    let id = listed[1]["id"].as_str().unwrap();
    let other = listed[0]["id"].as_str().unwrap();
    let unique = (1..=id.len()).find(|&length| {
        let end = &id[id.len() - length..];
        !other.ends_with(end) && !other.starts_with(end) && !id.starts_with(end)
    });
    let unique = unique.unwrap();
    for part in [&id[id.len() - 8..], &id[id.len() - unique..]] {
        let shown = database.riops(&format!("runs show {part}")).expect(0).stdout;
        assert!(shown.contains("first") && shown.contains(id), "{shown}");
    }
    // Ids of the same millisecond range start with the same digit.
    let first = database.riops(&format!("runs show {}", &id[..1])).expect(1);
    first.stderr_contains("is ambiguous: 2 runs match");
    database.riops("runs show ffffffff").expect(1).stderr_contains("run \"ffffffff\" not found");
}

#[test]
fn a_run_with_no_store_is_not_stored() {
    let database = database("not_stored");
    database.riops("prepare rows --rows 1000").expect(0);
    let run = database
        .riops("run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --no-store")
        .expect(0);
    assert!(run.stdout.contains("no (--no-store)"));
    assert!(!run.stdout.contains("riops report"), "{}", run.stdout);
    assert!(!database.store.exists());
}

#[test]
fn an_empty_store_prints_a_hint() {
    let store = folder("empty-store").join("runs.sqlite");
    let listed = CommandOutput::run(command("runs list").env("RIOPS_STORE", &store)).expect(0);
    assert!(listed.stdout.contains("riops run rows"));
    CommandOutput::run(command("runs show").env("RIOPS_STORE", &store))
        .expect(1)
        .stderr_contains("has no runs yet");
}

#[test]
fn a_missing_directory_of_the_store_is_an_error_before_the_run() {
    let folder = folder("missing-store").join("nowhere");
    let unreachable = "--database postgresql://nobody@127.0.0.1:1/x";
    for line in [&format!("run rows {unreachable}"), "doctor --disk"] {
        let mut run = command(line);
        CommandOutput::run(run.env("RIOPS_STORE", folder.join("runs.sqlite")))
            .expect(1)
            .stderr_contains(&format!("the directory {} of the store", folder.display()));
    }
    assert!(!folder.exists());
}

#[test]
fn the_default_directory_of_the_store_is_created() {
    let data = folder("default-store");
    let mut run = command("run rows --database postgresql://nobody@127.0.0.1:1/x");
    CommandOutput::run(run.env("XDG_DATA_HOME", &data))
        .expect(1)
        .stderr_contains("cannot connect to 127.0.0.1:1");
    assert!(data.join("riops/runs.sqlite").exists());
}

#[test]
fn a_store_that_can_only_be_read_is_reported_before_the_run() {
    let store = folder("readonly-store").join("runs.sqlite");
    let unreachable = "run rows --database postgresql://nobody@127.0.0.1:1/x";
    CommandOutput::run(command(unreachable).env("RIOPS_STORE", &store))
        .expect(1)
        .stderr_contains("cannot connect to 127.0.0.1:1");
    // No process of this shell can write to a file, as on a full disk; this also holds for root.
    let full = |line: &str| {
        let mut shell = Command::new("sh");
        let script = "ulimit -f 0; trap '' XFSZ; exec \"$0\" \"$@\"";
        shell.args(["-c", script]).arg(binary()).args(line.split(' '));
        CommandOutput::run(shell.env("RIOPS_STORE", &store))
    };
    let refused = full(unreachable).expect(1).stderr_contains("cannot access the store");
    assert!(!refused.stderr.contains("127.0.0.1:1"), "{}", refused.stderr);
    // The stored runs can still be listed.
    full("runs list").expect(0);
}

#[test]
fn reports_an_unwritable_store_before_the_run() {
    let folder = folder("blocked-store");
    std::fs::write(folder.join("file"), b"").unwrap();
    let mut run = command("run rows --database postgresql://nobody@127.0.0.1:1/x");
    CommandOutput::run(run.env("RIOPS_STORE", folder.join("file/runs.sqlite")))
        .expect(1)
        .stderr_contains("--store");
}

#[test]
fn prints_a_result_that_cannot_be_stored_and_fails_if_it_cannot_be_printed() {
    let database = database("lost_result");
    database.riops("prepare rows --rows 1000").expect(0);
    let line = "run rows --duration 2s --warmup 0 --batch 10";
    // Where the record is written instead.
    let elsewhere = folder("lost-result");
    let child = start_until(database.command(line).current_dir(&elsewhere), "measuring");
    // The store is damaged during the run.
    std::fs::write(&database.store, "not a database").unwrap();
    let run = CommandOutput::from(child.wait_with_output().unwrap()).expect(1);
    assert!(
        run.stdout.contains("RIOPS") && run.stdout.contains("stored       NO:"),
        "{}",
        run.stdout
    );
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let short = "run rows --duration 100ms --warmup 0 --interval 100ms --batch 10 --no-store";
    CommandOutput::run(database.command(short).stdout(full))
        .expect(1)
        .stderr_contains("cannot write the result");
}

#[test]
fn lists_tags_and_removes_runs() {
    let database = database("edited");
    database.riops("prepare rows --rows 1000").expect(0);
    let run = "run rows --duration 100ms --warmup 0 --interval 100ms";
    database.riops(&format!("{run} --batch 1,10 --label a --tag disk=nvme")).expect(0);
    database.riops(&format!("{run} --batch 100 --label b --update-percent 50")).expect(0);
    let ids = |options: &str| -> Vec<String> {
        let listed = database.riops(&format!("runs list --output json {options}")).expect(0);
        let runs = listed.json().as_array().unwrap().clone();
        runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids("");
    assert_eq!(all.len(), 2);
    assert_eq!(ids("--label a"), all[1..]);
    assert_eq!(ids("--tag disk"), all[1..]);
    assert_eq!(ids("--tag disk=hdd"), [""; 0]);
    assert_eq!(ids("--sort batch:asc --limit 1"), all[1..]);
    let cut = database.riops("runs list --limit 1").expect(0).stderr;
    assert_eq!(cut, "1 of 2 runs (--limit)\n");
    assert_eq!(database.riops("runs list").expect(0).stderr, "");
    assert_eq!(ids("--since 1h --valid --workload rows"), all);
    assert_eq!(ids("--until 1h"), [""; 0]);
    let mut list = database.command("runs list");
    let narrow = CommandOutput::run(list.env("COLUMNS", "70")).expect(0).stdout;
    assert!(narrow.lines().next().unwrap().contains("batch"), "{narrow}");
    assert!(narrow.contains("all: workload rows · valid yes"), "{narrow}");
    let stages =
        database.riops("runs list --stages --output csv --sort rows_per_s").expect(0).stdout;
    assert_eq!(stages.lines().count(), 1 + 3, "{stages}");
    assert!(
        stages.starts_with("run_id,run_started_at,started_at,workload,title,label,tags,"),
        "{stages}"
    );

    let tagged = database.riops("runs tag last disk=hdd --label c").expect(0).stdout;
    assert_eq!(tagged, format!("{}: label c, tags disk=hdd\n", all[0]));
    assert_eq!(ids("--tag disk=hdd --label c"), all[..1]);
    let shown = database.riops("runs show last --output json").expect(0).json();
    assert_eq!((&shown["label"], &shown["tags"]["disk"]), (&"c".into(), &"hdd".into()));
    let untagged = database.riops("runs tag last --remove disk").expect(0).stdout;
    assert_eq!(untagged, format!("{}: label c, tags none\n", all[0]));

    let refused = database.riops("runs rm last").expect(2);
    refused.stderr_contains("confirm with --yes");
    let removed = database.riops(&format!("runs rm --yes last {}", all[0])).expect(0).stdout;
    assert!(removed.starts_with(&format!("removed {} (rows, ", all[0])), "{removed}");
    assert_eq!(removed.lines().count(), 1);
    assert_eq!(ids(""), all[1..]);
    database.riops(&format!("runs rm --yes {}", all[0])).expect(1).stderr_contains("not found");
}

#[test]
fn bad_options_of_the_list_and_of_tags_are_usage_errors() {
    let store = folder("bad-list").join("runs.sqlite");
    for (line, text) in [
        ("runs list --sort speed", "unknown column \"speed\""),
        ("runs list --sort rows_per_s:up", "COLUMN:asc or COLUMN:desc"),
        ("runs list --since yesterday", "expected a date"),
        ("runs list --since 2026-02-01 --until 2026-01-01", "is not before --until"),
        ("runs list --tag =x", "expected KEY or KEY=VALUE"),
        ("runs list --valid --invalid", "cannot be used with"),
        ("runs list --limit 0", "--limit"),
        ("runs tag last", "nothing to change"),
        ("runs tag last x", "expected NAME=VALUE"),
        ("runs tag last a=1 --remove a", "both set and removed"),
        ("runs rm", "<RUN>"),
        ("runs list --store postgresql://h/db?sslmode=x", "sslmode"),
    ] {
        CommandOutput::run(command(line).env("RIOPS_STORE", &store))
            .expect(2)
            .stderr_contains(text);
    }
    assert!(!store.exists());
    CommandOutput::run(command("runs tag last a=1").env("RIOPS_STORE", &store))
        .expect(1)
        .stderr_contains("has no runs yet");
}

#[test]
fn a_store_in_a_database_is_unreachable_or_may_not_be_written_before_the_run() {
    let nowhere = "postgresql://nobody@127.0.0.1:1/x";
    for line in ["run ping", "runs list", "runs show", "doctor --disk"] {
        CommandOutput::run(command(line).env("RIOPS_STORE", nowhere))
            .expect(1)
            .stderr_contains("cannot access the store postgresql://nobody@127.0.0.1:1/x");
    }
    let database = database("read_only_store");
    let run = "run ping --duration 100ms --warmup 0 --interval 100ms";
    let place = |role: &str| database.url.replace("postgres@", &format!("{role}@"));
    let with = |line: &str, role: &str| {
        CommandOutput::run(database.command(line).env("RIOPS_STORE", place(role)))
    };
    let mut admin = database.connect();
    admin.execute("create role reader login").unwrap();
    // Only the owner of the database may create the schema.
    with(run, "reader").expect(1).stderr_contains("permission denied for database");
    let empty = with("runs list", "reader").expect(0);
    assert!(empty.stdout.contains("no stored runs"));
    with(run, "postgres").expect(0);
    admin.execute("grant usage on schema riops_store to reader").unwrap();
    admin.execute("grant select on all tables in schema riops_store to reader").unwrap();
    let listed = with("runs list", "reader").expect(0);
    assert!(listed.stdout.contains("ping"), "{}", listed.stdout);
    let refused = with(run, "reader").expect(1);
    let refused = refused.stderr_contains("permission denied for table runs");
    assert!(!refused.stderr.contains("target:"), "{}", refused.stderr);
}
