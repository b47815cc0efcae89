//! The time of the sessions from the extension `pg_wait_sampling`, which takes a sample each 10 ms: a batch for each interval.

use std::collections::BTreeMap;

use super::batches::Batches;
use super::profile::{RUNNING, part_counts};
use super::reading::schema;
use crate::server::{Connection, ConnectionError};
use riops_model::record::{SessionTime, TimePart};

const SAMPLES: &str = include_str!("../../sql/probe/wait_sampling.sql");
/// Name of the row with the number of samples, among the rows of the events.
const TAKEN: &str = "samples";

/// Number of samples so far, by event.
type Counts = BTreeMap<String, u64>;

/// Collects the samples of the intervals.
#[derive(Debug)]
pub(super) struct WaitSampling {
    /// The query for the number of samples so far.
    pub(super) sql: String,
    last: Option<Counts>,
    batches: Batches,
}

impl WaitSampling {
    /// Returns the collector; `None` without the extension.
    ///
    /// # Errors
    /// [`ConnectionError`] if the connection fails.
    pub(super) fn new(connection: &mut Connection) -> Result<Option<Self>, ConnectionError> {
        let schema = schema(connection, "pg_wait_sampling")?;
        let sql = schema.map(|schema| SAMPLES.replace("{schema}", &schema));
        Ok(sql.map(|sql| Self { sql, last: None, batches: Batches::default() }))
    }

    /// Starts a stage.
    pub(super) fn start(&mut self) {
        (self.last, self.batches) = (None, Batches::default());
    }

    /// Adds the samples since the last call, of `sessions` sessions.
    pub(super) fn add(&mut self, sessions: u32, rows: &[Vec<Option<String>>]) {
        let row = |row: &Vec<Option<String>>| match row.as_slice() {
            [Some(event), Some(count)] => Some((event.clone(), count.parse().ok()?)),
            _ => None,
        };
        let now: Counts = rows.iter().filter_map(row).collect();
        let Some(before) = self.last.replace(now.clone()) else {
            return;
        };
        let since = |event: &str| {
            let count = |counts: &Counts| counts.get(event).copied().unwrap_or_default();
            count(&now).saturating_sub(count(&before))
        };
        let all = since(TAKEN) * u64::from(sessions);
        let mut counts = [0; TimePart::COUNT];
        let mut seen = 0;
        for event in now.keys().filter(|event| *event != TAKEN) {
            part_counts(&mut counts, event, since(event));
            seen += since(event);
        }
        // Version 1.1 has no samples of running processes: they are the missing ones.
        if !now.contains_key(RUNNING) {
            part_counts(&mut counts, RUNNING, all.saturating_sub(seen));
        }
        self.batches.add(all.max(seen), &counts);
    }

    /// Returns the time of the sessions; empty with too few intervals.
    pub(super) fn session_time(&self) -> Vec<SessionTime> {
        let shares = self.batches.shares();
        if shares.iter().all(|share| share.reach.is_some()) { shares } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_missing_samples_to_running_processes() {
        let mut sampling =
            WaitSampling { sql: String::new(), last: None, batches: Batches::default() };
        let rows = |counts: &[(&str, u64)]| -> Vec<Vec<Option<String>>> {
            counts
                .iter()
                .map(|(event, count)| vec![Some((*event).to_owned()), Some(count.to_string())])
                .collect()
        };
        // Two sessions, 100 samples an interval.
        for interval in 0..6 {
            let counts = [
                ("samples", 1_000 + interval * 100),
                ("IO:WalSync", interval * 50),
                ("Client:ClientRead", interval * 120),
            ];
            sampling.add(2, &rows(&counts));
        }
        let times = sampling.session_time();
        let share = |part: TimePart| times.iter().find(|time| time.part == part).unwrap().share;
        assert_eq!((share(TimePart::Wal), share(TimePart::Network)), (0.25, 0.6));
        assert!((share(TimePart::Cpu) - 0.15).abs() < 1e-12);
        sampling.start();
        assert_eq!(sampling.session_time(), []);
    }
}
