//! The workloads on servers that behave like releases of YugabyteDB: gateways in front of PostgreSQL servers
//! ([`YugabyteDbGateway`]). They need no YugabyteDB, and do not prove that YugabyteDB behaves in this way.

use std::path::PathBuf;

use riops::dataset::cleanup;
use riops::host::Interrupt;
use riops::plan::{DatasetPlan, LoadDataset, OltpDataset, Parameters, RowsDataset};
use riops::run::{NoHistory, Prepare, prepare, verify};
use riops::server::embedded::State;
use riops::server::{ConnInfo, Connection, Server};
use riops_testkit::{
    Behavior, ErrorFields, Failure, LOST_REQUEST, MISMATCH_IN_CONTEXT, MISMATCH_IN_DETAIL, Release,
    Which, YugabyteDbGateway, functions_sql,
};
use serde_json::Value;

use crate::between::{folder_with_certificates, pgbouncer};
use crate::cluster::Cluster;
use crate::crash::kill;
use crate::fixture::{CommandOutput, Database, command, database, open, start_until};

/// A database behind a gateway.
pub(crate) struct Imitation {
    database: Database,
    gateway: YugabyteDbGateway,
}

fn socket(database: &Database) -> PathBuf {
    database.state.socket_dir.join(format!(".s.PGSQL.{}", database.state.port))
}

fn gateway(
    database: &Database,
    release: Release,
    failure: Option<(Which, Failure)>,
) -> YugabyteDbGateway {
    let behavior = Behavior { release, reports_late: false, failure };
    YugabyteDbGateway::start("127.0.0.1", &socket(database), behavior).unwrap()
}

impl Imitation {
    pub(crate) fn new(name: &str, release: Release) -> Self {
        Self::with_behavior(name, Behavior { release, reports_late: false, failure: None })
    }

    fn with_behavior(name: &str, behavior: Behavior) -> Self {
        let database = database(name);
        let gateway = YugabyteDbGateway::start("127.0.0.1", &socket(&database), behavior).unwrap();
        let nodes = [("127.0.0.1".to_owned(), gateway.port())];
        database.connect().execute(&functions_sql(&nodes)).unwrap();
        Self { database, gateway }
    }

    fn url(&self) -> String {
        url(&self.database, &self.gateway)
    }

    pub(crate) fn riops(&self, line: &str) -> CommandOutput {
        let mut command = command(line);
        command.env("RIOPS_DATABASE", self.url()).env("RIOPS_STORE", &self.database.store);
        CommandOutput::run(&mut command)
    }

    /// Runs a workload, which must be valid.
    fn run(&self, line: &str) -> Value {
        let ran = self.riops(&format!("{line} --warmup 0 --interval 100ms --output json"));
        let record = ran.expect(0).json();
        assert_eq!(record["verdict"]["valid"], true, "{line}: {}", record["verdict"]);
        assert_eq!(record["target"]["flavour"], "yugabytedb");
        record
    }

    /// Drops the datasets. Nothing may remain.
    pub(crate) fn clean_up(&self, workloads: &[&str]) {
        for workload in workloads {
            self.riops(&format!("cleanup {workload}")).expect(0);
        }
        assert_eq!(self.database.value("select to_regnamespace('riops')"), None);
        // riops executes one change of the catalog at a time, and no CREATE EXTENSION, which would be rolled back.
        assert_eq!(self.gateway.conflicts(), 0);
        let is_extension = |(_, sql): &(usize, String)| sql.contains("create extension");
        assert!(!self.gateway.statements().iter().any(is_extension));
    }

    fn connect(&self) -> Connection {
        let info = ConnInfo::parse(&self.url(), |_| None).unwrap();
        open(&info)
    }
}

fn url(database: &Database, gateway: &YugabyteDbGateway) -> String {
    let name = &database.conninfo.database;
    let user = &database.conninfo.user;
    format!("host=127.0.0.1 port={} user={user} dbname={name} sslmode=disable", gateway.port())
}

/// The tests of `oltp`.
const TESTS: [&str; 17] = [
    "read-write",
    "read-only",
    "write-only",
    "point-select",
    "update-index",
    "update-non-index",
    "insert",
    "delete",
    "multi-insert",
    "multi-value-insert",
    "random-points",
    "random-ranges",
    "sequential-scan",
    "primarykey-scan",
    "index-scan",
    "sum-scan",
    "join",
];

const COUNTED: &str = "-c 3 --transactions 60";

