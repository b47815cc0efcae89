//! What is known of a running server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::server::conninfo::ConnInfo;

/// The superuser of the embedded server.
pub const USER: &str = "riops";

/// Its database.
pub const DATABASE: &str = "postgres";

pub(super) fn loopback() -> String {
    "127.0.0.1".to_owned()
}

/// What is known of a running server; kept beside its data for whoever comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The postmaster's process.
    pub pid: i32,
    /// Its port.
    pub port: u16,
    /// Its address.
    #[serde(default = "loopback")]
    pub address: String,
    /// The folder of its socket.
    pub socket_dir: PathBuf,
    /// The superuser's password, for TCP.
    pub password: String,
    /// Where its programs are.
    pub bin_dir: PathBuf,
    /// What `postgres --version` says.
    pub version: String,
    /// The settings that it was started with.
    pub settings: Vec<(String, String)>,
}

impl State {
    /// How to connect through the socket.
    #[must_use]
    pub fn conninfo(&self) -> ConnInfo {
        ConnInfo::unix(&self.socket_dir, self.port, USER, DATABASE)
    }

    /// The address of the socket as any client takes it.
    #[must_use]
    pub fn url(&self) -> String {
        let folder = self.socket_dir.display().to_string();
        let encoded =
            percent_encoding::utf8_percent_encode(&folder, percent_encoding::NON_ALPHANUMERIC);
        format!("postgresql://{USER}@/{DATABASE}?host={encoded}&port={}", self.port)
    }

    /// The TCP address as any client takes it, with the password.
    #[must_use]
    pub fn url_tcp(&self) -> String {
        let Self { password, address, port, .. } = self;
        format!("postgresql://{USER}:{password}@{address}:{port}/{DATABASE}")
    }
}
