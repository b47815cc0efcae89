//! The runs that are merged, and whether they are parts of one load: the same plan, server and
//! dataset, and a common time.

use std::mem::discriminant;

use serde_json::Value;

use riops_model::plan::{Drain, Plan};
use riops_model::record::{AgentRecord, HistogramError, Record, StageRecord};
use riops_model::units::{duration_us, nearest_integer};

/// Fields of a plan that may differ between the clients.
const OWN_FIELDS: [&str; 12] = [
    "sessions",
    "workers",
    "driver",
    "share",
    "schedule",
    "stop",
    "seed",
    "label",
    "tags",
    "probes",
    "profile_hz",
    "instructions",
];

/// Failure to merge records.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The runs are not parts of one load.
    #[error("cannot merge the runs: {0}")]
    Unfit(String),
    /// A histogram is damaged.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}

/// A run to be merged, with what is known about its client besides its record.
#[derive(Debug, Clone)]
pub struct Part {
    /// Number, host, clock and heartbeats of the client.
    pub agent: AgentRecord,
    /// Its record; `None` if the client was lost.
    pub record: Option<Record>,
}

impl Part {
    /// Leaves out what was not measured: the stages from the first one on that ended before its measurement began. Without any
    /// stage, the client has no result.
    pub(super) fn leave_out_unmeasured(&mut self) {
        let Some(record) = &mut self.record else {
            return;
        };
        let is_measured = |stage: &StageRecord| stage.seconds > 0.0;
        let measured = record.stages.iter().position(|stage| !is_measured(stage));
        record.stages.truncate(measured.unwrap_or(record.stages.len()));
        if record.stages.is_empty() {
            let reason = record.failure.as_deref().unwrap_or(record.status.as_str());
            self.agent.failure = Some(format!("ended before it measured: {reason}"));
            self.agent.run = Some(record.id);
            self.record = None;
        }
    }

    /// Returns the part of a client that only its record describes. Its number comes from its share, otherwise from
    /// `position`.
    pub fn from_record(position: u32, record: Record) -> Self {
        let agent = record.plan.share.map_or(position, |share| share.agent);
        let host = record.client.machine.host.clone();
        Self {
            agent: AgentRecord { number: agent, host, ..AgentRecord::default() },
            record: Some(record),
        }
    }
}

/// Fails unless the runs are parts of one load.
pub(super) fn require_fit(records: &[&Record]) -> Result<(), MergeError> {
    let Some((first, others)) = records.split_first() else {
        return Ok(());
    };
    for record in records {
        require_mergeable(record)?;
    }
    for (position, other) in others.iter().enumerate() {
        let earlier = records.iter().take(position + 1);
        if earlier.clone().any(|record| record.id == other.id) {
            return unfit(format!("run {} is given twice", other.id));
        }
        if let Some(share) = other.plan.share
            && earlier.clone().any(|record| record.plan.share == Some(share))
        {
            return unfit(format!("two runs belong to agent {}", share.agent));
        }
        let has_same_seed = |record: &&&Record| {
            record.plan.seed == other.plan.seed && record.plan.share == other.plan.share
        };
        if let Some(same) = earlier.clone().find(has_same_seed) {
            return unfit(format!(
                "{} and {} have the same random seed {}, so they executed the same statements: give each client another --seed",
                same.id, other.id, other.plan.seed
            ));
        }
        let differences = [
            ("server version", &first.target.server_version, &other.target.server_version),
            ("database", &first.target.database, &other.target.database),
        ];
        let differing = differences.into_iter().find(|(_, one, other)| one != other);
        if let Some((what, one, two)) = differing {
            return unfit(format!("the {what} of {} is {one}, of {} {two}", first.id, other.id));
        }
        let dataset =
            |record: &Record| record.target.dataset.as_ref().map(|dataset| dataset.id.clone());
        if dataset(first) != dataset(other) {
            return unfit(format!("{} and {} used different datasets", first.id, other.id));
        }
        if let Some(text) = differing_plan(first, other)? {
            return unfit(text);
        }
        let mut both = first.stages.iter().zip(&other.stages);
        if both.any(|(one, other)| one.name != other.name) {
            return unfit(format!("{} and {} have different stages", first.id, other.id));
        }
    }
    Ok(())
}

