//! The CPU profile of the server.

use crate::document::Document;
use crate::flame::{functions, note};
use riops_model::record::{ProfileRecord, StageRecord};
use riops_model::units::format::{count, joined, nearest_integer, percent};

/// Number of functions that a text names.
const NAMED_MAX: usize = 5;

/// With fewer samples, a share is off by more than 20 points in one of 20 profiles.
const SAMPLES_MIN: u64 = 20;

/// Below this share of the samples that the CPU time of the server lets expect, perf lost some.
const LOST_SHARE: f64 = 0.5;

/// The functions with the most samples, and what the profile cost.
pub(crate) fn profile(document: &mut Document, stage: &StageRecord) {
    if let Some(profile) = &stage.profile {
        let functions = functions(&profile.stacks()).into_iter().take(NAMED_MAX);
        let named = functions.map(|(name, own, _)| format!("{name} {}", percent(own)));
        let is_sampled = profile.samples >= SAMPLES_MIN;
        let named = Some(joined(named, " · ")).filter(|named| is_sampled && !named.is_empty());
        let few = || "too few samples to name the functions that used the CPU".to_owned();
        let first = named.or_else(|| (!is_sampled).then(few));
        document
            .lines("profile", first.into_iter().chain([note(profile)]).chain(lost(profile, stage)));
    }
}

/// Says that perf lost samples: the server used the CPU for more of them.
fn lost(profile: &ProfileRecord, stage: &StageRecord) -> Option<String> {
    let expected = stage.server_cpu_s? * f64::from(profile.hz);
    let is_lost =
        expected >= SAMPLES_MIN as f64 && (profile.samples as f64) < LOST_SHARE * expected;
    let expected = count(nearest_integer(expected));
    is_lost.then(|| {
        format!("perf lost samples: the CPU time of the server lets expect about {expected}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::record::example::example_record;

    #[test]
    fn no_function_is_named_from_a_few_samples_and_lost_ones_are_said() {
        let lines = |samples: u64, server_cpu_s: f64| {
            let stacks = vec![("main;hash".to_owned(), samples)];
            let profile = ProfileRecord { hz: 100, samples, ..ProfileRecord::default() };
            let stage = StageRecord {
                profile: Some(profile.with_stacks(stacks)),
                server_cpu_s: Some(server_cpu_s),
                ..example_record().stages.swap_remove(0)
            };
            let mut document = Document::default();
            super::profile(&mut document, &stage);
            crate::document_text(&document, usize::MAX)
        };
        assert!(lines(20, 0.2).contains("hash 100%"));
        let few = lines(19, 0.2);
        assert!(few.contains("too few samples to name") && !few.contains("hash"), "{few}");
        assert!(!few.contains("lost"), "{few}");
        assert!(lines(49, 1.0).contains("lets expect about 100"));
        assert!(!lines(50, 1.0).contains("lost"));
    }
}
