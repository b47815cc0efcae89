//! What ran where, in a few words: server, sessions, settings of the session loop, access paths.

use super::document::{Badge, Tone};
use riops_model::record::{Record, Validity};
use riops_model::units::format::joined;

/// Number and model of the CPUs; with both numbers if riops may not use all of the machine.
pub(super) fn cpu_text(record: &Record) -> String {
    let machine = &record.client.machine;
    if machine.cpus == 0 {
        return "unknown".to_owned();
    }
    let model = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    match machine.machine_cpus.filter(|&all| all > machine.cpus) {
        Some(all) => format!("{} of {all} × {model}", machine.cpus),
        None => format!("{} × {model}", machine.cpus),
    }
}

/// The settings that explain most differences between two runs. The page lists all of them in a table.
const MAIN_SETTINGS: [&str; 7] = [
    "shared_buffers",
    "max_wal_size",
    "synchronous_commit",
    "full_page_writes",
    "fsync",
    "huge_pages",
    "debug_io_direct",
];

/// The main settings of the server in a line.
pub(super) fn main_settings(record: &Record) -> String {
    let settings = &record.target.settings;
    let known = MAIN_SETTINGS.iter().filter_map(|name| Some((name, settings.get(*name)?)));
    joined(known.map(|(name, value)| format!("{name} = {value}")), " · ")
}

/// Returns the state of a run in a few words, for lists and pages, and the tone of their badge.
pub fn badge(validity: Validity, status: &str, marks: &str) -> Badge {
    let (text, tone) = match (validity, status) {
        (Validity::NotVerified, _) => ("not verified", Tone::Warn),
        (Validity::Valid, "done") if marks.is_empty() => ("valid", Tone::Good),
        (Validity::Valid, "done") => ("valid", Tone::Warn),
        (Validity::Valid, "interrupted") => ("valid, interrupted", Tone::Warn),
        (Validity::Invalid, "done") => ("not valid", Tone::Bad),
        (Validity::Invalid, "interrupted") => ("not valid, interrupted", Tone::Bad),
        (Validity::Invalid, _) => ("not valid, failed", Tone::Bad),
        (Validity::Valid, _) => ("failed", Tone::Bad),
    };
    let is_breached = marks.split(", ").any(|mark| mark == "breached");
    let parts = [text, marks].into_iter().filter(|part| !part.is_empty());
    Badge { text: joined(parts, ", "), tone: if is_breached { Tone::Bad } else { tone } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_part_of_the_badge() {
        let shown = |status, marks| {
            let Badge { text, tone } = badge(Validity::Valid, status, marks);
            (text, tone)
        };
        assert_eq!(shown("done", ""), ("valid".to_owned(), Tone::Good));
        assert_eq!(shown("done", "not steady"), ("valid, not steady".to_owned(), Tone::Warn));
        assert_eq!(shown("done", "breached"), ("valid, breached".to_owned(), Tone::Bad));
        assert_eq!(shown("interrupted", ""), ("valid, interrupted".to_owned(), Tone::Warn));
    }
}
