//! Errors of a script that are found while it is executed.

use riops_script::Variables;
use riops_script::evaluate::EvaluateError;

pub(super) type Result<T, E = ScriptError> = std::result::Result<T, E>;

/// An error of a script. Each has the SQLSTATE that the server has for the same error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScriptError {
    /// An expression has no value.
    #[error("{text}")]
    Evaluation {
        /// SQLSTATE.
        sqlstate: &'static str,
        /// What failed.
        text: String,
    },
    /// A command is not allowed in the state of the session.
    #[error("{0}")]
    State(&'static str),
    /// A variable has no value.
    #[error("{0}undefined variable \"{1}\"")]
    Undefined(&'static str, String),
    /// A column of `\gset` or `\aset` cannot be a variable.
    #[error("error storing into variable {0}")]
    Column(String),
    /// `\gset` got another number of rows.
    #[error("expected one row, got {0}")]
    Rows(u64),
    /// A command of the shell failed.
    #[error("execution of meta-command failed: {0}")]
    Shell(String),
    /// The output of a command of the shell is not an integer.
    #[error("shell command must return an integer (not \"{0}\")")]
    NotAnInteger(String),
}

impl ScriptError {
    /// Returns the error of an expression, described with the names of its variables.
    pub(super) fn of(
        error: &EvaluateError,
        names: &riops_script::Names,
        variables: &Variables,
    ) -> Self {
        let sqlstate = match error {
            EvaluateError::DivisionByZero => "22012",
            EvaluateError::OutOfRange(_)
            | EvaluateError::DoubleOutOfRange(_)
            | EvaluateError::VariableOutOfRange(_) => "22003",
            EvaluateError::Coerce(..) => "42804",
            EvaluateError::Malformed(_) => "22P02",
            _ => "22023",
        };
        Self::Evaluation { sqlstate, text: error.describe(names, variables) }
    }

    pub(super) fn sqlstate(&self) -> &'static str {
        match self {
            Self::Evaluation { sqlstate, .. } => sqlstate,
            Self::State(_) => "55000",
            Self::Undefined(..) => "42704",
            Self::Column(_) => "42602",
            Self::Rows(_) => "21000",
            Self::Shell(_) => "38000",
            Self::NotAnInteger(_) => "22P02",
        }
    }
}
