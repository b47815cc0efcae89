#![no_main]
//! Streams of both sides of the protocol.

use libfuzzer_sys::fuzz_target;
use riops_wire::fuzz;

fuzz_target!(|bytes: &[u8]| {
    fuzz::backend_stream(bytes);
    fuzz::frontend_stream(bytes);
    fuzz::conversation(bytes);
});
