//! Differences between two groups of runs, apart from their figures: the plan, the dataset, settings, versions, the
//! environment, access paths, bottlenecks and wait events.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::conditions::{Differing, conditions, of_stage};
use crate::figure::Summary;
use crate::plan::Plan;
use crate::record::{Record, RelationRecord, StageRecord};
use crate::units::format::{bytes_text, percent};

/// Smallest difference of the mean share of a wait event that is shown: 5 points. Samples of short runs differ by
/// a few points.
const WAIT_POINTS: f64 = 0.05;
/// Value of a property that a run lacks.
const ABSENT: &str = "none";
/// Follows the value of a setting in B, if both servers have their defaults.
const NEW_DEFAULT: &str = " (the new default)";
/// Maximum number of values of a property in a group that are all listed. If there are more, their number, the
/// first value and the last value are shown.
const VALUES_MAX: usize = 3;

/// Properties whose values are meaningless in an imported run.
const UNKNOWN_OF_IMPORTED: [&str; 4] = ["seed", "verify", "processors", "memory in bytes"];

/// The part of a run to which a property belongs, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Options of the run.
    Plan,
    /// Parameters of the dataset.
    Dataset,
    /// Columns, indexes, constraints, triggers and options of the tables that were read or changed.
    Schema,
    /// Settings of the server.
    Setting,
    /// Versions of riops and the server.
    Version,
    /// Machine, device, network and address.
    Environment,
    /// State of dataset and caches, maintenance, other load, and transactions that did not succeed.
    Condition,
    /// Plans of the statements.
    AccessPath,
    /// Bottleneck of a stage.
    Bottleneck,
    /// Share of a wait event in the time of the sessions of a stage.
    WaitEvent,
}

impl Topic {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Dataset => "dataset",
            Self::Schema => "schema",
            Self::Setting => "setting",
            Self::Version => "version",
            Self::Environment => "environment",
            Self::Condition => "condition",
            Self::AccessPath => "access path",
            Self::Bottleneck => "bottleneck",
            Self::WaitEvent => "wait event",
        }
    }
}

/// A property that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The part of the run.
    pub topic: Topic,
    /// Name of the property.
    pub name: String,
    /// Its value in A; several values are separated by ` | `.
    pub a: String,
    /// Its value in B.
    pub b: String,
    /// Whether a condition that is a number is more in B.
    #[serde(skip)]
    pub is_more: Option<bool>,
}

impl Change {
    /// `setting jit: off → on`.
    pub(super) fn text(&self) -> String {
        format!("{} {}: {} → {}", self.topic.name(), self.name, self.a, self.b)
    }
}

/// The properties of a record by topic and name.
type Properties = BTreeMap<(Topic, String), String>;

