//! Differences between the environments of two runs.

use std::collections::BTreeSet;

use crate::record::Record;

/// A property of a record that is compared.
type Figure = fn(&Record) -> String;

/// The differences between the environment of a run and that of an earlier one, one line each. They can
/// explain different results.
#[must_use]
pub fn differences(before: &Record, now: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let mut compare = |what: &str, before: String, now: String| {
        if before != now {
            lines.push(format!("differs from the stored run: {what}: {before}, now {now}"));
        }
    };
    let dataset = |record: &Record| {
        let parameters = |each: &crate::record::DatasetRecord| each.parameters.parameters();
        record
            .target
            .dataset
            .as_ref()
            .map_or_else(|| "none".to_owned(), |each| parameters(each).to_string())
    };
    let figures: [(&str, Figure); 13] = [
        ("riops", |record| record.client.riops_version.clone()),
        ("seed", |record| record.plan.seed.to_string()),
        ("server", |record| record.target.version_text.clone()),
        ("address", |record| record.target.address.clone()),
        ("database", |record| record.target.database.clone()),
        ("pooler", |record| or_none(record.target.pooler.as_deref())),
        ("encryption", |record| or_none(record.target.encryption.as_deref())),
        ("client", |record| record.client.machine.host.clone()),
        ("kernel", |record| record.client.machine.kernel.clone()),
        ("CPU", |record| or_none(record.client.machine.cpu_model.as_deref())),
        ("cores", |record| record.client.machine.cpus.to_string()),
        ("memory in bytes", |record| record.client.machine.memory_bytes.to_string()),
        ("device", |record| {
            let storage = record.target.storage.as_ref();
            or_none(storage.and_then(|storage| storage.device.as_deref()))
        }),
    ];
    for (what, of) in figures {
        compare(what, of(before), of(now));
    }
    compare("dataset", dataset(before), dataset(now));
    let (old, new) = (&before.target.settings, &now.target.settings);
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let value = |settings: &std::collections::BTreeMap<String, String>| {
            or_none(settings.get(name).map(String::as_str))
        };
        compare(name, value(old), value(new));
    }
    lines
}

fn or_none(text: Option<&str>) -> String {
    text.unwrap_or("none").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_record;

    #[test]
    fn a_difference_shows_both_values() {
        let before = example_record();
        assert!(differences(&before, &before).is_empty());
        let mut now = before.clone();
        now.target.version_text = "PostgreSQL 19.0".to_owned();
        now.target.settings.insert("fsync".to_owned(), "off".to_owned());
        now.target.dataset = None;
        let lines = differences(&before, &now).join("\n");
        assert!(lines.contains("server: PostgreSQL 18.6 on"), "{lines}");
        assert!(lines.contains("now PostgreSQL 19.0"), "{lines}");
        assert!(lines.contains("fsync: on, now off"), "{lines}");
        assert!(lines.contains("now none"), "{lines}");
    }
}
