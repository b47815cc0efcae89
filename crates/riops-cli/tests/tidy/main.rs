//! The style of the workspace as tests, after `tidy.zig` of `TigerBeetle`.
//!
//! Each test prints its figure and lists every violation as `file:line: what`:
//! `cargo test -p riops-cli --test tidy -- --nocapture` is the report.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports to standard output and fails where the source cannot be read"
)]

mod collect;
mod cycles;
mod documents;
mod functions;
mod imports;
mod modules;
mod order;
mod workspace;

use modules::Tree;
use workspace::{read, rust_files};

/// The roots of the crates; the library comes first.
const ROOTS: [&str; 4] = [
    "crates/riops/src/lib.rs",
    "crates/riops-cli/src/main.rs",
    "crates/riops-wire/src/lib.rs",
    "crates/riops-testkit/src/lib.rs",
];
/// The files in which a `match` on workloads is allowed, below a crate's `src`.
const DISPATCH: [&str; 1] = ["plan/work.rs"];
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 600;
/// A command parses options, calls one library function and prints: larger means logic in the binary.
const COMMAND_LINES_MAX: usize = 1_200;

#[test]
fn a_module_uses_only_modules_declared_above_it() {
    report("module order violations", &order::violations(&tree(ROOTS[0])));
}

#[test]
fn files_import_each_other_without_cycles() {
    let cycles: Vec<String> =
        ROOTS.iter().flat_map(|root| cycles::violations(&imports::imports(&tree(root)))).collect();
    report("import cycles", &cycles);
}

#[test]
fn functions_have_at_most_70_lines() {
    let long: Vec<String> =
        sources().flat_map(|file| functions::above(FUNCTION_LINES_MAX, &file)).collect();
    report(&format!("functions above {FUNCTION_LINES_MAX} lines"), &long);
}

#[test]
fn files_have_at_most_600_lines() {
    let long: Vec<String> = sources()
        .map(|file| (read(&file).unwrap().lines().count(), file))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, file)| format!("{file}:{FILE_LINES_MAX}: {lines} lines"))
        .collect();
    report(&format!("files above {FILE_LINES_MAX} lines"), &long);
}

#[test]
fn the_reference_documents_every_option() {
    report("options missing in the reference", &documents::undocumented_options());
}

#[test]
fn the_architecture_names_every_module() {
    let trees: Vec<Tree> = ROOTS.iter().map(|root| tree(root)).collect();
    report("modules missing in ARCHITECTURE.md", &documents::unnamed_modules(&trees));
}

#[test]
fn only_dispatch_files_match_on_workloads() {
    let outside: Vec<String> = ROOTS
        .iter()
        .flat_map(|root| order::dispatches(&tree(root)))
        .filter(|(file, _)| !DISPATCH.iter().any(|known| file.ends_with(&format!("/src/{known}"))))
        .map(|(file, violation)| format!("{file}:{violation}"))
        .collect();
    report("dispatches on the workload outside DISPATCH", &outside);
}

#[test]
fn the_commands_of_the_binary_are_small() {
    let folder = "crates/riops-cli/src/commands";
    let lines: usize =
        rust_files(folder).iter().map(|file| read(file).unwrap().lines().count()).sum();
    println!("lines in riops-cli/src/commands: {lines}");
    assert!(lines <= COMMAND_LINES_MAX, "{folder}:1: {lines} lines, at most {COMMAND_LINES_MAX}");
}

/// The modules of a crate.
fn tree(root: &str) -> Tree {
    Tree::load(root, &read)
}

/// Every Rust file of the workspace, tests included.
fn sources() -> impl Iterator<Item = String> {
    rust_files("crates").into_iter().chain(rust_files("bench"))
}

/// Prints a figure and fails with the list behind it.
fn report(figure: &str, violations: &[String]) {
    println!("{figure}: {}", violations.len());
    assert!(violations.is_empty(), "{figure}: {}\n{}", violations.len(), violations.join("\n"));
}
