//! Traffic of the network interfaces, and segments that TCP had to send again.
//!
//! Source: proc(5), /proc/net/dev and /proc/net/snmp, of the network namespace of riops. A server counts its segments in its own
//! namespace: they are known if it is on this machine.

use std::fs;

use super::reading::since;
use crate::host::process;
use riops_model::record::NetworkUse;

/// Totals since the machine started: bytes received and sent, errors, TCP segments sent and retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NetworkTotals([u64; 5]);

impl NetworkTotals {
    /// Reads them; the segments also of the network namespace of the server, if its process is on this machine.
    pub(super) fn read(server: Option<i32>) -> Option<Self> {
        let mut totals = Self::parse(&process::read("self", "net/dev")?, &snmp_of("self")?)?;
        let namespace = |id: &str| fs::read_link(format!("/proc/{id}/ns/net")).ok();
        let server = server.map(|id| id.to_string()).filter(|id| {
            let both = namespace("self").zip(namespace(id));
            both.is_some_and(|(own, other)| own != other)
        });
        if let Some([segments, retransmitted]) =
            server.and_then(|id| snmp_of(&id)).and_then(|snmp| tcp(&snmp))
        {
            let [.., own_segments, own_retransmitted] = &mut totals.0;
            *own_segments += segments;
            *own_retransmitted += retransmitted;
        }
        Some(totals)
    }

    /// The loopback interface is not a network.
    fn parse(dev: &str, snmp: &str) -> Option<Self> {
        let [mut received_bytes, mut sent_bytes, mut errors] = [0; 3];
        for line in dev.lines().skip(2) {
            let (name, numbers) = line.split_once(':')?;
            let numbers: Vec<u64> =
                numbers.split_whitespace().map_while(|text| text.parse().ok()).collect();
            // Bytes, packets, errors and drops, first received, then sent.
            let [received, _, in_errors, in_drops, .., sent, _, out_errors, out_drops, _, _, _, _] =
                *numbers
            else {
                return None;
            };
            if name.trim() != "lo" {
                received_bytes += received;
                sent_bytes += sent;
                errors += in_errors + in_drops + out_errors + out_drops;
            }
        }
        let [segments, retransmitted] = tcp(snmp)?;
        Some(Self([received_bytes, sent_bytes, errors, segments, retransmitted]))
    }

    pub(super) fn since(self, earlier: Self, seconds: f64) -> NetworkUse {
        let [received, sent, errors, segments, retransmitted] = since(self.0, earlier.0);
        let [received_mb_s, sent_mb_s] = [received, sent].map(|bytes| bytes as f64 / 1e6 / seconds);
        NetworkUse { received_mb_s, sent_mb_s, errors, segments, retransmitted }
    }
}

fn snmp_of(process: &str) -> Option<String> {
    process::read(process, "net/snmp")
}

/// Returns the numbers of TCP segments sent and retransmitted.
fn tcp(snmp: &str) -> Option<[u64; 2]> {
    let mut tcp = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (tcp.next()?, tcp.next()?);
    let value = |wanted: &str| {
        let mut both = names.split_whitespace().zip(values.split_whitespace());
        both.find(|(name, _)| *name == wanted)?.1.parse::<u64>().ok()
    };
    Some([value("OutSegs")?, value("RetransSegs")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_the_interfaces_except_loopback() {
        let dev = |eth_bytes: u64| {
            format!(
                "Inter-|   Receive\n face |bytes\n    lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n\
                 eth0: {eth_bytes} 10 1 2 0 0 0 0 500 7 3 4 0 0 0 0\neth1: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n"
            )
        };
        let snmp = |sent: u64, again: u64| {
            format!(
                "Ip: Forwarding\nIp: 1\nTcp: MaxConn OutSegs RetransSegs\nTcp: -1 {sent} {again}\n"
            )
        };
        let first = NetworkTotals::parse(&dev(1_000), &snmp(100, 1)).unwrap();
        assert_eq!(first, NetworkTotals([1_005, 506, 10, 100, 1]));
        let use_ = NetworkTotals::parse(&dev(2_001_000), &snmp(150, 4)).unwrap().since(first, 2.0);
        assert_eq!((use_.received_mb_s, use_.sent_mb_s, use_.errors), (1.0, 0.0, 0));
        assert_eq!((use_.segments, use_.retransmitted), (50, 3));
        assert!(NetworkTotals::read(None).is_some());
    }
}
