//! The PostgreSQL protocol (version 3.0) for load generation: bytes in, bytes out.
//!
//! This crate performs no I/O, reads no clock and starts no thread. It encodes values into bytes and
//! decodes bytes into borrowed values, for both sides of the protocol: the client needs one side, the
//! fake servers of the tests need the other, and the property tests need both.
//!
//! Input from the peer never causes a panic or unbounded memory growth: every read is checked, and the
//! owner of every buffer sets its limit.
//!
//! Message formats: PostgreSQL documentation, chapter "Frontend/Backend Protocol", section "Message
//! Formats".

pub mod auth;
pub mod backend;
pub mod copy;
pub mod cursor;
pub mod execution;
pub mod frame;
pub mod frontend;
pub mod pipeline;
pub mod reply;
pub mod sqlstate;
pub mod startup;
pub mod value;
