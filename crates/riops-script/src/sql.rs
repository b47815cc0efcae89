//! Splits a script at the ends of its SQL commands, by the rules of psql.

use std::ops::Range;

use crate::diagnostic::Problem;

/// The end of an SQL command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A semicolon, which belongs to the command.
    Semicolon,
    /// The backslash of a meta command.
    Backslash,
    /// The end of the script.
    Script,
}

/// An SQL command as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sql {
    /// Its text; `\;` and `\:` have lost their backslash.
    pub(crate) text: String,
    /// Position of the text in the script.
    start: usize,
    /// Positions in the text before which a backslash was removed.
    removed: Vec<usize>,
    /// Quoted parts and comments of the text, in order.
    quoted: Vec<Range<usize>>,
    /// Number of statements, which `\;` separates.
    pub(crate) statements: usize,
}

impl Sql {
    /// Returns the position in the script of a position in the text.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.start + at + self.removed.partition_point(|removed| *removed <= at)
    }

    /// Returns whether a position of the text is quoted or in a comment.
    pub(crate) fn is_quoted(&self, at: usize) -> bool {
        self.quoted_part(at).is_some()
    }

    /// Returns whether a position of the text is in quotes, and not in a comment of a dollar-quoted body.
    pub(crate) fn is_in_quotes(&self, at: usize) -> bool {
        let part = self.quoted_part(at);
        part.is_some_and(|part| {
            let text = self.text.get(part.clone()).unwrap_or_default();
            !is_in_comment(text, at - part.start)
        })
    }

    fn quoted_part(&self, at: usize) -> Option<&Range<usize>> {
        let before = self.quoted.partition_point(|range| range.start <= at);
        let last = before.checked_sub(1).and_then(|last| self.quoted.get(last));
        last.filter(|range| range.contains(&at))
    }
}

/// Returns whether a position of a quoted part is in a comment: the part is one, or has one in its dollar quotes.
fn is_in_comment(part: &str, at: usize) -> bool {
    if !part.starts_with('$') {
        return !part.starts_with(['\'', '"']);
    }
    let delimiter = part.get(1..).and_then(|rest| rest.find('$')).map_or(0, |length| length + 2);
    let body = part.get(delimiter..part.len().saturating_sub(delimiter)).unwrap_or_default();
    let Some(at) = at.checked_sub(delimiter).filter(|at| *at < body.len()) else {
        return false;
    };
    let mut scanner = Scanner::new(body, 0);
    while scanner.at <= at {
        let start = scanner.at;
        // A body in another language than SQL may have quotes that are not closed.
        if !scanner.scan_quoted().unwrap_or(false) {
            scanner.at = start + 1;
        }
    }
    let part = scanner.sql.quoted.last().filter(|part| part.contains(&at));
    part.is_some_and(|part| {
        is_in_comment(body.get(part.clone()).unwrap_or_default(), at - part.start)
    })
}

/// Reads the SQL command at `start`. Returns it, unless it is empty, what ended it, and where the rest begins.
pub(crate) fn read(script: &str, start: usize) -> Result<(Option<Sql>, End, usize), Problem> {
    let start = skip_blanks_and_comments(script, start);
    let mut scanner = Scanner::new(script, start);
    let end = scanner.scan()?;
    let at = scanner.at;
    scanner.copy();
    let mut sql = scanner.sql;
    let last = sql.text.get(scanner.last_statement..).unwrap_or_default();
    let is_last_empty = is_empty(last.trim_end_matches(';'));
    sql.statements -= usize::from(sql.statements > 1 && is_last_empty);
    Ok(((!sql.text.is_empty()).then_some(sql), end, at))
}

/// Blanks and `--` comments before a command are not sent.
fn skip_blanks_and_comments(script: &str, start: usize) -> usize {
    let bytes = script.as_bytes();
    let mut at = start;
    loop {
        match bytes.get(at..).unwrap_or_default() {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => at += 1,
            [b'-', b'-', rest @ ..] => {
                at += 2 + line_length(rest);
            }
            _ => return at,
        }
    }
}

