//! Single transactions of a stage, packed: a record of a long run stays small.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use crate::metrics;

/// One transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplePoint {
    /// Its end, in seconds since the measurement started.
    pub t_s: f64,
    /// Its latency, in microseconds.
    pub latency_us: f64,
    /// Its session, from 0.
    pub session: u32,
    /// Whether it is stored only as one of the longest or as the shortest of its time slot.
    pub extreme: bool,
}

from_measured!(SamplePoint from metrics::SamplePoint { t_s, latency_us, session, extreme });

/// The sampled transactions of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct SampleSet {
    /// Number of transactions from which the sample was taken.
    pub transactions: u64,
    /// Every n-th transaction is stored.
    pub every: u64,
    /// Length of a time slot in seconds; the shortest transaction of each slot is stored as well.
    pub slot_s: f64,
    /// How many of the longest transactions of each slot are stored as well.
    pub longest: usize,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// The transactions.
    pub points: Vec<SamplePoint>,
}

impl From<metrics::SampleSet> for SampleSet {
    fn from(measured: metrics::SampleSet) -> Self {
        let metrics::SampleSet { transactions, every, slot_s, longest, seconds, points } = measured;
        let points = points.into_iter().map(Into::into).collect();
        Self { transactions, every, slot_s, longest, seconds, points }
    }
}

/// A sample as JSON: 10 bytes a transaction, as base64.
#[derive(Serialize, Deserialize)]
struct Packed {
    transactions: u64,
    every: u64,
    slot_s: f64,
    longest: usize,
    seconds: f64,
    /// Little-endian: the time in units of 2^−32 of the length (u32), microseconds (f32), the
    /// session, with the highest bit for an extreme (u16).
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
                reason = "a share of the length; seven digits of a latency; sessions are at most 10,000"
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
        let bytes = BASE64.decode(&packed.points).map_err(|error| error.to_string())?;
        let (points, rest) = bytes.as_chunks::<POINT_BYTES>();
        if !rest.is_empty() {
            return Err("half a transaction is left over".to_owned());
        }
        let unpack = |&[a, b, c, d, e, f, g, h, i, j]: &[u8; POINT_BYTES]| {
            let session = u16::from_le_bytes([i, j]);
            SamplePoint {
                t_s: f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX)
                    * packed.seconds,
                latency_us: f64::from(f32::from_le_bytes([e, f, g, h])),
                session: u32::from(session & !EXTREME),
                extreme: session & EXTREME != 0,
            }
        };
        Ok(Self {
            points: points.iter().map(unpack).collect(),
            transactions: packed.transactions,
            every: packed.every,
            slot_s: packed.slot_s,
            longest: packed.longest,
            seconds: packed.seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_its_own_json() {
        let point = |number: u32| SamplePoint {
            t_s: f64::from(number) / 100.0,
            latency_us: 1_000.0 + f64::from(number) / 7.0,
            session: number % 3,
            extreme: number.is_multiple_of(50),
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
