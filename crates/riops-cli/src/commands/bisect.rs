//! `riops bisect`: measures commits until the first slow one is found.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::Result;
use riops::experiment::{BisectSearch, Bisected, ConductError, ServerChoice, Variant};
use riops::report::{self, Findings, experiment};
use riops::units::text::json_text;

use super::gate::{builder, write_page};
use crate::args::gate::Bisect;
use crate::experiment::conductor::{conductor, select};
use crate::experiment::gate::GateFile;
use crate::experiment::results::print_findings;
use crate::failure::{FAILED, INTERRUPTED, of_conduct, refuse};
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
    let bisected = conductor.bisect(&search).map_err(of_conduct)?;
    show(options, &bisected, ui)?;
    bisected.ended.map_err(of_conduct)?;
    Ok(ExitCode::from(match bisected.view.found.as_slice() {
        _ if ui.interrupt.requested() => INTERRUPTED,
        [_] => 0,
        _ => FAILED,
    }))
}

/// Prints the result, and what changed with the commit that was found.
fn show(options: &Bisect, bisected: &Bisected, ui: Ui) -> Result<()> {
    let document = report::bisection(&bisected.view);
    let causes = bisected.cause.iter();
    let causes = causes.map(|study| experiment::experiment(&experiment::view(study)));
    let causes: Vec<Findings> = causes.collect();
    match options.both.output.as_str() {
        "json" => crate::ui::print(&json_text(&bisected.view)?)?,
        form => causes
            .iter()
            .chain([&document])
            .try_for_each(|findings| print_findings(findings, form))?,
    }
    write_page(&options.both, "riops bisect", &document, ui)
}
