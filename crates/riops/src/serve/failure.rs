//! Requests that cannot be answered.

use std::fmt::Display;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::store::StoreError;

/// The answer to a request. The layers of the routes give failures a form.
pub(super) type Answer = Result<Response, Failure>;

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

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl Failure {
    /// A request without a valid meaning, for this reason.
    pub(super) fn request(error: impl Display) -> Self {
        Self::Request(error.to_string())
    }

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
            Self::NoPage => StatusCode::NOT_FOUND,
            Self::Request(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
