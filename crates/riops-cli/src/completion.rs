//! Completion of command lines: the shell executes riops, which also knows the stored runs.

use clap::ValueHint;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use riops::host::Interrupt;
use riops::store::{self, RunFilter, StoreLocation};
use riops::summary::RunSummary;

use crate::options::with_each_option;

/// The variable by which the shell requests completions.
pub(crate) const VARIABLE: &str = "RIOPS_COMPLETE";
/// Maximum number of stored runs to choose from, the newest ones.
const RUNS_MAX: u32 = 50;

/// Answers the shell and exits, if it requests completions.
pub(crate) fn answer() {
    let command = || with_each_option(crate::args::command().clone(), &with_candidates);
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Adds the stored runs and their labels where they can be given.
fn with_candidates(arg: clap::Arg) -> clap::Arg {
    // `compare` takes runs, `ab` files of the same names.
    let is_run = arg.is_positional()
        && ["run", "runs", "a", "b"].contains(&arg.get_id().as_str())
        && arg.get_value_hint() == ValueHint::Unknown;
    if is_run {
        arg.add(ArgValueCandidates::new(runs_and_labels))
    } else if arg.get_long() == Some("label") {
        arg.add(ArgValueCandidates::new(|| labels(&stored())))
    } else {
        arg
    }
}

fn runs_and_labels() -> Vec<CompletionCandidate> {
    let runs = stored();
    let last = CompletionCandidate::new("last").help(Some("the newest run".into()));
    let ids = runs.iter().map(|run| {
        let what =
            format!("{} · {} · {}", run.title, run.started_at, run.label.as_deref().unwrap_or("-"));
        CompletionCandidate::new(&run.id).help(Some(what.into()))
    });
    [last].into_iter().chain(labels(&runs)).chain(ids).collect()
}

fn labels(runs: &[RunSummary]) -> Vec<CompletionCandidate> {
    let mut labels: Vec<&str> = runs.iter().filter_map(|run| run.label.as_deref()).collect();
    labels.sort_unstable();
    labels.dedup();
    let of_runs = |label| CompletionCandidate::new(label).help(Some("label".into()));
    labels.into_iter().map(of_runs).collect()
}

/// The newest runs; none if the store is a database, which may require a password or not respond.
fn stored() -> Vec<RunSummary> {
    let location = match std::env::var("RIOPS_STORE") {
        Ok(given) => StoreLocation::parse(&given, |name| std::env::var(name).ok()).ok(),
        Err(_) => Some(StoreLocation::File(store::default_path())),
    };
    let file = location.filter(|location| matches!(location, StoreLocation::File(_)));
    let store = file.and_then(|file| store::open_existing(&file, &Interrupt::new()).ok().flatten());
    let filter = RunFilter { limit: Some(RUNS_MAX), ..RunFilter::default() };
    store.and_then(|store| store.list(&filter).ok()).unwrap_or_default()
}