/// Returns the number of bytes before the end of the line.
fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len())
}

/// Whether a statement has only blanks and `--` comments.
fn is_empty(statement: &str) -> bool {
    skip_blanks_and_comments(statement, 0) == statement.len()
}

struct Scanner<'a> {
    script: &'a str,
    bytes: &'a [u8],
    at: usize,
    sql: Sql,
    /// Position up to which the script is in the text.
    copied: usize,
    /// Positions of the open parentheses.
    parentheses: Vec<usize>,
    body: Body,
    /// Position in the text after the last `\;`.
    last_statement: usize,
}

impl<'a> Scanner<'a> {
    fn new(script: &'a str, start: usize) -> Self {
        Self {
            script,
            bytes: script.as_bytes(),
            at: start,
            sql: Sql {
                text: String::new(),
                start,
                removed: Vec::new(),
                quoted: Vec::new(),
                statements: 1,
            },
            copied: start,
            parentheses: Vec::new(),
            body: Body::default(),
            last_statement: 0,
        }
    }

    fn scan(&mut self) -> Result<End, Problem> {
        loop {
            if self.scan_quoted()? {
                continue;
            }
            let start = self.at;
            match self.bytes.get(start..).unwrap_or_default() {
                [] => return self.require_closed().map(|()| End::Script),
                [b'(', ..] => {
                    self.parentheses.push(start);
                    self.at += 1;
                }
                [b')', ..] => {
                    self.parentheses.pop();
                    self.at += 1;
                }
                [b';', ..] => {
                    self.at += 1;
                    if self.parentheses.is_empty() && !self.body.is_open() {
                        return Ok(End::Semicolon);
                    }
                }
                [b'\\', escaped @ (b';' | b':'), ..] => {
                    self.copy();
                    self.sql.removed.push(self.sql.text.len());
                    if *escaped == b';' {
                        // The server does not answer an empty one.
                        self.sql.statements += usize::from(!self.is_empty_statement());
                        self.last_statement = self.sql.text.len() + 1;
                        self.body.next_statement();
                    }
                    self.copied += 1;
                    self.at += 2;
                }
                [b'\\', ..] => return self.require_closed().map(|()| End::Backslash),
                [b':', b':', ..] => self.at += 2,
                [b':', b'{', b'?', ..] => {
                    let text = "\":{?name}\" is not supported: pgbench replaces it by FALSE";
                    return Err(Problem::new(start, text));
                }
                // A variable is one token: its name is not a keyword, and ends before a `$`.
                [b':', ..] => {
                    self.at += 1;
                    self.at += self.count(|byte| is_letter(byte) || byte.is_ascii_digit());
                }
                [first, ..] if is_letter(*first) => self.word(start)?,
                [first, ..] if first.is_ascii_digit() => {
                    self.at += self.count(|byte| is_letter(byte) || byte.is_ascii_digit());
                }
                _ => self.at += 1,
            }
        }
    }

