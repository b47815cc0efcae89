//! The common part of `riops sweep`, `riops ab`, `riops gate` and `riops bisect`: they define an experiment or name a stored one, and
//! the library conducts it.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use riops::experiment::{Conductor, Select, divide};
use riops::fleet::Membership;
use riops::plan::Trust;
use riops::report::{self, Rendered};
use riops::server::{Changes, SelectError, Target};
use riops::study::{Experiment, ServerChoice, Study, next};
use riops::units::Span;
use riops::units::text::json_text;

use super::draft::Draft;
use super::results::{exit_code, show};
use super::words::{Databases, without_password};
use crate::args::fleet::FleetOptions;
use crate::args::output::PLAIN;
use crate::args::sweep::ResumeOptions;
use crate::args::{AnswerOptions, OutputOptions, StoreOptions, TargetOptions, TrustOption};
use crate::failure::{INTERRUPTED, conduct_error, refuse};
use crate::fleet::membership;
use crate::output::Outputs;
use crate::screen::shown;
use crate::ui::Ui;
use crate::{stored, target};

/// Lists the stored experiments.
pub(crate) fn list(
    store_options: &StoreOptions,
    options: &OutputOptions,
    ui: Ui,
) -> Result<ExitCode> {
    if let Some(other) = options.output.iter().find(|output| !PLAIN.contains(&&*output.form)) {
        return refuse(format!("experiments are listed as text or json, not as {}", other.form));
    }
    let known = stored::open_existing(store_options, ui)?.experiments()?;
    Outputs::open(options, Some("text"), ui)?.emit(|form, lines| {
        Ok(Rendered::Data(match form {
            "json" => json_text(&known)?,
            _ => report::experiments_text(&known, lines.columns),
        }))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a conductor of the library, whose events are shown.
pub(crate) fn conductor<'a>(
    store_options: &StoreOptions,
    membership: Option<Membership>,
    select: Select<'a>,
    ui: Ui,
) -> Result<Conductor<'a>> {
    let location = match &membership {
        Some(own) => own.location(),
        None => stored::location(store_options, ui)?,
    };
    Ok(Conductor { location, membership, select, events: shown(ui), interrupt: ui.interrupt })
}

/// Selects the server of a cell. Experiments are stored without passwords, which are in `databases`.
pub(crate) fn select(
    choice: &ServerChoice,
    databases: &Databases,
    ui: Ui,
) -> Result<Target, SelectError> {
    let masked = choice.database.as_ref();
    let given = masked.and_then(|masked| databases.get(masked));
    let options = TargetOptions {
        database: given.or(masked).cloned(),
        embedded: target::embedded_of(choice),
    };
    target::select(&options, ui)
}

/// Conducts experiments of a store.
pub(crate) struct Conducting<'a> {
    pub(crate) store_options: &'a StoreOptions,
    pub(crate) fleet: &'a FleetOptions,
    pub(crate) answer: &'a AnswerOptions,
    pub(crate) dry_run: bool,
    /// How settings of the servers may be changed.
    pub(crate) changes: Changes,
    pub(crate) ui: Ui,
}

