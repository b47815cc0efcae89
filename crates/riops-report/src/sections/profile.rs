//! The CPU profile of the server.

use crate::document::Document;
use crate::flame::{functions, note};
use riops_model::record::StageRecord;
use riops_model::units::format::{joined, percent};

/// Number of functions that a text names.
const NAMED_MAX: usize = 5;

/// The functions with the most samples, and what the profile cost.
pub(crate) fn profile(document: &mut Document, stage: &StageRecord) {
    if let Some(profile) = &stage.profile {
        let functions = functions(&profile.stacks()).into_iter().take(NAMED_MAX);
        let named = functions.map(|(name, own, _)| format!("{name} {}", percent(own)));
        let named = Some(joined(named, " · ")).filter(|named| !named.is_empty());
        document.lines("profile", named.into_iter().chain([note(profile)]));
    }
}
