//! Files of the workspace, by path from its root with `/` as the separator.

use std::path::{Path, PathBuf};

/// Returns the file system path of a file or folder of the workspace.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Returns the text of a file, or `None` if it does not exist.
pub(crate) fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(path(name)).ok()
}

/// Returns the sorted names in a folder; empty if the folder does not exist.
fn entries(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(path(folder)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns all files below a folder with this extension, sorted.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut names = Vec::new();
    for name in entries(folder) {
        let name = format!("{folder}/{name}");
        // The packages of `sql` and `experiments` are links to these folders.
        if path(&name).is_symlink() {
            continue;
        }
        if path(&name).is_dir() {
            names.extend(files(&name, extension));
        } else if Path::new(&name).extension().is_some_and(|own| own == extension) {
            names.push(name);
        }
    }
    names
}

/// Returns all Rust files below a folder, sorted.
pub(crate) fn rust_files(folder: &str) -> Vec<String> {
    files(folder, "rs")
}
