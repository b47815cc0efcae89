//! Records on their way through the store: JSON, compressed, in base64.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::error::FleetError;
use crate::record::{AgentRecord, Record};
use crate::run::MergedPart;

/// Largest record that is unpacked, in bytes: the series of a run has at most 100,000 points.
const RECORD_BYTES_MAX: u64 = 1 << 28;

/// Packs a record.
pub(super) fn pack(record: &Record) -> Result<String, FleetError> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let json = serde_json::to_vec(record)?;
    let packed = encoder.write_all(&json).and_then(|()| encoder.finish());
    Ok(BASE64.encode(packed.map_err(failed)?))
}

fn unpack(text: &str) -> Result<Record, FleetError> {
    let bytes = BASE64.decode(text).map_err(|error| FleetError::Record(error.to_string()))?;
    let mut json = String::new();
    let mut decoder = ZlibDecoder::new(bytes.as_slice()).take(RECORD_BYTES_MAX);
    decoder.read_to_string(&mut json).map_err(failed)?;
    Ok(serde_json::from_str(&json)?)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: std::io::Error) -> FleetError {
    FleetError::Record(error.to_string())
}

/// Returns the part of an agent from its row: number, host, state, error, record, agent, seconds since its heartbeat, run.
pub(super) fn part(row: &[Option<String>]) -> Result<MergedPart, FleetError> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref);
    let number = text(0).and_then(|text| text.parse().ok()).unwrap_or(0);
    if let (Some(record), Some(agent)) = (text(4), text(5)) {
        let agent: AgentRecord = serde_json::from_str(agent)?;
        return Ok(MergedPart { agent, record: Some(unpack(record)?) });
    }
    let silent_s: f64 = text(6).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let failure = text(3).map_or_else(
        || format!("lost: no heartbeat for {silent_s:.1} s; its transactions are missing"),
        |error| format!("failed: {error}"),
    );
    let host = text(1).unwrap_or_default().to_owned();
    let run = text(7).and_then(|text| text.parse().ok());
    let agent = AgentRecord { number, host, run, failure: Some(failure), ..AgentRecord::default() };
    Ok(MergedPart { agent, record: None })
}
