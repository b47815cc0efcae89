//! Parses a script. Finds all errors at once.

use std::ops::Range;

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Problem, Source};
use crate::expression;
use crate::script::{
    Action, Command, Operand, Place, Reference, Rows, Script, Statement, Unit, Use, Word,
};
use crate::sql::{self, End, Sql};
use crate::token;
use crate::variables::{Names, Slot, is_name, is_name_byte};

/// Maximum number of words of a meta command, as in pgbench.
const WORDS_MAX: usize = 255;

/// Parses the text of a script up to a zero byte.
///
/// # Errors
/// The errors of the script, up to a maximum, in the order of their positions.
pub fn parse(name: &str, text: &str, names: &mut Names) -> Result<Script, Vec<Diagnostic>> {
    let text = text.split('\0').next().unwrap_or_default();
    let source = Source::new(name, text);
    let mut parser = Parser {
        source,
        names,
        commands: Vec::new(),
        problems: Vec::new(),
        branches: Vec::new(),
        uses: Vec::new(),
        mismatches: Vec::new(),
    };
    parser.script();
    let Parser { source, commands, mut problems, uses, mismatches, .. } = parser;
    if commands.is_empty() && problems.is_empty() {
        problems.push(Problem::new(0, "empty command list for script"));
    }
    if problems.is_empty() {
        let (name, text) = (name.to_owned(), text.to_owned());
        return Ok(Script { name, commands, text, uses, mismatches });
    }
    problems.sort_by_key(|problem| problem.at);
    problems.truncate(DIAGNOSTICS_MAX);
    Err(problems.into_iter().map(|problem| source.diagnostic(problem)).collect())
}

/// An open `\if`.
struct Branch {
    /// Position of its `\if`.
    start: usize,
    /// The command with its last condition, if that has no branch after it yet.
    condition: Option<usize>,
    /// Its `\elif` and `\else`, which end the branches before them.
    ends: Vec<usize>,
    has_else: bool,
}

struct Parser<'a> {
    source: Source<'a>,
    names: &'a mut Names,
    commands: Vec<Command>,
    problems: Vec<Problem>,
    branches: Vec<Branch>,
    uses: Vec<Use>,
    mismatches: Vec<Problem>,
}

/// A meta command: its name, and the words after it. Words have no quotes.
struct Meta<'a> {
    start: usize,
    name: &'a str,
    /// Position after the name.
    after_name: usize,
    words: Vec<(usize, &'a str)>,
    /// End of its line.
    end: usize,
}

impl<'a> Parser<'a> {
    fn script(&mut self) {
        let text = self.source.text;
        let mut at = 0;
        loop {
            let (sql, end, rest) = match sql::read(text, at) {
                Ok(read) => read,
                // An unclosed quote or comment extends to the end of the script.
                Err(problem) => return self.problems.push(problem),
            };
            if let Some(sql) = sql {
                self.statement(sql);
            }
            at = rest;
            match end {
                End::Semicolon => {}
                End::Script => break,
                End::Backslash => {
                    let meta = meta(text, at);
                    at = meta.end;
                    if let Err(problem) = self.meta(&meta) {
                        self.problems.push(problem);
                    }
                }
            }
        }
        let open = self.branches.iter().map(|branch| branch.start);
        self.problems
            .extend(open.map(|start| Problem::new(start, "\\if without matching \\endif")));
    }

    fn push(&mut self, at: usize, title: &str, action: Action) {
        let line = self.source.line(at);
        let title = title.lines().next().unwrap_or_default().trim_end().to_owned();
        self.commands.push(Command { start: at, line, title, action });
    }

