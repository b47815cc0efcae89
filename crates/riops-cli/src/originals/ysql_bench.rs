//! The command line of ysql-bench.

use std::path::PathBuf;

use clap::Parser;
use clap::error::ErrorKind;
use riops::server::ConnInfo;
use riops::server::conninfo::Precedence;

use super::translation::{Meaning, Outside, Secret, Translated, Words};

/// The variable with the connection string, in the environment or in the file `.env`.
const URL: &str = "YSQLBENCH_URL";

/// ysql-bench, executed by riops
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of ysql-bench")]
#[expect(clippy::doc_markdown, reason = "help texts have no markup")]
#[command(name = "riops ysql-bench", disable_version_flag = true)]
struct CommandLine {
    /// Operations, in order: insert, copy_mem, copy_file, procedure, select, update
    #[arg(short, long, value_delimiter = ',', required = true, value_parser = ["insert", "copy_mem", "copy_file", "procedure", "select", "update"])]
    operations: Vec<String>,
    /// Connection string [default: the variable YSQLBENCH_URL, also from the file .env; otherwise the server that riops uses]
    #[arg(short, long)]
    url: Option<String>,
    /// File with the certificates of the authorities
    #[arg(short, long)]
    cacert_file: Option<PathBuf>,
    /// Number of sessions
    #[arg(short, long, default_value_t = 1)]
    threads: u32,
    /// Number of rows: of each session (insert, copy_mem, procedure), of all sessions (copy_file), or to choose from (select, update)
    #[arg(short, long, default_value_t = 100_000)]
    rows: u64,
    /// Rows per commit
    #[arg(short, long, default_value_t = 200)]
    batch_size: u64,
    /// Length of the text columns, in characters
    #[arg(short, long, default_value_t = 24)]
    fields_length: u32,
    /// Tablets of the table (YugabyteDB)
    #[arg(long)]
    tablets: Option<u32>,
    /// Write without distributed transactions (YugabyteDB)
    #[arg(short, long)]
    nontransactional: bool,
    /// Do not use prepared statements
    #[arg(long)]
    no_prepared: bool,
    /// Print a latency histogram
    #[arg(short, long)]
    print_histogram: bool,
    /// Number of its buckets
    #[arg(long, default_value_t = 10)]
    histogram_buckets: u16,
    /// Write a picture of the latencies
    #[arg(long)]
    graph: bool,
    /// Print the size of a row
    #[arg(long)]
    show_rowsize: bool,
    /// Duration of select and update, in minutes
    #[arg(long, visible_alias = "runtime_select", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=43_200))]
    runtime_select: u64,
    /// Drop the table first; a load always replaces the rows of the table
    #[arg(long)]
    drop: bool,
    /// Name of the table
    #[arg(long, default_value = "test_table")]
    table_name: String,
}

/// Returns the connection string among the arguments if it may contain a password.
pub(super) fn password(arguments: &[String]) -> Option<Secret> {
    // Flags may precede it in the same word: -nu URL.
    let short = |argument: &str| {
        let flags = argument.strip_prefix('-')?.trim_start_matches(['n', 'p']);
        Some(flags.strip_prefix('u')?.trim_start_matches('=').to_owned())
    };
    let value_in = |argument: &String| {
        let long =
            argument.strip_prefix("--url").map(|rest| rest.trim_start_matches('=').to_owned());
        long.or_else(|| short(argument))
    };
    let (at, attached) =
        arguments.iter().enumerate().find_map(|(at, argument)| Some((at, value_in(argument)?)))?;
    let (value, positions) = match attached {
        attached if attached.is_empty() => (arguments.get(at + 1)?.clone(), vec![at, at + 1]),
        attached => (attached, vec![at]),
    };
    // The flags of the same word.
    let flags =
        arguments.get(at)?.trim_start_matches('-').chars().take_while(|flag| "np".contains(*flag));
    let flags: String = flags.collect();
    let replacement =
        (!flags.is_empty() && !arguments.get(at)?.starts_with("--")).then(|| format!("-{flags}"));
    let may_contain = value.contains("password") || value.contains('@');
    may_contain.then_some(Secret { variable: URL, value, positions, replacement })
}

/// Translates a command line.
pub(super) fn translate(arguments: &[String], outside: &Outside<'_>) -> Translated {
    // ysql-bench writes some names with underscores.
    let dashed = |argument: &String| match argument.strip_prefix("--") {
        Some(option) => {
            let (name, value) = option.split_at(option.find('=').unwrap_or(option.len()));
            format!("--{}{value}", name.replace('_', "-"))
        }
        None => argument.clone(),
    };
    let typed = std::iter::once("ysql-bench".to_owned()).chain(arguments.iter().map(dashed));
    let line = match CommandLine::try_parse_from(typed) {
        Ok(line) => line,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(Meaning::Text(error.render().to_string()).without_notices());
        }
        Err(error) => {
            let text = error.render().to_string();
            return Err(text.trim_start_matches("error: ").trim_end().to_owned());
        }
    };
    let database = line.database(outside);
    let command = |operation: &String| line.words(operation, database.as_deref()).0;
    let commands = line.operations.iter().map(command).collect();
    Ok(Meaning::Commands(commands).without_notices())
}

