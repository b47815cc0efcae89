//! Agents on separate hosts: network namespaces, each with a delay. The kernel may have no queue that delays packets
//! (netem), so a relay of the test holds each piece of the stream for as long.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::fixture::{self, CommandOutput, database, is_root, program, tcp_url};

/// A network namespace, and the two addresses of the link to it. Removed when dropped.
struct Host {
    name: String,
    gateway: String,
}

impl Host {
    /// Returns `None` if this user or this kernel cannot have one.
    fn new(index: usize) -> Option<Self> {
        let name = format!("riops-{}-{index}", std::process::id());
        let subnet = 100 + std::process::id() % 100;
        let link = format!("rv{}-{index}", std::process::id());
        let (own, gateway) = (format!("10.{subnet}.{index}.2"), format!("10.{subnet}.{index}.1"));
        if !ip_succeeds(&format!("netns add {name}")) {
            return None;
        }
        let host = Self { name, gateway };
        let name = &host.name;
        let done = ip_succeeds(&format!("link add {link} type veth peer name eth0 netns {name}"))
            && ip_succeeds(&format!("address add {}/24 dev {link}", host.gateway))
            && ip_succeeds(&format!("link set {link} up"))
            && ip_succeeds(&format!("-n {name} address add {own}/24 dev eth0"))
            && ip_succeeds(&format!("-n {name} link set eth0 up"))
            && ip_succeeds(&format!("-n {name} link set lo up"));
        done.then_some(host)
    }

    /// Returns the command, to be run on this host.
    fn command(&self, line: &str) -> Command {
        let mut command = fixture::command("");
        let mut on_host = Command::new("ip");
        on_host.args(["netns", "exec", &self.name]).arg(command.get_program());
        for (variable, value) in command.get_envs() {
            match value {
                Some(value) => on_host.env(variable, value),
                None => on_host.env_remove(variable),
            };
        }
        command.args(line.split_whitespace());
        on_host.args(command.get_args());
        on_host
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its link goes with it.
        ip_succeeds(&format!("netns delete {}", self.name));
    }
}

fn ip_succeeds(line: &str) -> bool {
    let status = Command::new("ip").args(line.split_whitespace()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Forwards connections to a port of 127.0.0.1, with a delay in each direction. Returns the port of the relay, which ends with the test.
fn relay(address: &str, to: u16, (there, back): (Duration, Duration)) -> u16 {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
            }
            let (from_client, to_client) = (client.try_clone().unwrap(), client);
            let (from_server, to_server) = (server.try_clone().unwrap(), server);
            std::thread::spawn(move || forward(from_client, to_server, there));
            std::thread::spawn(move || forward(from_server, to_client, back));
        }
    });
    port
}

fn forward(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        std::thread::sleep(delay);
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn agents_behind_delays_of_any_direction_know_the_clock_of_the_store_and_start_together() {
    if !is_root() || program("ip").is_none() {
        return;
    }
    let hosts: Vec<Host> = (0..3).map_while(Host::new).collect();
    if hosts.len() < 3 {
        return;
    }
    let (target, store) = (database("fleet_network"), database("fleet_network_store"));
    let port: u16 = {
        let url = tcp_url("x");
        url.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap()
    };
    let ms = Duration::from_millis;
    // The worst case of the bound is a delay of one direction only.
    let delays = [(ms(5), ms(0)), (ms(0), ms(20)), (ms(40), ms(40))];
    let start = |(agent, (host, delay)): (usize, (&Host, (Duration, Duration)))| -> Child {
        let slow = relay(&host.gateway, port, delay);
        let at = |database: &str, port: u16| {
            let url = tcp_url(database);
            let (user, rest) = url.split_once('@').unwrap();
            let path = rest.split_once('/').unwrap().1;
            format!("{user}@{}:{port}/{path}", host.gateway)
        };
        let direct = relay(&host.gateway, port, (ms(0), ms(0)));
        let line = format!(
            "run ping -c 3 --rate 60 --warmup 0 --duration 3s --fleet f --agents 3 --agents-within 30s --agent {agent} --output json -d {}",
            at(&target.conninfo.database, direct)
        );
        let mut command = host.command(&line);
        command.env("RIOPS_STORE", at(&store.conninfo.database, slow));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = hosts.iter().zip(delays).enumerate().map(start).collect();
    let outputs: Vec<CommandOutput> = children
        .into_iter()
        .map(|child| CommandOutput::from(child.wait_with_output().unwrap()).expect(0))
        .collect();
    let record = outputs.iter().find(|output| !output.stdout.is_empty()).unwrap().json();
    let agents = record["agents"].as_array().unwrap();
    // All agents have the clock of this machine.
    for (agent, (there, back)) in agents.iter().zip(delays) {
        let [offset, reach] =
            ["offset_s", "uncertainty_s"].map(|name| agent["clock"][name].as_f64().unwrap());
        assert!(offset.abs() <= reach + 5e-6, "{}", agent["clock"]);
        assert!(reach >= (there + back).as_secs_f64() / 2.0, "{}", agent["clock"]);
    }
    // By the clock of this machine, which they have in common: the reverse of the correction.
    let starts: Vec<f64> = agents
        .iter()
        .map(|agent| {
            let at = agent["stages"][0]["started_at"].as_str().unwrap();
            let at: jiff::Timestamp = at.parse().unwrap();
            at.as_nanosecond() as f64 / 1e9 - agent["clock"]["offset_s"].as_f64().unwrap()
        })
        .collect();
    let first = starts.iter().copied().fold(f64::MAX, f64::min);
    let reach = agents.iter().map(|agent| agent["clock"]["uncertainty_s"].as_f64().unwrap());
    let most = reach.fold(0.0, f64::max);
    assert!(starts.iter().all(|start| start - first <= most + 0.02), "{starts:?}");
}
