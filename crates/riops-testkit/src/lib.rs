//! Servers for the tests of riops: never part of a release.
//!
//! The fake server speaks the protocol and answers what a test tells it to; it knows no SQL. The proxy
//! breaks connections at any byte.

mod fake_server;
mod fake_yugabytedb;
mod proxy;

pub use fake_server::{FakeServer, PORT, Reply, Request};
pub use fake_yugabytedb::{Answer, Asked, FakeYugabyteDb, VERSION};
pub use proxy::{Fault, Proxy};
