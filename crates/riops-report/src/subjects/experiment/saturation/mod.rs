//! The tables, charts and sentences of a search for the saturation point.

pub(super) mod charts;
pub(super) mod tables;
pub(super) mod words;
