//! The parameters of the workload `script`: pgbench scripts, and the tables of pgbench.

use std::collections::BTreeMap;
use std::str::FromStr;

use riops_script::{Action, Diagnostic, Names, Scope, Script, parse};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use smart_default::SmartDefault;

use super::error::{PlanError, refuse};
pub use super::pgbench::{PgbenchReport, TransactionLog, VacuumFirst};
use super::policy::{Protocol, Stop};
pub use super::script_dataset::{PartitionMethod, ScriptDataset};
use super::spec::{Common, Spec, Traits};
use super::threshold::Part;

/// Name of the workload and of its dataset.
const NAME: &str = "script";
/// Maximum number of scripts, as in pgbench.
const SCRIPTS_MAX: usize = 128;
/// Maximum number of percentiles in a report, as in the patch for pgbench.
const PERCENTILES_MAX: usize = 10;
/// Maximum number of batches in a pipeline: the protocol crate allows one more.
const BATCHES_MAX: usize = riops_wire::pipeline::BATCHES_MAX - 1;

/// A script that is built into pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Three updates, a select and an insert, which resemble TPC-B.
    TpcbLike,
    /// The same without the updates of tellers and branches.
    SimpleUpdate,
    /// The select only.
    SelectOnly,
}

impl Builtin {
    /// All of them, in the order of pgbench.
    pub const ALL: [Self; 3] = [Self::TpcbLike, Self::SimpleUpdate, Self::SelectOnly];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::TpcbLike => "tpcb-like",
            Self::SimpleUpdate => "simple-update",
            Self::SelectOnly => "select-only",
        }
    }

    /// Returns its description in the reports of pgbench.
    pub fn description(self) -> &'static str {
        match self {
            Self::TpcbLike => "<builtin: TPC-B (sort of)>",
            Self::SimpleUpdate => "<builtin: simple update>",
            Self::SelectOnly => "<builtin: select only>",
        }
    }

    /// Returns its text.
    pub fn text(self) -> &'static str {
        match self {
            Self::TpcbLike => include_str!("../../sql/script/tpcb_like.pgbench"),
            Self::SimpleUpdate => include_str!("../../sql/script/simple_update.pgbench"),
            Self::SelectOnly => include_str!("../../sql/script/select_only.pgbench"),
        }
    }

    /// Whether it changes rows.
    pub fn writes(self) -> bool {
        self != Self::SelectOnly
    }
}

impl FromStr for Builtin {
    type Err = PlanError;

    /// Finds a script by the beginning of its name.
    fn from_str(name: &str) -> Result<Self, PlanError> {
        let mut matches = Self::ALL.into_iter().filter(|script| script.name().starts_with(name));
        match (matches.next(), matches.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => {
                refuse(format!("no built-in script has the name \"{name}\": expected {EXPECTED}"))
            }
            _ => refuse(format!(
                "several built-in scripts begin with \"{name}\": expected {EXPECTED}"
            )),
        }
    }
}

const EXPECTED: &str = "tpcb-like, simple-update or select-only";

/// A script with its weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptSource {
    /// Name of the file or of the built-in script.
    pub name: String,
    /// Its share of the transactions is its weight divided by the sum of all weights.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// Its text; absent for a built-in script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_one(weight: &u32) -> bool {
    *weight == 1
}

impl ScriptSource {
    /// Returns a built-in script.
    pub fn of_builtin(builtin: Builtin, weight: u32) -> Self {
        Self { name: builtin.name().to_owned(), weight, text: None }
    }

    /// Returns its name without the directory: the same script has the same name wherever it was started.
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns the built-in script that it is.
    ///
    /// # Errors
    /// [`PlanError`] if it has no text and is unknown.
    pub fn builtin(&self) -> Result<Option<Builtin>, PlanError> {
        if self.text.is_some() { Ok(None) } else { self.name.parse().map(Some) }
    }
}

