//! The experiments that riops contains, by name.

/// Pairs of the name and the text of the file.
macro_rules! ready {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../experiments/", $name, ".toml")))),*]
    };
}

const READY: [(&str, &str); 9] = ready![
    "cbc-clients",
    "compare-two-servers",
    "find-my-limit",
    "instances",
    "load-methods",
    "oltp-nodes",
    "oltp-threads",
    "pgio-memory-to-disk",
    "ybio-batch-size",
];

/// Returns the experiment file of this name.
pub(super) fn text(name: &str) -> Option<&'static str> {
    READY.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Returns all names.
pub(super) fn names() -> Vec<&'static str> {
    READY.iter().map(|(name, _)| *name).collect()
}
