//! The style and the scripts of the pages: a fixed list that is part of the binary.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::OnceLock;

use super::token::derived;
use crate::report::{ASSETS, Asset};

/// The files that only the dashboard needs.
const OWN: [Asset; 2] = [
    Asset {
        name: "serve.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("../../assets/serve/serve.css"),
    },
    Asset {
        name: "serve.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("../../assets/serve/serve.js"),
    },
];

/// All files with their tags.
fn assets() -> &'static [(Asset, String)] {
    static TAGGED: OnceLock<Vec<(Asset, String)>> = OnceLock::new();
    let tagged = |asset: Asset| (asset, format!("\"{}\"", derived(asset.text, "asset")));
    TAGGED.get_or_init(|| ASSETS.into_iter().chain(OWN).map(tagged).collect())
}

/// Returns a file. A browser asks each time whether it has changed, as it does with another version of riops.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some((asset, tag)) = assets().iter().find(|(asset, _)| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "no such file\n").into_response();
    };
    let own = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|found| found == tag.as_str());
    if is_known {
        return (StatusCode::NOT_MODIFIED, own).into_response();
    }
    (own, asset.text).into_response()
}