/// Returns the differences between two groups.
pub fn changes(a: &[&Record], b: &[&Record]) -> Vec<Change> {
    let (of_a, of_b) = (values(a), values(b));
    let keys: BTreeSet<_> = of_a.keys().chain(of_b.keys()).collect();
    let none = BTreeSet::from([ABSENT.to_owned()]);
    // A property that another tool did not report is unknown, not different.
    let is_imported = |runs: &[&Record]| runs.iter().all(|run| run.imported.is_some());
    let has_imported = is_imported(a) || is_imported(b);
    // A session checks one plan of a statement: a statement without a plan was not checked.
    let is_known = |key: &&(Topic, String)| {
        !has_imported && key.0 != Topic::AccessPath
            || of_a.contains_key(*key) && of_b.contains_key(*key)
    };
    // The schema of a table that only one side used is not a difference.
    let is_of_both = |key: &&(Topic, String)| {
        let has = |runs: &[&Record]| runs.iter().any(|run| has_table(run, &key.1));
        key.0 != Topic::Schema || has(a) && has(b)
    };
    let mut changes: Vec<Change> = keys
        .into_iter()
        .filter(is_known)
        .filter(is_of_both)
        .filter_map(|key| {
            let (in_a, in_b) = (of_a.get(key).unwrap_or(&none), of_b.get(key).unwrap_or(&none));
            // A random seed says nothing about a group.
            let is_random = key.1 == "seed" && in_a.len().max(in_b.len()) > 1;
            let is_setting = key.0 == Topic::Setting;
            let default = is_setting.then(|| default_of(&key.1, a, b)).flatten();
            // A setting that was not recorded has its default, which another session may have set.
            let of_default: Option<BTreeSet<String>> =
                default.map(|value| BTreeSet::from([value.to_owned()]));
            let absent = BTreeSet::from([ABSENT.to_owned()]);
            let is_default = |values: &BTreeSet<String>| {
                *values == absent || of_default.as_ref() == Some(values)
            };
            let is_shown =
                in_a != in_b && !is_random && !(is_setting && is_default(in_a) && is_default(in_b));
            let text = |values: &BTreeSet<String>| {
                let all = joined(values);
                if is_setting { all.replace(ABSENT, &default_text(default)) } else { all }
            };
            let is_new_default = is_setting && [a, b].iter().all(|runs| have_default(&key.1, runs));
            let new_default = if is_new_default { NEW_DEFAULT } else { "" };
            is_shown.then(|| Change {
                topic: key.0,
                name: key.1.clone(),
                a: text(in_a),
                b: text(in_b) + new_default,
                is_more: None,
            })
        })
        .collect();
    let condition = |Differing { name, a, b, is_more }: Differing| Change {
        topic: Topic::Condition,
        name,
        a,
        b,
        is_more: Some(is_more),
    };
    changes.extend(conditions(a, b).into_iter().map(condition));
    changes.extend(wait_changes(a, b));
    changes.extend(size_changes(a, b));
    changes.sort_by_key(|change| (change.topic, !change.b.ends_with(NEW_DEFAULT)));
    changes
}

/// Whether all runs have the default of their server's version for a setting.
fn have_default(setting: &str, runs: &[&Record]) -> bool {
    let has_default = |run: &&Record| {
        let target = &run.target;
        // initdb decides on checksums: since PostgreSQL 18 it enables them.
        let major = target.server_version.split(|c: char| !c.is_ascii_digit()).next();
        let major = major.and_then(|major| major.parse::<u32>().ok()).unwrap_or_default();
        let of_initdb = if major >= 18 { "on" } else { "off" };
        let of_initdb = (setting == "data_checksums").then_some(of_initdb);
        let standard = of_initdb.or(target.setting_defaults.get(setting).map(String::as_str));
        standard.is_some() && standard == target.settings.get(setting).map(String::as_str)
    };
    runs.iter().all(has_default)
}

