//! The client machine: its properties and limits, random seeds, and interruption by the user.
//!
//! Independent of servers and benchmarks.

pub mod cgroup;
pub mod files;
mod interrupt;
pub mod machine;
mod random;

pub use interrupt::Interrupt;
pub use random::random_seed;
