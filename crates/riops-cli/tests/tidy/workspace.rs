//! The files of the workspace, named from its root with `/`.

use std::path::{Path, PathBuf};

/// A file or folder of the workspace on this machine.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The text of a file; `None` if it does not exist.
pub(crate) fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(path(name)).ok()
}

/// The names in a folder, sorted; none if it does not exist.
fn entries(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(path(folder)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All files below a folder with this extension, sorted.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in entries(folder) {
        let name = format!("{folder}/{name}");
        if path(&name).is_dir() {
            found.extend(files(&name, extension));
        } else if Path::new(&name).extension().is_some_and(|own| own == extension) {
            found.push(name);
        }
    }
    found
}

/// All Rust files below a folder, sorted.
pub(crate) fn rust_files(folder: &str) -> Vec<String> {
    files(folder, "rs")
}
