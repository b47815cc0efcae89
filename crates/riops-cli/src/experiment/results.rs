//! Prints and writes the results of an experiment.

use anyhow::Result;
use riops::report::{Lines, Rendered, experiment, findings_in};
use riops::study::evaluation::StudyView;
use riops::study::{End, Goal, Study};
use riops::units::text::json_text;

use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID};
use crate::output::Outputs;

/// Prints and writes the results. Without any, there is no text.
pub(crate) fn show(study: &Study, outputs: Outputs) -> Result<()> {
    let view = experiment::view(study);
    let store = outputs.store_options();
    outputs.emit(|form, lines| match form {
        "text" if study.finished.is_empty() => Ok(Rendered::Text(String::new())),
        form => rendered(&view, form, lines, store),
    })
}

/// The results in a form.
pub(crate) fn rendered(
    view: &StudyView,
    form: &str,
    lines: Lines,
    store_options: &str,
) -> Result<Rendered> {
    Ok(match form {
        "json" => Rendered::Data(json_text(view)?),
        "csv" => Rendered::Data(experiment::csv(view)?),
        "png" => Rendered::Images(experiment::png(view)?),
        form => {
            let findings = experiment::experiment(view).with_store_options(store_options);
            findings_in(form, &findings, lines)?
        }
    })
}

/// The exit code of an experiment.
pub(crate) fn exit_code(study: &Study, end: End) -> u8 {
    let records = || study.finished.iter().filter_map(|finished| finished.result.as_ref().ok());
    let is_search = matches!(study.experiment.goal, Goal::Saturation(_));
    if end == End::Interrupted {
        INTERRUPTED
    } else if is_search && records().any(|record| record.verdict.valid) {
        // A search tries loads that fail.
        0
    } else if study.finished.iter().any(|finished| finished.result.is_err()) {
        FAILED
    } else if records().any(|record| !record.verdict.valid) {
        NOT_VALID
    } else if records().any(|record| record.thresholds.iter().any(|threshold| !threshold.held)) {
        BREACHED
    } else {
        0
    }
}
