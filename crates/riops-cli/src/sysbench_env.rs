//! The variables of the container image of YugabyteDB's sysbench: a deployment that sets them runs
//! riops with nothing but another image.
//!
//! They stand behind the command line and the `RIOPS_*` variables, and before the file of `--config`.

use std::collections::BTreeMap;

use crate::scan::CommandLine;

/// Names that sysbench gives to options which riops knows under another.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("threads", "sessions"),
    ("time", "duration"),
    ("warmup-time", "warmup"),
    ("events", "transactions"),
    ("report-interval", "interval"),
    ("rand-type", "distribution"),
    ("rand-seed", "seed"),
    ("db", "database"),
];

/// The parts of a target.
const TARGET: [(&str, &str); 5] = [
    ("PG_HOST", "host"),
    ("PG_PORT", "port"),
    ("PG_USER", "user"),
    ("PG_PASS", "password"),
    ("PG_DB", "dbname"),
];

/// The command of the workload `oltp`; `None` for other workloads.
pub(crate) fn command_of(line: &CommandLine) -> Option<&str> {
    match line.subcommands()[..] {
        [command @ ("prepare" | "run" | "verify" | "cleanup"), "oltp"] => Some(command),
        _ => None,
    }
}

/// The options that the environment sets in sysbench's way, by riops's names, as they would be typed.
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
        let known = OTHER_NAMES.iter().find(|(sysbench, _)| *sysbench == name);
        let name = match known.map_or(name.as_str(), |(_, own)| own) {
            // Its threads prepare too.
            "sessions" if command == "prepare" => "connections",
            name => name,
        };
        // Sysbench's way to say: no end by number.
        if name != "transactions" || value != "0" {
            options.insert(name.to_owned(), vec![value.clone()]);
        }
    }
    for (variable, setting) in TARGET {
        if let Some(value) = set.get(variable) {
            let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
            target.push(format!("{setting}='{quoted}'"));
        }
    }
    // A password or a port alone names no target.
    if set.contains_key("PG_HOST") || set.contains_key("PG_DB") {
        options.insert("database".to_owned(), vec![target.join(" ")]);
    }
    options
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    fn read(command: &str, variables: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        options(command, owned)
    }

    #[test]
    fn the_page_s_deployment_becomes_options() {
        let page = [
            ("SYSBENCH_TABLES", "10"),
            ("SYSBENCH_TABLE_SIZE", "100000"),
            ("SYSBENCH_THREADS", "60"),
            ("SYSBENCH_TIME", "300"),
            ("SYSBENCH_WARMUP", "60"),
            ("SYSBENCH_RANGE_SELECTS", "false"),
            ("SYSBENCH_POINT_SELECTS", "10"),
            ("SYSBENCH_EMPTY", ""),
            ("PATH", "/bin"),
            ("PG_HOST", "yb-tserver"),
            ("PG_PORT", "5433"),
            ("PG_PASS", "it's"),
        ];
        let found = read("run", &page);
        let value = |name: &str| found.get(name).map(|values| values[0].as_str());
        assert_eq!(value("sessions"), Some("60"));
        assert_eq!((value("duration"), value("warmup")), (Some("300"), Some("60")));
        assert_eq!((value("tables"), value("table-size")), (Some("10"), Some("100000")));
        assert_eq!((value("range-selects"), value("empty")), (Some("false"), None));
        assert_eq!(value("database"), Some("host='yb-tserver' port='5433' password='it\\'s'"));
        assert_eq!(found.len(), 8);
        let prepare = read("prepare", &page);
        assert_eq!(prepare.get("connections"), Some(&vec!["60".to_owned()]));
        assert!(read("run", &[("PG_PASS", "x"), ("PG_PORT", "1")]).is_empty());
    }

    #[test]
    fn only_the_commands_of_oltp_read_them() {
        let of = |text: &str| {
            let words = text.split(' ').map(OsString::from).collect();
            let line = CommandLine::scan(Arguments::command(), words);
            command_of(&line).map(str::to_owned)
        };
        assert_eq!(of("riops run oltp").as_deref(), Some("run"));
        assert_eq!(of("riops -q prepare oltp --tables 2").as_deref(), Some("prepare"));
        assert_eq!(of("riops run rows"), None);
        assert_eq!(of("riops runs list"), None);
        assert_eq!(of("riops --config run prepare oltp").as_deref(), Some("prepare"));
        assert_eq!(of("riops run rows --label oltp"), None);
    }
}
