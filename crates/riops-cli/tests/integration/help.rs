//! How help and the version are printed. The texts of all commands are snapshots of the binary's
//! unit tests.

use crate::fixture::{Ran, command};

#[test]
fn help_goes_to_standard_output_with_exit_code_0() {
    for line in ["--help", "run oltp --help", "help run oltp", "run rows -h --colour"] {
        let ran = Ran::of(&mut command(line)).expect(0);
        assert!(ran.stdout.contains("Usage: riops "), "{line}: {}", ran.stdout);
        assert!(ran.stderr.is_empty(), "{line}: {}", ran.stderr);
    }
}

#[test]
fn the_version() {
    let version = Ran::of(&mut command("--version")).expect(0).stdout;
    assert_eq!(version, format!("riops {}\n", env!("CARGO_PKG_VERSION")));
}
