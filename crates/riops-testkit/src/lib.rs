//! Servers for the tests of riops: never part of a release.
//!
//! The fake server speaks the protocol and answers what a test tells it to; it knows no SQL.

mod fake_server;

pub use fake_server::{FakeServer, PORT, Reply, Request};
