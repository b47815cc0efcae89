//! The client machine: its properties and limits, its files, random seeds, and interruption by the user.
//!
//! Independent of servers and benchmarks.

pub mod cgroup;
pub mod files;
pub mod http;
mod interrupt;
mod lock;
pub mod machine;
pub mod output_file;
pub(crate) mod process;
pub mod user_folders;

pub use interrupt::Interrupt;
pub use lock::await_lock;
pub use output_file::OutputFile;

/// Returns a random seed for a run without `--seed`. Below 2^53, so every JSON parser reads it exactly.
///
/// # Errors
/// Returns an error if the operating system's random number generator is not available.
pub fn random_seed() -> std::io::Result<u64> {
    use rand::TryRng;
    rand::rngs::SysRng
        .try_next_u64()
        .map(|bits| bits >> 11)
        .map_err(|error| std::io::Error::other(error.to_string()))
}

/// Returns the name of a user of this machine from `/etc/passwd`.
pub(crate) fn user_name(uid: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}