    fn statement(&mut self, sql: Sql) {
        let mut references = Vec::new();
        let bytes = sql.text.as_bytes();
        let mut at = 0;
        while let Some(colon) = sql.text.get(at..).and_then(|rest| rest.find(':')) {
            let start = at + colon;
            let name = bytes.get(start + 1..).unwrap_or_default();
            let length = match name.first() {
                Some(first) if is_name_byte(*first, true) => {
                    name.iter().take_while(|byte| is_name_byte(**byte, false)).count()
                }
                _ => 0,
            };
            if length == 0 {
                // Several colons, as in a cast, do not begin a variable.
                at = start
                    + bytes
                        .get(start..)
                        .unwrap_or_default()
                        .iter()
                        .take_while(|byte| **byte == b':')
                        .count();
                continue;
            }
            let end = start + 1 + length;
            let slot = self.names.slot(sql.text.get(start + 1..end).unwrap_or_default());
            let is_quoted = sql.is_quoted(start);
            references.push(Reference { start, end, slot, is_quoted });
            if !is_quoted {
                self.reads(sql.position(start), slot, Place::Parameter);
            } else if sql.is_in_quotes(start) {
                self.reads(sql.position(start), slot, Place::Quotes);
            }
            at = end;
        }
        let (start, title) = (sql.position(0), sql.text.clone());
        let Sql { text, statements, .. } = sql;
        let action =
            Action::Sql(Statement { text, start, references, statements, rows: Rows::Discard });
        self.push(start, &title, action);
    }

    fn meta(&mut self, meta: &Meta<'a>) -> Result<(), Problem> {
        let name = meta.name.to_ascii_lowercase();
        let has_expression = matches!(name.as_str(), "set" | "if" | "elif");
        if let Some((at, _)) = meta.words.get(WORDS_MAX).filter(|_| !has_expression) {
            return Err(Problem::new(*at, "too many arguments").in_command(&name));
        }
        let action = match name.as_str() {
            // The backslash only ends the SQL command before it.
            "" => return Ok(()),
            "set" => {
                let variable = self.variable(meta)?;
                let rest = meta.words.get(1).map_or(meta.end, |(at, _)| *at);
                Action::Set(variable, self.expression(rest, meta)?)
            }
            "if" => {
                // Open even if its condition is wrong: its other commands are checked too.
                let condition = Some(self.commands.len());
                self.branches.push(Branch {
                    start: meta.start,
                    condition,
                    ends: Vec::new(),
                    has_else: false,
                });
                Action::If { condition: self.condition(meta)?, otherwise: 0 }
            }
            "elif" => return self.next_branch(meta, true),
            "else" => return self.next_branch(meta, false),
            "endif" => {
                let branch = self.branches.pop();
                let Some(branch) = branch else {
                    return Err(Problem::new(meta.start, "\\endif without matching \\if"));
                };
                let end = self.commands.len();
                self.link_condition(branch.condition, end);
                self.link_ends(&branch.ends, end);
                meta.at_most(0)?;
                Action::EndIf
            }
            "gset" | "aset" => return self.rows(meta),
            "sleep" => self.sleep(meta)?,
            "shell" => {
                meta.require_word(0, "command")?;
                Action::Shell(self.shell_words(&meta.words)?)
            }
            "setshell" => {
                let variable = self.variable(meta)?;
                meta.require_word(1, "argument")?;
                Action::SetShell(
                    variable,
                    self.shell_words(meta.words.get(1..).unwrap_or_default())?,
                )
            }
            "startpipeline" => meta.at_most(0).map(|()| Action::StartPipeline)?,
            "syncpipeline" => meta.at_most(0).map(|()| Action::SyncPipeline)?,
            "endpipeline" => meta.at_most(0).map(|()| Action::EndPipeline)?,
            _ => return Err(Problem::new(meta.start, "invalid command").in_command(meta.name)),
        };
        let title = self.source.text.get(meta.start..meta.end).unwrap_or_default();
        self.push(meta.start, title, action);
        Ok(())
    }

    /// Returns the variable named by the first word.
    fn variable(&mut self, meta: &Meta<'_>) -> Result<Slot, Problem> {
        let (at, name) = meta.require_word(0, "argument")?;
        if !is_name(name) {
            return Err(invalid_name(at, name));
        }
        Ok(self.names.slot(name))
    }

    fn expression(
        &mut self,
        start: usize,
        meta: &Meta<'_>,
    ) -> Result<expression::Expression, Problem> {
        let range = start..meta.end;
        let parsed = expression::parse(self.source.text, range.clone(), self.names)
            .map_err(|problem| problem.in_command(meta.name))?;
        let mismatches = parsed.mismatches.into_iter();
        self.mismatches.extend(mismatches.map(|problem| problem.in_command(meta.name)));
        for (at, name) in token::variables(self.source.text, range) {
            let slot = self.names.slot(name);
            self.reads(at, slot, Place::Command);
        }
        Ok(parsed.expression)
    }