/// Returns the default of a setting, if a server reported it.
fn default_of<'a>(setting: &str, a: &[&'a Record], b: &[&'a Record]) -> Option<&'a str> {
    let known = a.iter().chain(b).find_map(|run| run.target.setting_defaults.get(setting));
    known.map(String::as_str)
}

/// A setting that was not recorded has its default: `4 (default)`, if a server with another value reported it.
fn default_text(default: Option<&str>) -> String {
    default.map_or_else(|| "default".to_owned(), |value| format!("{value} (default)"))
}

/// Returns the differences between two runs in plan, dataset, schema, settings, versions and environment, one line
/// each. They can explain different results.
pub fn differences(before: &Record, now: &Record) -> Vec<String> {
    let is_input = |change: &Change| change.topic <= Topic::Environment;
    let line = |change: Change| {
        format!(
            "differs from the stored run: {} {}: {}, now {}",
            change.topic.name(),
            change.name,
            change.a,
            change.b
        )
    };
    changes(&[before], &[now]).into_iter().filter(is_input).map(line).collect()
}

/// Returns the values of each property over the runs of a group. A property that a run lacks has the value `none`, unless
/// another tool did not report it.
fn values(runs: &[&Record]) -> BTreeMap<(Topic, String), BTreeSet<String>> {
    let all: Vec<Properties> = runs.iter().map(|run| properties(run)).collect();
    let keys: BTreeSet<_> = all.iter().flat_map(BTreeMap::keys).cloned().collect();
    keys.into_iter()
        .map(|key| {
            let value = |(properties, run): (&Properties, &&Record)| {
                let is_known = key.0 != Topic::Schema || has_table(run, &key.1);
                let absent = (run.imported.is_none() && is_known).then(|| ABSENT.to_owned());
                properties.get(&key).cloned().or(absent)
            };
            let values = all.iter().zip(runs).filter_map(value).collect();
            (key, values)
        })
        .collect()
}

fn joined(values: &BTreeSet<String>) -> String {
    match (values.first(), values.last()) {
        (Some(first), Some(last)) if values.len() > VALUES_MAX => {
            format!("{} values, {first} to {last}", values.len())
        }
        _ => values.iter().map(String::as_str).collect::<Vec<_>>().join(" | "),
    }
}

fn properties(record: &Record) -> Properties {
    let mut all = Properties::new();
    plan(record, &mut all);
    let target = &record.target;
    for (name, value) in &target.settings {
        all.insert((Topic::Setting, name.clone()), value.clone());
    }
    let mut add = |topic: Topic, name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            all.insert((topic, name.to_owned()), value);
        }
    };
    add(Topic::Version, "riops", Some(record.client.riops_version.clone()));
    add(Topic::Version, "server", Some(target.version_text.clone()));
    add(Topic::Version, "compiler flags", target.compiler_flags.clone());
    let machine = &record.client.machine;
    add(Topic::Environment, "address", Some(target.address.clone()));
    add(Topic::Environment, "database", Some(target.database.clone()));
    add(Topic::Environment, "pooler", target.pooler.clone());
    add(Topic::Environment, "encryption", target.encryption.clone());
    add(Topic::Environment, "client", Some(machine.host.clone()));
    let driver = record.client.driver.map(|driver| driver.as_str().to_owned());
    add(Topic::Environment, "driver of the client", driver);
    add(Topic::Environment, "kernel", Some(machine.kernel.clone()));
    add(Topic::Environment, "CPU", machine.cpu_model.clone());
    add(Topic::Environment, "CPU governor", machine.cpu_governor.clone());
    add(Topic::Environment, "clock source", machine.clock_source.clone());
    let huge_pages = machine.transparent_huge_pages.clone();
    add(Topic::Environment, "transparent huge pages", huge_pages);
    add(Topic::Environment, "processors", Some(machine.cpus.to_string()));
    add(Topic::Environment, "CPU quota", machine.cgroup_cpus.map(|cpus| cpus.to_string()));
    add(Topic::Environment, "memory in bytes", Some(machine.memory_bytes.to_string()));
    add(Topic::Environment, "virtualization", machine.virtualization.clone());
    if let Some(limits) = &target.limits {
        let (quota, memory) = (limits.cgroup_cpus, limits.cgroup_memory_bytes);
        add(Topic::Environment, "processors of the server", Some(limits.cpus.to_string()));
        add(Topic::Environment, "CPU quota of the server", quota.map(|cpus| cpus.to_string()));
        let memory = memory.map(|bytes| bytes.to_string());
        add(Topic::Environment, "memory limit of the server in bytes", memory);
    }
    let storage = target.storage.as_ref();
    add(Topic::Environment, "device", storage.and_then(|storage| storage.device.clone()));
    for relation in relations(record) {
        for (part, definition) in &relation.parts {
            all.insert(
                (Topic::Schema, format!("{}{OF_TABLE}{part}", relation.name)),
                definition.clone(),
            );
        }
    }
    access_paths(record, &mut all);
    bottlenecks(record, &mut all);
    judgments(record, &mut all);
    if let Some(imported) = &record.imported {
        let is_unreported = |(topic, name): &(Topic, String)| {
            let field = name.split('.').next().unwrap_or(name);
            *topic == Topic::Plan && imported.unreported.iter().any(|known| known == field)
        };
        all.retain(|key, _| !UNKNOWN_OF_IMPORTED.contains(&key.1.as_str()) && !is_unreported(key));
    }
    all
}

/// Between the name of a table and one of its parts.
const OF_TABLE: &str = ": ";

