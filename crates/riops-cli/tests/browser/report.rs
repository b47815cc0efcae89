//! The files that `riops report` writes: of a frozen record of each workload, of several runs, and of a real run.

use std::path::{Path, PathBuf};

use riops::host::Interrupt;
use riops::record::{ErrorEntry, Record};
use riops::store::StoreLocation;
use serde_json::{Value, json};

use crate::fixture::{CommandOutput, command, database, folder};
use crate::{check, is_installed};

/// A page, and what the tests know about it.
struct Page {
    parameters: Value,
}

/// Reads the frozen record of a workload.
pub(crate) fn read_frozen(workload: &str) -> Record {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records");
    let text = std::fs::read_to_string(records.join(format!("{workload}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Writes the page of the frozen records of these workloads.
fn page_of(name: &str, workloads: &[&str]) -> Page {
    let folder = folder(&format!("browser-{name}"));
    let store = folder.join("runs.sqlite");
    let records: Vec<_> = workloads.iter().map(|workload| read_frozen(workload)).collect();
    save(&store, &records);
    write(name, &folder, &store, &records)
}

/// Saves records in a file.
pub(crate) fn save(store: &Path, records: &[Record]) {
    let location = StoreLocation::File(store.to_owned());
    let store = riops::store::open(&location, &Interrupt::new()).unwrap();
    for record in records {
        store.save(record).unwrap();
    }
}

/// A run whose texts are HTML and scripts, wherever a user or a server chooses them.
pub(crate) fn hostile_record() -> Record {
    const TEXT: &str =
        "\"><img src=x onerror=window.injected=1></script><script>window.injected=1</script>&lt;b>";
    let mut record = read_frozen("rows");
    record.id = "01a20000-0000-7000-8000-0000000000ff".parse().unwrap();
    record.label = Some(TEXT.to_owned());
    record.tags.insert(TEXT.to_owned(), TEXT.to_owned());
    TEXT.clone_into(&mut record.target.server_version);
    TEXT.clone_into(&mut record.target.version_text);
    TEXT.clone_into(&mut record.target.database);
    record.target.settings.insert(TEXT.to_owned(), TEXT.to_owned());
    record.verdict.valid = false;
    record.verdict.reasons = vec![TEXT.to_owned()];
    for access in &mut record.accesses {
        TEXT.clone_into(&mut access.found);
    }
    for stage in &mut record.stages {
        TEXT.clone_into(&mut stage.name);
        stage.session_loop.errors = vec![ErrorEntry {
            sqlstate: "57014".to_owned(),
            count: 1,
            sample: TEXT.to_owned(),
            ..ErrorEntry::default()
        }];
    }
    record
}

/// Writes the page of these stored runs.
fn write(name: &str, folder: &Path, store: &Path, records: &[Record]) -> Page {
    let file = folder.join("report.html");
    let mut report = command("report");
    report.args(records.iter().map(|record| record.id.to_string()));
    report.arg("-o").arg(format!("html={}", file.display())).env("RIOPS_STORE", store);
    CommandOutput::run(&mut report).expect(0);
    let has_series =
        |record: &Record| record.stages.iter().any(|stage| stage.session_loop.series.len() > 1);
    let charts = records.iter().filter(|record| has_series(record)).count();
    let texts: Vec<_> = records.iter().map(|record| record.workload.clone()).collect();
    let address = format!("file://{}", file.display());
    Page {
        parameters: json!({ "name": name, "address": address, "charts": charts, "texts": texts }),
    }
}

/// Tests of the page of one frozen record.
macro_rules! workload {
    ($name:ident) => {
        mod $name {
            use super::*;

            fn page(test: &str) -> Option<Page> {
                let name = stringify!($name);
                is_installed().then(|| page_of(&format!("{name}-{test}"), &[name]))
            }

            #[test]
            fn the_page_is_drawn_and_accessible_in_light_and_dark_and_at_phone_width() {
                if let Some(page) = page("views") {
                    check("report", &page.parameters);
                }
            }

            #[test]
            fn the_keyboard_reaches_everything_on_the_page() {
                if let Some(page) = page("keyboard") {
                    check("reportKeyboard", &page.parameters);
                }
            }
        }
    };
}

workload!(cbc);
workload!(load);
workload!(oltp);
workload!(ping);
workload!(point);
workload!(rows);

#[test]
fn the_page_of_several_runs_is_drawn_and_accessible() {
    if is_installed() {
        let page = page_of("several", &["rows", "load", "point", "oltp", "ping", "cbc"]);
        check("report", &page.parameters);
        check("reportKeyboard", &page.parameters);
    }
}

#[test]
fn the_page_of_a_new_run_is_drawn_and_accessible() {
    if !is_installed() {
        return;
    }
    let database = database("browser_report");
    let run = "run rows --rows 2000 --prepare --batch 10,20 --update-percent 10 --rate 200 --duration 1s \
               --warmup 0 --interval 100ms --output json";
    let record: Record = serde_json::from_str(&database.riops(run).expect(0).stdout).unwrap();
    let folder: PathBuf = folder("browser-new");
    let page = write("new", &folder, &database.store, &[record]);
    check("report", &page.parameters);
    check("reportKeyboard", &page.parameters);
}

#[test]
fn the_page_of_100_000_points_is_drawn() {
    if !is_installed() {
        return;
    }
    let folder = folder("browser-large");
    let mut record = read_frozen("rows");
    record.stages.truncate(1);
    let series = &mut record.stages[0].session_loop.series;
    let points: Vec<_> = (1..=100_000_u32)
        .map(|position| {
            let mut point = series[position as usize % series.len()].clone();
            (point.t_s, point.seconds) = (f64::from(position) / 10.0, 0.1);
            point
        })
        .collect();
    *series = points;
    let records = [record];
    let store = folder.join("runs.sqlite");
    save(&store, &records);
    check("reportLarge", &write("large", &folder, &store, &records).parameters);
}

#[test]
fn texts_of_the_record_are_not_executed() {
    if is_installed() {
        let folder = folder("browser-hostile");
        let store = folder.join("runs.sqlite");
        let records = [hostile_record()];
        save(&store, &records);
        check("report", &write("hostile", &folder, &store, &records).parameters);
    }
}

#[test]
fn the_page_is_printed_in_black_on_white() {
    if is_installed() {
        check("reportPrint", &page_of("print", &["rows"]).parameters);
    }
}

#[test]
fn the_figures_are_readable_without_javascript() {
    if is_installed() {
        check("reportWithoutScript", &page_of("no-script", &["rows", "oltp"]).parameters);
    }
}
