//! What `riops sweep` and `riops ab` have in common: an experiment is stored, conducted, continued, listed and
//! shown.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use jiff::Timestamp;
use riops::experiment::{End, Experiment, Failure, Goal, Study, conduct, tag};
use riops::host::Interrupt;
use riops::record::{Record, Status};
use riops::report::{self, short_id};
use riops::store::{self, ExperimentState, Store, StoreError, StoredExperiment};

use crate::args::sweep::{ResumeOptions, StudyOptions};
use crate::args::{StoreOptions, TargetOptions};
use crate::experiment::bench::Servers;
use crate::experiment::draft::{Defined, Draft};
use crate::experiment::words::without_password;
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::stored;
use crate::ui::Ui;

/// What is printed and written.
pub(super) struct Results<'a> {
    pub(super) form: &'a str,
    pub(super) options: &'a StudyOptions,
}

/// Conducts experiments of a store.
pub(super) struct Conductor<'a> {
    store_options: &'a StoreOptions,
    results: Results<'a>,
    interrupt: &'a Interrupt,
    ui: Ui,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        store_options: &'a StoreOptions,
        results: Results<'a>,
        (interrupt, ui): (&'a Interrupt, Ui),
    ) -> Self {
        Self { store_options, results, interrupt, ui }
    }

    /// Conducts a new experiment.
    pub(super) fn start(&self, draft: Draft) -> Result<ExitCode> {
        let Defined { experiment, databases } = draft.define()?;
        let study = Study::load(experiment, Vec::new(), Vec::new());
        if self.results.options.dry_run {
            crate::ui::print(&report::plan_text(&study))?;
            return Ok(ExitCode::SUCCESS);
        }
        let location = stored::location(self.store_options, self.interrupt, self.ui)?;
        let store = store::open(&location, self.interrupt)?;
        store.require_writable()?;
        let experiment = &study.experiment;
        let lock = store.lock_experiment(&experiment.id)?;
        let state = ExperimentState::default();
        store.save_experiment(&StoredExperiment {
            id: experiment.id.clone(),
            name: experiment.name.clone(),
            kind: experiment.goal.name().to_owned(),
            created_at: experiment.created_at,
            definition: serde_json::to_string(experiment)?,
            state: state.clone(),
        })?;
        let servers =
            Servers::new((store, location), (databases, state), (self.interrupt, self.ui));
        let result = self.conduct(study, servers);
        drop(lock);
        result
    }

    /// Continues a stored experiment.
    pub(super) fn resume(
        &self,
        options: &ResumeOptions,
        target: &TargetOptions,
    ) -> Result<ExitCode> {
        let part = options.resume.as_deref().unwrap_or("last");
        let location = stored::location(self.store_options, self.interrupt, self.ui)?;
        let store = store::open_existing(&location, self.interrupt)?
            .ok_or_else(|| StoreError::NoExperiments(location.to_string()))?;
        let mut stored = store.experiment(part)?;
        let mut experiment: Experiment = serde_json::from_str(&stored.definition)
            .with_context(|| format!("cannot read the experiment {}", stored.id))?;
        let Some(lock) = store.lock_experiment(&experiment.id)? else {
            return Err(anyhow!(
                "another riops process conducts the experiment {}; wait until it ends",
                experiment.id
            ));
        };
        let mut failures: Vec<Failure> = serde_json::from_str(&stored.state.failures)?;
        let mut records = runs_of(store.as_ref(), &experiment)?;
        if options.retry_failed {
            failures.clear();
            stored.state.failures = "[]".to_owned();
            records.retain(|record| record.status != Status::Failed);
        }
        let databases = databases(&mut experiment, target)?;
        let study = Study::load(experiment, records, failures);
        let mut servers =
            Servers::new((store, location), (databases, stored.state), (self.interrupt, self.ui));
        servers.allow_changed = options.allow_changed;
        let result = self.conduct(study, servers);
        drop(lock);
        result
    }

    /// Lists the stored experiments.
    pub(super) fn list(&self) -> Result<ExitCode> {
        let store = stored::open_existing(self.store_options, self.interrupt, self.ui)?;
        let found = store.experiments()?;
        let text = match self.results.form {
            "json" => serde_json::to_string_pretty(&found)? + "\n",
            _ => report::experiments_text(&found, crate::ui::output_columns()),
        };
        crate::ui::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn conduct(&self, mut study: Study, mut servers: Servers<'_>) -> Result<ExitCode> {
        let id = study.experiment.id.clone();
        self.ui.notice(&report::start_line(&study));
        let result = conduct(&mut study, &mut servers, self.interrupt);
        let end = servers.close(result)?;
        if end == End::Complete && servers.state.finished_at.is_none() {
            servers.state.finished_at = Some(Timestamp::now());
            servers.store.update_experiment(&id, &servers.state)?;
        }
        if end != End::Complete {
            let reason = if end == End::TimeLimit { "time limit reached" } else { "interrupted" };
            self.ui.notice(&format!(
                "{reason}; continue with `riops sweep --resume {}`",
                short_id(&id)
            ));
        }
        self.show(&study)?;
        Ok(ExitCode::from(exit_code(&study, end)))
    }

    fn show(&self, study: &Study) -> Result<()> {
        if study.finished.is_empty() {
            return Ok(());
        }
        let view = report::study::view(study);
        let text = match self.results.form {
            "json" => serde_json::to_string_pretty(&view)? + "\n",
            _ => report::study::text(&view, crate::ui::output_columns()),
        };
        crate::ui::print(&text)
    }
}

