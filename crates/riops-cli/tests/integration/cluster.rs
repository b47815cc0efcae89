//! A cluster of three nodes with shared data, as in YugabyteDB: embedded servers on 127.0.0.1, 127.0.0.2
//! and 127.0.0.3 with the same port, each with a `yb_servers()` function.
//!
//! The data is on the first node, and the other nodes access it through foreign tables. The second and
//! third node can therefore be killed and restarted without loss of data.

use std::net::TcpListener;
use std::path::PathBuf;

use riops::host::Interrupt;
use riops::server::Connection;
use riops::server::embedded::{Embedded, Options};

use crate::crash::{kill, postmaster};
use crate::fixture::{CommandOutput, binary, command, folder, open};

const HOSTS: [&str; 3] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
const PASSWORD: &str = "the same on all nodes";

/// A running cluster; its nodes stop when it is dropped.
pub(crate) struct Cluster {
    name: String,
    homes: Vec<PathBuf>,
    port: u16,
    nodes: Vec<Embedded>,
}

/// Returns a port that is free on all three addresses.
fn free_port() -> u16 {
    loop {
        let first = TcpListener::bind((HOSTS[0], 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        if HOSTS[1..].iter().all(|host| TcpListener::bind((*host, port)).is_ok()) {
            return port;
        }
    }
}

impl Cluster {
    pub(crate) fn start(name: &str) -> Self {
        let homes = (1..=3).map(|node| folder(&format!("{name}-{node}"))).collect();
        let mut cluster =
            Self { name: name.to_owned(), homes, port: free_port(), nodes: Vec::new() };
        for node in 0..3 {
            let running = cluster.run_node(node);
            cluster.nodes.push(running);
            let rows: Vec<String> = (1..=3)
                .map(|address| {
                    format!(
                        "('127.0.0.{address}', {}::int8, 0::int8, 'primary', 'cloud', 'region', 'zone{address}', '', 'uuid{address}')",
                        cluster.port
                    )
                })
                .collect();
            cluster.execute(node, &format!(
                "alter role postgres password '{PASSWORD}';
                 create function pg_catalog.yb_servers() returns table (host text, port int8, num_connections int8,
                   node_type text, cloud text, region text, zone text, public_ip text, uuid text)
                 language sql as $$ values {} $$",
                rows.join(", ")
            ));
        }
        cluster
    }

    fn run_node(&self, node: usize) -> Embedded {
        let options = Options {
            data: Some(self.homes[node].clone()),
            port: Some(self.port),
            address: Some(HOSTS[node].to_owned()),
            settings: vec![("shared_buffers".to_owned(), "32MB".to_owned())],
            ..Options::default()
        };
        Embedded::acquire(&options, binary(), &Interrupt::new(), &|_| {}).unwrap()
    }

    /// Returns the socket of a node.
    pub(crate) fn socket(&self, node: usize) -> PathBuf {
        let state = self.nodes[node].state();
        state.socket_dir.join(format!(".s.PGSQL.{}", state.port))
    }

    pub(crate) fn connect(&self, node: usize) -> Connection {
        open(&self.nodes[node].state().conninfo())
    }

    pub(crate) fn execute(&self, node: usize, sql: &str) {
        self.connect(node).execute(sql).unwrap();
    }

    pub(crate) fn value(&self, node: usize, sql: &str) -> Option<String> {
        self.connect(node).query_value(sql).unwrap()
    }

    /// Returns the connection string with these nodes as hosts.
    pub(crate) fn url(&self, hosts: &[usize]) -> String {
        let hosts: Vec<_> = hosts.iter().map(|&node| HOSTS[node]).collect();
        format!(
            "host={} port={} user=postgres password='{PASSWORD}' dbname=postgres sslmode=disable",
            hosts.join(","),
            self.port
        )
    }

    pub(crate) fn command(&self, line: &str) -> std::process::Command {
        let mut command = command(line);
        command.env("RIOPS_DATABASE", self.url(&[0]));
        command.env("RIOPS_STORE", self.homes[0].join("runs.sqlite"));
        command
    }

    pub(crate) fn riops(&self, line: &str) -> CommandOutput {
        CommandOutput::run(&mut self.command(line))
    }

    /// Creates foreign tables on the second and third node for this table of the first node.
    pub(crate) fn share(&self, table: &str) {
        for node in 1..3 {
            self.execute(node, &format!(
                "create extension if not exists postgres_fdw;
                 create server first foreign data wrapper postgres_fdw
                   options (host '{}', port '{}', dbname 'postgres');
                 create user mapping for postgres server first options (user 'postgres', password '{PASSWORD}');
                 create schema riops;
                 import foreign schema riops limit to ({table}) from server first into riops;
                 create sequence riops.ids start {} increment 10;
                 alter foreign table riops.{table} alter column id set default nextval('riops.ids')",
                HOSTS[0],
                self.port,
                1_000_000 + node
            ));
        }
    }

    /// Returns the number of riops sessions on a node.
    pub(crate) fn sessions(&self, node: usize) -> u64 {
        let sql = "select count(distinct pid) from pg_stat_activity where application_name like 'riops/%'";
        self.value(node, sql).unwrap().parse().unwrap()
    }

    /// Sends SIGKILL to the postmaster of a node.
    pub(crate) fn kill(&self, node: usize) {
        kill(postmaster(&self.homes[node]), "-KILL");
    }

    /// Restarts a killed node.
    pub(crate) fn restart(&mut self, node: usize) {
        let running = self.run_node(node);
        drop(std::mem::replace(&mut self.nodes[node], running));
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
