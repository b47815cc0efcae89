//! The forms in which a record is printed: a list, one file each.

mod cbc;
mod form;
mod json;
mod pgio;
mod sysbench;
mod text;

use crate::plan::Plan;

pub use form::{Extras, Form, FormError};
pub use text::run_text;

/// All forms; the first is the default.
pub const FORMS: [&dyn Form; 5] =
    [&text::Text, &json::Json, &pgio::Pgio, &sysbench::Sysbench, &cbc::Cbc];

/// The form of this name, for such a run.
///
/// # Errors
/// [`FormError::Unknown`], and [`FormError::Unfit`] with the names of those that fit.
pub fn form(name: &str, plan: &Plan) -> Result<&'static dyn Form, FormError> {
    let named = FORMS.into_iter().find(|form| form.name() == name);
    let form = named.ok_or_else(|| FormError::Unknown(name.to_owned()))?;
    if form.fits(plan) {
        return Ok(form);
    }
    let fitting: Vec<_> =
        FORMS.iter().filter(|form| form.fits(plan)).map(|form| form.name()).collect();
    Err(FormError::Unfit {
        form: form.name(),
        workload: plan.work.spec().name().to_owned(),
        fitting: fitting.join(", "),
    })
}
