//! `pgio.conf`: converts the shell variables that configure PGIO to options of riops. Pure.

use std::collections::BTreeMap;

use super::error::{PlanError, refuse};
use crate::units::{Size, conninfo};

/// Variables with a number, and the value that PGIO uses if a file does not set them.
const NUMBERS: [(&str, u32); 6] = [
    ("UPDATE_PCT", 0),
    ("RUN_TIME", 300),
    ("NUM_SCHEMAS", 1),
    ("NUM_THREADS", 1),
    ("WORK_UNIT", 255),
    ("UPDATE_WORK_UNIT", 255),
];
/// Variables with a text.
const TEXTS: [&str; 4] = ["SCALE", "DBNAME", "CONNECT_STRING", "CREATE_BASE_TABLE"];
/// Minimum size of a table in PGIO, in blocks.
const BLOCKS_MIN: u64 = 1024;

/// The contents of a `pgio.conf`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PgioConf {
    values: BTreeMap<String, String>,
    /// Names of the variables that PGIO does not have, in file order.
    pub unknown: Vec<String>,
}

/// The command that the options are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `riops prepare`
    Prepare,
    /// `riops run`
    Run,
    /// Any other command: only the database is used.
    Other,
}

/// Whether a file sets shell variables with uppercase names, which a riops configuration file never does.
pub fn is_pgio(text: &str) -> bool {
    text.lines().any(|line| assignment(line).is_some())
}

/// Returns the name and the unparsed value of a line `NAME=…` or `export NAME=…`.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=')?;
    let is_uppercase_name = |character: char| {
        character.is_ascii_uppercase() || character.is_ascii_digit() || character == '_'
    };
    (name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(is_uppercase_name))
    .then_some((name, value))
}

