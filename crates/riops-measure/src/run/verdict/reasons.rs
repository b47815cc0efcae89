//! Why a run is not valid, as far as it follows from the record of a stage; `accesses` has the reasons of access paths.

use riops_model::plan::{Plan, Stop, Traits};
use riops_model::record::{RateVerdict, StageRecord, Warning};
use riops_model::units;

/// A step of the server's clock by more than this share of the measurement changes the rate of a server-side
/// loop by more than repeated runs differ.
const CLOCK_STEP_SHARE: f64 = 0.01;

/// End of the reasons that are only warnings without `--strict`.
pub(in crate::run) const STRICT: &str = " (--strict)";

/// Returns why the result of a session loop is not valid.
pub(super) fn loop_reasons(stage: &StageRecord, plan: &Plan, wrong_replies: u64) -> Vec<String> {
    let traits = plan.work.traits();
    let wrong_replies = (wrong_replies > 0).then(|| {
        let what = traits.wrong_replies.unwrap_or("fewer or more rows than requested");
        format!("{wrong_replies} replies had {what}")
    });
    let first = [missing_rows(stage, plan, &traits), ended_sessions(stage)];
    let later = [clock_step(stage), wrong_replies];
    let first = first.into_iter().flatten().chain(without_success(stage, &traits));
    first.chain(later.into_iter().flatten()).chain(unlike_planned(stage, &traits)).collect()
}

fn missing_rows(stage: &StageRecord, plan: &Plan, traits: &Traits) -> Option<String> {
    let Stop::Rows(planned) = plan.stop else {
        return None;
    };
    let (loaded, planned_text) = (units::count(stage.rows), units::count(planned));
    (traits.is_exact && stage.rows < planned)
        .then(|| format!("{loaded} of {planned_text} rows were loaded"))
}

fn ended_sessions(stage: &StageRecord) -> Option<String> {
    let ended = &stage.session_loop.ended_sessions;
    let (count, first) = (ended.len(), &ended.first()?.message);
    Some(format!("an error ended {count} of the sessions, the first with: {first}"))
}

/// Returns that the server was not available at the end, and that no transaction ended.
fn without_success(stage: &StageRecord, traits: &Traits) -> impl Iterator<Item = String> {
    let is_without = stage.transactions == 0;
    let is_unmeasured = stage.seconds <= 0.0;
    let accepts_none = traits.accepts_no_transactions;
    let has_lost_connections = stage.session_loop.reconnects > 0;
    let is_down = !is_without || has_lost_connections && !accepts_none;
    let reasons = [
        (stage.ended_in_an_outage() && is_down)
            .then_some("the server was not available at the end of the measurement"),
        (is_without && !accepts_none && !is_unmeasured)
            .then_some("no transaction ended within the measurement"),
        (is_without && !accepts_none && is_unmeasured)
            .then_some("the run ended during the warm-up"),
    ];
    let drained = stage.session_loop.drained;
    let in_flight = match drained.transactions + drained.lost {
        count if count > 0 && is_without && !is_unmeasured => {
            format!("; {} in flight at its end", units::count(count))
        }
        _ => String::new(),
    };
    reasons.into_iter().flatten().map(move |text| format!("{text}{in_flight}"))
}

/// Returns what makes a stage invalid under `--strict`.
pub(in crate::run) fn strict_reasons(
    stage: &StageRecord,
    plan: &Plan,
    warnings: &[Warning],
) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(cpu) = stage.client_cpu.as_ref().filter(|cpu| cpu.limited) {
        let limits: Vec<_> = cpu.limits.iter().map(|limit| limit.text()).collect();
        reasons.push(format!("the client was the bottleneck: {}", limits.join("; ")));
    }
    let rate = match stage.rate_verdict() {
        Some(RateVerdict::NotReached) => Some("the rate was not reached"),
        Some(RateVerdict::Growing) => Some("the response time grew"),
        _ => None,
    };
    reasons.extend(rate.map(|what| format!("{what}: {}", stage.rate_text(&plan.schedule))));
    let disturbances = warnings.iter().filter(|warning| warning.kind.is_disturbance());
    reasons.extend(disturbances.map(|warning| format!("disturbed: {}", warning.text)));
    reasons.into_iter().map(|reason| format!("{reason}{STRICT}")).collect()
}

