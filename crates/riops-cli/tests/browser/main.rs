//! The pages of riops in Chromium: one test per page and scenario.
//!
//! Each test writes a page with the built riops and starts `run.mjs`, which drives Debian's Chromium with Playwright.
//! Skipped with a notice if Chromium, Node.js or the packages are missing, but not if `RIOPS_TEST_ALL` is set, as
//! in the CI gate. Screenshots of all pages are in `target/browser/screenshots`.

#![expect(clippy::unwrap_used, reason = "a test panics at the first unexpected value")]

#[expect(dead_code, reason = "the integration tests use more of it")]
#[path = "../integration/fixture.rs"]
mod fixture;
mod gallery;
mod report;
mod serve;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of these sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

/// The folder with the packages, and with the screenshots.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("browser")
}

/// Returns whether the tests can run. If not, prints what is missing.
fn is_installed() -> bool {
    let mut missing = Vec::new();
    if !Path::new("/usr/bin/chromium").exists() && std::env::var_os("RIOPS_CHROMIUM").is_none() {
        missing.push("chromium");
    }
    if Command::new("node").arg("--version").output().is_err() {
        missing.push("node");
    }
    if !folder().join("node_modules/playwright-core").exists() {
        missing.push("playwright-core (.ci/install-browser-tests)");
    }
    if !missing.is_empty() {
        let text = format!("skipped: not installed: {}", missing.join(", "));
        assert!(std::env::var_os("RIOPS_TEST_ALL").is_none(), "{text}");
        std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes()).unwrap();
    }
    missing.is_empty()
}

/// Runs a scenario of the scripts and fails with the failures that it prints.
fn check(scenario: &str, parameters: &Value) {
    let output = Command::new("node")
        .arg(sources().join("run.mjs"))
        .args([scenario, &parameters.to_string()])
        .env("RIOPS_BROWSER_DIR", folder())
        .output()
        .unwrap();
    // Figures that are printed, not judged; shown with --nocapture.
    std::io::Write::write_all(&mut std::io::stderr(), &output.stderr).unwrap();
    assert!(
        output.status.success(),
        "{scenario} {parameters}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_checks_find_each_kind_of_defect() {
    if is_installed() {
        let address = format!("file://{}", sources().join("defects.html").display());
        check("selfTest", &serde_json::json!({ "address": address }));
    }
}