impl Conducting<'_> {
    fn select(&self, choice: &ServerChoice, databases: &Databases) -> Result<Target, SelectError> {
        let target = select(choice, databases, self.ui)?;
        Ok(Target { changes: self.changes.clone(), ..target })
    }

    /// Conducts a new experiment.
    pub(crate) fn start(&self, draft: Draft) -> Result<ExitCode> {
        let membership = membership(self.fleet, self.store_options, self.ui)?;
        let (mut experiment, databases) = draft.define()?;
        if let Some(own) = &membership {
            divide(&mut experiment, own).map_err(conduct_error)?;
        }
        let select = |choice: &ServerChoice| self.select(choice, &databases);
        let conductor = conductor(self.store_options, membership, &select, self.ui)?;
        let study = Study::load(experiment, Vec::new(), Vec::new());
        if self.dry_run {
            return crate::ui::print_done(&report::plan_text(&study));
        }
        if let Some(code) = followed(&conductor, &study.experiment)? {
            return Ok(code);
        }
        let outputs = Outputs::open_answer(self.answer, self.ui)?;
        let (study, end) = conductor.start(study.experiment).map_err(conduct_error)?;
        show(&study, outputs)?;
        Ok(ExitCode::from(exit_code(&study, end)))
    }

    /// Continues a stored experiment.
    pub(crate) fn resume(
        &self,
        options: &ResumeOptions,
        trust: TrustOption,
        target: &TargetOptions,
        time_limit: Option<Span>,
    ) -> Result<ExitCode> {
        let part = options.resume.as_deref().unwrap_or("last");
        let membership = membership(self.fleet, self.store_options, self.ui)?;
        let databases = given_databases(target);
        let select = |choice: &ServerChoice| self.select(choice, &databases);
        let conductor = conductor(self.store_options, membership, &select, self.ui)?;
        if conductor.membership.as_ref().and_then(Membership::following).is_some() {
            let Some(mut experiment) = conductor.followed(part).map_err(conduct_error)? else {
                return Ok(ExitCode::SUCCESS);
            };
            trust_or_refuse(&mut experiment, trust)?;
            replace_database(&mut experiment, target)?;
            let code = followed(&conductor, &experiment)?;
            return Ok(code.unwrap_or(ExitCode::SUCCESS));
        }
        let mut continued =
            conductor.continued(part, options.retry_failed).map_err(conduct_error)?;
        continued.allow_changed = options.allow_changed;
        let experiment = &mut continued.study.experiment;
        experiment.time_limit_s =
            time_limit.map(|limit| limit.0.as_secs_f64()).or(experiment.time_limit_s);
        trust_or_refuse(experiment, trust)?;
        replace_database(experiment, target)?;
        if self.dry_run {
            return crate::ui::print_done(&report::plan_text(&continued.study));
        }
        let outputs = Outputs::open_answer(self.answer, self.ui)?;
        if next(&continued.study).is_some() {
            require_passwords(&continued.study.experiment, &databases)?;
        }
        let (study, end) = conductor.resume(continued).map_err(conduct_error)?;
        show(&study, outputs)?;
        Ok(ExitCode::from(exit_code(&study, end)))
    }
}

/// Takes part in the experiment, if another agent of the fleet conducts it. Returns the exit code.
fn followed(conductor: &Conductor<'_>, experiment: &Experiment) -> Result<Option<ExitCode>> {
    let Some(own) = &conductor.membership else {
        return Ok(None);
    };
    let Some(agent) = own.following() else {
        return Ok(None);
    };
    let is_complete = conductor.follow(experiment.clone(), own, agent).map_err(conduct_error)?;
    let code = if is_complete { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) };
    Ok(Some(code))
}

/// Returns the connection string of the command line, by the one without its password.
pub(crate) fn given_databases(target: &TargetOptions) -> Databases {
    let given = target.database.iter();
    given.map(|database| (without_password(database), database.clone())).collect()
}

/// Replaces the database of all cells by the database of the command line, if they use the same.
pub(crate) fn replace_database(experiment: &mut Experiment, target: &TargetOptions) -> Result<()> {
    let Some(given) = &target.database else {
        return Ok(());
    };
    let masked = without_password(given);
    let known: BTreeSet<_> = experiment.cells.iter().map(|cell| &cell.server.database).collect();
    if known.len() > 1 && !known.contains(&Some(masked.clone())) {
        return refuse(format!("the experiment uses several databases, but not {masked}"));
    }
    if known.len() == 1 {
        for cell in &mut experiment.cells {
            cell.server.database = Some(masked.clone());
        }
    }
    Ok(())
}

/// Permits what the experiment does on this machine, if the user trusts it. Otherwise fails if there is anything: the store
/// may be shared.
pub(crate) fn trust_or_refuse(experiment: &mut Experiment, trust: TrustOption) -> Result<()> {
    if trust.trust {
        experiment.cells.iter_mut().for_each(|cell| cell.plan.trust = Trust(true));
        return Ok(());
    }
    match experiment.needs_trust() {
        Some(what) => refuse(format!("the stored experiment {what}: permit it with --trust")),
        None => Ok(()),
    }
}

/// Fails if the password of a database is missing: passwords are not stored.
fn require_passwords(experiment: &Experiment, given: &Databases) -> Result<()> {
    let masked = experiment.cells.iter().filter_map(|cell| cell.server.database.as_ref());
    let mut missing =
        masked.filter(|database| database.contains("***") && !given.contains_key(*database));
    let Some(database) = missing.next() else {
        return Ok(());
    };
    refuse(format!(
        "the password for {database} is not stored: specify the database again with -d; for several databases use the password file (~/.pgpass) from the start"
    ))
}
