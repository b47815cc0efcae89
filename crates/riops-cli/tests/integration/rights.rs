//! Roles that lack a privilege.

use crate::fixture::{CommandOutput, Database, command, database, folder};

/// A command as the role, which is created without privileges.
fn run_as_role(database: &Database, role: &str, line: &str) -> CommandOutput {
    let url = database.url.replace("postgresql://postgres@", &format!("postgresql://{role}@"));
    let mut command = command(line);
    CommandOutput::run(command.env("RIOPS_DATABASE", url).env("RIOPS_STORE", &database.store))
}

/// Executes the statements of the hint.
fn grant(database: &Database, ran: &CommandOutput) -> String {
    let (_, grants) = ran.stderr.split_once("hint: have a superuser or the owner run: ").unwrap();
    database.connect().execute(grants.trim()).unwrap();
    grants.trim().to_owned()
}

#[test]
fn the_grant_of_the_hint_lets_a_role_prepare() {
    let database = database("rights_prepare");
    database.connect().execute("create role \"rights Creator\" login").unwrap();
    let prepare =
        |code| run_as_role(&database, "rights%20Creator", "prepare rows --rows 100").expect(code);
    let refused = prepare(1);
    let grants = grant(&database, &refused);
    assert_eq!(grants, "grant create on database rights_prepare to \"rights Creator\"");
    prepare(0);
}

#[test]
fn the_grants_of_the_hint_let_a_role_read_and_then_update() {
    let database = database("rights_run");
    database.riops("prepare rows --rows 1000").expect(0);
    database.connect().execute("create role rights_runner login").unwrap();
    let read = "run rows --transactions 20 --warmup 0 --batch 10 -c 1";
    let update = format!("{read} --update-percent 50");
    let run = |line: &str, code| run_as_role(&database, "rights_runner", line).expect(code);
    let grants = grant(&database, &run(read, 1));
    assert_eq!(
        grants,
        "grant usage on schema riops to rights_runner; grant select on riops.dataset, riops.rows_0001, riops.run to rights_runner"
    );
    run(read, 0);
    let grants = grant(&database, &run(&update, 1));
    assert!(grants.starts_with("grant select, insert, update, delete on riops."), "{grants}");
    run(&update, 0);
}

#[test]
fn grants_without_the_refused_object_are_not_suggested() {
    let database = database("rights_others");
    database.riops("prepare rows --rows 1000").expect(0);
    database.riops("prepare script").expect(0);
    database.connect().execute("create role rights_outsider login").unwrap();
    let refused =
        run_as_role(&database, "rights_outsider", "run script -b select-only --no-verify")
            .expect(1);
    assert!(refused.stderr.contains("permission denied for table pgbench_"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("grant usage on schema riops"), "{}", refused.stderr);
    // The examination of the server needs no dataset.
    let examined = run_as_role(&database, "rights_outsider", "doctor").expect(0);
    assert!(examined.stdout.contains("PostgreSQL"), "{}", examined.stdout);
}

#[test]
fn a_role_that_must_not_connect_gets_that_grant() {
    let database = database("rights_connect");
    let mut admin = database.connect();
    admin
        .execute("create role rights_stranger login; revoke connect on database rights_connect from public")
        .unwrap();
    let refused = run_as_role(&database, "rights_stranger", "run rows").expect(1);
    let text = "grant connect on database \"rights_connect\" to \"rights_stranger\"";
    refused.stderr_contains(text);
}

#[test]
fn a_role_with_limited_connections_needs_only_the_connections_of_its_sessions() {
    let database = database("few_connections");
    let sql = "create role few_connections login connection limit 2";
    database.connect().execute(sql).unwrap();
    let script = folder("few-connections").join("one.sql");
    std::fs::write(&script, "select 1").unwrap();
    let run = |sessions: u32| {
        let plan = format!("-c {sessions} --transactions 20 --warmup 0 --no-store");
        let line = format!("run script -f {} {plan}", script.display());
        run_as_role(&database, "few_connections", &line)
    };
    run(2).expect(0).stderr_contains("the counters of the database are not read");
    run(3).expect(1).stderr_contains("connections that the run needs at a time: 3");
}
