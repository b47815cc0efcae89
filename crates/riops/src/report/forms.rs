//! All output forms of a record.

use super::compat::{cbc, pgbench, pgio, sysbench, ysql_bench};
use super::form::{Form, FormError};
use super::render::json;
use super::subjects::run;
use crate::plan::Plan;

/// All forms; the first is the default.
pub const FORMS: [&dyn Form; 8] = [
    &run::Text,
    &json::Json,
    &pgio::Pgio,
    &sysbench::Sysbench::V1_0,
    &sysbench::Sysbench::V1_1,
    &ysql_bench::YsqlBench,
    &cbc::Cbc,
    &pgbench::Pgbench,
];

/// Returns the names of the forms for runs with this plan.
#[must_use]
pub fn forms_for(plan: &Plan) -> Vec<&'static str> {
    FORMS.iter().filter(|form| form.fits(plan)).map(|form| form.name()).collect()
}

/// Returns the form of this name for runs with this plan.
///
/// # Errors
/// [`FormError::Unknown`], or [`FormError::Unsupported`] with the names of the supported forms.
pub fn form(name: &str, plan: &Plan) -> Result<&'static dyn Form, FormError> {
    let named = FORMS.into_iter().find(|form| form.name() == name);
    let form = named.ok_or_else(|| FormError::Unknown(name.to_owned()))?;
    if form.fits(plan) {
        return Ok(form);
    }
    Err(FormError::Unsupported {
        form: form.name(),
        workload: plan.work.traits().name.to_owned(),
        fitting: forms_for(plan).join(", "),
    })
}
