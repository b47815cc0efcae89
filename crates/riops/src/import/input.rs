//! A file or standard input, and which files belong together.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, Cursor, ErrorKind, Read};

use jiff::Timestamp;

use super::error::ImportError;
use super::format::Format;
use crate::host::files::{line_limited, rest_limited, too_large};

/// Number of bytes from which the format is recognized.
const HEAD_BYTES: u64 = 64 * 1024;
/// Maximum size of a table, and of a text in UTF-16: they are read as a whole. Others may be larger.
const WHOLE_BYTES_MAX: u64 = 512 << 20;
/// Maximum size of a line of a log. A line of pgbench has at most 16 numbers.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// The part of a line of other programs that is read.
const TEXT_LINE_BYTES_MAX: u64 = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The marks of UTF-16, which `>` of Windows PowerShell writes: the low byte first, or the high byte.
const UTF_16_MARKS: [(&[u8], bool); 2] = [(b"\xff\xfe", true), (b"\xfe\xff", false)];

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
    pub fn new(name: String, modified: Option<Timestamp>, reader: Box<dyn BufRead>) -> Self {
        Self { name, modified, reader }
    }

    /// Returns the name without directories.
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns the format of the contents, without consuming them; `None` for reports.
    fn recognized(&mut self) -> Result<Option<Format>, ImportError> {
        let head = self.head()?;
        let format = Format::from_head(&String::from_utf8_lossy(&head));
        self.prepend(head);
        Ok(format)
    }

    /// Removes the byte order mark that some editors write, and converts UTF-16 to UTF-8.
    fn decode(&mut self) -> Result<(), ImportError> {
        let mut head = self.head()?;
        let utf_16 = UTF_16_MARKS.into_iter().find(|(mark, _)| head.starts_with(mark));
        let Some((mark, is_low_first)) = utf_16 else {
            if head.starts_with(BYTE_ORDER_MARK) {
                head.drain(..BYTE_ORDER_MARK.len());
            }
            self.prepend(head);
            return Ok(());
        };
        head.drain(..mark.len());
        self.prepend(head);
        let bytes = self.rest()?;
        let (pairs, odd) = bytes.as_chunks::<2>();
        let unit = if is_low_first { u16::from_le_bytes } else { u16::from_be_bytes };
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        let text = String::from_utf16(&units).ok().filter(|_| odd.is_empty());
        let text = text.ok_or_else(|| ImportError::contents(&self.name, "invalid UTF-16"))?;
        self.reader = Box::new(Cursor::new(text.into_bytes()));
        Ok(())
    }

    fn head(&mut self) -> Result<Vec<u8>, ImportError> {
        let mut head = Vec::new();
        let read = (&mut self.reader).take(HEAD_BYTES).read_to_end(&mut head);
        read.map(|_| head).map_err(|source| self.failed(source))
    }

    /// Puts bytes in front of those that were not read yet.
    fn prepend(&mut self, bytes: Vec<u8>) {
        let rest = std::mem::replace(&mut self.reader, Box::new(Cursor::new(Vec::new())));
        self.reader = Box::new(Cursor::new(bytes).chain(rest));
    }

    fn rest(&mut self) -> Result<Vec<u8>, ImportError> {
        let bytes = rest_limited(&mut self.reader, WHOLE_BYTES_MAX);
        bytes.map_err(|source| self.failed(source))
    }

    /// Reads the whole text, and returns whether it contains bytes that are not UTF-8, which are replaced.
    pub(super) fn text(mut self) -> Result<(String, bool), ImportError> {
        Ok(match String::from_utf8(self.rest()?) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        })
    }

    /// Returns the reader of the contents.
    pub(super) fn into_reader(self) -> Box<dyn BufRead> {
        self.reader
    }

    /// Calls `read` for each line that is not empty, with its number from 1.
    pub(super) fn for_each_line(
        mut self,
        mut read: impl FnMut(u64, &str) -> Result<(), String>,
    ) -> Result<(), ImportError> {
        for position in 1.. {
            let line = line_limited(&mut self.reader, LINE_BYTES_MAX)
                .map_err(|error| self.wrong_line(position, error))?;
            if line.is_empty() {
                break;
            }
            let text = line.trim_end();
            if !text.is_empty() {
                read(position, text)
                    .map_err(|reason| ImportError::line(&self.name, position, reason))?;
            }
        }
        Ok(())
    }

    /// Calls `read` for each line of a text, with its number from 1, and returns whether the text contains bytes that are
    /// not UTF-8, which are replaced. Reads only the start of a very long line.
    pub(super) fn for_each_text_line(
        mut self,
        mut read: impl FnMut(u64, &str),
    ) -> Result<bool, ImportError> {
        let (mut is_replaced, mut line) = (false, Vec::new());
        for position in 1.. {
            line.clear();
            let mut part = (&mut self.reader).take(TEXT_LINE_BYTES_MAX);
            part.read_until(b'\n', &mut line).map_err(|source| self.failed(source))?;
            if line.is_empty() {
                break;
            }
            if line.len() as u64 == TEXT_LINE_BYTES_MAX && !line.ends_with(b"\n") {
                let mut rest = (&mut self.reader).take(WHOLE_BYTES_MAX);
                let skipped = rest.skip_until(b'\n').map_err(|source| self.failed(source))?;
                if skipped as u64 == WHOLE_BYTES_MAX {
                    return Err(self.wrong_line(position, too_large(WHOLE_BYTES_MAX)));
                }
            }
            let text = String::from_utf8_lossy(&line);
            is_replaced |= matches!(text, Cow::Owned(_));
            read(position, &text);
        }
        Ok(is_replaced)
    }

    fn wrong_line(&self, position: u64, error: std::io::Error) -> ImportError {
        match error.kind() {
            ErrorKind::FileTooLarge | ErrorKind::InvalidData => {
                ImportError::line(&self.name, position, error.to_string())
            }
            _ => self.failed(error),
        }
    }

    fn failed(&self, source: std::io::Error) -> ImportError {
        ImportError::Read { file: self.name.clone(), source }
    }
}

