//! Several processes that run one plan together, and meet in a PostgreSQL store.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::crash::kill;
use crate::fixture::{self, CommandOutput, Database, database, folder, start_until};
use crate::server::command_on;

/// A database of the server under test, and one for the store.
pub(crate) struct Place {
    pub(crate) target: Database,
    pub(crate) store: Database,
}

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let target = database(&format!("fleet_{name}"));
        let store = database(&format!("fleet_{name}_store"));
        Self { target, store }
    }

    fn command(&self, line: &str, agents: u32) -> Command {
        let fleet = format!("--fleet f --agents {agents} --output json");
        let mut command = self.target.command(&format!("{line} {fleet}"));
        command.env("RIOPS_STORE", &self.store.url);
        command
    }

    /// Runs an agent for each number.
    fn run(&self, line: &str, agents: u32) -> Fleet {
        let start =
            |agent: u32| start(&mut self.command(&format!("{line} --agent {agent}"), agents));
        let children: Vec<Child> = (0..agents).map(start).collect();
        Fleet::wait(children)
    }

    /// Waits until a query on the store returns a value.
    pub(crate) fn await_value(&self, sql: &str) {
        while !matches!(self.store.connect().query_value(sql), Ok(Some(_))) {
            std::thread::yield_now();
        }
    }

    pub(crate) fn require_empty(&self) {
        let rows = "select (select count(*) from riops_store.fleet) + (select count(*) from riops_store.fleet_agent)
                         + (select count(*) from riops_store.fleet_start)";
        assert_eq!(self.store.value(rows).as_deref(), Some("0"));
        let locks = "select count(*) from pg_locks lock join pg_stat_activity a using (pid)
                      where locktype = 'advisory' and a.datname = current_database()";
        assert_eq!(self.store.value(locks).as_deref(), Some("0"));
    }
}

pub(crate) fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The outputs of all agents.
struct Fleet(Vec<CommandOutput>);

impl Fleet {
    fn wait(children: Vec<Child>) -> Self {
        Self(
            children
                .into_iter()
                .map(|child| CommandOutput::from(child.wait_with_output().unwrap()))
                .collect(),
        )
    }

    /// Returns the record of the fleet, which exactly one agent has printed. All ended with this code.
    fn record(self, code: i32) -> Value {
        let mut records = Vec::new();
        // If the code is another one, the output with the record says most.
        let (printed, others): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|output| !output.stdout.is_empty());
        for output in printed.into_iter().chain(others) {
            let output = output.expect(code);
            if !output.stdout.is_empty() {
                records.push(output.json());
            }
        }
        assert_eq!(records.len(), 1);
        records.remove(0)
    }
}

fn sum(record: &Value, field: &str) -> u64 {
    let agents = record["agents"].as_array().unwrap();
    agents.iter().map(|agent| agent["stages"][0][field].as_u64().unwrap()).sum()
}

#[test]
fn a_breach_of_all_agents_together_ends_the_run() {
    let place = Place::new("breach");
    // Neither agent alone has more than 30 transactions per second.
    let line = "run rows --rows 1000 --batch 10 --prepare -c 4 --rate 40 --warmup 0 --duration 1h --threshold tps<30 --abort-on-threshold";
    let record = place.run(line, 2).record(99);
    assert_eq!((&record["status"], &record["verdict"]["valid"]), (&"done".into(), &true.into()));
    let [threshold] = record["thresholds"].as_array().unwrap().as_slice() else {
        panic!("{}", record["thresholds"]);
    };
    assert_eq!((&threshold["held"], &threshold["ended_run"]), (&false.into(), &true.into()));
    assert!((30.0..45.0).contains(&threshold["found"].as_f64().unwrap()), "{threshold}");
    let agents = record["agents"].as_array().unwrap();
    let seconds = |agent: &Value| agent["stages"][0]["seconds"].as_f64().unwrap();
    assert!((seconds(&agents[0]) - seconds(&agents[1])).abs() < 0.02, "{agents:?}");
    place.require_empty();
}