/// Prepares, runs, verifies and drops every workload but `oltp`. Each run verifies its data.
fn rows_loads_and_points(name: &str, release: Release) {
    let imitation = Imitation::new(name, release);
    imitation.riops("prepare rows --rows 2000 --tables 2 --tablets 3 --index-tablets 2").expect(0);
    imitation.run(&format!("run rows --batch 10 --update-percent 20 {COUNTED}"));
    imitation.run(&format!("run rows --batch 10 --update-percent 20 --loop server {COUNTED}"));
    imitation.run(&format!("run rows --batch 10 --follower-reads 30s {COUNTED}"));
    imitation.run(&format!("run rows --batch 10 --warm {COUNTED}"));
    imitation.riops("warm rows").expect(0);
    imitation.riops("verify rows").expect(0);
    imitation.riops("cleanup rows").expect(0);
    imitation.riops("prepare rows --rows 1000 --primary-key --order hash").expect(0);
    imitation.run(&format!("run rows --batch 10 {COUNTED}"));

    let methods = "insert,copy,copy-binary,unnest,procedure";
    let load = "run load --rows 2000 -c 3 --drop --output json";
    imitation.riops(&format!("{load} --method {methods}")).expect(0);
    imitation.run(&format!("run point --op mixed:50/50 {COUNTED}"));
    imitation.riops("verify load").expect(0);
    imitation.riops("prepare load --rows 1000 --recreate").expect(0);
    imitation.run("run ping -c 2 --transactions 20");
    imitation.riops("doctor").expect(0);
    imitation.clean_up(&["rows", "load"]);
}

/// Prepares, runs, verifies and drops the tests of sysbench.
fn oltp(name: &str, release: Release) {
    let imitation = Imitation::new(name, release);
    let tables = "--tables 3 --table-size 500";
    imitation.riops(&format!("prepare oltp {tables} --connections 3")).expect(0);
    for test in TESTS {
        let batch = if test == "multi-value-insert" { "--batch-insert-count 5" } else { "" };
        let line = format!("run oltp {test} {batch} {COUNTED} --max-retries 100");
        // After deletes, reads find rows missing.
        if test == "delete" {
            imitation.riops(&format!("prepare oltp {tables} --recreate")).expect(0);
        }
        imitation.run(&line);
        if test == "delete" {
            imitation.riops("verify oltp").expect(0);
            let bare = format!("prepare oltp {tables} --recreate --create-secondary=off");
            imitation.riops(&bare).expect(0);
            imitation.run(&line);
            imitation.riops(&format!("prepare oltp {tables} --recreate")).expect(0);
        }
    }
    imitation.riops("verify oltp").expect(0);
    imitation.riops(&format!("prepare oltp {tables} --recreate --range-key-partitioning --num-table-splits 4 --secondary")).expect(0);
    imitation.run(&format!("run oltp point-select {COUNTED}"));
    imitation.riops("prepare oltp --bulk-insert --tables 3 --recreate").expect(0);
    imitation.run(&format!("run oltp bulk-insert --batch-insert-count 20 {COUNTED}"));
    imitation.riops("verify oltp").expect(0);
    imitation.clean_up(&["oltp"]);
}

/// The tests of a release.
macro_rules! release_tests {
    ($($name:ident: $release:expr;)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn rows_loads_and_points_pass() {
                super::rows_loads_and_points(concat!("yb_rows_", stringify!($name)), $release);
            }

            #[test]
            fn oltp_passes() {
                super::oltp(concat!("yb_oltp_", stringify!($name)), $release);
            }
        })*
    };
}
release_tests! {
    release_2_20: Release::V2_20;
    release_2024_2: Release::V2024_2;
    release_2025_1: Release::V2025_1;
}

#[test]
fn the_gateway_refuses_concurrent_changes_of_the_catalog_and_outdated_transactions() {
    let imitation = Imitation::new("yb_rules", Release::V2024_2);
    let (mut one, mut other) = (imitation.connect(), imitation.connect());
    one.execute(
        "create table t (id int not null, k int, primary key (id hash)) split into 3 tablets",
    )
    .unwrap();
    one.execute("begin").unwrap();
    one.execute("select 1").unwrap();
    other.execute("create index nonconcurrently t_k on t (k hash)").unwrap();
    let error = one.execute("select 2").unwrap_err().to_string();
    assert!(error.contains("MISMATCHED_SCHEMA"), "{error}");
    one.execute("rollback").unwrap();
    let error = one.execute("select pg_try_advisory_lock(1)").unwrap_err().to_string();
    assert!(error.contains("0A000"), "{error}");
    assert!(one.execute("set yb_follower_read_staleness_ms = 500").is_err());
    let definition = one.query_value("select pg_get_indexdef('t_pkey'::regclass)").unwrap();
    assert!(definition.unwrap().ends_with("USING lsm (id HASH)"));
    let version = one.query_value("select version()").unwrap().unwrap();
    assert!(version.contains("11.2-YB-2024.2"), "{version}");
}

