//! `riops compare`.

use std::process::ExitCode;

use anyhow::Result;
use riops::experiment::comparison::{self, Comparison, Group};
use riops::record::Record;
use riops::report;
use riops::stats::Settings;
use riops::store::Store;
use riops::units::text::json_text;

use crate::args::{Compare, ComparisonOutput, FailOnVerdict};
use crate::failure::{BREACHED, refuse};
use crate::stored;
use crate::ui::Ui;

/// Compares two groups of stored runs.
pub(crate) fn run(options: &Compare, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    let comparison = compare(options, &store)?;
    let document = || report::comparison(&comparison);
    match options.output {
        ComparisonOutput::Text => {
            let text = report::findings_text(&document(), crate::ui::output_lines());
            crate::ui::print_colored(&ui.given().complete(&text))
        }
        ComparisonOutput::Json => crate::ui::print(&json_text(&comparison)?),
        ComparisonOutput::Markdown => crate::ui::print(&report::findings_markdown(&document())),
    }?;
    let fails = options.fail_on.iter().any(|what| match what {
        FailOnVerdict::Slower => comparison.is_slower(),
        FailOnVerdict::Inconclusive => comparison.is_inconclusive(),
    });
    if !fails && options.fail_on == [FailOnVerdict::Slower] && comparison.is_inconclusive() {
        ui.notice(
            "exit code 0 although there is no verdict; --fail-on slower,inconclusive exits with 99",
        );
    }
    Ok(if fails { ExitCode::from(BREACHED) } else { ExitCode::SUCCESS })
}

fn compare(options: &Compare, store: &Store) -> Result<Comparison> {
    let select = |text: &str| -> Result<Vec<Record>> {
        let mut records = store.select(text)?;
        if let Some(workload) = &options.workload {
            records.retain(|record| record.workload == *workload);
            if records.is_empty() {
                return refuse(format!("\"{text}\" has no run of the workload \"{workload}\""));
            }
        }
        Ok(records)
    };
    let (a, b) = (select(&options.a)?, select(&options.b)?);
    let settings = Settings { effect: options.effect.0, ..Settings::default() };
    let group = |name, records| Group { name, records };
    let (a, b) = (group(&options.a, a.as_slice()), group(&options.b, b.as_slice()));
    Ok(comparison::compare(a, b, &settings)?)
}
