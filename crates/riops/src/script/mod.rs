//! The statements of pgbench scripts as a server sees them: types of their parameters, and plans.

use riops_script::Statement;
pub use riops_script::{Diagnostic, Names, Scope, Script, is_name, parse};

use crate::server::{Connection, ConnectionError};

/// Name of the prepared statement.
const NAME: &str = "riops_check";
const PARAMETER_TYPES: &str = include_str!("../../../../sql/script/parameter_types.sql");
const GENERIC_PLAN: &str = include_str!("../../../../sql/script/generic_plan.sql");

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the variable.
    pub variable: String,
    /// Type that the server infers.
    pub kind: String,
}

/// What the server says about a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The lines of its plan.
    Plan(Vec<String>),
    /// It has no plan, as BEGIN.
    NoPlan,
    /// Several statements at once: only the simple protocol sends them.
    Several(usize),
    /// The server's error.
    Refused(String),
}

/// A checked statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedStatement {
    /// Number of its command in the script, from 1.
    pub number: usize,
    /// Line in the script, from 1.
    pub line: usize,
    /// Its text, with parameters.
    pub sql: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// What the server says.
    pub finding: Finding,
}

/// Checks the statements of a script without executing them.
///
/// # Errors
/// [`ConnectionError`] if the connection is lost. An error of a statement is a finding.
pub fn check(
    connection: &mut Connection,
    script: &Script,
    names: &Names,
    scope: &Scope<'_>,
) -> Result<Vec<CheckedStatement>, ConnectionError> {
    connection.execute("reset search_path")?;
    connection.execute(GENERIC_PLAN)?;
    let mut checked = Vec::new();
    for ((number, line), statement) in script.statements() {
        let parameters: Vec<_> = scope.parameters(statement).collect();
        let variables = parameters.iter().map(|each| names.name(each.slot).to_owned());
        let checked_statement = CheckedStatement {
            number,
            line,
            sql: statement.with_parameters(parameters.iter().copied()),
            parameters: variables
                .map(|variable| Parameter { variable, kind: String::new() })
                .collect(),
            finding: Finding::Several(statement.statements),
        };
        checked.push(check_one(connection, checked_statement, statement)?);
    }
    Ok(checked)
}

fn check_one(
    connection: &mut Connection,
    mut checked: CheckedStatement,
    statement: &Statement,
) -> Result<CheckedStatement, ConnectionError> {
    if statement.statements > 1 {
        return Ok(checked);
    }
    match connection.prepare(NAME, &checked.sql, &[]) {
        Ok(()) => {}
        Err(ConnectionError::Server(error)) => {
            checked.finding = Finding::Refused(error.to_string());
            return Ok(checked);
        }
        Err(error) => return Err(error),
    }
    let kinds = connection.query(PARAMETER_TYPES)?.into_iter().flatten().flatten();
    checked.parameters.iter_mut().zip(kinds).for_each(|(parameter, kind)| parameter.kind = kind);
    let nulls = vec!["null"; checked.parameters.len()].join(", ");
    let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    checked.finding =
        match connection.query(&format!("explain (costs off) execute {NAME}{arguments}")) {
            Ok(rows) => {
                let lines: Vec<String> = rows.into_iter().flatten().flatten().collect();
                match lines.as_slice() {
                    // An empty statement.
                    [] => Finding::NoPlan,
                    [only] if only.starts_with("Utility statements") => Finding::NoPlan,
                    _ => Finding::Plan(lines),
                }
            }
            Err(ConnectionError::Server(error)) => Finding::Refused(error.to_string()),
            Err(error) => return Err(error),
        };
    connection.close_statement(NAME)?;
    Ok(checked)
}
