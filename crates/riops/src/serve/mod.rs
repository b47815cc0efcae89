//! HTTP servers: the dashboard over a store (`riops serve`), and the metrics of a run.
//!
//! Every page, chart and figure comes from `report`; this module reads the store and decides who may read it. Labels,
//! error texts and plans are hostile input: every value is escaped by the templates, and no script is built from data.

mod access;
mod connections;
mod error;
mod listen;
mod metrics;
mod query;
mod server;
mod token;

pub use error::ServeError;
pub use listen::ListenAddress;
pub use metrics::MetricsServer;
pub use token::Token;
