//! How a session is made, beside where and who.

use std::time::Duration;

/// What a server has to be: `target_session_attrs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionAttrs {
    /// Anything.
    #[default]
    Any,
    /// Sessions may write.
    ReadWrite,
    /// Sessions may not write.
    ReadOnly,
    /// Not a standby.
    Primary,
    /// A standby.
    Standby,
    /// A standby where there is one, else anything.
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

/// How the operating system watches over idle TCP connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Whether it does.
    pub enabled: bool,
    /// Silence before the first probe.
    pub idle: Option<Duration>,
    /// Between probes.
    pub interval: Option<Duration>,
    /// Probes without an answer before the connection counts as broken.
    pub count: Option<u32>,
    /// How long sent data may stay unacknowledged.
    pub user_timeout: Option<Duration>,
}

/// For the socket of this machine, where nothing can get lost.
pub(super) const NO_KEEPALIVE: Keepalive =
    Keepalive { enabled: false, idle: None, interval: None, count: None, user_timeout: None };
