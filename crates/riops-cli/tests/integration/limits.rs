//! As many connections as the sessions of a run are enough, if a role, a pooler or a proxy permits no others.

use std::process::Command;

use crate::between::{Listener, folder_with_certificates, free_port, pgbouncer_with};
use crate::fixture::{CommandOutput, command, database, folder, program, tcp_url, url_of_role};
use crate::ownership::create_sysbench_table;

#[test]
fn a_role_with_as_many_connections_as_sessions_is_enough() {
    let database = database("role_limit");
    let mut admin = database.connect();
    let role = "drop role if exists role_limit; create role role_limit login password 'x' connection limit 4; grant create on database role_limit to role_limit";
    admin.execute(role).unwrap();
    database.riops("pgbench -i -q").expect(0);
    create_sysbench_table(&database, 1000);
    admin
        .execute("grant all on all tables in schema public to role_limit; alter table sbtest1 owner to role_limit")
        .unwrap();
    let url = url_of_role("role_limit", "role_limit");
    let riops = |line: &str| {
        let mut command = command(line);
        CommandOutput::run(command.env("RIOPS_DATABASE", &url).env("RIOPS_STORE", &database.store))
    };
    riops(&format!("pgbench -n -S -c 4 -t 20 {url}")).expect(0);
    riops(&format!("pgbench -n -S -c 5 -t 20 {url}"))
        .expect(1)
        .stderr_contains("connections that the run needs at a time: 5");
    // The lock on tables that others share is released, and what was written is verified all the same.
    let written = riops(
        "run script -b simple-update -c 4 --transactions 40 --warmup 0 --no-store --output json",
    )
    .expect(0)
    .stderr_contains("the dataset is not locked")
    .json();
    let checks = written["checks"].as_array().unwrap().clone();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["held"] == true), "{checks:?}");
    let (user, server) = url.trim_start_matches("postgresql://").split_once('@').unwrap();
    let (host, port) = server.split_once('/').unwrap().0.rsplit_once(':').unwrap();
    let sysbench = format!(
        "sysbench --pgsql-host={host} --pgsql-port={port} --pgsql-user={} --pgsql-password=x --pgsql-db=role_limit --tables=1 --table-size=1000 --threads=4 --events=20 oltp_read_write run",
        user.split(':').next().unwrap()
    );
    let ran = riops(&sysbench).expect(0).stdout_contains("total number of events:              20");
    assert_eq!(ran.stdout.matches("Running the test").count(), 1, "{}", ran.stdout);
    // The lock on a dataset of riops needs its connection.
    riops("prepare rows --rows 1000 --connections 1").expect(0);
    riops("run rows -c 4 --batch 10 --transactions 20 --warmup 0 --no-store")
        .expect(1)
        .stderr_contains("connections that the run needs at a time: 5");
    riops("run rows -c 3 --batch 10 --transactions 20 --warmup 0 --no-store").expect(0);
    riops("cleanup rows").expect(0);
    riops("cleanup script").expect(0);
    riops("cleanup oltp").expect(0);
    admin.execute("drop owned by role_limit; drop role role_limit").unwrap();
}

#[test]
fn a_pooler_with_as_many_clients_as_sessions_is_enough() {
    let database = database("pooler_limit");
    let (folder, certificates) = folder_with_certificates("pooler-limit", &database);
    database.riops("pgbench -i -q").expect(0);
    let script = folder.join("one.sql");
    std::fs::write(&script, "select 1").unwrap();
    let script = script.display();
    for (limits, mode) in [
        ("max_client_conn = 4", "session"),
        ("max_client_conn = 4", "transaction"),
        ("default_pool_size = 4\nquery_wait_timeout = 1", "session"),
    ] {
        let good = ("good", &certificates);
        let Some(pooler) = pgbouncer_with(limits, &folder, &database, mode, good) else {
            return;
        };
        let url =
            format!("postgresql://u_trust@127.0.0.1:{}/pooler_limit?sslmode=disable", pooler.port);
        let riops = |line: &str| CommandOutput::run(command(line).env("RIOPS_DATABASE", &url));
        riops(&format!("pgbench -n -S -c 4 -t 20 {url}")).expect(0);
        let work = "--transactions 40 --warmup 0 --no-store --protocol extended";
        riops(&format!("run ping -c 4 {work}")).expect(0);
        riops(&format!("run script -f {script} -c 4 {work}")).expect(0);
        riops(&format!("pgbench -n -S -c 5 -t 20 {url}"))
            .expect(1)
            .stderr_contains("connections that the run needs at a time: 5");
    }
}

#[test]
fn a_proxy_that_closes_further_connections_limits_them() {
    let Some(program) = program("haproxy") else {
        return;
    };
    let _database = database("proxy_limit");
    let folder = folder("proxy-limit");
    let url = tcp_url("proxy_limit");
    let (user, server) = url.split_once('@').unwrap();
    let (server, _) = server.split_once('/').unwrap();
    let port = free_port();
    let settings = format!(
        "defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend postgresql
  bind 127.0.0.1:{port}
  tcp-request connection reject if {{ fe_conn gt 4 }}
  default_backend one
backend one
  server one {server}
"
    );
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, settings).unwrap();
    let _proxy = Listener::start(Command::new(program).arg("-f").arg(&file), port);
    let url = format!("{user}@127.0.0.1:{port}/proxy_limit");
    let run = |sessions: u32, code: i32| {
        let line =
            format!("run ping -c {sessions} --transactions 40 --warmup 0 --no-store -d {url}");
        CommandOutput::run(&mut command(&line)).expect(code)
    };
    run(4, 0).stderr_contains("the counters of the database are not read");
    run(5, 1).stderr_contains("connections that the run needs at a time: 5");
}
