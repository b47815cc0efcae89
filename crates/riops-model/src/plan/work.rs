//! The list of workloads and their datasets.
//!
//! This is the only list of workloads. Every other layer defines a trait that each parameter type implements,
//! and calls it through [`dispatch_work`] and [`dispatch_dataset`]: no layer matches on workloads.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cbc::{CbcDataset, CbcRun};
use super::error::PlanError;
use super::load::{LoadDataset, LoadRun};
use super::oltp::{OltpDataset, OltpRun};
use super::point::PointRun;
use super::rows::{RowsDataset, RowsRun};
use super::spec::{DatasetSpec, DatasetTraits, Spec, Traits, overlaid};

/// Parameters of a dataset, by their names in the registry.
pub type Parameters = Map<String, Value>;

/// Passes the list of workloads to a macro. A new workload is one line here.
#[macro_export]
macro_rules! with_works {
    ([$($then:tt)+] $($rest:tt)*) => {
        $($then)+! {
            [
                Rows(RowsRun)
                Load(LoadRun)
                Point(PointRun)
                Oltp(OltpRun)
                Cbc(CbcRun)
                Ping($crate::plan::ping::PingRun)
                Script($crate::plan::script::ScriptRun)
                Observe($crate::plan::observe::ObserveRun)
                Imported($crate::plan::imported::ImportedRun)
            ]
            $($rest)*
        }
    };
}

/// Passes the list of dataset types to a macro.
#[macro_export]
macro_rules! with_datasets {
    ([$($then:tt)+] $($rest:tt)*) => {
        $($then)+! {
            [
                Rows(RowsDataset)
                Load(LoadDataset)
                Oltp(OltpDataset)
                Cbc(CbcDataset)
                Script($crate::plan::script::ScriptDataset)
            ]
            $($rest)*
        }
    };
}

/// Evaluates an expression with the parameters of a value, whatever their type.
#[macro_export]
macro_rules! match_list {
    ([$($variant:ident($part:ty))*] $list:ident, $value:expr, $name:ident, $body:expr) => {
        match $value { $($crate::plan::$list::$variant($name) => $body),* }
    };
}

/// Evaluates `body` with the parameters of a [`WorkPlan`], whatever their type: the only dispatch of a layer.
#[macro_export]
macro_rules! dispatch_work {
    ($work:expr, $run:ident => $body:expr) => {
        $crate::with_works! {
            [$crate::match_list] WorkPlan, $work, $run, $body
        }
    };
}

/// Evaluates `body` with the parameters of a [`DatasetPlan`], whatever their type.
#[macro_export]
macro_rules! dispatch_dataset {
    ($dataset:expr, $part:ident => $body:expr) => {
        $crate::with_datasets! {
            [$crate::match_list] DatasetPlan, $dataset, $part, $body
        }
    };
}

macro_rules! list {
    ([$($variant:ident($part:ty))*] $(#[$meta:meta])* $list:ident: $trait:ident, $traits:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each variant holds the parameters of the workload with its name")]
        pub enum $list { $($variant($part)),* }

        impl $list {
            /// Returns all names, as in JSON.
            pub fn names() -> Vec<String> {
                [$(stringify!($variant)),*].map(str::to_lowercase).into()
            }

            /// Returns each variant, with default parameters.
            fn defaults() -> [Self; [$(stringify!($variant)),*].len()] {
                [$(Self::$variant(<$part>::default())),*]
            }

            /// Returns the variant with this name, with default parameters.
            pub fn default_of(name: &str) -> Option<Self> {
                Self::defaults().into_iter().find(|member| member.traits().name == name)
            }

            /// Returns the parameters as a trait object.
            pub fn spec(&self) -> &dyn $trait {
                match self { $(Self::$variant(part) => part),* }
            }

            /// Returns what generic code needs to know about the parameters.
            pub fn traits(&self) -> $traits {
                self.spec().traits()
            }

            /// Returns the parameters if they are of type `T`.
            pub fn get<T: Member<Self>>(&self) -> Option<&T> {
                T::find_in(self)
            }
        }

        $(
            impl From<$part> for $list {
                fn from(part: $part) -> Self {
                    Self::$variant(part)
                }
            }

            impl Member<$list> for $part {
                fn find_in(list: &$list) -> Option<&Self> {
                    match list {
                        $list::$variant(part) => Some(part),
                        #[allow(unreachable_patterns, reason = "a list may have one entry")]
                        _ => None,
                    }
                }
            }
        )*
    };
}

impl WorkPlan {
    /// Returns the work of each stage, in execution order.
    pub fn stages(&self) -> Vec<Self> {
        dispatch_work!(self, run => run.stages().into_iter().map(Self::from).collect())
    }

    /// Returns the names of the workloads that can be executed.
    pub fn executable_names() -> Vec<String> {
        let traits = Self::defaults().map(|work| work.traits()).into_iter();
        traits.filter(|traits| !traits.is_imported).map(|traits| traits.name.to_owned()).collect()
    }

    /// Returns the work for a rerun, with everything that this run determined automatically set explicitly.
    pub fn repeated(&self) -> Self {
        dispatch_work!(self, run => run.repeated().into())
    }

    /// Returns the work as comparisons see it.
    pub fn compared(&self) -> Self {
        dispatch_work!(self, run => run.compared().into())
    }

    /// Whether it has the default parameters of its workload.
    pub fn is_default(&self) -> bool {
        dispatch_work!(self, run => crate::units::is_default(run))
    }
}

impl DatasetPlan {
    /// Returns the dataset with this name in the registry, with the parameters of its entry.
    ///
    /// # Errors
    /// [`PlanError`] if the dataset is unknown or the parameters do not belong to it.
    pub fn of_parameters(name: &str, parameters: Value) -> Result<Self, PlanError> {
        require!(Self::default_of(name).is_some(), "unknown dataset \"{name}\"");
        serde_json::from_value(Value::from_iter([(name, parameters)])).map_err(|error| {
            PlanError(format!("invalid parameters of dataset \"{name}\": {error}"))
        })
    }

    /// Returns this dataset with the given parameters replacing its own.
    ///
    /// # Errors
    /// [`PlanError`] if a parameter is unknown or has another type.
    pub fn with(&self, given: &Parameters) -> Result<Self, PlanError> {
        dispatch_dataset!(self, dataset => overlaid(dataset, given).map(Self::from))
    }

    /// Returns the parameters, by their names in the registry.
    pub fn parameters(&self) -> Value {
        dispatch_dataset!(self, dataset => serde_json::to_value(dataset).unwrap_or_default())
    }
}

/// The parameters of one workload or dataset, as a member of the list of all.
pub trait Member<List>: Sized {
    /// Returns the parameters in `list` if they are of this type.
    fn find_in(list: &List) -> Option<&Self>;
}

with_works! { [list]
    /// The work of a run's sessions. In a record, the key is the name of the workload.
    WorkPlan: Spec, Traits
}

with_datasets! { [list]
    /// The parameters of a dataset. In a record, the key is the name of its workload.
    DatasetPlan: DatasetSpec, DatasetTraits
}
