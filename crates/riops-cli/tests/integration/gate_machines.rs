//! Gates over several machines, which meet in a PostgreSQL store. The machines are processes with connections of their own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fixture::{CommandOutput, Database, database, folder};

const MACHINES: usize = 5;

/// Sleeping takes as long on a busy machine, and much longer than the wait for a processor.
const FILE: &str = r#"
effect = "20%"
rounds-max = 4
repeat-disturbed = 0
[options]
sessions = 1
warmup = "0"
duration = "400ms"
[base]
file = "base.sql"
[head]
file = "head.sql"
[[workload]]
run = "script"
name = "select"
"#;

/// A gate whose head sleeps as long as the connection of the machine says.
struct Gate {
    target: Database,
    store: Database,
    folder: PathBuf,
}

impl Gate {
    fn new(name: &str) -> Self {
        let folder = folder(&format!("machines-{name}"));
        std::fs::write(folder.join("gate.toml"), FILE).unwrap();
        let sleep = |variant: &str, seconds: &str| {
            std::fs::write(folder.join(variant), format!("select pg_sleep({seconds});\n")).unwrap();
        };
        sleep("base.sql", "0.03");
        sleep("head.sql", "current_setting('my.head')::float8");
        let target = database(&format!("machines_{name}"));
        Self { target, store: database(&format!("machines_store_{name}")), folder }
    }

    /// Returns the command of a machine on which the head sleeps for these seconds.
    fn command(&self, machine: usize, seconds: f64) -> Command {
        let mut command =
            self.target.command("gate gate.toml --trust --output json --fleet nightly");
        command.args(["--machines", &MACHINES.to_string(), "--machine", &machine.to_string()]);
        let database = format!("{}&options=-c%20my.head%3D{seconds}", self.target.url);
        command.env("RIOPS_DATABASE", database).env("RIOPS_STORE", &self.store.url);
        command.current_dir(&self.folder);
        command
    }

    /// Runs all machines at the same time. Returns their results.
    fn run(&self, seconds: [f64; MACHINES], code: i32) -> Vec<Value> {
        let started = seconds.iter().enumerate().map(|(machine, seconds)| {
            let mut command = self.command(machine, *seconds);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let started: Vec<_> = started.collect();
        let output = |child: std::process::Child| {
            CommandOutput::from(child.wait_with_output().unwrap()).expect(code).json()
        };
        started.into_iter().map(output).collect()
    }
}

#[test]
fn all_machines_of_a_gate_return_the_same_verdict_and_measure_once() {
    let gate = Gate::new("same");
    let results = gate.run([0.06; MACHINES], 1);
    for result in &results {
        assert_eq!(result["verdict"], "slower", "{result}");
        let workload = &result["workloads"][0];
        assert_eq!(workload["reason"], "5 machines with 4 rounds each");
        assert_eq!(workload["figures"], results[0]["workloads"][0]["figures"]);
        let machines = workload["machines"].as_array().unwrap();
        assert_eq!(machines.len(), MACHINES);
        let experiments = gate.store.value("select count(*) from riops_store.experiments").unwrap();
        assert_eq!(experiments, "5");
    }
    // The result of all is shown again by each.
    let runs = || gate.store.value("select count(*) from riops_store.runs").unwrap();
    assert_eq!(runs(), "80");
    let again = CommandOutput::run(&mut gate.command(2, 0.06)).expect(1);
    let again = again.stderr_contains("another gate needs another name").json();
    assert_eq!(again["workloads"][0]["figures"], results[0]["workloads"][0]["figures"]);
    assert_eq!(runs(), "80");
}

#[test]
fn a_machine_that_contradicts_the_others_is_named_and_decides_nothing() {
    let results = Gate::new("contradiction").run([0.03, 0.03, 0.15, 0.03, 0.03], 0);
    for result in results {
        assert_eq!(result["verdict"], "inconclusive", "{result}");
        for machine in result["workloads"][0]["machines"].as_array().unwrap() {
            assert_eq!(machine["others"].is_object(), machine["machine"] == 2, "{machine}");
        }
    }
}

#[test]
fn a_gate_without_the_other_machines_ends_with_an_error_that_names_them() {
    let gate = Gate::new("missing");
    let mut command = gate.command(1, 0.03);
    let text = "select: machines 0, 2, 3, 4 did not measure";
    CommandOutput::run(command.args(["--machines-within", "0s"])).expect(1).stderr_contains(text);
    // Its runs are kept.
    let runs = gate.store.value("select count(*) from riops_store.runs").unwrap();
    assert_eq!(runs, "16");
    let refused = |arguments: &str, text: &str| {
        let mut command = gate.target.command("gate gate.toml --trust --fleet other");
        command.args(arguments.split_whitespace()).current_dir(&gate.folder);
        command.env("RIOPS_DATABASE", format!("{}&options=-c%20my.head%3D0.03", gate.target.url));
        CommandOutput::run(&mut command).expect(2).stderr_contains(text);
    };
    refused("--machines 4 --machine 0", "at least 5 are needed");
    refused("--machines 5 --machine 0", "--fleet requires --store postgresql://");
    let store = format!("--store {}", gate.store.url);
    refused(&format!("--machines 5 --machine 5 {store}"), "--machine must be below --machines 5");
    refused(&format!("--machines 5 {store}"), "--fleet requires --machine K");
}
