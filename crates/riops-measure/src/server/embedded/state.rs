//! The state of a running server, and the name of its superuser.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::Result;
use crate::host::Interrupt;
use crate::server::connection::Connection;
use crate::server::conninfo::ConnInfo;

/// The superuser of the embedded server.
pub const USER: &str = "postgres";

/// The superuser in data directories that riops initialized before it used [`USER`]. The schema of the same
/// name was on its search path, so that sysbench or `psql -f` created their tables in it.
const FORMER_USER: &str = "riops";

fn former_user() -> String {
    FORMER_USER.to_owned()
}

/// The database of the embedded server that riops connects to.
pub const DATABASE: &str = "postgres";

pub(super) fn loopback() -> String {
    "127.0.0.1".to_owned()
}

/// The state of a running server, stored next to its data directory for later riops processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Process id of the postmaster.
    pub pid: i32,
    /// Start time of the postmaster, as in `postmaster.pid`. Absent in states of earlier releases.
    #[serde(default)]
    pub started: Option<String>,
    /// TCP port, also part of the socket's file name.
    pub port: u16,
    /// Address that the server listens on.
    #[serde(default = "loopback")]
    pub address: String,
    /// Directory of the Unix socket.
    pub socket_dir: PathBuf,
    /// Name of the superuser.
    #[serde(default = "former_user")]
    pub user: String,
    /// Password of the superuser, required over TCP.
    pub password: String,
    /// Directory of the server programs.
    pub bin_dir: PathBuf,
    /// Output of `postgres --version`.
    pub version: String,
    /// Names and values of the settings that the server was started with.
    pub settings: Vec<(String, String)>,
}

impl State {
    /// Returns the connection settings for the Unix socket.
    pub fn conninfo(&self) -> ConnInfo {
        ConnInfo::unix(&self.socket_dir, self.port, &self.user, DATABASE)
    }

    /// Returns the connection URI for the Unix socket.
    pub fn url(&self) -> String {
        let folder = self.socket_dir.display().to_string();
        let encoded =
            percent_encoding::utf8_percent_encode(&folder, percent_encoding::NON_ALPHANUMERIC);
        format!("postgresql://{}@/{DATABASE}?host={encoded}&port={}", self.user, self.port)
    }

    /// Returns the connection URI for TCP, with the password.
    pub fn url_tcp(&self) -> String {
        let Self { user, password, address, port, .. } = self;
        format!("postgresql://{user}:{password}@{address}:{port}/{DATABASE}")
    }
}

/// A role cannot rename itself. This superuser does it, and exists only meanwhile.
const HELPER: &str = "riops_rename";

/// Renames the superuser of a running server to [`USER`], and returns the state with the new name. Continues
/// a rename that was interrupted. The SCRAM password stays valid, because it does not depend on the name.
///
/// # Errors
/// If the role cannot be renamed, for example because another role has the new name.
pub(super) fn rename_superuser(state: &State, interrupt: &Interrupt) -> Result<State> {
    let renamed = State { user: USER.to_owned(), ..state.clone() };
    let open = |user: &str| {
        let state = State { user: user.to_owned(), ..state.clone() };
        Connection::open(&state.conninfo(), interrupt)
    };
    if let Ok(mut former) = open(FORMER_USER) {
        former.execute(&format!("drop role if exists {HELPER}"))?;
        former.execute(&format!("create role {HELPER} superuser login"))?;
        drop(former);
        open(HELPER)?.execute(&format!("alter role {FORMER_USER} rename to {USER}"))?;
    }
    open(USER)?.execute(&format!("drop role if exists {HELPER}"))?;
    Ok(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_without_a_user_belongs_to_a_server_with_the_former_user() {
        let text = r#"{"pid": 1, "port": 5432, "socket_dir": "/tmp", "password": "p", "bin_dir": "/bin",
            "version": "18.6", "settings": []}"#;
        let state: State = serde_json::from_str(text).unwrap();
        assert_eq!(state.url_tcp(), "postgresql://riops:p@127.0.0.1:5432/postgres");
    }
}
