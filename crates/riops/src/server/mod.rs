//! The database under test: how to reach it, what it is, what it says of itself, and the embedded
//! server that stands in where there is no other.
//!
//! Connections here block; the sessions of a run are handed over to the engine's poll loop.

mod connect;
pub mod connection;
mod connection_error;
pub mod conninfo;
pub mod embedded;
pub mod examine;
pub mod facts;
pub mod fit;
pub mod flavor;
pub mod nodes;
pub mod pooler;
mod socket;
mod stream;
pub mod tls;
mod under_test;

pub use connection::{Connection, ConnectionError};
pub use conninfo::ConnInfo;
pub use facts::is_on_this_machine;
pub use flavor::Flavor;
pub use nodes::Nodes;
pub use pooler::Pooler;
pub use stream::Stream;
pub use under_test::{Server, ServerError};
