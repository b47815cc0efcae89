//! Limits of the conclusion of a comparison.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::model::Comparison;
use crate::figure::Figure;
use crate::figure::Summary;
use crate::record::{Record, StageRecord, Validity};
use crate::stats::{Needed, Settings, warm_up};
use crate::units::format::{nearest_integer, number_of, percent};

/// Returns the limits of the conclusion.
pub(super) fn notes(comparison: &Comparison, a: &[&Record], b: &[&Record]) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, side, runs) in [("A", &comparison.a, a), ("B", &comparison.b, b)] {
        if !side.left_out.is_empty() {
            let count = number_of(side.left_out.len() as u64, "run");
            notes.push(format!(
                "{count} of {name} left out: invalid, interrupted or without a measurement"
            ));
        }
        if runs.iter().any(|run| run.validity() == Validity::Invalid) {
            notes.push(format!("the run of {name} is NOT VALID"));
        }
        if runs.iter().any(|run| run.validity() == Validity::NotVerified) {
            notes.push(format!("runs of {name} are imported: riops verified nothing"));
        }
        let unready = runs.iter().filter(|run| includes_warm_up(run, comparison.effect)).count();
        if unready > 0 {
            notes.push(format!(
                "in {unready} of {} runs of {name}, the measurement includes a warm-up that changes the rate by more than {}: use a longer --warmup",
                runs.len(),
                percent(comparison.effect)
            ));
        }
        for (mark, count) in marked(runs.iter().copied()) {
            let runs = format!("{count} of {} runs of {name}", runs.len());
            notes.push(format!("{runs} {}", predicate(mark, count)));
        }
    }
    notes.extend(server_notes(a, b));
    notes.extend(missing_note(["A", "B"], a, b));
    notes.extend(sampling_note(a, b));
    if comparison.is_of_single_runs() {
        let needed = Needed::at(Settings::default().alpha);
        notes.push(format!(
            "one run per side is not enough for a verdict, because runs also differ by chance{}",
            needed.map_or_else(String::new, |needed| format!(
                ": repeat both with --repeat {}",
                needed.runs_of_each
            ))
        ));
        return notes;
    }
    if let Some(count) = merged_blocks(comparison) {
        notes.push(format!(
            "{count} are too few for a comparison within them: all runs of A were compared with all runs of B"
        ));
    }
    if !has_overlap(a, b) {
        notes.push(
            "the groups were measured one after the other: a drift of the machine looks like a difference"
                .to_owned(),
        );
    }
    notes
}

/// Smallest difference between the shares of unsuccessful transactions with which the figures measure different work.
const MISSING_DIFFERS: f64 = 0.01;

/// Returns a note if different shares of the transactions of the two groups succeeded.
pub fn missing_note([name_a, name_b]: [&str; 2], a: &[&Record], b: &[&Record]) -> Option<String> {
    let mean = |runs: &[&Record]| {
        let shares: Vec<f64> = runs
            .iter()
            .flat_map(|run| &run.stages)
            .filter_map(StageRecord::missing_share)
            .collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    };
    let (of_a, of_b) = (mean(a), mean(b));
    ((of_a - of_b).abs() >= MISSING_DIFFERS).then(|| {
        format!(
            "{} of the transactions of {name_a} and {} of the transactions of {name_b} did not succeed: the figures of the successful transactions measure different work",
            percent(of_a),
            percent(of_b)
        )
    })
}

/// Returns a note if the sessions were sampled too rarely to split the time of a transaction.
pub fn sampling_note(a: &[&Record], b: &[&Record]) -> Option<String> {
    let needed = |runs: &[&Record]| -> Option<f64> {
        let stages = || runs.iter().flat_map(|run| Summary::of_each(run));
        // One run with enough samples is enough.
        if stages().any(|stage| stage.transaction_time().is_some()) {
            return None;
        }
        stages().filter_map(|stage| stage.seconds_for_samples()).max_by(f64::total_cmp)
    };
    let needed_s = needed(a).into_iter().chain(needed(b)).max_by(f64::total_cmp)?;
    Some(format!(
        "the change of the time of a transaction is not known: too few samples of the sessions; measure for at least {} s",
        nearest_integer(needed_s.ceil())
    ))
}

/// Settings of asynchronous reads.
const ASYNC_IO: [&str; 5] =
    ["io_method", "io_workers", "io_min_workers", "io_max_workers", "io_max_concurrency"];

/// Below this share of the read bytes, the settings of asynchronous reads cannot change a result by more than runs differ.
const ASYNC_SHARE_MIN: f64 = 0.05;

/// Returns a note if a setting of asynchronous reads differs, although nearly all reads were synchronous.
fn async_io_note(a: &[&Record], b: &[&Record]) -> Option<String> {
    let values = |runs: &[&Record], name: &str| -> BTreeSet<_> {
        runs.iter().map(|run| run.target.settings.get(name).cloned()).collect()
    };
    let changed = ASYNC_IO.into_iter().find(|name| values(a, name) != values(b, name))?;
    let stages = a.iter().chain(b).flat_map(|run| &run.stages);
    let shares = stages.filter_map(|stage| stage.io.as_ref()?.async_read_share);
    let most = shares.max_by(f64::total_cmp).filter(|share| *share < ASYNC_SHARE_MIN)?;
    Some(format!(
        "{changed} can hardly matter here: {} of the bytes were read asynchronously",
        if most > 0.0 { format!("at most {}", percent(most)) } else { "none".to_owned() }
    ))
}

