//! Query strings and forms: pairs of names and values, in order, with repeated names. The query of the list of runs has its
//! filters, its order and its page.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;

use super::failure::Failure;
use crate::store::RunFilter;
use crate::summary::{RunSummary, Sort};

/// Characters that need no encoding in a query.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');
/// Pairs that are read; the others are ignored.
const PAIRS_MAX: usize = 200;

/// The pairs of a query or a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `name=value&…`, percent-encoded. Invalid UTF-8 is replaced.
    pub(super) fn parse(text: &str) -> Self {
        let decoded = |part: &str| {
            let part = part.replace('+', " ");
            percent_decode_str(&part).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(PAIRS_MAX);
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// Returns the first value with this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns the first value with this name that is not empty: an empty field of a form is not set.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.all(name).map(str::trim).find(|value| !value.is_empty())
    }

    /// Returns all values with this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the pairs whose name starts with this text.
    pub(super) fn named(&self, start: &str) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter().filter(move |(name, _)| name.starts_with(start));
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the query without this name.
    pub(super) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(key, _)| key != name).cloned().collect())
    }

    /// Returns the query with one value for this name.
    pub(super) fn with(&self, name: &str, value: &str) -> Self {
        let mut query = self.without(name);
        query.0.push((name.to_owned(), value.to_owned()));
        query
    }

    /// Returns a path with this query. Two slashes at the start would name another server.
    pub(super) fn after(&self, path: &str) -> String {
        let path = format!("/{}", path.trim_start_matches(['/', '\\']));
        let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        if pairs.is_empty() { path } else { format!("{path}?{}", pairs.join("&")) }
    }
}

/// Runs of a page.
const PAGE_RUNS: u32 = 50;
/// Last page: the store has no more runs than a person can look at.
const PAGE_MAX: u32 = 10_000;

/// The filters: dates are in `since` and `until`, and `valid` is `yes` or `no`.
const NAMES: [&str; 6] = ["workload", "label", "tag", "valid", "since", "until"];

/// Filters, order and page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Filters {
    /// Filters of [`NAMES`] that are set.
    #[serde(flatten)]
    given: BTreeMap<&'static str, String>,
    /// Column, with `:asc` or `:desc`.
    pub(super) sort: String,
    pub(super) page: u32,
    /// The filter of the store, which selects the runs of the page and one more.
    #[serde(skip)]
    pub(super) filter: RunFilter,
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
        let filter = RunFilter {
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
        Ok(Self { given, sort: format!("{}:{direction}", sort.column()), page, filter })
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repeated_empty_and_encoded_values_are_read() {
        let query = Query::parse("run=a&run=b+c&label=%C3%A4%26&empty=&flag&&x=%ff");
        assert_eq!(query.all("run").collect::<Vec<_>>(), ["a", "b c"]);
        assert_eq!(
            (query.get("label"), query.get("flag"), query.given("empty")),
            (Some("ä&"), Some(""), None)
        );
        assert_eq!(query.get("x"), Some("\u{fffd}"));
    }

    #[test]
    fn a_path_stays_on_this_server() {
        let query = Query::default().with("a", "b c");
        assert_eq!(query.after("//evil.example/"), "/evil.example/?a=b%20c");
        assert_eq!(query.after("/\\evil"), "/evil?a=b%20c");
    }

    proptest! {
        #[test]
        fn any_pair_is_read_as_it_was_written(name in ".+", value in any::<String>()) {
            let query = Query::default().with(&name, &value);
            let text = query.after("/");
            prop_assert_eq!(Query::parse(text.strip_prefix("/?").unwrap()), query);
        }
    }

    fn filters(query: &str) -> Result<Filters, Failure> {
        Filters::parse(&Query::parse(query))
    }

    #[test]
    fn a_query_selects_and_orders_runs() {
        let text = "workload=rows&label=nightly+1&tag=a=b,c&valid=no&since=2026-01-01&until=2026-01-31&sort=p99:asc&page=3";
        let parsed = filters(text).unwrap();
        let filter = &parsed.filter;
        assert_eq!(filter.workload.as_deref(), Some("rows"));
        assert_eq!(filter.label.as_deref(), Some("nightly 1"));
        assert_eq!(filter.tags, [("a".to_owned(), Some("b".to_owned())), ("c".to_owned(), None)]);
        assert_eq!(filter.valid, Some(false));
        assert_eq!(filter.since.unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(filter.until.unwrap().to_string(), "2026-02-01T00:00:00Z");
        assert_eq!((parsed.sort.as_str(), parsed.first()), ("p99_us:asc", 101));
        assert!(parsed.is_filtered());
    }

    #[test]
    fn empty_fields_of_the_form_are_no_filters() {
        let parsed = filters("workload=&label=&tag=&valid=&since=&until=&sort=").unwrap();
        assert_eq!(parsed, filters("").unwrap());
        assert!(!parsed.is_filtered());
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
        assert_eq!((one.filter.offset, one.filter.limit), (50, Some(51)));
        assert_eq!(Filters::of_page(runs(51)), (runs(50), true));
        assert_eq!(Filters::of_page(runs(50)), (runs(50), false));
        assert_eq!(Filters::of_page(runs(10)), (runs(10), false));
    }
}
