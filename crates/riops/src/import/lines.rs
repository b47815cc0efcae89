//! The lines of a text as a tool printed them: without what terminals, quotations, logs and supervisors add.
//!
//! Known prefixes are removed one after the other until a line of a report begins: times, names of services and
//! processes, levels. Any other prefix is learned from a line that only a report has. A name is a source: several tools may
//! write into one text at the same time.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::prefix::{Prefix, is_interval};

/// Maximum number of sources: each has a report of each tool.
const SOURCES_MAX: usize = 1000;
/// Maximum number of learned prefixes.
const LEARNED_MAX: usize = 100;
/// Maximum number of words of a learned prefix.
const WORDS_MAX: usize = 4;

/// Lines that occur only in a report, without their values.
const ANCHORS: [&str; 7] = [
    "transaction type: ",
    "number of transactions actually processed: ",
    "Running the test with following options",
    "SQL statistics:",
    "OLTP test statistics:",
    "queries performed:",
    "scaling factor: ",
];
/// The same, followed by a number.
const NUMBERED_ANCHORS: [&str; 3] = ["pgbench (", "sysbench ", "progress: "];

/// Further starts of lines of reports that look like a prefix.
const STARTS: [&str; 9] = [
    "query mode: ",
    "latency average",
    "latency stddev",
    "initial connection time",
    "General statistics:",
    "Threads fairness:",
    "Latency (ms):",
    "FATAL:",
    "total time:",
];

/// Lines of a script in a report, after `- `, apart from numbers.
const OF_SCRIPT: [&str; 4] = ["weight: ", "latency ", "number of ", "statement "];

/// Tags of pages around a report.
const TAGS: [&str; 12] =
    ["br", "pre", "code", "p", "div", "span", "td", "tr", "li", "samp", "tt", "blockquote"];
/// Fields of logs whose lines are JSON objects: of Docker, journald and others.
const MESSAGES: [&str; 5] = ["log", "message", "MESSAGE", "msg", "textPayload"];
/// Fields of such objects that name what wrote the line, also within others: of journald, Docker, Fluentd and Kubernetes.
const WRITERS: [&str; 14] = [
    "_PID",
    "SYSLOG_IDENTIFIER",
    "_SYSTEMD_UNIT",
    "CONTAINER_NAME",
    "_HOSTNAME",
    "container_name",
    "container_id",
    "container",
    "pod_name",
    "pod",
    "hostname",
    "host",
    "logger",
    "service",
];

/// The known prefixes of a text.
#[derive(Debug, Default)]
pub(super) struct Lines {
    sources: Vec<String>,
    learned: Vec<String>,
    /// The first line of a report after a prefix that is unknown.
    pub(super) unknown: Option<String>,
}

/// A line of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Number of the source, from 0, in the order of their first lines.
    pub(super) source: usize,
    pub(super) text: Cow<'a, str>,
}

impl Lines {
    /// Returns the line without its prefix.
    pub(super) fn line<'a>(&mut self, raw: &'a str) -> Line<'a> {
        let (writer, plain) = printed(raw);
        let (name, start, end) = {
            let (name, rest) = self.split(&plain);
            let start = plain.len() - rest.len();
            let text = without_tags_at_end(rest);
            (name, start, start + text.len())
        };
        let source = self.source(writer + &name);
        let part = |text: &str| text.get(start..end).unwrap_or_default().to_owned();
        let text = match plain {
            Cow::Borrowed(text) => Cow::Borrowed(text.get(start..end).unwrap_or_default()),
            Cow::Owned(text) => Cow::Owned(part(&text)),
        };
        Line { source, text }
    }

    fn source(&mut self, name: String) -> usize {
        match self.sources.iter().position(|known| *known == name) {
            Some(at) => at,
            None if self.sources.len() < SOURCES_MAX => {
                self.sources.push(name);
                self.sources.len() - 1
            }
            None => 0,
        }
    }

    /// Returns the source and the rest of a line.
    fn split<'a>(&mut self, line: &'a str) -> (String, &'a str) {
        let (mut source, mut rest, mut is_timed) = (String::new(), unquoted(line), false);
        while !is_start(rest) {
            let Some(part) = Prefix::parse(rest, is_timed) else { break };
            is_timed |= part.is_time;
            source.push_str(part.source);
            rest = unquoted(part.rest);
        }
        if is_start(rest) {
            return (source, rest);
        }
        if let Some(known) = self.learned.iter().find(|known| rest.starts_with(known.as_str())) {
            let text = rest.get(known.len()..).unwrap_or_default();
            return (source + named(known), unquoted(text));
        }
        let Some(at) = anchor(rest) else { return (source, rest) };
        let (prefix, text) = rest.split_at(at);
        if is_prefix(prefix) && self.learned.len() < LEARNED_MAX {
            self.learned.push(prefix.to_owned());
            return (source + named(prefix), text);
        }
        self.unknown.get_or_insert_with(|| prefix.to_owned());
        (source, rest)
    }
}

