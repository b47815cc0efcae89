//! All output forms: of a record, and of the findings of several runs.

use std::slice::from_ref;

use super::answer::findings_text;
use super::compat::{cbc, pgbench, pgio, sysbench, ysql_bench};
use super::document::{Findings, Lines};
use super::export::{CsvRows, ExportFormat, export};
use super::form::{Form, FormError, Print, Rendered};
use super::render::html::{Delivery, Layout, findings_html};
use super::render::markdown::findings_markdown;
use super::subjects::run::{self, page};
use riops_model::plan::Plan;
use riops_model::record::Record;
use riops_model::units::text::json_text;

/// All forms of a record; the first is the default.
pub static FORMS: [Form; 13] = [
    Form::new("text", |_| true, |record, extras| Ok(Rendered::Text(run::printed(record, extras)))),
    common_form("json", |record, _| Ok(Rendered::Data(json_text(record)?))),
    common_form("csv", |record, _| exported(record, ExportFormat::Csv(CsvRows::Stages))),
    common_form("markdown", |record, _| Ok(Rendered::Data(page::markdown(from_ref(record), None)))),
    common_form("html", |record, _| Ok(Rendered::Page(page::html(from_ref(record), None)?))),
    common_form("png", |record, _| Ok(Rendered::Images(page::images(record)?))),
    common_form("openmetrics", |record, _| exported(record, ExportFormat::OpenMetrics)),
    pgio::FORM,
    sysbench::V1_0,
    sysbench::V1_1,
    ysql_bench::FORM,
    cbc::FORM,
    pgbench::FORM,
];

/// A form of every record, without the histogram that was requested.
const fn common_form(name: &'static str, print: Print) -> Form {
    Form { has_histogram: false, ..Form::new(name, |_| true, print) }
}

fn exported(record: &Record, format: ExportFormat) -> Result<Rendered, FormError> {
    Ok(Rendered::Data(export(from_ref(record), format)?))
}

/// Returns the names of the forms for runs with this plan.
pub fn forms_for(plan: &Plan) -> Vec<&'static str> {
    FORMS.iter().filter(|form| (form.fits)(plan)).map(|form| form.name).collect()
}

/// Returns the form of this name for runs with this plan.
///
/// # Errors
/// [`FormError::Unknown`], or [`FormError::Unsupported`] with the names of the supported forms.
pub fn form(name: &str, plan: &Plan) -> Result<&'static Form, FormError> {
    let named = FORMS.iter().find(|form| form.name == name);
    let form = named.ok_or_else(|| FormError::Unknown(name.to_owned()))?;
    if (form.fits)(plan) {
        return Ok(form);
    }
    Err(FormError::Unsupported {
        form: form.name,
        workload: plan.work.traits().name.to_owned(),
        fitting: forms_for(plan).join(", "),
    })
}

/// Returns findings in the form of this name: `text`, `markdown` or `html`.
///
/// # Errors
/// [`FormError::Unknown`], or the failure to write the page.
pub fn findings_in(name: &str, findings: &Findings, lines: Lines) -> Result<Rendered, FormError> {
    match name {
        "text" => Ok(Rendered::Text(findings_text(findings, lines))),
        "markdown" => Ok(Rendered::Data(findings_markdown(findings))),
        "html" => {
            let layout = Layout::new(findings.title.as_str(), Delivery::Inline);
            Ok(Rendered::Page(findings_html(findings, &layout)?))
        }
        _ => Err(FormError::Unknown(name.to_owned())),
    }
}
