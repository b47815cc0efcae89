//! Reasons for an invalid run that follow from the record of a stage.

use crate::plan::Traits;
use crate::record::StageRecord;

/// Returns why the stage is not the one that the plan asked for.
pub(super) fn unlike_planned(stage: &StageRecord, traits: &Traits) -> Vec<String> {
    [not_cold(stage, traits), missed_mix(stage)].into_iter().flatten().collect()
}

/// Returns the reason if a cache was not emptied although the plan requires it.
fn not_cold(stage: &StageRecord, traits: &Traits) -> Option<String> {
    let caches =
        stage.caches.as_ref().filter(|caches| !caches.reached && traits.requires_cold())?;
    Some(format!(
        "the caches were not emptied: shared buffers: {}; page cache: {} (--cold=try accepts this)",
        caches.shared_buffers, caches.page_cache
    ))
}

fn missed_mix(stage: &StageRecord) -> Option<String> {
    let mix = stage.session_loop.mix.as_ref().filter(|mix| mix.is_missed())?;
    Some(format!(
        "{}s were {:.1}% of the {}, not the requested {}%",
        mix.operation, mix.executed_percent, mix.unit, mix.asked_percent
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Caches, CbcRun, RowsRun, Spec as _};
    use crate::record::{CacheState, LoopRecord, MixRecord};

    fn stage(reached: bool, executed_percent: f64, chance_points: f64) -> StageRecord {
        let mix = MixRecord {
            operation: "update".to_owned(),
            unit: "rows".to_owned(),
            asked_percent: 10.0,
            executed_percent,
            chance_points,
        };
        StageRecord {
            caches: Some(CacheState {
                wanted: "cold".to_owned(),
                shared_buffers: "0 blocks evicted".to_owned(),
                page_cache: "NOT dropped".to_owned(),
                reached,
            }),
            session_loop: LoopRecord { mix: Some(mix), ..LoopRecord::default() },
            ..StageRecord::default()
        }
    }

    #[test]
    fn a_cache_that_was_not_emptied_is_a_reason_unless_trying_is_enough() {
        let reasons = |caches, reached| {
            unlike_planned(
                &stage(reached, 10.0, 0.1),
                &RowsRun { caches, ..RowsRun::default() }.traits(),
            )
        };
        let found = reasons(Caches::Cold, false);
        assert!(found[0].contains("page cache: NOT dropped"), "{found:?}");
        assert!(reasons(Caches::Cold, true).is_empty());
        assert!(reasons(Caches::ColdTry, false).is_empty());
        assert!(reasons(Caches::Warm, false).is_empty());
        let cbc = |cold_try| CbcRun { cold: true, cold_try, ..CbcRun::default() };
        assert_eq!(unlike_planned(&stage(false, 10.0, 0.1), &cbc(false).traits()).len(), 1);
        assert!(unlike_planned(&stage(false, 10.0, 0.1), &cbc(true).traits()).is_empty());
    }

    #[test]
    fn a_missed_mix_is_a_reason_if_chance_is_excluded() {
        let reasons = |executed, chance| {
            unlike_planned(&stage(true, executed, chance), &RowsRun::default().traits())
        };
        assert_eq!(
            reasons(4.0, 0.5),
            ["updates were 4.0% of the rows, not the requested 10%".to_owned()]
        );
        assert!(reasons(4.0, 7.0).is_empty() && reasons(9.5, 0.1).is_empty());
    }
}
