//! Runs from plan files and reruns of stored runs.

use std::path::Path;

use riops_testkit::{Fault, PORT, Proxy};
use serde_json::Value;

use crate::fixture::{CommandOutput, Database, database, folder};
use crate::server::command_on;

/// A fixed number of reads and updates in one session. With several sessions, the faster ones would run more
/// transactions, and the statements would differ between runs.
const SHORT: &str = "run rows --rows 2000 --batch 3 --update-percent 40 -c 1 --warmup 0 \
                     --transactions 60 --seed 11 --interval 100ms --output json";

fn prepare_database(name: &str) -> Database {
    let database = database(name);
    database.riops("prepare rows --rows 2000 --seed 1").expect(0);
    database
}

/// Runs the command on the database through the proxy.
fn run_through(proxy: &Proxy, database: &Database, line: &str) -> CommandOutput {
    let conninfo = &database.conninfo;
    let url = format!(
        "host={} port={PORT} user={} dbname={}",
        proxy.folder().display(),
        conninfo.user,
        conninfo.database
    );
    let mut command = database.command(line);
    command.env("RIOPS_DATABASE", url);
    CommandOutput::run(&mut command)
}

/// Returns the Bind messages of a connection: statement names and parameter values.
fn binds(sent: &[u8]) -> Vec<Vec<u8>> {
    let length = |at: usize| {
        sent.get(at..at + 4).map(|bytes| u32::from_be_bytes(bytes.try_into().unwrap()) as usize)
    };
    // The startup message has no type byte.
    let mut at = length(0).unwrap_or(0);
    let mut binds = Vec::new();
    while let (Some(&kind), Some(length)) = (sent.get(at), length(at + 1)) {
        if kind == b'B' {
            binds.push(sent[at..=at + length].to_vec());
        }
        at += 1 + length;
    }
    binds
}

/// Returns the Bind messages of the session of each run.
fn transactions(proxy: &Proxy) -> Vec<Vec<Vec<u8>>> {
    proxy.sent().iter().map(|sent| binds(sent)).filter(|binds| binds.len() >= 60).collect()
}

#[test]
fn rerun_sends_the_same_statements_byte_for_byte() {
    let database = prepare_database("rerun_bytes");
    let proxy = Proxy::start_for(Path::new(&database.conninfo.address()), |_| Fault::None).unwrap();
    let first = run_through(&proxy, &database, SHORT).expect(0).json();
    let again = run_through(&proxy, &database, "runs rerun --output json").expect(0);
    let without_dataset = |record: &Value| {
        let mut plan = record["plan"].clone();
        plan.as_object_mut().unwrap().remove("dataset");
        plan
    };
    assert_eq!(without_dataset(&again.json()), without_dataset(&first));
    assert_eq!(again.json()["plan"]["dataset"]["rows"], 2000);
    assert_ne!(again.json()["id"], first["id"]);
    assert!(!again.stderr.contains("differs from the stored run"), "{}", again.stderr);
    let other = run_through(&proxy, &database, "runs rerun --seed 12 --output json").expect(0);
    assert!(other.stderr.contains("seed: 11, now 12"), "{}", other.stderr);
    let runs = transactions(&proxy);
    let [first, again, other] = runs.as_slice() else { panic!("{} runs", runs.len()) };
    assert_eq!(first.len(), 60);
    // assert_eq would print all statements.
    assert!(first == again, "the rerun sent different statements");
    assert!(first != other, "a run with another seed sent the same statements");
}

#[test]
fn run_from_a_dumped_plan_sends_the_same_statements() {
    let database = prepare_database("rerun_file");
    let proxy = Proxy::start_for(Path::new(&database.conninfo.address()), |_| Fault::None).unwrap();
    let plan = database.riops(&format!("{SHORT} --dump-plan")).expect(0);
    assert_eq!(database.value("select 1 from riops.run"), None);
    let file = folder("plan").join("plan.json");
    std::fs::write(&file, &plan.stdout).unwrap();
    let line = format!("run --plan {} --output json", file.display());
    let record = run_through(&proxy, &database, &line).expect(0).json();
    assert_eq!(record["plan"], plan.json());
    run_through(&proxy, &database, SHORT).expect(0);
    let runs = transactions(&proxy);
    assert!(runs.len() == 2 && runs[0] == runs[1], "{} runs", runs.len());
}

#[test]
fn rejects_invalid_plans_with_the_reason() {
    let database = database("rerun_refused");
    let plan = database.riops("run rows --seed 1 --dump-plan").expect(0).json();
    let file = folder("bad_plan").join("plan.json");
    let run = |plan: &Value| {
        std::fs::write(&file, plan.to_string()).unwrap();
        database.riops(&format!("run --plan {}", file.display())).expect(2)
    };
    let changed = |key: &str, value: Value| {
        let mut plan = plan.clone();
        plan[key] = value;
        plan
    };
    run(&changed("sesions", 5.into())).stderr_contains("unknown key \"sesions\"");
    run(&changed("sessions", 0.into())).stderr_contains("--sessions must be at least 1");
    run(&changed("sessions", "many".into())).stderr_contains("invalid plan");
    run(&changed("dataset", serde_json::json!({"colour": 5})))
        .stderr_contains("no parameter \"colour\"");
    run(&changed("rows", serde_json::json!({"batch": 5}))).stderr_contains("invalid plan");
    run(&Value::Null).stderr_contains("but has none");
    run(&changed("oltp", serde_json::json!({}))).stderr_contains("but has rows and oltp");
    let mut work = plan["rows"].clone();
    work["batches"] = serde_json::json!([10, 100]);
    run(&changed("rows", work))
        .stderr_contains("\"batch\" differs from its value in the first stage");
    let load = database.riops("run load --rows 1000 --seed 1 --dump-plan").expect(0).json();
    for (key, value, message) in [
        ("pipeline", 5.into(), "--pipeline is not supported by load"),
        ("warmup_s", 1.into(), "--warmup is not supported by load"),
        ("stop", serde_json::json!({"rows": 5}), "contradicts `stop`"),
    ] {
        let mut plan = load.clone();
        plan[key] = value;
        run(&plan).stderr_contains(message);
    }
    database
        .riops("run --plan /nowhere/plan.json")
        .expect(2)
        .stderr_contains("cannot read the plan");
    database.riops("run").expect(2).stderr_contains("nothing to run");
    let misplaced = database.riops("run --no-store rows").expect(2);
    misplaced.stderr_contains("--no-store must follow the workload");
    database.riops("runs rerun 00000000").expect(1).stderr_contains("has no runs yet");
}

