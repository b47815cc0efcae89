//! The words that everything else speaks: quantities and texts, statistics, plans, records and figures, comparisons and
//! experiments. Pure, and independent of databases.

pub mod units;

pub mod stats;

pub mod plan;

pub mod record;

pub mod figure;

pub mod summary;

pub mod comparison;

pub mod study;