impl PgioConf {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// [`PlanError`] with the number of the line that is not an assignment of a literal value, or with the
    /// variable whose value is invalid.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let mut variables = Self::default();
        for (position, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let Some((name, value)) = assignment(line) else {
                return refuse(format!("line {position} is not a variable assignment"));
            };
            // Not with the value, which may contain a password.
            let Some(words) = shell_words(value) else {
                return refuse(format!(
                    "line {position}: {name} must have a literal value: riops does not expand shell variables or commands"
                ));
            };
            let value = words.into_iter().next().unwrap_or_default();
            let is_number = NUMBERS.iter().any(|(known, _)| *known == name);
            if !is_number && !TEXTS.contains(&name) {
                variables.unknown.push(name.to_owned());
            } else if is_number && !is_in_range(name, &value) {
                return refuse(format!(
                    "{name}={value} must be an integer of at least 1 (UPDATE_PCT: 0 to 100)"
                ));
            } else {
                variables.values.insert(name.to_owned(), value);
            }
        }
        if let Some(scale) = variables.values.get("SCALE") {
            require!(
                scale.parse::<Size>().is_ok_and(|size| size.blocks() >= BLOCKS_MIN),
                "SCALE={scale} must be a number of blocks or a size with the unit M, G or T, and at least {BLOCKS_MIN} blocks"
            );
        }
        variables.database()?;
        Ok(variables)
    }

    /// Returns the value of a numeric variable, or PGIO's default.
    fn numeric_value(&self, name: &str) -> u32 {
        let typed = self.values.get(name).and_then(|value| value.parse().ok());
        let default = NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, default)| *default);
        typed.or(default).unwrap_or_default()
    }

    /// Whether the file sets the size of the tables.
    pub fn has_scale(&self) -> bool {
        self.values.contains_key("SCALE")
    }

    fn database_name(&self) -> Option<&str> {
        self.values.get("DBNAME").map(String::as_str)
    }

    /// Returns a notice for each variable that has no effect in riops.
    pub fn without_effect(&self) -> Vec<String> {
        let notice = |name| format!("{name} is not a variable of PGIO and has no effect");
        let mut notices: Vec<String> = self.unknown.iter().map(notice).collect();
        if self.values.contains_key("CREATE_BASE_TABLE") {
            notices.push(
                "CREATE_BASE_TABLE has no effect: riops generates rows without a seed table"
                    .to_owned(),
            );
        }
        if let (Some(name), true) =
            (self.database_name(), self.values.contains_key("CONNECT_STRING"))
        {
            notices.push(format!(
                "DBNAME={name} has no effect: CONNECT_STRING or -d sets the database"
            ));
        }
        notices
    }

    /// Returns the options by their long names, with values as on the command line.
    pub fn options(&self, purpose: Purpose) -> Vec<(&'static str, String)> {
        let mut options = Vec::new();
        let mut add = |name: &'static str, value: Option<String>| {
            options.extend(value.map(|value| (name, value)));
        };
        let value = |name: &str| Some(self.numeric_value(name).to_string());
        add("database", self.database().unwrap_or_default());
        if purpose == Purpose::Other {
            return options;
        }
        add("layout", Some("block".to_owned()));
        add("tables", value("NUM_SCHEMAS"));
        add("size", self.values.get("SCALE").cloned());
        if purpose == Purpose::Prepare {
            add("connections", value("NUM_THREADS"));
            return options;
        }
        let sessions = u64::from(self.numeric_value("NUM_THREADS"))
            * u64::from(self.numeric_value("NUM_SCHEMAS"));
        add("sessions", Some(sessions.to_string()));
        add("table-per-session", Some("true".to_owned()));
        add("duration", value("RUN_TIME"));
        add("warmup", Some("0".to_owned()));
        add("batch", value("WORK_UNIT"));
        add("update-batch", value("UPDATE_WORK_UNIT"));
        add("update-percent", value("UPDATE_PCT"));
        add("update-share", Some("transactions".to_owned()));
        options
    }

    /// Returns the connection string: from the arguments that PGIO passes to `psql`, otherwise from the
    /// name of the database.
    fn database(&self) -> Result<Option<String>, PlanError> {
        let Some(text) = self.values.get("CONNECT_STRING") else {
            return Ok(self.database_name().map(|name| conninfo::pair("dbname", name)));
        };
        let refused = || {
            PlanError(
                "cannot parse CONNECT_STRING: use a URL, a connection string, or the options -h, -p, -U and -d of psql".to_owned(),
            )
        };
        if text.contains("://") && !text.contains(char::is_whitespace) {
            return Ok(Some(text.clone()));
        }
        let words = shell_words(text).ok_or_else(refused)?;
        // The quotes around a connection string were removed with the quotes of the assignment.
        if words.iter().all(|word| word.contains('=') && !word.starts_with('-')) {
            return Ok(Some(text.clone()));
        }
        let mut settings = Vec::new();
        let mut places = ["dbname", "user"].into_iter();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let known = [
                ("-h", "--host", "host"),
                ("-p", "--port", "port"),
                ("-U", "--username", "user"),
                ("-d", "--dbname", "dbname"),
            ];
            let option = known.iter().find_map(|(short, long, setting)| {
                let attached = word
                    .strip_prefix(long)
                    .and_then(|rest| rest.strip_prefix('='))
                    .or_else(|| word.strip_prefix(short).filter(|rest| !rest.is_empty()));
                (word == *short || word == *long || attached.is_some())
                    .then(|| (*setting, attached.map(str::to_owned)))
            });
            let (setting, value) = match option {
                Some((setting, Some(attached))) => (setting, attached),
                Some((setting, None)) => (setting, words.next().ok_or_else(refused)?),
                None if word.starts_with('-') => return Err(refused()),
                None => (places.next().ok_or_else(refused)?, word),
            };
            settings.push((setting, value));
        }
        // As in psql, a connection string counts more than the options, in whatever order they are.
        settings.sort_by_key(|(setting, _)| *setting == "dbname");
        match &settings[..] {
            [] => Ok(None),
            [("dbname", url)] if url.contains("://") => Ok(Some(url.clone())),
            [.., ("dbname", url)] if url.contains("://") => {
                Err(PlanError("CONNECT_STRING: write host, port and user into the URL".to_owned()))
            }
            settings => {
                let pair = |(setting, value): &(&str, String)| conninfo::pair(setting, value);
                Ok(Some(settings.iter().map(pair).collect::<Vec<_>>().join(" ")))
            }
        }
    }
}

/// Whether the value of a numeric variable is in its range.
fn is_in_range(name: &str, value: &str) -> bool {
    let range = if name == "UPDATE_PCT" { 0..=100 } else { 1..=u32::MAX };
    value.parse().is_ok_and(|parsed| range.contains(&parsed))
}

