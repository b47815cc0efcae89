//! The database under test: connection settings, connections, dialect, nodes and diagnosis, and the
//! embedded server, which is used when no other server is specified.
//!
//! Connections in this module block. The sockets of a run's sessions are passed to the engine's poll
//! loop after the startup.

pub mod capabilities;
mod connect;
pub mod connection;
mod connection_error;
pub mod conninfo;
mod control;
mod copy;
mod dialect;
pub mod embedded;
pub mod examine;
pub mod facts;
mod local;
pub mod nodes;
mod own_settings;
pub mod pooler;
mod search_path;
mod selected;
mod silence;
mod socket;
mod stream;
mod tested_server;
pub mod tls;

pub use connection::{Connection, ConnectionError};
pub use conninfo::ConnInfo;
pub use dialect::{Dialect, Feature};
pub use local::{LocalServer, local_server, shares_files};
pub use nodes::Nodes;
pub use pooler::detect_pooler;
pub use search_path::PINNED;
pub use selected::{SelectError, Selector, Target};
pub use stream::Stream;
pub use tested_server::{Changes, Server, ServerError};
