//! Live figures of a run: metrics, JSON lines, and the feed beside the store.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use riops::host::Interrupt;
use riops::record::LivePhase;
use riops::store::StoreLocation;
use riops::store::live::source_of;
use serde_json::Value;

use crate::fixture::{database, tcp_url};
use crate::serve::{Reply, request};

#[test]
fn metrics_listen_serves_the_metrics_during_the_run() {
    let database = database("metrics_listen");
    let line = "run ping -c 1 --warmup 0 --duration 5m --interval 100ms --label a\\b \
                --metrics-listen 127.0.0.1:0 --metrics-token 0123456789abcdef";
    let mut run =
        database.command(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find_map(|line| line.strip_prefix("metrics: http://").map(str::to_owned));
    let (address, path) = url.as_deref().unwrap().split_once('/').unwrap();
    // The first interval line follows the first point.
    lines.find(|line| line.contains("tx/s")).unwrap();
    let path = format!("/{path}");
    let get = |headers: &str| request(address, "GET", &path, headers, "");
    assert_eq!(get("").status, 401);
    let token = "Authorization: Bearer 0123456789abcdef\r\n";
    let Reply { status, head, body } = get(token);
    assert_eq!(status, 200, "{body}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(body.contains(r#"label="a\\b",stage="ping, select1"}"#), "{body}");
    assert!(body.contains("# TYPE riops_transactions_total counter"), "{body}");
    assert!(body.contains("phase=\"measuring\"} 1\n"), "{body}");
    let open = get(&format!("{token}Accept: application/openmetrics-text\r\n"));
    assert!(open.head.contains("application/openmetrics-text"), "{}", open.head);
    assert!(open.body.ends_with("# EOF\n"), "{}", open.body);
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn addresses_that_cannot_be_used_are_errors_before_the_run() {
    let database = database("metrics_refused");
    let run =
        |listen: &str| database.riops(&format!("run ping --duration 1s --metrics-listen {listen}"));
    run("0.0.0.0:0").expect(2).stderr_contains("set a token with --metrics-token");
    run("nonsense").expect(2).stderr_contains("is not an address to listen on");
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap().to_string();
    run(&address).expect(1).stderr_contains("another program uses this port");
    assert!(database.riops("runs list").stdout.contains("no stored runs"));
}

#[test]
fn interval_json_prints_each_interval_and_no_interval_lines() {
    let database = database("interval_json");
    let line =
        "run ping -c 1 --warmup 0 --duration 300ms --interval 100ms --interval-json --output json";
    let run = database.riops(line).expect(0);
    let is_json = |line: &&str| line.starts_with('{');
    let points: Vec<Value> = run
        .stderr
        .lines()
        .filter(is_json)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let record = run.json();
    let series = record["stages"][0]["series"].as_array().unwrap();
    assert_eq!(points.len(), series.len());
    for (point, stored) in points.iter().zip(series) {
        assert_eq!(point["stage"], "ping, select1");
        assert_eq!(point["run"], record["id"]);
        assert_eq!(
            (&point["t_s"], &point["transactions"]),
            (&stored["t_s"], &stored["transactions"])
        );
    }
    assert!(!run.stderr.contains("tx/s"), "{}", run.stderr);
}

#[test]
fn a_run_is_published_beside_its_file_and_not_without_a_store() {
    let database = database("live_file");
    let directory = database.store.with_extension("sqlite.live");
    let line = "run ping -c 1 --warmup 0 --duration 5m --interval 100ms";
    for (options, is_published) in [("", true), ("--no-store", false)] {
        let mut run = crate::fixture::start_until(
            &mut database.command(&format!("{line} {options}")),
            "tx/s",
        );
        assert_eq!(directory.exists(), is_published, "{options}");
        run.kill().unwrap();
        run.wait().unwrap();
        // A reader removes what a killed run has left.
        let location = StoreLocation::File(database.store.clone());
        assert_eq!(source_of(&location, &Interrupt::new()).runs().unwrap(), []);
        let _ = std::fs::remove_dir(&directory);
    }
}

#[test]
fn a_run_is_published_in_a_postgresql_store_until_it_ends() {
    let database = database("live_postgresql");
    let store = tcp_url("live_postgresql");
    let location = StoreLocation::parse(&store, |_| None).unwrap();
    let mut source = source_of(&location, &Interrupt::new());
    assert_eq!(source.runs().unwrap(), [], "no store yet");
    let line = "run ping -c 1 --warmup 0 --duration 5m --interval 100ms --label live";
    let mut command = database.command(line);
    let mut run = crate::fixture::start_until(command.env("RIOPS_STORE", &store), "tx/s");
    let id = loop {
        let runs = source.runs().unwrap();
        if let [run] = runs.as_slice()
            && run.points_seen > 2
        {
            assert_eq!((run.label.as_deref(), run.phase), (Some("live"), LivePhase::Measuring));
            break run.id;
        }
        std::thread::yield_now();
    };
    // A killed writer sends no heartbeat; its rows disappear when they are stale.
    run.kill().unwrap();
    run.wait().unwrap();
    database
        .connect()
        .execute("update riops_store.live_runs set heartbeat_at = now() - interval '1 minute'")
        .unwrap();
    assert_eq!(source.runs().unwrap(), []);
    let line = "run ping -c 1 --warmup 0 --duration 200ms --interval 100ms";
    let again =
        crate::fixture::CommandOutput::run(database.command(line).env("RIOPS_STORE", &store));
    again.expect(0);
    assert_eq!(source.runs().unwrap(), [], "a run that ended is not live");
    let left = format!("select count(*)::text from riops_store.live_runs where id <> '{id}'");
    assert_eq!(database.value(&left).as_deref(), Some("0"));
}
