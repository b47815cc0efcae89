//! Complete Block Check: steps and checks, pauses, cleanup, and the comparison with the device.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::crash::{await_value, kill};
use crate::fixture::{
    CommandOutput, binary, command, database, folder, is_root, program, start_until, tcp_url,
};
use crate::server::command_on;

pub(crate) const STEPS: [&str; 9] = [
    "CREATE_TABLE",
    "VACUUM",
    "CREATE_INDEX",
    "SELECT_u1",
    "SELECT_c1",
    "SELECT_r",
    "CLUSTER",
    "SELECT_u2",
    "SELECT_c2",
];
pub(crate) const SMALL: &str = "run cbc --size 0.01";

pub(crate) fn names(record: &Value) -> Vec<&str> {
    let stages = record["stages"].as_array().unwrap();
    stages.iter().map(|stage| stage["name"].as_str().unwrap()).collect()
}

/// Whether the database `riops_cbc` exists on the server in this folder.
fn has_database(home: &Path) -> bool {
    let url = CommandOutput::run(&mut command_on(home, "server url")).expect(0).stdout;
    let psql = program("psql").unwrap();
    let sql = "select count(*) from pg_database where datname = 'riops_cbc'";
    let count = CommandOutput::run(Command::new(psql).args(["-Atc", sql, url.trim()])).expect(0);
    count.stdout.trim() != "0"
}

#[test]
fn each_step_is_a_stage_and_the_table_has_the_specified_rows() {
    let database = database("cbc_schema");
    let settings: u64 =
        database.value("select count(*) from pg_settings").unwrap().parse().unwrap();
    let record = database.riops(&format!("{SMALL} --place schema --output json")).expect(0).json();
    assert_eq!(names(&record), STEPS);
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    let cbc = &record["target"]["dataset"]["cbc"];
    // 0.01 × 12,500 copies, and copy number 0.
    assert_eq!(
        (cbc["copies"].as_u64(), cbc["settings_rows"].as_u64()),
        (Some(126), Some(settings))
    );
    assert!(cbc["table_bytes"].as_u64().unwrap() > 1_000_000, "{cbc}");
    assert!(cbc["index_bytes"].as_u64().unwrap() > 0, "{cbc}");
    let stages = record["stages"].as_array().unwrap();
    for stage in stages {
        assert_eq!(
            (stage["kind"].as_str(), stage["sessions"].as_u64()),
            (Some("statement"), Some(1))
        );
        assert!(stage["seconds"].as_f64().unwrap() > 0.0);
        let points = stage["probes"]["points"].as_array().unwrap();
        assert!(!points.is_empty() && points[0]["dirty_bytes"].is_number(), "{points:?}");
        let is_select = stage["name"].as_str().unwrap().starts_with("SELECT");
        assert_eq!(stage["statement"]["plan"].is_object(), is_select);
        if is_select {
            assert!(stage["statement"]["plan"]["buffers"]["shared_hit"].is_number());
        }
    }
    assert_eq!(stages[0]["rows"].as_u64(), Some(126 * settings));
    assert!(
        stages[1]["statement"]["vacuum"]["read_mib_s"].is_number(),
        "{}",
        stages[1]["statement"]
    );
    let written = |stage: &Value| stage["database"]["wal"]["bytes"].as_u64().unwrap();
    assert!(written(&stages[0]) > 1_000_000, "{}", stages[0]["database"]);
    assert!(stages[0]["database"]["client_io"]["extend_bytes"].as_u64().unwrap() > 1_000_000);
    // One check of the table and one of each select.
    assert_eq!(record["checks"].as_array().unwrap().len(), 6);
    let schema = "select 1 from pg_namespace where nspname = 'riops'";
    assert_eq!(database.value(schema), None);
}

#[test]
fn selects_with_several_sessions_are_loops_with_histograms() {
    let database = database("cbc_queries");
    let line = format!(
        "{SMALL} --place schema --query-sessions 1,3 --query-duration 300ms --interval 100ms --output json"
    );
    let record = database.riops(&line).expect(0).json();
    let stages = names(&record);
    let loops = |script: &str| [1, 3].map(|sessions| format!("{script}-no-explain -c {sessions}"));
    let (before, after) = (stages[6..10].to_vec(), stages[13..].to_vec());
    assert_eq!(before, [loops("t03-select-max"), loops("t04-selectr")].concat());
    assert_eq!(after, loops("t06-iselect-max"));
    for stage in record["stages"].as_array().unwrap().iter().filter(|stage| stage["kind"] == "loop")
    {
        let sessions: u64 =
            stage["name"].as_str().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(stage["sessions"].as_u64(), Some(sessions));
        assert!(stage["transactions"].as_u64().unwrap() > 0 && stage["histogram"].is_string());
        assert!(stage["service_us"]["p99"].as_f64().unwrap() > 0.0);
    }
    let as_expected = |statement: &str| {
        let accesses = record["accesses"].as_array().unwrap();
        let checks = accesses.iter().filter(|access| access["statement"] == statement);
        checks.filter(|access| access["held"] == true).count()
    };
    // Checked before, during and after each of two stages. A short stage may end before the check during it.
    assert!(
        as_expected("t04-selectr-no-explain") >= 4
            && as_expected("t06-iselect-max-no-explain") >= 4,
        "{}",
        record["accesses"]
    );
}

