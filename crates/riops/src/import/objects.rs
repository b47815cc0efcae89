//! Splits JSON into its outermost objects, so that only one of them is in memory as text.

use std::io::BufRead;

use super::error::ImportError;
use crate::host::files::too_large;

/// Maximum size of an object. A record has at most 100,000 points of a few hundred bytes for each stage, and SQLite
/// stores at most 1 GB in one value.
const OBJECT_BYTES_MAX: u64 = 512 << 20;

/// The objects of a text: one after the other, or in an array.
pub(super) struct Objects {
    reader: Box<dyn BufRead>,
    name: String,
    line: u64,
    place: Place,
    bytes_max: u64,
}

/// Kind of the last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The start of the text, an object or the end of an array.
    Outside,
    /// The start of an array.
    Start,
    /// An object in an array.
    Object,
    /// The comma behind an object in an array.
    Comma,
}

/// The part of a JSON text that is read at a time.
#[derive(Debug, Default)]
struct Scan {
    depth: u32,
    is_text: bool,
    is_escaped: bool,
}

impl Objects {
    /// Splits a text without a byte order mark.
    pub(super) fn new(reader: Box<dyn BufRead>, name: String) -> Self {
        Self { reader, name, line: 1, place: Place::Outside, bytes_max: OBJECT_BYTES_MAX }
    }

    /// Returns the next object and its line.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, ImportError> {
        loop {
            let Some(&byte) = self.buffer()?.first() else {
                return match self.place {
                    Place::Outside => Ok(None),
                    _ => Err(self.invalid("the array has no end")),
                };
            };
            self.place = match (byte, self.place) {
                (b'{', Place::Outside | Place::Start | Place::Comma) => {
                    let line = self.line;
                    if self.place != Place::Outside {
                        self.place = Place::Object;
                    }
                    return Ok(Some((line, self.object()?)));
                }
                (b'[', Place::Outside) => Place::Start,
                (b']', Place::Start | Place::Object) => Place::Outside,
                (b',', Place::Object) => Place::Comma,
                (b'\n', place) => {
                    self.line += 1;
                    place
                }
                (b' ' | b'\t' | b'\r', place) => place,
                _ => return Err(self.invalid("expected a record, which is an object")),
            };
            self.reader.consume(1);
        }
    }

    /// Reads an object, whose start is next.
    fn object(&mut self) -> Result<Vec<u8>, ImportError> {
        let (mut object, mut scan) = (Vec::new(), Scan::default());
        loop {
            let buffer = self.buffer()?;
            if buffer.is_empty() {
                return Err(self.invalid("the record has no end"));
            }
            let end = buffer.iter().position(|&byte| scan.is_end(byte)).map(|last| last + 1);
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let (length, breaks) = (part.len(), part.split(|byte| *byte == b'\n').skip(1).count());
            object.extend_from_slice(part);
            self.line += breaks as u64;
            self.reader.consume(length);
            if object.len() as u64 > self.bytes_max {
                let error = too_large(self.bytes_max);
                return Err(self.invalid(&format!("the record is {error}")));
            }
            if end.is_some() {
                return Ok(object);
            }
        }
    }

    fn buffer(&mut self) -> Result<&[u8], ImportError> {
        let file = &self.name;
        self.reader.fill_buf().map_err(|source| ImportError::Read { file: file.clone(), source })
    }

    fn invalid(&self, reason: &str) -> ImportError {
        ImportError::line(&self.name, self.line, format!("invalid JSON: {reason}"))
    }
}

impl Scan {
    /// Returns whether the object ends with this byte.
    fn is_end(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_text => self.is_escaped = true,
            b'"' => self.is_text = !self.is_text,
            b'{' | b'[' if !self.is_text => self.depth = self.depth.saturating_add(1),
            b'}' | b']' if !self.is_text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, repeat};

    use super::*;

    fn split(text: &str) -> Result<Vec<(u64, String)>, String> {
        // Parts of 3 bytes: an object is longer than the buffer.
        let reader = BufReader::with_capacity(3, std::io::Cursor::new(text.to_owned()));
        let mut objects = Objects::new(Box::new(reader), "a".to_owned());
        let mut texts = Vec::new();
        while let Some((line, object)) = objects.next().map_err(|error| error.to_string())? {
            texts.push((line, String::from_utf8(object).unwrap()));
        }
        Ok(texts)
    }

    #[test]
    fn objects_follow_each_other_or_are_in_arrays() {
        let tricky = r#"{"a": "}\"]", "b": [{}, [1]]}"#;
        let text = format!("\n{tricky}\n{{}} [] [{{\n}}, {tricky}\n]");
        let expected = [(2, tricky), (3, "{}"), (3, "{\n}"), (4, tricky)];
        assert_eq!(split(&text).unwrap(), expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(split("").unwrap(), []);
    }

    #[test]
    fn other_texts_are_refused_with_their_line() {
        for (text, line) in [
            ("{}\n{\"a\": 1", 2),
            ("[{}", 1),
            ("\n[{}{}]", 2),
            ("[{},]", 1),
            ("[[{}]]", 1),
            ("{},{}", 1),
            ("{}]", 1),
            ("\n\n3", 3),
        ] {
            let error = split(text).unwrap_err();
            assert!(error.starts_with(&format!("a, line {line}: invalid JSON")), "{text}: {error}");
        }
    }

    #[test]
    fn an_object_without_an_end_is_refused_at_the_limit() {
        let endless = Box::new(BufReader::new((&b"{"[..]).chain(repeat(b' '))));
        let mut objects = Objects { bytes_max: 1 << 20, ..Objects::new(endless, "a".to_owned()) };
        let error = objects.next().unwrap_err().to_string();
        assert!(error.contains("limit of 1 MiB"), "{error}");
    }
}