    /// Notes that a variable is read here.
    fn reads(&mut self, at: usize, slot: Slot, place: Place) {
        self.uses.push(Use { at, slot, place });
    }

    fn condition(&mut self, meta: &Meta<'_>) -> Result<expression::Expression, Problem> {
        self.expression(meta.after_name, meta)
    }

    /// Makes a condition that is not true continue at a command.
    fn link_condition(&mut self, condition: Option<usize>, to: usize) {
        let command = condition.and_then(|position| self.commands.get_mut(position));
        if let Some(Action::If { otherwise, .. } | Action::ElseIf { otherwise, .. }) =
            command.map(|command| &mut command.action)
        {
            *otherwise = to;
        }
    }

    /// Makes the ends of branches continue at a command.
    fn link_ends(&mut self, ends: &[usize], to: usize) {
        for position in ends {
            if let Some(Command {
                action: Action::ElseIf { end, .. } | Action::Else { end }, ..
            }) = self.commands.get_mut(*position)
            {
                *end = to;
            }
        }
    }

    /// Begins the branch of `\elif` or `\else`.
    fn next_branch(&mut self, meta: &Meta<'_>, has_condition: bool) -> Result<(), Problem> {
        let name = meta.name;
        let Some(mut branch) = self.branches.pop() else {
            return Err(Problem::new(meta.start, format!("\\{name} without matching \\if")));
        };
        let had_else = branch.has_else;
        branch.has_else |= !has_condition;
        let position = self.commands.len();
        // A failed condition is evaluated at `\elif`, and continues after `\else`.
        let target = if has_condition { position } else { position + 1 };
        self.link_condition(branch.condition.take(), target);
        branch.condition = has_condition.then_some(position);
        branch.ends.push(position);
        self.branches.push(branch);
        if had_else {
            return Err(Problem::new(meta.start, format!("\\{name} after \\else")));
        }
        let action = if has_condition {
            Action::ElseIf { condition: self.condition(meta)?, otherwise: 0, end: 0 }
        } else {
            meta.at_most(0)?;
            Action::Else { end: 0 }
        };
        let title = self.source.text.get(meta.start..meta.end).unwrap_or_default();
        self.push(meta.start, title, action);
        Ok(())
    }

    /// `\gset` and `\aset` belong to the SQL command before them.
    fn rows(&mut self, meta: &Meta<'_>) -> Result<(), Problem> {
        meta.at_most(1)?;
        let (at, prefix) = meta.words.first().copied().unwrap_or((meta.start, ""));
        if !prefix.is_empty() && !is_name(prefix) {
            return Err(Problem::new(at, format!("invalid prefix of variables: \"{prefix}\"")));
        }
        match self.commands.last_mut().map(|command| &mut command.action) {
            Some(Action::Sql(statement)) if statement.rows == Rows::Discard => {
                let prefix = prefix.to_owned();
                let is_last = meta.name.eq_ignore_ascii_case("gset");
                statement.rows = if is_last { Rows::Last(prefix) } else { Rows::Each(prefix) };
                Ok(())
            }
            _ => {
                Err(Problem::new(meta.start, format!("\\{} must follow an SQL command", meta.name)))
            }
        }
    }