#[test]
fn eight_agents_are_one_verified_load() {
    let place = Place::new("eight");
    let line = "run rows --rows 10000 --batch 10 --update-percent 50 --prepare -c 20 --warmup 500ms --duration 3s --label whole --tag a=b";
    let record = place.run(line, 8).record(0);
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    assert_eq!((&record["label"], &record["tags"]["a"]), (&"whole".into(), &"b".into()));
    assert_eq!(record["agents"].as_array().unwrap().len(), 8);
    let stage = &record["stages"][0];
    assert_eq!(stage["sessions"], 20);
    let details = stage["session_details"].as_array().unwrap();
    let numbers: Vec<_> =
        details.iter().map(|session| session["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    // Session n is one of agent n modulo 8.
    for (agent, known) in record["agents"].as_array().unwrap().iter().enumerate() {
        let own = details
            .iter()
            .skip(agent)
            .step_by(8)
            .flat_map(|session| session["operations"].as_array().unwrap());
        let counted: u64 = own.map(|operation| operation["transactions"].as_u64().unwrap()).sum();
        assert_eq!(known["stages"][0]["transactions"], counted);
    }
    assert_eq!(sum(&record, "sessions"), 20);
    assert_eq!(sum(&record, "transactions"), stage["transactions"].as_u64().unwrap());
    // The counters of the server, which only one agent compared with the changes of all.
    let checks = record["checks"].as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["held"] == true), "{checks:?}");
    let series = stage["series"].as_array().unwrap();
    let counted: u64 = series.iter().map(|point| point["transactions"].as_u64().unwrap()).sum();
    assert_eq!(counted, stage["transactions"].as_u64().unwrap());
    // From the histograms of all agents, which are not kept.
    assert!(series.iter().all(|point| point["p99_us"].is_f64() && point["histograms"].is_null()));
    // The starts are times of the store's clock. The store is on this machine, so the offset is within the uncertainty.
    let agents = record["agents"].as_array().unwrap();
    for agent in agents {
        let [offset, reach] =
            ["offset_s", "uncertainty_s"].map(|name| agent["clock"][name].as_f64().unwrap());
        assert!(offset.abs() <= reach + 5e-6, "{}", agent["clock"]);
    }
    let starts: BTreeSet<&str> =
        agents.iter().map(|agent| agent["stages"][0]["started_at"].as_str().unwrap()).collect();
    let at = |text: &&str| text.parse::<jiff::Timestamp>().unwrap();
    let apart = starts.last().map(at).unwrap().duration_since(starts.first().map(at).unwrap());
    assert!(apart.as_secs_f64() < 0.02, "{starts:?}");
    place.require_empty();
    let listed = CommandOutput::run(
        place.target.command("runs list --output json").env("RIOPS_STORE", &place.store.url),
    );
    assert_eq!(listed.expect(0).json().as_array().unwrap().len(), 1);
    place.target.riops("verify rows").expect(0);
}

#[test]
fn four_agents_load_every_row_once() {
    for method in ["insert", "copy", "procedure"] {
        let place = Place::new(&format!("load_{method}"));
        let line = format!("run load --rows 50007 --batch-size 100 --method {method} -c 6");
        let record = place.run(&line, 4).record(0);
        assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
        assert_eq!((sum(&record, "sessions"), &record["stages"][0]["rows"]), (6, &50007.into()));
        let rows = "select count(*) || ' ' || count(distinct id) || ' ' || min(id) || ' ' || max(id) from riops.test_table";
        assert_eq!(place.target.value(rows).as_deref(), Some("50007 50007 0 50006"));
        let entries = "select count(*) || ' ' || (select state from riops.dataset) from riops.run";
        assert_eq!(place.target.value(entries).as_deref(), Some("0 complete"));
        place.target.riops("verify load").expect(0);
        place.require_empty();
    }
}

/// Contents of a table after the same number of transactions with the same seed.
fn contents(agents: u32, line: &str, sql: &str) -> Option<String> {
    let place = Place::new(&format!("same_{agents}_{}", &line[4..7]));
    place.target.connect().execute("create table seen (client int, value int)").unwrap();
    let record = place.run(line, agents).record(0);
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    place.require_empty();
    place.target.value(sql)
}

