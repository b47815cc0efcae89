//! Foreign load, the limits of the client, and what the sessions waited for.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use riops_testkit::{Fault, PORT, Proxy, copy_program};
use serde_json::Value;

use crate::fixture::{CommandOutput, command, database, folder, is_root, start_until, tcp_url};

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn warnings(record: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let warnings = record["verdict"]["warnings"].as_array().cloned().unwrap_or_default();
    warnings.iter().map(|warning| (text(&warning["kind"]), text(&warning["text"]))).collect()
}

#[test]
fn a_server_behind_a_proxy_on_the_same_machine_is_local() {
    let database = database("tunnel");
    let run = |url: &str| {
        let mut run = command("run ping --time 0.1 --warmup 0 --output json");
        run.env("RIOPS_DATABASE", url).env("RIOPS_STORE", &database.store);
        let record = CommandOutput::run(&mut run).expect(0).json();
        let device = record["target"]["storage"].is_object();
        (record["client"]["shares_machine_with_server"].as_bool().unwrap(), device)
    };
    assert_eq!(run(&database.url), (true, true));
    assert_eq!(run(&tcp_url("tunnel")), (true, true));
    let proxy = Proxy::start_for(Path::new(&database.conninfo.address()), |_| Fault::None).unwrap();
    let tunnel =
        format!("host={} port={PORT} dbname=tunnel user=postgres", proxy.folder().display());
    // The process of the session is visible, although both ends of the connection differ.
    assert_eq!(run(&tunnel), (true, true));
}

#[test]
fn foreign_processes_are_named_and_invalid_under_strict() {
    let database = database("foreign_cpu");
    // A shell under another name.
    let busy = folder("foreign_cpu").join("busy-neighbor");
    copy_program(Path::new("/bin/sh"), &busy).unwrap();
    let start =
        || Running(Command::new(&busy).args(["-c", "while :; do :; done"]).spawn().unwrap());
    // More than other tests use at the same time: the three busiest are named.
    let _neighbors: Vec<Running> = (0..6).map(|_| start()).collect();
    let run = database.riops("run ping --time 2 --warmup 0 -c 1 --output json").expect(0);
    let record = run.json();
    let reported = warnings(&record);
    let (_, text) = reported.iter().find(|(kind, _)| kind == "foreign_cpu").unwrap();
    assert!(text.contains("busy-neighbor"), "{text}");
    assert!(record["stages"][0]["neighbors"]["cpu_share"].as_f64().unwrap() >= 0.05);
    assert!(record["stages"][0]["server_cpu_s"].as_f64().unwrap() > 0.0);
    let run = database.riops("run ping --time 2 --warmup 0 -c 1 --strict").expect(3);
    assert!(run.stdout.contains("NO: disturbed: other processes used"), "{}", run.stdout);
    assert!(run.stdout.contains("(--strict)"), "{}", run.stdout);
}

#[test]
fn other_sessions_of_the_server_are_named() {
    let database = database("foreign_sessions");
    let mut other = database.connect();
    other.execute("set application_name = 'the neighbor'").unwrap();
    let loop_sql =
        "do $$ begin loop perform sum(i) from generate_series(1, 1000) as i; end loop; end $$";
    let interrupt = riops::host::Interrupt::new();
    other.set_interrupt(&interrupt);
    let neighbor = std::thread::spawn(move || other.execute(loop_sql));
    let record = database.riops("run ping --time 2 --warmup 0 -c 1 --output json").expect(0).json();
    interrupt.request();
    assert!(neighbor.join().unwrap().is_err());
    let reported = warnings(&record);
    let (_, text) = reported.iter().find(|(kind, _)| kind == "foreign_sessions").unwrap();
    assert!(text.contains("the neighbor"), "{text}");
}