    fn sleep(&mut self, meta: &Meta<'_>) -> Result<Action, Problem> {
        meta.at_most(2)?;
        let (at, time) = meta.require_word(0, "argument")?;
        if let Some(name) = time.strip_prefix(':') {
            if !is_name(name) {
                return Err(invalid_name(at, name));
            }
            let unit = meta.words.get(1).map_or(Ok(Unit::Seconds), |(at, word)| unit(*at, word))?;
            let slot = self.names.slot(name);
            self.reads(at, slot, Place::Command);
            return Ok(Action::Sleep(Operand::Variable(slot), unit));
        }
        let sign = usize::from(time.starts_with(['+', '-']));
        let digits = time.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
        let (count, suffix) = time.split_at(sign + digits);
        let Ok(count) = count.parse::<i64>() else {
            return Err(Problem::new(at, format!("invalid time \"{time}\": expected an integer")));
        };
        let unit = match meta.words.get(1) {
            Some((at, word)) if suffix.is_empty() => unit(*at, word)?,
            None if suffix.is_empty() => Unit::Seconds,
            None => unit(at + sign + digits, suffix)?,
            Some((at, _)) => return Err(Problem::new(*at, "the time has a unit already")),
        };
        if count.checked_mul(unit.microseconds()).is_none() {
            return Err(Problem::new(at, "the time is too long"));
        }
        Ok(Action::Sleep(Operand::Int(count), unit))
    }

    /// A word that is a variable is replaced by its value. `::` at the beginning stands for a colon.
    fn shell_words(&mut self, words: &[(usize, &str)]) -> Result<Vec<Word>, Problem> {
        let word = |(at, word): &(usize, &str)| match word.strip_prefix(':') {
            Some(rest) if rest.starts_with(':') => Ok(Word::Text(rest.to_owned())),
            Some(name) if is_name(name) => {
                let slot = self.names.slot(name);
                self.reads(*at, slot, Place::Command);
                Ok(Word::Variable(slot))
            }
            Some(name) => Err(invalid_name(*at, name)),
            None => Ok(Word::Text((*word).to_owned())),
        };
        words.iter().map(word).collect()
    }
}

fn invalid_name(at: usize, name: &str) -> Problem {
    Problem::new(at, format!("invalid variable name: \"{name}\""))
}

impl<'a> Meta<'a> {
    /// Refuses more than `most` words.
    fn at_most(&self, most: usize) -> Result<(), Problem> {
        match self.words.get(most) {
            None => Ok(()),
            Some((at, _)) if most == 0 => {
                Err(Problem::new(*at, "unexpected argument").in_command(self.name))
            }
            Some((at, _)) => Err(Problem::new(*at, "too many arguments").in_command(self.name)),
        }
    }

    fn require_word(&self, index: usize, what: &str) -> Result<(usize, &'a str), Problem> {
        let missing = || Problem::new(self.end, format!("missing {what}")).in_command(self.name);
        self.words.get(index).copied().ok_or_else(missing)
    }
}

fn unit(at: usize, word: &str) -> Result<Unit, Problem> {
    match word.to_ascii_lowercase().as_str() {
        "us" => Ok(Unit::Microseconds),
        "ms" => Ok(Unit::Milliseconds),
        "s" => Ok(Unit::Seconds),
        _ => {
            Err(Problem::new(at, format!("unrecognized time unit \"{word}\": must be us, ms or s")))
        }
    }
}

/// Splits the meta command at `start`, up to the end of its line. A backslash before the end of a line continues it.
fn meta(text: &str, start: usize) -> Meta<'_> {
    let bytes = text.as_bytes();
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut at = start + 1;
    let mut is_in_word = bytes.get(at).is_some_and(|byte| !is_blank(*byte) && *byte != b'\n');
    if is_in_word {
        words.push(at..at);
    }
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let continuation = match rest {
            // `at` is behind the backslash of the command: this one continues the line.
            [b'\\', b'\n', ..] => 2,
            [b'\\', b'\r', b'\n', ..] => 3,
            _ => 0,
        };
        match rest.first() {
            None | Some(b'\n') => break,
            Some(byte) if continuation > 0 || is_blank(*byte) => {
                is_in_word = false;
                at += continuation.max(1);
                continue;
            }
            Some(_) if !is_in_word => {
                is_in_word = true;
                words.push(at..at);
            }
            Some(_) => {}
        }
        at += 1;
        if let Some(word) = words.last_mut() {
            word.end = at;
        }
    }
    let mut words = words.into_iter().map(|word| (word.start, text.get(word).unwrap_or_default()));
    let (name_start, name) = words.next().unwrap_or((at, ""));
    let after_name = name_start + name.len();
    Meta { start, name, after_name, words: words.collect(), end: at }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}
