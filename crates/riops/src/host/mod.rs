//! The client machine: what it is, what it allows, its random numbers, and the user's interrupt.
//!
//! Knows no server and no benchmark.

mod interrupt;
pub mod machine;
mod random;

pub use interrupt::Interrupt;
pub use random::random_seed;
