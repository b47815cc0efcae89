//! From options and experiment files to an experiment, and the runs of an experiment on its servers.

pub(crate) mod axes;
pub(crate) mod bench;
pub(crate) mod draft;
pub(crate) mod file;
pub(crate) mod follow;
mod ready;
pub(crate) mod results;
pub(crate) mod stored;
pub(crate) mod words;
