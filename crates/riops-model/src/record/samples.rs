//! Sampled transactions of a stage, in a packed format that keeps the record of a long run small.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

/// One sampled transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplePoint {
    /// End of the transaction, in seconds since the measurement started.
    pub t_s: f64,
    /// Latency, in microseconds.
    pub latency_us: f64,
    /// Number of the session, from 0.
    pub session: u32,
    /// Whether it was selected only because it is among the longest, or the shortest, of its time slot.
    pub extreme: bool,
}

/// The sampled transactions of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct SampleSet {
    /// Number of transactions from which the sample was drawn.
    pub transactions: u64,
    /// Sampling interval n: every n-th transaction is stored.
    pub every: u64,
    /// Length of a time slot, in seconds. The shortest transaction of each slot is stored as well.
    pub slot_s: f64,
    /// Number of the longest transactions of each slot that are stored as well.
    pub longest: usize,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// The sampled transactions.
    pub points: Vec<SamplePoint>,
}

/// The JSON form of a sample: 10 bytes per transaction, in base64.
#[derive(Serialize, Deserialize)]
struct Packed {
    transactions: u64,
    every: u64,
    slot_s: f64,
    longest: usize,
    seconds: f64,
    /// Little-endian: the time as a fraction of the length, in units of 2^−32 (u32); the latency in
    /// microseconds (f32); the session, with the highest bit set for an extreme (u16).
    points: String,
}

const POINT_BYTES: usize = 10;
const EXTREME: u16 = 1 << 15;

impl From<SampleSet> for Packed {
    fn from(set: SampleSet) -> Self {
        let scale = f64::from(u32::MAX) / set.seconds.max(f64::MIN_POSITIVE);
        let mut bytes = Vec::with_capacity(set.points.len() * POINT_BYTES);
        for point in &set.points {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "t is a fraction of the length; f32 has seven digits; at most 10,000 sessions"
            )]
            let (t, latency, session) =
                ((point.t_s * scale).round() as u32, point.latency_us as f32, point.session as u16);
            let session = (session & !EXTREME) | if point.extreme { EXTREME } else { 0 };
            bytes.extend_from_slice(&t.to_le_bytes());
            bytes.extend_from_slice(&latency.to_le_bytes());
            bytes.extend_from_slice(&session.to_le_bytes());
        }
        let SampleSet { transactions, every, slot_s, longest, seconds, .. } = set;
        Self { transactions, every, slot_s, longest, seconds, points: BASE64.encode(bytes) }
    }
}

impl TryFrom<Packed> for SampleSet {
    type Error = String;

    fn try_from(packed: Packed) -> Result<Self, String> {
        let Packed { transactions, every, slot_s, longest, seconds, points } = packed;
        let bytes = BASE64.decode(&points).map_err(|error| error.to_string())?;
        let (points, rest) = bytes.as_chunks::<POINT_BYTES>();
        if !rest.is_empty() {
            return Err("the last sampled transaction is incomplete".to_owned());
        }
        let unpack = |&[a, b, c, d, e, f, g, h, i, j]: &[u8; POINT_BYTES]| {
            let session = u16::from_le_bytes([i, j]);
            SamplePoint {
                t_s: f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX) * seconds,
                latency_us: f64::from(f32::from_le_bytes([e, f, g, h])),
                session: u32::from(session & !EXTREME),
                extreme: session & EXTREME != 0,
            }
        };
        let points = points.iter().map(unpack).collect();
        Ok(Self { transactions, every, slot_s, longest, seconds, points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_a_json_round_trip() {
        let point = |position: u32| SamplePoint {
            t_s: f64::from(position) / 100.0,
            latency_us: 1_000.0 + f64::from(position) / 7.0,
            session: position % 3,
            extreme: position.is_multiple_of(50),
        };
        let points: Vec<_> = (0..100).map(point).collect();
        let set = SampleSet {
            transactions: 100,
            every: 1,
            slot_s: 0.01,
            longest: 16,
            seconds: 1.0,
            points,
        };
        let read: SampleSet = serde_json::from_str(&serde_json::to_string(&set).unwrap()).unwrap();
        assert_eq!(read.points.len(), set.points.len());
        for (read, stored) in read.points.iter().zip(&set.points) {
            assert_eq!((read.session, read.extreme), (stored.session, stored.extreme));
            assert!((read.t_s - stored.t_s).abs() < 1e-6);
            assert!((read.latency_us - stored.latency_us).abs() <= stored.latency_us * 1e-6);
        }
        let damaged =
            r#"{"transactions":1,"every":1,"slot_s":1,"longest":1,"seconds":1,"points":"AAAA"}"#;
        assert!(serde_json::from_str::<SampleSet>(damaged).is_err());
    }
}
