//! `riops sweep`.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::args::Sweep;
use crate::args::sweep::{REPEATS, SINGLE_RUN_ONLY};
use crate::experiment::conductor::Conductor;
use crate::experiment::draft::Draft;
use crate::experiment::file;
use crate::experiment::results::Results;
use crate::experiment::words::replaced;
use crate::failure::refuse;
use crate::ui::Ui;

/// Conducts the experiment of the options or of a file, continues one, or lists them.
pub(crate) fn run(command: &Sweep, cell_words: &[OsString], ui: Ui) -> Result<ExitCode> {
    if let Some(workload) = &command.workload {
        require_no_single_run_option(cell_words)?;
        let (experiment, run) = workload.options();
        let name =
            cell_words.iter().skip(2).take_while(|word| !word.as_encoded_bytes().starts_with(b"-"));
        let name: Vec<_> = name.map(|word| word.to_string_lossy()).collect();
        let keep = run.options().keep;
        let mut draft = Draft::new(format!("sweep {}", name.join(" ")), name.join(" "));
        draft.words = cell_words.to_vec();
        draft.repeats = keep.repeat.repeat.unwrap_or(REPEATS);
        draft.apply(experiment)?;
        let results = Results { form: &keep.output.output, options: &experiment.results };
        let (store_options, fleet) = (&keep.store, &keep.fleet);
        return Conductor { store_options, fleet, results, ui }.start(draft);
    }
    let results = Results { form: &command.own.output, options: &command.experiment.results };
    let (store_options, fleet) = (&command.own.store, &command.own.fleet);
    let conductor = Conductor { store_options, fleet, results, ui };
    if command.list {
        return conductor.list();
    }
    match (&command.file, &command.resume.resume) {
        (Some(_), Some(_)) => refuse("--resume continues a stored experiment; omit the file"),
        (None, Some(_)) => {
            let time_limit = command.experiment.conditions.time_limit;
            conductor.resume(&command.resume, command.trust, &command.target, time_limit)
        }
        (Some(path), None) => {
            let mut draft = file::read(path, &command.own.set, command.trust)?;
            draft.words = replaced(draft.words, &ui.given().target);
            draft.repeats = command.own.repeat.unwrap_or(draft.repeats);
            draft.seed = command.own.seed.or(draft.seed);
            draft.apply(&command.experiment)?;
            conductor.start(draft)
        }
        (None, None) => {
            let text = "nothing to measure: specify a workload, an experiment file or --resume (see riops sweep --help)";
            refuse(text)
        }
    }
}

/// Fails for options of `riops run` that show or store a single run.
fn require_no_single_run_option(words: &[OsString]) -> Result<()> {
    let typed = |option: &&&str| {
        let long = format!("--{option}");
        words.iter().any(|word| {
            let word = word.to_string_lossy();
            word == long.as_str() || word.starts_with(&format!("{long}="))
        })
    };
    match SINGLE_RUN_ONLY.iter().find(typed) {
        Some(option) => refuse(format!("--{option} is not supported by riops sweep")),
        None => Ok(()),
    }
}