/// The tables that the stages read or changed.
fn relations(record: &Record) -> impl Iterator<Item = &RelationRecord> {
    let databases = record.stages.iter().filter_map(|stage| stage.database.as_ref());
    databases.flat_map(|database| &database.relations)
}

/// The tables whose size, or the size of whose indexes, differs by this factor and number of bytes.
const SIZE_FACTOR: f64 = 1.1;
const SIZE_BYTES: u64 = 1_000_000;

/// Returns the tables of both groups whose sizes differ: bloat, another fill factor, more rows.
fn size_changes(a: &[&Record], b: &[&Record]) -> Vec<Change> {
    type Size = (&'static str, fn(&RelationRecord) -> u64);
    const SIZES: [Size; 2] =
        [("size", |table| table.bytes), ("size of the indexes", |table| table.index_bytes)];
    let names: BTreeSet<&str> =
        a.iter().flat_map(|run| relations(run)).map(|table| table.name.as_str()).collect();
    let sizes = names.into_iter().flat_map(|name| SIZES.map(|(what, size)| (name, what, size)));
    sizes
        .filter_map(|(name, what, size)| {
            let mean = |runs: &[&Record]| {
                let tables = runs.iter().flat_map(|run| relations(run));
                let sizes: Vec<u64> = tables.filter(|table| table.name == name).map(size).collect();
                sizes.iter().sum::<u64>().checked_div(sizes.len() as u64)
            };
            let (before, now) = (mean(a)?, mean(b)?);
            let (least, most) = (before.min(now), before.max(now));
            let is_large = most - least >= SIZE_BYTES && most as f64 >= least as f64 * SIZE_FACTOR;
            is_large.then(|| Change {
                topic: Topic::Condition,
                name: format!("{what} of {name}"),
                a: bytes_text(before),
                b: bytes_text(now),
                is_more: Some(now > before),
            })
        })
        .collect()
}

/// Whether a run used the table of a property of the schema.
fn has_table(record: &Record, property: &str) -> bool {
    let is_of = |relation: &RelationRecord| {
        property.strip_prefix(&relation.name).is_some_and(|rest| rest.starts_with(OF_TABLE))
    };
    relations(record).any(is_of)
}

/// The plan and the parameters of the dataset, flattened. Label and tags only name the run.
fn plan(record: &Record, all: &mut Properties) {
    let mut add = |topic: Topic, value: &Value| {
        let mut flat = Vec::new();
        flatten("", value, &mut flat);
        for (name, value) in flat {
            // The parameters in the plan are those that the dataset must have; the settings are in the target.
            let elsewhere = ["tags", "dataset.", "settings."];
            let is_elsewhere = elsewhere.iter().any(|start| name.starts_with(start));
            if name != "label" && !is_elsewhere {
                all.insert((topic, name), value);
            }
        }
    };
    let compared = Plan { work: record.plan.work.compared(), ..record.plan.clone() };
    if let Ok(plan) = serde_json::to_value(&compared) {
        add(Topic::Plan, &plan);
    }
    if let Some(dataset) = &record.target.dataset {
        add(Topic::Dataset, &dataset.parameters.parameters());
    }
}

/// Appends the values of a tree with their dotted paths.
fn flatten(path: &str, value: &Value, flat: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{name}"), value, flat);
            }
        }
        Value::Null => {}
        Value::String(text) => flat.push((path.to_owned(), text.clone())),
        other => flat.push((path.to_owned(), other.to_string())),
    }
}

/// The plans that were found for each statement, as one line each.
fn access_paths(record: &Record, all: &mut Properties) {
    let mut plans_by_statement: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for access in record.accesses.iter().filter(|access| access.error.is_none()) {
        let nodes: Vec<_> = access.found.lines().map(str::trim).collect();
        plans_by_statement.entry(&access.statement).or_default().insert(nodes.join(" > "));
    }
    for (statement, plans) in plans_by_statement {
        all.insert((Topic::AccessPath, statement.to_owned()), joined(&plans));
    }
}

