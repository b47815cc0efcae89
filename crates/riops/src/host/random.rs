//! Random numbers of the operating system.

/// A seed for a run whose user gave none. Below 2^53, so that every reader of the record's JSON
/// gets it back exactly.
///
/// # Errors
/// Where the operating system has no random numbers.
pub fn random_seed() -> std::io::Result<u64> {
    use rand::TryRng;
    rand::rngs::SysRng
        .try_next_u64()
        .map(|number| number >> 11)
        .map_err(|error| std::io::Error::other(error.to_string()))
}