/// Returns the reason of the verdict if the server's clock was set during a server-side loop, by enough to
/// change the rate.
fn clock_step(stage: &StageRecord) -> Option<String> {
    let step_s = stage.session_loop.server_clock_step_s?;
    let direction = if step_s > 0.0 { "forward" } else { "back" };
    let (step_s, seconds) = (step_s.abs(), stage.seconds);
    (step_s > CLOCK_STEP_SHARE * seconds).then(|| {
        format!("the clock of the server was set {direction} by {step_s:.3} s during the measurement: the loop in the server did not measure {seconds:.3} s")
    })
}

/// Returns the reasons if the stage did not run as the plan requires.
pub(in crate::run) fn unlike_planned(stage: &StageRecord, traits: &Traits) -> Vec<String> {
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
    use riops_model::plan::{Caches, CbcRun, RowsRun, Spec as _};
    use riops_model::record::{CacheState, DrainedRecord, LoopRecord, MixRecord};

    #[test]
    fn a_step_of_the_servers_clock_makes_the_run_invalid_if_it_changes_the_rate() {
        let with_step = |step_s: f64| {
            let mut stage = StageRecord { seconds: 60.0, ..StageRecord::default() };
            stage.session_loop.server_clock_step_s = Some(step_s);
            clock_step(&stage)
        };
        assert_eq!((with_step(0.5), with_step(-0.5)), (None, None));
        assert_eq!(
            with_step(-15.0).unwrap(),
            "the clock of the server was set back by 15.000 s during the measurement: the loop in the server did not measure 60.000 s"
        );
        assert!(with_step(15.0).unwrap().contains("set forward by 15.000 s"));
        assert_eq!(clock_step(&StageRecord::default()), None);
    }

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
    fn rejects_a_cache_that_was_not_emptied_unless_trying_is_enough() {
        let reasons = |caches, reached| {
            unlike_planned(
                &stage(reached, 10.0, 0.1),
                &RowsRun { caches, ..RowsRun::default() }.traits(),
            )
        };
        let texts = reasons(Caches::Cold, false);
        assert!(texts[0].contains("page cache: NOT dropped"), "{texts:?}");
        assert!(reasons(Caches::Cold, true).is_empty());
        assert!(reasons(Caches::ColdTry, false).is_empty());
        assert!(reasons(Caches::Warm, false).is_empty());
        let cbc = |cold_try| CbcRun { cold: true, cold_try, ..CbcRun::default() };
        assert_eq!(unlike_planned(&stage(false, 10.0, 0.1), &cbc(false).traits()).len(), 1);
        assert!(unlike_planned(&stage(false, 10.0, 0.1), &cbc(true).traits()).is_empty());
    }

    #[test]
    fn a_run_without_an_answer_is_not_valid_and_shows_what_was_in_flight() {
        let ping = riops_model::plan::WorkPlan::default_of("ping").unwrap().traits();
        let reasons = |seconds, transactions, lost| {
            let mut stage = StageRecord { seconds, ..StageRecord::default() };
            stage.session_loop.drained = DrainedRecord { transactions, max_us: Some(1.0), lost };
            without_success(&stage, &ping).collect::<Vec<_>>()
        };
        assert_eq!(
            reasons(1.0, 2, 1),
            ["no transaction ended within the measurement; 3 in flight at its end"]
        );
        assert_eq!(reasons(1.0, 0, 0), ["no transaction ended within the measurement"]);
        assert_eq!(reasons(0.0, 2, 1), ["the run ended during the warm-up"]);
    }

    #[test]
    fn rejects_a_missed_mix_if_chance_is_excluded() {
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
