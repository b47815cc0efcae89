//! Exit codes and error messages.

use std::process::ExitCode;

use riops::plan::PlanError;
use riops::report::FormError;
use riops::run::{ErrorKind, RunError};
use riops::server::ConnectionError;
use riops::server::conninfo::ConnInfoError;
use riops::server::embedded::EmbeddedError;

/// An operation failed.
pub(crate) const FAILED: u8 = 1;
/// The command line is invalid, or does not fit the server or its dataset.
pub(crate) const USAGE: u8 = 2;
/// The run completed, but its result is not valid.
pub(crate) const NOT_VALID: u8 = 3;
/// The run completed and is valid, but breached a threshold.
pub(crate) const BREACHED: u8 = 99;
/// Interrupted by the user.
pub(crate) const INTERRUPTED: u8 = 130;

/// An invalid command line. The exit code is [`USAGE`].
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Prints an error and returns its exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let code = code_of(error);
    let text = if code == INTERRUPTED { "interrupted".to_owned() } else { message(error) };
    crate::ui::error(&text);
    ExitCode::from(code)
}

/// Prints a usage error and returns its exit code.
pub(crate) fn usage(message: &str) -> ExitCode {
    crate::ui::error(message);
    ExitCode::from(USAGE)
}

/// Returns the error with its causes, without those that the preceding text already contains.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn code_of(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of_cause).unwrap_or(FAILED)
}

/// Returns the exit code of a cause; `None` if the cause does not determine it.
fn code_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<RunError>() {
        return Some(match error.kind() {
            ErrorKind::Interrupted => INTERRUPTED,
            ErrorKind::Usage => USAGE,
            ErrorKind::NotValid => NOT_VALID,
            ErrorKind::Failed => return None,
        });
    }
    let interrupted = matches!(cause.downcast_ref(), Some(ConnectionError::Interrupted))
        || match cause.downcast_ref() {
            Some(EmbeddedError::Interrupted) => true,
            Some(EmbeddedError::Connection(inner)) => {
                matches!(inner, ConnectionError::Interrupted)
            }
            _ => false,
        };
    let usage = cause.is::<UsageError>()
        || cause.is::<PlanError>()
        || cause.is::<ConnInfoError>()
        || matches!(
            cause.downcast_ref(),
            Some(FormError::Unknown(_) | FormError::Unsupported { .. })
        );
    match (interrupted, usage) {
        (true, _) => Some(INTERRUPTED),
        (_, true) => Some(USAGE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use riops::dataset::DatasetError;

    use super::*;

    #[test]
    fn prints_each_cause_once() {
        let source = std::io::Error::other("no such host");
        let quoting = ConnectionError::Connect { address: "db:5432".to_owned(), source };
        let error = anyhow::Error::from(quoting).context("not prepared");
        assert_eq!(message(&error), "not prepared: cannot connect to db:5432: no such host");
    }

    #[test]
    fn maps_each_kind_of_error_to_an_exit_code() {
        assert_eq!(code_of(&anyhow::anyhow!("broken")), FAILED);
        assert_eq!(code_of(&UsageError("no".to_owned()).into()), USAGE);
        let differs = DatasetError::Differs {
            workload: "rows",
            option: "--rows".to_owned(),
            found: "1".to_owned(),
            wanted: "2".to_owned(),
        };
        assert_eq!(code_of(&RunError::from(differs).into()), USAGE);
        let interrupted = RunError::from(DatasetError::Connection(ConnectionError::Interrupted));
        assert_eq!(code_of(&anyhow::Error::from(interrupted).context("preparing")), INTERRUPTED);
    }
}
