//! The statements of a script as a server sees them.

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the variable.
    pub variable: String,
    /// Type that the server infers.
    pub kind: String,
}

/// Answer of the server about a statement.
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
    pub command: usize,
    /// Line in the script, from 1.
    pub line: usize,
    /// Its text, with parameters.
    pub sql: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Answer of the server.
    pub finding: Finding,
}

/// Hint for an error of a parameter in a place where the server accepts none.
pub const PARAMETER_HINT: &str =
    "--protocol simple replaces the variables in the text, as pgbench does by default";

/// Whether an error may be due to a parameter `$n` instead of a variable.
pub fn is_about_parameters(sqlstate: &str, message: &str) -> bool {
    match sqlstate {
        // Its type cannot be determined, the call is ambiguous, or the number of values differs.
        "42P18" | "42725" | "08P01" => true,
        "42601" => message.contains("\"$"),
        _ => false,
    }
}
