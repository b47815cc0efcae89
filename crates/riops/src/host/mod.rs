//! The client machine: what it is, what it allows, and the user's wish to stop.
//!
//! Knows no server and no benchmark.

mod interrupt;
pub mod machine;

pub use interrupt::Interrupt;
