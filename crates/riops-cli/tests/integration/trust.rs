//! Data alone, such as a plan or a stored run, executes no command and writes no file: permission comes from the command line.

use std::path::{Path, PathBuf};

use crate::fixture::{CommandOutput, Database, command, database, folder};

const LIMITS: &str = "--transactions 1 --warmup 0 --protocol simple";

/// A script that creates a file, and the file.
fn script(folder: &Path) -> (PathBuf, PathBuf) {
    let (script, made) = (folder.join("s.sql"), folder.join("made"));
    std::fs::write(&script, format!("\\shell touch {}\nselect 1;\n", made.display())).unwrap();
    (script, made)
}

/// Asserts that the line is refused without `--trust`, and creates the file with it.
fn assert_needs_trust(database: &Database, line: &str, made: &Path) {
    let _ = std::fs::remove_file(made);
    database.riops(line).expect(2).stderr_contains("--trust");
    assert!(!made.exists());
    database.riops(&format!("{line} --trust")).expect(0);
    assert!(made.exists());
}

#[test]
fn a_plan_and_a_stored_run_execute_shell_commands_only_if_they_are_trusted() {
    let database = database("trust_shell");
    let folder = folder("trust-shell");
    let (script, made) = script(&folder);
    let line = format!("run script -f {} --allow-shell {LIMITS}", script.display());
    let plan = folder.join("plan.json");
    std::fs::write(&plan, database.riops(&format!("{line} --dump-plan")).expect(0).stdout).unwrap();
    assert_needs_trust(&database, &format!("run --plan {}", plan.display()), &made);

    database.riops(&line).expect(0);
    assert_needs_trust(&database, "runs rerun last --no-store", &made);
    let file = folder.join("run.json");
    database.riops(&format!("runs export last -o json={}", file.display())).expect(0);
    let other = folder.join("other.sqlite");
    database
        .riops(&format!("runs import {} --store {}", file.display(), other.display()))
        .expect(0);
    let line = format!("runs rerun last --no-store --store {}", other.display());
    assert_needs_trust(&database, &line, &made);
}

#[test]
fn a_plan_executes_an_sql_expression_only_if_it_is_trusted() {
    let database = database("trust_order");
    let folder = folder("trust-order");
    let plan = folder.join("plan.json");
    let line = "run rows --prepare --rows 2000 --order mykey+1 --transactions 5 --warmup 0";
    std::fs::write(&plan, database.riops(&format!("{line} --dump-plan")).expect(0).stdout).unwrap();
    let line = format!("run --plan {} --prepare", plan.display());
    database.riops(&line).expect(2).stderr_contains("--trust");
    database.riops(&format!("{line} --trust")).expect(0);
}

#[test]
fn a_plan_writes_a_transaction_log_only_if_it_is_trusted() {
    let database = database("trust_log");
    let folder = folder("trust-log");
    let line =
        format!("run script -b select-only --prepare --log {}/log {LIMITS}", folder.display());
    let plan = folder.join("plan.json");
    std::fs::write(&plan, database.riops(&format!("{line} --dump-plan")).expect(0).stdout).unwrap();
    let logs = || {
        let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("log")).count()
    };
    let line = format!("run --plan {} --prepare", plan.display());
    database.riops(&line).expect(2).stderr_contains("--trust");
    assert_eq!(logs(), 0);
    database.riops(&format!("{line} --trust")).expect(0);
    assert_ne!(logs(), 0);
}

