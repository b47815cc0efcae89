use super::discovery::Probed;
use super::*;

/// Nodes a, b and c in the zones a, b and c, not yet probed.
fn nodes(spread: &str, roles: [Role; 3], writes: bool, discovered: bool) -> Nodes {
    let text = "host=a,b,c port=5433 user=u dbname=d sslmode=disable";
    let info = ConnInfo::parse(text, |_| None).unwrap();
    let zones = ["a", "b", "c"];
    let list = info
        .each_server()
        .zip(roles)
        .zip(zones)
        .map(|((conninfo, role), zone)| Node {
            placement: Some(format!("aws.eu.{zone}")),
            connections: u64::from(zone == "a") * 100,
            ..Node::new(conninfo, role)
        })
        .collect();
    Nodes::new(&info, spread.parse().unwrap(), writes, list, discovered)
}

const ALL: [Role; 3] = [Role::Primary; 3];

#[test]
fn counts_the_sessions_of_nodes_that_report_no_connections() {
    let listed = |connections: [u64; 3]| {
        let all = nodes("least-connections", ALL, true, true).list();
        let numbered = all.into_iter().zip(connections).zip([Some(31), Some(1), None]);
        let candidate = |((node, connections), sessions)| {
            let probed = Probed { role: Role::Primary, system: None, sessions };
            (Node { connections, ..node }, Some(probed))
        };
        numbered.map(candidate).collect::<Vec<_>>()
    };
    let mut unknown = listed([0, 0, 0]);
    let warning = discovery::count_sessions(&mut unknown).unwrap();
    assert!(warning.contains("connections of c:5433 is unknown"), "{warning}");
    // The connection that counts is not one of them.
    assert_eq!(unknown.iter().map(|(node, _)| node.connections).collect::<Vec<_>>(), [30, 0, 0]);
    let mut known = listed([7, 0, 0]);
    assert_eq!(discovery::count_sessions(&mut known), None);
    assert_eq!(known[0].0.connections, 7);
}

#[test]
fn a_cold_node_of_yugabytedb_has_more_time_for_its_first_connection() {
    let info = ConnInfo::parse("host=a user=u connect_timeout=60", |_| None).unwrap();
    let timeout = |cold| discovery::limited(&info, cold).connect_timeout.as_secs();
    assert_eq!((timeout(false), timeout(true)), (3, 15));
}

fn chosen(nodes: &Nodes, sessions: std::ops::Range<u64>) -> Vec<usize> {
    sessions.map(|session| nodes.choose(session).node).collect()
}