#[test]
fn creates_and_drops_its_own_database_and_no_other() {
    let home = folder("cbc-database");
    let server = |line: &str| CommandOutput::run(&mut command_on(&home, line));
    server("server start").expect(0);
    let first = server(&format!("{SMALL} --output json")).expect(0).json();
    assert_eq!(first["target"]["database"], "riops_cbc");
    assert!(!has_database(&home));
    server(&format!("{SMALL} --keep")).expect(0);
    assert!(has_database(&home));
    // A run drops the database that an earlier run kept, and reports it.
    server(&format!("{SMALL} --keep"))
        .expect(0)
        .stderr_contains("dropped database \"riops_cbc\" of an earlier run");
    let cleaned = server("cleanup cbc").expect(0);
    assert_eq!(cleaned.stdout, "dropped the database riops_cbc\n");
    assert!(!has_database(&home));
    let psql = program("psql").unwrap();
    let url = server("server url").expect(0).stdout;
    let sql = |text: &str| {
        CommandOutput::run(Command::new(&psql).args(["-Atc", text, url.trim()])).expect(0)
    };
    sql("create database riops_cbc");
    server(SMALL)
        .expect(1)
        .stderr_contains("was not created by riops")
        .stderr_contains("--place schema");
    server("cleanup cbc").expect(1).stderr_contains("was not created by riops");
    assert!(has_database(&home));
    // `--place schema` still works, and cleanup drops its table.
    server(&format!("{SMALL} --place schema --keep")).expect(0);
    let cleaned = server("cleanup cbc").expect(0);
    assert_eq!(cleaned.stdout, "dropped 1 table\n");
    assert!(has_database(&home));
    sql("drop database riops_cbc");
    // A database with active connections is not dropped.
    server(&format!("{SMALL} --keep")).expect(0);
    let mut inside = Command::new(&psql)
        .args(["-c", "select pg_sleep(3600)", &url.trim().replace("/postgres?", "/riops_cbc?")])
        .spawn()
        .unwrap();
    await_value(
        &home,
        "select 1 from pg_stat_activity where query like '%pg_sleep(3600)' and datname = 'riops_cbc'",
    );
    server(SMALL)
        .expect(1)
        .stderr_contains("cannot drop database \"riops_cbc\": other sessions are connected");
    sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'riops_cbc'");
    inside.wait().unwrap();
    server(SMALL).expect(0);
    let inside = url.trim().replace("/postgres?", "/riops_cbc?");
    server(&format!("{SMALL} --keep")).expect(0);
    let mut in_own = command_on(&home, &format!("{SMALL} -d {inside}"));
    CommandOutput::run(in_own.env_remove("RIOPS_SERVER_DATA").env_remove("RIOPS_SERVER_SET"))
        .expect(2)
        .stderr_contains("connect to another database");
    server("server stop").expect(0);
}

#[test]
fn only_databases_with_the_comment_of_riops_are_dropped() {
    let home = folder("cbc-marks");
    let server = |line: &str| CommandOutput::run(&mut command_on(&home, line));
    server("server start").expect(0);
    let url = server("server url").expect(0).stdout;
    let sql = |sql: &str| {
        let mut psql = Command::new("psql");
        CommandOutput::run(psql.args([url.trim(), "-Atc", sql])).expect(0)
    };
    // The database of a run that was killed before it renamed the database is dropped.
    sql("create database riops_cbc_0123456789abcdef0123456789abcdef");
    sql(
        "comment on database riops_cbc_0123456789abcdef0123456789abcdef is 'made by riops 01890000-0000-7000-8000-0000deadbeef'",
    );
    server(SMALL).expect(0);
    let count = "select count(*) from pg_database where datname like 'riops_cbc%'";
    assert_eq!(sql(count).stdout.trim(), "0");
    // A database with such a name is not dropped if riops did not create it.
    for name in ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"] {
        sql(&format!("create database riops_cbc_{name}"));
    }
    sql("comment on database riops_cbc_0123456789abcdef0123456789abcdef is 'production'");
    server(SMALL).expect(0);
    server("cleanup cbc").expect(0).stderr_contains("riops_cbc_fedcba9876543210fedcba9876543210");
    assert_eq!(sql(count).stdout.trim(), "2");
    server("server stop").expect(0);
}