#[test]
fn the_same_seed_gives_the_same_statements_whatever_the_number_of_agents() {
    let file = folder("fleet-script").join("seen.sql");
    let script = "\\set value random(1, 1000000)\ninsert into seen values (:client_id, :value);\n";
    std::fs::write(&file, script).unwrap();
    let script = format!(
        "run script --file {} -c 16 --transactions 10000 --warmup 0 --seed 7",
        file.display()
    );
    let sql = "select count(*) || md5(string_agg(client || '/' || value, ',' order by client, value)) from seen";
    let one = contents(1, &script, sql).unwrap();
    assert!(one.starts_with("10000"));
    assert_eq!([2, 8].map(|agents| contents(agents, &script, sql).unwrap()), [one.clone(), one]);
    let rows = "run rows --rows 5000 --batch 10 --update-percent 100 --prepare -c 9 --transactions 1000 --warmup 0 --seed 7";
    let sql =
        "select md5(string_agg(mykey || '/' || scratch, ',' order by mykey)) from riops.rows_0001";
    let one = contents(1, rows, sql);
    assert_eq!([2, 8].map(|agents| contents(agents, rows, sql)), [one.clone(), one]);
}

#[test]
fn a_rate_applies_to_all_agents_together() {
    let place = Place::new("rate");
    let line = "run ping -c 6 --rate 300 --warmup 0 --duration 2s --threshold tps>290";
    let record = place.run(line, 3).record(0);
    assert_eq!(record["plan"]["schedule"]["constant"]["per_s"], 300.0);
    assert_eq!(record["stages"][0]["schedule"]["intended"], 600);
    assert_eq!(record["thresholds"][0]["held"], true, "{}", record["thresholds"]);
    let breached = place.run("run ping -c 6 --warmup 0 --duration 1s --threshold p99<1us", 3);
    assert_eq!(breached.record(99)["thresholds"][0]["held"], false);
    place.require_empty();
}

