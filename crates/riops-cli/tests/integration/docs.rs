//! The commands of README and docs: each block of shell code is executed, page by page, with shorter measurements and smaller
//! datasets. Blocks that need another server, a cluster or another program are marked (`sh elsewhere`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{CommandOutput, Database, binary, database, folder, program, server_dir};

/// A block of commands.
struct Block {
    line: usize,
    /// Text after the three backticks.
    info: String,
    text: String,
}

impl Block {
    /// Returns the commands; `None` if they must not be executed.
    fn script(&self) -> Option<String> {
        let (language, mark) = self.info.split_once(' ').unwrap_or((&self.info, ""));
        match (language, mark) {
            (_, "elsewhere") => None,
            ("sh", _) => Some(self.text.clone()),
            // Output follows a command.
            ("console", _) => {
                let commands = self.text.lines().filter_map(|line| line.strip_prefix("$ "));
                Some(commands.collect::<Vec<_>>().join("\n"))
            }
            _ => None,
        }
    }

    fn exit_code(&self) -> i32 {
        let code = self.info.split_once("exit=").map(|(_, code)| code.parse().unwrap());
        code.unwrap_or(0)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let docs = root().join("docs");
    let folders = ["", "methods", "questions", "reference"].map(|folder| docs.join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let pages = files.map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        pages.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.sort();
    pages.insert(0, root().join("README.md"));
    pages
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (line, content) in (1..).zip(text.lines()) {
        match (content.strip_prefix("```"), is_open) {
            (Some(info), false) => {
                blocks.push(Block { line, info: info.to_owned(), text: String::new() });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => blocks.last_mut().unwrap().text.extend([content, "\n"]),
            (None, false) => {}
        }
    }
    blocks
}

/// Runs before the commands of a page: what earlier runs of the reader have left.
fn preparation(page: &str) -> &'static str {
    match page {
        "README.md" => "riops run rows --prepare --label after -q",
        "export-import.md" => "riops run rows --label nightly --tag disk=nvme -q",
        "report.md" => "riops run rows --label nightly -q",
        "scripts.md" => {
            "riops prepare script -q
             printf '\\\\set delta random(-5000, 5000) + true\\n' > transfer.sql
             printf 'select abalance from pgbench_accounts where bid = :bid;\\n' > good.sql"
        }
        "experiments.md" => "printf 'workload = \"rows\"\\n[axes]\\nbatch = [1, 2]\\n' > wal.toml",
        _ => "true",
    }
}

/// A program `riops` that measures for a short time, with little data, and with limits that a busy machine keeps.
const SHORTER: &str = r#"#!/usr/bin/env bash
words=("$@"); args=()
for ((i = 0; i < ${#words[@]}; i++)); do
  word="${words[i]}"; next="${words[i + 1]:-}"
  case "$word" in
    --) args+=("${words[@]:i}"); break ;;
    -t|--time|--duration) args+=("$word" 0.5); ((i++)) ;;
    --warmup) args+=("$word" 0); ((i++)) ;;
    --rows) args+=("$word" 2000); ((i++)) ;;
    --table-size) args+=("$word" 500); ((i++)) ;;
    --tables) args+=("$word" 2); ((i++)) ;;
    -c|--threads|--sessions) args+=("$word" 2); ((i++)) ;;
    --size) args+=("$word" 0.01); ((i++)) ;;
    --cooldown) args+=("$word" 0s); ((i++)) ;;
    --disk-size) args+=("$word" 64MB); ((i++)) ;;
    --rate) args+=("$word" 50); ((i++)) ;;
    --threshold) args+=("$word" errors=0); ((i++)) ;;
    --strict) ;;
    --query-sessions) args+=("$word" 1,2 --query-duration 1s); ((i++)) ;;
    --repeat) args+=("$word" 2 --settle 0s); ((i++)) ;;
    --settle) ((i++)) ;;
    --axis) args+=("$word" "$(echo "$next" | grep -oE '^[^,]*(,[^,]*)?')"); ((i++)) ;;
    --set) args+=("$word" "$(echo "$next" | sed -E 's/duration=.*/duration=300ms/; s/rows=.*/rows=2000/')"); ((i++)) ;;
    *) args+=("$word") ;;
  esac
done
[[ -n "${PGHOST:-}" || " ${words[*]} " =~ ' -d '|' --database ' ]] && unset RIOPS_SERVER_DIR
case "${words[0]:-}" in
  doctor) unset RIOPS_DURATION
    [[ " ${words[*]} " =~ ' --disk ' ]] && args+=(-t 1s)
    [[ " ${words[*]} " =~ ' --disk ' && ! " ${words[*]} " =~ size ]] && args+=(--disk-size 64MB) ;;
  sweep) [[ " ${words[*]} " =~ ' --find-saturation ' && ! " ${words[*]} " =~ ' -t ' ]] && args+=(-t 200ms)
    [[ " ${words[*]} " =~ ' --repeat '|' --dry-run '|' --find-saturation '|' find-my-limit ' ]] || args+=(--repeat 2)
    args=("${args[@]/--settle/--cool-down}") ;;
  ab) [[ " ${words[*]} " =~ ' --resume ' ]] && exec "$REAL_RIOPS" "${args[@]}"
    args+=(--rounds-max 5)
    [[ " ${words[*]} " =~ ' --vary ' ]] && exec "$REAL_RIOPS" "${args[@]}" --warmup 0 -t 300ms
    args+=(--set warmup=0)
    [[ " ${words[*]} " =~ ' --set ' ]] || args+=(--set duration=300ms --set rows=2000) ;;
