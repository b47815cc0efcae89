//! Whether runs are parts of one load: the same plan, server and dataset.

use serde_json::Value;

use super::MergeError;
use crate::record::{Record, StageRecord};

/// Fields of a plan that may differ between the clients.
const OWN_FIELDS: [&str; 10] =
    ["sessions", "workers", "driver", "share", "schedule", "stop", "seed", "label", "tags", "probes"];

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
        let names = |record: &Record| {
            record.stages.iter().map(|stage| stage.name.clone()).collect::<Vec<_>>()
        };
        if names(first) != names(other) {
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

/// Returns the first field in which two plans differ, with both values.
fn differing_plan(first: &Record, other: &Record) -> Result<Option<String>, MergeError> {
    let fields = |record: &Record| match serde_json::to_value(&record.plan) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => unfit("a plan has no fields".to_owned()),
        Err(error) => unfit(error.to_string()),
    };
    let (one, two) = (fields(first)?, fields(other)?);
    let names = one.keys().chain(two.keys()).filter(|name| !OWN_FIELDS.contains(&name.as_str()));
    let mut differing = names.filter(|name| one.get(*name) != two.get(*name));
    let of_kind = [
        ("schedule", first.plan.schedule.as_str() != other.plan.schedule.as_str()),
        ("stop", first.plan.stop.as_str() != other.plan.stop.as_str()),
        ("stop", first.plan.stop.seconds() != other.plan.stop.seconds()),
    ];
    let of_kind = of_kind.into_iter().find_map(|(name, differs)| differs.then(|| name.to_owned()));
    let Some(name) = differing.next().cloned().or(of_kind) else {
        return Ok(None);
    };
    let value = |fields: &serde_json::Map<String, Value>| {
        fields.get(&name).map_or_else(|| "absent".to_owned(), Value::to_string)
    };
    Ok(Some(format!(
        "their plans differ: \"{name}\" is {} in {} and {} in {}",
        value(&one),
        first.id,
        value(&two),
        other.id
    )))
}
