//! Servers of the PostgreSQL protocol that are not PostgreSQL: without its catalogs, settings and functions.

use riops_testkit::{FakeServer, PORT, Reply, Request};

use crate::fixture::{CommandOutput, command, folder};

/// What such a server cannot execute, and the beginnings of statements that it does not know.
const UNKNOWN: [&str; 5] =
    ["pg_", "current_setting", "clock_timestamp", "format json", "to_regclass"];
const UNKNOWN_STARTS: [&str; 4] = ["set ", "reset ", "show ", "prepare "];

/// The reply of a server with other SQLSTATEs than PostgreSQL.
fn reply(sql: &str) -> Reply {
    let sql = sql.to_ascii_lowercase();
    if UNKNOWN.iter().any(|name| sql.contains(name))
        || UNKNOWN_STARTS.iter().any(|start| sql.starts_with(start))
    {
        return Reply::Error { sqlstate: "90022", message: "Function not found" };
    }
    let is_of_script = sql.contains("as one");
    if sql.starts_with("select") && !is_of_script {
        Reply::Row(vec![Some(b"1".to_vec())])
    } else {
        Reply::Done
    }
}

#[test]
fn ping_scripts_and_the_drop_in_need_only_the_protocol() {
    let server = FakeServer::without_settings(|_, request| match request {
        Request::Query(sql) | Request::Parse(sql) => reply(sql),
        // That of `ping`; those of scripts are named after their commands.
        Request::Execute { statement: "select1", .. } => Reply::Row(vec![Some(b"1".to_vec())]),
        Request::Execute { .. } => Reply::Done,
    })
    .unwrap();
    let script = folder("other-servers").join("one.sql");
    std::fs::write(&script, "select 1 as one;").unwrap();
    let file = script.display();
    let url = format!("host={} port={PORT} user=me dbname=test", server.folder().display());
    let run = |line: &str| {
        let mut command = command(line);
        CommandOutput::of(command.args(["-d", &url])).expect(0)
    };
    let plan = "-c 2 --transactions 20 --warmup 0 --no-store";
    let lacks = "the server lacks pg_backend_pid() (a connection pooler is not recognized)";
    run(&format!("run ping {plan}")).stderr_contains(lacks);
    for protocol in ["simple", "extended", "prepared"] {
        run(&format!("run script -f {file} --protocol {protocol} {plan}")).stderr_contains(lacks);
    }
    run(&format!("pgbench -n -f {file} -t 10 -c 2")).stdout_contains("actually processed: 20/20");
    run("doctor").stdout_contains("pg_stat_activity: missing: no wait events");
}
