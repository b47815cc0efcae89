//! The client machine: its properties and limits, its files, random seeds, and interruption by the user.
//!
//! Independent of servers and benchmarks.

pub mod cgroup;
pub mod files;
pub(crate) mod http;
mod interrupt;
pub mod machine;
pub mod output_file;
mod random;

pub use interrupt::Interrupt;
pub use output_file::OutputFile;
pub use random::random_seed;
