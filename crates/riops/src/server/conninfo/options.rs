//! Options of a connection besides server, user and database.

use std::time::Duration;

/// Required properties of the server: `target_session_attrs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionAttrs {
    /// Any server.
    #[default]
    Any,
    /// Sessions are read-write by default.
    ReadWrite,
    /// Sessions are read-only by default.
    ReadOnly,
    /// Not a standby.
    Primary,
    /// A standby.
    Standby,
    /// A standby if one is available, otherwise any server.
    PreferStandby,
}

/// Whether SCRAM is bound to the TLS channel: `channel_binding`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ChannelBinding {
    Disable,
    #[default]
    Prefer,
    Require,
}

/// TCP keepalive settings; `None` means the default of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Whether keepalive probes are sent.
    pub enabled: bool,
    /// Idle time before the first probe.
    pub idle: Option<Duration>,
    /// Interval between probes.
    pub interval: Option<Duration>,
    /// Number of unanswered probes after which the connection counts as broken.
    pub count: Option<u32>,
    /// How long sent data may remain unacknowledged.
    pub user_timeout: Option<Duration>,
}

/// The settings for Unix sockets, which do not support keepalives.
pub(super) const NO_KEEPALIVE: Keepalive =
    Keepalive { enabled: false, idle: None, interval: None, count: None, user_timeout: None };
