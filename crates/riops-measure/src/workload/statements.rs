//! The statements of a session, with everything that is encoded in advance.

use riops_wire::execution::Execution;
use riops_wire::frontend::EncodeError;

use riops_model::plan::Protocol;

/// A statement that each session prepares once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Name of the prepared statement.
    pub name: String,
    /// Text, with the parameters `$1`, `$2`, …
    pub sql: String,
    /// OIDs of the parameter types.
    pub parameter_types: Vec<u32>,
}

impl Statement {
    /// Creates a statement with parameters of these types.
    pub fn new(name: &str, sql: String, parameter_types: impl Into<Vec<u32>>) -> Self {
        Self { name: name.to_owned(), sql, parameter_types: parameter_types.into() }
    }
}

/// Returns a list of parameters, such as `$7, $8, $9`.
pub(super) fn parameters(first: usize, count: usize) -> String {
    let all: Vec<_> = (first..first + count).map(|position| format!("${position}")).collect();
    all.join(", ")
}

/// Returns an INSERT with a VALUES list of `rows` rows of these columns, and the types of its parameters.
pub(super) fn insert(table: &str, columns: &[(&str, u32)], rows: usize) -> (String, Vec<u32>) {
    let width = columns.len();
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> =
        (0..rows).map(|row| format!("({})", parameters(row * width + 1, width))).collect();
    let sql = format!("insert into {table} ({}) values {}", names.join(", "), values.join(", "));
    let types = columns.iter().map(|(_, oid)| *oid);
    (sql, types.cycle().take(rows * width).collect())
}

/// The text of a statement, split at its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Text, and the number of the parameter after it, from 0.
    pieces: Vec<(String, usize)>,
    tail: String,
}

impl Pieces {
    /// In statements of riops every `$` begins a parameter.
    fn split(sql: &str) -> Self {
        let mut parts = sql.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        let mut pieces = Vec::new();
        for part in parts {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (position, rest) = part.split_at(digits);
            let position = position.parse::<usize>().unwrap_or(1).saturating_sub(1);
            pieces.push((std::mem::replace(&mut text, rest.to_owned()), position));
        }
        Self { pieces, tail: text }
    }

    pub(super) fn write(&self, out: &mut String, mut literal: impl FnMut(usize, &mut String)) {
        for (text, position) in &self.pieces {
            out.push_str(text);
            literal(*position, out);
        }
        out.push_str(&self.tail);
    }
}

/// Returns the statement with its parameters replaced by these literals.
pub fn with_literals(sql: &str, parameters: &[String]) -> String {
    let mut text = String::new();
    Pieces::split(sql).write(&mut text, |position, out| {
        out.push_str(parameters.get(position).map_or("", String::as_str));
    });
    text
}

/// The statements of a session, prepared for encoding with one protocol.
#[derive(Debug, Default)]
pub struct Statements {
    /// The protocol that sends them.
    pub protocol: Protocol,
    pub(super) list: Vec<Encoded>,
}

/// A statement with what is encoded in advance.
#[derive(Debug)]
pub(super) struct Encoded {
    /// Its executions with the extended protocol.
    pub(super) execution: Result<Execution, EncodeError>,
    pub(super) statement: Statement,
    /// Its text for the simple protocol.
    pub(super) pieces: Pieces,
}

impl Statements {
    /// Creates the list. Transactions refer to a statement by its position.
    pub fn new(protocol: Protocol, statements: Vec<Statement>) -> Self {
        let list = statements
            .into_iter()
            .map(|statement| {
                let pieces = Pieces::split(&statement.sql);
                // The extended protocol executes the unnamed statement.
                let name = if protocol == Protocol::Extended { "" } else { &statement.name };
                let execution = Execution::new(name, statement.parameter_types.len());
                Encoded { execution, statement, pieces }
            })
            .collect();
        Self { protocol, list }
    }

    /// Returns the statements.
    pub fn iter(&self) -> impl Iterator<Item = &Statement> {
        self.list.iter().map(|encoded| &encoded.statement)
    }
}
