//! What `--help` says.

use crate::fixture::{Ran, command};

#[test]
fn the_help_texts() {
    let mut text = String::new();
    for line in [
        "--help",
        "prepare rows --help",
        "prepare load --help",
        "run rows --help",
        "run load --help",
        "run point --help",
        "run cbc --help",
        "doctor --help",
        "report --help",
        "generate csv --help",
        "runs show --help",
        "server --help",
        "server start --help",
    ] {
        let help = Ran::of(command(line).env("COLUMNS", "100")).expect(0).stdout;
        text = format!("{text}$ riops {line}\n{help}\n");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_version() {
    let version = Ran::of(&mut command("--version")).expect(0).stdout;
    assert_eq!(version, format!("riops {}\n", env!("CARGO_PKG_VERSION")));
}
