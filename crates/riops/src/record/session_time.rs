//! What the sessions did: their time by what they waited for.

use serde::{Deserialize, Serialize};

use crate::units::texts;

/// What a session does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// Between two transactions, in the client.
    Client,
    /// In a transaction, while the server does nothing for it: network, client, queues.
    Network,
    /// Its process runs.
    Cpu,
    /// Its process waits for a processor. Without scheduler statistics, this is part of `Cpu`.
    RunQueue,
    /// Waits for a block that is read.
    Read,
    /// Waits for a block that is written, or for a table that grows.
    Write,
    /// Waits for the write-ahead log.
    Wal,
    /// Waits for temporary files.
    Temporary,
    /// Waits for other I/O.
    OtherIo,
    /// Waits for a lightweight lock or a buffer pin.
    LwLock,
    /// Waits for a lock.
    Lock,
    /// Waits for another process.
    Ipc,
    /// Waits for a time to pass.
    Timeout,
    /// Waits for something else, such as an extension.
    Other,
}

/// A part of the time of all sessions, from samples.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SessionTime {
    /// What the sessions did.
    pub part: TimePart,
    /// Share of their time, 0 to 1.
    pub share: f64,
    /// Half the width of the 95% interval of the share; absent with fewer than four samples.
    pub reach: Option<f64>,
}

texts!(
    /// Returns its name.
    TimePart::name {
        Client: "client",
        Network: "network and queue",
        Cpu: "CPU",
        RunQueue: "run queue",
        Read: "reads",
        Write: "writes",
        Wal: "WAL",
        Temporary: "temporary files",
        OtherIo: "other I/O",
        LwLock: "LWLock",
        Lock: "lock",
        Ipc: "IPC",
        Timeout: "timeout",
        Other: "other waits",
    }
);

impl TimePart {
    /// Number of parts.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the part of a sampled event, as in [`WaitShare`](super::WaitShare); `None` if the session has nothing to do.
    /// Names of events differ in case between versions of PostgreSQL.
    #[must_use]
    pub fn of_event(event: &str) -> Option<Self> {
        let (kind, name) = event.split_once(':').unwrap_or((event, ""));
        let name = name.to_ascii_lowercase();
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        Some(match kind {
            "idle" => return None,
            "CPU" => Self::Cpu,
            "Client" | "idle in transaction" => Self::Network,
            "IO" | "LWLock" if starts(&["wal"]) => Self::Wal,
            "LWLock" | "IPC" if starts(&["bufferio"]) => Self::Read,
            "IO" if starts(&["datafileread", "datafileprefetch", "aio", "slruread"]) => Self::Read,
            "IO" if starts(&["datafile", "slru"]) => Self::Write,
            "IO" if starts(&["buffile"]) => Self::Temporary,
            "IO" => Self::OtherIo,
            "LWLock" | "Buffer" | "BufferPin" => Self::LwLock,
            "Lock" => Self::Lock,
            "IPC" => Self::Ipc,
            "Timeout" => Self::Timeout,
            _ => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_all_versions_belong_to_a_part() {
        for (event, part) in [
            ("CPU", TimePart::Cpu),
            ("IO:WALSync", TimePart::Wal),
            ("IO:WalSync", TimePart::Wal),
            ("LWLock:WALWrite", TimePart::Wal),
            ("LWLock:BufferIO", TimePart::Read),
            ("IPC:BufferIo", TimePart::Read),
            ("IO:AioIoCompletion", TimePart::Read),
            ("IO:DataFileRead", TimePart::Read),
            ("IO:DataFileExtend", TimePart::Write),
            ("IO:BuffileWrite", TimePart::Temporary),
            ("IO:SlruRead", TimePart::Read),
            ("IO:ControlFileSync", TimePart::OtherIo),
            ("LWLock:ProcArray", TimePart::LwLock),
            ("BufferPin:BufferPin", TimePart::LwLock),
            ("Lock:transactionid", TimePart::Lock),
            ("IPC:SyncRep", TimePart::Ipc),
            ("Timeout:PgSleep", TimePart::Timeout),
            ("Extension:Extension", TimePart::Other),
            ("Client:ClientRead", TimePart::Network),
            ("idle in transaction", TimePart::Network),
        ] {
            assert_eq!(TimePart::of_event(event), Some(part), "{event}");
        }
        assert_eq!(TimePart::of_event("idle"), None);
    }
}