fn unfit<T>(text: String) -> Result<T, MergeError> {
    Err(MergeError::Unfit(text))
}

/// Fails if a run cannot be part of another.
fn require_mergeable(record: &Record) -> Result<(), MergeError> {
    let id = record.id;
    if record.imported.is_some() {
        return unfit(format!("{id} was imported: riops did not measure it"));
    }
    if !record.agents.is_empty() {
        return unfit(format!("{id} is already merged: merge the runs that it consists of"));
    }
    let is_loop = |stage: &StageRecord| stage.kind.is_loop();
    match record.stages.iter().find(|stage| !is_loop(stage)) {
        _ if record.stages.is_empty() => unfit(format!("{id} has no result")),
        Some(stage) => unfit(format!("stage {} of {id} is not a load of sessions", stage.name)),
        None => Ok(()),
    }
}

/// Returns the first field in which the plans of two runs differ, with both values.
fn differing_plan(first: &Record, other: &Record) -> Result<Option<String>, MergeError> {
    let ids = [first.id.to_string(), other.id.to_string()];
    let [one, two] = [&first.plan, &other.plan];
    let names = ids.each_ref().map(String::as_str);
    let of_kind = [
        ("schedule", one.schedule.as_str() != two.schedule.as_str()),
        ("stop", discriminant(&one.stop) != discriminant(&two.stop)),
        ("stop", one.stop.seconds() != two.stop.seconds()),
    ];
    let kept = of_kind.into_iter().find_map(|(name, differs)| differs.then_some(name));
    let ignored: Vec<&str> = OWN_FIELDS.into_iter().filter(|name| Some(*name) != kept).collect();
    differing_plans([one, two], &ignored, names)
        .map_err(|error| MergeError::Unfit(error.to_string()))
}

/// Returns the first field in which two plans differ, except `ignored` fields, with both values. `names` identify the
/// plans.
///
/// # Errors
/// [`serde_json::Error`] if a plan is no JSON.
pub fn differing_plans(
    plans: [&Plan; 2],
    ignored: &[&str],
    names: [&str; 2],
) -> Result<Option<String>, serde_json::Error> {
    let [one, two] = plans.map(serde_json::to_value);
    let (Value::Object(one), Value::Object(two)) = (one?, two?) else {
        return Ok(None);
    };
    let fields = one.keys().chain(two.keys()).filter(|name| !ignored.contains(&name.as_str()));
    let mut differing = fields.filter(|name| one.get(*name) != two.get(*name));
    let value = |fields: &serde_json::Map<String, Value>, name: &str| {
        fields.get(name).map_or_else(|| "absent".to_owned(), Value::to_string)
    };
    Ok(differing.next().map(|name| {
        let [first, other] = names;
        let (one, two) = (value(&one, name), value(&two, name));
        format!("their plans differ: \"{name}\" is {one} in {first} and {two} in {other}")
    }))
}

/// The windows of the clients are one if they have at least this share in common: repeated runs differ by more.
const ONE_WINDOW_SHARE: f64 = 0.99;
/// With a smaller common share, the latencies describe another load for a relevant part of the time.
pub(super) const VALID_SHARE: f64 = 0.9;

/// The windows of all clients of a stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Window {
    /// By how much each client started before the last one, in seconds.
    pub(super) before_s: Vec<f64>,
    /// Length of the time in which all measured, in seconds.
    pub(super) common_s: f64,
    /// Time from the first start to the last end, in seconds.
    pub(super) whole_s: f64,
    /// Length of the longest window, in seconds.
    longest_s: f64,
    /// Whether each client ends on its own, after its share of the transactions.
    ends_by_count: bool,
}

