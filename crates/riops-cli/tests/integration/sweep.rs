//! `riops sweep` and `riops ab` on a real server.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use riops::host::random_seed;
use serde_json::Value;

use crate::fixture::{CommandOutput, Database, command, database, folder, url_of_role};

/// A short run without a dataset.
/// A number of transactions: in a short time, none may end on a loaded machine.
const PING: &str = "ping --warmup 0 --transactions 300 --interval 100ms";
const TIMED_PING: &str = "ping --warmup 0 --duration 100ms --interval 100ms";

/// The tags of all stored runs, oldest first.
fn tags(database: &Database) -> Vec<Value> {
    let listed = database.riops("runs list --limit 1000 --output json").expect(0).json();
    let mut tags: Vec<_> =
        listed.as_array().unwrap().iter().map(|run| run["tags"].clone()).collect();
    tags.reverse();
    tags
}

fn tag<'a>(tags: &'a Value, name: &str) -> &'a str {
    tags[name].as_str().unwrap_or_else(|| panic!("{name} in {tags}"))
}

#[test]
fn a_sweep_measures_every_combination_in_blocks_and_shows_them_in_a_table() {
    let database = database("sweep_table");
    let line = format!(
        "sweep {PING} --axis pipeline=1,4 --axis protocol=simple,prepared --repeat 2 --seed 1"
    );
    let planned = database.riops(&format!("{line} --dry-run")).expect(0).stdout;
    assert!(planned.contains("4 cells, 2 runs each"), "{planned}");
    assert!(planned.contains("  pipeline=4 protocol=simple\n"), "{planned}");
    assert!(!database.store.exists());
    let text = database.riops(&line).expect(0).stdout;
    assert!(text.contains("8 runs, all valid"), "{text}");
    let tags = tags(&database);
    let runs: BTreeSet<_> =
        tags.iter().map(|tags| (tag(tags, "block"), tag(tags, "cell"))).collect();
    assert_eq!((tags.len(), runs.len()), (8, 8));
    assert!(tags[..4].iter().all(|tags| tag(tags, "block") == "1"), "{tags:?}");
    let refused = database.riops("sweep --list --output csv").expect(2).stderr;
    assert!(refused.contains("text or json, not as csv"), "{refused}");
    let listed = database.riops("sweep --list").expect(0).stdout;
    assert!(listed.contains("sweep ping") && listed.contains("finished"), "{listed}");
    // A finished experiment is shown again.
    let again = database.riops("sweep --resume").expect(0);
    assert_eq!(again.stdout, text);
    assert_eq!(self::tags(&database).len(), 8);
}

