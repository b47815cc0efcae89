//! The key/value lines of the Complete Block Check collector.

use std::fmt::Write as _;

use crate::form::{Form, Rendered};
use riops_model::plan::{CbcDataset, CbcRun};
use riops_model::record::Record;
use riops_model::units::text::one_line;

/// Only the collector's lines.
pub(crate) const FORM: Form = Form {
    has_verdict: false,
    has_histogram: false,
    ..Form::new(
        "cbc",
        |plan| plan.work.get::<CbcRun>().is_some(),
        |record, _| Ok(Rendered::Data(cbc_text(record))),
    )
};

/// Returns the lines of the benchmark's collector: key, tab, value. Times are in milliseconds, sizes in
/// bytes, rates in MB per second as reported by VACUUM. A step that did not end has no line.
fn cbc_text(record: &Record) -> String {
    let mut text = String::new();
    let address = &record.target.address;
    let host = if record.client.shares_machine_with_server {
        // As `hostname -s`.
        let host = record.client.machine.host.as_str();
        host.split_once('.').map_or(host, |(name, _)| name)
    } else {
        address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host)
    };
    let _ = writeln!(text, "SERVER\t{}", one_line(host));
    for stage in record.stages.iter().filter(|stage| stage.statement.is_some()) {
        let _ = writeln!(text, "{}\t{:.3}", one_line(&stage.name), stage.seconds * 1e3);
    }
    if let Some(dataset) = record.dataset::<CbcDataset>() {
        for (key, bytes) in [("SIZE_T", dataset.table_bytes), ("SIZE_I", dataset.index_bytes)] {
            if let Some(bytes) = bytes {
                let _ = writeln!(text, "{key}\t{bytes}");
            }
        }
    }
    if let Some(rates) = record.stages.iter().find_map(|stage| stage.statement.as_ref()?.vacuum) {
        let _ = writeln!(
            text,
            "READ_RATE\t{:.3}\nWRITE_RATE\t{:.3}",
            rates.read_mib_s, rates.write_mib_s
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_cbc;

    #[test]
    fn lines_have_a_key_a_tab_and_a_value() {
        insta::assert_snapshot!(cbc_text(&example_cbc()));
    }
}