impl Window {
    /// Returns the windows of a stage.
    ///
    /// # Errors
    /// [`MergeError::Unfit`] if no time is common to all.
    pub(super) fn from_stages(stages: &[&StageRecord], plan: &Plan) -> Result<Self, MergeError> {
        let starts = stages.iter().map(|stage| {
            let at = stage.started_at.map(|at| at.as_nanosecond() as f64 / 1e9);
            let missing = || format!("stage {} has no start time", stage.name);
            at.ok_or_else(|| MergeError::Unfit(missing()))
        });
        let starts: Vec<f64> = starts.collect::<Result<_, _>>()?;
        let ends = || starts.iter().zip(stages).map(|(start, stage)| start + stage.seconds);
        let last_start = starts.iter().copied().fold(f64::MIN, f64::max);
        let first_start = starts.iter().copied().fold(f64::MAX, f64::min);
        let common_s = ends().fold(f64::MAX, f64::min) - last_start;
        if common_s <= 0.0 {
            let apart = duration_us(-common_s * 1e6);
            return Err(MergeError::Unfit(format!(
                "they did not take place at the same time: one ended {apart} before another started to measure"
            )));
        }
        Ok(Self {
            before_s: starts.iter().map(|start| last_start - start).collect(),
            common_s,
            whole_s: ends().fold(f64::MIN, f64::max) - first_start,
            longest_s: stages.iter().map(|stage| stage.seconds).fold(0.0, f64::max),
            ends_by_count: plan.stop.seconds().is_none() || plan.drain != Drain::Uncounted,
        })
    }

    /// Returns the share of the time of the measurements in which all clients measured, 0 to 1.
    pub(super) fn common_share(&self) -> f64 {
        let start_s = self.before_s.iter().copied().fold(0.0, f64::max);
        let whole_s = if self.ends_by_count { self.common_s + start_s } else { self.whole_s };
        self.common_s / whole_s.max(f64::MIN_POSITIVE)
    }

    /// Whether the windows are so similar that they are one.
    pub(super) fn is_one(&self) -> bool {
        self.common_share() >= ONE_WINDOW_SHARE
    }

    /// Returns the length of the measurement, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        match (self.is_one(), self.ends_by_count) {
            (true, false) => self.longest_s,
            (_, true) => self.whole_s,
            (false, false) => self.common_s,
        }
    }

    /// Returns the start of the common window in a series with intervals of this length: the number of intervals that each
    /// client had before.
    pub(super) fn intervals_before(&self, interval_s: f64) -> Vec<usize> {
        let count_before =
            |before: &f64| nearest_integer(before / interval_s.max(f64::MIN_POSITIVE));
        self.before_s
            .iter()
            .map(|before| usize::try_from(count_before(before)).unwrap_or(usize::MAX))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::plan::Stop;

    fn stage(start_s: f64, seconds: f64) -> StageRecord {
        #[expect(clippy::cast_possible_truncation, reason = "a small number")]
        let at = jiff::Timestamp::from_nanosecond((start_s * 1e9) as i128).unwrap();
        StageRecord { started_at: Some(at), seconds, ..StageRecord::default() }
    }

    fn window(stages: &[StageRecord], stop: Stop) -> Result<Window, MergeError> {
        let stages: Vec<_> = stages.iter().collect();
        Window::from_stages(&stages, &Plan { stop, ..Plan::default() })
    }

    #[test]
    fn treats_windows_that_differ_by_little_as_one() {
        let duration = Stop::DurationS(10.0);
        let common_window = window(&[stage(100.0, 10.0), stage(100.02, 10.0)], duration).unwrap();
        assert!(common_window.is_one());
        assert!((common_window.seconds() - 10.0).abs() < 1e-6);
        let common_window = window(&[stage(100.0, 10.0), stage(102.0, 10.0)], duration).unwrap();
        assert!(!common_window.is_one());
        assert!((common_window.common_share() - 8.0 / 12.0).abs() < 1e-6);
        assert!((common_window.seconds() - 8.0).abs() < 1e-6);
        assert_eq!(common_window.intervals_before(1.0), [2, 0]);
        let apart = window(&[stage(100.0, 10.0), stage(110.5, 10.0)], duration).unwrap_err();
        assert!(apart.to_string().contains("one ended 500 ms before another"), "{apart}");
    }

    #[test]
    fn clients_that_end_by_count_may_end_at_different_times() {
        let stages = [stage(100.0, 10.0), stage(100.0, 7.0)];
        let common_window = window(&stages, Stop::Transactions(100)).unwrap();
        assert!(common_window.is_one());
        assert!((common_window.seconds() - 10.0).abs() < 1e-6);
    }
}