/// The parameters of `run script`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default)]
pub struct ScriptRun {
    /// The scripts.
    #[default(vec![ScriptSource::of_builtin(Builtin::TpcbLike, 1)])]
    pub scripts: Vec<ScriptSource>,
    /// Variables with their texts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub define: BTreeMap<String, String>,
    /// Whether `\shell` and `\setshell` are allowed.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub allow_shell: bool,
    /// Whether a plan that changes during the run makes it invalid.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub strict_plans: bool,
    /// Number of transactions of each session; absent for any number.
    pub transactions_per_session: Option<u64>,
    /// Vacuum of the tables before the run.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub vacuum: VacuumFirst,
    /// The log of single transactions.
    pub log: Option<TransactionLog>,
    /// Optional contents of the report of `--output pgbench`.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub report: PgbenchReport,
}

/// Parsed scripts, with the names of their variables.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The scripts, in the order of the plan.
    pub scripts: Vec<Script>,
    /// The names of all variables.
    pub names: Names,
    /// Probable mistakes.
    pub warnings: Vec<String>,
}

impl ScriptRun {
    /// Parses the scripts.
    ///
    /// # Errors
    /// [`PlanError`] with all errors, each with file, line and column.
    pub fn parsed(&self, protocol: Protocol) -> Result<Parsed, PlanError> {
        let mut names = Names::default();
        let given: Vec<_> = self.define.keys().map(|name| names.slot(name)).collect();
        let (mut scripts, mut errors) = (Vec::new(), Vec::new());
        for source in &self.scripts {
            let builtin = source.builtin()?;
            let text = source.text.as_deref().or(builtin.map(Builtin::text)).unwrap_or_default();
            match parse(&source.name, text, &mut names) {
                Ok(script) => scripts.push(script),
                Err(problems) => errors.extend(problems),
            }
        }
        let is_simple = protocol == Protocol::Simple;
        let scope = Scope::new(&scripts, &names, &given, is_simple)
            .with_late_errors(self.report.allows_no_success);
        if errors.is_empty() {
            errors = scripts.iter().flat_map(|script| scope.errors(script)).collect();
        }
        if errors.is_empty() {
            for script in &scripts {
                self.refuse_unsupported(script, protocol)?;
            }
            let warnings = scripts.iter().flat_map(|script| scope.warnings(script));
            let warnings = warnings.map(|warning| warning.to_string()).collect();
            return Ok(Parsed { scripts, names, warnings });
        }
        let texts: Vec<String> = errors.iter().map(Diagnostic::to_string).collect();
        refuse(texts.join("\n"))
    }

    /// Refuses commands that would fail whenever they are executed.
    fn refuse_unsupported(&self, script: &Script, protocol: Protocol) -> Result<(), PlanError> {
        let is_simple = protocol == Protocol::Simple;
        let mut batches = 0;
        for command in &script.commands {
            let reason = match &command.action {
                Action::Shell(_) | Action::SetShell(..) if !self.allow_shell => {
                    "shell commands require --allow-shell".to_owned()
                }
                Action::StartPipeline if is_simple => {
                    "pipelines require --protocol prepared or extended".to_owned()
                }
                Action::Sql(statement) if statement.statements > 1 && !is_simple => {
                    "several statements in one command require --protocol simple".to_owned()
                }
                Action::StartPipeline => {
                    batches = 1;
                    continue;
                }
                Action::SyncPipeline => {
                    batches += 1;
                    if batches <= BATCHES_MAX {
                        continue;
                    }
                    format!("a pipeline can have at most {BATCHES_MAX} parts")
                }
                _ => continue,
            };
            return refuse(format!("{}:{}: {reason}", script.name, command.line));
        }
        Ok(())
    }

    /// Returns what distinguishes these scripts from others with the same names: the beginning of a hash of texts,
    /// weights and variables. `None` for built-in scripts without variables.
    fn digest(&self) -> Option<String> {
        if self.define.is_empty() && self.scripts.iter().all(|script| script.text.is_none()) {
            return None;
        }
        let mut hash = Sha256::new();
        for ScriptSource { name, weight, text } in &self.scripts {
            // A file may have any name.
            let (kind, text) = text.as_ref().map_or(("builtin", name), |text| ("file", text));
            hash.update(format!("{kind} {weight} {}\n{text}", text.len()));
        }
        for (name, value) in &self.define {
            hash.update(format!("{name}={value}\n"));
        }
        // Enough to tell apart the scripts of a store.
        let start = hash.finalize().first_chunk().copied().unwrap_or_default();
        Some(format!("{:08x}", u32::from_be_bytes(start)))
    }

