//! The environment of an experiment: runs in different environments must not be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::host::Interrupt;
use crate::server::facts::server_facts;
use crate::server::{Connection, ConnectionError, Server};

/// Difference of the memory that is not a change, as a share: the kernel reserves a different part at each start.
const MEMORY_TOLERANCE: f64 = 0.01;

/// Settings that do not affect the figures, and can differ at each start of the same server.
const VOLATILE_SETTINGS: [&str; 14] = [
    "application_name",
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_directory",
    "log_filename",
    "port",
    "ssl_ca_file",
    "ssl_cert_file",
    "unix_socket_directories",
];

/// The client machine and a server. Values that are unknown are absent, or empty.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Name of the client machine.
    pub client: String,
    /// Operating system of the client machine, release and architecture.
    pub kernel: String,
    /// Processor model of the client machine.
    pub cpu_model: Option<String>,
    /// CPU frequency governor of the client machine.
    pub cpu_governor: Option<String>,
    /// Number of processors available to riops.
    pub cpus: usize,
    /// Memory available to riops, in bytes.
    pub memory_bytes: u64,
    /// Version of riops.
    pub riops_version: String,
    /// Addresses of the server; `embedded` for the embedded server.
    pub address: String,
    /// Name of the database.
    pub database: String,
    /// Version of the server.
    pub server_version: String,
    /// Result of `version()`, with compiler and platform.
    pub server_build: String,
    /// Settings of the server, with their units, without those that differ at each start.
    pub settings: BTreeMap<String, String>,
}

impl Environment {
    /// Reads the environment of the runs on this server.
    ///
    /// # Errors
    /// [`ConnectionError`] if the connection fails, or if version or settings cannot be read.
    pub fn read(server: &Server, interrupt: &Interrupt) -> Result<Self, ConnectionError> {
        let mut connection = Connection::open(&server.conninfo, interrupt)?;
        let facts = server_facts(&mut connection)?;
        let machine = crate::host::machine::facts();
        let mut settings = facts.settings;
        settings.retain(|name, _| !VOLATILE_SETTINGS.contains(&name.as_str()));
        Ok(Self {
            client: machine.host,
            kernel: machine.kernel,
            cpu_model: machine.cpu_model,
            cpu_governor: machine.cpu_governor,
            cpus: machine.cpus,
            memory_bytes: machine.memory_bytes,
            riops_version: env!("CARGO_PKG_VERSION").to_owned(),
            // The port of the embedded server is a free one.
            address: if server.embedded {
                "embedded".to_owned()
            } else {
                server.conninfo.address()
            },
            database: server.conninfo.database.clone(),
            server_version: facts.version,
            server_build: facts.version_text,
            settings,
        })
    }

    /// Returns the properties of the client machine with their names, in the order in which differences are shown.
    fn of_client(&self) -> Vec<(&'static str, String)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        vec![
            ("client", self.client.clone()),
            ("kernel", self.kernel.clone()),
            ("CPU", text(&self.cpu_model)),
            ("CPU governor", text(&self.cpu_governor)),
            ("processors", self.cpus.to_string()),
            ("riops", self.riops_version.clone()),
        ]
    }

    /// Returns the properties of the server with their names.
    fn of_server(&self) -> Vec<(&'static str, String)> {
        vec![
            ("address", self.address.clone()),
            ("database", self.database.clone()),
            ("server version", self.server_version.clone()),
            ("server build", self.server_build.clone()),
        ]
    }
}

fn line(name: &str, then: &str, now: &str) -> Option<String> {
    let shown = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
    (then != now).then(|| format!("{name}: {} then, {} now", shown(then), shown(now)))
}

fn lines(then: Vec<(&str, String)>, now: Vec<(&str, String)>) -> Vec<String> {
    let pairs = then.into_iter().zip(now);
    pairs.filter_map(|((name, then), (_, now))| line(name, &then, &now)).collect()
}

