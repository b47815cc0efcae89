//! Search strategies: which load to measure next, from the runs that were measured so far. [`sessions`] searches
//! the number of sessions at which throughput is saturated, [`rate`] the highest sustained rate.
//!
//! Pure and deterministic, so that a search that was killed continues as if it had not been. They must not
//! measure, and know neither plans nor records.

mod boundary;
mod grid;
pub mod rate;
pub mod sessions;
#[cfg(test)]
mod simulations;
