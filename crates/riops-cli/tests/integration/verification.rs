//! Verification of the data after connections broke: transactions with an unknown outcome must hide no lost
//! row, and nothing is claimed that was not verified.

use std::sync::Mutex;

use riops::engine::Backend;
use riops::host::Interrupt;
use riops::plan::{Plan, PreparePolicy, RowsRun, Stop};
use riops::record::{Events, RunEvent, Status};
use riops::run::{self, Hooks, NoHistory};
use riops::server::Server;
use riops_testkit::{Fault, Proxy};
use serde_json::Value;

use crate::fixture::{CommandOutput, Database, database};

/// More bytes than riops exchanges on a connection that is not measured.
const MEASURED_BYTES: u64 = 300_000;

/// Breaks every measured connection, alternately in both directions, at different positions of a message.
fn alternating_fault(connection: u64) -> Fault {
    let bytes = MEASURED_BYTES + 17 * connection;
    if connection.is_multiple_of(2) { Fault::CutToClient(bytes) } else { Fault::CutToServer(bytes) }
}

/// Runs the command through a proxy that breaks connections.
fn riops_through(
    database: &Database,
    fault: impl Fn(u64) -> Fault + Send + 'static,
    line: &str,
) -> CommandOutput {
    let socket = database.state.socket_dir.join(format!(".s.PGSQL.{}", database.state.port));
    let proxy = Proxy::start_for(&socket, fault).unwrap();
    let target = format!(
        "host={} port={} user={} dbname={}",
        proxy.folder().display(),
        riops_testkit::PORT,
        database.conninfo.user,
        database.conninfo.database
    );
    let mut command = database.command(line);
    command.env("RIOPS_DATABASE", &target);
    if let Some(password) = password(&database.url) {
        command.env("PGPASSWORD", password);
    }
    CommandOutput::run(&mut command)
}

/// Returns the password in a URL.
fn password(url: &str) -> Option<String> {
    let (_, after) = url.split_once("://")?;
    let (user, _) = after.split_once('@')?;
    user.split_once(':').map(|(_, password)| password.to_owned())
}

fn unknown_outcomes(record: &Value, name: &str) -> u64 {
    record["unknown_outcomes"][name].as_u64().unwrap_or(0)
}

/// Asserts that the run has verified all data, and returns the number of transactions found committed and not
/// committed.
fn assert_resolved(record: &Value) -> (u64, u64) {
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    assert_eq!(unknown_outcomes(record, "unresolved"), 0, "{}", record["unknown_outcomes"]);
    for check in record["checks"].as_array().unwrap() {
        assert_eq!((&check["held"], &check["unresolved"]), (&true.into(), &Value::Null), "{check}");
    }
    (unknown_outcomes(record, "applied"), unknown_outcomes(record, "not_applied"))
}

#[test]
fn transactions_with_an_unknown_outcome_are_resolved_and_hide_no_lost_row() {
    let database = database("verify_unknown");
    database.riops("prepare rows --rows 300000").expect(0);
    let line = "run rows --batch 10 --update-percent 50 -c 1 --transactions 30000 --seed 7 --warmup 0 --interval 100ms --output json";
    let record = riops_through(&database, alternating_fault, line).expect(0).json();
    let (applied, not_applied) = assert_resolved(&record);
    assert!(applied >= 1 && not_applied >= 1, "{}", record["unknown_outcomes"]);
    let shown = database.riops("runs show last").expect(0).stdout;
    assert!(
        shown
            .replace("\n               ", " ")
            .contains("every acknowledged change is in the database; "),
        "{shown}"
    );
    let verified = database.riops("verify rows").expect(0).stdout;
    assert!(!verified.contains("unresolved"), "{verified}");
    // Within the rows of the unknown transactions: without their outcomes, this would not be noticed.
    let lost = "update riops.rows_0001 set scratch = scratch - 1 where mykey = 77";
    database.connect().execute(lost).unwrap();
    let missed = database.riops("verify rows").expect(3).stdout;
    assert!(missed.contains("WRONG  increments of scratch in riops.rows_0001"), "{missed}");
}

#[test]
fn reports_transactions_that_the_rows_do_not_prove_as_unresolved() {
    let database = database("verify_unresolved");
    database.riops("prepare rows --rows 20").expect(0);
    // Every update writes all rows: the last one hides all others.
    let line = "run rows --batch 20 --update-percent 100 -c 1 --transactions 8000 --warmup 0 --interval 100ms";
    let ran = riops_through(&database, alternating_fault, line).expect(0);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("not every change could be verified: increments of scratch"), "{text}");
    assert!(text.contains("unresolved: ±"), "{text}");
    assert!(!text.contains("every acknowledged change is in the database"), "{text}");
    let verified = database.riops("verify rows").expect(0).stdout;
    assert!(verified.contains("with changes whose outcome remains unresolved (±)"), "{verified}");
}

