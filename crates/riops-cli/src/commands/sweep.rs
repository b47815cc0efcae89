//! `riops sweep` and `riops ab`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::args::run::CommandOptions;
use crate::args::{Ab, RunWorkload, Sweep};
use crate::experiment::conductor::{Conducting, list};
use crate::experiment::draft::Draft;
use crate::experiment::file::{read, read_variant, run_words, variants};
use crate::experiment::words::{TypedValue, command_of, replaced, require_no_password, typed};
use crate::failure::refuse;
use crate::ui::Ui;

/// Conducts the experiment of the options or of a file, continues one, or lists them.
pub(super) fn sweep(command: &Sweep, cell_words: &[OsString], ui: Ui) -> Result<ExitCode> {
    if let Some(workload) = &command.workload {
        let (experiment, run) = workload.options();
        let mut draft = of_workload("sweep", cell_words);
        draft.repeats = run.options().keep.repeat.repeat;
        draft.apply(experiment)?;
        return conducting(run, experiment.dry_run, ui).start(draft);
    }
    let (store_options, answer) = (&command.own.store, &command.own.answer);
    if command.list {
        return list(store_options, &answer.outputs, ui);
    }
    let (fleet, dry_run) = (&command.own.fleet, command.experiment.dry_run);
    let changes = command.changes.changes(command.trust);
    let conductor = Conducting { store_options, fleet, answer, dry_run, changes, ui };
    match (&command.file, &command.resume.resume) {
        (Some(_), Some(_)) => refuse("--resume continues a stored experiment; omit the file"),
        (None, Some(_)) => {
            let time_limit = command.experiment.conditions.time_limit;
            conductor.resume(&command.resume, command.trust, &command.target, time_limit)
        }
        (Some(path), None) => {
            let mut draft = read(path, &command.own.set, command.trust)?;
            draft.words = replaced(draft.words, &ui.given().target);
            draft.repeats = command.own.repeat.or(draft.repeats);
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

/// Compares two variants, or continues a comparison.
pub(super) fn ab(command: &Ab, cell_words: &[OsString], ui: Ui) -> Result<ExitCode> {
    if let Some(workload) = &command.workload {
        let (test, run) = workload.options();
        let mut draft = of_workload("ab", cell_words);
        if let Some((name, _)) = &test.vary {
            draft.name = format!("{} {name}", draft.workload);
        }
        draft.apply_test(test)?;
        return conducting(run, test.dry_run, ui).start(draft);
    }
    let (store_options, answer) = (&command.store, &command.answer);
    let (fleet, dry_run) = (&command.fleet, command.test.dry_run);
    let changes = command.changes.changes(command.trust);
    let conductor = Conducting { store_options, fleet, answer, dry_run, changes, ui };
    let mut draft = match (&command.a, &command.b, &command.resume.resume) {
        // The two cells of an experiment file.
        (Some(file), None, None) => {
            let draft = read(file, &command.set, command.trust)?;
            Draft { words: replaced(draft.words, &ui.given().target), ..draft }
        }
        (Some(a), Some(b), None) => of_variants(command, [a, b], ui)?,
        (None, None, Some(_)) => {
            let time_limit = command.test.conditions.time_limit;
            return conductor.resume(&command.resume, command.trust, &command.target, time_limit);
        }
        _ => {
            let text = "specify a workload and --vary NAME=A,B, the files of both variants, or --resume to continue";
            return refuse(text);
        }
    };
    draft.apply_test(&command.test)?;
    draft.seed = command.seed.or(draft.seed);
    conductor.start(draft)
}

/// An experiment with the workload and the options of the command line.
fn of_workload(experiment: &str, cell_words: &[OsString]) -> Draft {
    let name =
        cell_words.iter().skip(2).take_while(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let name = name.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let draft = Draft::new(format!("{experiment} {name}"), name);
    Draft { words: cell_words.to_vec(), ..draft }
}

/// Conducts an experiment with the options of a workload.
fn conducting(run: &dyn RunWorkload, dry_run: bool, ui: Ui) -> Conducting<'_> {
    let CommandOptions { keep, changes, .. } = run.options();
    Conducting {
        store_options: &keep.store,
        fleet: &keep.fleet,
        answer: &keep.answer,
        dry_run,
        changes,
        ui: if keep.no_intervals { ui.without_intervals() } else { ui },
    }
}

/// The files are of A and B, in this order.
fn of_variants(options: &Ab, files: [&Path; 2], ui: Ui) -> Result<Draft> {
    let [a, b] = files;
    let (workload, words_a) = read_variant(a, options.trust)?;
    let (workload_b, words_b) = read_variant(b, options.trust)?;
    if workload != workload_b {
        let text =
            format!("the variants have different workloads: \"{workload}\" and \"{workload_b}\"");
        return refuse(text);
    }
    let stem = |path: &Path| {
        path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let (mut name_a, mut name_b) = (stem(a), stem(b));
    if name_a == name_b {
        (name_a, name_b) = (a.display().to_string(), b.display().to_string());
    }
    if name_a == name_b {
        // Two runs of the same file: a test of the method itself.
        (name_a, name_b) = (format!("{name_a} (A)"), format!("{name_b} (B)"));
    }
    require_no_password(&options.set)?;
    let command = command_of(&workload)?;
    let set = options
        .set
        .iter()
        .map(|(name, value)| typed(&command, name, &toml::Value::String(value.clone())));
    let set = set.collect::<Result<Vec<_>>>()?.concat();
    let mut draft = Draft::new(format!("ab {name_a} {name_b}"), workload.clone());
    draft.words = [run_words(&workload), ui.given().target.clone()].concat();
    // The options of the command line override the options of the files.
    let with_set = |text, words| TypedValue { text, words: replaced(words, &set) };
    draft.axes = vec![variants([with_set(name_a, words_a), with_set(name_b, words_b)])?];
    Ok(draft)
}
