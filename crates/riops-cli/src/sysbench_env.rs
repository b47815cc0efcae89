//! The environment variables of YugabyteDB's sysbench container image. A deployment that sets them can run
//! riops by changing only the image.
//!
//! The command line and the `RIOPS_*` variables take precedence over them. They take precedence over the file
//! of `--config`.

use std::collections::BTreeMap;

use riops::units::conninfo;

use crate::scan::CommandLine;

/// Options whose names differ: the name in sysbench and the name in riops.
const RENAMED_OPTIONS: [(&str, &str); 9] = [
    ("threads", "sessions"),
    ("time", "duration"),
    ("warmup-time", "warmup"),
    ("events", "transactions"),
    ("report-interval", "interval"),
    ("rand-type", "distribution"),
    ("db", "database"),
    ("workload", "test"),
    ("num-rows-insert", "num-rows-in-insert"),
];

/// Environment variables of the connection and the connection settings that they set.
const TARGET: [(&str, &str); 5] = [
    ("PG_HOST", "host"),
    ("PG_PORT", "port"),
    ("PG_USER", "user"),
    ("PG_PASS", "password"),
    ("PG_DB", "dbname"),
];

/// Returns the command that is applied to the workload `oltp`; `None` for other workloads.
pub(crate) fn command_of(line: &CommandLine) -> Option<&str> {
    match line.subcommands()[..] {
        [command @ ("prepare" | "run" | "warm" | "verify" | "cleanup"), "oltp"] => Some(command),
        _ => None,
    }
}

/// Returns the options that sysbench's environment variables set: riops's option names and their values, as
/// on the command line.
pub(crate) fn options(
    command: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, Vec<String>> {
    let mut options = BTreeMap::new();
    let mut target = Vec::new();
    let set: BTreeMap<String, String> =
        environment.filter(|(_, value)| !value.is_empty()).collect();
    for (name, value) in &set {
        let Some(name) = name.strip_prefix("SYSBENCH_") else {
            continue;
        };
        let name = name.to_lowercase().replace('_', "-");
        let known = RENAMED_OPTIONS.iter().find(|(sysbench, _)| *sysbench == name);
        let name = match known.map_or(name.as_str(), |(_, own)| own) {
            // In sysbench, the number of threads also applies to prepare.
            "sessions" if command == "prepare" => "connections",
            "distribution" if command == "prepare" => "rand-type",
            name => name,
        };
        // In sysbench, 0 events means no limit.
        if name != "transactions" || value != "0" {
            options.insert(name.to_owned(), vec![value.clone()]);
        }
    }
    for (variable, setting) in TARGET {
        if let Some(value) = set.get(variable) {
            target.push(conninfo::pair(setting, value));
        }
    }
    // A password or a port alone does not select a server.
    if set.contains_key("PG_HOST") || set.contains_key("PG_DB") {
        options.insert("database".to_owned(), vec![target.join(" ")]);
    }
    options
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn read(command: &str, variables: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        options(command, owned)
    }

    #[test]
    fn translates_the_variables_of_the_documented_deployment() {
        let deployment = [
            ("SYSBENCH_TABLES", "10"),
            ("SYSBENCH_TABLE_SIZE", "100000"),
            ("SYSBENCH_THREADS", "60"),
            ("SYSBENCH_TIME", "300"),
            ("SYSBENCH_WARMUP", "60"),
            ("SYSBENCH_RANGE_SELECTS", "false"),
            ("SYSBENCH_POINT_SELECTS", "10"),
            ("SYSBENCH_WORKLOAD", "oltp_write_only"),
            ("SYSBENCH_NUM_ROWS_INSERT", "5"),
            ("SYSBENCH_EMPTY", ""),
            ("PATH", "/bin"),
            ("PG_HOST", "yb-tserver"),
            ("PG_PORT", "5433"),
            ("PG_PASS", "it's"),
        ];
        let options = read("run", &deployment);
        let value = |name: &str| options.get(name).map(|values| values[0].as_str());
        assert_eq!(value("sessions"), Some("60"));
        assert_eq!((value("duration"), value("warmup")), (Some("300"), Some("60")));
        assert_eq!((value("tables"), value("table-size")), (Some("10"), Some("100000")));
        assert_eq!((value("range-selects"), value("empty")), (Some("false"), None));
        assert_eq!(value("database"), Some("host=yb-tserver port=5433 password='it\\'s'"));
        assert_eq!(value("test"), Some("oltp_write_only"));
        assert_eq!(value("num-rows-in-insert"), Some("5"));
        assert_eq!(options.len(), 10);
        let prepare = read("prepare", &deployment);
        assert_eq!(prepare.get("connections"), Some(&vec!["60".to_owned()]));
        assert!(read("run", &[("PG_PASS", "x"), ("PG_PORT", "1")]).is_empty());
    }

    #[test]
    fn applies_only_to_the_commands_of_oltp() {
        let command = |text: &str| {
            let words = text.split(' ').map(OsString::from).collect();
            let line = CommandLine::read(words);
            command_of(&line).map(str::to_owned)
        };
        assert_eq!(command("riops run oltp").as_deref(), Some("run"));
        assert_eq!(command("riops -q prepare oltp --tables 2").as_deref(), Some("prepare"));
        assert_eq!(command("riops run rows"), None);
        assert_eq!(command("riops runs list"), None);
        assert_eq!(command("riops --config run prepare oltp").as_deref(), Some("prepare"));
        assert_eq!(command("riops run rows --label oltp"), None);
    }
}