/// Returns the stored runs of an experiment, oldest first.
fn runs_of(store: &dyn Store, experiment: &Experiment) -> Result<Vec<Record>> {
    match store.select(&format!("{}={}", tag::EXPERIMENT, experiment.id)) {
        Ok(records) => Ok(records),
        // Killed before its first run ended.
        Err(StoreError::NoMatch(_) | StoreError::Empty(_)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the connection string of the command line by the one of the experiment. If all cells use the same
/// database, it replaces that.
fn databases(
    experiment: &mut Experiment,
    target: &TargetOptions,
) -> Result<BTreeMap<String, String>> {
    let Some(given) = &target.database else {
        return Ok(BTreeMap::new());
    };
    let masked = without_password(given);
    let known: BTreeSet<_> = experiment.cells.iter().map(|cell| &cell.server.database).collect();
    if known.len() > 1 && !known.contains(&Some(masked.clone())) {
        let text = format!("the experiment uses several databases, but not {masked}");
        return Err(UsageError(text).into());
    }
    if known.len() == 1 {
        for cell in &mut experiment.cells {
            cell.server.database = Some(masked.clone());
        }
    }
    Ok(BTreeMap::from([(masked, given.clone())]))
}

/// The options of a server as words.
pub(super) fn words_of(target: &TargetOptions) -> Vec<OsString> {
    let embedded = &target.embedded;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.as_os_str().to_owned());
    let single = [
        ("database", target.database.clone().map(OsString::from)),
        ("server-dir", path(&embedded.server_dir)),
        ("server-data", path(&embedded.server_data)),
        ("server-user", embedded.server_user.clone().map(OsString::from)),
        ("server-port", embedded.server_port.map(|port| port.to_string().into())),
        ("cache-dir", path(&embedded.cache_dir)),
    ];
    let set = embedded.server_set.iter();
    let set = set.map(|(name, value)| ("server-set", Some(format!("{name}={value}").into())));
    let word = |(name, value): (&str, Option<OsString>)| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value?);
        Some(word)
    };
    single.into_iter().chain(set).filter_map(word).collect()
}

/// The exit code of an experiment.
fn exit_code(study: &Study, end: End) -> u8 {
    let records = || study.finished.iter().filter_map(|finished| finished.result.as_ref().ok());
    let is_breached = |record: &Record| record.thresholds.iter().any(|found| !found.held);
    let is_search = matches!(study.experiment.goal, Goal::Saturation(_));
    if end == End::Interrupted {
        INTERRUPTED
    } else if study.finished.iter().any(|finished| finished.result.is_err()) {
        FAILED
    } else if records().any(|record| !record.verdict.valid) {
        NOT_VALID
    } else if !is_search && records().any(|record| is_breached(record)) {
        BREACHED
    } else {
        0
    }
}
