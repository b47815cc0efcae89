//! `riops ab`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::args::Ab;
use crate::experiment::conductor::Conductor;
use crate::experiment::draft::Draft;
use crate::experiment::file::{read, read_variant, run_words, variants};
use crate::experiment::results::Results;
use crate::experiment::words::{command_of, replaced, require_no_password, typed};
use crate::failure::refuse;
use crate::ui::Ui;

/// Compares two variants, or continues a comparison.
pub(crate) fn run(command: &Ab, ui: Ui) -> Result<ExitCode> {
    let results = Results { form: &command.output, options: &command.results };
    let (store_options, fleet) = (&command.store, &command.fleet);
    let conductor = Conductor { store_options, fleet, results, ui };
    let draft = match (&command.a, &command.b, &command.resume.resume) {
        (Some(file), None, None) => of_experiment(command, file, ui)?,
        (Some(a), Some(b), None) => of_variants(command, (a, b), ui)?,
        (None, None, Some(_)) => {
            let time_limit = command.conditions.time_limit;
            return conductor.resume(&command.resume, command.trust, &command.target, time_limit);
        }
        _ => {
            return refuse("specify the files of both variants, or --resume to continue");
        }
    };
    conductor.start(Draft {
        blocks_max: Some(command.blocks_max),
        seed: command.seed.or(draft.seed),
        effect: command.effect.map(|share| share.0).or(draft.effect),
        ..draft
    })
}

/// The two cells of an experiment file.
fn of_experiment(options: &Ab, file: &Path, ui: Ui) -> Result<Draft> {
    let mut draft = read(file, &options.set, options.trust)?;
    draft.words = replaced(draft.words, &ui.given().target);
    draft.apply_conditions(&options.conditions);
    Ok(draft)
}

fn of_variants(options: &Ab, (a, b): (&Path, &Path), ui: Ui) -> Result<Draft> {
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
    // The options of the command line replace those of the files.
    let with_set = |words: Vec<_>| replaced(words, &set);
    draft.axes = vec![variants((name_a, with_set(words_a)), (name_b, with_set(words_b)))?];
    draft.apply_conditions(&options.conditions);
    Ok(draft)
}