fn bottlenecks(record: &Record, all: &mut Properties) {
    for summary in Summary::of_each(record) {
        let word = summary.bottleneck_word();
        if !word.is_empty() {
            all.insert((Topic::Bottleneck, summary.stage.name.clone()), word.to_owned());
        }
    }
}

/// Whether each stage was steady, who held locks for which it waited, and whether it achieved its rate.
fn judgments(record: &Record, all: &mut Properties) {
    for stage in &record.stages {
        let is_steady = stage.session_loop.steadiness.map(|steadiness| steadiness.steady);
        let steady = is_steady.map(|steady| ("steady", if steady { "yes" } else { "no" }));
        let rate = stage.rate_verdict().map(|verdict| ("rate", verdict.as_str()));
        let blockers = foreign_blockers(stage);
        let blockers = blockers.as_deref().map(|names| ("locks of other sessions", names));
        for (name, value) in steady.into_iter().chain(rate).chain(blockers) {
            let name = of_stage(record.stages.len() > 1, &stage.name, name);
            all.insert((Topic::Condition, name), value.to_owned());
        }
    }
}

/// The other sessions that held locks for which the sessions waited more than now and then.
fn foreign_blockers(stage: &StageRecord) -> Option<String> {
    let waiting = stage.lock_share()?;
    let blockers = &stage.probes.as_ref()?.blockers;
    let others =
        blockers.iter().filter(|blocker| !blocker.is_own && blocker.share * waiting >= WAIT_POINTS);
    let names: BTreeSet<String> =
        others.map(|blocker| format!("{} ({})", blocker.name, blocker.state)).collect();
    (!names.is_empty()).then(|| joined(&names))
}

/// The wait events of each stage whose mean share differs.
fn wait_changes(a: &[&Record], b: &[&Record]) -> Vec<Change> {
    let (of_a, of_b) = (waits(a), waits(b));
    let keys: BTreeSet<_> = of_a.keys().chain(of_b.keys()).collect();
    let shares = |key: &(String, String)| {
        let (in_a, in_b) = (of_a.get(key), of_b.get(key));
        let share = |wait: Option<&(String, f64)>| wait.map_or(0.0, |(_, share)| *share);
        let (name, _) = in_b.or(in_a)?;
        Some(((key.0.clone(), name.clone()), share(in_a), share(in_b)))
    };
    let mut changes: Vec<_> = keys
        .into_iter()
        .filter_map(shares)
        .filter(|(_, in_a, in_b)| (in_a - in_b).abs() >= WAIT_POINTS)
        .collect();
    // Only if both groups were sampled.
    if of_a.is_empty() || of_b.is_empty() {
        changes.clear();
    }
    changes.sort_by(|one, next| (next.1 - next.2).abs().total_cmp(&(one.1 - one.2).abs()));
    let several = a.iter().chain(b).any(|run| run.stages.len() > 1);
    changes
        .into_iter()
        .map(|((stage, event), in_a, in_b)| Change {
            topic: Topic::WaitEvent,
            name: of_stage(several, &stage, &event),
            a: percent(in_a),
            b: percent(in_b),
            is_more: None,
        })
        .collect()
}

/// The mean share of each wait event over the runs, by stage and event, and its name.
fn waits(runs: &[&Record]) -> BTreeMap<(String, String), (String, f64)> {
    let mut shares = BTreeMap::new();
    for run in runs {
        for stage in &run.stages {
            for wait in stage.probes.iter().flat_map(|probes| &probes.waits) {
                let key = (stage.name.clone(), one_name(&wait.event));
                let (_, share) = shares.entry(key).or_insert_with(|| (wait.event.clone(), 0.0));
                *share += wait.share / runs.len() as f64;
            }
        }
    }
    shares
}