/// Returns notes on servers that differ: one has a slow build, or a setting that differs had no effect.
pub fn server_notes(a: &[&Record], b: &[&Record]) -> Vec<String> {
    build_notes(a, b).into_iter().chain(async_io_note(a, b)).collect()
}

/// Options of a build that cost speed: of compilers, and of the server.
const SLOW_FLAGS: [&str; 4] = ["-O0", "-O1", "-Og", "-Os"];

/// Servers that differ in how they were built, if the build of one costs speed.
fn build_notes(a: &[&Record], b: &[&Record]) -> Vec<String> {
    let slow = |runs: &[&Record]| -> BTreeSet<String> {
        let of_run = |run: &&Record| {
            let flags = run.target.compiler_flags.clone().unwrap_or_default();
            let mut slow_flags: Vec<_> = flags
                .split_whitespace()
                .filter(|flag| SLOW_FLAGS.contains(flag))
                .map(str::to_owned)
                .collect();
            let asserts = run.target.settings.get("debug_assertions");
            slow_flags.extend(asserts.filter(|on| *on == "on").map(|_| "assertions".to_owned()));
            slow_flags
        };
        runs.iter().flat_map(of_run).collect()
    };
    let (of_a, of_b) = (slow(a), slow(b));
    if of_a == of_b {
        return Vec::new();
    }
    let note = |(name, flags): (&str, BTreeSet<String>)| {
        let flags: Vec<_> = flags.into_iter().collect();
        let flags = flags.join(", ");
        format!(
            "the server of {name} was built with {flags}, which makes it slower: differences are not only due to versions or settings"
        )
    };
    let slow = [("A", of_a), ("B", of_b)].into_iter().filter(|(_, flags)| !flags.is_empty());
    slow.map(note).collect()
}

/// Returns the number of blocks if some were merged for the comparison.
fn merged_blocks(comparison: &Comparison) -> Option<String> {
    let effects = comparison.figures().filter_map(|figure| figure.effect.as_ref());
    let is_merged = effects.into_iter().any(|effect| effect.design.blocks < comparison.blocks);
    is_merged.then(|| number_of(comparison.blocks as u64, "round"))
}

/// Returns whether the two groups overlap in time.
fn has_overlap(a: &[&Record], b: &[&Record]) -> bool {
    let span = |runs: &[&Record]| {
        let starts = runs.iter().map(|run| run.started_at);
        starts.clone().min().zip(starts.max())
    };
    match (span(a), span(b)) {
        (Some((first_a, last_a)), Some((first_b, last_b))) => first_a < last_b && first_b < last_a,
        _ => false,
    }
}

/// Returns whether the first intervals of a stage change the rate of the whole stage by more than the smallest
/// relevant effect (MSER-5).
fn includes_warm_up(run: &Record, effect: f64) -> bool {
    let throughput = Figure::throughput_of(&run.plan.work);
    run.stages.iter().any(|stage| {
        let intervals: Vec<(f64, u64)> = stage
            .session_loop
            .series
            .iter()
            .map(|point| (point.seconds, throughput.count_in(point)))
            .collect();
        let seconds: f64 = intervals.iter().map(|(seconds, _)| seconds).sum();
        let count: u64 = intervals.iter().map(|(_, count)| count).sum();
        warm_up(&intervals).is_some_and(|start| {
            let whole_per_s = count as f64 / seconds.max(f64::MIN_POSITIVE);
            start.intervals > 0 && (whole_per_s / start.after_per_s - 1.0).abs() > effect
        })
    })
}

/// Returns the predicate of a mark for this number of runs: `were disturbed`.
pub(crate) fn predicate(mark: &str, count: usize) -> String {
    let [are, have] = if count == 1 { ["was", "has"] } else { ["were", "have"] };
    match mark {
        "breached" => "breached a threshold".to_owned(),
        "undecided" => format!("{have} an undecided threshold"),
        "outage" => "had an outage".to_owned(),
        "stall" => "had a stall".to_owned(),
        "connections lost" => "lost connections".to_owned(),
        "client stalls" => "waited for the poll loop of the client".to_owned(),
        "plan change" => "had a change of plan".to_owned(),
        "doubtful statement" => format!("{have} a doubtful statement"),
        mark => format!("{are} {mark}"),
    }
}

/// Returns the number of these runs that have each mark.
pub fn marked<'a>(runs: impl Iterator<Item = &'a Record>) -> Vec<(&'static str, usize)> {
    let mut counts = IndexMap::new();
    for mark in runs.flat_map(Record::marks) {
        *counts.entry(mark).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::IoRecord;
    use crate::record::example::example_record;

    #[test]
    fn a_setting_of_asynchronous_reads_cannot_matter_without_them() {
        let note = |method: &str, share| {
            let with = |method: &str, async_read_share| {
                let mut record = example_record();
                record.target.settings.insert("io_method".to_owned(), method.to_owned());
                record.stages[0].io = Some(IoRecord { async_read_share, ..IoRecord::default() });
                record
            };
            let (a, b) = (with("worker", share), with(method, None));
            server_notes(&[&a], &[&b]).pop().unwrap_or_default()
        };
        assert_eq!(
            note("sync", Some(0.03)),
            "io_method can hardly matter here: at most 3.0% of the bytes were read asynchronously"
        );
        assert!(
            note("sync", Some(0.0)).ends_with("here: none of the bytes were read asynchronously")
        );
        for (method, share) in [("worker", Some(0.0)), ("sync", Some(0.05)), ("sync", None)] {
            assert_eq!(note(method, share), "", "{method} {share:?}");
        }
    }
}
