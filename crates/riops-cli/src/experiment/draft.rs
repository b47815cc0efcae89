//! An experiment before its cells are known: options as typed. All of them are checked when the experiment is
//! made, before its first run.

use std::ffi::OsString;

use anyhow::{Context, Result};
use riops::figure::CostKind;
use riops::plan::{Plan, Schedule};
use riops::server::{ConnInfo, embedded};
use riops::study::{
    ALPHA, AbSettings, Between, Cell, DatabaseChoice, Experiment, Goal, Order, Reset,
    SaturationSettings, Search, ServerChoice,
};

use super::words::{
    Databases, Parsed, TypedAxis, combinations, command_of, parse, require_no_password, split_list,
};
use crate::args::run::cores;
use crate::args::sweep::ConditionOptions;
use crate::args::{ExperimentOptions, TestOptions};
use crate::failure::{UsageError, refuse};
use crate::options::variable;
use crate::scan::CommandLine;
use crate::target;

/// The option of a setting of the server, and the same of the embedded server.
const SETTING: &str = "--setting=";
const OF_EMBEDDED: &str = "--server-set=";

/// Maximum number of sessions of a search.
const SESSIONS_MAX: u32 = 1024;

/// An experiment as typed.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) workload: String,
    /// `riops run WORKLOAD` and the options of all cells.
    pub(crate) words: Vec<OsString>,
    pub(crate) axes: Vec<TypedAxis>,
    pub(crate) repeats: Option<u32>,
    pub(crate) order: Option<Order>,
    pub(crate) seed: Option<u64>,
    pub(crate) baseline: Option<String>,
    pub(crate) effect: Option<f64>,
    pub(crate) search: Option<Search>,
    pub(crate) sessions_max: Option<u32>,
    /// Maximum number of blocks of an A/B test.
    pub(crate) blocks_max: Option<u32>,
    /// Rules of a gate; `None` for `riops ab`.
    pub(crate) gate: Option<TestRules>,
    pub(crate) between: Between,
    pub(crate) reset: Reset,
    pub(crate) has_own_database: bool,
    pub(crate) time_limit_s: Option<f64>,
}

/// How the A/B test of a gate ends.
#[derive(Debug, Clone)]
pub(crate) struct TestRules {
    /// Probability of a false verdict.
    pub(crate) error: f64,
    /// Maximum number of runs that are repeated because they were disturbed.
    pub(crate) repeats_max: u32,
    /// The costs of a transaction that are judged, too.
    pub(crate) costs: Vec<CostKind>,
}

impl Draft {
    /// A sweep of a workload without axes.
    pub(crate) fn new(name: String, workload: String) -> Self {
        Self { name, workload, ..Self::default() }
    }

    /// Applies the options of the command line.
    ///
    /// # Errors
    /// If an axis is invalid.
    pub(crate) fn apply(&mut self, options: &ExperimentOptions) -> Result<()> {
        let command = command_of(&self.workload)?;
        require_no_password(&options.axis)?;
        for (name, list) in &options.axis {
            let axis = TypedAxis::of_option(&command, name, &split_list(list))?;
            match self.axes.iter_mut().find(|known| known.name == axis.name) {
                Some(known) => *known = axis,
                None => self.axes.push(axis),
            }
        }
        self.order = options.run_order.or(self.order);
        self.baseline = options.baseline.clone().or(self.baseline.take());
        self.effect = options.effect.map(|share| share.0).or(self.effect);
        self.search = options.find_saturation.or(self.search);
        self.sessions_max = options.sessions_max.or(self.sessions_max);
        self.apply_conditions(&options.conditions);
        Ok(())
    }

