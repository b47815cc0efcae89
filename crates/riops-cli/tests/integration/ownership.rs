//! riops does not overwrite, stop or remove directories, servers and tables that it did not create.

use std::path::Path;

use crate::fixture::{CommandOutput, Database, database, folder, open};
use crate::server::{command_on, processes};

const RUN: &str = "run ping --duration 100ms --warmup 0 --no-store";
const MARK: &str = "riops-server.json";

/// Asserts that no command removes or stops anything in this home directory.
fn assert_refused(home: &Path, reason: &str) {
    for line in
        ["server stop", "server stop --force", "server reset --yes", "server reset -y --force"]
    {
        CommandOutput::run(&mut command_on(home, line)).expect(1).stderr_contains(reason);
    }
}

#[test]
fn a_directory_of_others_is_neither_used_nor_removed() {
    let home = folder("foreign-data");
    std::fs::create_dir(home.join("data")).unwrap();
    std::fs::write(home.join("data/photo.jpg"), "p").unwrap();
    assert_refused(&home, "was not created by riops");
    for line in [RUN, "server start", "server status", "server url"] {
        CommandOutput::run(&mut command_on(&home, line))
            .expect(1)
            .stderr_contains("was not created by riops");
    }
    let left: Vec<_> = std::fs::read_dir(&home).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["data"]);
    assert_eq!(std::fs::read_to_string(home.join("data/photo.jpg")).unwrap(), "p");
}

#[test]
fn files_of_others_are_not_overwritten() {
    let home = folder("foreign-log");
    for name in ["server.log", "state.json", "persistent"] {
        std::fs::write(home.join(name), "mine").unwrap();
        CommandOutput::run(&mut command_on(&home, RUN)).expect(1).stderr_contains(name);
        assert_eq!(std::fs::read_to_string(home.join(name)).unwrap(), "mine");
        std::fs::remove_file(home.join(name)).unwrap();
    }
    // The directory in which a data directory is initialized.
    std::fs::create_dir(home.join("initdb.riops")).unwrap();
    std::fs::write(home.join("initdb.riops/mine"), "mine").unwrap();
    CommandOutput::run(&mut command_on(&home, RUN))
        .expect(1)
        .stderr_contains("was not created by riops");
    assert!(home.join("initdb.riops/mine").exists());
    // Left by a killed riops.
    std::fs::write(home.join("initdb.riops/created-by-riops"), "").unwrap();
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    assert!(!home.join("initdb.riops").exists());
}

#[test]
fn a_server_that_riops_did_not_start_is_neither_stopped_nor_reset() {
    let (home, other) = (folder("foreign-server"), folder("foreign-server-link"));
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    // A directory of the user that refers to the data directory of a running server.
    std::os::unix::fs::symlink(home.join("data"), other.join("data")).unwrap();
    assert_refused(&other, "was not created by riops");
    // Without the mark and the state, it is like any server of the user.
    for name in [MARK, "state.json"] {
        std::fs::rename(home.join(name), other.join(name)).unwrap();
    }
    assert_refused(&home, "was not created by riops");
    // Another server on the data directory, here recognized by its start time.
    let state = std::fs::read_to_string(other.join("state.json")).unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&state).unwrap();
    changed["started"] = "1".into();
    std::fs::write(home.join("state.json"), changed.to_string()).unwrap();
    std::fs::rename(other.join(MARK), home.join(MARK)).unwrap();
    assert_refused(&home, "that riops did not start");
    CommandOutput::run(&mut command_on(&home, RUN))
        .expect(1)
        .stderr_contains("that riops did not start");
    assert!(!processes(&home).is_empty());

    std::fs::write(home.join("state.json"), state).unwrap();
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
}

/// Creates a table as sysbench does.
pub(crate) fn create_sysbench_table(database: &Database, rows: u32) {
    let sql = format!(
        "create table sbtest1 (id serial primary key, k integer default 0 not null,
           c char(120) default '' not null, pad char(60) default '' not null);
         insert into sbtest1 (k, c, pad) select n, repeat('c', 119), repeat('p', 59) from generate_series(1, {rows}) n;
         create index k_1 on sbtest1 (k)"
    );
    database.connect().execute(&sql).unwrap();
}

#[test]
fn tables_of_others_are_only_used_in_the_schema_that_a_command_names() {
    let database = database("oltp_foreign");
    create_sysbench_table(&database, 1000);
    let contents = || {
        let sql = "select md5(string_agg(sbtest1::text, ',' order by id)) from public.sbtest1";
        database.value(sql).unwrap()
    };
    let run = |options: &str, code: i32| {
        let line = "run oltp --transactions 20 --warmup 0 --no-store --output json";
        database.riops(&format!("{line} {options}")).expect(code)
    };
    let before = contents();
    run("", 1).stderr_contains("add --schema public");
    run("--schema public", 0);
    let named = contents();
    assert_ne!(named, before);
    // The tables are registered now.
    run("", 1).stderr_contains("add --schema public");
    database.riops("warm oltp").expect(1).stderr_contains("no dataset for the workload oltp");
    assert_eq!(contents(), named);
    run("--prepare --tables 1 --table-size 100", 0);
    let schema = "select parameters::json ->> 'schema' from riops.dataset";
    assert_eq!(database.value(schema).as_deref(), Some("riops"));
    database.riops("cleanup oltp").expect(0);
    assert_eq!(contents(), named);
}

