//! Errors in the words of pgbench, which scripts around it search for.

use clap::error::{ContextKind, ContextValue};
use riops::plan::script::Builtin;

use super::pgbench_options::CommandLine;
use super::translation::Refused;

/// The number of scripts that pgbench refuses.
const SCRIPTS_BEYOND: usize = 129;

pub(super) fn refuse<T>(text: &str) -> Result<T, Refused> {
    Err(text.to_owned())
}

/// Returns what pgbench says about an error of riops, if it has other words that scripts search for.
pub(super) fn in_its_words(text: &str) -> Option<String> {
    if text.contains("no dataset for the workload script") {
        return Some("Perhaps you need to do initialization (\"pgbench -i\")".to_owned());
    }
    if text.contains("--protocol prepared is not supported by this pooler") {
        return Some(
            "prepared statements need -M extended or -M simple behind this pooler".to_owned(),
        );
    }
    if let Some((file, reason)) =
        text.strip_prefix("cannot read ").and_then(|rest| rest.rsplit_once(": "))
        && let Some((reason, _)) = reason.split_once(" (os error ")
    {
        return Some(format!("could not open file \"{file}\": {reason}"));
    }
    let (_, rejected) = text.split_once("connection rejected by ")?;
    let (address, rest) = rejected.split_once(" for user ")?;
    let (_, rest) = rest.split_once(", database ")?;
    let (_, message) = rest.split_once(": ")?;
    let message = message.split_once(" (SQLSTATE").map_or(message, |(message, _)| message);
    Some(format!("connection to server at {address} failed: FATAL:  {message}"))
}

/// Options whose short form pgbench names in errors.
const SHORT: [(&str, &str); 7] = [
    ("--client", "-c/--clients"),
    ("--jobs", "-j/--jobs"),
    ("--scale", "-s/--scale"),
    ("--transactions", "-t/--transactions"),
    ("--time", "-T/--time"),
    ("--progress", "-P/--progress"),
    ("--fillfactor", "-F/--fillfactor"),
];

/// Returns an error of the command line in the words of pgbench, which scripts may search for.
pub(super) fn as_pgbench(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (Some(option), Some(value)) =
        (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue))
    else {
        let text = error.render().to_string();
        let help =
            ("For more information, try '--help'.", "Try \"pgbench --help\" for more information.");
        return text.trim_start_matches("error: ").trim_end().replace(help.0, help.1);
    };
    let name = option.split([' ', '=']).next().unwrap_or(option);
    let shown = SHORT.iter().find(|(long, _)| *long == name).map_or(name, |(_, shown)| shown);
    match name {
        _ if value.is_empty() => format!("option {shown} requires an argument"),
        "--protocol" => format!("invalid query mode (-M): \"{value}\""),
        "--max-tries" => format!("invalid number of maximum tries: \"{value}\""),
        "--partition-method" => {
            format!("invalid partition method, expecting \"range\" or \"hash\", got: \"{value}\"")
        }
        "--sampling-rate" => format!("invalid sampling rate: \"{value}\""),
        _ if value.parse::<i64>().is_ok() => {
            let message = error.render().to_string();
            let range = message.split_once(" is not in ").and_then(|(_, rest)| rest.lines().next());
            format!("{shown} must be in range {}", range.unwrap_or_default().replace("..=", ".."))
        }
        _ => format!("invalid value \"{value}\" for option {shown}"),
    }
}

/// Refuses scripts that pgbench refuses. The command reads the other scripts.
pub(super) fn check_scripts(line: &CommandLine) -> Result<(), Refused> {
    // The scripts of -S and -N have the weight 1.
    let others = u16::from(line.select_only) + u16::from(line.skip_some_updates);
    let mut weights = i64::from(others);
    let builtin = line.builtin.iter().map(|spec| (spec, true));
    for (spec, is_builtin) in builtin.chain(line.file.iter().map(|spec| (spec, false))) {
        let (name, weight) = match spec.rsplit_once('@') {
            None => (spec.as_str(), "1"),
            Some(parts) => parts,
        };
        match weight.parse::<i64>() {
            Err(_) => return Err(format!("invalid weight specification: @{weight}")),
            Ok(weight) if !(0..=i64::from(i32::MAX)).contains(&weight) => {
                let most = i32::MAX;
                return Err(format!("weight specification out of range (0 .. {most}): {weight}"));
            }
            Ok(weight) => weights += weight,
        }
        if is_builtin && name.parse::<Builtin>().is_err() {
            let count =
                Builtin::ALL.iter().filter(|builtin| builtin.name().starts_with(name)).count();
            return Err(match count {
                0 => format!("no builtin script found for name \"{name}\""),
                _ => format!(
                    "ambiguous builtin name: {count} builtin scripts found for prefix \"{name}\""
                ),
            });
        }
    }
    match line.builtin.len() + line.file.len() + usize::from(others) {
        0 => Ok(()),
        SCRIPTS_BEYOND.. => refuse("at most 128 SQL scripts are allowed"),
        _ if weights == 0 => refuse("total script weight must not be zero"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_words_that_scripts_search_for() {
        let rejected = "connection rejected by /tmp/s for user \"me\", database \"x\": database \"x\" does not exist (SQLSTATE 3D000); create it";
        assert_eq!(
            in_its_words(rejected).as_deref(),
            Some("connection to server at /tmp/s failed: FATAL:  database \"x\" does not exist")
        );
        let missing = in_its_words("no dataset for the workload script in database x");
        assert!(missing.unwrap().contains("pgbench -i"));
        assert_eq!(in_its_words("cannot read a.sql"), None);
        let missing = "cannot read a: b.sql: No such file or directory (os error 2)";
        let expected = "could not open file \"a: b.sql\": No such file or directory";
        assert_eq!(in_its_words(missing).as_deref(), Some(expected));
        let unprepared = in_its_words("--protocol prepared is not supported by this pooler, which");
        assert!(unprepared.unwrap().contains("-M extended or -M simple"));
    }
}
