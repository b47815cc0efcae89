//! Whether runs are parts of one load: the same plan, server and dataset.

use std::mem::discriminant;

use serde_json::Value;

use super::part::MergeError;
use crate::plan::Plan;
use crate::record::{Record, StageRecord};

/// Fields of a plan that may differ between the clients.
const OWN_FIELDS: [&str; 11] = [
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
];

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
            return unfit(format!("two runs are those of agent {}", share.agent));
        }
        let differences = [
            ("server version", &first.target.server_version, &other.target.server_version),
            ("database", &first.target.database, &other.target.database),
        ];
        let differing = differences.into_iter().find(|(_, one, other)| one != other);
        if let Some((what, one, two)) = differing {
            return unfit(format!("the {what} of {} is {one}, of {} {two}", first.id, other.id));
        }
        let dataset = |record: &Record| record.target.dataset.as_ref().map(|each| each.id.clone());
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
    let is_loop = |stage: &StageRecord| matches!(stage.kind.as_str(), "loop" | "server_loop");
    match record.stages.iter().find(|stage| !is_loop(stage)) {
        _ if record.stages.is_empty() => unfit(format!("{id} has no result")),
        Some(stage) => unfit(format!("stage {} of {id} is no load of sessions", stage.name)),
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

/// Returns the first field in which two plans differ, except for those that are `ignored`, with both values. `names` say whose
/// plans they are.
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
