//! The values of the queries of the user.

use crate::document::Document;
use riops_model::record::StageRecord;
use riops_model::units::format::{number_of, rate};

/// Mean, smallest and largest value of each query, and its errors.
pub(crate) fn queries(document: &mut Document, stage: &StageRecord) {
    for series in &stage.query_series {
        let mut parts = Vec::new();
        if let (Some(mean), Some(max)) = (series.mean(), series.max()) {
            let min = series.points.iter().map(|point| point.value).fold(max, f64::min);
            parts.push(format!("mean {} · min {} · max {}", text(mean), text(min), text(max)));
        }
        if series.failures > 0 {
            let error = series.error.as_deref().unwrap_or_default();
            parts.push(format!("{}: {error}", number_of(series.failures, "failure")));
        }
        document.line("probe", format!("{}: {} ({})", series.name, parts.join("; "), series.sql));
    }
}

fn text(value: f64) -> String {
    if value < 0.0 { format!("-{}", rate(-value)) } else { rate(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::record::{QueryPoint, QuerySeries};

    #[test]
    fn values_and_errors_of_a_query_are_shown_with_its_statement() {
        let point = |t_s, value| QueryPoint { t_s, value };
        let series = QuerySeries {
            name: "lag".to_owned(),
            sql: "select lag()".to_owned(),
            points: vec![point(0.0, -2.0), point(1.0, 5.0), point(2.0, 9.0)],
            failures: 1,
            error: Some("timed out".to_owned()),
        };
        assert_eq!((series.at(1.5), series.at(-1.0)), (Some(5.0), None));
        let stage = StageRecord { query_series: vec![series], ..StageRecord::default() };
        let facts = crate::document::facts(|document| queries(document, &stage));
        assert_eq!(
            facts[0].texts,
            ["lag: mean 4.00 · min -2.00 · max 9.00; 1 failure: timed out (select lag())"]
        );
    }
}