#[test]
fn rerun_rejects_or_prints_differences_from_the_stored_run() {
    let database = prepare_database("rerun_differs");
    database.riops(SHORT).expect(0);
    database.riops("prepare rows --rows 3000 --seed 1 --recreate").expect(0);
    database.riops("runs rerun").expect(2).stderr_contains("--rows 3000, not 2000");
    database.riops("prepare rows --rows 2000 --filler 9 --seed 1 --recreate").expect(0);
    database.riops("runs rerun").expect(2).stderr_contains("--filler 9, not 1");
    database.riops("prepare rows --rows 2000 --seed 2 --recreate").expect(0);
    let again = database.riops("runs rerun").expect(0);
    let difference = "differs from the stored run: dataset seed: 1, now 2";
    assert!(again.stderr.contains(difference), "{}", again.stderr);
}

#[test]
fn rerun_prepares_a_dataset_with_the_same_parameters() {
    let database = prepare_database("rerun_prepares");
    database.riops("run rows -c 1 --warmup 0 --transactions 20").expect(0);
    database.riops("cleanup rows").expect(0);
    database.riops("runs rerun").expect(1).stderr_contains("--prepare");
    let again = database.riops("runs rerun --prepare --output json").expect(0).json();
    assert_eq!(again["target"]["dataset"]["rows"]["rows"], 2000);
}

/// Runs the command, reruns the stored run, and returns both records.
fn run_and_rerun(database: &Database, line: &str) -> (Value, Value) {
    let first = database.riops(&format!("{line} --output json")).expect(0).json();
    let again = database.riops("runs rerun --output json").expect(0).json();
    (first, again)
}

#[test]
fn every_workload_can_be_rerun() {
    let database = database("rerun_all");
    let short = "-c 1 --warmup 0 --transactions 20";
    let (first, again) = run_and_rerun(&database, "run load --rows 3000 --method copy --drop");
    assert_eq!(again["stages"][0]["rows"], first["stages"][0]["rows"]);
    // The loaded table remains, so the next load has to drop it.
    database.riops("run load --rows 3000 --method copy --drop --seed 4").expect(0);
    let (first, again) = run_and_rerun(&database, &format!("run point {short} --op mixed:50/50"));
    assert_eq!(again["point"], first["point"]);
    assert_eq!(again["plan"]["seed"], first["plan"]["seed"]);
    let (first, again) = run_and_rerun(
        &database,
        &format!("run oltp {short} --prepare --tables 2 --table-size 500"),
    );
    assert_eq!(again["plan"]["oltp"], first["plan"]["oltp"]);
    // The first run has moved rows.
    for field in ["id", "oltp"] {
        assert_eq!(again["target"]["dataset"][field], first["target"]["dataset"][field]);
    }
    let (first, again) = run_and_rerun(&database, "run cbc --size 0.02 --place schema");
    assert_eq!(again["plan"]["cbc"], first["plan"]["cbc"]);
    database.riops("run load --rows 3000 --drop").expect(0);
    database.riops("run load --rows 3000 --drop --label last").expect(0);
    database.riops("runs rerun last").expect(0);
    database.riops("cleanup load").expect(0);
    database.riops("run load --rows 3000 --seed 9").expect(0);
    database.riops("runs rerun").expect(1).stderr_contains("riops cleanup load");
}

#[test]
fn a_rerun_on_the_default_server_names_another_server_of_the_stored_run() {
    let home = folder("rerun-default");
    let database = prepare_database("rerun_other");
    let short = "run rows --rows 2000 --batch 3 --warmup 0 --duration 100ms --interval 100ms";
    let mut first = command_on(&home, short);
    let first = first.env_remove("RIOPS_SERVER_DATA").env_remove("RIOPS_SERVER_SET");
    CommandOutput::run(first.env("RIOPS_DATABASE", &database.url)).expect(0);
    let again = CommandOutput::run(&mut command_on(&home, "runs rerun --prepare")).expect(0);
    let notice = "warning: the stored run used database rerun_other on ";
    assert!(again.stderr.contains(notice), "{}", again.stderr);
    assert!(again.stderr.contains("this run uses database postgres on "), "{}", again.stderr);
    let same = CommandOutput::run(&mut command_on(&home, "runs rerun")).expect(0);
    assert!(!same.stderr.contains("the stored run used"), "{}", same.stderr);
}
