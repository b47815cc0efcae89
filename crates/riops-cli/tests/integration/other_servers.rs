//! Servers of the PostgreSQL protocol that are not PostgreSQL: without its catalogs, settings and functions.

use riops_testkit::{FakeServer, PORT, Release, Reply, Request};

use crate::fixture::{CommandOutput, command, folder};
use crate::releases::Imitation;

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
        // The statement of `ping`. Statements of scripts are named after their commands.
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
        CommandOutput::run(command.args(["-d", &url])).expect(0)
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

#[test]
fn workloads_run_on_a_product_that_riops_does_not_know() {
    let imitation = Imitation::new("unknown_product", Release::Unknown);
    imitation.riops("prepare rows --rows 500").expect(0);
    imitation.riops("prepare oltp --table-size 500").expect(0);
    for line in [
        "run load --rows 500 -c 2",
        "run rows --batch 5 --update-percent 50 -c 2 --transactions 20 --warmup 0",
        "run oltp -c 2 --transactions 20 --warmup 0",
    ] {
        let ran = imitation.riops(&format!("{line} --interval 100ms --output json"));
        let record = ran.expect(0).json();
        assert_eq!(record["verdict"]["valid"], true, "{line}: {}", record["verdict"]);
        assert_eq!(record["target"]["flavour"], "postgresql");
        assert_eq!(record["target"]["server_version"], "16.3-AcmeDB-1.2");
    }
    imitation.clean_up(&["load", "rows", "oltp"]);
}
