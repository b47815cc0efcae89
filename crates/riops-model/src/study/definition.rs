//! The definition of an experiment: plain data, complete, and stored before its first run.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::figure::CostKind;
use crate::plan::Plan;
use crate::record::{ExperimentId, Note};

/// A planned set of runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Id, a UUID of version 7.
    pub id: ExperimentId,
    /// Name, for example the name of its file.
    pub name: String,
    /// The question that it answers.
    pub description: Option<String>,
    /// When it was defined.
    pub created_at: Timestamp,
    /// Its goal.
    pub goal: Goal,
    /// The settings that differ between the cells.
    pub axes: Vec<Axis>,
    /// The combinations of the values of the axes, the last axis varying fastest.
    pub cells: Vec<Cell>,
    /// Number of runs of each cell.
    pub repeats: u32,
    /// Order of the runs.
    pub order: Order,
    /// Random seed of the order. The keys of the runs are derived from it, too.
    pub seed: u64,
    /// Actions before and between the runs.
    #[serde(default)]
    pub between: Between,
    /// How each run gets a dataset in a defined state.
    #[serde(default)]
    pub reset: Reset,
    /// Which database contains the dataset.
    #[serde(default)]
    pub database: DatabaseChoice,
    /// Time limit of the experiment, in seconds; absent: none.
    pub time_limit_s: Option<f64>,
    /// The smallest relevant effect, as a share: 0.02 is 2%.
    pub effect: f64,
    /// Number of the agents of the fleet that measures each run; absent: one client.
    pub agents: Option<u32>,
    /// Notes of users. They are stored beside the definition, which does not change.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

/// Number of runs of each cell by default: the minimum for a verdict within blocks.
pub const REPEATS: u32 = 6;
/// Smallest relevant effect by default.
pub const EFFECT: f64 = 0.02;
/// Significance level of an A/B test and of a gate by default.
pub const ALPHA: f64 = 0.05;
/// Maximum number of blocks of an A/B test by default.
pub const BLOCKS_MAX: u32 = 10;
/// The axis of variants, whose values stand for several options.
pub const VARIANT: &str = "variant";

impl Experiment {
    /// Returns a sweep over these cells, with the defaults of the command line: each is compared with the first one.
    pub fn new(name: String, axes: Vec<Axis>, cells: Vec<Cell>) -> Self {
        Self {
            id: ExperimentId::random(),
            name,
            description: None,
            created_at: Timestamp::now(),
            goal: Goal::Sweep { baseline: 0 },
            axes,
            seed: cells.first().map(|cell| cell.plan.seed).unwrap_or_default(),
            cells,
            repeats: REPEATS,
            order: Order::default(),
            between: Between::default(),
            reset: Reset::default(),
            database: DatabaseChoice::default(),
            time_limit_s: None,
            effect: EFFECT,
            agents: None,
            notes: Vec::new(),
        }
    }

    /// Returns a sweep over these plans, each with a name, on one server.
    pub fn of_plans<const N: usize>(
        name: &str,
        plans: [(&str, Plan); N],
        server: &ServerChoice,
    ) -> Self {
        let values = plans.iter().map(|(value, _)| (*value).to_owned()).collect();
        let axes = vec![Axis { name: VARIANT.to_owned(), values }];
        let cell = |(value, plan): (&str, Plan)| Cell {
            values: vec![value.to_owned()],
            plan,
            server: server.clone(),
        };
        Self::new(name.to_owned(), axes, plans.into_iter().map(cell).collect())
    }

    /// Returns an A/B test as this machine measures it: with its name, and with another order of the runs.
    #[must_use]
    pub fn on_machine(self, machine: &Machine) -> Self {
        let goal = match self.goal {
            Goal::Ab(settings) => {
                Goal::Ab(AbSettings { machine: Some(machine.clone()), ..settings })
            }
            other => other,
        };
        let seed = self.seed.wrapping_add(u64::from(machine.index) << 16);
        Self { name: machine.test_name(&self.name), seed, goal, ..self }
    }

    /// Returns the machine, if it is a test of a gate over several machines.
    pub fn machine(&self) -> Option<&Machine> {
        match &self.goal {
            Goal::Ab(settings) => settings.machine.as_ref(),
            Goal::Sweep { .. } | Goal::Saturation(_) => None,
        }
    }

    /// Whether its runs need databases that it creates.
    pub fn leaves_databases(&self) -> bool {
        self.reset == Reset::Restore || matches!(self.database, DatabaseChoice::Own(_))
    }

    /// Returns what it does on this machine besides measuring: its plans, or a server that names a program or a file.
    pub fn needs_trust(&self) -> Option<String> {
        let of_cells = self.cells.iter().find_map(|cell| {
            let server = || cell.server.named_program_or_file().map(|text| format!("uses {text}"));
            cell.plan.needs_trust().or_else(server)
        });
        let command = self.between.before.as_ref().or(self.between.after.as_ref());
        of_cells.or_else(|| command.map(|command| format!("executes \"{command}\"")))
    }
}

/// The goal of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Measures every cell, and compares the cells with one of them.
    Sweep {
        /// Index of the cell that the others are compared with.
        baseline: usize,
    },
    /// Compares two cells, and stops as soon as the result is certain.
    Ab(AbSettings),
    /// Searches the saturation point of each cell.
    Saturation(SaturationSettings),
}

