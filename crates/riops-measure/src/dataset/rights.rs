//! The privileges that a role lacks, as statements that grant them.

use crate::server::{Connection, ConnectionError};
use crate::workload::fill;
use riops_model::units::sql::literal;

const SQL: &str = include_str!("../../sql/dataset/missing_grants.sql");
/// The schema in which riops creates everything.
const SCHEMA: &str = "riops";

/// Use of a dataset by a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Reads its rows.
    Read,
    /// Changes its rows.
    Write,
    /// Creates its tables.
    Create,
}

/// The access of a command to a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access<'a> {
    /// Name of the dataset in the registry.
    pub dataset: &'a str,
    /// Use of the dataset by the command.
    pub needs: Needs,
    /// The schema of its tables, if it is not the schema `riops`.
    pub schema: Option<&'a str>,
}

/// Returns the `grant` statements for the privileges that the role of the connection lacks. Returns none if it
/// lacks no privilege on a schema or table.
///
/// # Errors
/// [`ConnectionError`] if the query fails.
pub fn missing_grants(
    connection: &mut Connection,
    access: Access<'_>,
) -> Result<Vec<String>, ConnectionError> {
    let Access { dataset, needs, schema } = access;
    let schemas: Vec<_> = std::iter::once(SCHEMA).chain(schema).map(literal).collect();
    let yes = |holds: bool| if holds { "true" } else { "false" };
    let sql = fill(
        SQL,
        &[
            ("dataset", dataset),
            ("creates", yes(needs == Needs::Create)),
            ("writes", yes(needs != Needs::Read)),
            ("schemas", &schemas.join(", ")),
        ],
    );
    Ok(connection.query(&sql)?.into_iter().flatten().flatten().collect())
}