#[test]
fn a_copy_is_only_removed_after_riops_has_started_it() {
    let (home, copy) = (folder("original"), folder("copy"));
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    let copied = std::process::Command::new("cp").arg("-a").arg(home.join(".")).arg(&copy).status();
    assert!(copied.unwrap().success());
    assert_refused(&copy, "server start");
    CommandOutput::run(&mut command_on(&copy, RUN)).expect(0);
    // Replaced by a data directory that riops initialized elsewhere.
    CommandOutput::run(&mut command_on(&home, "server reset --yes")).expect(0);
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    std::fs::rename(copy.join("data"), copy.join("before")).unwrap();
    std::fs::rename(home.join("data"), copy.join("data")).unwrap();
    assert_refused(&copy, "was not created by riops");
    CommandOutput::run(&mut command_on(&copy, RUN))
        .expect(1)
        .stderr_contains("was not created by riops");
    std::fs::rename(copy.join("data"), home.join("data")).unwrap();
    std::fs::rename(copy.join("before"), copy.join("data")).unwrap();
    CommandOutput::run(&mut command_on(&copy, "server reset --yes")).expect(0);
    assert!(!copy.join("data").exists() && home.join("data").exists());
}

#[test]
fn a_reset_is_confirmed_with_yes_where_there_is_no_terminal() {
    let home = folder("unconfirmed");
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    CommandOutput::run(&mut command_on(&home, "server reset")).expect(2).stderr_contains("--yes");
    assert!(home.join("data/PG_VERSION").exists());
    CommandOutput::run(&mut command_on(&home, "server reset --yes")).expect(0);
    assert!(!home.join("data").exists());
    CommandOutput::run(&mut command_on(&home, "server reset")).expect(0);
}

#[test]
fn a_data_directory_behind_a_link_is_not_removed() {
    let (home, disk) = (folder("linked"), folder("linked-disk"));
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    std::fs::rename(home.join("data"), disk.join("data")).unwrap();
    std::os::unix::fs::symlink(disk.join("data"), home.join("data")).unwrap();
    CommandOutput::run(&mut command_on(&home, RUN)).expect(0);
    CommandOutput::run(&mut command_on(&home, "server reset --yes"))
        .expect(1)
        .stderr_contains("linked/data");
    assert!(disk.join("data/PG_VERSION").exists());
}

#[test]
fn files_of_the_server_are_private_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let home = folder("private").join("server");
    let mut shell = std::process::Command::new("sh");
    let run = command_on(&home, RUN);
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    CommandOutput::run(&mut shell).expect(0);
    let mode =
        |name: &str| std::fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
    for name in ["users.lock", "start.lock", "state.json", "server.log", "leaving", MARK] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    for name in ["data", "socket"] {
        assert_eq!(mode(name), 0o700, "{name}");
    }
    assert_eq!(mode("") & 0o022, 0);
}

fn execute(database: &Database, sql: &str) {
    database.connect().execute(sql).unwrap();
}

/// Asserts that `cleanup script` names the object, and drops nothing.
fn assert_keeps_all(database: &Database, object: &str) {
    let count = "select count(*) from pg_class where relkind in ('r', 'p', 'S')";
    let before = database.value(count);
    database.riops("cleanup script").expect(1).stderr_contains(object);
    database.riops("prepare script --scale 1 --recreate").expect(1).stderr_contains(object);
    assert_eq!(database.value(count), before);
}

#[test]
fn objects_of_others_that_are_attached_to_a_table_are_not_dropped_with_it() {
    let database = database("own_attached");
    let prepare = "prepare script --scale 1 --partitions 2";
    database.riops(prepare).expect(0);
    // A partition of the user takes the place of one of riops.
    execute(
        &database,
        "alter table pgbench_accounts detach partition pgbench_accounts_2;
         create table mine (like pgbench_accounts);
         alter table pgbench_accounts attach partition mine for values from (50001) to (maxvalue)",
    );
    assert_keeps_all(&database, "public.mine");
    execute(&database, "alter table pgbench_accounts detach partition mine");
    database.riops("cleanup script").expect(0);
    let left = "select string_agg(relname, ' ') from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace";
    assert_eq!(database.value(left).as_deref(), Some("mine"));

    database.riops("prepare script --scale 1").expect(0);
    execute(&database, "create table child () inherits (pgbench_history)");
    assert_keeps_all(&database, "public.child");
    execute(&database, "drop table child; create sequence counter owned by pgbench_history.tid");
    assert_keeps_all(&database, "public.counter");
    execute(
        &database,
        "drop sequence counter;
         create table parent (like pgbench_history) partition by range (tid);
         alter table parent attach partition pgbench_history for values from (minvalue) to (maxvalue)",
    );
    assert_keeps_all(&database, "public.parent");
    execute(&database, "alter table parent detach partition pgbench_history");
    // Views and foreign keys of the user.
    execute(&database, "create view v as select * from pgbench_tellers");
    assert_keeps_all(&database, "pgbench_tellers");
    execute(&database, "drop view v; create table f (tid int references pgbench_tellers)");
    assert_keeps_all(&database, "pgbench_tellers");
    execute(&database, "drop table f");
    database.riops("cleanup script").expect(0);
}

