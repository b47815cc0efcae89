//! Programs that a test executes.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// Copies a program for a test.
///
/// Another process writes the copy: a child that another test starts at that moment would inherit the open
/// file, and Linux does not execute a file that is open for writing ("text file busy").
///
/// # Errors
/// If `install` cannot be executed, or cannot copy the file.
pub fn copy_program(source: &Path, program: &Path) -> io::Result<()> {
    let mut install = Command::new("install");
    let status = install.args(["-m", "755"]).arg(source).arg(program).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("install: {status}"))) }
}

/// Writes a script that a test executes, as [`copy_program`] does.
///
/// # Errors
/// As [`copy_program`], or if the script cannot be written.
pub fn write_program(program: &Path, script: &str) -> io::Result<()> {
    let text = program.with_extension("text");
    fs::write(&text, script)?;
    copy_program(&text, program)?;
    fs::remove_file(text)
}
