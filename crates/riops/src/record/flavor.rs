//! The flavor of a PostgreSQL-compatible server.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Flavor of a server.
// Records store the serialized names, so they are independent of the variant names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavor {
    /// PostgreSQL, or a compatible database that does not identify itself.
    #[serde(rename = "postgresql")]
    PostgreSql,
    /// YugabyteDB YSQL.
    #[serde(rename = "yugabytedb")]
    YugabyteDb,
}

impl Flavor {
    /// Returns the flavor for the parameter `server_version`, which contains `-YB-` in YugabyteDB.
    #[must_use]
    pub fn from_server_version(version: &str) -> Self {
        if version.contains("-YB-") { Self::YugabyteDb } else { Self::PostgreSql }
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PostgreSql => "PostgreSQL",
            Self::YugabyteDb => "YugabyteDB",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_yugabytedb_by_its_version() {
        assert_eq!(Flavor::from_server_version("18.1"), Flavor::PostgreSql);
        assert_eq!(Flavor::from_server_version("11.2-YB-2024.2.0.0-b0"), Flavor::YugabyteDb);
    }
}
