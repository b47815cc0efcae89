use super::*;

/// Nodes a, b, c in zones a, b, c, which nobody has looked at.
fn nodes(spread: &str, roles: [Role; 3], writes: bool, discovered: bool) -> Nodes {
    let text = "host=a,b,c port=5433 user=u dbname=d sslmode=disable";
    let info = ConnInfo::parse(text, |_| None).unwrap();
    let zones = ["a", "b", "c"];
    let list = info
        .each_server()
        .zip(roles)
        .zip(zones)
        .map(|((each, role), zone)| Node {
            placement: Some(format!("aws.eu.{zone}")),
            connections: u64::from(zone == "a") * 100,
            ..Node::of(each, role)
        })
        .collect();
    Nodes::of(&info, spread.parse().unwrap(), (writes, discovered), list)
}

const ALL: [Role; 3] = [Role::Primary; 3];

fn chosen(nodes: &Nodes, sessions: std::ops::Range<u64>) -> Vec<usize> {
    sessions.map(|session| nodes.choose(session).node).collect()
}

#[test]
fn nine_sessions_are_spread_three_three_three_whatever_their_order() {
    let nodes = nodes("round-robin", ALL, true, false);
    assert_eq!(chosen(&nodes, 0..9), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(nodes.choose(7).conninfo.servers[0].to_string(), "b:5433");
}

#[test]
fn sessions_of_a_node_that_fails_are_spread_over_the_others_and_may_come_home() {
    let nodes = nodes("round-robin", ALL, true, false);
    chosen(&nodes, 0..9);
    for session in [1, 4, 7] {
        nodes.left(1);
        let home = nodes.choose(session);
        if session == 1 {
            assert_eq!(home.node, 1);
            nodes.failed(1);
        } else {
            nodes.left(home.node);
        }
    }
    assert_eq!(chosen(&nodes, 1..2), [0]);
    assert_eq!([nodes.choose(4).node, nodes.choose(7).node], [2, 0]);
    assert!(!nodes.should_move(1, 0));
    nodes.entries()[1].failed_at = None;
    assert!(nodes.should_move(1, 0) && !nodes.should_move(0, 0) && !nodes.should_move(1, 1));
}

#[test]
fn where_no_node_answers_the_one_that_failed_first_is_tried_again() {
    let nodes = nodes("round-robin", ALL, true, false);
    for node in [2, 0, 1] {
        assert!(nodes.choose(0).node < 3);
        nodes.failed(node);
    }
    assert_eq!(nodes.choose(5).node, 2);
}

#[test]
fn the_first_priority_with_a_node_that_answers_is_used() {
    let nodes = nodes("topology:aws.eu.b:1,aws.eu.c:2", ALL, true, true);
    assert_eq!(chosen(&nodes, 0..3), [1, 1, 1]);
    nodes.failed(1);
    assert_eq!(nodes.choose(0).node, 2);
    nodes.failed(2);
    assert_eq!(nodes.choose(0).node, 0, "then the rest of the cluster");
}

#[test]
fn roles_decide_where_the_spread_or_the_work_wants_them_to() {
    let roles = [Role::Replica, Role::Primary, Role::Replica];
    let of = |spread, writes, discovered| chosen(&nodes(spread, roles, writes, discovered), 0..4);
    assert_eq!(of("primary", false, true), [1, 1, 1, 1]);
    assert_eq!(of("replica", false, true), [0, 2, 0, 2]);
    assert_eq!(of("round-robin", true, false), [1, 1, 1, 1], "a standby refuses writes");
    assert_eq!(of("round-robin", true, true), [0, 1, 2, 0], "a read replica passes them on");
    assert_eq!(of("round-robin", false, false), [0, 1, 2, 0]);
}

#[test]
fn the_fewest_connections_win_where_that_is_wanted() {
    let nodes = nodes("least-connections", ALL, true, true);
    assert_eq!(chosen(&nodes, 0..4), [1, 2, 1, 2], "node a has 100 of somebody else's");
    assert!(!nodes.should_move(0, 1));
}

#[test]
fn one_target_is_taken_as_it_is() {
    let info = ConnInfo::parse("host=a,b dbname=d user=u sslmode=disable", |_| None).unwrap();
    let nodes = Nodes::single(&info);
    assert_eq!(nodes.choose(5).conninfo.servers.len(), 2);
    assert!(!nodes.need_a_keeper());
}