#[test]
fn a_sweep_killed_at_random_moments_has_every_cell_once_and_the_same_verdicts() {
    let database = database("sweep_killed");
    let line = format!("sweep {PING} --axis sessions=1,2,3 --repeat 8 --seed 3");
    let seed = random_seed().unwrap();
    let mut kills = 0;
    let mut resumed = false;
    for attempt in 0..200_u64 {
        let line = if resumed { "sweep --resume".to_owned() } else { line.clone() };
        let mut command = database.command(&line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Killed after a random number of lines, in any phase of a run; about twice a run.
        let lines = if kills < 20 { (seed >> (attempt % 48)) % 9 + 2 } else { u64::MAX };
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        for _ in 0..lines {
            let Some(Ok(text)) = stderr.next() else { break };
            resumed |= text.starts_with("run ");
        }
        if kills < 20 {
            child.kill().unwrap();
            kills += 1;
        } else {
            for text in stderr.by_ref() {
                text.unwrap();
            }
        }
        let ended = child.wait_with_output().unwrap();
        if ended.status.success() {
            break;
        }
    }
    assert_eq!(kills, 20);
    let text = database.riops("sweep --resume").expect(0).stdout;
    assert!(text.contains("24 runs, all valid"), "{text}");
    let tags = tags(&database);
    let runs: BTreeSet<_> =
        tags.iter().map(|tags| (tag(tags, "block"), tag(tags, "cell"))).collect();
    assert_eq!((tags.len(), runs.len()), (24, 24), "seed {seed}");
    // The verdicts depend on the stored runs only.
    assert_eq!(database.riops("sweep --resume").expect(0).stdout, text);
}

#[test]
fn a_failed_cell_is_marked_and_measured_again_on_request() {
    let database = database("sweep_failed");
    let missing = database.url.replace("/sweep_failed?", "/sweep_nowhere?");
    let line = format!("sweep {PING} --axis database={},{missing} --repeat 2", database.url);
    let run = database.riops(&line).expect(1);
    assert!(run.stderr.contains("\"sweep_nowhere\" does not exist"), "{}", run.stderr);
    assert!(run.stdout.contains("FAILED"), "{}", run.stdout);
    assert!(!run.stdout.contains("incomplete"), "{}", run.stdout);
    assert_eq!(tags(&database).len(), 2);
    let resumed = database.riops("sweep --resume").expect(1);
    assert!(!resumed.stderr.contains("run "), "{}", resumed.stderr);
    let again = database.riops("sweep --resume --retry-failed").expect(1);
    assert!(again.stderr.contains("\"sweep_nowhere\" does not exist"), "{}", again.stderr);
}

#[test]
fn a_changed_server_is_refused_unless_allowed() {
    let database = database("sweep_changed");
    let line = format!("sweep {PING} --axis sessions=1,2 --repeat 1");
    // Stops before the second run.
    let mut child =
        database.command(&line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let second = |text: &str| text.starts_with("run 2 of 2");
    assert!(stderr.by_ref().any(|text| second(&text.unwrap())));
    child.kill().unwrap();
    child.wait().unwrap();
    let before = tags(&database).len();
    database.connect().execute("alter database sweep_changed set work_mem = '7MB'").unwrap();
    let refused = database.riops("sweep --resume").expect(1);
    assert!(
        refused.stderr.contains("work_mem: ") && refused.stderr.contains("7MB now"),
        "{}",
        refused.stderr
    );
    // Another database is another environment, even if its settings are the same.
    let elsewhere = self::database("sweep_elsewhere");
    let refused = database.riops(&format!("sweep --resume -d {}", elsewhere.url)).expect(1);
    let expected = "database: sweep_changed then, sweep_elsewhere now";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert_eq!(tags(&database).len(), before);
    let allowed = database.riops("sweep --resume --allow-changed").expect(0);
    assert!(allowed.stderr.contains("warning: "), "{}", allowed.stderr);
    assert_eq!(tags(&database).len(), 2);
}

#[test]
fn a_missing_password_is_an_error_and_not_a_failed_run() {
    let database = database("sweep_password");
    let url = database.url.replace("postgres@", "postgres:secret@");
    assert_ne!(url, database.url);
    let line = format!("sweep {TIMED_PING} --axis sessions=1,2 --repeat 1");
    let limited = database.riops(&format!("{line} -d {url} --time-limit 1ms")).expect(0);
    assert!(limited.stderr.contains("time limit reached"), "{}", limited.stderr);
    let resumed = || {
        let mut command = database.command("sweep --resume --time-limit 1h");
        CommandOutput::run(command.env_remove("RIOPS_DATABASE"))
    };
    let refused = resumed().expect(2);
    assert!(refused.stderr.contains("the password for "), "{}", refused.stderr);
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    assert_eq!(tags(&database).len(), 0);
    database.riops(&format!("sweep --resume --time-limit 1h -d {url}")).expect(0);
    assert_eq!(tags(&database).len(), 2);
    // A complete one is only shown.
    resumed().expect(0);
}

#[test]
fn an_experiment_is_conducted_by_one_process_at_a_time() {
    let database = database("sweep_twice");
    let mut child = database
        .command(&format!("sweep {PING} --axis sessions=1,2 --repeat 1 --cool-down 1h"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.by_ref().any(|text| text.unwrap().starts_with("run 2 of 2")));
    let second = database.riops("sweep --resume").expect(1);
    assert!(second.stderr.contains("another riops process"), "{}", second.stderr);
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: String = stderr.map(|line| line.unwrap() + "\n").collect();
    assert!(rest.contains("interrupted; continue with `riops sweep --resume"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(tags(&database).len(), 1);
}

#[test]
fn a_file_is_conducted_with_its_rules_and_replaced_options() {
    let database = database("sweep_file");
    let file = folder("sweep-file").join("batches.toml");
    std::fs::write(
        &file,
        "description = \"What is the best batch size?\"\nworkload = \"rows\"\nrepeat = 2\nreset = \"restore\"\n\
         [options]\nrows = 1000\nduration = \"1h\"\nwarmup = \"0s\"\nprepare = true\nupdate-percent = 50\ninterval = \"100ms\"\n\
         [axes]\nbatch = [1, 100]\n[between]\nvacuum = true\n",
    )
    .unwrap();
    let line = format!("sweep {} --set duration=100ms --output json", file.display());
    let view = database.riops(&line).expect(0).json();
    assert_eq!(view["name"], "batches");
    assert_eq!(view["axes"][0]["values"], serde_json::json!(["1", "100"]));
    // Each run updated a copy, and the dataset of the database stayed as it was prepared.
    let rows = database.value("select count(*) from riops.rows_0001");
    assert_eq!(rows.as_deref(), Some("1000"));
    let copies =
        database.value("select count(*) from pg_database where datname like 'riops_%_run'");
    assert_eq!(copies.as_deref(), Some("0"));
}

#[test]
fn an_ab_test_stops_as_soon_as_the_difference_is_certain() {
    let database = database("ab");
    let folder = folder("ab-files");
    for (name, batch) in [("small", 1), ("large", 500)] {
        let text = format!(
            "workload = \"rows\"\nrows = 2000\nprepare = true\nsessions = 1\nbatch = {batch}\n"
        );
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
    let path = |name: &str| folder.join(name).display().to_string();
    let line = format!(
        "ab {} {} --set duration=100ms --set warmup=0 --set interval=100ms --set label=compared --rounds-max 10",
        path("small.toml"),
        path("large.toml")
    );
    let run = database.riops(&line).expect(0);
    assert!(run.stdout.contains("FASTER"), "{}", run.stdout);
    let tags = tags(&database);
    assert!(tags.len() < 40 && tags.len().is_multiple_of(4), "{}", tags.len());
    let of_first = tags[..4].iter().map(|tags| (tag(tags, "block"), tag(tags, "cell")));
    let small = of_first.filter(|(block, cell)| (*block, *cell) == ("1", "variant=small"));
    assert_eq!(small.count(), 2);
    // Its page names what differs, and a report of its label shows it.
    assert!(run.stdout.contains("plan: rows.batch"), "{}", run.stdout);
    let report = database.riops("report compared -o markdown").expect(0);
    let report = report.stderr_contains("belong to the experiment");
    assert!(report.stdout.starts_with("## riops ab "), "{}", report.stdout);
    assert!(report.stdout.contains("FASTER"), "{}", report.stdout);
    let one = tags.len() - 1;
    let id = database.riops("runs list --limit 1000 --output json").expect(0).json()[one]["id"]
        .to_string();
    let single = database.riops(&format!("report {} -o markdown", id.trim_matches('"'))).expect(0);
    assert!(single.stdout.starts_with("## riops: rows"), "{}", single.stdout);
}

#[test]
fn an_ab_test_names_the_settings_of_the_sessions_that_differ() {
    let database = database("ab_settings");
    let folder = folder("ab-settings");
    let path = |name: &str| folder.join(name).display().to_string();
    for (name, cost) in [("low.toml", "1.1"), ("high.toml", "40")] {
        let url = format!("{}&options=-c%20random_page_cost%3D{cost}", database.url);
        let text = format!(
            "workload = \"ping\"\ndatabase = '{url}'\nsessions = 1\ntransactions = 20\nwarmup = \"0\"\n"
        );
        std::fs::write(folder.join(name), text).unwrap();
    }
    let line = format!(
        "ab {} {} --rounds-max 4 --trust --output json",
        path("low.toml"),
        path("high.toml")
    );
    let mut command = database.command(&line);
    let json = CommandOutput::run(command.env_remove("RIOPS_DATABASE")).expect(0).json();
    let differences = json["differences"].as_array().unwrap();
    let expected = |difference: &&Value| {
        difference["topic"] == "setting" && difference["name"] == "random_page_cost"
    };
    let setting = differences.iter().find(expected).unwrap_or_else(|| panic!("{differences:?}"));
    assert_eq!((&setting["a"], &setting["b"]), (&"1.1".into(), &"40".into()));
}

#[test]
fn the_search_for_the_number_of_sessions_ends_with_the_law_and_an_open_loop() {
    let database = database("saturation_sessions");
    let line = format!("sweep {TIMED_PING} --find-saturation sessions --sessions-max 8");
    let run = database.riops(&line).expect(0);
    assert!(run.stdout.contains("saturat"), "{}", run.stdout);
    let levels: BTreeSet<_> =
        tags(&database).iter().map(|tags| tag(tags, "level").to_owned()).collect();
    assert!(levels.contains("sessions=1") && levels.contains("sessions=2"), "{levels:?}");
    assert!(levels.iter().any(|level| level.starts_with("rate=")), "{levels:?}");
}

#[test]
fn the_search_for_the_rate_needs_a_threshold_and_finds_a_rate() {
    let database = database("saturation_rate");
    let line = format!("sweep {TIMED_PING} -c 1 --find-saturation rate");
    let missing = database.riops(&line).expect(2);
    assert!(missing.stderr.contains("--threshold"), "{}", missing.stderr);
    let run = database.riops(&format!("{line} --threshold response.p95<100ms")).expect(0);
    assert!(run.stdout.contains("rate"), "{}", run.stdout);
    let levels: Vec<_> = tags(&database).iter().map(|tags| tag(tags, "level").to_owned()).collect();
    assert_eq!(levels[0], "sessions=1");
    assert!(levels[1].starts_with("rate="), "{levels:?}");
}

#[test]
fn the_ready_experiments_are_complete() {
    // Some of them set parameters of the embedded server.
    let on_embedded = |line: &str| command(&format!("{line} --dry-run"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let guide = std::fs::read_to_string(folder.join("../docs/experiments.md")).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        for file in [name, path.to_str().unwrap()] {
            let plan =
                CommandOutput::run(&mut on_embedded(&format!("sweep {file}"))).expect(0).stdout;
            assert!(plan.starts_with(&format!("{name}: ")), "{plan}");
        }
        assert!(guide.contains(&format!("experiments/{name}.toml")), "{name}");
        count += 1;
    }
    assert_eq!(count, 11);
    let ab = |name: &str| CommandOutput::run(&mut on_embedded(&format!("ab {name}")));
    let plan = ab("compare-two-servers").expect(0).stdout;
    assert!(plan.contains("variant=small") && plan.contains("at most"), "{plan}");
    let refused = ab("oltp-threads").expect(2).stderr;
    assert!(
        refused.contains("compares two variants; this experiment has 6: use riops sweep"),
        "{refused}"
    );
}

#[test]
fn invalid_experiments_are_usage_errors_before_the_first_run() {
    let database = database("sweep_usage");
    let cases = [
        ("sweep", "nothing to measure"),
        ("sweep nowhere.toml", "cannot be read as an experiment file"),
        ("sweep rows --axis sesions=1,2", "did you mean sessions?"),
        ("sweep rows --axis batch=0,1", "cell batch=0"),
        ("sweep rows --axis batch=1,1", "twice"),
        ("sweep rows --axis sessions=1,2 --sessions 3", "--sessions"),
        ("sweep rows --axis batch=1,2 --baseline batch=3", "there is no cell"),
        (
            "sweep rows --axis batch=1,2 --graph a.png",
            "--graph has no effect: an experiment has several runs",
        ),
        ("sweep load --find-saturation sessions", "repeats transactions"),
        ("sweep rows --find-saturation sessions --axis sessions=1,2", "cannot be combined"),
        ("sweep rows --find-saturation sessions --rate 5", "omit --rate"),
        ("ab", "specify a workload and --vary NAME=A,B"),
        ("sweep rows --axis seed=1,2", "cannot be an axis"),
        ("sweep rows --find-saturation sessions --axis threads=1,2", "cannot be combined"),
        ("sweep --resume --axis batch=1,2", "cannot be used with"),
        ("ab --resume --effect 5%", "cannot be used with"),
        ("ab --resume --rounds-max 12", "cannot be used with"),
        ("sweep --list -o html=a.html", "listed as text or json, not as html"),
    ];
    for (line, expected) in cases {
        let run: CommandOutput = database.riops(line);
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
        run.expect(2);
    }
    assert!(!database.store.exists());
    database.riops("sweep --resume nothing").expect(1);
}

#[test]
fn a_search_opens_no_more_sessions_than_the_role_may_have() {
    let database = database("saturation_limit");
    let mut admin = database.connect();
    admin.execute("create role few login password 'x' connection limit 7").unwrap();
    let line = format!("sweep {TIMED_PING} --find-saturation sessions -o json");
    let mut search = database.command(&line);
    search.env("RIOPS_DATABASE", url_of_role("few", &database.conninfo.database));
    let ended = CommandOutput::run(&mut search);
    admin.execute("drop role few").unwrap();
    let ended = ended.expect(0).stderr_contains("at most 4 sessions: the server, the role");
    assert!(!ended.stderr.contains("failed"), "{}", ended.stderr);
    let cell = &ended.json()["cells"][0];
    let levels = cell["levels"].as_array().unwrap().iter();
    let most = levels.filter_map(|level| level["level"]["sessions"].as_u64()).max();
    assert_eq!(most, Some(4), "{cell}");
}