    /// Returns the built-in scripts among its scripts.
    pub fn builtins(&self) -> impl Iterator<Item = Builtin> {
        self.scripts.iter().filter_map(|source| source.builtin().ok().flatten())
    }
}

impl Spec for ScriptRun {
    fn traits(&self) -> Traits {
        Traits {
            name: NAME,
            dataset: self.builtins().next().map(|_| NAME),
            counts_transactions: true,
            writes: self.builtins().any(Builtin::writes),
            adds_changes: true,
            has_uncounted_changes: self.scripts.iter().any(|script| script.text.is_some()),
            shares_its_tables: true,
            accepts_no_transactions: self.report.allows_no_success,
            shows_messages: self.report.allows_no_success,
            tolerates_changed_plans: !self.strict_plans,
            limits_each_session: self.transactions_per_session.is_some(),
            transaction_log: self.log.clone(),
            logs_failure_types: self.report.failures_detailed,
            wrong_replies: Some("no row, although each statement of a built-in script finds one"),
            ..Traits::default()
        }
    }

    fn needs_trust(&self) -> Option<String> {
        if let Some(log) = &self.log {
            return Some(format!("writes files {}.*", log.prefix));
        }
        let is_shell = |command: &riops_script::Command| {
            matches!(command.action, Action::Shell(_) | Action::SetShell(..))
        };
        let mut names = Names::default();
        let has_shell = |source: &ScriptSource| {
            let script = parse(&source.name, source.text.as_deref()?, &mut names).ok()?;
            script.commands.iter().any(is_shell).then_some(())
        };
        self.scripts.iter().find_map(has_shell).map(|()| "executes shell commands".to_owned())
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        require!(
            common.pipeline == 1,
            "--pipeline is not supported by script: use \\startpipeline in the script"
        );
        require!(
            !matches!(common.stop, Stop::Rows(_)),
            "--total-rows is not supported by script: the rows of a transaction are not known before"
        );
        require!(
            !(self.transactions_per_session.is_some() && common.warmup_s > 0.0),
            "--transactions-per-session requires --warmup 0"
        );
        if let Some(TransactionLog { sampling_rate, prefix, .. }) = &self.log {
            require!(
                *sampling_rate > 0.0 && *sampling_rate <= 1.0,
                "--sampling-rate must be above 0 and at most 1, not {sampling_rate}"
            );
            require!(!prefix.is_empty(), "--log requires a beginning of names");
        }
        let percentiles = &self.report.percentiles;
        require!(
            percentiles.len() <= PERCENTILES_MAX
                && percentiles.iter().all(|percent| *percent > 0.0 && *percent <= 100.0),
            "--latency-percentiles accepts at most {PERCENTILES_MAX} values, each above 0 and at most 100"
        );
        require!(
            (1..=SCRIPTS_MAX).contains(&self.scripts.len()),
            "a run has 1 to {SCRIPTS_MAX} scripts"
        );
        require!(
            self.scripts.iter().any(|script| script.weight > 0),
            "the weights of all scripts are 0"
        );
        for name in self.define.keys() {
            require!(
                riops_script::is_name(name),
                "--define: \"{name}\" is not a name of a variable"
            );
        }
        self.parsed(common.protocol).map(drop)
    }

    fn script_of(&self, part: &Part) -> Result<usize, PlanError> {
        let names = self.scripts.iter().map(|script| script.name.as_str());
        let Some(script) = part.position(names) else {
            return refuse(match &part.script {
                Some(script) => format!("a threshold is for the script \"{script}\", which the run does not have"),
                None => "a threshold for a command of several scripts must name the script: p99{script=1,command=2}".to_owned(),
            });
        };
        // Statements have the same numbers with every protocol.
        let parsed = self.parsed(Protocol::Prepared).or_else(|_| self.parsed(Protocol::Simple))?;
        let count = parsed.scripts.get(script).map_or(0, |script| script.commands.len());
        if let Some(command) = part.command {
            require!(
                (1..=count).contains(&command),
                "a threshold is for command {command}, but the script has {count} commands"
            );
        }
        Ok(script + 1)
    }