#[test]
fn client_generated_ids_show_the_outcome_of_inserts() {
    let database = database("verify_inserts");
    database.riops("prepare oltp --tables 2 --table-size 100 --auto-inc=off").expect(0);
    let line = "run oltp insert -c 1 --events 20000 --seed 3 --warmup 0 --output json";
    let record = riops_through(&database, alternating_fault, line).expect(0).json();
    let (applied, not_applied) = assert_resolved(&record);
    assert!(applied + not_applied >= 1, "{}", record["unknown_outcomes"]);
    database.riops("verify oltp").expect(0);
    let lost =
        "delete from riops.sbtest2 where id = (select max(id) from riops.sbtest2 where id < 0)";
    database.connect().execute(lost).unwrap();
    let missed = database.riops("verify oltp").expect(3).stdout;
    assert!(missed.contains("WRONG  rows of riops.sbtest2"), "{missed}");
    assert!(missed.contains("ok     rows of riops.sbtest1"), "{missed}");
}

#[test]
fn each_table_is_verified_separately() {
    let database = database("verify_tables");
    database.riops("prepare rows --tables 3 --rows 3000").expect(0);
    let line = "run rows --batch 5 --update-percent 50 -c 3 --transactions 600 --warmup 0 --interval 100ms --output json";
    let first = database.riops(line).expect(0).json();
    assert_eq!(first["verdict"]["valid"], true);
    assert_eq!(first["stages"][0]["operations"][1]["tables"].as_array().unwrap().len(), 3);
    database.riops(&format!("{line} --loop server")).expect(0);
    database.riops("verify rows").expect(0);
    // The sum over all tables is unchanged.
    let moved = "update riops.rows_0001 set scratch = scratch - 1 where mykey = 1;
                 update riops.rows_0003 set scratch = scratch + 1 where mykey = 1";
    database.connect().execute(moved).unwrap();
    let missed = database.riops("verify rows").expect(3).stdout;
    let wrong: Vec<_> = missed.lines().filter(|line| line.starts_with("WRONG")).collect();
    assert_eq!(wrong.len(), 2, "{missed}");
    assert!(wrong[0].contains("increments of scratch in riops.rows_0001"), "{missed}");
    assert!(wrong[1].contains("increments of scratch in riops.rows_0003"), "{missed}");
}

#[test]
fn registries_of_earlier_versions_get_the_new_columns_and_keep_their_changes() {
    let database = database("verify_migrated");
    database.riops("prepare rows --tables 2 --rows 1000").expect(0);
    let older = "alter table riops.run drop column effects, drop column changes;
        insert into riops.run values ('old', (select id from riops.dataset), now(), now(), 5, 0);
        update riops.rows_0002 set scratch = scratch + 1 where mykey <= 5";
    database.connect().execute(older).unwrap();
    let verified = database.riops("verify rows").expect(0).stdout;
    assert!(
        verified.contains("ok     increments of scratch in all tables: expected 5, found 5"),
        "{verified}"
    );
    let line = "run rows --batch 5 --update-percent 50 --transactions 40 --warmup 0 --interval 100ms --output json";
    assert_eq!(database.riops(line).expect(0).json()["verdict"]["valid"], true);
    let changes = "select changes from riops.run where id <> 'old'";
    let changes: Value = serde_json::from_str(&database.value(changes).unwrap()).unwrap();
    assert!(changes["effects"].as_object().is_some_and(|tables| !tables.is_empty()), "{changes}");
    database.riops("verify rows").expect(0);
}

#[test]
fn a_batch_of_a_load_is_resolved_by_its_ids() {
    let database = database("verify_load");
    let line = "run load --rows 20000 --batch-size 100 --field-length 20 --method insert -c 1 --interval 100ms";
    riops_through(&database, |_| Fault::CutToServer(1_000_000), line).expect(1);
    let verified = database.riops("verify load").expect(3).stdout;
    assert!(verified.contains("ok     acknowledged rows of riops."), "{verified}");
    assert!(
        verified.contains(
            "ok     batches with an unknown outcome: expected all of their rows or none, found "
        ),
        "{verified}"
    );
    let batch = "select changes::json -> 'batches_unknown' -> 0 ->> 0 from riops.run";
    let first: i64 = database.value(batch).unwrap().parse().unwrap();
    let table =
        database.value("select parameters::json ->> 'table_name' from riops.dataset").unwrap();
    // The batch is applied, and one acknowledged row is lost: the number of rows is plausible.
    let lost = format!(
        "delete from riops.{table} where id = 5;
         insert into riops.{table} select id, 'x', 'x', 'x', 'x' from generate_series({first}, {first} + 99) as id on conflict do nothing"
    );
    database.connect().execute(&lost).unwrap();
    let missed = database.riops("verify load").expect(3).stdout;
    assert!(missed.contains("WRONG  acknowledged rows of riops."), "{missed}");
    assert!(missed.contains("1 with all, 0 with none, 0 with some"), "{missed}");
}

