//! The list of workloads: what each is given to do, and on which dataset.
//!
//! This is the only place where the workloads are listed. The other layers reach the workload of a plan
//! through a trait of their own, which each parameter type implements, and [`dispatch_work`] and
//! [`dispatch_dataset`]: no layer matches on workloads.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cbc::{CbcDataset, CbcRun};
use super::error::PlanError;
use super::load::{LoadDataset, LoadRun};
use super::oltp::{OltpDataset, OltpRun};
use super::point::PointRun;
use super::rows::{RowsDataset, RowsRun};
use super::spec::{DatasetSpec, Spec, overlaid};

/// Parameters of a dataset by their names in the registry.
pub type Parameters = Map<String, Value>;

/// Hands the workloads to a macro: adding one is a line here.
macro_rules! with_works {
    ([$($then:tt)+] $($rest:tt)*) => {
        $($then)+! {
            [
                Rows(RowsRun)
                Load(LoadRun)
                Point(PointRun)
                Oltp(OltpRun)
                Cbc(CbcRun)
                Ping(crate::plan::ping::PingRun)
            ]
            $($rest)*
        }
    };
}

/// Hands the kinds of datasets to a macro.
macro_rules! with_datasets {
    ([$($then:tt)+] $($rest:tt)*) => {
        $($then)+! {
            [
                Rows(RowsDataset)
                Load(LoadDataset)
                Oltp(OltpDataset)
                Cbc(CbcDataset)
            ]
            $($rest)*
        }
    };
}

macro_rules! match_list {
    ([$($variant:ident($part:ty))*] $list:ident, $value:expr, $name:ident, $body:expr) => {
        match $value { $($crate::plan::$list::$variant($name) => $body),* }
    };
}

/// Evaluates `body` with the parameters of a [`WorkPlan`], whatever their type: a layer's one dispatch.
macro_rules! dispatch_work {
    ($work:expr, $run:ident => $body:expr) => {
        $crate::plan::work::with_works! {
            [$crate::plan::work::match_list] WorkPlan, $work, $run, $body
        }
    };
}

/// The same for a [`DatasetPlan`].
macro_rules! dispatch_dataset {
    ($dataset:expr, $part:ident => $body:expr) => {
        $crate::plan::work::with_datasets! {
            [$crate::plan::work::match_list] DatasetPlan, $dataset, $part, $body
        }
    };
}

macro_rules! defaults {
    ([$($variant:ident($part:ty))*]) => { [$(Self::$variant(<$part>::default())),*] };
}

macro_rules! list {
    ([$($variant:ident($part:ty))*] $(#[$meta:meta])* $list:ident: $trait:ident as $method:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each holds the parameters of the workload of its name")]
        pub enum $list { $($variant($part)),* }

        impl $list {
            /// The names of all of them, as in JSON.
            #[must_use]
            pub fn names() -> Vec<String> {
                [$(stringify!($variant)),*].map(str::to_lowercase).into()
            }

            /// What it says of itself.
            #[must_use]
            pub fn $method(&self) -> &dyn $trait {
                match self { $(Self::$variant(part) => part),* }
            }

            /// The parameters, where they are those of this workload.
            #[must_use]
            pub fn get<T: Member<Self>>(&self) -> Option<&T> {
                T::of(self)
            }
        }

        $(
            impl From<$part> for $list {
                fn from(part: $part) -> Self {
                    Self::$variant(part)
                }
            }

            impl Member<$list> for $part {
                fn of(list: &$list) -> Option<&Self> {
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
    /// What each stage does, in the order in which they run.
    #[must_use]
    pub fn stages(&self) -> Vec<Self> {
        dispatch_work!(self, run => run.stages().into_iter().map(Self::from).collect())
    }

    /// The same for a run that repeats this one: what that has found out by itself is given.
    #[must_use]
    pub fn repeated(&self) -> Self {
        dispatch_work!(self, run => run.repeated().into())
    }
}

impl DatasetPlan {
    /// The dataset of this name in the registry, with its defaults.
    #[must_use]
    pub fn default_of(name: &str) -> Option<Self> {
        let all = with_datasets! { [defaults] };
        all.into_iter().find(|dataset| dataset.spec().name() == name)
    }

    /// The dataset of this name in the registry, with the parameters of its entry there.
    ///
    /// # Errors
    /// [`PlanError`] where they are not those of such a dataset.
    pub fn of_parameters(name: &str, parameters: Value) -> Result<Self, PlanError> {
        let unknown = || PlanError(format!("there is no dataset called {name}"));
        let dataset = Self::default_of(name).ok_or_else(unknown)?;
        let read = |error: serde_json::Error| PlanError(format!("the dataset of {name}: {error}"));
        dispatch_dataset!(&dataset, known => {
            same_type(known, serde_json::from_value(parameters)).map(Self::from).map_err(read)
        })
    }

    /// The same dataset with the given parameters in the place of its own.
    ///
    /// # Errors
    /// [`PlanError`] where a parameter is unknown or has another type.
    pub fn with(&self, given: &Parameters) -> Result<Self, PlanError> {
        dispatch_dataset!(self, dataset => overlaid(dataset, given).map(Self::from))
    }

    /// Its parameters, by their names in the registry.
    #[must_use]
    pub fn parameters(&self) -> Value {
        dispatch_dataset!(self, dataset => serde_json::to_value(dataset).unwrap_or_default())
    }
}

/// Lets the compiler find the type of `value`.
fn same_type<T, E>(_: &T, value: Result<T, E>) -> Result<T, E> {
    value
}

/// The parameters of one workload among those of all.
pub trait Member<List>: Sized {
    /// Those of the list's value, where they are of this type.
    fn of(list: &List) -> Option<&Self>;
}

with_works! { [list]
    /// What the sessions of a run do: in a record under the name of the workload.
    WorkPlan: Spec as spec
}

with_datasets! { [list]
    /// What was prepared: in a record under the name of its workload.
    DatasetPlan: DatasetSpec as spec
}

pub(crate) use {dispatch_dataset, dispatch_work, match_list, with_datasets, with_works};