    /// Scans a quoted part or a comment, or the `$` of something else. Returns whether there is one.
    fn scan_quoted(&mut self) -> Result<bool, Problem> {
        let start = self.at;
        match self.bytes.get(start..).unwrap_or_default() {
            [b'\'', ..] => self.string(start, false)?,
            [b'"', ..] => self.identifier(start)?,
            [b'-', b'-', ..] => {
                let rest = self.bytes.get(start..).unwrap_or_default();
                self.at += line_length(rest);
                self.quote(start);
            }
            [b'/', b'*', ..] => self.comment(start)?,
            [b'$', ..] => self.dollar(start)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the statement that ends here is empty.
    fn is_empty_statement(&self) -> bool {
        self.sql.text.get(self.last_statement..).is_some_and(is_empty)
    }

    fn require_closed(&self) -> Result<(), Problem> {
        let open = self.parentheses.last();
        open.map_or(Ok(()), |open| Err(Problem::new(*open, "the parenthesis is not closed")))
    }

    /// Appends what was scanned to the text.
    fn copy(&mut self) {
        self.sql.text.push_str(self.script.get(self.copied..self.at).unwrap_or_default());
        self.copied = self.at;
    }

    /// Notes that the text from `start` to here is quoted.
    fn quote(&mut self, start: usize) {
        let before = self.sql.text.len() + (start - self.copied);
        let after = self.sql.text.len() + (self.at - self.copied);
        self.sql.quoted.push(before..after);
    }

    fn count(&self, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        rest.iter().take_while(|byte| belongs(**byte)).count()
    }

    /// Scans a string; in the form `E'…'`, a backslash escapes a character.
    fn string(&mut self, start: usize, has_escapes: bool) -> Result<(), Problem> {
        self.at += 1;
        loop {
            match self.bytes.get(self.at..).unwrap_or_default() {
                [] => return Err(Problem::new(start, "the string is not closed")),
                [b'\'', b'\'', ..] => self.at += 2,
                [b'\'', rest @ ..] => {
                    self.at += 1;
                    match continuation(rest) {
                        None => break,
                        Some(length) => self.at += length,
                    }
                }
                [b'\\', _, ..] if has_escapes => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.quote(start);
        Ok(())
    }

    fn identifier(&mut self, start: usize) -> Result<(), Problem> {
        let rest = self.bytes.get(start + 1..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == b'"') {
            None => Err(Problem::new(start, "the quoted identifier is not closed")),
            Some(length) => {
                self.at = start + length + 2;
                self.quote(start);
                Ok(())
            }
        }
    }

    fn comment(&mut self, start: usize) -> Result<(), Problem> {
        let mut depth = 0;
        loop {
            match self.bytes.get(self.at..).unwrap_or_default() {
                [] => return Err(Problem::new(start, "the comment is not closed")),
                [b'/', b'*', ..] => {
                    depth += 1;
                    self.at += 2;
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
            if depth == 0 {
                self.quote(start);
                return Ok(());
            }
        }
    }

    /// Scans `$tag$…$tag$`, or only the `$` of something else.
    fn dollar(&mut self, start: usize) -> Result<(), Problem> {
        let rest = self.bytes.get(start + 1..).unwrap_or_default();
        let length =
            rest.iter().take_while(|byte| is_letter(**byte) || byte.is_ascii_digit()).count();
        let has_tag =
            rest.get(length) == Some(&b'$') && !rest.first().is_some_and(u8::is_ascii_digit);
        if !has_tag {
            self.at += 1;
            return Ok(());
        }
        let delimiter = self.script.get(start..start + length + 2).unwrap_or_default();
        let body = self.script.get(start + delimiter.len()..).unwrap_or_default();
        match body.find(delimiter) {
            None => Err(Problem::new(start, format!("the string is not closed by {delimiter}"))),
            Some(length) => {
                self.at = start + length + 2 * delimiter.len();
                self.quote(start);
                Ok(())
            }
        }
    }

    fn word(&mut self, start: usize) -> Result<(), Problem> {
        self.at += self.count(|byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'$');
        let word = self.script.get(start..self.at).unwrap_or_default();
        if self.bytes.get(self.at) == Some(&b'\'') && word.eq_ignore_ascii_case("e") {
            let quote = self.at;
            return self.string(quote, true);
        }
        self.body.word(word, self.parentheses.is_empty());
        Ok(())
    }
}

/// Returns the number of bytes up to and including the quote that continues a string: between both are only blanks and
/// comments, and at least one end of a line.
fn continuation(rest: &[u8]) -> Option<usize> {
    let (mut at, mut has_line_end) = (0, false);
    loop {
        match rest.get(at..).unwrap_or_default() {
            [b'\n' | b'\r', ..] => has_line_end = true,
            [b' ' | b'\t' | 0x0b | 0x0c, ..] => {}
            [b'-', b'-', comment @ ..] => {
                at += 2 + line_length(comment);
                continue;
            }
            [b'\'', ..] if has_line_end => return Some(at + 1),
            _ => return None,
        }
        at += 1;
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 128
}

/// Recognizes the body of a function or procedure between BEGIN and END, whose semicolons do not end the command.
#[derive(Debug, Default)]
struct Body {
    words: usize,
    /// First words of CREATE [OR REPLACE] FUNCTION or PROCEDURE; `None` if the command begins otherwise.
    creates: Option<&'static str>,
    is_routine: bool,
    depth: usize,
}

impl Body {
    /// Begins the statement after `\;`.
    fn next_statement(&mut self) {
        *self = Self { depth: self.depth, ..Self::default() };
    }

    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn word(&mut self, word: &str, is_outside_parentheses: bool) {
        let is = |expected: &str| word.eq_ignore_ascii_case(expected);
        self.words += 1;
        self.creates = match (self.words, self.creates) {
            (1, _) if is("create") => Some("create"),
            (2, Some("create")) if is("or") => Some("or"),
            (3, Some("or")) if is("replace") => Some("replace"),
            (2, Some("create")) | (4, Some("replace")) => {
                self.is_routine = is("function") || is("procedure");
                None
            }
            _ => None,
        };
        if !self.is_routine || !is_outside_parentheses {
            return;
        }
        if is("begin") || (is("case") && self.depth > 0) {
            self.depth += 1;
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the commands of a script that has no meta commands.
    fn commands(script: &str) -> Vec<String> {
        let (mut all, mut at) = (Vec::new(), 0);
        loop {
            let (sql, end, rest) = read(script, at).unwrap();
            all.extend(sql.map(|sql| sql.text));
            if end != End::Semicolon {
                return all;
            }
            at = rest;
        }
    }

    #[test]
    fn empty_statements_have_no_reply() {
        for (text, statements) in [
            ("\\; select 1;", 1),
            ("select 1 \\; select 2;", 2),
            ("select 1 \\;\\; select 2;", 2),
            ("\\; \\; select 1 \\; ;", 1),
            ("-- a\n\\; -- b\n \\; select 1;", 1),
            ("\\;", 1),
        ] {
            let (sql, ..) = read(text, 0).unwrap();
            assert_eq!(sql.unwrap().statements, statements, "{text}");
        }
    }

    #[test]
    fn a_command_ends_at_a_semicolon_outside_of_quotes() {
        for (script, expected) in [
            ("select 1;select 2", vec!["select 1;", "select 2"]),
            ("-- a; b\n select ';' ;", vec!["select ';' ;"]),
            ("select 'it''s;';x", vec!["select 'it''s;';", "x"]),
            (r"select E'\';', e'\\';x", vec![r"select E'\';', e'\\';", "x"]),
            (r"select type'\';x", vec![r"select type'\';", "x"]),
            (r"select E'it''s \';x', 2;y", vec![r"select E'it''s \';x', 2;", "y"]),
            ("select E'a' -- b\n  'b\\';c';x", vec!["select E'a' -- b\n  'b\\';c';", "x"]),
            ("select E'a' 'b\\';x", vec!["select E'a' 'b\\';", "x"]),
            ("select :x$$ ; $$; y", vec!["select :x$$ ; $$;", "y"]),
            ("select :e'\\' ; x", vec!["select :e'\\' ;", "x"]),
            ("-- a\rselect 1;x", vec!["select 1;", "x"]),
            (
                "create function f() begin atomic select 1 as :end; end; x",
                vec!["create function f() begin atomic select 1 as :end; end;", "x"],
            ),
            (
                r"drop f\; create function f() begin atomic select 1; end; x",
                vec!["drop f; create function f() begin atomic select 1; end;", "x"],
            ),
            ("select \"a;b\";x", vec!["select \"a;b\";", "x"]),
            ("select $$;$$, $a$;$$;$a$, a$b$;x", vec!["select $$;$$, $a$;$$;$a$, a$b$;", "x"]),
            ("select $1;x", vec!["select $1;", "x"]),
            ("select /* ; /* ; */ ; */ 1;x", vec!["select /* ; /* ; */ ; */ 1;", "x"]),
            ("select (1;2);x", vec!["select (1;2);", "x"]),
            ("select 1 -- ;\n;x", vec!["select 1 -- ;\n;", "x"]),
            (r"select 1\; select 2;x", vec!["select 1; select 2;", "x"]),
            (r"select a[1\:2];x", vec!["select a[1:2];", "x"]),
            ("/* a */ ;;", vec!["/* a */ ;", ";"]),
            ("", vec![]),
            (" -- only a comment", vec![]),
            (
                "create or replace function f() begin atomic; select case when 1 then 2 end; end; x",
                vec![
                    "create or replace function f() begin atomic; select case when 1 then 2 end; end;",
                    "x",
                ],
            ),
            ("create table begin; x", vec!["create table begin;", "x"]),
            ("begin; create function f; end", vec!["begin;", "create function f;", "end"]),
            ("insert into é values ('ü;');x", vec!["insert into é values ('ü;');", "x"]),
        ] {
            assert_eq!(commands(script), expected, "{script}");
        }
    }

    #[test]
    fn a_backslash_ends_a_command() {
        let (sql, end, at) = read("select 1 \\gset", 0).unwrap();
        assert_eq!((sql.unwrap().text.as_str(), end, at), ("select 1 ", End::Backslash, 9));
        assert_eq!(read(" \\set", 0).unwrap(), (None, End::Backslash, 1));
        assert_eq!(read("select (1 \\gset", 0).unwrap_err().at, 7);
    }

    #[test]
    fn knows_the_quoted_parts_and_their_positions() {
        let (sql, ..) = read("  a\\; ':b' -- :c\n :d", 0).unwrap();
        let sql = sql.unwrap();
        let colons: Vec<_> = sql
            .text
            .match_indices(':')
            .map(|(at, _)| (sql.is_quoted(at), sql.position(at)))
            .collect();
        assert_eq!(colons, [(true, 7), (true, 14), (false, 18)]);
        assert_eq!(sql.statements, 2);
        assert_eq!(read(r"a\; b\:;", 0).unwrap().0.unwrap().statements, 2);
        for script in [r"a\;", r"a\; ;", r"a\;;"] {
            assert_eq!(read(script, 0).unwrap().0.unwrap().statements, 1, "{script}");
        }
    }

    #[test]
    fn a_comment_in_a_dollar_quoted_body_is_not_in_quotes() {
        let text = "do $b$ -- it's :c\n ':q' /* ' :c */ :q $$ :q -- :c\n$$ \":q\" $b$ -- :c";
        let (sql, ..) = read(text, 0).unwrap();
        let sql = sql.unwrap();
        for (at, name) in sql.text.match_indices(':').map(|(at, _)| (at, &sql.text[at..at + 2])) {
            assert_eq!(sql.is_in_quotes(at), name == ":q", "{at} {name}");
        }
        // Not SQL: the apostrophe opens no string.
        let (sql, ..) = read("do $$ x = it's :q $$", 0).unwrap();
        assert!(sql.unwrap().is_in_quotes(15));
    }

    #[test]
    fn reports_an_unclosed_part_at_its_beginning() {
        for (script, at) in [
            ("x 'a", 2),
            ("x \"a", 2),
            ("x /* /* */", 2),
            ("x $a$ $b$", 2),
            ("x (a (b)", 2),
            ("x E'\\'", 3),
        ] {
            assert_eq!(read(script, 0).unwrap_err().at, at, "{script}");
        }
    }
}
