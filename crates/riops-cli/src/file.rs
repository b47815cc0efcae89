//! Writes a result to a file, completely or not at all, and reads scripts.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use riops::host::files::{TEXT_BYTES_MAX, read_limited, rest_limited};

use crate::failure::UsageError;
use crate::ui::Ui;

/// Writes a text to a file, or to standard output for `-`. A file is replaced at once by a rename, so that
/// readers never see a part of it.
pub(crate) fn write(file: &Path, text: &str, ui: Ui) -> Result<()> {
    if file == Path::new("-") {
        return crate::ui::print(text);
    }
    write_bytes(file, text.as_bytes(), ui)
}

/// Writes bytes to a file in the same way.
pub(crate) fn write_bytes(file: &Path, bytes: &[u8], ui: Ui) -> Result<()> {
    let existed = file.exists();
    replace(file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    ui.notice(&format!("{} {}", if existed { "replaced" } else { "wrote" }, file.display()));
    Ok(())
}

fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // A device or a pipe must not be replaced by a file; a link stays a link.
    let target = match fs::metadata(file) {
        Ok(found) if !found.is_file() => return fs::write(file, bytes),
        Ok(_) => fs::canonicalize(file)?,
        Err(_) => file.to_owned(),
    };
    let temporary = beside(&target);
    let written = OpenOptions::new().write(true).create_new(true).open(&temporary).and_then(
        |mut opened: File| {
            opened.write_all(bytes)?;
            if let Ok(found) = fs::metadata(&target) {
                opened.set_permissions(found.permissions())?;
            }
            opened.sync_all()
        },
    );
    let replaced = written.and_then(|()| fs::rename(&temporary, &target));
    if replaced.is_err() {
        // The first error is reported.
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Returns the path of a temporary file in the same directory.
fn beside(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

/// Reads a script; `-` is standard input.
pub(crate) fn read_script(file: &str) -> Result<String> {
    let bytes = if file == "-" {
        rest_limited(&mut std::io::stdin(), TEXT_BYTES_MAX).context("cannot read standard input")?
    } else {
        read_limited(Path::new(file), TEXT_BYTES_MAX)
            .with_context(|| format!("cannot read {file}"))?
    };
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = valid.split(|byte| *byte == b'\n').count();
        UsageError(format!("{file}:{line}: the script is not valid UTF-8")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_a_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.csv"), folder.path().join("link.csv"));
        replace(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(replace(&folder.path().join("none/a.csv"), b"x").is_err());
        assert!(replace(Path::new("/dev/null"), b"x").is_ok());
    }
}
