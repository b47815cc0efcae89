//! The wait for a dataset that another session uses.

use riops::server::Connection;

use crate::fixture::{CommandOutput, Database, database, open, start_until};

/// The lock of riops on the dataset of the workload rows.
const LOCK: &str = "select pg_advisory_lock_shared(1919512432, hashtext('rows'))";

/// A session with this application name that holds the lock, and its process.
fn holder(database: &Database) -> (Connection, String) {
    let mut conninfo = database.conninfo.clone();
    conninfo.application_name = Some("another-benchmark".to_owned());
    let mut connection = open(&conninfo);
    connection.execute(LOCK).unwrap();
    let process = connection.query_value("select pg_backend_pid()").unwrap().unwrap();
    (connection, format!("process {process}, another-benchmark, user postgres, connected since 20"))
}

#[test]
fn a_notice_names_the_session_for_which_the_preparation_waits() {
    let database = database("lock_notice");
    database.riops("prepare rows --rows 100").expect(0);
    let (connection, text) = holder(&database);
    let text = format!("waiting for the lock on the dataset for the workload rows: {text}");
    let child = start_until(&mut database.command("prepare rows --rows 200 --recreate"), &text);
    drop(connection);
    CommandOutput::from(child.wait_with_output().unwrap()).expect(0);
}

#[test]
fn an_error_names_the_session_that_holds_the_lock() {
    let database = database("lock_error");
    database.riops("prepare rows --rows 100").expect(0);
    let (_connection, text) = holder(&database);
    for line in ["cleanup rows", "verify rows"] {
        let ran = database.riops(line).expect(1).stderr_contains(&text);
        assert!(ran.stderr.contains("wait until it has finished: process"), "{}", ran.stderr);
    }
}