#[test]
fn the_series_of_each_agent_is_kept_on_request() {
    let place = Place::new("kept");
    let line = "run ping -c 4 --warmup 0 --duration 1s --interval 200ms --keep-agents";
    let record = place.run(line, 2).record(0);
    for agent in record["agents"].as_array().unwrap() {
        let stage = &agent["stages"][0];
        assert!(stage["histogram"].is_string(), "{agent}");
        let points = stage["series"].as_array().unwrap();
        let sum: u64 = points.iter().map(|point| point["transactions"].as_u64().unwrap()).sum();
        assert_eq!(Some(sum), stage["transactions"].as_u64());
    }
    let page = folder("fleet-kept-page").join("page.html");
    let mut report = place.target.command(&format!("report last -o html={}", page.display()));
    CommandOutput::run(report.env("RIOPS_STORE", &place.store.url)).expect(0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Transactions of each agent"));
    let mut alone = place.target.command("run ping --keep-agents");
    CommandOutput::run(&mut alone).expect(2).stderr_contains("--fleet");
}

const LONG: &str =
    "run rows --rows 2000 --batch 10 --update-percent 50 --prepare -c 6 --warmup 0 --duration 6s";
const MEASURING: &str =
    "select 1 from riops_store.fleet_start where start_s < extract(epoch from clock_timestamp())";

/// Starts three agents, and waits until they measure.
fn start_measuring(place: &Place, line: &str) -> Vec<Child> {
    let start = |agent: u32| start(&mut place.command(&format!("{line} --agent {agent}"), 3));
    let children = (0..3).map(start).collect();
    place.await_value("select 1 where to_regclass('riops_store.fleet_start') is not null");
    place.await_value(MEASURING);
    children
}

#[test]
fn an_agent_that_dies_makes_the_result_invalid_and_leaves_nothing() {
    // The first agent has prepared, and shows the run.
    for killed in [0, 2] {
        let place = Place::new(&format!("killed_{killed}"));
        let mut children = start_measuring(&place, LONG);
        let mut dead = children.remove(killed);
        kill(dead.id(), "-KILL");
        dead.wait().unwrap();
        if killed == 2 {
            // A clock that was set back must not make the dead one live for a year.
            let later = "update riops_store.fleet_agent set heartbeat_at = heartbeat_at + interval '1 year' where number = 2";
            place.store.connect().execute(later).unwrap();
        }
        let record = Fleet::wait(children).record(3);
        let reasons = record["verdict"]["reasons"].to_string();
        assert!(reasons.contains(&format!("agent {killed}: lost: no heartbeat for")), "{reasons}");
        let lost = &record["agents"][killed];
        assert!(lost["status"].is_null() && lost["stages"].is_null(), "{lost}");
        assert_eq!(record["stages"][0]["sessions"], 4);
        place.require_empty();
        // The ledger knows that a run has not reported its changes.
        let verified = place.target.riops("verify rows");
        assert!(
            verified.stdout.contains("a run did not report its changes"),
            "{}{}",
            verified.stdout,
            verified.stderr
        );
    }
}

#[test]
fn the_name_of_a_dead_fleet_is_free_after_a_minute_and_the_next_fleet_removes_its_rows() {
    let place = Place::new("all_killed");
    for mut child in start_measuring(&place, LONG) {
        kill(child.id(), "-KILL");
        child.wait().unwrap();
    }
    let again = "run ping -c 2 --warmup 0 --duration 1s";
    let refused = CommandOutput::run(&mut place.command(again, 1)).expect(1);
    refused.stderr_contains("cannot join fleet \"f\": it is running already");
    // As if a minute had passed, or the clock had been set back by as much.
    let earlier = "update riops_store.fleet_agent set heartbeat_at = clock_timestamp() + interval '1 minute' * (case number when 0 then 2 else -1 end)";
    place.store.connect().execute(earlier).unwrap();
    CommandOutput::run(&mut place.command(again, 1)).expect(0);
    place.require_empty();
}

#[test]
fn an_interrupt_of_one_agent_ends_all() {
    let place = Place::new("interrupt");
    let children = start_measuring(&place, LONG);
    kill(children[1].id(), "-INT");
    let record = Fleet::wait(children).record(130);
    assert_eq!(record["status"], "interrupted");
    assert!(record["stages"][0]["transactions"].as_u64().unwrap() > 0);
    assert!(record["checks"].as_array().unwrap().iter().all(|check| check["held"] == true));
    place.require_empty();
}

#[test]
fn an_agent_that_was_stopped_reports_for_how_long() {
    for waits_for_the_store in [false, true] {
        let place = Place::new(&format!("stopped_{waits_for_the_store}"));
        let children = start_measuring(&place, LONG);
        let mut holder = place.store.connect();
        if waits_for_the_store {
            let lock = "begin; select 1 from riops_store.fleet_agent where number = 2 for update";
            holder.execute(lock).unwrap();
            place.await_value(
                "select 1 from pg_stat_activity
                  where datname = current_database() and wait_event_type = 'Lock'",
            );
        }
        kill(children[2].id(), "-STOP");
        place.await_value(
            "select 1 from riops_store.fleet_agent where number = 2 and heartbeat_at < clock_timestamp() - interval '6 s'",
        );
        drop(holder);
        kill(children[2].id(), "-CONT");
        let record = Fleet::wait(children).record(3);
        let reasons = record["verdict"]["reasons"].to_string();
        assert!(reasons.contains("agent 2: its process did not run for"), "{reasons}");
        assert!(record["agents"][2]["stopped_s"].as_f64().unwrap() > 3.0);
        assert!(record["checks"].as_array().unwrap().iter().all(|check| check["held"] == true));
        place.require_empty();
    }
}

#[test]
fn an_agent_ends_the_fleet_if_all_others_die_at_the_end() {
    let place = Place::new("last_one");
    let mut children = start_measuring(&place, LONG);
    let last = children.pop().unwrap();
    kill(last.id(), "-STOP");
    // The others have entered their changes into the ledger, and wait for the last one.
    place.await_value(
        "select 1 from riops_store.fleet_agent where state = 'settled' having count(*) = 2",
    );
    for mut other in children {
        kill(other.id(), "-KILL");
        other.wait().unwrap();
    }
    kill(last.id(), "-CONT");
    let record = CommandOutput::from(last.wait_with_output().unwrap()).expect(3).json();
    for agent in 0..2 {
        let failure = record["agents"][agent]["failure"].as_str().unwrap();
        assert!(failure.starts_with("lost: no heartbeat for"), "{failure}");
    }
    // The changes of the dead are in the ledger.
    let checks = record["checks"].as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["held"] == true), "{checks:?}");
    place.require_empty();
    place.target.riops("verify rows").expect(0).stdout_contains("all 6 checks passed");
}

