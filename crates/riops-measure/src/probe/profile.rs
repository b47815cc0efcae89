//! Wait events of the sessions of a run, and the other active sessions of the server, from samples of
//! `pg_stat_activity`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::batches::Batches;
use riops_model::record::{Blocker, LockWaits, OtherSessions, TimePart, WaitShare};

/// Interval between two samples.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);
/// Longest interval between two samples.
const SAMPLE_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// A pause is at least this many times as long as the fastest query so far, so that sampling takes at most 1%
/// of one CPU, regardless of the number of sessions. Slower queries waited for a CPU.
const PAUSE_FACTOR: u32 = 100;
/// Event of an active session without a wait event.
pub(super) const RUNNING: &str = "CPU";
/// Name of the processes of autovacuum, as in sessions.sql.
pub const AUTOVACUUM: &str = "autovacuum";
/// Event of the sessions that wait for their client.
const IDLE: &str = "idle";

/// Returns the wait event of an active process: state, type and name of the event.
pub(super) fn active_event(row: &Vec<Option<String>>) -> Option<String> {
    match row.as_slice() {
        [Some(state), kind, event] if state == "active" => Some(
            kind.as_ref()
                .zip(event.as_ref())
                .map_or_else(|| RUNNING.to_owned(), |(kind, event)| format!("{kind}:{event}")),
        ),
        _ => None,
    }
}

/// Counts of samples.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) samples: u64,
    /// Samples of each wait event, over all sessions.
    events: BTreeMap<String, u64>,
    /// Samples of each other application.
    others: BTreeMap<String, u64>,
    /// The places of the sessions of a run.
    places: BTreeSet<String>,
    /// Sessions that waited for the locks of each application: its name, its state, and whether it is the run.
    blockers: BTreeMap<(String, String, bool), u64>,
    /// The events by part.
    pub(super) batches: Batches,
    /// Most backends of the run in a sample, with idle ones.
    backends_max: u64,
}

impl Profile {
    /// Counts a sample of one process.
    pub(super) fn add_process(&mut self, event: String) {
        self.samples += 1;
        let mut counts = [0; TimePart::COUNT];
        part_counts(&mut counts, &event, 1);
        self.batches.add(1, &counts);
        *self.events.entry(event).or_default() += 1;
    }

    /// Counts a sample of `sessions` sessions: rows of whether the backends belong to the run, their
    /// place or else their application, their wait event, and their number. Returns whether any of the run waits for a lock.
    pub(super) fn add_sessions(&mut self, sessions: u32, rows: &[Vec<Option<String>>]) -> bool {
        self.samples += 1;
        let (mut seen, mut backends, mut waits_for_lock) = (0, 0, false);
        let mut counts = [0; TimePart::COUNT];
        for row in rows {
            let [own, Some(name), Some(event), Some(count)] = row.as_slice() else {
                continue;
            };
            let count: u64 = count.parse().unwrap_or(0);
            if own.as_deref() == Some("t") {
                backends += count;
            }
            if own.as_deref() == Some("t") && event == IDLE && sessions > 0 {
                // Skips idle backends, including riops's own: the idle sessions of a run are the sessions without a row.
                continue;
            }
            if own.as_deref() == Some("t") {
                seen += count;
                if !self.places.contains(name) {
                    self.places.insert(name.clone());
                }
                waits_for_lock |= event.starts_with("Lock:");
                part_counts(&mut counts, event, count);
                *self.events.entry(event.clone()).or_default() += count;
            } else {
                *self.others.entry(name.clone()).or_default() += count;
            }
        }
        self.backends_max = self.backends_max.max(backends);
        self.batches.add(u64::from(sessions).max(seen), &counts);
        *self.events.entry(IDLE.to_owned()).or_default() +=
            u64::from(sessions).saturating_sub(seen);
        waits_for_lock
    }

    /// Counts the holders of the locks that sessions wait for. A row shows whether the holder is the run, its
    /// application, its state, and the number of sessions that wait for it.
    pub(super) fn add_blockers(&mut self, rows: &[Vec<Option<String>>]) {
        for row in rows {
            if let [own, Some(name), Some(state), Some(count)] = row.as_slice() {
                let blocker = (name.clone(), state.clone(), own.as_deref() == Some("t"));
                *self.blockers.entry(blocker).or_default() += count.parse().unwrap_or(0);
            }
        }
    }

    /// Returns who held the locks, the most frequent first.
    pub(super) fn blockers(&self) -> Vec<Blocker> {
        let blocker = |((name, state, is_own), share): (&(String, String, bool), f64)| Blocker {
            name: name.clone(),
            state: state.clone(),
            is_own: *is_own,
            share,
        };
        shares(&self.blockers, self.blockers.values().sum()).map(blocker).collect()
    }

    /// Returns the share of each wait event in the samples, most frequent first.
    pub(super) fn waits(&self) -> Vec<WaitShare> {
        let events = shares(&self.events, self.events.values().sum());
        let occurred = events.filter(|&(_, share)| share > 0.0);
        occurred.map(|(event, share)| WaitShare { event: event.clone(), share }).collect()
    }

