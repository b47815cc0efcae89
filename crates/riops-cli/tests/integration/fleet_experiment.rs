//! Experiments whose runs are measured by a fleet: agent 0 conducts, the others follow.

use std::process::Child;

use serde_json::Value;

use crate::crash::kill;
use crate::fixture::CommandOutput;
use crate::fleet::{Place, start};

const SWEEP: &str = "sweep rows --rows 3000 --batch 10 --update-percent 50 --prepare --axis sessions=3,4 --repeat 2 --warmup 0 --duration 1s --reset restore";

/// Starts the agents of an experiment.
fn agents(place: &Place, line: &str, agents: u32) -> Vec<Child> {
    let line =
        |agent: u32| format!("{line} --fleet e --agents {agents} --agent {agent} --output json");
    let command = |agent: u32| {
        let mut command = place.target.command(&line(agent));
        command.env("RIOPS_STORE", &place.store.url);
        command
    };
    (0..agents).map(|agent| start(&mut command(agent))).collect()
}

fn outputs(children: Vec<Child>) -> Vec<CommandOutput> {
    children
        .into_iter()
        .map(|child| CommandOutput::from(child.wait_with_output().unwrap()))
        .collect()
}

/// Returns the stored runs.
fn runs(place: &Place) -> Vec<Value> {
    let list = |what: &str| {
        let mut command = place.target.command(what);
        CommandOutput::run(command.env("RIOPS_STORE", &place.store.url)).expect(0).json()
    };
    let listed = list("runs list --output json");
    let ids = listed.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
    ids.map(|id| list(&format!("runs show {id} --output json"))).collect()
}

#[test]
fn a_sweep_is_measured_by_all_agents_on_copies_of_the_database() {
    let place = Place::new("sweep");
    let mut ended = outputs(agents(&place, SWEEP, 3)).into_iter();
    let conductor = ended.next().unwrap().expect(0);
    assert_eq!(conductor.json()["cells"].as_array().unwrap().len(), 2);
    for follower in ended {
        let follower = follower.expect(0);
        assert!(follower.stdout.is_empty(), "{}", follower.stdout);
        follower.stderr_contains("agent 0 conducts").stderr_contains("sessions=3, round 2");
    }
    let runs = runs(&place);
    assert_eq!(runs.len(), 4);
    for run in &runs {
        assert_eq!(run["verdict"]["valid"], true, "{}", run["verdict"]);
        assert_eq!(run["agents"].as_array().unwrap().len(), 3);
        assert!(run["checks"].as_array().unwrap().iter().all(|check| check["held"] == true));
    }
    let sessions: Vec<_> = runs.iter().map(|run| run["stages"][0]["sessions"].as_u64()).collect();
    assert_eq!(sessions.iter().filter(|count| **count == Some(3)).count(), 2, "{sessions:?}");
    let experiment = runs[0]["tags"]["experiment"].as_str().unwrap();
    let copy = format!(
        "select count(*) from pg_database where datname = 'riops_{}_run'",
        &experiment[28..]
    );
    assert_eq!(place.store.value(&copy).as_deref(), Some("0"));
    place.require_empty();
}

#[test]
fn an_experiment_whose_conductor_died_is_continued_by_all() {
    let place = Place::new("sweep_resume");
    let mut children = agents(&place, SWEEP, 2);
    place.await_value("select 1 where to_regclass('riops_store.runs') is not null");
    place.await_value("select 1 from riops_store.runs");
    kill(children[0].id(), "-KILL");
    children.remove(0).wait().unwrap();
    // Whether it was within a run or not: the other one ends.
    let follower = outputs(children).remove(0).expect(1);
    follower.stderr_contains("agent 0 has ended, and the experiment is not complete");
    // As if a minute had passed.
    let earlier =
        "update riops_store.fleet_agent set heartbeat_at = heartbeat_at - interval '1 minute'";
    place.store.connect().execute(earlier).unwrap();
    let alone =
        place.target.command("sweep --resume").env("RIOPS_STORE", &place.store.url).output();
    CommandOutput::from(alone.unwrap())
        .expect(2)
        .stderr_contains("the experiment is measured by a fleet of 2, not by one client");
    for ended in outputs(agents(&place, "sweep --resume --allow-changed", 2)) {
        ended.expect(0);
    }
    let valid = runs(&place).iter().filter(|run| run["verdict"]["valid"] == true).count();
    assert!(valid >= 4, "{valid}");
    place.require_empty();
}

#[test]
fn a_search_for_the_saturation_begins_with_one_session_for_each_agent() {
    let place = Place::new("sweep_search");
    let line = "sweep rows --rows 3000 --prepare --find-saturation sessions --sessions-max 4 --warmup 0 --duration 500ms";
    for ended in outputs(agents(&place, line, 2)) {
        ended.expect(0);
    }
    let runs = runs(&place);
    let fewest = runs.iter().filter_map(|run| run["stages"][0]["sessions"].as_u64()).min();
    assert_eq!(fewest, Some(2));
    assert!(runs.iter().all(|run| run["agents"].as_array().unwrap().len() == 2));
}

#[test]
fn experiments_that_a_fleet_cannot_measure_are_refused_before_the_first_run() {
    let place = Place::new("sweep_refused");
    let refused = |line: &str, text: &str| {
        let mut command = place.target.command(line);
        command.env("RIOPS_STORE", &place.store.url);
        CommandOutput::run(&mut command).expect(2).stderr_contains(text);
    };
    let fleet = "sweep rows --rows 3000 --axis sessions=1,4 --fleet e --agents 2";
    refused(fleet, "each agent of an experiment needs its number: --agent K; agent 0 conducts");
    refused(&format!("{fleet} --agent 0"), "--agents 2 exceeds --sessions 1");
    refused(&format!("{fleet} --agent 2"), "--agent 2 must be less than --agents 2");
    assert_eq!(place.store.value("select to_regclass('riops_store.runs')"), None);
}