#[test]
fn a_load_without_verification_does_not_claim_one() {
    let database = database("verify_no_load");
    let line = "run load --rows 1000 --batch-size 100 --no-verify";
    let ran = database.riops(line).expect(0);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "yes: every statement was acknowledged; the data were not verified (--no-verify)"
        ),
        "{text}"
    );
    assert!(!ran.stderr.contains("verifying"), "{}", ran.stderr);
}

#[test]
fn an_interrupted_verification_is_no_verification() {
    let database = database("verify_interrupted");
    let interrupt = Interrupt::new();
    let plan = Plan {
        warmup_s: 0.0,
        stop: Stop::Transactions(40),
        prepare: PreparePolicy::IfMissing,
        dataset: [("rows".to_owned(), 2000.into())].into_iter().collect(),
        work: RowsRun { batch: 5, update_percent: 50, ..RowsRun::default() }.into(),
        ..Plan::default()
    };
    let server = Server::external(database.conninfo.clone());
    let (requested, blocker) = (interrupt.clone(), Mutex::new(database.connect()));
    // Requests the interrupt when the verification begins, which a lock then delays.
    let events = Events::new(move |event| {
        if matches!(event, RunEvent::Notice { text, .. } if text == "verifying the data") {
            let mut blocker = blocker.lock().unwrap();
            blocker.execute("begin; lock table riops.rows_0001").unwrap();
            requested.request();
        }
    });
    let hooks = Hooks { events, ..Hooks::default() };
    let record = run::run(&plan, &server, &interrupt, hooks).unwrap();
    assert_eq!(record.status, Status::Interrupted);
    assert!(!record.verdict.valid);
    let reason = "verification of the data: expected completed, found interrupted";
    assert_eq!(record.verdict.reasons, [reason]);
    // The changes are in the ledger: they can be verified later.
    let checks = run::verify("rows", &server, &Interrupt::new(), &NoHistory, &mut |_| {}).unwrap();
    assert!(checks.iter().all(|check| check.held && !check.unknown));
}

#[test]
fn an_oltp_run_beside_a_run_without_a_report_is_unknown_and_not_wrong() {
    let database = database("verify_beside");
    database.riops("prepare oltp --tables 1 --table-size 300").expect(0);
    // Another riops is in progress: it holds the lock and has not reported its changes.
    let mut other = database.connect();
    other.execute("select pg_advisory_lock_shared(x'72696f70'::int, hashtext('oltp'))").unwrap();
    let beside = "insert into riops.run (id, dataset) select 'other', id from riops.dataset;
                  insert into riops.sbtest1
                  select id, 1, repeat('1', 119), repeat('1', 59) from generate_series(-3, -1) as id";
    other.execute(beside).unwrap();
    let line = "run oltp update-index -c 2 --events 50 --warmup 0";
    let ran = database.riops(line).expect(0);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the data could not be verified: rows of riops.sbtest1: expected unknown (a run did not report its changes)"), "{text}");
    drop(other);
    let verified = database.riops("verify oltp").expect(3).stdout;
    assert!(!verified.contains("WRONG") && verified.contains("3 unknown"), "{verified}");
}

#[test]
fn a_reused_process_id_is_not_terminated() {
    let database = database("verify_backend");
    let (mut session, mut control) = (database.connect(), database.connect());
    let backend = Backend::read(&mut session).unwrap().unwrap();
    // The session that had this process id before.
    let earlier = Backend { started: "20200101000000000000".to_owned(), ..backend.clone() };
    assert!(!earlier.terminate(&mut control).unwrap());
    assert_eq!(session.query_value("select 1").unwrap().as_deref(), Some("1"));
    assert!(backend.terminate(&mut control).unwrap());
    assert!(session.query_value("select 1").is_err());
}

#[test]
fn the_name_of_the_sessions_contains_the_id_of_the_run() {
    let database = database("verify_name");
    database.riops("prepare rows --rows 1000").expect(0);
    let log = "create table public.seen as select application_name as name from pg_stat_activity limit 0;
        create function public.note() returns trigger language plpgsql as $$ begin
          insert into public.seen values (current_setting('application_name')); return null; end $$;
        create trigger note after update on riops.rows_0001 for each statement execute function public.note()";
    database.connect().execute(log).unwrap();
    let name = "ä".repeat(70);
    let mut command = database.command(
        "run rows --batch 1 --update-percent 100 --transactions 5 --warmup 0 --interval 100ms --output json",
    );
    command.env("PGAPPNAME", &name);
    let record = CommandOutput::run(&mut command).expect(0).json();
    let expected = format!("{}/{}", "?".repeat(26), record["id"].as_str().unwrap());
    let seen = database.value("select string_agg(distinct name, ',') from public.seen");
    assert_eq!(seen, Some(expected));
}
