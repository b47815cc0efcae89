//! The product that a PostgreSQL-compatible server is, for display.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Flavor of a server. Only displayed and stored: what a server can do is asked of its dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flavor(Cow<'static, str>);

impl Flavor {
    /// Creates the flavor that records store under this name.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl Default for Flavor {
    /// PostgreSQL, or a compatible database that does not identify itself.
    fn default() -> Self {
        Self::named("postgresql")
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match &*self.0 {
            // Records store these two in lower case.
            "postgresql" => "PostgreSQL",
            "yugabytedb" => "YugabyteDB",
            other => other,
        })
    }
}
