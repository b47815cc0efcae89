//! Exit codes and error messages.

use std::process::ExitCode;
use std::sync::OnceLock;

use serde_json::json;

use riops::comparison::ComparisonError;
use riops::experiment::{BuildError, ConductError};
use riops::fleet::FleetError;
use riops::gallery::GalleryError;
use riops::import::ImportError;
use riops::plan::PlanError;
use riops::report::FormError;
use riops::run::{ErrorKind, RunError};
use riops::serve::ServeError;
use riops::server::conninfo::ConnInfoError;
use riops::server::embedded::EmbeddedError;
use riops::server::{ConnectionError, SelectError};
use riops::session::SessionError;
pub(crate) use riops::session::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, exit_code};
use riops::store::StoreError;
use riops::units::secret::redacted;
use riops::units::text::json_text;

use crate::hints::Given;

/// The command line is invalid, or does not fit the server or its dataset.
pub(crate) const USAGE: u8 = 2;

/// The observed command cannot be started, as a shell says it.
const COMMAND_NOT_FOUND: u8 = 127;
const COMMAND_NOT_EXECUTABLE: u8 = 126;

/// An invalid command line. The exit code is [`USAGE`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// An error with another exit code.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct CodedError {
    pub(crate) code: u8,
    pub(crate) text: String,
}

/// Returns the error of a run as one whose cause determines the exit code.
pub(crate) fn session_error(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Run(error) => error.into(),
        SessionError::Fleet(FleetError::Server(error)) => error.into(),
        SessionError::Fleet(error) => error.into(),
        SessionError::NotStored(error) => error.into(),
    }
}

/// Returns the error of an experiment as one whose cause determines the exit code.
pub(crate) fn conduct_error(error: ConductError) -> anyhow::Error {
    match error {
        ConductError::Refused(text) => UsageError(text).into(),
        ConductError::Select(error) => select_error(error),
        ConductError::Store(error) => error.into(),
        ConductError::Fleet(error) => error.into(),
        ConductError::Connection(error) => error.into(),
        ConductError::Build(error) => error.into(),
        ConductError::Plan { cell, source } => anyhow::Error::from(source).context(cell),
        error => error.into(),
    }
}

/// Returns the error of a server that cannot be selected as one whose cause determines the exit code.
pub(crate) fn select_error(error: SelectError) -> anyhow::Error {
    match error {
        SelectError::ConnInfo(error) => error.into(),
        SelectError::Embedded(error) => error.into(),
        SelectError::Connection(error) => error.into(),
    }
}

/// Fails with a [`UsageError`].
pub(crate) fn refuse<T>(text: impl Into<String>) -> anyhow::Result<T> {
    Err(UsageError(text.into()).into())
}

/// How an error is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// As text on standard error.
    #[default]
    Text,
    /// The same, and as a JSON object on standard output.
    Json,
}

/// A hint that belongs to an error, as context of the error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Hint(pub(crate) String);

/// How another tool states an error, if its command line was translated and scripts search for its words.
static WORDS_OF_TOOL: OnceLock<fn(&str) -> Option<String>> = OnceLock::new();

/// From now on, errors are also stated in the words of another tool.
pub(crate) fn also_in_words_of(tool: fn(&str) -> Option<String>) {
    // Only one tool is translated in a process.
    let _ = WORDS_OF_TOOL.set(tool);
}

/// Prints an error and returns its exit code.
pub(crate) fn report(error: &anyhow::Error, given: &Given, form: ErrorForm) -> ExitCode {
    let code = code_of(error);
    let text = match code {
        INTERRUPTED => "interrupted".to_owned(),
        _ if error.chain().any(<dyn std::error::Error>::is::<UsageError>) => message(error),
        _ => crate::ui::indented(&message(error)),
    };
    let in_other_words = WORDS_OF_TOOL.get().and_then(|words| words(&text));
    let text = in_other_words.map_or(text.clone(), |line| format!("{line}\n{text}"));
    let hint = error.downcast_ref::<Hint>().map(ToString::to_string);
    let hint = hint.or_else(|| text.contains(READ_ONLY).then(|| READ_ONLY_HINT.to_owned()));
    let hint = hint.map(|hint| format!("{HINT}{hint}"));
    form.print(&given.complete(&(text + &hint.unwrap_or_default())), code)
}

/// How the message of an error ends if a statement of riops must write and cannot.
const READ_ONLY: &str = "in a read-only transaction (SQLSTATE 25006)";
const READ_ONLY_HINT: &str = "default_transaction_read_only is on, for the role, the database, in the connection string or in PGOPTIONS: to allow writes, add options='-c default_transaction_read_only=off' to the connection string";