impl Goal {
    /// Returns the name of the kind of experiment.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sweep { .. } => "sweep",
            Self::Ab(settings) if settings.one_sided => "gate",
            Self::Ab(_) => "ab",
            Self::Saturation(_) => "saturation",
        }
    }

    /// Returns the command of riops that conducts it.
    pub fn command(&self) -> &'static str {
        match self {
            Self::Sweep { .. } | Self::Saturation(_) => "sweep",
            Self::Ab(_) => "ab",
        }
    }
}

/// How an A/B test ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
pub struct AbSettings {
    /// Maximum number of blocks. A block is two runs of each variant.
    #[default(BLOCKS_MAX)]
    pub blocks_max: u32,
    /// Significance level of the whole test.
    #[default(ALPHA)]
    pub alpha: f64,
    /// Maximum number of runs that are repeated because they were disturbed.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub repeats_max: u32,
    /// Whether the test also ends as soon as the second variant cannot be worse by a relevant difference.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub one_sided: bool,
    /// Costs of a transaction to judge. All of them together have the significance level `alpha`, in addition to the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostKind>,
    /// The machine, if several of them measure the test. Each measures all blocks, and all of them are judged together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// A machine of a gate over several machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the gate.
    pub gate: String,
    /// Number of this machine, from 0.
    pub index: u32,
    /// Number of machines.
    pub machines: u32,
}

impl Machine {
    /// Returns the name of a test on this machine. It differs from the names on the others, so that each is found in the store.
    pub fn test_name(&self, workload: &str) -> String {
        let Self { gate, index, machines } = self;
        format!("{workload} (gate {gate}, machine {index} of {machines})")
    }

    /// Returns what the test of this machine alone does not say.
    pub(super) fn note(&self) -> String {
        let Self { gate, machines, .. } = self;
        format!("one of {machines} machines of the gate {gate}, which judges all of them together")
    }
}

/// Settings of a search for the saturation point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaturationSettings {
    /// The load that the search varies.
    pub search: Search,
    /// Lowest number of sessions; ignored by a search for a rate.
    pub first: u32,
    /// Highest number of sessions; ignored by a search for a rate.
    pub last: u32,
}

/// The load that a search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Search {
    /// The number of sessions of a closed loop.
    Sessions,
    /// The rate of an open loop.
    Rate,
}

/// An option whose values are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Long name of the option, with dashes.
    pub name: String,
    /// Its values, as typed.
    pub values: Vec<String>,
}

/// A combination of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// One value for each axis.
    pub values: Vec<String>,
    /// The plan of its runs, without what distinguishes one run from the next.
    pub plan: Plan,
    /// Its server.
    pub server: ServerChoice,
}

/// Which server a cell uses.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServerChoice {
    /// Connection URL, `key=value` string or database name, without a password; absent: the `PG*` variables or
    /// the embedded server.
    pub database: Option<String>,
    /// Settings of the embedded server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    /// Installation of the embedded server.
    pub server_dir: Option<PathBuf>,
    /// Home directory of the embedded server.
    pub server_data: Option<PathBuf>,
    /// User of the embedded server.
    pub server_user: Option<String>,
    /// Port of the embedded server.
    pub server_port: Option<u16>,
    /// Directory of downloads.
    pub cache_dir: Option<PathBuf>,
}

impl ServerChoice {
    /// Returns the first choice that names a program to execute or a directory to write, as an option.
    pub fn named_program_or_file(&self) -> Option<String> {
        let paths = [
            ("server-dir", &self.server_dir),
            ("server-data", &self.server_data),
            ("cache-dir", &self.cache_dir),
        ];
        let path = paths.into_iter().find_map(|(name, path)| {
            path.as_ref().map(|path| format!("{name}={}", path.display()))
        });
        let setting = self.settings.iter().find(|(name, _)| names_program_or_file(name));
        path.or_else(|| setting.map(|(name, value)| format!("server-set={name}={value}")))
    }
}

/// Whether a setting of the server names a program, a library or a file: `restore_command`, `archive_library`,
/// `shared_preload_libraries`, `dynamic_library_path`, `jit_provider`, `log_directory`, `ssl_key_file`.
pub fn names_program_or_file(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    let ends = [
        "_command",
        "library",
        "libraries",
        "_path",
        "provider",
        "_directory",
        "_file",
        "filename",
    ];
    ends.iter().any(|end| setting.ends_with(end))
}

/// The order of the runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Each block contains every cell once, in a random order: a change of the machine over time affects all
    /// cells alike.
    #[default]
    Interleaved,
    /// All runs of a cell, then all of the next one.
    Sequential,
}

/// Actions before every run, and between two runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Between {
    /// CHECKPOINT before every run.
    pub checkpoint: bool,
    /// VACUUM (ANALYZE) of the tables of the dataset before every run.
    pub vacuum: bool,
    /// Longest time to wait until the devices of the server are idle, before every run, in seconds; absent: no
    /// wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_device_s: Option<f64>,
    /// Pause between two runs, in seconds.
    pub cool_down_s: f64,
    /// Command of the shell before each run; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Command of the shell after each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// How each run gets a dataset in a defined state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// All runs use the same dataset.
    #[default]
    None,
    /// Each run uses a copy of the database, made with CREATE DATABASE … TEMPLATE.
    Restore,
    /// The dataset is recreated before each run.
    Prepare,
}

/// Which database contains the dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatabaseChoice {
    /// The database of the connection settings.
    #[default]
    Given,
    /// On the embedded server, a database of this name, which is created if it is missing. On other servers the
    /// database of the connection settings.
    Own(String),
}