    /// Applies the options of an A/B test.
    ///
    /// # Errors
    /// If what it varies is invalid.
    pub(crate) fn apply_test(&mut self, options: &TestOptions) -> Result<()> {
        if let Some((name, list)) = &options.vary {
            require_no_password(options.vary.as_slice())?;
            let command = command_of(&self.workload)?;
            let values = split_list(list);
            if values.len() != 2 {
                return refuse(format!(
                    "--vary {name}={list}: expected two values, for A and for B"
                ));
            }
            self.axes.push(TypedAxis::of_either(&command, name, &values)?);
        }
        self.blocks_max = Some(options.rounds_max);
        self.effect = options.effect.map(|share| share.0).or(self.effect);
        self.apply_conditions(&options.conditions);
        Ok(())
    }

    /// Applies the conditions of the command line.
    pub(crate) fn apply_conditions(&mut self, options: &ConditionOptions) {
        self.between.checkpoint |= options.checkpoint;
        self.between.vacuum |= options.vacuum;
        let seconds = |span: riops::units::Span| span.0.as_secs_f64();
        self.between.idle_device_s =
            options.idle_device.map(seconds).or(self.between.idle_device_s);
        self.between.cool_down_s = options.cool_down.map_or(self.between.cool_down_s, seconds);
        self.reset = options.reset.unwrap_or(self.reset);
        self.has_own_database |= options.own_database;
        self.time_limit_s = options.time_limit.map(seconds).or(self.time_limit_s);
    }

    /// Makes the experiment: parses and checks the plan of every cell.
    ///
    /// # Errors
    /// If an option of a cell is invalid, with the name of the cell.
    pub(crate) fn define(self) -> Result<(Experiment, Databases)> {
        self.require_effect()?;
        let axes: Vec<_> = self.axes.iter().map(TypedAxis::plain).collect();
        for axis in &axes {
            let option = format!("--{}", axis.name);
            let is_same =
                |word: &OsString| word.to_string_lossy().split('=').next() == Some(&*option);
            if self.words.iter().any(is_same) {
                return refuse(format!("{option} is an axis of this experiment: omit the option"));
            }
        }
        let has_workers = self.has_workers();
        let mut databases = Databases::new();
        let mut cells = Vec::new();
        for (values, words) in combinations(&self.axes)? {
            let named = || {
                let pairs = axes.iter().zip(&values);
                let pairs = pairs.map(|(axis, value)| format!("{}={value}", axis.name));
                format!("cell {}", pairs.collect::<Vec<_>>().join(" "))
            };
            let parsed = self.cell(&words);
            let Parsed { plan, server, database } =
                if axes.is_empty() { parsed } else { parsed.with_context(named) }?;
            if let (Some(masked), Some(database)) = (&server.database, database) {
                databases.insert(masked.clone(), database);
            }
            cells.push(Cell { values, plan, server });
        }
        self.require_effect_on(&cells)?;
        let plain = Experiment::new(self.name, axes, cells);
        let mut experiment = Experiment {
            description: self.description,
            repeats: self.repeats.unwrap_or(plain.repeats),
            order: self.order.unwrap_or_default(),
            seed: self.seed.unwrap_or(plain.seed),
            between: self.between,
            reset: self.reset,
            time_limit_s: self.time_limit_s,
            effect: self.effect.unwrap_or(plain.effect),
            ..plain
        };
        if self.has_own_database {
            let name = database_name(&experiment.name, &experiment.id);
            experiment.database = DatabaseChoice::Own(name);
        }
        let is_search = self.search == Some(Search::Sessions);
        experiment.goal = goal(
            &experiment,
            self.baseline,
            self.blocks_max,
            self.gate.as_ref(),
            self.search,
            self.sessions_max,
        )?;
        experiment.require_limits().map_err(|error| UsageError(error.to_string()))?;
        if is_search && !has_workers {
            // As for a single run; each level reduces it to its number of sessions.
            for cell in &mut experiment.cells {
                cell.plan.workers = cores();
            }
        }
        Ok((experiment, databases))
    }

