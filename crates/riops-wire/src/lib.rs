//! The PostgreSQL protocol (version 3.0) for load generation: bytes in, bytes out.
//!
//! This crate does no input or output, reads no clock and starts no thread. It turns values into
//! bytes and bytes into borrowed values, for both sides of the wire: a client needs one half, the
//! fake servers of the tests need the other, and the property tests need both.
//!
//! Whatever the peer sends, nothing here panics and nothing here grows without a bound: every read
//! is checked, and every buffer has a limit that its owner chose.
//!
//! The message formats are those of "Message Formats" in the chapter "Frontend/Backend Protocol"
//! of the PostgreSQL documentation.

pub mod auth;
pub mod backend;
pub mod copy;
pub mod cursor;
pub mod frame;
pub mod frontend;
pub mod fuzz;
pub mod pipeline;
pub mod sqlstate;
pub mod startup;