#[test]
fn indexes_of_sysbench_are_created_on_empty_tables_in_one_session() {
    let imitation = Imitation::new("yb_indexes", Release::V2_20);
    imitation.riops("prepare oltp --tables 3 --table-size 300 --connections 3").expect(0);
    let statements = imitation.gateway.statements();
    let position = |text: &str| statements.iter().position(|(_, sql)| sql.contains(text)).unwrap();
    let indexes: Vec<_> =
        statements.iter().filter(|(_, sql)| sql.starts_with("create index")).collect();
    assert_eq!(indexes.len(), 3);
    assert!(indexes.iter().all(|(session, _)| *session == indexes[0].0));
    assert!(position("create index nonconcurrently k_3") < position("copy riops.sbtest1"));
}

#[test]
fn a_loop_in_the_server_leaves_its_view_to_the_end_of_the_session() {
    let imitation = Imitation::new("yb_view", Release::V2025_1);
    imitation.riops("prepare rows --rows 500").expect(0);
    imitation.run("run rows --loop server --batch 5 -c 4 --transactions 40");
    let routine =
        imitation.database.value("select prosrc from pg_proc where proname = 'ybio_loop'").unwrap();
    // The gateway replaces version() by the version of the release.
    assert!(routine.contains("-YB-2025.1.0.0-b0'::text not like '%-YB-%'"), "{routine}");
}

#[test]
fn a_loop_in_the_server_is_called_again_after_a_failed_request() {
    let imitation = Imitation::new("yb_loop_fails", Release::V2024_2);
    imitation.riops("prepare rows --rows 500").expect(0);
    let failure = Some((Which::First("call riops.ybio_loop"), Failure::Error(LOST_REQUEST)));
    let failing = gateway(&imitation.database, Release::V2024_2, failure);
    let mut command = command(
        "run rows --loop server --batch 5 --update-percent 50 -c 2 --transactions 40 --warmup 0 --output json",
    );
    command.env("RIOPS_DATABASE", url(&imitation.database, &failing));
    let ran = CommandOutput::run(command.env("RIOPS_STORE", &imitation.database.store)).expect(0);
    let record = ran.json();
    let errors = &record["stages"][0]["errors"][0];
    assert_eq!((&errors["sqlstate"], &errors["retried"]), (&"XX000".into(), &1.into()), "{record}");
    imitation.riops("verify rows").expect(0);
}

#[test]
fn tables_of_sysbench_for_yugabytedb_are_recognized_with_their_sharding() {
    let imitation = Imitation::new("yb_adopted", Release::V2024_2);
    let mut connection = imitation.connect();
    for (order, ranges) in [("asc", true), ("hash", false)] {
        for sql in [
            format!("create table public.sbtest1 (id serial not null, k integer not null default 0,
              c char(120) not null default '', pad char(60) not null default '', primary key (id {order}))"),
            "create index nonconcurrently k_1 on public.sbtest1 (k hash)".to_owned(),
            "insert into public.sbtest1 (id, k, c, pad) select id, id, repeat('c', 119), repeat('p', 59) from generate_series(1, 200) as id".to_owned(),
        ] {
            connection.execute(&sql).unwrap();
        }
        let run = imitation.run("run oltp point-select --schema public -c 2 --transactions 20");
        assert_eq!(run["target"]["dataset"]["oltp"]["range_key_partitioning"], ranges, "{order}");
        connection.execute("drop table public.sbtest1").unwrap();
    }
}

