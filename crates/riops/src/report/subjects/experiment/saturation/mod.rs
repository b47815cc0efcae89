//! The tables, charts and sentences of a search for the saturation point.

mod charts;
mod tables;
mod words;

pub(super) use charts::charts;
pub(super) use tables::tables;
pub(super) use words::words;
