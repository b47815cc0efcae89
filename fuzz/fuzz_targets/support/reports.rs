//! The reports of one record, in parts: all of them take too long for one input.

use riops::experiment::comparison::{Group, compare, differences};
use riops::record::Record;
use riops::report::export::{CsvRows, ExportFormat, export};
use riops::report::{
    Delivery, Extras, FORMS, Layout, Scale, comparison, findings_html, findings_markdown, findings_text, html, markdown,
};

/// Number of the parts.
pub const PARTS: u8 = 3;

/// Writes the record in one part of the reports.
pub fn render(record: &Record, part: u8) {
    match part % PARTS {
        0 => forms(record),
        1 => pages(record),
        _ => {
            exports(record);
            compare_with_itself(record);
        }
    }
}

fn forms(record: &Record) {
    for form in FORMS.iter().filter(|form| (form.fits)(&record.plan)) {
        for (width, scale) in [(80, Scale::Linear), (20, Scale::Log)] {
            let extras = Extras::new("here", width).with_histogram(Some((scale, 10)));
            let _ = ((form.print)(record, &extras), (form.errors)(record));
            if let Some(stream) = form.stream {
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
fn compare_with_itself(record: &Record) {
    let mut other = record.clone();
    other.id = Default::default();
    let _ = differences(record, &other);
    let (a, b) = ([record.clone()], [other]);
    let groups = [("a", &a), ("b", &b)].map(|(name, records)| Group { name, records });
    let [a, b] = groups;
    if let Ok(differences) = compare(a, b, &Default::default()) {
        let findings = comparison(&differences);
        let _ = (findings_text(&findings, 80), findings_markdown(&findings));
        findings_html(&findings, &Layout::new("fuzz", Delivery::Inline)).expect("the template accepts every comparison");
    }
}
