use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program for a test.
///
/// Another process writes the copy: a child that another test starts at that moment would inherit the open
/// file, and Linux does not execute a file that is open for writing ("text file busy").
pub fn copy_program(source: &Path, program: &Path) {
    let status = Command::new("install").args(["-m", "755"]).arg(source).arg(program).status();
    assert!(status.unwrap().success(), "{}", program.display());
}

/// Writes a script that a test executes, as [`copy_program`] does.
pub fn write_program(program: &Path, script: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(program).stdin(Stdio::piped());
    let mut child = install.spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{}", program.display());
}
