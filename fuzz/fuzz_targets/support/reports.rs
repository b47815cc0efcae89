//! The reports of one record, in parts: all of them take too long for one input.

use riops::record::Record;
use riops::report::comparison::{self, Group};
use riops::report::export::{CsvRows, ExportFormat, export};
use riops::report::{Extras, FORMS, Scale, html, markdown};

/// Number of the parts.
pub const PARTS: u8 = 3;

/// Writes the record in one part of the reports.
pub fn render(record: &Record, part: u8) {
    match part % PARTS {
        0 => forms(record),
        1 => pages(record),
        _ => {
            exports(record);
            compare(record);
        }
    }
}

fn forms(record: &Record) {
    for form in FORMS.iter().filter(|form| form.fits(&record.plan)) {
        for (width, scale) in [(80, Scale::Linear), (20, Scale::Log)] {
            let extras = Extras::new("here", width).with_histogram(Some((scale, 10)));
            let _ = (form.print(record, &extras), form.errors(record));
            if let Some(stream) = form.stream() {
                let _ = (stream.opening(&record.plan, true), stream.closing(record, &extras));
                for point in record.stages.iter().flat_map(|stage| &stage.session_loop.series) {
                    let _ = stream.interval(point, &record.plan, true);
                }
            }
        }
    }
}

fn pages(record: &Record) {
    let records = std::slice::from_ref(record);
    html(records, None).expect("the template accepts every record");
    let _ = markdown(records, None);
}

fn exports(record: &Record) {
    for format in [
        ExportFormat::Csv(CsvRows::Stages),
        ExportFormat::Csv(CsvRows::Series),
        ExportFormat::Csv(CsvRows::Latencies),
        ExportFormat::OpenMetrics,
    ] {
        let _ = export(std::slice::from_ref(record), format);
    }
}

/// Compares the record with itself as another run.
fn compare(record: &Record) {
    let mut other = record.clone();
    other.id = Default::default();
    let _ = comparison::differences(record, &other);
    let (a, b) = ([record.clone()], [other]);
    let groups = [("a", &a), ("b", &b)].map(|(name, records)| Group { name, records });
    let [a, b] = groups;
    if let Ok(comparison) = comparison::compare(a, b, &Default::default()) {
        let _ = (comparison::text(&comparison, 80), comparison::markdown(&comparison));
        let _ = comparison::view(&comparison);
    }
}