esac
exec "$REAL_RIOPS" "${args[@]}"
"#;

/// Executes the commands of a page on the embedded server, or on a server that the environment names.
fn run_page(page: &Path, server: Option<&Database>) {
    let name = page.file_name().unwrap().to_str().unwrap();
    let home = folder(&format!("docs-{name}-{}", if server.is_some() { "named" } else { "own" }));
    for made in ["bin", "old", "new", ".local/share/man/man1"] {
        std::fs::create_dir_all(home.join(made)).unwrap();
    }
    let shorter = home.join("bin/riops");
    riops_testkit::write_program(&shorter, SHORTER).unwrap();
    let run = |script: &str| {
        let script = script.replace("/mnt/", &format!("{}/", home.display()));
        let mut command = Command::new("bash");
        let inherited = std::env::vars().map(|(name, _)| name);
        for name in inherited.filter(|name| {
            name.starts_with("PG") || name.starts_with("RIOPS_") || name == "CLICOLOR_FORCE"
        }) {
            command.env_remove(name);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(["-c", &script])
            .current_dir(&home)
            .env("HOME", &home)
            .env("PATH", format!("{}:{path}", home.join("bin").display()))
            .env("REAL_RIOPS", binary())
            .env("RIOPS_SERVER_DIR", server_dir())
            .env("RIOPS_CACHE_DIR", home.join("cache"))
            .env("RIOPS_STORE", home.join("runs.sqlite"))
            .env("RIOPS_DURATION", "0.5")
            .env("RIOPS_WARMUP", "0")
            .env("RIOPS_ROWS", "2000")
            // Variables of a CI service.
            .env("BRANCH", "main")
            .env("COMMIT", "abc")
            .envs(server.into_iter().flat_map(Database::variables));
        CommandOutput::run(&mut command)
    };
    run(preparation(name)).expect(0);
    for block in blocks(page) {
        let Some(script) = block.script() else {
            continue;
        };
        // Blocks share no shell state, such as functions and variables.
        for_each_command(&script, |command| {
            let ran = run(command);
            let expected = block.exit_code();
            assert_eq!(
                ran.code,
                Some(expected),
                "{name}:{}: {command}\n{}{}",
                block.line,
                ran.stdout,
                ran.stderr
            );
        });
    }
    let _ = std::fs::remove_dir_all(&home);
}

/// The lines of a block, if each is a command of riops that stands alone; otherwise the whole block.
fn for_each_command(script: &str, mut run: impl FnMut(&str)) {
    let lines: Vec<&str> = script.lines().filter(|line| !line.is_empty()).collect();
    if lines.iter().all(|line| line.starts_with("riops ") && !line.ends_with('\\')) {
        for line in lines {
            run(&format!("set -o pipefail; {line}"));
        }
    } else {
        run(&format!("set -e -o pipefail\n{script}"));
    }
}

/// Pages whose commands need a program that may be missing.
fn is_supported(page: &Path) -> bool {
    let needs = match page.file_name().unwrap().to_str().unwrap() {
        "cbc.md" => "fio",
        "pitfalls.md" => "psql",
        _ => return true,
    };
    program(needs).is_some()
}

/// Runs the pages from this position on, one of [`GROUPS`]: most of them wait, so that the groups overlap.
fn run_group(first: usize) {
    let pages = pages();
    assert!(pages.len() > 30, "{pages:?}");
    let group = pages.iter().skip(first).step_by(GROUPS);
    group.filter(|page| is_supported(page)).for_each(|page| run_page(page, None));
}

/// Number of tests that run all pages.
const GROUPS: usize = 3;

#[test]
fn every_command_of_readme_and_docs_succeeds_in_a_first_group() {
    run_group(0);
}

#[test]
fn every_command_of_readme_and_docs_succeeds_in_a_second_group() {
    run_group(1);
}

#[test]
fn every_command_of_readme_and_docs_succeeds_in_a_third_group() {
    run_group(2);
}

#[test]
fn the_first_pages_work_on_a_server_that_the_environment_names() {
    let is_first = |page: &&PathBuf| {
        page.ends_with("README.md")
            || page.ends_with("tutorial.md")
            || page.ends_with("questions/connections.md")
    };
    for page in pages().iter().filter(is_first) {
        let name = page.file_stem().unwrap().to_str().unwrap().to_lowercase();
        run_page(page, Some(&database(&format!("docs_{name}"))));
    }
}

#[test]
fn every_command_line_of_an_example_is_accepted() {
    let mut examples = 0;
    for page in pages() {
        // Other blocks show an error.
        let is_accepted =
            |block: &Block| block.info.is_empty() && !block.text.contains("\nriops: ");
        for block in blocks(&page).into_iter().filter(is_accepted) {
            let commands = block.text.lines().filter_map(|line| line.strip_prefix("$ riops run "));
            for command in commands.filter(|command| !command.contains(['…', '|', '>', '('])) {
                let script = format!("{} run {command} --dump-plan", binary().display());
                let mut shell = Command::new("bash");
                shell.args(["-c", &script]).current_dir(root());
                let ran = CommandOutput::run(&mut shell);
                // The files of an example exist only in its page.
                let is_accepted = ran.code != Some(2) || ran.stderr.contains("cannot read");
                assert!(is_accepted, "{}: {command}: {}", page.display(), ran.stderr);
                examples += 1;
            }
        }
    }
    assert!(examples > 10, "{examples} examples were found");
}