impl CommandLine {
    /// The connection string; `None` for the server that riops uses by default.
    fn database(&self, outside: &Outside<'_>) -> Option<String> {
        let from_file = || {
            let text = (outside.read)(".env").ok()?;
            text.lines().find_map(|line| {
                let value = line.trim().strip_prefix("export ").unwrap_or(line.trim());
                let value = value.strip_prefix(URL)?.trim_start().strip_prefix('=')?.trim();
                Some(value.trim_matches(['"', '\'']).to_owned())
            })
        };
        let url = self.url.clone().or_else(|| (outside.variable)(URL)).or_else(from_file)?;
        let Some(file) = &self.cacert_file else {
            return Some(url);
        };
        let file = file.display().to_string();
        let certificate = [("sslrootcert", file.as_str())];
        Some(ConnInfo::with_settings(&url, &certificate, Precedence::Beside))
    }

    fn words(&self, operation: &str, database: Option<&str>) -> Words {
        let mut words = match operation {
            "select" | "update" => self.point(operation),
            method => self.load(method),
        };
        words.set("sessions", self.threads);
        words.set("table-name", &self.table_name);
        words.set("output", "ysql-bench");
        words.set_some("database", database);
        words.set_some("tablets", self.tablets);
        words.flag("non-transactional", self.nontransactional);
        words.flag("protocol=extended", self.no_prepared);
        words.flag("show-rowsize", self.show_rowsize);
        if self.print_histogram {
            words.flag("print-histogram", true);
            words.set("histogram-buckets", self.histogram_buckets);
        }
        if self.graph {
            words.set("graph", format!("ysql_bench_{operation}.png"));
        }
        words
    }

    fn load(&self, method: &str) -> Words {
        let is_file = method == "copy_file";
        let sessions = if is_file { 1 } else { u64::from(self.threads) };
        let mut words = Words::new("run load --drop");
        words.set("method", method.replace("copy_file", "copy-file"));
        words.set("rows", self.rows.saturating_mul(sessions));
        words.set("field-length", self.fields_length);
        words.set_some("batch-size", (!is_file).then_some(self.batch_size));
        words
    }

    fn point(&self, operation: &str) -> Words {
        let mut words = Words::new("run point --warmup=0s");
        words.set("op", operation);
        words.set("rows", self.rows);
        words.set("duration", format!("{}s", self.runtime_select.saturating_mul(60)));
        words.set_some("field-length", (operation == "update").then_some(self.fields_length));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::super::translation::Refused;
    use super::*;

    fn translated(
        line: &str,
        variable: Option<&str>,
        file: Option<&str>,
    ) -> Result<String, Refused> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let outside = Outside {
            variable: &|_| variable.map(str::to_owned),
            read: &|_| file.map(str::to_owned).ok_or_else(|| "missing".to_owned()),
        };
        match translate(&arguments, &outside)?.meaning {
            Meaning::Commands(commands) | Meaning::Silent(commands) => {
                let lines: Vec<_> = commands.iter().map(|words| words.join(" ")).collect();
                Ok(lines.join("\n"))
            }
            Meaning::Text(text) | Meaning::Message(text) => Ok(text),
        }
    }

    #[test]
    fn each_operation_is_a_command() {
        let text =
            translated("-o insert,copy_file,select -r 1000 -t4 --runtime_select 1 -np", None, None);
        insta::assert_snapshot!(text.unwrap());
        let update = "-o update --fields-length=9 --no_prepared --graph --tablets=3 --show-rowsize";
        insta::assert_snapshot!(translated(update, None, None).unwrap());
    }

    #[test]
    fn the_server_comes_from_the_arguments_the_environment_or_the_file() {
        let file = Some("# mine\nexport YSQLBENCH_URL=\"host=f user=me\"\n");
        let database_of = |line: &str, variable, file| {
            let words = translated(line, variable, file).unwrap();
            let option = words.split(" --").find(|word| word.starts_with("database="));
            option.unwrap_or_default().trim_end().to_owned()
        };
        assert_eq!(
            database_of("-o insert -u postgresql://a/b", Some("host=v"), file),
            "database=postgresql://a/b"
        );
        assert_eq!(database_of("-o insert", Some("host=v"), file), "database=host=v");
        assert_eq!(database_of("-o insert", None, file), "database=host=f user=me");
        assert_eq!(database_of("-o insert", None, None), "");
        let certificate = database_of("-o insert -c /ca.crt", Some("host=v"), None);
        assert_eq!(certificate, "database=host=v sslrootcert=/ca.crt");
        let certificate = database_of("-o insert -c /ca.crt", Some("postgresql://v/d?a=b"), None);
        assert_eq!(certificate, "database=a=b dbname=d host=v sslrootcert=/ca.crt");
    }

    #[test]
    fn a_password_is_found_in_every_form_of_the_option() {
        let secret_of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            password(&words).map(|secret| (secret.value, secret.positions))
        };
        let url = "host=h password=s";
        for (words, positions) in
            [(vec!["-o", "insert", "-u", url], vec![2, 3]), (vec!["--url", url], vec![0, 1])]
        {
            assert_eq!(secret_of(&words), Some((url.to_owned(), positions)));
        }
        assert_eq!(secret_of(&["--url=postgresql://me:s@h"]).unwrap().0, "postgresql://me:s@h");
        assert_eq!(secret_of(&["-uhost=h password=s"]).unwrap().0, url);
        assert_eq!(secret_of(&["-u", "host=h"]), None);
        assert_eq!(secret_of(&["-npu", url]), Some((url.to_owned(), vec![0, 1])));
        let flags = password(&["-npu".to_owned(), url.to_owned()]).unwrap();
        assert_eq!(flags.replacement.as_deref(), Some("-np"));
    }

    #[test]
    fn errors_name_the_option() {
        assert!(translated("-r 5", None, None).unwrap_err().contains("--operations"));
        assert!(translated("-o truncate", None, None).unwrap_err().contains("truncate"));
        assert!(translated("--help", None, None).unwrap().contains("--runtime-select"));
    }
}
