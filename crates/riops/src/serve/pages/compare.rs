//! The comparison of stored runs.

use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Response};

use super::super::app::{Place, Shared, layout};
use super::super::failure::Failure;
use super::super::query::Query;
use crate::record::Record;
use crate::report::{comparison_of, html_in, title};

/// Runs of a comparison: a page with more of them is too long to read.
const RUNS_MAX: usize = 20;

/// The comparison of the runs in the query: `?run=…&run=…`.
pub(in crate::serve) async fn compare(State(app): Shared, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(&query.unwrap_or_default());
    let ids: Vec<String> = query.all("run").map(str::to_owned).collect();
    let answer = async {
        if !(2..=RUNS_MAX).contains(&ids.len()) {
            let text = format!("tick 2 to {RUNS_MAX} runs in the list, then select Compare");
            return Err(Failure::Request(text));
        }
        let page = app.stored.with(move |store| {
            let mut records: Vec<Record> =
                ids.iter().map(|id| store.find(id)).collect::<Result<_, _>>()?;
            // The older run is A.
            records.sort_by_key(|record| record.started_at);
            let layout = layout(title(&records), Place::Other);
            let each = records.iter().map(|record| (record.id.to_string(), vec![record.clone()]));
            let comparison = comparison_of(&each.collect::<Vec<_>>());
            Ok(Html(html_in(&layout, &records, comparison.as_ref())?).into_response())
        });
        page.await?.ok_or(Failure::NoRuns)
    };
    app.answer(answer.await)
}
