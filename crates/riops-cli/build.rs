//! The commit and the target of the build, for `riops --version`.

use std::env::var;
use std::process::Command;

fn main() {
    // For builds without git.
    println!("cargo::rerun-if-env-changed=BUILD_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = var("BUILD_COMMIT").ok().or_else(packaged).or_else(checked_out);
    println!("cargo::rustc-env=BUILD_COMMIT={}", commit.unwrap_or_default());
    println!("cargo::rustc-env=BUILD_TARGET={}", var("TARGET").unwrap_or_default());
}

/// Returns the commit in the file that cargo adds to a published crate.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    Some(rest.split('"').next()?.to_owned())
}

/// Returns the commit of the checkout, unless the checkout belongs to another project. The log of HEAD changes with each commit.
fn checked_out() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