/// The same name of a wait event in all versions: PostgreSQL 13 renamed `buffer_content` to `BufferContent` and
/// `WALWriteLock` to `WALWrite`, PostgreSQL 17 `WALSync` to `WalSync`.
fn one_name(event: &str) -> String {
    let lower = event.replace('_', "").to_lowercase();
    match lower.strip_prefix("lwlock:") {
        Some(name) => format!("lwlock:{}", name.strip_suffix("lock").unwrap_or(name)),
        None => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example::example_record;
    use crate::record::{DatabaseUse, Sampled, WaitShare};

    #[test]
    fn a_difference_shows_both_values() {
        let before = example_record();
        assert!(differences(&before, &before).is_empty());
        let mut now = before.clone();
        now.target.version_text = "PostgreSQL 19.0".to_owned();
        now.target.settings.insert("fsync".to_owned(), "off".to_owned());
        now.target.dataset = None;
        let lines = differences(&before, &now).join("\n");
        assert!(lines.contains("version server: PostgreSQL 18.6 on"), "{lines}");
        assert!(lines.contains("now PostgreSQL 19.0"), "{lines}");
        assert!(lines.contains("setting fsync: on, now off"), "{lines}");
        assert!(lines.contains("now none"), "{lines}");
    }

    #[test]
    fn label_tags_and_random_seeds_are_no_changes() {
        let runs: Vec<_> = (0..10)
            .map(|seed| {
                let mut record = example_record();
                record.plan.seed = seed;
                record.plan.label = Some(format!("run {seed}"));
                record.plan.tags.insert("host".to_owned(), seed.to_string());
                record
            })
            .collect();
        let all: Vec<_> = runs.iter().collect();
        let (a, b) = all.split_at(5);
        assert_eq!(changes(a, b), []);
        // Between two single runs, the seed is a difference.
        let seeds = changes(&all[..1], &all[1..2]);
        assert_eq!((seeds[0].name.as_str(), seeds[0].a.as_str()), ("seed", "0"));
    }

    #[test]
    fn wait_events_are_changes_from_five_points_on() {
        let with = |share: f64| {
            let mut record = example_record();
            let wait = |event: &str, share| WaitShare { event: event.to_owned(), share };
            let waits = vec![wait("IO:DataFileRead", share), wait("CPU", 0.3)];
            record.stages[0].probes = Some(Sampled { waits, ..Sampled::default() });
            record
        };
        let (a, b, same) = (with(0.62), with(0.01), with(0.58));
        let differences = changes(&[&a], &[&b]);
        assert_eq!(differences.len(), 1, "{differences:?}");
        assert_eq!(
            (differences[0].topic, differences[0].name.as_str()),
            (Topic::WaitEvent, "IO:DataFileRead")
        );
        assert_eq!((differences[0].a.as_str(), differences[0].b.as_str()), ("62%", "1.0%"));
        assert_eq!(changes(&[&a], &[&same]), []);
    }

    #[test]
    fn a_renamed_wait_event_is_the_same() {
        let names = [
            ("LWLock:buffer_content", "LWLock:BufferContent"),
            ("LWLock:WALWriteLock", "LWLock:WALWrite"),
            ("IO:WALSync", "IO:WalSync"),
        ];
        for (old, new) in names {
            assert_eq!(one_name(old), one_name(new));
        }
        assert_ne!(one_name("Lock:tuple"), one_name("LWLock:tuple"));
        let with = |event: &str, share| {
            let mut record = example_record();
            let waits = vec![WaitShare { event: event.to_owned(), share }];
            record.stages[0].probes = Some(Sampled { waits, ..Sampled::default() });
            record
        };
        assert_eq!(changes(&[&with("IO:WALSync", 0.5)], &[&with("IO:WalSync", 0.52)]), []);
        let differences = changes(&[&with("IO:WALSync", 0.5)], &[&with("IO:WalSync", 0.9)]);
        assert_eq!(
            (differences[0].name.as_str(), differences[0].a.as_str()),
            ("IO:WalSync", "50%")
        );
    }

    #[test]
    fn a_setting_that_is_not_recorded_has_its_default() {
        let (a, mut b) = (example_record(), example_record());
        b.target.settings.insert("random_page_cost".to_owned(), "400".to_owned());
        let differences = changes(&[&a], &[&b]);
        assert_eq!((differences[0].a.as_str(), differences[0].b.as_str()), ("default", "400"));
        b.target.setting_defaults.insert("random_page_cost".to_owned(), "4".to_owned());
        let differences = changes(&[&a], &[&b]);
        assert_eq!((differences[0].a.as_str(), differences[0].b.as_str()), ("4 (default)", "400"));
        // Its session has set the default.
        b.target.settings.insert("random_page_cost".to_owned(), "4".to_owned());
        assert_eq!(changes(&[&a], &[&b]), []);
    }

    #[test]
    fn a_statement_whose_plan_was_not_checked_in_both_groups_is_no_difference() {
        let (a, mut b) = (example_record(), example_record());
        let mut other = b.accesses[0].clone();
        "delete_2".clone_into(&mut other.statement);
        b.accesses.push(other);
        assert_eq!(changes(&[&a], &[&b]), []);
        b.accesses.iter_mut().for_each(|access| "Seq Scan".clone_into(&mut access.found));
        assert_eq!(changes(&[&a], &[&b])[0].topic, Topic::AccessPath);
    }

    #[test]
    fn defaults_that_a_new_version_changed_come_first() {
        let with = |version: &str, settings: &[(&str, &str, &str)]| {
            let mut record = example_record();
            let target = &mut record.target;
            version.clone_into(&mut target.server_version);
            for (name, value, standard) in settings {
                target.settings.insert((*name).to_owned(), (*value).to_owned());
                target.setting_defaults.insert((*name).to_owned(), (*standard).to_owned());
            }
            record
        };
        let shown = |a: &Record, b: &Record| {
            let settings = changes(&[a], &[b]).into_iter();
            let settings = settings.filter(|change| change.topic == Topic::Setting);
            settings.map(|change| change.text()).collect::<Vec<_>>()
        };
        let old = with("17.9", &[("jit", "on", "on"), ("data_checksums", "off", "off")]);
        let chosen = ("autovacuum", "off", "on");
        let new = with("19.0", &[("jit", "off", "off"), ("data_checksums", "on", "off"), chosen]);
        let texts = shown(&old, &new);
        assert_eq!(texts[0], "setting data_checksums: off → on (the new default)");
        assert_eq!(texts[1], "setting jit: on → off (the new default)");
        assert!(
            texts[2].starts_with("setting autovacuum: ") && !texts[2].contains("new"),
            "{texts:?}"
        );
        // A value that was chosen.
        let chosen = with("18.6", &[("jit", "off", "on"), ("data_checksums", "on", "off")]);
        let pinned = with("18.6", &[("jit", "on", "on"), ("data_checksums", "off", "off")]);
        assert_eq!(
            shown(&pinned, &chosen),
            ["setting data_checksums: off → on", "setting jit: on → off"]
        );
    }

    #[test]
    fn sizes_that_differ_by_a_tenth_are_a_change() {
        let with = |bytes, index_bytes| {
            let mut record = example_record();
            let name = "public.t".to_owned();
            let table = RelationRecord { name, bytes, index_bytes, ..RelationRecord::default() };
            let relations = vec![table];
            record.stages[0].database = Some(DatabaseUse { relations, ..DatabaseUse::default() });
            record
        };
        let [a, b] = [with(19_000_000, 5_000_000), with(26_000_000, 5_200_000)];
        let differences = changes(&[&a], &[&b]);
        let sizes: Vec<_> =
            differences.iter().map(|change| (&*change.name, &*change.a, &*change.b)).collect();
        assert_eq!(sizes, [("size of public.t", "19.0 MB", "26.0 MB")]);
        // Less than a megabyte.
        assert_eq!(changes(&[&with(100_000, 0)], &[&with(900_000, 0)]), []);
    }

    #[test]
    fn a_changed_plan_of_a_statement_is_a_change() {
        let (a, mut b) = (example_record(), example_record());
        for access in &mut b.accesses {
            access.found = "Seq Scan on rows_0001".to_owned();
        }
        let differences = changes(&[&a], &[&b]);
        assert!(
            differences.iter().all(|change| change.topic == Topic::AccessPath),
            "{differences:?}"
        );
        assert!(differences[0].b.contains("Seq Scan"), "{differences:?}");
    }
}