    /// Returns the databases of the sessions, if the samples have them.
    pub(super) fn databases(&self) -> Vec<String> {
        self.places.iter().filter(|place| !place.is_empty()).cloned().collect()
    }

    /// Returns the most backends of the run in a sample, if they were fewer than this number of sessions.
    pub(super) fn backends_max(&self, sessions: u32) -> Option<u64> {
        Some(self.backends_max).filter(|most| (1..u64::from(sessions)).contains(most))
    }

    /// Returns the mean number of sessions in the samples.
    pub(super) fn sessions(&self) -> f64 {
        self.events.values().sum::<u64>() as f64 / self.samples.max(1) as f64
    }

    /// Returns the sessions that waited for locks.
    pub(super) fn lock_waits(&self) -> LockWaits {
        let locks = self.events.iter().filter(|(event, _)| event.starts_with("Lock:"));
        LockWaits { samples: self.samples, waiting: locks.map(|(_, count)| count).sum() }
    }

    /// Returns the other applications, the most active first.
    pub(super) fn others(&self) -> Vec<OtherSessions> {
        let others = shares(&self.others, self.samples);
        others.map(|(name, active)| OtherSessions { name: name.clone(), active }).collect()
    }
}

/// Returns the counts divided by `all`, the largest first.
fn shares<K>(counts: &BTreeMap<K, u64>, all: u64) -> impl Iterator<Item = (&K, f64)> {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| Reverse(**count));
    sorted.into_iter().map(move |(key, &count)| (key, count as f64 / all.max(1) as f64))
}

/// Counts sessions with an event in its part.
pub(super) fn part_counts(counts: &mut [u64; TimePart::COUNT], event: &str, sessions: u64) {
    let part = TimePart::of_event(event);
    let at = part.and_then(|part| TimePart::ALL.iter().position(|known| *known == part));
    if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
        *count += sessions;
    }
}

/// Returns the pause after a sample if the fastest query took `query`.
pub(super) fn pause_after(query: Duration) -> Duration {
    (query * PAUSE_FACTOR).clamp(SAMPLE_INTERVAL, SAMPLE_INTERVAL_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(own: &str, application: &str, event: &str, count: u64) -> Vec<Option<String>> {
        [own.to_owned(), application.to_owned(), event.to_owned(), count.to_string()]
            .map(Some)
            .to_vec()
    }

    #[test]
    fn sorts_waits_by_frequency_with_shares_that_sum_to_one() {
        let mut profile = Profile::default();
        for event in ["CPU", "IO:WalSync", "CPU", "CPU"] {
            profile.add_process(event.to_owned());
        }
        let waits = profile.waits();
        assert_eq!((waits[0].event.as_str(), waits[0].share), ("CPU", 0.75));
        assert_eq!(waits.iter().map(|wait| wait.share).sum::<f64>(), 1.0);
        assert_eq!(profile.samples, 4);
    }

    #[test]
    fn counts_inactive_sessions_as_idle_and_other_sessions_separately() {
        let mut profile = Profile::default();
        let first = [row("t", "riops", "Lock:tuple", 2), row("f", "pgbench", "CPU", 3)];
        profile.add_sessions(4, &first);
        let second = [row("t", "riops", "CPU", 4), row("f", "autovacuum", "IO:DataFileRead", 1)];
        profile.add_sessions(4, &second);
        let share = |event: &str| {
            profile.waits().iter().find(|wait| wait.event == event).map_or(0.0, |wait| wait.share)
        };
        assert_eq!((share("CPU"), share("Lock:tuple"), share("idle")), (0.5, 0.25, 0.25));
        assert_eq!(profile.lock_waits(), LockWaits { samples: 2, waiting: 2 });
        let others = profile.others();
        assert_eq!((others[0].name.as_str(), others[0].active), ("pgbench", 1.5));
        assert_eq!((others[1].name.as_str(), others[1].active), ("autovacuum", 0.5));
    }

    #[test]
    fn counts_lock_holders_by_their_waiting_sessions() {
        let mut profile = Profile::default();
        assert!(profile.add_sessions(4, &[row("t", "riops", "Lock:tuple", 2)]));
        profile.add_blockers(&[
            row("f", "psql", "idle in transaction", 3),
            row("t", "riops", "active", 1),
        ]);
        assert!(!profile.add_sessions(4, &[row("f", "psql", "Lock:tuple", 1)]));
        let blockers: Vec<_> = profile
            .blockers()
            .into_iter()
            .map(|blocker| (blocker.name, blocker.is_own, blocker.share))
            .collect();
        assert_eq!(blockers, [("psql".to_owned(), false, 0.75), ("riops".to_owned(), true, 0.25)]);
    }

    #[test]
    fn slow_samples_are_taken_less_often() {
        assert_eq!(pause_after(Duration::from_micros(300)), SAMPLE_INTERVAL);
        assert_eq!(pause_after(Duration::from_millis(5)), Duration::from_millis(500));
        assert_eq!(pause_after(Duration::from_secs(1)), SAMPLE_INTERVAL_MAX);
    }
}
