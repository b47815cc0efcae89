//! Quantities with units, texts, and the statistics of comparisons: pure, and independent of databases.

pub mod units;

pub mod stats;
