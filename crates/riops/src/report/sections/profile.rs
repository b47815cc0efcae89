//! The CPU profile of the server.

use crate::record::StageRecord;
use crate::report::document::Document;
use crate::report::flame::{functions, note};
use crate::units::format::{joined, percent};

/// Number of functions that a text names.
const NAMED_MAX: usize = 5;

/// The functions with the most samples, and what the profile cost.
pub(in crate::report) fn profile(document: &mut Document, stage: &StageRecord) {
    if let Some(profile) = &stage.profile {
        let functions = functions(&profile.stacks()).into_iter().take(NAMED_MAX);
        let named = functions.map(|(name, own, _)| format!("{name} {}", percent(own)));
        let named = Some(joined(named, " · ")).filter(|named| !named.is_empty());
        document.lines("profile", named.into_iter().chain([note(profile)]));
    }
}