    /// Fails for what the goal of the experiment does not use.
    fn require_effect(&self) -> Result<()> {
        let set = [
            ("repeat", self.repeats.is_some()),
            ("run-order", self.order.is_some()),
            ("baseline", self.baseline.is_some()),
            ("find-saturation", self.search.is_some()),
            ("sessions-max", self.sessions_max.is_some()),
        ];
        let (goal, used): (_, &[&str]) = match (self.blocks_max, self.search) {
            (Some(_), _) => ("an A/B test", &[]),
            (_, Some(Search::Sessions)) => {
                ("a search for the saturation point", &["find-saturation", "sessions-max"])
            }
            (_, Some(Search::Rate)) => ("a search for the highest rate", &["find-saturation"]),
            (None, None) => ("a sweep", &["repeat", "run-order", "baseline"]),
        };
        match set.iter().find(|(name, is_set)| *is_set && !used.contains(name)) {
            Some((name, _)) => refuse(format!("\"{name}\" has no effect on {goal}")),
            None => Ok(()),
        }
    }

    /// Fails for what has no effect on these cells.
    fn require_effect_on(&self, cells: &[Cell]) -> Result<()> {
        let variable = ConnInfo::server_variable(|name| std::env::var(name).ok());
        let has_other_server = |cell: &Cell| variable.is_some() || cell.server.database.is_some();
        if self.has_own_database && cells.iter().any(has_other_server) {
            return refuse(
                "\"own-database\" has no effect: only the embedded server has a separate database, and another server is selected",
            );
        }
        let of_dataset = [("vacuum", self.between.vacuum), ("reset", self.reset == Reset::Prepare)];
        let without_dataset = cells
            .iter()
            .map(|cell| cell.plan.work.traits())
            .find(|traits| traits.dataset.is_none());
        if let Some(traits) = without_dataset
            && let Some((name, _)) = of_dataset.iter().find(|(_, is_set)| *is_set)
        {
            return refuse(format!(
                "\"{name}\" has no effect: the workload {} has no dataset of riops",
                traits.name
            ));
        }
        if self.gate.is_some() && cells.iter().any(|cell| !cell.plan.thresholds.is_empty()) {
            return refuse(
                "\"threshold\" has no effect: a gate judges the difference between base and head, and not a single run",
            );
        }
        Ok(())
    }

    /// Returns whether the number of workers was set. Otherwise, it follows from the number of sessions.
    fn has_workers(&self) -> bool {
        let of_axes = self.axes.iter().flat_map(|axis| &axis.values).flat_map(|value| &value.words);
        let words = self.words.iter().chain(of_axes).cloned().collect();
        CommandLine::read(words).value("workers").is_some()
            || std::env::var_os(variable("workers")).is_some()
    }

    /// The plan and the server of a cell.
    fn cell(&self, words: &[OsString]) -> Result<Parsed> {
        let all = [self.words.as_slice(), words].concat();
        let has_address = CommandLine::read(all).value("database").is_some()
            || std::env::var_os(variable("database")).is_some()
            || ConnInfo::server_variable(|name| std::env::var(name).ok()).is_some();
        let mut parsed = parse(&[self.words.as_slice(), words].concat())?;
        let has_settings = !has_address && !parsed.plan.settings.is_empty();
        // The embedded server starts with the settings of a cell. A running one is changed as any other server.
        if has_settings && !is_running(&parsed.server)? {
            let own = words.iter().map(|word| match word.to_str() {
                Some(text) if text.starts_with(SETTING) => {
                    text.replacen(SETTING, OF_EMBEDDED, 1).into()
                }
                _ => word.clone(),
            });
            parsed = parse(&self.words.iter().cloned().chain(own).collect::<Vec<_>>())?;
        }
        match self.search {
            Some(Search::Rate) => with_rate(&parsed.plan).validate()?,
            _ => parsed.plan.validate()?,
        }
        Ok(parsed)
    }
}

/// Whether the embedded server of a cell is running.
fn is_running(choice: &ServerChoice) -> Result<bool> {
    let options = target::embedded_options(&target::embedded_of(choice));
    let status = embedded::status(&options)?;
    Ok(status.is_some_and(|status| status.running.is_some()))
}

