//! From options and experiment files to an experiment, and the runs of an experiment on its servers.

pub(crate) mod conductor;
pub(crate) mod draft;
pub(crate) mod file;
pub(crate) mod gate;
pub(crate) mod results;
pub(crate) mod words;
