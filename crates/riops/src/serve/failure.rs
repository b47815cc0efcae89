//! Requests that cannot be answered.

use axum::http::StatusCode;

use crate::store::StoreError;

/// Why a request is not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The store failed, or does not contain the run.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// A template of riops is wrong.
    #[error("cannot render the page: {0}")]
    Template(#[from] minijinja::Error),
    /// A value cannot be written as JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The request has no valid meaning.
    #[error("{0}")]
    Request(String),
    /// There is no such page.
    #[error("page not found")]
    NoPage,
    /// The store has no runs yet.
    #[error("the store has no runs yet; start one with: riops run rows")]
    NoRuns,
    /// The dashboard is read-only, or the form is not one of this dashboard.
    #[error("{0}")]
    Forbidden(&'static str),
    /// All streams are in use.
    #[error("too many live views are open: close one, or try again later")]
    Busy,
    /// The thread of the request has ended early.
    #[error("the request was aborted")]
    Aborted,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

impl Failure {
    /// Returns whether the store contains no such run.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Store(error) => matches!(
                **error,
                StoreError::NotFound(_)
                    | StoreError::Ambiguous { .. }
                    | StoreError::Empty(_)
                    | StoreError::ExperimentNotFound(_)
                    | StoreError::AmbiguousExperiment { .. }
                    | StoreError::NoExperiments(_)
            ),
            Self::NoRuns => true,
            _ => false,
        }
    }

    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            _ if self.is_absence() => StatusCode::NOT_FOUND,
            Self::NoPage | Self::NoRuns => StatusCode::NOT_FOUND,
            Self::Request(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Store(_) | Self::Template(_) | Self::Json(_) | Self::Aborted => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}
