#![no_main]
//! The replies of a server to a client that connects, including SCRAM.

#[path = "../../crates/riops-wire/tests/fuzz/startup.rs"]
mod startup;

use libfuzzer_sys::fuzz_target;

/// `i=` and 5 digits: riops accepts up to a million iterations, which take a second.
fn is_slow(bytes: &[u8]) -> bool {
    bytes
        .windows(7)
        .any(|window| window.starts_with(b"i=") && window.iter().skip(2).all(u8::is_ascii_digit))
}

fuzz_target!(|bytes: &[u8]| {
    if !is_slow(bytes) {
        startup::startup(bytes);
    }
});
