//! All output forms of a record.

use super::compat::{cbc, pgbench, pgio, sysbench, ysql_bench};
use super::form::{Form, FormError};
use super::subjects::run;
use crate::plan::Plan;
use crate::units::text::json_text;

/// All forms; the first is the default.
pub static FORMS: [Form; 8] = [
    Form::new("text", |_| true, |record, extras| Ok(run::printed(record, extras))),
    Form {
        has_histogram: false,
        ..Form::new("json", |_| true, |record, _| Ok(json_text(record)?))
    },
    pgio::FORM,
    sysbench::V1_0,
    sysbench::V1_1,
    ysql_bench::FORM,
    cbc::FORM,
    pgbench::FORM,
];

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