#[test]
fn objects_that_only_look_like_tables_of_riops_are_not_used() {
    let database = database("own_views");
    database.riops("prepare rows --rows 2000").expect(0);
    execute(
        &database,
        "alter table riops.rows_0001 rename to kept;
         create view riops.rows_0001 as select * from riops.kept;
         comment on view riops.rows_0001 is 'riops dataset rows'",
    );
    database.riops("run rows --duration 100ms --warmup 0").expect(1).stderr_contains("rows_0001");
    execute(
        &database,
        "drop view riops.rows_0001;
         alter table riops.dataset rename to other;
         create view riops.dataset as select * from riops.other;
         comment on view riops.dataset is 'riops registry 1'",
    );
    for line in ["run rows --duration 100ms --warmup 0", "cleanup rows", "prepare rows --rows 2000"]
    {
        database.riops(line).expect(1).stderr_contains("riops.dataset");
    }
    assert!(database.value("select to_regclass('riops.kept')").is_some());
}

#[test]
fn a_superuser_does_not_use_tables_of_a_role_with_fewer_rights() {
    let database = database("own_roles");
    execute(
        &database,
        "create role own_roles_mallory login; grant create on database own_roles to own_roles_mallory",
    );
    let mut conninfo = database.conninfo.clone();
    conninfo.user = "own_roles_mallory".to_owned();
    let mut mallory = open(&conninfo);
    // The schema as riops would create it, with code that would run as a superuser.
    mallory.execute("create schema riops; comment on schema riops is 'made by riops'").unwrap();
    mallory.execute(include_str!("../../../../sql/dataset/create_registry.sql")).unwrap();
    mallory
        .execute(
            "create function riops.take() returns trigger language plpgsql as
               $$ begin execute 'alter role own_roles_mallory superuser'; return new; end $$;
             create trigger take before insert on riops.dataset for each row execute function riops.take()",
        )
        .unwrap();
    for line in ["prepare rows --rows 2000", "run rows --prepare --rows 2000", "cleanup rows"] {
        database.riops(line).expect(1).stderr_contains("own_roles_mallory");
    }
    let sql = "select rolsuper from pg_roles where rolname = 'own_roles_mallory'";
    assert_eq!(database.value(sql).as_deref(), Some("f"));
    // The same in a schema of the superuser: a routine, and a trigger of a role with the privilege to create one.
    mallory.execute("drop schema riops cascade").unwrap();
    database.riops("prepare rows --rows 2000").expect(0);
    execute(
        &database,
        "grant usage, create on schema riops to own_roles_mallory; grant all on riops.run to own_roles_mallory",
    );
    mallory.execute("create function public.take() returns trigger language plpgsql as $$ begin return new; end $$").unwrap_err();
    mallory
        .execute("create function riops.take() returns trigger language plpgsql as $$ begin return new; end $$")
        .unwrap();
    database
        .riops("run rows --duration 100ms --warmup 0")
        .expect(1)
        .stderr_contains("own_roles_mallory");
    execute(
        &database,
        "drop function riops.take(); create schema open; grant all on schema open to own_roles_mallory",
    );
    mallory
        .execute(
            "create function open.take() returns trigger language plpgsql as $$ begin return new; end $$;
             create trigger take before insert on riops.run for each row execute function open.take()",
        )
        .unwrap();
    database
        .riops("run rows --duration 100ms --warmup 0")
        .expect(1)
        .stderr_contains("own_roles_mallory");
    execute(&database, "drop trigger take on riops.run");
    database.riops("run rows --duration 100ms --warmup 0").expect(0);
}

#[test]
fn a_superuser_does_not_use_a_store_of_a_role_with_fewer_rights() {
    let database = database("own_store");
    execute(
        &database,
        "create role own_store_mallory login; create schema riops_store authorization own_store_mallory",
    );
    for line in ["runs list", "run ping --transactions 5 --warmup 0"] {
        let line = format!("{line} --store {}", database.url);
        database.riops(&line).expect(1).stderr_contains("own_store_mallory");
    }
}