#[test]
fn a_run_names_what_the_release_lacks() {
    // Its sessions report their statistics late: riops waits for them.
    let behavior = Behavior { release: Release::V2_20, reports_late: true, failure: None };
    let imitation = Imitation::with_behavior("yb_lacks", behavior);
    imitation.riops("prepare rows --rows 500").expect(0);
    let ran = imitation.riops("run rows --batch 5 -c 2 --transactions 20 --warmup 0").expect(0);
    let ran = ran.stderr_contains("no setting plan_cache_mode");
    assert!(ran.stdout.contains("not counted: ") && ran.stdout.contains("WAL"), "{}", ran.stdout);
    let record = imitation.riops("runs show last --output json").expect(0).json();
    for absent in ["wal_bytes", "wal_records", "blocks_written", "received_bytes"] {
        assert_eq!(record["stages"][0]["cost"][absent], Value::Null, "{absent}");
    }
    let early = imitation.riops("run rows --follower-reads 500ms").expect(2);
    early.stderr_contains("--follower-reads must be at least 1s");
    imitation.run("run rows --follower-reads 1s --batch 5 -c 2 --transactions 20");
    let newer = Imitation::new("yb_lacks_less", Release::V2025_1);
    newer.riops("prepare rows --rows 500").expect(0);
    let ran = newer.riops("run rows --batch 5 -c 2 --transactions 20 --warmup 0").expect(0);
    assert!(!ran.stderr.contains("plan_cache_mode"), "{}", ran.stderr);
}

#[test]
fn a_run_behind_a_connection_manager_uses_the_dataset_without_its_lock() {
    let imitation = Imitation::new("yb_pooled", Release::V2024_2);
    imitation.riops("prepare rows --rows 500").expect(0);
    // riops sends no settings to a pool.
    for setting in ["enable_bitmapscan", "enable_seqscan"] {
        let sql = format!("alter database yb_pooled set {setting} = off");
        imitation.database.connect().execute(&sql).unwrap();
    }
    let (folder, certificates) = folder_with_certificates("yb-pooled", &imitation.database);
    let Database { conninfo, state, url, store } = &imitation.database;
    // The pooler connects to the gateway instead of the server.
    let state =
        State { socket_dir: "127.0.0.1".into(), port: imitation.gateway.port(), ..state.clone() };
    let behind =
        Database { conninfo: conninfo.clone(), state, url: url.clone(), store: store.clone() };
    let Some(pooler) = pgbouncer(&folder, &behind, "transaction", "good", &certificates) else {
        return;
    };
    let mut command =
        command("run rows --batch 5 -c 2 --transactions 20 --warmup 0 --protocol simple");
    command
        .env("RIOPS_DATABASE", format!("postgresql://u_trust@127.0.0.1:{}/yb_pooled", pooler.port));
    let ran = CommandOutput::run(command.env("RIOPS_STORE", store)).expect(0);
    ran.stderr_contains("a connection pooler in transaction mode");
    let refused = |(_, sql): &(usize, String)| sql.contains("pg_try_advisory_xact_lock_shared");
    assert!(imitation.gateway.statements().iter().any(refused));
}

/// A dataset with all its parameters, small.
fn small_dataset(workload: &str) -> DatasetPlan {
    match workload {
        "rows" => RowsDataset { rows: 50, tables: 2, ..RowsDataset::default() }.into(),
        "load" => LoadDataset { rows: 50, ..LoadDataset::default() }.into(),
        _ => OltpDataset { table_size: 50, tables: 2, ..OltpDataset::default() }.into(),
    }
}

/// A database, a workload, and the commands on it through gateways that fail at one statement.
struct Interrupted {
    imitation: Imitation,
    workload: &'static str,
}

type Done = Result<(), String>;

impl Interrupted {
    fn new(test: &str, workload: &'static str) -> Self {
        Self {
            imitation: Imitation::new(&format!("yb_{test}_{workload}"), Release::V2_20),
            workload,
        }
    }

    fn failing_gateway(&self, failure: Option<(Which, Failure)>) -> YugabyteDbGateway {
        gateway(&self.imitation.database, Release::V2_20, failure)
    }

    fn server(&self, gateway: &YugabyteDbGateway) -> Server {
        let url = url(&self.imitation.database, gateway);
        Server::external(ConnInfo::parse(&url, |_| None).unwrap())
    }

    fn prepare(&self, gateway: &YugabyteDbGateway, recreate: bool) -> Done {
        let request = Prepare {
            dataset: small_dataset(self.workload),
            compared: Parameters::new(),
            recreate,
            connections: Some(2),
            skip_space_check: false,
        };
        let prepared = prepare(
            &request,
            &self.server(gateway),
            &Interrupt::new(),
            &riops::record::Events::ignored(),
        );
        prepared.map(drop).map_err(|error| error.to_string())
    }

