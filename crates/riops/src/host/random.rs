//! Random seeds from the operating system.

/// Returns a random seed for a run without `--seed`. Below 2^53, so every JSON parser reads it exactly.
///
/// # Errors
/// Returns an error if the operating system's random number generator is not available.
pub fn random_seed() -> std::io::Result<u64> {
    use rand::TryRng;
    rand::rngs::SysRng
        .try_next_u64()
        .map(|number| number >> 11)
        .map_err(|error| std::io::Error::other(error.to_string()))
}