#[test]
fn wait_events_of_every_workload_are_sampled() {
    let database = database("wait_events");
    database.riops("prepare point --rows 1000").expect(0);
    let run = |seconds: u32| {
        let line = format!("run point --op update --time {seconds} --warmup 0 -c 8");
        let text = database.riops(&line).expect(0).stdout;
        let record = database.riops("runs show last --output json").expect(0).json();
        (text, record["stages"][0]["probes"].clone())
    };
    let has_samples = |probes: &serde_json::Value| probes["looks"].as_u64().unwrap() >= 3;
    // On a busy machine, samples are rare.
    let mut runs = [3, 10, 30, 90].into_iter().map(run);
    let (text, probes) = runs.find(|(_, probes)| has_samples(probes)).expect("three samples");
    assert!(text.contains("wait events"), "{text}");
    let shares: f64 = probes["waits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wait| wait["share"].as_f64().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert!(probes["cpu_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn blocks_accessed_by_a_vacuum_are_not_called_exact() {
    let database = database("vacuum_blocks");
    database.riops("prepare rows --rows 1000").expect(0);
    let mut run = database.command("run rows --batch 10 --time 2 --warmup 0 -c 1 --seed 1");
    let run = start_until(&mut run, "measuring");
    database.connect().execute("vacuum riops.rows_0001").unwrap();
    let output = CommandOutput::from(run.wait_with_output().unwrap()).expect(0);
    let text = output.stdout;
    assert!(
        text.contains("LIOPS about ") && text.contains("including blocks accessed by 1 vacuum"),
        "{text}"
    );
}

#[test]
fn a_rate_that_is_not_reached_is_the_headline_and_invalid_under_strict() {
    let database = database("rate_not_reached");
    database.riops("prepare point --rows 1000").expect(0);
    let line = "run point --rate 1e6 --time 1 --warmup 0.2 -c 1";
    let text = database.riops(line).expect(0).stdout;
    let headline = text.lines().nth(2).unwrap();
    assert!(headline.contains("NOT reached: ") && headline.contains(" of 1,000,000"), "{text}");
    assert!(text.contains("of the warm-up still waited"), "{text}");
    assert!(!text.contains("the requested rate was achieved"), "{text}");
    let text = database.riops(&format!("{line} --strict")).expect(3).stdout;
    assert!(text.contains("the rate was not reached: "), "{text}");
}

/// Returns a control group with a quota of a fifth of one CPU, if this user may create one.
fn quota_group() -> Option<PathBuf> {
    let name = format!("riops-test-{}", std::process::id());
    let unified = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let root = Path::new("/sys/fs/cgroup").join(if unified { "" } else { "cpu" });
    let group = root.join(name);
    std::fs::create_dir(&group).ok()?;
    let set = |file: &str, value: &str| std::fs::write(group.join(file), value).is_ok();
    let is_set = if unified {
        set("cpu.max", "20000 100000")
    } else {
        set("cpu.cfs_period_us", "100000") && set("cpu.cfs_quota_us", "20000")
    };
    if !is_set {
        std::fs::remove_dir(&group).unwrap();
    }
    is_set.then_some(group)
}

#[test]
fn a_cpu_quota_of_the_client_is_its_bottleneck() {
    let Some(group) = is_root().then(quota_group).flatten() else {
        return;
    };
    let database = database("cpu_quota");
    let riops = database.command("run ping --time 2 --warmup 0 -c 4 --output json");
    let mut run = Command::new("/bin/sh");
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.display());
    run.args(["-c", &enter]).arg(riops.get_program()).args(riops.get_args());
    run.env("RIOPS_DATABASE", &database.url).env("RIOPS_STORE", &database.store);
    let output = CommandOutput::run(&mut run);
    std::fs::remove_dir(&group).unwrap();
    let record = output.expect(0).json();
    let cpu = &record["stages"][0]["client_cpu"];
    assert!(cpu["throttled_share"].as_f64().unwrap() >= 0.1, "{cpu}");
    assert!(cpu["limits"].as_array().unwrap().contains(&"quota".into()), "{cpu}");
    assert_eq!(record["client"]["cgroup_cpus"], 0.2);
}

#[test]
fn another_run_on_the_same_dataset_is_named() {
    let database = database("shared_dataset");
    database.riops("prepare rows --rows 1000").expect(0);
    let mut first = database.command("run rows --batch 1 --time 60 --warmup 0 -c 1");
    let first = Running(start_until(&mut first, "measuring"));
    let run = database.riops("run rows --batch 1 --time 0.2 --warmup 0 -c 1").expect(0);
    assert!(run.stderr.contains("warning: others use the dataset: process "), "{}", run.stderr);
    assert!(
        run.stdout.contains("DISTURBED    others used the dataset: process "),
        "{}",
        run.stdout
    );
    let strict = database.riops("run rows --batch 1 --time 0.2 --warmup 0 -c 1 --strict").expect(3);
    assert!(strict.stdout.contains("disturbed: others used the dataset"), "{}", strict.stdout);
    drop(first);
}
