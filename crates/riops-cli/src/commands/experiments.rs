//! `riops experiments`: lists, shows and removes stored experiments.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use riops::experiment::{Servers, stored_definition, stored_runs, stored_study};
use riops::store::{self, ExperimentState, StoreError};
use riops::study::ServerChoice;
use riops::units::text::one_line;

use super::editing::{self, Subject};
use crate::args::sweep::{Experiments, RemoveExperiment};
use crate::experiment::conductor::{
    conductor, given_databases, list, replace_database, select, trust_or_refuse,
};
use crate::experiment::results::show;
use crate::failure::conduct_error;
use crate::output::Outputs;
use crate::stored;
use crate::terminal::confirm;
use crate::ui::Ui;

pub(super) fn run(action: &Experiments, ui: Ui) -> Result<ExitCode> {
    match action {
        Experiments::List { outputs, store } => list(store, outputs, ui),
        Experiments::Show { experiment, outputs, store } => {
            let store = stored::open_existing(store, ui)?;
            let study = stored_study(&store, experiment)?;
            if study.finished.is_empty() {
                ui.notice("no run has ended yet");
            }
            show(&study, Outputs::open(outputs, Some("text"), ui)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Experiments::Note(options) => editing::note(Subject::Experiment, options, ui),
        Experiments::Rm(options) => remove(options, ui),
    }
}

/// Removes an experiment after a confirmation, with the database that it may have left.
fn remove(options: &RemoveExperiment, ui: Ui) -> Result<ExitCode> {
    let location = stored::location(&options.store, ui)?;
    let store = store::open_existing(&location, ui.interrupt)?
        .ok_or_else(|| StoreError::NoExperiments(location.to_string()))?;
    let stored = store.experiment(&options.experiment)?;
    let mut experiment = stored_definition(&stored)?;
    let Some(lock) = store.lock_experiment(&stored.id)? else {
        return Err(anyhow!("another riops process conducts the experiment {}", stored.id));
    };
    let runs = stored_runs(&experiment, &store)?;
    let with = match (options.runs, runs.len()) {
        (_, 0) => String::new(),
        (true, count) => format!(" and its runs ({count})"),
        (false, count) => format!("; its runs ({count}) remain"),
    };
    let name = one_line(&experiment.name).into_owned();
    let question = format!("Remove the experiment {} ({name}){with}?", stored.id);
    if !confirm(&question, options.yes, ui)? {
        return Ok(ExitCode::SUCCESS);
    }
    if experiment.leaves_databases() && stored.state.finished_at.is_none() {
        trust_or_refuse(&mut experiment, options.trust)?;
        replace_database(&mut experiment, &options.target)?;
        let databases = given_databases(&options.target);
        let select = |choice: &ServerChoice| select(choice, &databases, ui);
        let conductor = conductor(&options.store, None, &select, ui)?;
        let opened = store::open(&location, ui.interrupt)?;
        let mut servers = Servers::new(opened, None, ExperimentState::default(), &conductor);
        // Without the experiment, nothing would find them.
        servers.drop_databases(&experiment, true).map_err(conduct_error)?;
        servers.close(&experiment, false);
    }
    if options.runs {
        for run in &runs {
            store.remove(&run.id.to_string())?;
        }
    }
    store.remove_experiment(&stored.id)?;
    drop(lock);
    crate::ui::print_done(&format!("removed {} ({name}){with}\n", stored.id))
}