#[test]
fn distributes_nine_sessions_evenly_over_three_nodes() {
    let nodes = nodes("round-robin", ALL, true, false);
    assert_eq!(chosen(&nodes, 0..9), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(nodes.choose(7).conninfo.servers[0].to_string(), "b:5433");
}

#[test]
fn moves_sessions_of_a_failed_node_to_the_others_and_back() {
    let nodes = nodes("round-robin", ALL, true, false);
    chosen(&nodes, 0..9);
    for session in [1, 4, 7] {
        nodes.session_closed(1);
        let home = nodes.choose(session);
        if session == 1 {
            assert_eq!(home.node, 1);
            nodes.failed(1);
        } else {
            nodes.session_closed(home.node);
        }
    }
    assert_eq!(chosen(&nodes, 1..2), [0]);
    assert_eq!([nodes.choose(4).node, nodes.choose(7).node], [2, 0]);
    assert!(!nodes.should_move(1, 0));
    nodes.entries()[1].failed_at = None;
    assert!(nodes.should_move(1, 0) && !nodes.should_move(0, 0) && !nodes.should_move(1, 1));
}

#[test]
fn retries_the_node_that_failed_first_if_no_node_is_available() {
    let nodes = nodes("round-robin", ALL, true, false);
    for node in [2, 0, 1] {
        assert!(nodes.choose(0).node < 3);
        nodes.failed(node);
    }
    assert_eq!(nodes.choose(5).node, 2);
}

#[test]
fn uses_the_best_priority_with_an_available_node() {
    let nodes = nodes("topology:aws.eu.b:1,aws.eu.c:2", ALL, true, true);
    assert_eq!(chosen(&nodes, 0..3), [1, 1, 1]);
    nodes.failed(1);
    assert_eq!(nodes.choose(0).node, 2);
    nodes.failed(2);
    assert_eq!(nodes.choose(0).node, 0, "the rest of the cluster comes last");
}

#[test]
fn considers_roles_if_the_spread_or_the_workload_requires_it() {
    let roles = [Role::Replica, Role::Primary, Role::Replica];
    let homes =
        |spread, writes, discovered| chosen(&nodes(spread, roles, writes, discovered), 0..4);
    assert_eq!(homes("primary", false, true), [1, 1, 1, 1]);
    assert_eq!(homes("replica", false, true), [0, 2, 0, 2]);
    assert_eq!(homes("round-robin", true, false), [1, 1, 1, 1], "a standby rejects writes");
    assert_eq!(homes("round-robin", true, true), [0, 1, 2, 0], "a read replica forwards them");
    assert_eq!(homes("round-robin", false, false), [0, 1, 2, 0]);
}

#[test]
fn least_connections_counts_connections_of_other_clients() {
    let nodes = nodes("least-connections", ALL, true, true);
    assert_eq!(chosen(&nodes, 0..4), [1, 2, 1, 2], "node a has 100 connections of other clients");
    assert!(!nodes.should_move(0, 1));
}

#[test]
fn a_single_target_keeps_all_servers_of_its_settings() {
    let info = ConnInfo::parse("host=a,b dbname=d user=u sslmode=disable", |_| None).unwrap();
    let nodes = Nodes::single(&info);
    assert_eq!(nodes.choose(5).conninfo.servers.len(), 2);
    assert!(!nodes.needs_monitoring());
}

#[test]
fn without_a_spread_a_failed_connection_does_not_belong_to_the_first_node() {
    let nodes = nodes("off", ALL, true, false);
    let choice = nodes.choose(0);
    assert_eq!((choice.node, nodes.next(0)), (UNKNOWN_NODE, UNKNOWN_NODE));
    nodes.failed(choice.node);
    assert!(nodes.list().iter().all(|node| !node.down));
}

#[test]
fn a_limit_keeps_the_first_nodes_that_the_spread_allows() {
    let names = |nodes: &Nodes| -> Vec<String> {
        nodes.list().iter().map(|node| node.host.clone()).collect()
    };
    let limited = |spread: &str, roles: [Role; 3], limit: u32| {
        let nodes = nodes(spread, roles, true, false);
        nodes.limit_to(limit).map(|()| nodes)
    };
    let two = limited("round-robin", ALL, 2).unwrap();
    assert_eq!(names(&two), ["a", "b"]);
    assert_eq!(chosen(&two, 0..4), [0, 1, 0, 1]);
    assert_eq!(names(&limited("round-robin", ALL, 3).unwrap()), ["a", "b", "c"]);
    let primary_b = [Role::Replica, Role::Primary, Role::Replica];
    assert_eq!(names(&limited("replica", primary_b, 2).unwrap()), ["a", "c"]);
    assert_eq!(names(&limited("round-robin", primary_b, 1).unwrap()), ["b"]);
    let near = "topology:aws.eu.b:1,aws.eu.c:1,aws.eu.a:2";
    assert_eq!(names(&limited(near, ALL, 2).unwrap()), ["b", "c"]);
    let refused = |spread, limit| limited(spread, ALL, limit).unwrap_err().to_string();
    assert_eq!(refused("round-robin", 4), "--nodes 4: the server has 3 nodes");
    assert_eq!(
        refused(near, 3),
        "--nodes 3: the server has 3 nodes, but --spread and the statements of the run allow only 2 nodes"
    );
    let alone = Nodes::require_one(Some(2)).unwrap_err().to_string();
    assert_eq!(alone, "--nodes 2: the server has 1 node");
}

#[test]
fn no_node_joins_a_limited_list() {
    let nodes = nodes("round-robin", ALL, true, true);
    assert!(nodes.may_grow() && nodes.max_nodes() > 3);
    nodes.limit_to(2).unwrap();
    assert!(!nodes.may_grow());
    assert_eq!(nodes.max_nodes(), 2);
}