/// Splits a line of shell into words, without its comment. Returns `None` if it is not literal text: a
/// variable, a command, or an unterminated quote.
fn shell_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\r' => words.extend(word.take()),
            '#' if word.is_none() => break,
            '\'' | '"' => {
                let inside = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == character => break,
                        '$' | '`' | '\\' if character == '"' => return None,
                        other => inside.push(other),
                    }
                }
            }
            '$' | '`' | '\\' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# PGIO\nUPDATE_PCT=20\nRUN_TIME=120 # seconds\nNUM_SCHEMAS=2\nNUM_THREADS=4\n\
        WORK_UNIT=255\nUPDATE_WORK_UNIT=8\nSCALE=256M\n\nexport DBNAME=pg10\nCONNECT_STRING=\"pg10\"\n\
        CREATE_BASE_TABLE=TRUE\n";

    fn options(text: &str, purpose: Purpose) -> Vec<String> {
        let read = PgioConf::parse(text).unwrap().options(purpose);
        read.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
    }

    #[test]
    fn converts_a_file_to_the_options_of_each_command() {
        assert!(is_pgio(FILE));
        assert_eq!(
            options(FILE, Purpose::Run),
            [
                "--database=dbname=pg10",
                "--layout=block",
                "--tables=2",
                "--size=256M",
                "--sessions=8",
                "--table-per-session=true",
                "--duration=120",
                "--warmup=0",
                "--batch=255",
                "--update-batch=8",
                "--update-percent=20",
                "--update-share=transactions",
            ]
        );
        assert_eq!(
            options(FILE, Purpose::Prepare),
            [
                "--database=dbname=pg10",
                "--layout=block",
                "--tables=2",
                "--size=256M",
                "--connections=4"
            ]
        );
        assert_eq!(options(FILE, Purpose::Other), ["--database=dbname=pg10"]);
    }

    #[test]
    fn variables_that_are_not_set_have_the_defaults_of_pgio() {
        assert_eq!(
            options("SCALE=1G\n", Purpose::Run),
            [
                "--layout=block",
                "--tables=1",
                "--size=1G",
                "--sessions=1",
                "--table-per-session=true",
                "--duration=300",
                "--warmup=0",
                "--batch=255",
                "--update-batch=255",
                "--update-percent=0",
                "--update-share=transactions",
            ]
        );
        let prepare = ["--layout=block", "--tables=1", "--size=1G", "--connections=1"];
        assert_eq!(options("SCALE=1G\n", Purpose::Prepare), prepare);
    }

    #[test]
    fn reports_every_variable_without_effect() {
        let read = PgioConf::parse(&format!("{FILE}OUTPUT_DIR=/tmp\n")).unwrap();
        assert_eq!(read.unknown, ["OUTPUT_DIR"]);
        let notices = read.without_effect().join("\n");
        for name in ["OUTPUT_DIR", "CREATE_BASE_TABLE", "DBNAME=pg10"] {
            assert!(notices.contains(name), "{notices}");
        }
    }

    #[test]
    fn rejects_lines_without_a_literal_value() {
        for (text, expected) in [
            ("A=1\nif true", "line 2"),
            ("DBNAME=$USER", "line 1: DBNAME"),
            ("RUN_TIME=\"ten\"", "RUN_TIME=ten"),
            ("UPDATE_PCT=101", "UPDATE_PCT=101"),
            ("NUM_THREADS=0", "NUM_THREADS=0"),
            ("SCALE=1000", "SCALE=1000"),
            ("SCALE=5X", "SCALE=5X"),
            ("CONNECT_STRING=\"-x 5\"", "CONNECT_STRING"),
            ("CONNECT_STRING=\"-h a postgresql://b/c\"", "into the URL"),
        ] {
            let error = PgioConf::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn parses_the_connection_as_psql_does() {
        for (text, database) in [
            ("postgresql://a@b/c?x=y", "postgresql://a@b/c?x=y"),
            ("host=h dbname=d", "host=h dbname=d"),
            ("-h h -p 5433 -U me bench", "host=h port=5433 user=me dbname=bench"),
            ("--host=h -Ume bench", "host=h user=me dbname=bench"),
            ("bench me", "user=me dbname=bench"),
            ("-d 'host=a port=1' -h b -U me", "host=b user=me host=a port=1"),
            ("-d postgresql://a@b/c", "postgresql://a@b/c"),
            ("postgresql:///b?host=/s&port=1", "postgresql:///b?host=/s&port=1"),
        ] {
            let read = options(&format!("CONNECT_STRING=\"{text}\""), Purpose::Other);
            assert_eq!(read, [format!("--database={database}")]);
        }
    }

    #[test]
    fn errors_do_not_repeat_possible_passwords() {
        for text in
            ["CONNECT_STRING='-x secret'", "CONNECT_STRING=\"$secret\"", "PGPASSWORD secret"]
        {
            let error = PgioConf::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn detects_pgio_files() {
        assert!(!is_pgio("sessions = 8\nbatch = 10\n# A=1\n"));
        assert!(is_pgio("  export SCALE=1G"));
    }
}
