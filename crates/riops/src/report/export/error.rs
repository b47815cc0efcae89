//! Why an export failed.

/// Records that cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A value cannot be encoded as JSON.
    #[error("cannot write run {id} as JSON: {source}")]
    Json {
        /// Id of the run.
        id: String,
        /// Reason.
        source: serde_json::Error,
    },
    /// A row cannot be encoded as CSV.
    #[error("cannot write CSV: {0}")]
    Csv(String),
    /// A histogram cannot be decoded.
    #[error("cannot export the latencies of run {id}, stage \"{stage}\": {source}")]
    Histogram {
        /// Id of the run.
        id: String,
        /// Name of the stage.
        stage: String,
        /// Reason.
        source: crate::record::HistogramError,
    },
}
