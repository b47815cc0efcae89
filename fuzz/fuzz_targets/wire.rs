#![no_main]
//! Streams of both sides of the protocol.

#[path = "../../crates/riops-wire/tests/fuzz/streams.rs"]
mod streams;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    streams::backend_stream(bytes);
    streams::frontend_stream(bytes);
    streams::conversation(bytes);
});