/// The name in a learned prefix; empty for marks and counters.
fn named(prefix: &str) -> &str {
    if prefix.contains(char::is_alphabetic) { prefix } else { "" }
}

/// Returns a line without indentation and the marks of a quotation: reports are cut out of mails, pages and notes.
fn unquoted(line: &str) -> &str {
    let mut line = line.trim_start_matches(|c: char| c == '>' || c.is_whitespace());
    while let Some(rest) = without_tag(line) {
        line = rest.trim_start();
    }
    line
}

/// The text that a terminal shows, or the message of an object, after the name of its writer.
fn printed(raw: &str) -> (String, Cow<'_, str>) {
    let raw = raw.trim_end();
    if let Some((writer, message)) = message(raw) {
        let text = without_escapes(last_written(message.trim_end())).into_owned();
        return (writer, Cow::Owned(text));
    }
    (String::new(), without_escapes(last_written(raw)))
}

/// Returns the text after the last return to the start of the line.
fn last_written(line: &str) -> &str {
    line.rsplit('\r').next().unwrap_or(line)
}

/// The name of the writer and the message of an object, or the message of a line of `name=value` (logfmt).
fn message(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if let Some((before, value)) =
        line.split_once("msg=").filter(|(_, value)| value.starts_with('"'))
    {
        let is_logfmt = before.split_whitespace().all(|pair| pair.contains('='));
        let text = serde_json::Deserializer::from_str(value).into_iter::<String>().next()?.ok();
        return text.filter(|_| is_logfmt).map(|text| (String::new(), text));
    }
    if !(line.starts_with('{') && line.ends_with('}')) {
        return None;
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return None };
    let value = MESSAGES.into_iter().find_map(|name| fields.remove(name))?;
    let message = value.as_str()?.to_owned();
    let mut writer = String::new();
    add_writer(&fields, &mut writer);
    Some((writer, message))
}

fn add_writer(fields: &Map<String, Value>, writer: &mut String) {
    for (name, value) in fields {
        match value {
            Value::Object(inner) => add_writer(inner, writer),
            Value::String(_) | Value::Number(_) if WRITERS.contains(&name.as_str()) => {
                let _ = write!(writer, "{value} ");
            }
            _ => {}
        }
    }
}

/// Removes the escape sequences of colors and links.
fn without_escapes(line: &str) -> Cow<'_, str> {
    const ESCAPE: char = '\u{1b}';
    if !line.contains(ESCAPE) {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c != ESCAPE {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('[') => {
                rest.find(|c| ('@'..='~').contains(c));
            }
            Some(']' | '_' | 'P') => {
                rest.find(|c| matches!(c, '\u{7}' | '\\'));
            }
            _ => {}
        }
    }
    Cow::Owned(text)
}

/// Returns the rest after a tag of a page at the start, or after `<13>` of syslog.
fn without_tag(line: &str) -> Option<&str> {
    let (tag, rest) = line.strip_prefix('<')?.split_once('>')?;
    is_tag(tag).then_some(rest)
}

fn without_tags_at_end(line: &str) -> &str {
    let mut line = line.trim_end();
    while let Some((text, tag)) = line.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        if !is_tag(tag) {
            break;
        }
        line = text.trim_end();
    }
    line
}