/// The inputs of an import with their format; `None`: reports of any tool.
type Group = (Option<Format>, Vec<Input>);

/// Returns the inputs of each import: one each, but the log files of all threads of a pgbench together. Without a format,
/// the text has reports of any tool.
pub(super) fn groups(
    inputs: Vec<Input>,
    format: Option<Format>,
) -> Result<Vec<Group>, ImportError> {
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let mut groups: Vec<(Option<Format>, String, Vec<Input>)> = Vec::new();
    for mut input in inputs {
        input.decode()?;
        let format = match format {
            Some(format) => Some(format),
            None => input.recognized()?,
        };
        let is_log = matches!(format, Some(Format::PgbenchLog | Format::PgbenchAggregate));
        let run = if is_log { run_of(&input.name, &names).to_owned() } else { input.name.clone() };
        match groups.iter_mut().find(|(known, name, _)| is_log && *known == format && *name == run)
        {
            Some((_, _, group)) => group.push(input),
            None => groups.push((format, run, vec![input])),
        }
    }
    Ok(groups.into_iter().map(|(format, _, group)| (format, group)).collect())
}

/// Returns the name of the first log file of a run: `PREFIX.PID` for `PREFIX.PID.THREAD`. The prefix may end with a dot
/// and a number too, so a file is one of a further thread only if the first file is there.
fn run_of<'a>(name: &'a str, names: &[String]) -> &'a str {
    let first = without_number(name).filter(|first| without_number(first).is_some());
    first.filter(|first| names.iter().any(|other| other == first)).unwrap_or(name)
}

/// Returns the name without a number at its end: `a.1` of `a.1.2`.
fn without_number(name: &str) -> Option<&str> {
    let (start, suffix) = name.rsplit_once('.')?;
    let is_number = !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(start)
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
        let grouped: Vec<Vec<&str>> = groups
            .iter()
            .map(|(_, group)| group.iter().map(|input| input.name.as_str()).collect())
            .collect();
        assert_eq!(
            grouped,
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
    fn a_prefix_that_ends_with_a_number_is_not_the_process() {
        let names = ["run.1.70", "run.1.70.1", "run.1.71", "run.2.72", "run.2.72.1"];
        let names = names.map(str::to_owned);
        let runs: Vec<&str> = names.iter().map(|name| run_of(name, &names)).collect();
        assert_eq!(runs, ["run.1.70", "run.1.70", "run.1.71", "run.2.72", "run.2.72"]);
    }

    #[test]
    fn utf_16_and_byte_order_marks_are_decoded() {
        let text = "pgbench (15.18)\nlatency: 1 µs 𝄞\n";
        let bytes = |mark: u16, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            std::iter::once(mark).chain(text.encode_utf16()).flat_map(to_bytes).collect()
        };
        let utf_8 = [BYTE_ORDER_MARK, text.as_bytes()].concat();
        for bytes in [bytes(0xfeff, u16::to_le_bytes), bytes(0xfeff, u16::to_be_bytes), utf_8] {
            let input = Input::new("x".to_owned(), None, Box::new(Cursor::new(bytes)));
            let mut groups = groups(vec![input], None).unwrap();
            let (format, mut group) = groups.remove(0);
            assert_eq!(format, None);
            assert_eq!(group.remove(0).text().unwrap(), (text.to_owned(), false));
        }
        for damaged in [&b"\xff\xfea\0b"[..], b"\xff\xfe\x00\xd8"] {
            let input = Input::new("x".to_owned(), None, Box::new(damaged));
            let error = groups(vec![input], None).unwrap_err().to_string();
            assert_eq!(error, "x: invalid UTF-16");
        }
    }

    #[test]
    fn recognizing_the_format_consumes_nothing() {
        let mut file = input("x", "{\"a\": 1}\n");
        assert_eq!(file.recognized().unwrap(), Some(Format::Json));
        assert_eq!(file.text().unwrap().0, "{\"a\": 1}\n");
    }
}
