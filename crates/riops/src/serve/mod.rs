//! HTTP servers: the dashboard over a store (`riops serve`), and the metrics of a run.
//!
//! Every page, chart and figure comes from `report`; this module reads the store and decides who may read it. Labels,
//! error texts and plans are hostile input: every value is escaped by the templates, and no script is built from data.

mod access;
mod api;
mod app;
mod connections;
mod dashboard;
mod error;
mod failure;
mod listen;
mod metrics;
mod pages;
mod query;
mod server;
mod stored;
mod token;
mod verdicts;

pub use dashboard::{Dashboard, Settings};
pub use error::ServeError;
pub use listen::ListenAddress;
pub use metrics::{MetricsPush, MetricsServer};
pub use stored::OpenStore;
pub use token::Token;
