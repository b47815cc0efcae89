//! Style checks of the workspace, modeled on `tidy.zig` of `TigerBeetle`.
//!
//! Each test prints the number of violations and lists each one as `file:line: description`.
//! `cargo test -p riops-cli --test tidy -- --nocapture` prints the report.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "the tests print a report and panic if a source file cannot be read"
)]

mod collect;
mod cycles;
mod destructive;
mod destructive_list;
mod documents;
mod functions;
mod imports;
mod language;
mod modules;
mod names;
mod order;
mod phrases;
mod workspace;

use modules::Tree;
use workspace::{read, rust_files};

/// Root files of the crates, the library first.
const ROOTS: [&str; 9] = [
    "crates/riops/src/lib.rs",
    "crates/riops-cli/src/main.rs",
    "crates/riops-measure/src/lib.rs",
    "crates/riops-model/src/lib.rs",
    "crates/riops-report/src/lib.rs",
    "crates/riops-ring/src/lib.rs",
    "crates/riops-script/src/lib.rs",
    "crates/riops-wire/src/lib.rs",
    "crates/riops-testkit/src/lib.rs",
];
/// Files below a crate's `src` in which a `match` on the workload is allowed.
const DISPATCH: [&str; 1] = ["plan/work.rs"];
/// Cycles between the files and folders of one folder that are still to be removed. No other file or folder may join
/// them, and an entry goes with its cycle.
const KNOWN_CYCLES: [&[&str]; 0] = [];
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;
/// A command only parses options, calls one library function and prints the result. More lines would mean
/// that logic has moved into the binary.
const COMMAND_LINES_MAX: usize = 200;

#[test]
fn modules_use_only_modules_declared_above_them() {
    let ordered = [
        "crates/riops/src/lib.rs",
        "crates/riops-measure/src/lib.rs",
        "crates/riops-model/src/lib.rs",
    ];
    let violations: Vec<String> =
        ordered.iter().flat_map(|root| order::violations(&tree(root))).collect();
    report("module order violations", &violations);
}

#[test]
fn imports_between_files_have_no_cycles() {
    let cycles: Vec<String> =
        ROOTS.iter().flat_map(|root| cycles::violations(&imports::imports(&tree(root)))).collect();
    report("import cycles", &cycles);
}

#[test]
fn imports_between_folders_have_no_cycles() {
    let imports = ROOTS.iter().flat_map(|root| imports::imports(&tree(root))).collect();
    report("import cycles between folders", &cycles::between_folders(&imports, &KNOWN_CYCLES));
}

#[test]
fn functions_have_at_most_70_lines() {
    let long: Vec<String> =
        sources().flat_map(|file| functions::list_longer_than(FUNCTION_LINES_MAX, &file)).collect();
    report(&format!("functions above {FUNCTION_LINES_MAX} lines"), &long);
}

#[test]
fn no_parameter_is_a_tuple() {
    let is_test = |file: &String| {
        ["/tests/", "tests.rs", "/testkit/", "/simulations/"].iter().any(|part| file.contains(part))
    };
    let tuples: Vec<String> = sources()
        .filter(|file| !is_test(file))
        .flat_map(|file| functions::tuple_parameters(&file))
        .collect();
    report("parameters that are tuples", &tuples);
}

#[test]
fn names_say_what_they_name() {
    let names: Vec<String> = sources().flat_map(|file| names::empty_names(&file)).collect();
    report("names that say nothing", &names);
}

#[test]
fn files_have_at_most_800_lines() {
    let long: Vec<String> = sources()
        .map(|file| (read(&file).unwrap().lines().count(), file))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, file)| format!("{file}:{FILE_LINES_MAX}: {lines} lines"))
        .collect();
    report(&format!("files above {FILE_LINES_MAX} lines"), &long);
}

#[test]
fn every_snapshot_has_a_test() {
    let code: String = sources().filter_map(|file| read(&file)).collect();
    // A snapshot of `--help` has the name of its command.
    let snapshots = workspace::files("crates", "snap").into_iter();
    let left: Vec<String> = snapshots
        .filter(|file| !file.contains("/help/"))
        .filter(|file| {
            let name = file.trim_end_matches(".snap").rsplit("__").next().unwrap();
            let name = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '-');
            !code.contains(name)
        })
        .collect();
    report("snapshots without a test", &left);
}

#[test]
fn reference_documents_every_option() {
    report("options missing from the reference", &documents::undocumented_options());
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    report("broken links", &documents::broken_links());
    report("pages outside of the guide", &documents::unlisted_pages());
}

#[test]
fn reading_results_explains_every_verdict() {
    report("verdicts not explained", &documents::unexplained_verdicts());
    report("reasons not explained", &documents::unexplained_reasons());
}

#[test]
fn reference_has_the_figures_of_the_catalog() {
    report("figures that differ from the catalog", &documents::other_figures());
    report("columns of stages without documentation", &documents::undocumented_columns());
}

#[test]
fn no_text_contains_a_phrase_that_is_not_plain_english() {
    report("phrases to replace", &phrases::violations());
}

#[test]
fn sentences_begin_with_their_subject() {
    report("sentences to write again", &language::violations());
}

#[test]
fn only_dispatch_files_match_on_workloads() {
    let outside: Vec<String> = ROOTS
        .iter()
        .flat_map(|root| order::dispatches(&tree(root)))
        .filter(|(file, _)| !DISPATCH.iter().any(|known| file.ends_with(&format!("/src/{known}"))))
        .map(|(file, violation)| format!("{file}:{violation}"))
        .collect();
    report("matches on the workload outside DISPATCH", &outside);
}

#[test]
fn every_destructive_call_is_listed_with_its_proof() {
    let unlisted = destructive::violations(destructive_list::LIST);
    report("destructive calls that differ from the list", &unlisted);
}

#[test]
fn sql_is_quoted_in_one_place() {
    report("quotes of SQL outside of units/sql.rs", &destructive::own_quotes());
}

#[test]
fn each_command_has_at_most_200_lines() {
    let long: Vec<String> = rust_files("crates/riops-cli/src/commands")
        .iter()
        .map(|file| (file, read(file).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > COMMAND_LINES_MAX)
        .map(|(file, lines)| format!("{file}:1: {lines} lines"))
        .collect();
    report("commands above 200 lines", &long);
}

/// Returns the modules of a crate.
fn tree(root: &str) -> Tree {
    Tree::load(root, &read)
}

/// Returns all Rust files of the workspace, including tests.
fn sources() -> impl Iterator<Item = String> {
    rust_files("crates").into_iter().chain(rust_files("bench"))
}

/// Prints the number of violations, and fails with the list if there are any.
fn report(title: &str, violations: &[String]) {
    println!("{title}: {}", violations.len());
    assert!(violations.is_empty(), "{title}: {}\n{}", violations.len(), violations.join("\n"));
}