#[test]
fn an_interrupt_keeps_the_finished_steps_and_drops_the_database() {
    let home = folder("cbc-interrupted");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    for (position, step) in STEPS.iter().enumerate() {
        let line = "run cbc --size 0.05 --output json";
        let child = start_until(&mut command_on(&home, line), &format!("{step} …"));
        kill(child.id(), "-INT");
        let ran = CommandOutput::from(child.wait_with_output().unwrap());
        // The step may have finished before the signal. If it was the last one, the run is complete.
        match ran.code {
            Some(130) if ran.json().get("error").is_some() => {
                assert_eq!(position, 0, "{step}");
                assert_eq!(ran.json()["error"]["kind"], "interrupted");
            }
            Some(130) => {
                let record = ran.json();
                assert_eq!(record["status"], "interrupted");
                let finished = names(&record);
                assert!(finished.len() >= position, "{step}: {finished:?}");
                assert_eq!(finished, STEPS[..finished.len()]);
                let list =
                    CommandOutput::run(&mut command_on(&home, "runs show last --output json"))
                        .expect(0);
                assert_eq!(list.json()["id"], record["id"]);
            }
            code => assert!(code == Some(0) && position == 8, "{step}: {code:?}"),
        }
        assert!(!has_database(&home), "{step}");
    }
    // If riops is killed, its database remains, and the next run drops it.
    let mut child = start_until(&mut command_on(&home, "run cbc --size 0.05"), "CREATE_INDEX …");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    let again =
        CommandOutput::run(&mut command_on(&home, &format!("{SMALL} --output json"))).expect(0);
    assert_eq!(names(&again.json()), STEPS);
    assert!(!has_database(&home));
    // With --keep, the table stays.
    let child = start_until(&mut command_on(&home, "run cbc --size 0.05 --keep"), "CREATE_INDEX …");
    kill(child.id(), "-INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert!(has_database(&home));
    let cleaned = CommandOutput::run(&mut command_on(&home, "cleanup cbc")).expect(0);
    assert_eq!(cleaned.stdout, "dropped the database riops_cbc\n");
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
}

#[test]
fn an_interrupt_ends_a_cool_down_and_the_list_shows_the_rate_of_the_device() {
    let home = folder("cbc-cool-down");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let line = format!("{SMALL} --cooldown 1h --output json");
    let child = start_until(&mut command_on(&home, &line), "cool-down of 1h");
    kill(child.id(), "-INT");
    let record = CommandOutput::from(child.wait_with_output().unwrap()).expect(130).json();
    assert_eq!(record["status"], "interrupted");
    assert_eq!(record["plan"]["cbc"]["cooldown_s"], 3600.0);
    assert_eq!(names(&record), STEPS[..1]);
    assert!(!has_database(&home));
    let list =
        CommandOutput::run(&mut command_on(&home, "runs list --output json")).expect(0).json();
    // Absent if the device of the server cannot be observed.
    let io = &record["stages"][0]["io"];
    let mb_s = io["read_mb_s"].as_f64().zip(io["write_mb_s"].as_f64());
    assert_eq!(list[0]["device_mb_s"].as_f64(), mb_s.map(|(read, write)| read + write));
    let ran =
        CommandOutput::run(&mut command_on(&home, &format!("{SMALL} --cooldown 1ms"))).expect(0);
    assert_eq!(ran.stderr.matches("cool-down of 1ms\n").count(), STEPS.len() - 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("; cool-down of 1.00 ms between the stages"), "{}", ran.stdout);
    CommandOutput::run(&mut command_on(&home, "run cbc --cooldown 25h"))
        .expect(2)
        .stderr_contains("1 day");
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
}

#[test]
fn a_full_disk_is_reported_and_the_database_is_dropped() {
    if !is_root() {
        return;
    }
    let (Some(psql), home) = (program("psql"), folder("cbc-full")) else {
        return;
    };
    let full = folder("cbc-full-disk");
    // A separate mount namespace, so the small file system is unmounted when the shell exits. The WAL is on
    // another file system.
    let script = format!(
        "set -e; mount -t tmpfs -o size=40m none {full}; {riops} server start
         chown $(stat -c %u:%g {home}/data) {full}
         {psql} -q -c \"create tablespace small location '{full}'\" \
           -c 'alter system set default_tablespace = small' -c 'select pg_reload_conf()' \
           \"$({riops} server url)\" > /dev/null
         set +e; {riops} run cbc --size 0.2 --skip-space-check; echo code $?
         {psql} -Atc \"select 'databases ' || count(*) from pg_database where datname = 'riops_cbc'\" \
           \"$({riops} server url)\"
         echo left $(find {full} -type f -size +1M | wc -l)
         {riops} server stop",
        riops = binary().display(),
        psql = psql.display(),
        full = full.display(),
        home = home.display(),
    );
    let mut shell = command("");
    shell = {
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "sh", "-c", &script]);
        for (name, value) in shell.get_envs() {
            match value {
                Some(value) => unshare.env(name, value),
                None => unshare.env_remove(name),
            };
        }
        unshare
    };
    shell.env("RIOPS_SERVER_DATA", &home).env("RIOPS_STORE", home.join("runs.sqlite"));
    let ran = CommandOutput::run(&mut shell)
        .expect(0)
        .stderr_contains("CREATE_TABLE failed")
        .stderr_contains("No space left");
    for line in ["code 1\n", "databases 0\n", "left 0\n"] {
        assert!(ran.stdout.contains(line), "{line} is not in:\n{}\n{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_role_without_createdb_gets_a_hint_and_can_use_a_schema() {
    let database = database("cbc_role");
    database
        .connect()
        .execute("create role cbc_user login password 'secret'; grant create on database cbc_role to cbc_user")
        .unwrap();
    let url = tcp_url("cbc_role");
    let (_, address) = url.split_once('@').unwrap();
    let line = format!("{SMALL} --no-store -d postgresql://cbc_user:secret@{address}");
    CommandOutput::run(&mut command(&line))
        .expect(1)
        .stderr_contains("CREATEDB")
        .stderr_contains("--place schema");
    let ran =
        CommandOutput::run(&mut command(&format!("{line} --place schema --output json"))).expect(0);
    // Such a role sees fewer settings than a superuser.
    let all = database.value("select count(*) from pg_settings").unwrap().parse::<u64>().unwrap();
    let seen = ran.json()["target"]["dataset"]["cbc"]["settings_rows"].as_u64().unwrap();
    assert!(seen < all, "{seen} of {all}");
    database.connect().execute("drop owned by cbc_user; drop role cbc_user").unwrap();
}

#[test]
fn device_limits_are_measured_stored_and_shown_with_the_steps() {
    if program("fio").is_none() {
        return;
    }
    let home = folder("cbc-disk");
    let server = |line: &str| CommandOutput::run(&mut command_on(&home, line));
    let measured = server("doctor --disk --disk-size 64MB -t 1 --output json").expect(0).json();
    for figure in ["sequential_read", "sequential_write", "random_read", "random_write"] {
        assert!(measured[figure]["mb_s"].as_f64().unwrap() > 0.0, "{measured}");
    }
    let left = std::fs::read_dir(&home).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_str().unwrap().starts_with("riops-doctor")),
        "{left:?}"
    );
    let ran = server(SMALL).expect(0);
    let device = format!("{}: ", measured["device"].as_str().unwrap());
    for text in [device.as_str(), "sequential write ", "  storage  "] {
        assert!(ran.stdout.contains(text), "{text} is not in:\n{}", ran.stdout);
    }
    let record = server("runs show last --output json").expect(0).json();
    assert_eq!(record["target"]["disk_limit"], measured);
    let page = server("report last -o html").expect(0).stdout;
    assert!(page.contains("CREATE_TABLE") && page.contains("data-chart=\"run-1-"));
    server("doctor --disk --disk-dir /proc --disk-size 64MB")
        .expect(1)
        .stderr_contains("is not on a block device");
    let mut without = command_on(&home, "doctor --disk --disk-size 64MB");
    CommandOutput::run(without.env("PATH", "/nonexistent"))
        .expect(1)
        .stderr_contains("apt-get install fio");
    server("doctor --disk --disk-dir /nowhere").expect(1).stderr_contains("No such file");
    server("doctor --disk -t 1ms").expect(2).stderr_contains("between 1s and 1h");
    server("doctor --disk -c 4").expect(2).stderr_contains("--client");
    server("doctor -t 3").expect(2).stderr_contains("--client or --disk");
}

#[test]
fn rejects_invalid_sizes_before_creating_anything() {
    let database = database("cbc_sizes");
    let schema = "--place schema --no-store";
    let too_large = database.riops(&format!("run cbc --size 90000GB {schema}")).expect(1);
    too_large.stderr_contains("GB are free").stderr_contains("--skip-space-check");
    database
        .riops(&format!("run cbc --size 0.001 {schema}"))
        .expect(2)
        .stderr_contains("--size must be between");
    database
        .riops(&format!("run cbc --size much {schema}"))
        .expect(2)
        .stderr_contains("invalid size");
    database
        .riops(&format!("{SMALL} {schema} --query-sessions 0"))
        .expect(2)
        .stderr_contains("--query-sessions");
    let alone = database.riops(&format!("{SMALL} {schema} --query-duration 1s"));
    alone.expect(2).stderr_contains("--query-sessions");
    assert_eq!(database.value("select 1 from pg_namespace where nspname = 'riops'"), None);
}
