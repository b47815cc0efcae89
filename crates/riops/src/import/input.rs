//! A file or standard input, and which files belong together.

use std::fmt;
use std::io::{BufRead, Cursor, ErrorKind, Read};

use jiff::Timestamp;

use super::error::ImportError;
use super::format::Format;
use crate::host::files::{line_limited, rest_text_limited};

/// Bytes from which the format is recognized.
const HEAD_BYTES: u64 = 64 * 1024;
/// Maximum size of a report, which is read as a whole: a month with a line per second has about 250 MiB. Logs and
/// records may be larger.
const REPORT_BYTES_MAX: u64 = 512 << 20;
/// Maximum size of a line of a log. Those of pgbench have at most 16 numbers.
const LINE_BYTES_MAX: u64 = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A text to import.
pub struct Input {
    /// Name in messages: a path, or `standard input`.
    pub name: String,
    /// When the file was last modified: the end of the run at the earliest.
    pub modified: Option<Timestamp>,
    reader: Box<dyn BufRead>,
}

impl fmt::Debug for Input {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Input").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Input {
    /// Creates an input from an open file.
    #[must_use]
    pub fn new(name: String, modified: Option<Timestamp>, reader: Box<dyn BufRead>) -> Self {
        Self { name, modified, reader }
    }

    /// Returns the name without directories.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns the format of the contents, without consuming them.
    fn recognized(&mut self) -> Result<Format, ImportError> {
        let mut head = Vec::new();
        (&mut self.reader)
            .take(HEAD_BYTES)
            .read_to_end(&mut head)
            .map_err(|source| self.failed(source))?;
        let found = Format::of(&String::from_utf8_lossy(&head));
        let rest = std::mem::replace(&mut self.reader, Box::new(Cursor::new(Vec::new())));
        self.reader = Box::new(Cursor::new(head).chain(rest));
        found.ok_or_else(|| ImportError::UnknownFormat(self.name.clone()))
    }

    /// Reads the whole text.
    pub(super) fn text(mut self) -> Result<String, ImportError> {
        let text = rest_text_limited(&mut self.reader, REPORT_BYTES_MAX);
        text.map_err(|source| self.failed(source))
    }

    /// Returns the contents without the byte order mark that some editors write.
    pub(super) fn without_bom(mut self) -> Result<Box<dyn BufRead>, ImportError> {
        let start = self.reader.fill_buf().map(|start| start.starts_with(BYTE_ORDER_MARK));
        if start.map_err(|source| self.failed(source))? {
            self.reader.consume(BYTE_ORDER_MARK.len());
        }
        Ok(self.reader)
    }

    /// Calls `each` for each line that is not empty, with its number from 1.
    pub(super) fn for_each_line(
        mut self,
        mut each: impl FnMut(u64, &str) -> Result<(), String>,
    ) -> Result<(), ImportError> {
        for number in 1.. {
            let line = line_limited(&mut self.reader, LINE_BYTES_MAX)
                .map_err(|error| self.wrong_line(number, error))?;
            if line.is_empty() {
                break;
            }
            let text = line.trim_end();
            if !text.is_empty() {
                each(number, text)
                    .map_err(|reason| ImportError::line(&self.name, number, reason))?;
            }
        }
        Ok(())
    }

    fn wrong_line(&self, number: u64, error: std::io::Error) -> ImportError {
        match error.kind() {
            ErrorKind::FileTooLarge | ErrorKind::InvalidData => {
                ImportError::line(&self.name, number, error.to_string())
            }
            _ => self.failed(error),
        }
    }

    fn failed(&self, source: std::io::Error) -> ImportError {
        ImportError::Read { file: self.name.clone(), source }
    }
}

/// Returns the inputs of each import: one each, but the log files of all threads of a pgbench together.
pub(super) fn groups(
    inputs: Vec<Input>,
    format: Option<Format>,
) -> Result<Vec<(Format, Vec<Input>)>, ImportError> {
    let mut groups: Vec<(Format, String, Vec<Input>)> = Vec::new();
    for mut input in inputs {
        let format = match format {
            Some(format) => format,
            None => input.recognized()?,
        };
        let is_log = matches!(format, Format::PgbenchLog | Format::PgbenchAggregate);
        let run = if is_log { run_of(&input.name).to_owned() } else { input.name.clone() };
        match groups.iter_mut().find(|(known, name, _)| is_log && *known == format && *name == run)
        {
            Some((_, _, group)) => group.push(input),
            None => groups.push((format, run, vec![input])),
        }
    }
    Ok(groups.into_iter().map(|(format, _, group)| (format, group)).collect())
}

/// Returns the name of the first log file of a run: `PREFIX.PID` for `PREFIX.PID.THREAD`.
fn run_of(name: &str) -> &str {
    let without_number = |name: &'_ str| {
        let (start, number) = name.rsplit_once('.')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(start.len())
    };
    // Only if a process id is left.
    match without_number(name).and_then(|end| name.get(..end)) {
        Some(start) if without_number(start).is_some() => start,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, text: &'static str) -> Input {
        Input::new(name.to_owned(), None, Box::new(text.as_bytes()))
    }

    #[test]
    fn the_log_files_of_all_threads_of_a_run_belong_together() {
        let log = "0 1 4097 0 1795414448 499094\n";
        let names = ["a/log.12", "a/log.13", "a/log.12.1", "b/log.12.1", "x.log", "y.log"];
        let inputs = names.map(|name| input(name, log)).into_iter().collect();
        let groups = groups(inputs, None).unwrap();
        let found: Vec<Vec<&str>> = groups
            .iter()
            .map(|(_, group)| group.iter().map(|input| input.name.as_str()).collect())
            .collect();
        assert_eq!(
            found,
            [
                vec!["a/log.12", "a/log.12.1"],
                vec!["a/log.13"],
                vec!["b/log.12.1"],
                vec!["x.log"],
                vec!["y.log"]
            ]
        );
    }

    #[test]
    fn recognizing_the_format_consumes_nothing() {
        let mut each = input("x", "{\"a\": 1}\n");
        assert_eq!(each.recognized().unwrap(), Format::Json);
        assert_eq!(each.text().unwrap(), "{\"a\": 1}\n");
        let error = groups(vec![input("notes.txt", "hello\n")], None).unwrap_err().to_string();
        assert!(error.contains("notes.txt") && error.contains("--from"), "{error}");
    }
}
