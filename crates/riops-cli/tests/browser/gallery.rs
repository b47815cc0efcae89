//! A gallery of the frozen records, runs of one label, hostile texts, and a sweep over two axes.

use serde_json::json;

use crate::fixture::{CommandOutput, command, database};
use crate::serve::fill_store;
use crate::{check, is_installed};

#[test]
fn a_gallery_works_from_its_folder() {
    if !is_installed() {
        return;
    }
    let (store, records) = fill_store("gallery");
    let database = database("browser_gallery");
    let mut sweep = database.command("sweep ping --axis sessions=1,2,3 --axis protocol=simple,extended --repeat 1 --warmup 0 --transactions 5000 -q");
    CommandOutput::run(sweep.args(["--fact", "price=1 USD/h"]).env("RIOPS_STORE", &store))
        .expect(0);
    let mut listed = command("experiments list --output json");
    let listed = CommandOutput::run(listed.env("RIOPS_STORE", &store)).expect(0).json();
    let experiment = listed[0]["id"].as_str().unwrap();
    let folder = store.with_file_name("site");
    let mut gallery = command("gallery");
    gallery.arg(&folder).args([
        "--compare",
        &records[6].id.to_string(),
        &records[7].id.to_string(),
    ]);
    CommandOutput::run(gallery.env("RIOPS_STORE", &store)).expect(0);
    let comparison = std::fs::read_dir(folder.join("comparisons")).unwrap().next().unwrap();
    let comparison = format!("comparisons/{}", comparison.unwrap().file_name().display());
    let run = |at: usize| format!("runs/{}.html", records[at].id);
    let hostile = records.len() - 1;
    let pages = json!([
        { "name": "index", "path": "index.html", "charts": 0 },
        { "name": "run", "path": run(5), "charts": 1 },
        { "name": "hostile", "path": run(hostile), "charts": 1 },
        { "name": "history", "path": "histories/nightly.html", "charts": 1 },
        { "name": "comparison", "path": comparison, "charts": 0 },
        // Throughput by each axis, the heat map, the frontier.
        { "name": "experiment", "path": format!("experiments/{experiment}.html"), "charts": 3 },
    ]);
    let parameters = json!({
        "address": format!("file://{}/", folder.display()),
        "pages": pages,
        "runs": records.len() + 6,
        "words": "nightly rows",
        "matching": 16,
    });
    check("gallery", &parameters);
}
