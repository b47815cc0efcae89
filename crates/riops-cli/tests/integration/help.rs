//! Output of `--help` and `--version`. The help texts of all commands are snapshots in the binary's unit
//! tests.

use crate::fixture::{CommandOutput, command};

#[test]
fn prints_help_to_standard_output_with_exit_code_0() {
    for line in ["--help", "run oltp --help", "help run oltp", "run rows -h --color"] {
        let ran = CommandOutput::of(&mut command(line)).expect(0);
        assert!(ran.stdout.contains("Usage: riops "), "{line}: {}", ran.stdout);
        assert!(ran.stderr.is_empty(), "{line}: {}", ran.stderr);
    }
}

#[test]
fn prints_the_version() {
    let version = CommandOutput::of(&mut command("--version")).expect(0).stdout;
    assert_eq!(version, format!("riops {}\n", env!("CARGO_PKG_VERSION")));
}
