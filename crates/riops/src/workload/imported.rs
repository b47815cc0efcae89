//! `imported`: the results of another tool. They have no statements that riops could repeat.

use super::{Build, BuildFor, Workload};
use crate::plan::{ImportedRun, PlanError};

impl Build for ImportedRun {
    fn build(&self, _: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        Err(PlanError("an imported run cannot be executed".to_owned()))
    }
}