#[test]
fn an_experiment_file_names_programs_and_files_only_if_it_is_trusted() {
    let folder = folder("trust-experiment");
    let file = folder.join("e.toml");
    let refused = |text: &str, lines: &[&str]| {
        std::fs::write(&file, text).unwrap();
        for line in lines {
            let line = line.replace("FILE", &file.display().to_string());
            CommandOutput::run(&mut command(&line)).expect(2).stderr_contains("--trust");
        }
    };
    let sweep = ["sweep FILE --dry-run"];
    for option in [
        "allow-shell = true",
        "allow_shell = true",
        "server-data = \"/tmp/x\"",
        "cache-dir = \"/tmp/x\"",
        "log = \"/tmp/x\"",
        "order = \"id, f()\"",
        "server-dir = \"/tmp/x\"",
        "server_data = \"/tmp/x\"",
        "cache-dir = \"/tmp/x\"",
        "database = \"host=elsewhere\"",
        "config = \"/tmp/x\"",
        "server-set = \"archive_command=touch /tmp/x\"",
        "server-set = [\"work_mem=1MB\", \"shared_preload_libraries=/tmp/x\"]",
    ] {
        refused(&format!("workload = \"script\"\n[options]\n{option}\n"), &sweep);
        refused(&format!("workload = \"script\"\n[variants.a]\n{option}\n[variants.b]\n"), &sweep);
        refused(&format!("workload = \"script\"\n{option}\n"), &["ab FILE FILE --dry-run"]);
    }
    refused("workload = \"script\"\n[axes]\nserver-dir = [\"/a\", \"/b\"]\n", &sweep);
    for workload in ["script --allow-shell", "ping --server-dir=/tmp/x"] {
        std::fs::write(&file, format!("workload = \"{workload}\"\n")).unwrap();
        for line in ["sweep FILE --dry-run", "ab FILE FILE --dry-run"] {
            let line = line.replace("FILE", &file.display().to_string());
            CommandOutput::run(&mut command(&line)).expect(2).stderr_contains("is an option");
        }
    }
    refused("workload = \"rows\"\n[options]\norder = \"length(pg_read_file('/x'))\"\n", &sweep);
    // Options on the command line are permitted.
    std::fs::write(&file, "workload = \"script\"\n[options]\nserver-dir = \"/a\"\n").unwrap();
    for allowed in ["--trust", "--set server-dir=/b", "--server-dir /b --set server_dir=/c"] {
        let line = format!("sweep {} --dry-run {allowed}", file.display());
        CommandOutput::run(&mut command(&line)).expect(0);
    }
}

#[test]
fn a_stored_experiment_executes_shell_commands_only_if_it_is_trusted() {
    let database = database("trust_resume");
    let folder = folder("trust-resume");
    let (script, made) = script(&folder);
    let line = format!(
        "sweep script -f {} --allow-shell {LIMITS} --axis sessions=1,2 --repeat 1 --time-limit 1ms",
        script.display()
    );
    database.riops(&line).stderr_contains("--trust`");
    let _ = std::fs::remove_file(&made);
    database.riops("sweep --resume --time-limit 1h").expect(2).stderr_contains("--trust");
    assert!(!made.exists());
    database.riops("sweep --resume --time-limit 1h --trust").expect(0);
    assert!(made.exists());
}

#[test]
fn a_configuration_file_gives_no_permission() {
    let folder = folder("trust-config");
    let file = folder.join("riops.toml");
    for option in [
        "allow-shell = true",
        "allow_shell = true",
        "trust = true",
        "server-dir = \"/tmp/x\"",
        "log = \"/tmp/x\"",
        "server-set = \"archive_command=touch /tmp/x\"",
    ] {
        std::fs::write(&file, format!("{option}\n")).unwrap();
        let line = format!("run script --config {} --dump-plan", file.display());
        CommandOutput::run(&mut command(&line))
            .expect(2)
            .stderr_contains("on the command line or in the environment");
    }
    let mut run = command("run script --dump-plan");
    CommandOutput::run(run.env("RIOPS_ALLOW_SHELL", "true")).expect(0);
}

#[test]
fn a_password_in_the_options_of_an_experiment_is_refused_and_not_shown() {
    for line in [
        "sweep ping --axis database=postgresql://u:s3cret@h/a,postgresql://u:s3cret@h/b --dry-run",
        "sweep find-my-limit --set database=postgresql://u:s3cret@h/a --dry-run",
    ] {
        let refused =
            CommandOutput::run(&mut command(line)).expect(2).stderr_contains("PGPASSWORD");
        assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
    }
}
