//! `riops report` on stored runs: selection by label and tag, and its forms.

use std::path::{Path, PathBuf};

use riops::host::Interrupt;
use riops::record::Record;
use riops::store::{self, StoreLocation};

use crate::fixture::{CommandOutput, command, folder};

/// Stores the frozen records of all workloads, two of them with a label and a tag.
fn store_frozen_records(name: &str) -> (PathBuf, Vec<Record>) {
    let folder = folder(name);
    let location = StoreLocation::File(folder.join("runs.sqlite"));
    let store = store::open(&location, &Interrupt::new()).unwrap();
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records");
    let mut records = Vec::new();
    for workload in ["rows", "load", "point", "oltp", "cbc", "ping"] {
        let json = std::fs::read_to_string(frozen.join(format!("{workload}.json"))).unwrap();
        let mut record: Record = serde_json::from_str(&json).unwrap();
        if ["rows", "oltp"].contains(&workload) {
            record.label = Some("nightly".to_owned());
            record.tags.insert("branch".to_owned(), "main".to_owned());
        }
        store.save(&record).unwrap();
        records.push(record);
    }
    (folder, records)
}

fn report(folder: &Path, line: &str) -> CommandOutput {
    let mut command = command(&format!("report {line}"));
    CommandOutput::run(command.env("RIOPS_STORE", folder.join("runs.sqlite")).current_dir(folder))
}

#[test]
fn a_label_or_a_tag_selects_several_runs_each_once() {
    let (folder, _) = store_frozen_records("report-selection");
    for runs in ["nightly", "branch=main", "branch", "nightly branch=main"] {
        let page = report(&folder, &format!("{runs} -o html")).expect(0).stdout;
        assert_eq!(page.matches("aria-label=\"Run ").count(), 2, "{runs}");
        assert!(page.contains("none: the runs are shown side by side"), "{runs}");
    }
    let failed = report(&folder, "weekly").expect(1);
    assert!(failed.stderr.contains("weekly"), "{}", failed.stderr);
}

#[test]
fn the_page_of_every_workload_is_one_file_without_requests() {
    let (folder, records) = store_frozen_records("report-page");
    for record in records {
        let page = report(&folder, &format!("{} -o html", record.id)).expect(0).stdout;
        assert!(page.contains("default-src &#x27;none&#x27;"), "{}", record.workload);
        let loads = ["src=\"", "<link rel=\"stylesheet", "@import", "url("];
        assert!(loads.iter().all(|load| !page.contains(load)), "{}", record.workload);
    }
}

#[test]
fn a_report_can_be_markdown_and_images() {
    let (folder, records) = store_frozen_records("report-forms");
    let rows = records[0].id;
    let text = report(&folder, &format!("{rows} -o markdown")).expect(0).stdout;
    assert!(text.starts_with("## riops: rows · nightly\n"), "{text}");
    assert!(text.contains("| bottleneck |") && text.contains("**Access paths**"), "{text}");
    let output = report(&folder, &format!("{rows} -o png=charts -o markdown=summary.md")).expect(0);
    assert!(output.stdout.is_empty(), "{}", output.stdout);
    assert_eq!(std::fs::read_to_string(folder.join("summary.md")).unwrap(), text);
    let images: Vec<_> = std::fs::read_dir(folder.join("charts")).unwrap().collect();
    assert!(images.len() >= 3, "{images:?}");
    for image in images {
        let bytes = std::fs::read(image.unwrap().path()).unwrap();
        assert!(bytes.starts_with(b"\x89PNG"));
    }
    assert!(output.stderr.contains("wrote charts/riops-"), "{}", output.stderr);
}

#[test]
fn each_form_is_written_to_its_file_whatever_happens_to_the_others() {
    let (folder, records) = store_frozen_records("report-outputs");
    let show = |outputs: &str| {
        let mut command = command(&format!("runs show {} {outputs}", records[0].id));
        let store = folder.join("runs.sqlite");
        CommandOutput::run(command.env("RIOPS_STORE", store).current_dir(&folder))
    };
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let shown = show("-o json -o csv=a.csv -o html=a.html -o text=a.txt -o png=charts").expect(0);
    assert_eq!(shown.json()["id"], records[0].id.to_string());
    assert!(read("a.csv").starts_with("run_id,") && read("a.html").starts_with("<!doctype html>"));
    assert!(read("a.txt").starts_with("riops run rows") && !read("a.txt").contains('\x1b'));
    assert!(std::fs::read_dir(folder.join("charts")).unwrap().count() > 2);
    // Without a form for standard output, the text is printed.
    assert_eq!(show("-o json=-").expect(0).stdout, shown.stdout);
    assert_eq!(show("-o json=b.json").expect(0).stdout, read("a.txt"));
    assert_eq!(read("b.json"), shown.stdout);
    for (outputs, code, message) in [
        ("-o json -o csv", 2, "only one form can be printed"),
        ("-o json=c -o csv=./c", 2, "two forms cannot be written to ./c"),
        ("-o json=missing/c", 1, "cannot write missing/c"),
        ("-o json=c/", 1, "cannot write c/"),
        ("-o pgbench=c", 2, "not supported for rows"),
        ("-o json=/dev/full -o csv=d.csv", 1, "cannot write /dev/full"),
    ] {
        show(outputs).expect(code).stderr_contains(message);
    }
    assert!(!folder.join("c").exists());
    assert_eq!(read("d.csv"), read("a.csv"));
}
