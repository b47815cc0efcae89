//! The dashboard of `riops serve` over a store with the frozen records, runs of one label, and hostile texts.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use riops::record::Record;
use serde_json::json;

use crate::fixture::{CommandOutput, command, database, folder, start_until};
use crate::report::{hostile_record, read_frozen, save};
use crate::{check, is_installed};

/// A dashboard, stopped when it is dropped.
struct Dashboard {
    child: Child,
    address: String,
}

impl Dashboard {
    /// Starts a dashboard on a free port.
    fn start(store: &PathBuf) -> Self {
        let mut serve = command("serve --quiet --listen 127.0.0.1:0");
        serve.env("RIOPS_STORE", store).stdout(Stdio::piped());
        let mut child = serve.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        Self { child, address: address.trim().to_owned() }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Number of runs with the label `nightly`.
const NIGHTLY: u32 = 16;

/// Stores the frozen records, and runs of one label whose rate drops by a tenth in the middle.
pub(crate) fn fill_store(name: &str) -> (PathBuf, Vec<Record>) {
    let store = folder(&format!("browser-{name}")).join("runs.sqlite");
    let mut records: Vec<Record> =
        ["cbc", "load", "oltp", "ping", "point", "rows"].map(read_frozen).into();
    for night in 0..NIGHTLY {
        let mut record = read_frozen("rows");
        record.id = format!("01a20000-0000-7000-8000-0000000000{night:02}").parse().unwrap();
        record.label = Some("nightly".to_owned());
        record.started_at += jiff::SignedDuration::from_hours(24 * i64::from(night) - 2_000);
        let factor = if night < NIGHTLY / 2 { 1.0 } else { 0.9 };
        for stage in &mut record.stages {
            stage.throughput.rows_per_s *= factor;
            stage.throughput.transactions_per_s *= factor;
        }
        records.push(record);
    }
    records.push(hostile_record());
    save(&store, &records);
    (store, records)
}

#[test]
fn each_page_of_the_dashboard_is_drawn_and_accessible() {
    if !is_installed() {
        return;
    }
    let (store, records) = fill_store("serve-pages");
    let dashboard = Dashboard::start(&store);
    let run = |at: usize| format!("/runs/{}", records[at].id);
    let hostile = records.len() - 1;
    let pages = json!([
        { "name": "list", "path": "/", "charts": 0 },
        { "name": "empty", "path": "/?label=none", "charts": 0 },
        { "name": "run", "path": run(5), "charts": 1 },
        { "name": "cbc", "path": run(0), "charts": 1 },
        { "name": "hostile", "path": run(hostile), "charts": 1 },
        { "name": "experiments", "path": "/experiments", "charts": 0 },
        { "name": "history", "path": "/history?label=nightly", "charts": 1 },
        { "name": "no-history", "path": "/history", "charts": 0 },
    ]);
    check("servePages", &json!({ "address": dashboard.address, "pages": pages }));
}

#[test]
fn the_filters_and_the_order_of_the_list_work() {
    if is_installed() {
        let (store, records) = fill_store("serve-filter");
        let dashboard = Dashboard::start(&store);
        let parameters = json!({
            "address": dashboard.address, "workload": "rows", "label": "nightly", "runs": records.len()
        });
        check("serveFilter", &parameters);
    }
}

#[test]
fn an_experiment_is_one_row_and_its_runs_fold_out() {
    if is_installed() {
        let database = database("browser_fold");
        let line = "sweep ping --axis sessions=1,2 --repeat 2 --duration 200ms --warmup 0";
        database.riops(line).expect(0);
        let dashboard = Dashboard::start(&database.store);
        check("serveFold", &json!({ "address": dashboard.address, "runs": 4 }));
    }
}

#[test]
fn ticked_runs_are_compared() {
    if is_installed() {
        let (store, records) = fill_store("serve-compare");
        let dashboard = Dashboard::start(&store);
        let pick = [records[6].id.to_string(), records[20].id.to_string()];
        check("serveCompare", &json!({ "address": dashboard.address, "pick": pick }));
    }
}

#[test]
fn the_page_of_a_run_in_progress_moves_and_ends_with_the_stored_run() {
    if !is_installed() {
        return;
    }
    let database = database("browser_live");
    database.riops("prepare rows --rows 2000").expect(0);
    let dashboard = Dashboard::start(&database.store);
    // The check of the page interrupts the run when it has seen it in progress, however long that takes.
    let line = "run rows --batch 10 --rate 500 --duration 10m --warmup 0 --interval 250ms";
    let run = start_until(&mut database.command(line), "measuring");
    check("serveLive", &json!({ "address": dashboard.address, "process": run.id() }));
    CommandOutput::from(run.wait_with_output().unwrap()).expect(130);
}
