//! Runs on several nodes: session placement, failure and restart of a node, metrics per node.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::crash::kill;
use crate::fixture::start_until;

const INSERTS: &str = "run oltp insert -c 9 -j 2 --warmup 0 --interval 200ms";

fn values_per_node(record: &Value, field: &str) -> Vec<u64> {
    let nodes = record["stages"][0]["nodes"].as_array().unwrap();
    nodes.iter().map(|node| node[field].as_u64().unwrap()).collect()
}

fn prepare_cluster(name: &str) -> Cluster {
    let cluster = Cluster::start(name);
    cluster.riops("prepare oltp --table-size 1000").expect(0);
    cluster.share("sbtest1");
    cluster
}

#[test]
fn sessions_of_a_killed_node_move_to_other_nodes_and_return_after_its_restart() {
    let mut cluster = prepare_cluster("killed-node");
    let spread = cluster.riops(&format!("{INSERTS} --transactions 300 --output json"));
    let spread = spread.expect(0).stderr_contains("127.0.0.3").json();
    assert_eq!(values_per_node(&spread, "sessions"), [3, 3, 3]);
    assert_eq!(values_per_node(&spread, "transactions").iter().sum::<u64>(), 300);
    assert_eq!(spread["stages"][0]["nodes"][1]["placement"], "cloud.region.zone2");

    let line = format!("{INSERTS} -t 1h --on-error continue --rebalance --reconnect-timeout 1m");
    let child = start_until(&mut cluster.command(&line), " tx/s");
    cluster.kill(1);
    while cluster.sessions(0) + cluster.sessions(2) < 9 {
        std::thread::yield_now();
    }
    cluster.restart(1);
    // The connections of the probes do not insert.
    let inserting = "select count(*) from pg_stat_activity where application_name like 'riops/%' and query ilike 'insert%'";
    while cluster.value(1, inserting).as_deref() != Some("3") {
        std::thread::yield_now();
    }
    // The restarted node executes transactions again.
    let inserted = |cluster: &Cluster| cluster.value(1, "select last_value from riops.ids");
    let before = inserted(&cluster);
    while inserted(&cluster) == before {
        std::thread::yield_now();
    }
    kill(child.id(), "-INT");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stdout));
    let record = cluster.riops("runs show last --output json").expect(0).json();
    assert_eq!(values_per_node(&record, "sessions"), [3, 3, 3], "{}", record["stages"][0]["nodes"]);
    let node = &record["stages"][0]["nodes"][1];
    assert!(node["errors"].as_u64() >= Some(3), "{node}");
    let outages = node["outages"].as_array().unwrap();
    assert!(
        outages.iter().any(|outage| outage["without_success_s"].as_f64() > Some(0.0)),
        "{node}"
    );
    // Only lost connections count as reconnects, not the sessions that --rebalance moved back.
    let stage = &record["stages"][0];
    assert_eq!(
        stage["reconnects"].as_u64(),
        Some(values_per_node(&record, "reconnects").iter().sum())
    );
    assert!(stage["reconnects"].as_u64() >= Some(3));
    let verified = cluster.riops("verify oltp").expect(0);
    assert!(!verified.stdout.contains("did not report"), "{}", verified.stdout);
    let text = cluster.riops("runs show last").expect(0).stdout;
    assert!(text.contains("without a success") && text.contains("imbalance"), "{text}");
    assert_eq!(cluster.name(), "killed-node");
}

#[test]
fn each_spread_policy_selects_the_expected_nodes() {
    let cluster = prepare_cluster("spreads");
    let ran = |options: &str| {
        let line = format!("{INSERTS} --transactions 90 --output json {options}");
        cluster.riops(&line).expect(0).json()
    };
    // Nodes that the spread excludes are not part of the run.
    let near = ran("--spread topology:cloud.region.zone2:1,cloud.region.*:2");
    assert_eq!(values_per_node(&near, "sessions"), [9]);
    assert_eq!(near["stages"][0]["nodes"][0]["placement"], "cloud.region.zone2");
    let fewest = values_per_node(&ran("--spread least-connections"), "sessions");
    assert_eq!((fewest.len(), fewest.iter().sum::<u64>()), (3, 9));
    let primary = ran("--spread primary");
    assert_eq!(values_per_node(&primary, "sessions"), [3, 3, 3]);
    // The counters of one server do not cover three nodes.
    assert_eq!(primary["stages"][0]["database"], Value::Null);
    cluster.riops(&format!("{INSERTS} --cold")).expect(2).stderr_contains("several nodes");
    cluster
        .riops(&format!("{INSERTS} --spread replica"))
        .expect(1)
        .stderr_contains("no node of the cluster");
    // Like a service without load balancing: one node does all the work, and the result warns about it.
    let off = cluster.riops(&format!("{INSERTS} --spread off --transactions 90")).expect(0);
    assert!(off.stdout.contains("WARNING: 127.0.0.1"), "{}", off.stdout);
    let record = cluster.riops("runs show last --output json").expect(0).json();
    assert_eq!(values_per_node(&record, "sessions"), [9, 0, 0]);
    assert_eq!(record["stages"][0]["imbalance"], 3.0);
}

