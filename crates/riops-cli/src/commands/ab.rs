//! `riops ab`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use riops::host::Interrupt;

use super::experiment::Conductor;
use crate::args::Ab;
use crate::experiment::draft::Draft;
use crate::experiment::file::{read_variant, run_words, variants};
use crate::experiment::results::Results;
use crate::experiment::words::{command_of, typed, words_of};
use crate::failure::UsageError;
use crate::ui::Ui;

/// Compares two variants, or continues a comparison.
pub(crate) fn run(command: &Ab, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let results = Results { form: &command.output, options: &command.results };
    let conductor = Conductor::new(&command.store, results, (interrupt, ui));
    match (&command.a, &command.b, &command.resume.resume) {
        (Some(a), Some(b), None) => conductor.start(draft(command, a, b)?),
        (None, None, Some(_)) => conductor.resume(&command.resume, &command.target),
        _ => {
            let text = "specify the files of both variants, or --resume to continue";
            Err(UsageError(text.to_owned()).into())
        }
    }
}

fn draft(options: &Ab, a: &Path, b: &Path) -> Result<Draft> {
    let ((workload, words_a), (workload_b, words_b)) = (read_variant(a)?, read_variant(b)?);
    if workload != workload_b {
        let text =
            format!("the variants have different workloads: \"{workload}\" and \"{workload_b}\"");
        return Err(UsageError(text).into());
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
    let command = command_of(&workload)?;
    let set = options
        .set
        .iter()
        .map(|(name, value)| typed(&command, name, &toml::Value::String(value.clone())));
    let set = set.collect::<Result<Vec<_>>>()?.concat();
    let mut draft = Draft::new(format!("ab {name_a} {name_b}"), workload.clone());
    draft.words = [run_words(&workload), words_of(&options.target)].concat();
    // The options of the command line replace those of the files.
    let with_set = |words: Vec<_>| replaced(words, &set);
    draft.axes = vec![variants((name_a, with_set(words_a)), (name_b, with_set(words_b)))];
    draft.blocks_max = Some(options.blocks_max);
    draft.seed = options.seed;
    draft.effect = options.effect.map(|share| share.0);
    draft.apply_conditions(&options.conditions);
    Ok(draft)
}

/// Returns the words without those of the options that are set, and these.
fn replaced(words: Vec<OsString>, set: &[OsString]) -> Vec<OsString> {
    let name =
        |word: &OsString| word.to_string_lossy().split('=').next().unwrap_or_default().to_owned();
    let kept = words.into_iter().filter(|word| set.iter().all(|other| name(other) != name(word)));
    kept.chain(set.iter().cloned()).collect()
}