    fn cleanup(&self, gateway: &YugabyteDbGateway) -> Done {
        let dropped =
            cleanup(self.workload, None, &self.server(gateway), &Interrupt::new(), &mut |_| {});
        dropped.map(drop).map_err(|error| error.to_string())
    }

    /// Requires a complete dataset.
    fn require_complete(&self, case: &str) {
        let server = self.server(&self.imitation.gateway);
        let checks = verify(self.workload, &server, &Interrupt::new(), &NoHistory, &mut |_| {});
        let checks = checks.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(checks.iter().all(|check| check.held), "{case}: {checks:?}");
    }

    /// Drops everything, and requires that nothing but an empty schema is left.
    fn require_clean(&self, case: &str) {
        self.cleanup(&self.imitation.gateway).unwrap_or_else(|error| panic!("{case}: {error}"));
        let left = "select string_agg(relname, ' ') from pg_class
                     where relnamespace = to_regnamespace('riops')";
        assert_eq!(self.imitation.database.value(left), None, "{case}");
        self.imitation.database.connect().execute("drop schema if exists riops").unwrap();
    }

    /// Runs `command` with each of its statements failing: with both errors and a broken connection, or if it is
    /// not `thorough` in one of these ways. If it fails, it must succeed when repeated, and `after` too.
    fn fail_each_statement(
        &self,
        thorough: bool,
        before: &dyn Fn(&Self),
        command: &dyn Fn(&Self, &YugabyteDbGateway) -> Done,
        after: &dyn Fn(&Self, &str),
    ) {
        before(self);
        let sound = self.failing_gateway(None);
        command(self, &sound).unwrap();
        let count = sound.statements().len();
        self.require_clean("without failures");
        let conflict = Failure::Error(ErrorFields::new("40001", "Restart read required"));
        let mismatches = [MISMATCH_IN_DETAIL, MISMATCH_IN_CONTEXT].map(Failure::Error);
        let breaks = [Failure::CloseBefore, Failure::CloseAfter, Failure::Kill];
        let (mut failed, mut tried) = (0, 0);
        for position in 1..=count {
            let all = [conflict, mismatches[position % 2], breaks[position % 3]];
            let chosen = if thorough { &all[..] } else { &all[position % 2 + 1..][..1] };
            for &failure in chosen {
                tried += 1;
                before(self);
                let failing = self.failing_gateway(Some((Which::Number(position), failure)));
                let result = command(self, &failing);
                let sent = failing.statements().get(position - 1).map(|(_, sql)| sql.clone());
                let case = format!("statement {position} of {count}, {sent:?}, {failure:?}");
                let changes = ["create ", "alter ", "comment ", "drop "];
                let is_change =
                    sent.is_some_and(|sql| changes.iter().any(|change| sql.starts_with(change)));
                if is_change && matches!(failure, Failure::Error(_)) {
                    assert!(result.is_ok(), "{case}: a change of the catalog was not repeated");
                }
                if result.is_err() {
                    failed += 1;
                    let repeated = command(self, &self.failing_gateway(None));
                    repeated.unwrap_or_else(|error| panic!("{case}: {error}"));
                }
                after(self, &case);
                self.require_clean(&case);
            }
        }
        // Some statements may fail, such as the checkpoint, and changes of the catalog are repeated.
        assert!(failed > tried / 4, "{failed} of {tried}");
    }
}

/// The preparation must be complete, or the same command must complete it.
fn preparation_survives_each_failed_statement(workload: &'static str) {
    let interrupted = Interrupted::new("prepares", workload);
    interrupted.fail_each_statement(
        true,
        &|_| {},
        &|test, gateway| test.prepare(gateway, false),
        &Interrupted::require_complete,
    );
}

#[test]
fn preparation_of_rows_survives_each_failed_statement() {
    preparation_survives_each_failed_statement("rows");
}

#[test]
fn preparation_of_load_survives_each_failed_statement() {
    preparation_survives_each_failed_statement("load");
}

#[test]
fn preparation_of_oltp_survives_each_failed_statement() {
    preparation_survives_each_failed_statement("oltp");
}

#[test]
fn a_new_preparation_of_oltp_survives_each_failed_statement() {
    let interrupted = Interrupted::new("recreates", "oltp");
    interrupted.fail_each_statement(
        false,
        &|test| test.prepare(&test.failing_gateway(None), false).unwrap(),
        &|test, gateway| test.prepare(gateway, true),
        &Interrupted::require_complete,
    );
}