#[test]
fn agents_that_do_not_fit_are_refused() {
    let place = Place::new("refused");
    let line = "run ping -c 4 --warmup 0 --duration 1s";
    let refused = |line: &str, agents, code, text: &str| {
        CommandOutput::run(&mut place.command(line, agents)).expect(code).stderr_contains(text);
    };
    refused(&format!("{line} --agent 2"), 2, 2, "--agent 2 must be less than --agents 2");
    refused(line, 5, 2, "--agents 5 exceeds --sessions 4: each agent needs at least one session");
    refused("run cbc --size 1 -q", 2, 2, "the workload cbc is not supported in a fleet");
    let load = "run load --rows 1000 -c 4 --batch-size 100";
    refused(
        &format!("{load} --method copy-file"),
        2,
        2,
        "--method copy-file is not supported in a fleet",
    );
    refused(&format!("{load} --method insert,copy"), 2, 2, "more than one method is not supported");
    refused(
        &format!("{line} --agents-within 1s"),
        2,
        1,
        "does not start: 1 of 2 agents have joined",
    );
    place.require_empty();
    let first =
        start_until(&mut place.command(&format!("{line} --agent 0"), 2), "this is agent 0 of 2");
    refused(&format!("{line} --agent 0"), 2, 1, "agent 0 has joined already, on ");
    refused(line, 3, 1, "its number of agents is 2, this agent's is 3");
    let other = line.replace("--duration 1s", "--duration 2s");
    refused(&other, 2, 1, "their plans differ: \"stop\" is");
    let second = start(&mut place.command(line, 2));
    // The first one printed to the pipe of `start_until`.
    CommandOutput::from(second.wait_with_output().unwrap()).expect(0);
    CommandOutput::from(first.wait_with_output().unwrap()).expect(0);
    place.require_empty();
    let file =
        CommandOutput::run(&mut place.target.command(&format!("{line} --fleet f --agents 2")))
            .expect(2);
    file.stderr_contains("--fleet requires --store postgresql://");
}

#[test]
fn an_interrupt_before_the_start_leaves_nothing() {
    let place = Place::new("waiting");
    let line = "run rows --rows 1000 --batch 10 --update-percent 50 --prepare -c 4 --warmup 0 --duration 1s";
    let joining = start_until(&mut place.command(line, 2), "this is agent 0 of 2");
    kill(joining.id(), "-INT");
    CommandOutput::from(joining.wait_with_output().unwrap()).expect(130);
    place.require_empty();
    // One whose sessions are connected, and which has entered its run into the ledger.
    let connected =
        start_until(&mut place.command(&format!("{line} --agent 0"), 2), "this is agent 0 of 2");
    let mut other =
        start_until(&mut place.command(&format!("{line} --agent 1"), 2), "waiting for agent 0");
    kill(other.id(), "-STOP");
    place.await_value("select 1 from riops_store.fleet_agent where number = 0 and stage = 1");
    kill(connected.id(), "-INT");
    CommandOutput::from(connected.wait_with_output().unwrap()).expect(130);
    kill(other.id(), "-KILL");
    other.wait().unwrap();
    let open = "select count(*) from riops.run where ended_at is null";
    assert_eq!(place.target.value(open).as_deref(), Some("0"));
}