fn is_tag(tag: &str) -> bool {
    let name = tag.trim_matches('/').split([' ', '/']).next().unwrap_or_default();
    let is_priority = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    is_priority || TAGS.contains(&name)
}

/// Whether a line is an object of a log with a message.
pub(super) fn is_message(line: &str) -> bool {
    message(line).is_some()
}

/// Whether a line of a report begins here.
pub(super) fn is_start(text: &str) -> bool {
    let of_script = text.strip_prefix("- ").unwrap_or_default();
    anchor(text) == Some(0)
        || of_script.starts_with(|c: char| c.is_ascii_digit())
        || OF_SCRIPT.iter().any(|start| of_script.starts_with(start))
        || STARTS.iter().any(|start| text.starts_with(start))
        || text.strip_prefix('[').is_some_and(is_interval)
}

/// Returns where a line that only a report has begins in a text.
fn anchor(text: &str) -> Option<usize> {
    let plain = ANCHORS.into_iter().filter_map(|anchor| text.find(anchor));
    let numbered = NUMBERED_ANCHORS.into_iter().filter_map(|anchor| {
        let at = text.find(anchor)?;
        let value = text.get(at + anchor.len()..)?;
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        (is_number || value.starts_with("PostgreSQL)")).then_some(at)
    });
    let interval = text.find(" thds: ").or(text.find(" threads: ")).and_then(|end| {
        let at = text.get(..end)?.rfind('[')?;
        text.get(at + 1..).is_some_and(is_interval).then_some(at)
    });
    plain.chain(numbered).chain(interval).min()
}

