//! Notes on runs, and the commands for stored experiments.

use serde_json::Value;

use crate::fixture::{CommandOutput, database};

#[test]
fn notes_are_stored_with_their_authors_and_shown_in_each_report() {
    let database = database("notes");
    let mut first = database.command("run ping -c 1 --warmup 0 --duration 1s --note");
    CommandOutput::run(first.arg("before the <b>change</b>").env("USER", "anna")).expect(0);
    let mut second = database.command("runs note last --author ben");
    CommandOutput::run(second.arg("fsync was off:\nrepeat"))
        .expect(0)
        .stdout_contains("note by ben");
    let record: Value = database.riops("runs show --output json").expect(0).json();
    let notes: Vec<_> = record["notes"].as_array().unwrap().iter().collect();
    let fields = notes.iter().map(|note| (note["author"].as_str(), note["text"].as_str()));
    let expected = [
        (Some("anna"), Some("before the <b>change</b>")),
        (Some("ben"), Some("fsync was off:\nrepeat")),
    ];
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    let shown = database.riops("runs show").expect(0);
    shown.stdout_contains("anna: before the <b>change</b>").stdout_contains("repeat");
    let page = database.riops("report last -o html").expect(0);
    assert!(page.stdout.contains("anna: before the &lt;b&gt;change"));
    assert!(!page.stdout.contains("<b>change"));
    for (text, error) in [("  ", "the note is empty"), ("a\u{1b}[31m", "")] {
        let mut refused = database.command("runs note last");
        CommandOutput::run(refused.arg(text)).expect(2).stderr_contains(error);
    }
}

#[test]
fn experiments_are_listed_shown_and_removed_with_their_runs() {
    let database = database("experiments_rm");
    let line = "sweep ping --axis sessions=1,2 --repeat 1 --warmup 0 --duration 300ms -q";
    database.riops(line).expect(0);
    let listed: Value = database.riops("experiments list --output json").expect(0).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["runs"]), (1, &2.into()));
    database.riops("experiments show").expect(0).stdout_contains("sessions");
    let shown: Value = database.riops("experiments show last --output json").expect(0).json();
    assert_eq!(shown["cells"].as_array().unwrap().len(), 2);
    let runs = || database.riops("runs list --output json").json().as_array().unwrap().len();
    database.riops("experiments rm last").expect(2).stderr_contains("--yes");
    assert_eq!(runs(), 2);
    database.riops("experiments rm last --yes --runs").expect(0).stdout_contains("its runs (2)");
    database.riops("experiments show last").expect(1);
    let left = database.riops("runs list --output json");
    assert!(left.code != Some(0) || left.json().as_array().unwrap().is_empty());
    database.riops(line).expect(0);
    database.riops("experiments rm last -y").expect(0).stdout_contains("its runs (2) remain");
    assert_eq!(runs(), 2);
}