#[test]
fn a_failure_before_the_start_ends_all_with_its_reason() {
    let place = Place::new("failure");
    // Only the first agent would prepare the dataset.
    let line = "run rows --rows 1000 --batch 10 -c 4 --warmup 0 --duration 1s";
    let Fleet(outputs) = place.run(line, 2);
    let [first, second] = <[CommandOutput; 2]>::try_from(outputs).ok().unwrap();
    first.expect(1).stderr_contains("riops prepare rows");
    second.expect(1).stderr_contains("does not start: agent 0 on ");
    place.require_empty();
}

#[test]
fn a_restart_of_the_store_does_not_disturb_the_run() {
    let place = Place::new("restart");
    let home = folder("fleet-store");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let url = CommandOutput::run(&mut command_on(&home, "server url --tcp"))
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    // The port must be the same after the restart.
    let port = url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
    let command = |agent: u32| {
        let mut command = place.command(&format!("{LONG} --agent {agent}"), 2);
        command.env("RIOPS_STORE", &url);
        command
    };
    let second = start(&mut command(1));
    let first = start_until(&mut command(0), "measuring");
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    CommandOutput::run(&mut command_on(&home, &format!("server start --server-port {port}")))
        .expect(0);
    let outputs = [first, second]
        .map(|child| CommandOutput::from(child.wait_with_output().unwrap()).expect(0));
    let record = outputs.iter().find(|output| !output.stdout.is_empty()).unwrap().json();
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
}

#[test]
fn runs_that_were_started_by_hand_are_merged() {
    let place = Place::new("by_hand");
    let client = |seed: u32| {
        let line = format!(
            "run ping -c 2 --warmup 0 --duration 2s --seed {seed} --label hand --output json"
        );
        start(&mut place.target.command(&line))
    };
    let children: Vec<Child> = (1..=2).map(client).collect();
    let records: Vec<Value> =
        Fleet::wait(children).0.into_iter().map(|output| output.expect(0).json()).collect();
    let merged = place.target.riops("runs merge hand --label both --output json").json();
    let count = |record: &Value| record["stages"][0]["transactions"].as_u64().unwrap();
    assert_eq!(count(&merged), records.iter().map(count).sum::<u64>());
    assert_eq!((&merged["label"], &merged["plan"]["sessions"]), (&"both".into(), &4.into()));
    let show = format!("runs show {}", merged["id"].as_str().unwrap());
    place.target.riops(&show).expect(0).stdout_contains("both").stdout_contains("agents ");
    let twice = place.target.riops("runs merge hand").expect(1);
    twice.stderr_contains("these runs are already merged");
    let refused = place.target.riops("runs merge both hand").expect(1);
    refused.stderr_contains("is already merged");
    place.target.riops("runs merge both").expect(2).stderr_contains("at least two runs");
}

#[test]
fn the_command_line_of_the_job_is_a_fleet_of_one_in_the_environment_of_the_job() {
    let place = Place::new("job");
    let manifest = fixture::command(
        "fleet manifest --agents 1 --image i -- run ping -c 2 --warmup 0 --duration 1s --output json",
    );
    let text = CommandOutput::run(&mut { manifest }).expect(0).stdout;
    let arguments = text.split("args:\n").nth(1).unwrap().lines();
    let arguments = arguments.map_while(|line| line.trim().strip_prefix("- "));
    let arguments: Vec<String> =
        arguments.map(|json| serde_json::from_str(json).unwrap()).collect();
    let mut agent = fixture::command("");
    agent.args(&arguments).env("JOB_COMPLETION_INDEX", "0");
    agent.env("RIOPS_DATABASE", &place.target.url).env("RIOPS_STORE", &place.store.url);
    let record = CommandOutput::run(&mut agent).expect(0).json();
    assert_eq!(record["verdict"]["valid"], true);
    assert_eq!(record["agents"].as_array().unwrap().len(), 1);
    place.require_empty();
}