/// Returns what differs on the client machine, in words: `kernel: Linux 6.1 x86_64 then, Linux 6.8 x86_64 now`.
pub fn client_differences(before: &Environment, now: &Environment) -> Vec<String> {
    let mut all = lines(before.of_client(), now.of_client());
    let (then_bytes, now_bytes) = (before.memory_bytes as f64, now.memory_bytes as f64);
    if (then_bytes - now_bytes).abs() > MEMORY_TOLERANCE * then_bytes.max(now_bytes) {
        let gigabytes = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
        all.extend(line("memory", &gigabytes(then_bytes), &gigabytes(now_bytes)));
    }
    all
}

/// Returns what differs on the server, in words.
pub fn server_differences(before: &Environment, now: &Environment) -> Vec<String> {
    let mut all = lines(before.of_server(), now.of_server());
    // The build contains the version.
    if all.iter().any(|line| line.starts_with("server version:")) {
        all.retain(|line| !line.starts_with("server build:"));
    }
    let names: BTreeSet<_> = before.settings.keys().chain(now.settings.keys()).collect();
    for name in names {
        let value = |environment: &Environment| environment.settings.get(name).cloned();
        if let (then, current) = (value(before), value(now))
            && then != current
        {
            let shown = |value: Option<String>| value.unwrap_or_else(|| "default".to_owned());
            all.extend(line(name, &shown(then), &shown(current)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        let settings = [("shared_buffers", "128MB"), ("work_mem", "4MB")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Environment {
            kernel: "Linux 6.1 x86_64".to_owned(),
            cpu_model: Some("Xeon".to_owned()),
            cpus: 8,
            memory_bytes: 16_000_000_000,
            server_version: "18.0".to_owned(),
            server_build: "PostgreSQL 18.0 on x86_64".to_owned(),
            settings: settings.into(),
            ..Environment::default()
        }
    }

    fn differences(before: &Environment, now: &Environment) -> Vec<String> {
        [client_differences(before, now), server_differences(before, now)].concat()
    }

    #[test]
    fn differences_show_both_values() {
        let before = environment();
        assert_eq!(differences(&before, &before), [""; 0]);
        let mut now = before.clone();
        now.kernel = "Linux 6.8 x86_64".to_owned();
        now.cpu_model = None;
        now.cpus = 4;
        now.memory_bytes = 8_000_000_000;
        now.server_version = "18.1".to_owned();
        now.server_build = "PostgreSQL 18.1 on x86_64".to_owned();
        now.settings.insert("shared_buffers".to_owned(), "2GB".to_owned());
        now.settings.insert("jit".to_owned(), "off".to_owned());
        now.settings.remove("work_mem");
        assert_eq!(
            differences(&before, &now),
            [
                "kernel: Linux 6.1 x86_64 then, Linux 6.8 x86_64 now",
                "CPU: Xeon then, none now",
                "processors: 8 then, 4 now",
                "memory: 16.0 GB then, 8.0 GB now",
                "server version: 18.0 then, 18.1 now",
                "jit: default then, off now",
                "shared_buffers: 128MB then, 2GB now",
                "work_mem: 4MB then, default now",
            ]
        );
    }

    #[test]
    fn another_build_is_a_difference_and_little_memory_is_none() {
        let (before, mut now) = (environment(), environment());
        now.memory_bytes -= 100_000_000;
        assert_eq!(differences(&before, &now), [""; 0]);
        now.server_build = "PostgreSQL 18.0 on aarch64".to_owned();
        assert_eq!(
            differences(&before, &now),
            ["server build: PostgreSQL 18.0 on x86_64 then, PostgreSQL 18.0 on aarch64 now"]
        );
    }

    #[test]
    fn an_environment_survives_storing() {
        let before = environment();
        let json = serde_json::to_string(&before).unwrap();
        let read: Environment = serde_json::from_str(&json).unwrap();
        assert_eq!(read, before);
        // Stored by a version that knew less.
        serde_json::from_str::<Environment>("{\"kernel\": \"Linux\"}").unwrap();
    }
}
