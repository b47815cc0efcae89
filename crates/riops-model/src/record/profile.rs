//! A CPU profile of the server: how often each stack of functions was seen.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

/// Maximum number of stacks that are stored, the most frequent first.
const STACKS_MAX: usize = 20_000;
/// Maximum size of the stored stacks before their compression, in bytes. Records are untrusted input.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// A CPU profile of the processes of a server, over the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// Samples per second of each processor or process.
    pub hz: u32,
    /// Number of samples of the server.
    pub samples: u64,
    /// How stacks were found: `fp` (frame pointers) or `dwarf`.
    pub stack_method: String,
    /// Whether the samples include the kernel.
    pub has_kernel: bool,
    /// CPU use of perf itself, in processors.
    pub perf_cpus: f64,
    /// Samples whose stacks were too rare to be stored.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub samples_left_out: u64,
    /// The stacks, one per line: functions from the outermost to the innermost, separated by semicolons, and the number of
    /// samples; compressed with zlib and encoded in base64.
    pub stacks: String,
}

/// The functions of a stack, the outermost first, and its number of samples.
pub type Stack = (Vec<String>, u64);

impl ProfileRecord {
    /// Returns the profile with these stacks, as far as they may be stored.
    pub fn with_stacks(self, mut stacks: Vec<(String, u64)>) -> Self {
        stacks.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let (mut text, mut left_out) = (String::new(), 0);
        for (position, (stack, samples)) in stacks.iter().enumerate() {
            let line = format!("{stack} {samples}\n");
            if position < STACKS_MAX && text.len() + line.len() <= TEXT_BYTES_MAX {
                text.push_str(&line);
            } else {
                left_out += samples;
            }
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        // Writing to a Vec cannot fail.
        let _ = encoder.write_all(text.as_bytes());
        let stacks = BASE64.encode(encoder.finish().unwrap_or_default());
        Self { samples_left_out: left_out, stacks, ..self }
    }

    /// Returns the stored stacks, the most frequent first; empty if they are damaged.
    pub fn stacks(&self) -> Vec<Stack> {
        let bytes = BASE64.decode(&self.stacks).unwrap_or_default();
        let mut text = String::new();
        let limited = ZlibDecoder::new(bytes.as_slice()).take(TEXT_BYTES_MAX as u64);
        if { limited }.read_to_string(&mut text).is_err() {
            return Vec::new();
        }
        let stack = |line: &str| {
            let (stack, samples) = line.rsplit_once(' ')?;
            let functions = stack.split(';').map(str::to_owned).collect();
            Some((functions, samples.parse().ok()?))
        };
        text.lines().filter_map(stack).take(STACKS_MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_stored_compressed_and_read_back_the_most_frequent_first() {
        let stacks = vec![("main;b c".to_owned(), 2), ("main;a".to_owned(), 5)];
        let profile = ProfileRecord::default().with_stacks(stacks);
        let functions =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = [(functions(&["main", "a"]), 5), (functions(&["main", "b c"]), 2)];
        assert_eq!(profile.stacks(), expected);
        let damaged = ProfileRecord { stacks: "AAAA".to_owned(), ..profile };
        assert_eq!(damaged.stacks(), []);
    }

    #[test]
    fn rare_stacks_of_a_large_profile_are_left_out_and_counted() {
        let stacks = (0..30_000).map(|position| (format!("f{position}"), 1)).collect();
        let profile = ProfileRecord::default().with_stacks(stacks);
        assert_eq!((profile.stacks().len(), profile.samples_left_out), (20_000, 10_000));
    }
}