fn goal(
    experiment: &Experiment,
    baseline: Option<String>,
    blocks_max: Option<u32>,
    gate: Option<&TestRules>,
    search: Option<Search>,
    sessions_max: Option<u32>,
) -> Result<Goal> {
    if let Some(blocks_max) = blocks_max {
        let count = experiment.cells.len();
        if count != 2 {
            let what = match count {
                1 => "has one: --vary NAME=A,B gives an option or a setting two values; or name the file of the other one, too, as in riops ab A.toml B.toml, or add an axis with two values to the file".to_owned(),
                _ => format!("has {count}: use riops sweep"),
            };
            return refuse(format!("riops ab compares two variants; this experiment {what}"));
        }
        return Ok(Goal::Ab(AbSettings {
            blocks_max,
            alpha: gate.map_or(ALPHA, |gate| gate.error),
            repeats_max: gate.map_or(0, |gate| gate.repeats_max),
            one_sided: gate.is_some(),
            costs: gate.map_or_else(Vec::new, |gate| gate.costs.clone()),
            machine: None,
        }));
    }
    if let Some(search) = search {
        for cell in &experiment.cells {
            require_searchable(&cell.plan, search)?;
        }
        let mut axes = experiment.axes.iter().map(|axis| axis.name.as_str());
        if let Some(axis) = axes.find(|axis| ["sessions", "rate"].contains(axis)) {
            return refuse(format!(
                "--find-saturation cannot be combined with the axis \"{axis}\""
            ));
        }
        let last = sessions_max.unwrap_or(SESSIONS_MAX);
        return Ok(Goal::Saturation(SaturationSettings { search, first: 1, last }));
    }
    let Some(baseline) = baseline else {
        return Ok(Goal::Sweep { baseline: 0 });
    };
    let mut names = experiment.cells.iter().map(|cell| experiment.cell_name(cell));
    if let Some(baseline) = names.position(|name| name == baseline) {
        return Ok(Goal::Sweep { baseline });
    }
    let first = experiment.cells.first().map(|cell| experiment.cell_name(cell));
    let first = first.unwrap_or_default();
    refuse(format!("there is no cell \"{baseline}\"; the first one is \"{first}\""))
}

/// The plan as an open loop.
fn with_rate(plan: &Plan) -> Plan {
    Plan { schedule: Schedule::Constant { per_s: 1.0 }, ..plan.clone() }
}

/// Fails for a plan whose load cannot be varied.
fn require_searchable(plan: &Plan, search: Search) -> Result<()> {
    if plan.schedule != Schedule::Closed {
        return refuse("--find-saturation sets the rate: omit --rate");
    }
    with_rate(plan)
        .validate()
        .context("--find-saturation requires a workload that repeats transactions")?;
    if search == Search::Rate && plan.thresholds.is_empty() {
        let text = "--find-saturation rate requires the highest response time: --threshold 'response.p99<20ms'";
        return refuse(text);
    }
    Ok(())
}

/// Returns the name of the database of an experiment: its name with other characters replaced, and the end of its
/// id, because two experiments of the same name may run at the same time.
fn database_name(experiment: &str, id: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' }
    };
    // PostgreSQL truncates names of more than 63 characters.
    let name: String = experiment.chars().map(plain).take(40).collect();
    let end = id.get(id.len().saturating_sub(8)..).unwrap_or(id);
    format!("riops_{name}_{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The workers of a search for the number of sessions, with these options.
    fn workers(options: &[&str]) -> u32 {
        let words = ["riops", "run", "rows", "--sessions=1"].iter().chain(options);
        let draft = Draft {
            words: words.map(OsString::from).collect(),
            search: Some(Search::Sessions),
            ..Draft::new("search".to_owned(), "rows".to_owned())
        };
        draft.define().unwrap().0.cells[0].plan.workers
    }

    #[test]
    fn a_search_has_the_chosen_workers_or_one_per_core() {
        assert_eq!(workers(&[]), cores());
        assert_eq!(workers(&["-j", "1"]), 1);
        assert_eq!(workers(&["--workers=1"]), 1);
    }
}
