//! Output of `--help` and `--version`. The help texts of all commands are snapshots in the binary's unit
//! tests.

use std::process::Command;

use crate::fixture::{CommandOutput, command, database};

#[test]
fn prints_help_to_standard_output_with_exit_code_0() {
    for line in ["--help", "run oltp --help", "help run oltp", "run rows -h --color"] {
        let ran = CommandOutput::run(&mut command(line)).expect(0);
        assert!(ran.stdout.contains("Usage: riops "), "{line}: {}", ran.stdout);
        assert!(ran.stderr.is_empty(), "{line}: {}", ran.stderr);
    }
}

#[test]
fn prints_the_version() {
    let short = CommandOutput::run(&mut command("-V")).expect(0).stdout;
    assert_eq!(short, format!("riops {}\n", env!("CARGO_PKG_VERSION")));
    let version = CommandOutput::run(&mut command("--version")).expect(0).stdout;
    let names = version.lines().skip(1).map(|line| line.split_once(": ").unwrap().0);
    assert!(version.starts_with(&short), "{version}");
    assert_eq!(names.collect::<Vec<_>>(), ["commit", "target", "features"], "{version}");
    assert!(version.contains(&format!("\ntarget: {}-", std::env::consts::ARCH)), "{version}");
}

/// What a shell gets for the last of these words.
fn complete(command: &mut Command, words: &[&str]) -> Vec<String> {
    let last = (words.len() - 1).to_string();
    let command = command.env("RIOPS_COMPLETE", "fish").env("_CLAP_COMPLETE_INDEX", last);
    let answer = CommandOutput::run(command.arg("--").args(words)).expect(0).stdout;
    answer.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn a_shell_completes_workloads_options_and_stored_runs() {
    let at = |words: &[&str]| complete(&mut command(""), words);
    assert!(at(&["riops", "run", ""]).contains(&"oltp".to_owned()));
    assert_eq!(at(&["riops", "run", "ro"]), ["rows"]);
    assert_eq!(at(&["riops", "run", "rows", "--batc"]), ["--batch"]);
    let database = database("completion");
    database.riops("run ping --transactions 1 --label night").expect(0);
    let id = database.riops("runs list --output json").expect(0).json()[0]["id"].clone();
    for words in [&["riops", "report", ""][..], &["riops", "compare", "last", ""]] {
        let completions = complete(&mut database.command(""), words);
        for value in ["last", "night", id.as_str().unwrap()] {
            assert!(completions.contains(&value.to_owned()), "{words:?}: {completions:?}");
        }
    }
    // Files, which the shell completes in the current directory.
    let files = complete(&mut database.command(""), &["riops", "ab", ""]);
    assert!(!files.contains(&"last".to_owned()), "{files:?}");
    let labels = complete(&mut database.command(""), &["riops", "runs", "list", "--label", ""]);
    assert_eq!(labels, ["night"]);
    for shell in ["bash", "fish", "zsh"] {
        let line = format!("completions {shell}");
        let script = CommandOutput::run(&mut command(&line)).expect(0).stdout;
        assert!(script.contains("RIOPS_COMPLETE"), "{script}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let page = CommandOutput::run(&mut command("man run rows")).expect(0).stdout;
    assert!(page.contains(".TH riops-run-rows 1") && page.contains("update\\-percent"), "{page}");
    let unknown = CommandOutput::run(&mut command("man run row")).expect(2);
    assert!(unknown.stderr.contains("did you mean rows?"), "{}", unknown.stderr);
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    CommandOutput::run(command("man --all").arg(&pages)).expect(0);
    for name in ["riops.1", "riops-run-oltp.1", "riops-server-start.1"] {
        assert!(pages.join(name).is_file(), "{name}");
    }
}
