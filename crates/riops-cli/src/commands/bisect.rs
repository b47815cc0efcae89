//! `riops bisect`: measures commits until the first slow one is found.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::Result;
use riops::experiment::{BisectSearch, Bisected, ConductError, Variant};
use riops::report::{self, Rendered, experiment, findings_in};
use riops::study::ServerChoice;
use riops::units::text::json_text;

use super::gate::builder;
use crate::args::gate::Bisect;
use crate::experiment::conductor::{conductor, select};
use crate::experiment::gate::GateFile;
use crate::experiment::results;
use crate::failure::{FAILED, INTERRUPTED, conduct_error, refuse};
use crate::output::Outputs;
use crate::ui::Ui;

/// Conducts the bisection, and continues it if it was interrupted: finished measurements are found in the store.
pub(super) fn run(options: &Bisect, ui: Ui) -> Result<ExitCode> {
    let gate = GateFile::read(&options.file, options.both.trust)?;
    let Some(builder) = builder(&options.both, &gate)? else {
        return refuse("a bisection needs a build of a commit: build = \"…\" or --build");
    };
    let databases = RefCell::default();
    let select = |choice: &ServerChoice| select(choice, &databases.borrow(), ui);
    let conductor = conductor(&options.both.store, None, &select, ui)?;
    let tests = |variants: &[Variant; 2], error: f64| {
        let tests = gate.tests(variants, error, &ui.given().target, &databases);
        tests.map_err(|error| ConductError::Refused(format!("{error:#}")))
    };
    let search = BisectSearch {
        builder: &builder,
        good: &options.good,
        bad: &options.bad,
        rules: gate.rules(options.both.build.time_limit_s())?,
        tests: &tests,
    };
    let outputs = Outputs::open_answer(&options.both.answer, ui)?;
    let bisected = conductor.bisect(&search).map_err(conduct_error)?;
    show(&bisected, outputs)?;
    bisected.ended.map_err(conduct_error)?;
    Ok(ExitCode::from(match bisected.view.found.as_slice() {
        _ if ui.interrupt.is_requested() => INTERRUPTED,
        [_] => 0,
        _ => FAILED,
    }))
}

/// Prints the result, and what changed with the commit that was found.
fn show(bisected: &Bisected, outputs: Outputs) -> Result<()> {
    let document = report::bisection(&bisected.view);
    let store = outputs.store_options();
    outputs.emit(|form, lines| {
        if form == "json" {
            return Ok(Rendered::Data(json_text(&bisected.view)?));
        }
        let mut rendered = findings_in(form, &document, lines)?;
        if let Rendered::Text(text) | Rendered::Data(text) = &mut rendered {
            for study in bisected.cause.iter().rev() {
                let cause = results::rendered(&experiment::view(study), form, lines, store)?;
                text.insert_str(0, &cause.into_text());
            }
        }
        Ok(rendered)
    })
}
