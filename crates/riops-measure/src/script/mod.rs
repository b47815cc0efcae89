//! The statements of pgbench scripts as a server sees them: types of their parameters, and plans.

pub use riops_script::{Diagnostic, Names, Scope, Script, is_name, parse};

use riops_script::Reference;

use crate::server::{Connection, ConnectionError, Feature};
use riops_model::record::checked_statement::{
    CheckedStatement, Finding, PARAMETER_HINT, Parameter, is_about_parameters,
};

/// Name of the prepared statement.
const NAME: &str = "riops_check";
const PARAMETER_TYPES: &str = include_str!("../../sql/script/parameter_types.sql");
const GENERIC_PLAN: &str = include_str!("../../sql/script/generic_plan.sql");

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
    let mut checked = Vec::new();
    for ((position, line), statement) in script.statements() {
        let parameters: Vec<_> = scope.parameters(statement).collect();
        let parameter = |reference: &&Reference| {
            let variable = names.name(reference.slot).to_owned();
            Parameter { variable, kind: String::new() }
        };
        let mut checked_statement = CheckedStatement {
            command: position,
            line,
            sql: statement.with_parameters(parameters.iter().copied()),
            parameters: parameters.iter().map(parameter).collect(),
            finding: Finding::Several(statement.statements),
        };
        if statement.statements <= 1 {
            // Each statement has a transaction, so that it keeps its backend behind a pooler and leaves no setting there.
            connection.execute("begin")?;
            if connection.dialect().has(Feature::Catalogs) {
                connection.execute("set local search_path to default")?;
                connection.execute(GENERIC_PLAN)?;
            }
            let CheckedStatement { sql, parameters, .. } = &mut checked_statement;
            checked_statement.finding = check_one(connection, sql, parameters)?;
            connection.execute("rollback")?;
        }
        checked.push(checked_statement);
    }
    Ok(checked)
}

/// Returns what the server says about a statement, and enters the types of its parameters.
fn check_one(
    connection: &mut Connection,
    sql: &str,
    parameters: &mut [Parameter],
) -> Result<Finding, ConnectionError> {
    match connection.prepare(NAME, sql, &[]) {
        Ok(()) => {}
        Err(ConnectionError::Server(error)) => {
            let hint = is_about_parameters(error.sqlstate.as_str(), &error.message);
            let hint = if hint { format!("; {PARAMETER_HINT}") } else { String::new() };
            return Ok(Finding::Refused(format!("{error}{hint}")));
        }
        Err(error) => return Err(error),
    }
    if !connection.dialect().has(Feature::Catalogs) {
        connection.close_statement(NAME)?;
        return Ok(Finding::NoPlan);
    }
    let kinds = connection.query(PARAMETER_TYPES)?.into_iter().flatten().flatten();
    parameters.iter_mut().zip(kinds).for_each(|(parameter, kind)| parameter.kind = kind);
    let nulls = vec!["null"; parameters.len()].join(", ");
    let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let finding = match connection.query(&format!("explain (costs off) execute {NAME}{arguments}"))
    {
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
    Ok(finding)
}
