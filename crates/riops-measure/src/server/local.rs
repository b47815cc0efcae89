//! Whether the server runs on this machine.
//!
//! An address does not say it: a tunnel (`ssh -L`, `kubectl port-forward`) is at a loopback address of this machine, and a
//! container has another address. So the process of the session must be visible: with its id, as it is in its own PID
//! namespace, and with the age that the server reports. Source: proc(5), `NSpid` in /proc/PID/status.

use std::fs;
use std::path::Path;

use super::capabilities::optional;
use super::connection::{Connection, ConnectionError};
use crate::host::process::{self, Stat, TICKS_PER_S};

/// By how many seconds the server may report a lower age than the kernel: it counts from the end of the connection's
/// setup, which takes long on a loaded machine.
const AGE_LOWER_S: f64 = 5.0;
/// By how many seconds it may report a higher one: the kernel has a resolution of 10 ms.
const AGE_HIGHER_S: f64 = 0.1;

/// A server on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalServer {
    /// The first process of the server, the parent of its sessions.
    pub process: i32,
    /// Whether it has its own PID namespace, as in a container: its process ids and paths are not valid on this
    /// machine.
    pub is_contained: bool,
}

/// Returns the server of this connection if it runs on this machine.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub fn local_server(connection: &mut Connection) -> Result<Option<LocalServer>, ConnectionError> {
    let sql = "select pid, extract(epoch from clock_timestamp() - backend_start)
                 from pg_stat_activity where pid = pg_backend_pid()";
    let rows = optional(connection.query(sql))?.unwrap_or_default();
    let Some([Some(process), Some(age_s)]) = rows.first().map(Vec::as_slice) else {
        return Ok(None);
    };
    let session = process.parse().ok().zip(age_s.parse().ok());
    Ok(session.and_then(|(process, age_s)| find(Path::new("/proc"), process, age_s)))
}

/// Returns whether the paths and the process ids of the server are valid on this machine.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub fn shares_files(connection: &mut Connection) -> Result<bool, ConnectionError> {
    Ok(local_server(connection)?.is_some_and(|server| !server.is_contained))
}

/// Finds the session with this id in its namespace and this age in seconds.
fn find(proc: &Path, process: i32, age_s: f64) -> Option<LocalServer> {
    let read = |file: &str| fs::read_to_string(proc.join(file)).ok();
    let uptime_s: f64 = read("uptime")?.split(' ').next()?.parse().ok()?;
    let server = |id: i32| {
        let stat = Stat::parse(&read(&format!("{id}/stat"))?)?;
        let is_backend = ["postgres", "postmaster"].iter().any(|name| stat.name.contains(name));
        let younger_s = uptime_s - stat.started as f64 / TICKS_PER_S - age_s;
        if !is_backend || !(-AGE_HIGHER_S..=AGE_LOWER_S).contains(&younger_s) {
            return None;
        }
        let ids = namespace_ids(&read(&format!("{id}/status"))?)?;
        let is_contained = ids.len() > 1;
        (ids.last() == Some(&process)).then_some(LocalServer { process: stat.parent, is_contained })
    };
    // Mostly, it has the same id here, and no other process needs to be read.
    server(process).or_else(|| process::ids(proc).find_map(server))
}

/// Returns the ids of a process in its namespaces, the innermost last.
fn namespace_ids(status: &str) -> Option<Vec<i32>> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that has been up for 1,000 s.
    fn machine(processes: &[(i32, &str, i32, u32, &str)]) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        fs::write(proc.path().join("uptime"), "1000.00 1234.56\n").unwrap();
        for (id, name, parent, started_s, ids) in processes {
            let folder = proc.path().join(id.to_string());
            fs::create_dir(&folder).unwrap();
            let ticks = started_s * 100;
            let stat = format!(
                "{id} ({name}) S {parent} 7 7 0 -1 4194560 900 0 0 0 250 50 100 0 20 0 1 0 {ticks} 1 2\n"
            );
            fs::write(folder.join("stat"), stat).unwrap();
            fs::write(folder.join("status"), format!("Name:\t{name}\nNSpid:\t{ids}\n")).unwrap();
        }
        proc
    }

    #[test]
    fn the_process_of_the_session_has_its_id_and_its_age() {
        let proc = machine(&[(101, "postgres", 100, 990, "101")]);
        let server_of = |process, age_s| find(proc.path(), process, age_s);
        let server = LocalServer { process: 100, is_contained: false };
        assert_eq!(server_of(101, 10.0), Some(server));
        // The server counts the age from the end of the setup of the connection.
        assert_eq!(server_of(101, 7.0), Some(server));
        // Behind a tunnel, a server on another machine has a session with the same id.
        assert_eq!(
            (server_of(101, 1.0), server_of(101, 60.0), server_of(102, 10.0)),
            (None, None, None)
        );
        assert_eq!(find(machine(&[(101, "nginx", 100, 990, "101")]).path(), 101, 10.0), None);
    }

    #[test]
    fn the_process_of_a_container_is_found_by_its_id_there() {
        let contained = (4_101, "postgres", 4_100, 990, "4101\t57");
        // Other processes with that id, here and in another container.
        let others = [(57, "kworker", 2, 0, "57"), (5_101, "postgres", 5_100, 900, "5101\t57")];
        let proc = machine(&[contained, others[0], others[1]]);
        let server = LocalServer { process: 4_100, is_contained: true };
        assert_eq!(find(proc.path(), 57, 10.0), Some(server));
    }
}
