//! The CPU profile of the server.

use crate::record::StageRecord;
use crate::report::document::Document;
use crate::report::flame::{functions, note};
use crate::units::format::percent;

/// Number of functions that a text names.
const NAMED_MAX: usize = 5;

/// The functions with the most samples, and what the profile cost.
pub(in crate::report) fn profile(document: &mut Document, stage: &StageRecord) {
    if let Some(profile) = &stage.profile {
        let named: Vec<String> = functions(&profile.stacks())
            .iter()
            .take(NAMED_MAX)
            .map(|(name, own, _)| format!("{name} {}", percent(*own)))
            .collect();
        document.known("profile", named.join(" · "));
        document.line(if named.is_empty() { "profile" } else { "" }, note(profile));
    }
}
