//! PGIO's scripts `setup.sh` and `runit.sh`, which read `pgio.conf`.

use super::translation::{Meaning, Outside, Translated, Words};

/// The file that the scripts read.
const FILE: &str = "pgio.conf";

const USAGE: &str = "\
Usage: riops pgio setup [FILE]   create the tables of pgio.conf (or FILE), as setup.sh
       riops pgio run [FILE]     run its sessions and print PGIO's report, as runit.sh
";

/// Translates a command line.
pub(super) fn translate(arguments: &[String], outside: &Outside<'_>) -> Translated {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (script, file) = match words[..] {
        [] | ["help" | "--help" | "-h"] => {
            return Ok(Meaning::Text(USAGE.to_owned()).without_notices());
        }
        [script] => (script, FILE),
        [script, file] => (script, file),
        [_, _, unexpected, ..] => {
            return Err(format!("unexpected argument: {unexpected}\n{USAGE}"));
        }
    };
    (outside.read)(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let mut words = Words::new(match script {
        // The script drops the tables of an earlier setup.
        "setup" | "setup.sh" => "prepare rows --recreate",
        "run" | "runit" | "runit.sh" => {
            "run rows --output=pgio --session-detail=pgio_session_detail.out"
        }
        other => return Err(format!("unknown script: {other}\n{USAGE}")),
    });
    words.set("config", file);
    Ok(Meaning::Commands(vec![words.0]).without_notices())
}

#[cfg(test)]
mod tests {
    use super::super::translation::Refused;
    use super::*;

    fn commands(line: &str) -> Result<String, Refused> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let read = |path: &str| match path {
            "missing.conf" => Err("No such file".to_owned()),
            _ => Ok("SCALE=1G".to_owned()),
        };
        let outside = Outside { variable: &|_| None, read: &read };
        match translate(&arguments, &outside)?.meaning {
            Meaning::Commands(commands) | Meaning::Silent(commands) => {
                Ok(commands.concat().join(" "))
            }
            Meaning::Text(text) | Meaning::Message(text) => Ok(text),
        }
    }

    #[test]
    fn the_scripts_are_commands_with_the_file() {
        let setup = "prepare rows --recreate --config=pgio.conf";
        assert_eq!(commands("setup").unwrap(), setup);
        assert_eq!(commands("setup.sh").unwrap(), setup);
        assert_eq!(
            commands("run a.conf").unwrap(),
            "run rows --output=pgio --session-detail=pgio_session_detail.out --config=a.conf"
        );
        assert!(commands("").unwrap().starts_with("Usage: riops pgio"));
        for (line, text) in [
            ("run missing.conf", "cannot read missing.conf: No such file"),
            ("drop", "unknown script: drop"),
            ("run a b", "unexpected argument: b"),
        ] {
            assert!(commands(line).unwrap_err().starts_with(text), "{line}");
        }
    }
}