    fn title(&self) -> String {
        let names: Vec<&str> = self.scripts.iter().map(ScriptSource::file_name).collect();
        let digest = self.digest().map_or_else(String::new, |digest| format!(" ({digest})"));
        format!("{NAME} {}{digest}", names.join(", "))
    }

    fn compared(&self) -> Self {
        let scripts = self.scripts.iter().map(|script| {
            let of_script = Self { scripts: vec![script.clone()], ..Self::default() };
            ScriptSource {
                name: script.file_name().to_owned(),
                text: script.text.as_ref().and_then(|_| of_script.digest()),
                ..script.clone()
            }
        });
        Self { scripts: scripts.collect(), report: PgbenchReport::default(), ..self.clone() }
    }

    fn warnings(&self, protocol: Protocol) -> Vec<String> {
        self.parsed(protocol).map_or_else(|_| Vec::new(), |parsed| parsed.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn script_run(text: &str) -> ScriptRun {
        let script =
            ScriptSource { name: "a.sql".to_owned(), weight: 1, text: Some(text.to_owned()) };
        ScriptRun { scripts: vec![script], ..ScriptRun::default() }
    }

    fn refusal(run: &ScriptRun, protocol: Protocol) -> String {
        let plan = Plan { work: run.clone().into(), protocol, ..Plan::default() };
        plan.validate().map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn built_in_scripts_are_found_by_the_beginning_of_their_name() {
        assert_eq!("t".parse(), Ok(Builtin::TpcbLike));
        assert_eq!("select-only".parse(), Ok(Builtin::SelectOnly));
        assert!("s".parse::<Builtin>().unwrap_err().to_string().contains("several"));
        assert!("x".parse::<Builtin>().unwrap_err().to_string().contains("tpcb-like"));
    }

    #[test]
    fn the_built_in_scripts_are_valid_with_every_protocol() {
        for builtin in Builtin::ALL {
            let scripts = vec![ScriptSource::of_builtin(builtin, 1)];
            let run = ScriptRun { scripts, ..ScriptRun::default() };
            for protocol in [Protocol::Prepared, Protocol::Extended, Protocol::Simple] {
                assert_eq!(refusal(&run, protocol), "");
            }
            let traits = run.traits();
            assert_eq!((traits.dataset, traits.writes), (Some("script"), builtin.writes()));
        }
    }

    #[test]
    fn the_title_distinguishes_scripts_by_their_texts_and_not_by_their_directories() {
        let run = script_run("select 1;");
        let title = run.title();
        assert!(title.starts_with("script a.sql (") && title.ends_with(')'), "{title}");
        let mut absolute = run.clone();
        absolute.scripts[0].name = "/home/me/a.sql".to_owned();
        assert_eq!((absolute.title(), absolute.compared()), (title.clone(), run.compared()));
        assert_ne!(script_run("select 2;").title(), title);
        assert_ne!(script_run("select 2;").compared(), run.compared());
        let mut defined = run.clone();
        defined.define.insert("x".to_owned(), "1".to_owned());
        assert_ne!(defined.title(), title);
        assert_eq!(ScriptRun::default().title(), "script tpcb-like");
        // The report is the only difference.
        let mut printed = run.clone();
        printed.report.per_command = true;
        assert_eq!(printed.compared(), run.compared());
    }

    #[test]
    fn refuses_scripts_that_always_fail() {
        let prepared = Protocol::Prepared;
        for (text, protocol, expected) in [
            ("select :x;", prepared, "a.sql:1:8: undefined variable \"x\""),
            ("\\shell ls", prepared, "a.sql:1: shell commands require --allow-shell"),
            ("select 1\\; select 2;", prepared, "require --protocol simple"),
            ("\\startpipeline\nselect 1;\n\\endpipeline", Protocol::Simple, "pipelines require"),
            ("\\set x 1 +", prepared, "a.sql:1:"),
        ] {
            let message = refusal(&script_run(text), protocol);
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert_eq!(refusal(&script_run("select 1\\; select 2;"), Protocol::Simple), "");
        let mut run = script_run("select :x;");
        run.define.insert("x".to_owned(), "1".to_owned());
        assert_eq!((refusal(&run, prepared).as_str(), run.traits().dataset), ("", None));
        run.scripts.clear();
        assert!(refusal(&run, prepared).contains("1 to 128 scripts"));
    }
}