#[test]
fn skips_a_node_that_is_down_at_the_start_and_uses_the_host_list_as_nodes() {
    let cluster = prepare_cluster("down-at-start");
    cluster.execute(0, "alter function pg_catalog.yb_servers() rename to no_servers");
    cluster.kill(1);
    let line = format!("{INSERTS} --transactions 90 --output json");
    let mut with_hosts = cluster.command(&line);
    with_hosts.env("RIOPS_DATABASE", cluster.url(&[0, 1, 2]));
    let ran = crate::fixture::CommandOutput::run(&mut with_hosts).expect(0);
    let record = ran.stderr_contains("gets no sessions for now").json();
    // Two workers connect concurrently, so the odd session can be on either node.
    let sessions = values_per_node(&record, "sessions");
    assert!([[5, 0, 4], [4, 0, 5]].iter().any(|even| sessions == *even), "{sessions:?}");
}

#[test]
fn reports_the_metrics_that_each_node_serves_over_http() {
    let cluster = prepare_cluster("http");
    // Two scrapes of the second node. On the other nodes, the port is closed.
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        for reads in [100, 900] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4_096];
            let count = stream.read(&mut request).unwrap();
            assert!(String::from_utf8_lossy(&request[..count]).contains("reset_histograms=false"));
            let name = "handler_latency_yb_tserver_TabletServerService_Read_count";
            let body = format!("{name}{{metric_type=\"server\"}} {reads} 1\n");
            let status = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length:";
            write!(stream, "{status} {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    let line = format!("{INSERTS} --transactions 90 --output json --metrics-port {port}");
    let record = cluster.riops(&line).expect(0).json();
    server.join().unwrap();
    let nodes = &record["stages"][0]["nodes"];
    assert!(nodes[1]["storage_reads_per_s"].as_f64() > Some(0.0), "{nodes}");
    assert_eq!(nodes[0]["storage_reads_per_s"], Value::Null);
}

#[test]
fn sessions_use_only_the_first_nodes() {
    let cluster = prepare_cluster("first-nodes");
    let line = |options: &str| format!("{INSERTS} --transactions 90 --output json {options}");
    let hosts = |record: &Value| -> Vec<String> {
        let nodes = record["stages"][0]["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["node"].as_str().unwrap().to_owned()).collect()
    };
    let two = cluster.riops(&line("--nodes 2")).expect(0).json();
    assert_eq!(values_per_node(&two, "sessions").len(), 2);
    assert_eq!(values_per_node(&two, "sessions").iter().sum::<u64>(), 9);
    assert!(hosts(&two)[1].starts_with("127.0.0.2:"), "{:?}", hosts(&two));
    assert_eq!(two["plan"]["nodes"], 2);
    cluster
        .riops(&line("--nodes 4"))
        .expect(2)
        .stderr_contains("--nodes 4: the server has 3 nodes");
    // The user names the second node, and the run uses the first one: the counters are the first node's counters.
    let mut elsewhere = cluster.command(&line("--nodes 1"));
    elsewhere.env("RIOPS_DATABASE", cluster.url(&[1]));
    let one = crate::fixture::CommandOutput::run(&mut elsewhere).expect(0).json();
    assert!(one["target"]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{one}");
    assert!(one["stages"][0]["database"].is_object());
    // Hosts instead of yb_servers().
    cluster.execute(0, "alter function pg_catalog.yb_servers() rename to no_servers");
    let mut with_hosts = cluster.command(&line("--nodes 2"));
    with_hosts.env("RIOPS_DATABASE", cluster.url(&[0, 2, 1]));
    let record = crate::fixture::CommandOutput::run(&mut with_hosts).expect(0).json();
    assert!(hosts(&record)[1].starts_with("127.0.0.3:"), "{:?}", hosts(&record));
    assert_eq!(hosts(&record).len(), 2);
    cluster.riops(&line("--nodes 2")).expect(2).stderr_contains("the server has 1 node");
}

#[test]
fn options_about_nodes_are_refused_by_a_server_without_them() {
    let database = crate::fixture::database("no_nodes");
    for (option, expected) in [
        ("--rebalance", "--rebalance has no effect: the sessions use one node"),
        (
            "--metrics-port 9100",
            "--metrics-port has no effect: the server has no nodes of YugabyteDB",
        ),
    ] {
        let line = format!("run ping --transactions 1 --warmup 0 --no-store {option}");
        database.riops(&line).expect(2).stderr_contains(expected);
    }
}
