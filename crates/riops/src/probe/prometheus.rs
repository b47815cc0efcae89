//! Values of a Prometheus.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

use crate::host::http::Http;

/// The answer of the interface for queries (Prometheus documentation, "HTTP API", instant queries).
#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

/// Returns the value of a query.
///
/// # Errors
/// A text if Prometheus does not answer, refuses the query, or returns anything but one number.
pub(super) fn value(http: &Http, url: &str, query: &str) -> Result<f64, String> {
    let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
    let address = format!("{}/api/v1/query?query={query}", url.trim_end_matches('/'));
    let (_, text) = http.get(&address).map_err(|error| format!("Prometheus: {error}"))?;
    let answer: Answer =
        serde_json::from_str(&text).map_err(|error| format!("no answer of Prometheus: {error}"))?;
    let Data { result_type, result } = answer.data;
    // A pair of time and value.
    let pair = match (result_type.as_str(), result.as_array().map(Vec::as_slice)) {
        ("scalar", Some(_)) => Some(&result),
        ("vector", Some([only])) => only.get("value"),
        ("vector", Some([])) => return Err("Prometheus has no such metric".to_owned()),
        ("vector", Some(several)) => {
            return Err(format!(
                "the query returned {} series, not one: use an aggregation",
                several.len()
            ));
        }
        _ => None,
    };
    let number = pair.and_then(|pair| pair.get(1)?.as_str()?.parse::<f64>().ok());
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| "the query returned no number".to_owned())
}
