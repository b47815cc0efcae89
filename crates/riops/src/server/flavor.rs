//! Which relative of PostgreSQL a server is, told by what it says at connect and never guessed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of server.
// Records store these spellings: each is a name of its own, which does not change with the variant's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavor {
    /// PostgreSQL itself, or a relative that says nothing else.
    #[serde(rename = "postgresql")]
    PostgreSql,
    /// YugabyteDB YSQL.
    #[serde(rename = "yugabytedb")]
    YugabyteDb,
}

impl Flavor {
    /// Tells the flavor from the parameter `server_version`: YugabyteDB's contains `-YB-`.
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
    fn yugabytedb_is_told_by_its_version() {
        assert_eq!(Flavor::from_server_version("18.1"), Flavor::PostgreSql);
        assert_eq!(Flavor::from_server_version("11.2-YB-2024.2.0.0-b0"), Flavor::YugabyteDb);
    }
}