#[test]
fn cleanup_survives_each_failed_statement() {
    let interrupted = Interrupted::new("cleans", "rows");
    interrupted.fail_each_statement(
        false,
        &|test| test.prepare(&test.failing_gateway(None), false).unwrap(),
        &|test, gateway| test.cleanup(gateway),
        &|_, _| {},
    );
}

#[test]
fn cleanup_after_a_killed_preparation_leaves_nothing() {
    let interrupted = Interrupted::new("killed", "oltp");
    let sound = interrupted.failing_gateway(None);
    interrupted.prepare(&sound, false).unwrap();
    let count = sound.statements().len();
    interrupted.require_clean("without failures");
    for position in 1..=count {
        let killing = interrupted.failing_gateway(Some((Which::Number(position), Failure::Kill)));
        assert!(interrupted.prepare(&killing, false).is_err(), "statement {position} of {count}");
        interrupted.require_clean(&format!("killed before statement {position} of {count}"));
    }
}

#[test]
fn adopted_tables_whose_registration_was_interrupted_are_not_dropped() {
    let imitation = Imitation::new("yb_adopts", Release::V2_20);
    let mut connection = imitation.connect();
    for sql in [
        "create table public.sbtest1 (id serial not null, k integer not null default 0,
          c char(120) not null default '', pad char(60) not null default '', primary key (id hash))",
        "insert into public.sbtest1 (id, k, c, pad) select id, id, repeat('c', 119), repeat('p', 59) from generate_series(1, 200) as id",
    ] {
        connection.execute(sql).unwrap();
    }
    let run = "run oltp point-select --schema public -c 1 --transactions 5 --warmup 0";
    imitation.riops(run).expect(0);
    connection.execute("update riops.dataset set state = 'loading'").unwrap();
    imitation.riops("prepare oltp --table-size 100").expect(0);
    imitation.riops("cleanup oltp").expect(0);
    assert_eq!(
        imitation.database.value("select count(*) from public.sbtest1").as_deref(),
        Some("200")
    );
}

#[test]
fn commits_in_flight_on_a_lost_node_have_an_unknown_outcome() {
    let cluster = Cluster::start("yb-lost-node");
    let mut gateways: Vec<_> = (0..3)
        .map(|node| {
            let behavior =
                Behavior { release: Release::V2024_2, reports_late: false, failure: None };
            let host = format!("127.0.0.{}", node + 1);
            YugabyteDbGateway::start(&host, &cluster.socket(node), behavior).unwrap()
        })
        .collect();
    let nodes: Vec<_> = (1..)
        .zip(&gateways)
        .map(|(address, gateway)| (format!("127.0.0.{address}"), gateway.port()))
        .collect();
    for node in 0..3 {
        cluster.execute(
            node,
            &format!("drop function pg_catalog.yb_servers(); {}", functions_sql(&nodes)),
        );
    }
    let url = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres sslmode=disable",
        gateways[0].port()
    );
    let riops = |line: &str| {
        let mut command = cluster.command(line);
        command.env("RIOPS_DATABASE", &url);
        command
    };
    CommandOutput::run(&mut riops("prepare oltp --table-size 1000")).expect(0);
    cluster.share("sbtest1");
    let line =
        "run oltp multi-insert -c 9 -j 2 --warmup 0 --interval 200ms -t 1h --reconnect-timeout 1m";
    let child = start_until(&mut riops(line), " tx/s");
    gateways[1].fail_storage();
    while gateways[1].failed_commits() < 10 {
        std::thread::yield_now();
    }
    drop(gateways.remove(1));
    while cluster.sessions(0) + cluster.sessions(2) < 9 {
        std::thread::yield_now();
    }
    kill(child.id(), "-INT");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stdout));
    let record = CommandOutput::run(&mut riops("runs show last --output json")).expect(0).json();
    let stage = &record["stages"][0];
    // Each is unknown, none failed. Only transactions that had not sent their commit failed with the connection.
    let errors = stage["errors"].as_array().unwrap();
    let requests = errors.iter().find(|error| error["sqlstate"] == "XX000").unwrap();
    assert!(requests["count"].as_u64() >= Some(10), "{errors:?}");
    assert!(stage["unknown_commits"].as_u64() >= requests["count"].as_u64(), "{stage}");
    let verified = CommandOutput::run(&mut riops("verify oltp")).expect(0);
    assert!(!verified.stdout.contains("WRONG"), "{}", verified.stdout);
}