/// Whether a text can be a prefix, not the start of a sentence: few words that end with a mark or begin with a name, which
/// has more than letters.
fn is_prefix(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_name = |word: &&str| word.contains(|c: char| !c.is_alphabetic());
    let ends = words.last().is_some_and(|word| word.ends_with(['|', ':', ']', ')', '-', '#', '=']));
    let is_apart = text.ends_with(|c: char| !c.is_alphanumeric());
    is_apart && words.len() <= WORDS_MAX && (ends || words.first().is_some_and(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> String {
        Lines::default().line(raw).text.into_owned()
    }

    #[test]
    fn each_known_prefix_is_removed() {
        for prefix in [
            "2024-05-01T10:00:00.1234567Z ",
            "2024-05-01T10:00:00.123456Z 01O ",
            "2024-05-01T10:00:00.123456Z 00O+",
            "2024-05-01T10:00:00.123456789Z stdout F ",
            "2024-05-01T10:00:00+0000 db1 pgbench[123]: ",
            "2024-05-01T10:00:00.5+02:00 db1 run.sh[9]: ",
            "2024-05-01 10:00:00,123 INFO ",
            "2024-05-01 10:00:00,123 - INFO - ",
            "2024-05-01 10:00:00 +0200 [INFO] ",
            "pgbench[123]: ",
            "[2024-05-01T10:00:00.123Z] ",
            "2024/05/01 10:00:00 ",
            "10:00:00 pgbench.1  | ",
            "Nov 28 04:00:01 db1 pgbench[123]: ",
            "Nov  8 04:00:01 db1 pgbench: ",
            "Nov 28 04:00:01 ",
            "<13>Nov 28 04:00:01 db1 pgbench[123]: ",
            "Thu Nov 28 04:00:01 2024 ",
            "1714557600.123456 ",
            "pgbench-1  | ",
            "pgbench-1  | 2024-05-01T10:00:00.123456789Z ",
            "[pod/pgbench-x2x/pgbench] ",
            "pgbench-x2x pgbench ",
            "node7: ",
            "#12 3.456 ",
            "I0501 10:00:00.123456       1 main.go:88] ",
            "    12\t",
            "[INFO] ",
            "INFO: ",
            "> ",
            ">> [build] ",
            "<pre><code>",
            "\u{1b}[36mpgbench-1  |\u{1b}[0m ",
            "section_start:1714557600:run\r\u{1b}[0K",
        ] {
            for line in [
                "transaction type: <builtin: TPC-B (sort of)>",
                "scaling factor: 1",
                "pgbench (15.3 (Ubuntu 15.3-1.pgdg22.04+1))",
                "[ 1s ] thds: 4 tps: 1000.00",
                "progress: 10.0 s, 400.0 tps, lat 20.000 ms stddev 1.0",
            ] {
                assert_eq!(text(&format!("{prefix}{line}\r\n")), line, "{prefix}");
            }
            let mut lines = Lines::default();
            lines.line(&format!("{prefix}transaction type: x"));
            for line in ["query mode: simple", "tps = 4.0 (x)", "min:   1.00", "duration: 30 s"] {
                assert_eq!(lines.line(&format!("{prefix}{line}")).text, line, "{prefix}");
            }
        }
    }

    #[test]
    fn messages_in_objects_are_read() {
        let docker = "{\"log\":\"scaling factor: 1\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-01T10:00:00Z\"}";
        assert_eq!(text(docker), "scaling factor: 1");
        assert_eq!(text("{\"MESSAGE\": \"tps = 1.0\", \"_PID\": \"1\"}"), "tps = 1.0");
        assert_eq!(text("{\"a\": 1}"), "{\"a\": 1}");
        let logfmt = r#"time="2024-05-01T10:00:00Z" level=info msg="statement: \"x\"" pid=1"#;
        assert_eq!(text(logfmt), "statement: \"x\"");
        assert_eq!(text(r#"a sentence about msg="x""#), r#"a sentence about msg="x""#);
        // Each writer is another source, whatever else differs.
        let mut lines = Lines::default();
        let mut source = |line: &str| lines.line(line).source;
        let one = source(r#"{"MESSAGE": "tps = 1.0", "_PID": "1", "__CURSOR": "a"}"#);
        assert_eq!(source(r#"{"MESSAGE": "x", "_PID": "1", "__CURSOR": "b"}"#), one);
        assert_ne!(source(r#"{"MESSAGE": "x", "_PID": "2", "__CURSOR": "c"}"#), one);
        let pod = source(r#"{"log": "x", "kubernetes": {"pod_name": "a"}, "stream": "stdout"}"#);
        assert_eq!(
            source(r#"{"log": "y", "kubernetes": {"pod_name": "a"}, "stream": "stderr"}"#),
            pod
        );
        assert_ne!(
            source(r#"{"log": "x", "kubernetes": {"pod_name": "b"}, "stream": "stdout"}"#),
            pod
        );
        // concurrently numbers the commands.
        assert_ne!(source("[0] scaling factor: 1"), source("[1] scaling factor: 1"));
    }

    #[test]
    fn a_number_after_a_time_is_no_year() {
        let row = "1013.597 |****                                    12";
        assert_eq!(text(&format!("May 01 10:01:23     {row}")), row);
        assert_eq!(text("May 01 10:01:23 1013 x"), "x");
    }

    #[test]
    fn lines_without_a_prefix_stay_as_they_are() {
        for line in [
            "0.499 |                                        1",
            "0.499 |****                                    12",
            "- 2000 transactions (66.7% of total, tps = 200.0)",
            "[bench@db1 ~]$ pgbench -c 8 bench",
            "a sentence about the transaction type: x",
            "read:                            140000",
            "0 1 4097 0 1795414448 499094",
            "transaction type: <builtin: select only>",
            "FATAL: Connection to database failed",
        ] {
            assert_eq!(text(line), line);
        }
    }

    #[test]
    fn names_are_sources() {
        let mut lines = Lines::default();
        let mut source = |line: &str| lines.line(line).source;
        let one = source("pgbench-1  | transaction type: x");
        let other = source("pgbench-2  | transaction type: x");
        assert_ne!(one, other);
        assert_eq!(source("pgbench-1  | tps = 1.0"), one);
        // A time, a level and a counter are not names.
        let none = source("tps = 1.0");
        for line in ["2024-05-01T10:00:00Z INFO tps = 1.0", "[INFO] tps = 1.0", "10:00:00 x"] {
            assert_eq!(source(line), none, "{line}");
        }
    }
}
