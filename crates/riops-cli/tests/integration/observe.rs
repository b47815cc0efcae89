//! `riops observe`: measures around a command without getting in its way. Also `--probe`.

use std::io::Write as _;
use std::process::Stdio;

use crate::crash::kill;
use crate::fixture::{
    self, CommandOutput, Database, binary, database, folder, program, start_until,
};
use crate::server::command_on;

fn observe(database: &Database, options: &str, command: &[&str]) -> CommandOutput {
    CommandOutput::run(database.command(&format!("observe {options} --")).args(command))
}

#[test]
fn observe_keeps_the_input_the_output_and_the_exit_code_of_the_command() {
    let database = database("observe_pipes");
    let mut command = database.command("observe --");
    command.args(["sh", "-c", "cat; echo told >&2; exit 3"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = CommandOutput::from(child.wait_with_output().unwrap()).expect(3);
    assert_eq!(output.stdout, "hello\n");
    assert!(output.stderr.contains("told\n"), "{}", output.stderr);
    assert!(output.stderr.contains("NO: the command exited with 3"), "{}", output.stderr);
    let record = database.riops("runs show last --output json").expect(0).json();
    let stage = &record["stages"][0];
    assert_eq!((&record["workload"], &stage["kind"]), (&"observe".into(), &"observed".into()));
    assert_eq!(stage["observed"]["exit_code"], 3);
    assert_eq!(record["verdict"]["valid"], false);
}

#[test]
fn a_count_is_read_before_and_after_and_is_the_main_figure() {
    let database = database("observe_count");
    database.connect().execute("create sequence s; create table t as select 1 as i").unwrap();
    let count = ["--count", "calls=select nextval('s')", "--count", "none=select 5", "--", "true"];
    // No interval ends before the command, even on a busy machine: each reading is a call.
    let mut command = database.command("observe --output json --interval 1h");
    let record = CommandOutput::run(command.args(count)).expect(0).json();
    let stage = &record["stages"][0];
    let counts = stage["observed"]["counts"].as_array().unwrap();
    assert_eq!((&counts[0]["count"], &counts[1]["count"]), (&1.0.into(), &0.0.into()));
    assert_eq!(stage["transactions"], 1);
    assert_eq!(stage["throughput"]["transactions_per_s"], counts[0]["per_s"]);
    let text = database.riops("runs show last").expect(0).stdout;
    assert!(text.contains("count        calls/s ") && text.contains("(1.00 in total)"), "{text}");
    assert!(text.contains("riops generated no load"), "{text}");
    // The command is not started.
    for (count, reason) in [
        ("x=select i / 0 from t", "division by zero"),
        ("x=select 'a'", "no number: \"a\""),
        ("x=select i from t where false", "no value"),
    ] {
        let failing = ["--count", "good=select 1", "--count", count, "--", "echo", "started"];
        let output = CommandOutput::run(database.command("observe").args(failing)).expect(2);
        assert!(output.stderr.contains("the count x cannot be read"), "{}", output.stderr);
        assert!(output.stderr.contains(reason) && output.stdout.is_empty(), "{}", output.stderr);
    }
}

/// A server that is busy ends sessions later than their clients, and counts what they did then.
#[test]
fn a_count_is_complete_although_a_session_ends_after_the_command() {
    let Some(psql) = program("psql") else {
        return;
    };
    let database = database("observe_late");
    database.connect().execute("create table t (i int)").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let connected = folder.path().join("connected");
    let script = format!(
        "{} -X -q -d '{}' -o /dev/null -c '\\! touch {2}' -c 'select pg_sleep(0.3)' \
         -c 'insert into t values (1)' & while ! [ -e {2} ]; do sleep 0.01; done",
        psql.display(),
        database.url,
        connected.display()
    );
    let mut command = database.command("observe --output json");
    let arguments = ["--count", "rows=select count(*) from t", "--", "sh", "-c", &script];
    let record = CommandOutput::run(command.args(arguments)).expect(0).json();
    assert_eq!(record["stages"][0]["observed"]["counts"][0]["count"], 1.0, "{record}");
}

#[test]
fn a_signal_ends_the_command_in_order() {
    let database = database("observe_signal");
    let script = "trap 'echo ended; exit 9' TERM; echo started >&2; while :; do sleep 0.05; done";
    let mut command = database.command("observe --");
    let child = start_until(command.args(["sh", "-c", script]), "started");
    kill(child.id(), "-TERM");
    let output = CommandOutput::from(child.wait_with_output().unwrap()).expect(9);
    assert_eq!(output.stdout, "ended\n");
    let record = database.riops("runs show last --output json").expect(0).json();
    assert_eq!(record["status"], "interrupted");
}

fn warnings(record: &serde_json::Value) -> Vec<String> {
    let warnings = record["verdict"]["warnings"].as_array().into_iter().flatten();
    let observed = warnings.filter(|warning| warning["kind"] == "observed");
    observed.map(|warning| warning["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn processes_that_a_command_leaves_behind_are_named() {
    let database = database("observe_orphans");
    let folder = tempfile::tempdir().unwrap();
    let [id, ended] = ["id", "ended"].map(|name| folder.path().join(name));
    // One that still runs, and one that has ended when the command ends.
    let script = format!(
        "(sleep 600 >/dev/null 2>&1 & echo $! >{0}); (true & echo $! >{1})
        until grep -q sleep /proc/$(cat {0})/comm; do :; done
        until ! grep -qs '^State:.[^Z]' /proc/$(cat {1})/status; do :; done",
        id.display(),
        ended.display()
    );
    let record = observe(&database, "--output json", &["sh", "-c", &script]).expect(0).json();
    let left: u32 = std::fs::read_to_string(&id).unwrap().trim().parse().unwrap();
    kill(left, "-KILL");
    let text = "the command left processes behind, whose further work is not measured: sleep";
    assert_eq!(warnings(&record), [text]);
    let quiet = observe(&database, "--output json", &["sh", "-c", "true & wait"]).expect(0);
    assert_eq!(warnings(&quiet.json()), [""; 0]);
}

#[test]
fn a_command_in_another_database_is_named() {
    let Some(psql) = program("psql") else {
        return;
    };
    let (database, other) = (database("observe_here"), self::database("observe_elsewhere"));
    let psql = psql.display().to_string();
    let here = database.value("select current_database()").unwrap();
    let command = |url: &str| {
        // Until a sample has seen the session. Other tests have samplers in other databases.
        let sql = format!(
            "do $$ begin
            while not exists (select from pg_stat_activity as sampler, pg_stat_activity as own
                               where sampler.query = 'execute riops_observed' and sampler.state = 'idle'
                                 and sampler.datname = '{here}'
                                 and own.pid = pg_backend_pid() and sampler.query_start > own.query_start) loop
                perform pg_stat_clear_snapshot(), pg_sleep(0.01);
            end loop;
        end $$"
        );
        let limit = "set statement_timeout = '10min'";
        let command = [&psql, "-X", "-q", "-d", url, "-o", "/dev/null", "-c", limit, "-c", &sql];
        observe(&database, "--output json", &command).expect(0).json()
    };
    let elsewhere = command(&other.url);
    let [text] = &warnings(&elsewhere)[..] else { panic!("{elsewhere}") };
    assert!(text.starts_with("sessions of the command used database "), "{text}");
    assert!(text.ends_with(&format!("statements in database {here}")), "{text}");
    assert_eq!(warnings(&command(&database.url)), [""; 0]);
}

#[test]
fn a_restart_of_the_server_is_named() {
    let home = folder("observe-restart");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let url = CommandOutput::run(&mut command_on(&home, "server url --tcp")).expect(0).stdout;
    // The port must be the same after the restart.
    let port = url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
    let script = "($0 server stop && $0 server start --server-port $1) >&2";
    let mut command = fixture::command("observe --output json -d");
    command.args([url.trim(), "--", "env", "RIOPS_SERVER_SET=shared_buffers=32MB"]);
    command.arg(format!("RIOPS_SERVER_DATA={}", home.display()));
    command.args(["sh", "-c", script]).arg(binary()).arg(port);
    let record = CommandOutput::run(&mut command).expect(0).json();
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    let text = "the server restarted: its counters do not cover the whole time";
    assert!(warnings(&record).contains(&text.to_owned()), "{record}");
}

#[test]
fn a_plan_that_was_read_needs_trust_for_its_command() {
    let database = database("observe_trust");
    observe(&database, "", &["true"]).expect(0);
    let refused = database.riops("runs rerun last").expect(2);
    assert!(refused.stderr.contains("executes the command true"), "{}", refused.stderr);
    database.riops("runs rerun last --trust").expect(0);
    observe(&database, "", &["riops-no-such-program"]).expect(127);
    let nothing = database.riops("observe").expect(2);
    assert!(nothing.stderr.contains("nothing to observe"), "{}", nothing.stderr);
}

#[test]
fn sessions_of_others_are_observed_for_a_time() {
    let database = database("observe_time");
    let mut session = database.connect();
    let other = std::thread::spawn(move || session.query("select pg_sleep(4)").map(drop));
    let line = "observe --for 2s --interval 500ms --output json";
    let record = database.riops(line).expect(0).json();
    let stage = &record["stages"][0];
    let waits = stage["probes"]["waits"].as_array().unwrap();
    assert!(waits.iter().any(|wait| wait["event"] == "Timeout:PgSleep"), "{waits:?}");
    assert!(stage["probes"]["observed_sessions"].as_f64() > Some(0.5), "{stage}");
    other.join().unwrap().unwrap();
}

#[test]
fn a_sweep_compares_commands_by_a_count() {
    let database = database("observe_sweep");
    database.connect().execute("create sequence s").unwrap();
    let arguments =
        ["--count", "n=select nextval('s')", "--axis", "command=true,sleep 0.1", "--output", "csv"];
    let output = CommandOutput::run(database.command("sweep observe --repeat 1").args(arguments));
    let csv = output.expect(0).stdout;
    let rates = csv.lines().filter(|line| line.contains(",transactions_per_s,"));
    assert_eq!(rates.count(), 2, "{csv}");
}

#[test]
fn probes_are_sampled_each_interval_and_their_errors_do_not_end_the_run() {
    let database = database("probe");
    let arguments = [
        "--probe",
        "one=select 1",
        "--probe",
        "bad=select 1 / (random() > 2)::int",
        "--threshold",
        "probe{name=one}=1",
        "--threshold",
        "probe_max{name=one}<1",
    ];
    let line = "run ping -c 1 --duration 1s --warmup 0 --interval 200ms --output json";
    let record = CommandOutput::run(database.command(line).args(arguments)).expect(99).json();
    let series = record["stages"][0]["query_series"].as_array().unwrap();
    let [one, bad] = series.as_slice() else { panic!("{series:?}") };
    assert!(one["points"].as_array().unwrap().len() >= 3, "{one}");
    assert_eq!(one["points"][0]["value"], 1.0);
    assert!(bad["failures"].as_u64() >= Some(3) && bad["points"].as_array().unwrap().is_empty());
    assert!(bad["error"].as_str().unwrap().contains("division by zero"), "{bad}");
    let thresholds = record["thresholds"].as_array().unwrap();
    assert_eq!((&thresholds[0]["held"], &thresholds[1]["held"]), (&true.into(), &false.into()));
    let csv = database.riops("runs export last -o csv --series").expect(0).stdout;
    assert!(csv.lines().next().unwrap().ends_with(",probe_bad,probe_one"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().ends_with(",,1"), "{csv}");
    let metrics = database.riops("runs export last -o openmetrics").expect(0).stdout;
    assert!(metrics.contains("riops_probe{") && metrics.contains("name=\"one\""), "{metrics}");
    let text = database.riops("runs show last").expect(0).stdout;
    assert!(
        text.contains("probe        one: mean 1.00 · min 1.00 · max 1.00 (select 1)"),
        "{text}"
    );
    let refused = database.riops("run ping --threshold probe{name=lag}<5").expect(2);
    assert!(refused.stderr.contains("add --probe 'lag=SELECT …'"), "{}", refused.stderr);
}