/// Separates an error and its hint.
pub(crate) const HINT: &str = "\nriops: hint: ";

impl ErrorForm {
    /// Prints an error and returns its exit code.
    pub(crate) fn print(self, text: &str, code: u8) -> ExitCode {
        crate::ui::error(text);
        self.print_json(text, code)
    }

    /// Prints the error object of `--output json` and returns the exit code. Without this option, or if a
    /// result was printed already, nothing is printed: the output is one JSON value.
    pub(crate) fn print_json(self, text: &str, code: u8) -> ExitCode {
        if self == Self::Json && !crate::ui::has_printed() {
            let text = redacted(text);
            let (message, hint) = text
                .split_once(HINT)
                .map_or((text.as_str(), None), |(text, hint)| (text, Some(hint)));
            let error = json!({ "message": message, "kind": kind_of(code), "exit_code": code });
            let mut error = error.as_object().cloned().unwrap_or_default();
            error.extend(hint.map(|hint| ("hint".to_owned(), hint.into())));
            // The error text on standard error says what failed, and the exit code stays the same.
            let _ = crate::ui::print(&json_text(&json!({ "error": error })).unwrap_or_default());
        }
        ExitCode::from(code)
    }
}

/// The kind of an error in JSON.
fn kind_of(code: u8) -> &'static str {
    match code {
        USAGE => "usage",
        NOT_VALID => "not_valid",
        INTERRUPTED => "interrupted",
        _ => "failed",
    }
}

/// Returns the error with its causes, without those that the preceding text already contains.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    // A hint is the outermost context.
    let hints = usize::from(error.is::<Hint>());
    for cause in error.chain().skip(hints).map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of_cause).unwrap_or(FAILED)
}

/// Returns the exit code of a cause; `None` if the cause does not determine it.
fn code_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<CodedError>() {
        return Some(error.code);
    }
    if let Some(error) = cause.downcast_ref::<BuildError>() {
        return match error {
            BuildError::Interrupted => Some(INTERRUPTED),
            BuildError::Refused(_) => Some(USAGE),
            BuildError::Failed { .. } | BuildError::Git(_) | BuildError::Io { .. } => None,
        };
    }
    if let Some(error) = cause.downcast_ref::<RunError>() {
        return Some(match error.kind() {
            ErrorKind::Interrupted => INTERRUPTED,
            ErrorKind::Usage => USAGE,
            ErrorKind::NotValid => NOT_VALID,
            ErrorKind::CommandNotFound => COMMAND_NOT_FOUND,
            ErrorKind::CommandNotExecutable => COMMAND_NOT_EXECUTABLE,
            ErrorKind::Failed => return None,
        });
    }
    let interrupted = matches!(cause.downcast_ref(), Some(ConnectionError::Interrupted))
        || matches!(cause.downcast_ref(), Some(FleetError::Interrupted))
        || matches!(
            cause.downcast_ref(),
            Some(StoreError::Postgresql { source, .. })
                if matches!(**source, ConnectionError::Interrupted)
        )
        || matches!(cause.downcast_ref(), Some(GalleryError::Interrupted))
        || matches!(
            cause.downcast_ref(),
            Some(
                EmbeddedError::Interrupted
                    | EmbeddedError::Connection(ConnectionError::Interrupted)
            )
        );
    let usage = cause.is::<UsageError>()
        || cause.is::<PlanError>()
        || cause.is::<ConnInfoError>()
        || cause.is::<ComparisonError>()
        || matches!(cause.downcast_ref(), Some(FleetError::Plan(_)))
        || matches!(cause.downcast_ref(), Some(GalleryError::Incomparable(_)))
        || matches!(
            cause.downcast_ref(),
            Some(
                ImportError::UnknownFormat(_)
                    | ImportError::SeveralRuns(_)
                    | ImportError::StartIsKnown
            )
        )
        || matches!(
            cause.downcast_ref(),
            Some(FormError::Unknown(_) | FormError::Unsupported { .. })
        )
        || matches!(
            cause.downcast_ref(),
            Some(
                ServeError::WeakToken { .. }
                    | ServeError::TokenRequired { .. }
                    | ServeError::PushAddress(_)
            )
        );
    if interrupted { Some(INTERRUPTED) } else { usage.then_some(USAGE) }
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
            existing: "1".to_owned(),
            wanted: "2".to_owned(),
            advice: String::new(),
        };
        assert_eq!(code_of(&RunError::from(differs).into()), USAGE);
        let interrupted = RunError::from(DatasetError::Connection(ConnectionError::Interrupted));
        assert_eq!(code_of(&anyhow::Error::from(interrupted).context("preparing")), INTERRUPTED);
    }
}
