//! The filters, the order and the page of the list of runs, as the query of its address.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use serde::Serialize;

use super::failure::Failure;
use super::query::Query;
use crate::store::{RunFilter, RunSummary, Sort};

/// Runs of a page.
const PAGE_RUNS: u32 = 50;
/// Last page: the store has no more runs than a person can look at.
const PAGE_MAX: u32 = 10_000;

/// The filters: dates are in `since` and `until`, and `valid` is `yes` or `no`.
const NAMES: [&str; 6] = ["workload", "label", "tag", "valid", "since", "until"];

/// What the list shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Filters {
    /// Those of [`NAMES`] that are set.
    #[serde(flatten)]
    given: BTreeMap<&'static str, String>,
    /// Column, with `:asc` or `:desc`.
    pub(super) sort: String,
    pub(super) page: u32,
    #[serde(skip)]
    parsed: RunFilter,
}

fn wrong(name: &str, value: &str, expected: &str) -> Failure {
    Failure::Request(format!("{name} \"{value}\" is not valid: expected {expected}"))
}

impl Filters {
    /// Reads the query of the list. Unknown names are ignored.
    pub(super) fn parse(query: &Query) -> Result<Self, Failure> {
        let given =
            NAMES.into_iter().filter_map(|name| Some((name, query.given(name)?.to_owned())));
        let given: BTreeMap<_, _> = given.collect();
        let tags = query.given("tag").unwrap_or_default().split(',');
        let tags = tags.map(|tag| match tag.split_once('=') {
            Some((key, value)) => (key.trim().to_owned(), Some(value.trim().to_owned())),
            None => (tag.trim().to_owned(), None),
        });
        let valid = match query.given("valid") {
            None => None,
            Some("yes") => Some(true),
            Some("no") => Some(false),
            Some(other) => return Err(wrong("valid", other, "yes or no")),
        };
        let page = match query.given("page") {
            None => 1,
            Some(text) => match text.parse() {
                Ok(page) if (1..=PAGE_MAX).contains(&page) => page,
                _ => return Err(wrong("page", text, "a number from 1")),
            },
        };
        let sort = query.given("sort").map(Sort::parse).transpose();
        let sort = sort.map_err(Failure::request)?.unwrap_or_default();
        let direction = if sort.is_descending() { "desc" } else { "asc" };
        let parsed = RunFilter {
            workload: given.get("workload").cloned(),
            label: given.get("label").cloned(),
            tags: tags.filter(|(key, _)| !key.is_empty()).collect(),
            since: query.given("since").map(|text| time("since", text, 0)).transpose()?,
            // The last day is part of the period.
            until: query.given("until").map(|text| time("until", text, 1)).transpose()?,
            valid,
            sort,
            offset: (page - 1) * PAGE_RUNS,
            limit: Some(PAGE_RUNS + 1),
            ..RunFilter::default()
        };
        Ok(Self { given, sort: format!("{}:{direction}", sort.column()), page, parsed })
    }

    /// Returns the filter of the store, which selects the runs of the page and one more.
    pub(super) fn filter(&self) -> RunFilter {
        self.parsed.clone()
    }

    /// Returns the runs of the page, and whether others follow.
    pub(super) fn of_page(runs: Vec<RunSummary>) -> (Vec<RunSummary>, bool) {
        let has_next = runs.len() > PAGE_RUNS as usize;
        (runs.into_iter().take(PAGE_RUNS as usize).collect(), has_next)
    }

    /// Returns the position of the first run of the page, from 1.
    pub(super) fn first(&self) -> usize {
        ((self.page - 1) * PAGE_RUNS) as usize + 1
    }

    /// Returns the order.
    pub(super) fn order(&self) -> Sort {
        self.parsed.sort
    }

    /// Returns whether any filter is set.
    pub(super) fn is_filtered(&self) -> bool {
        !self.given.is_empty()
    }
}

/// Reads a date, of which the day after `days` counts, or a time.
fn time(name: &str, text: &str, days: i64) -> Result<Timestamp, Failure> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let start = text
        .parse::<Date>()
        .ok()
        .and_then(|date| date.checked_add(days.days()).ok()?.to_zoned(TimeZone::UTC).ok());
    start
        .map(|start| start.timestamp())
        .ok_or_else(|| wrong(name, text, "a date such as 2026-11-23"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(query: &str) -> Result<Filters, Failure> {
        Filters::parse(&Query::parse(query))
    }

    #[test]
    fn a_query_selects_and_orders_runs() {
        let text = "workload=rows&label=nightly+1&tag=a=b,c&valid=no&since=2026-01-01&until=2026-01-31&sort=p99:asc&page=3";
        let found = filters(text).unwrap();
        let filter = found.filter();
        assert_eq!(filter.workload.as_deref(), Some("rows"));
        assert_eq!(filter.label.as_deref(), Some("nightly 1"));
        assert_eq!(filter.tags, [("a".to_owned(), Some("b".to_owned())), ("c".to_owned(), None)]);
        assert_eq!(filter.valid, Some(false));
        assert_eq!(filter.since.unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(filter.until.unwrap().to_string(), "2026-02-01T00:00:00Z");
        assert_eq!((found.sort.as_str(), found.first()), ("p99_us:asc", 101));
        assert!(found.is_filtered());
    }

    #[test]
    fn empty_fields_of_the_form_are_no_filters() {
        let found = filters("workload=&label=&tag=&valid=&since=&until=&sort=").unwrap();
        assert_eq!(found, filters("").unwrap());
        assert!(!found.is_filtered());
    }

    #[test]
    fn values_without_a_meaning_are_refused() {
        for query in [
            "valid=maybe",
            "page=0",
            "page=x",
            "since=yesterday",
            "sort=id;drop",
            "page=99999999999",
        ] {
            let error = filters(query).unwrap_err();
            assert_eq!(error.status().as_u16(), 400, "{query}");
        }
    }

    #[test]
    fn a_page_is_a_part_of_the_runs() {
        let runs = |count: usize| vec![RunSummary::default(); count];
        let one = filters("page=2").unwrap();
        assert_eq!((one.filter().offset, one.filter().limit), (50, Some(51)));
        assert_eq!(Filters::of_page(runs(51)), (runs(50), true));
        assert_eq!(Filters::of_page(runs(50)), (runs(50), false));
        assert_eq!(Filters::of_page(runs(10)), (runs(10), false));
    }
}
