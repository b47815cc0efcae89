use crate::example_record;
use crate::export::*;
use riops_model::record::Point;

fn csv(rows: CsvRows) -> (Vec<String>, Vec<Vec<String>>) {
    let text = export(&[example_record()], ExportFormat::Csv(rows)).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
    (header, rows.collect())
}

#[test]
fn the_columns_of_stages_are_stable() {
    let (header, rows) = csv(CsvRows::Stages);
    let pairs = header.iter().zip(&rows[0]).map(|(name, cell)| format!("{name}: {cell}"));
    insta::assert_snapshot!(pairs.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_series_has_a_row_per_interval() {
    let record = example_record();
    let (header, rows) = csv(CsvRows::Series);
    assert_eq!(rows.len(), record.stages[0].session_loop.series.len());
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let total: u64 = rows.iter().map(|row| row[at("transactions")].parse::<u64>().unwrap()).sum();
    let series = record.stages[0].session_loop.series.iter();
    assert_eq!(total, series.map(|point| point.transactions).sum::<u64>());
    insta::assert_snapshot!(header.join("\n"));
}

/// Takes minutes if the time grows with the square of the length.
#[test]
fn a_series_of_the_maximum_length_is_exported() {
    let mut record = example_record();
    let series = &mut record.stages[0].session_loop.series;
    let quiet = riops_model::record::Point { errors: 0, late: Some(0), ..series[0].clone() };
    *series = vec![quiet; 100_000];
    record.imported = Some(riops_model::record::ImportRecord {
        format: "pgbench-log".to_owned(),
        files: Vec::new(),
        imported_at: record.started_at,
        start: riops_model::record::StartSource::Results,
        unreported: Vec::new(),
    });
    let text = export(&[record], ExportFormat::Csv(CsvRows::Series)).unwrap();
    assert_eq!(text.lines().count(), 100_001);
}

#[test]
fn buckets_have_all_latencies_and_no_gap_in_their_order() {
    let mut histogram = riops_model::record::Histogram::new().unwrap();
    for us in [1, 50, 50, 51, 1_000_000] {
        histogram.record(riops_model::units::Nanos(us * 1_000));
    }
    let mut record = example_record();
    record.stages[0].session_loop.histogram = Some(histogram.stored().unwrap());
    let text = export(&[record], ExportFormat::Csv(CsvRows::Latencies)).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<(f64, f64, u64, f64)> = reader
        .records()
        .map(|row| {
            let row = row.unwrap();
            let value = |at: usize| row[at].parse::<f64>().unwrap();
            (value(6), value(7), row[8].parse().unwrap(), value(9))
        })
        .collect();
    assert_eq!(rows.iter().map(|row| row.2).collect::<Vec<_>>(), [1, 2, 1, 1]);
    for ((from, to, ..), us) in rows.iter().zip([1.0, 50.0, 51.0, 1e6]) {
        assert!(*from <= us && us < *to, "{us}: {rows:?}");
    }
    assert!(rows.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{rows:?}");
    assert_eq!(rows.last().unwrap().3, 1.0);
}

#[test]
fn the_series_in_openmetrics() {
    let mut record = example_record();
    record.stages[0].started_at = Some("2026-11-21T20:00:02.5Z".parse().unwrap());
    record.stages[0].session_loop.series.truncate(2);
    record.tags.insert("disk type".to_owned(), "\"nvme\"\n".to_owned());
    insta::assert_snapshot!(export(&[record], ExportFormat::OpenMetrics).unwrap());
}

#[test]
fn a_percentile_of_enough_transactions_is_in_every_form() {
    let mut histogram = riops_model::record::Histogram::new().unwrap();
    histogram.record_many(riops_model::units::Nanos(1_000_000), 999_800);
    histogram.record_many(riops_model::units::Nanos(50_000_000), 200);
    let mut record = example_record();
    let session_loop = &mut record.stages[0].session_loop;
    session_loop.service_us = histogram.summary();
    session_loop.histogram = Some(histogram.stored().unwrap());
    session_loop.series.truncate(1);
    session_loop.series[0].transactions = 100_000;
    session_loop.series.push(Point { transactions: 99_999, ..session_loop.series[0].clone() });
    for point in &mut session_loop.series {
        point.set_latencies(|percent| histogram.percentile_us(percent), |_| None);
    }
    let is_short = |point: &Point| point.p9999_us.is_none() && point.p99_us.is_some();
    assert!(
        session_loop.series[0].p9999_us.is_some() && session_loop.series[1..].iter().all(is_short)
    );
    let text = |format| export(std::slice::from_ref(&record), format).unwrap();
    assert!(text(ExportFormat::Json).contains("\"p9999\": 50"));
    assert!(text(ExportFormat::Csv(CsvRows::Stages)).contains(",service_p9999_us,"));
    assert!(text(ExportFormat::Csv(CsvRows::Series)).contains(",service_p9999_us,"));
    let metrics = text(ExportFormat::OpenMetrics);
    assert!(metrics.contains("quantile=\"0.9999\"} 0.05"), "{metrics}");
    let run = crate::run_text(&record, "", 200);
    assert!(run.contains("p99.99 50.0 ms · max 50.0 ms"), "{run}");
    let page = crate::html(std::slice::from_ref(&record), None).unwrap();
    assert!(page.contains(">p99.99<"), "{page}");
    let line = crate::interval_line(&record.stages[0].session_loop.series[0], &record.plan);
    assert!(line.contains("p99 1.00 ms · p99.99 50.0 ms · max 50.0 ms"), "{line}");
    let compared = riops_model::figure::Figure::P9999Us.value(&record, &record.stages[0]);
    assert_eq!(compared.map(f64::round), Some(50_000.0));
}

#[test]
fn one_record_is_an_object_and_several_are_json_lines() {
    let record = example_record();
    let one = export(std::slice::from_ref(&record), ExportFormat::Json).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&one).unwrap(), record);
    let two = export(&[record.clone(), record.clone()], ExportFormat::Json).unwrap();
    let read: Vec<Record> = two.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, [record.clone(), record]);
    assert_eq!(export(&[], ExportFormat::Json).unwrap(), "");
}

#[test]
fn totals_of_any_counts_are_exact() {
    let mut record = example_record();
    let series = &mut record.stages[0].session_loop.series;
    let most = Point { transactions: u64::MAX, ..series[0].clone() };
    *series = vec![most; 3];
    let text = export(&[record], ExportFormat::OpenMetrics).unwrap();
    let total = |line: &str| {
        line.strip_prefix("riops_transactions_total")?.split(' ').nth_back(1)?.parse().ok()
    };
    let totals: Vec<f64> = text.lines().filter_map(total).collect();
    assert_eq!(totals.last(), Some(&(u64::MAX as f64 * 3.0)), "{text}");
}
