//! The part of a dataset that a run uses: its first tables, and the first rows of each.

use serde_json::Value;

use super::error::{PlanError, at_least_one, refuse};
use super::run::Plan;
use super::work::{DatasetPlan, Parameters};

impl DatasetPlan {
    /// Returns this dataset with the sizes of a part of it.
    ///
    /// # Errors
    /// [`PlanError`] if the part is larger than the dataset.
    pub fn part(&self, part: &Parameters) -> Result<Self, PlanError> {
        for (name, wanted) in part {
            let Some((available, wanted)) = self.size(name).zip(wanted.as_u64()) else {
                return refuse(format!("the part of a dataset has no size \"{name}\""));
            };
            let option = option(name);
            require!(
                wanted <= available,
                "{option} {wanted} exceeds the {available} of the dataset"
            );
        }
        self.with(part)
    }

    /// Returns the share of `dataset` that this part of it has, from 0 to 1.
    pub fn share_of(&self, dataset: &Self) -> f64 {
        let share = |name: &&str| Some(self.size(name)? as f64 / dataset.size(name)? as f64);
        self.traits().scale.iter().filter_map(share).product()
    }

    /// Returns the value of a parameter that may be smaller in a run than in the dataset.
    fn size(&self, name: &str) -> Option<u64> {
        let is_size = self.traits().scale.contains(&name);
        self.parameters().get(name).and_then(Value::as_u64).filter(|_| is_size)
    }
}

impl Plan {
    /// Requires a dataset with the sizes of `existing`: a larger one is not used in part.
    pub fn require_sizes_of(&mut self, existing: &DatasetPlan) {
        if self.work.traits().replaces_its_table {
            return;
        }
        for name in existing.traits().scale {
            if let Some(size) = existing.size(name) {
                self.part.entry(*name).or_insert(size.into());
            }
        }
    }

    /// Uses a part of `existing` if the plan requires a smaller dataset and has no part yet. Removes a size of the
    /// part that equals the size of the dataset.
    pub fn use_part_of(&mut self, existing: &DatasetPlan) {
        for name in existing.traits().scale {
            let Some(total) = existing.size(name) else {
                continue;
            };
            let size = |given: &Parameters| given.get(*name).and_then(Value::as_u64);
            match (size(&self.part), size(&self.dataset)) {
                (Some(part), required)
                    if part == total && required.is_none_or(|it| it == total) =>
                {
                    self.part.remove(*name);
                }
                (None, Some(required)) if required < total => {
                    self.part.insert((*name).to_owned(), required.into());
                    self.dataset.insert((*name).to_owned(), total.into());
                }
                _ => {}
            }
        }
    }

    pub(super) fn validate_part(&self) -> Result<(), PlanError> {
        if self.part.is_empty() {
            return Ok(());
        }
        let traits = self.work.traits();
        let dataset = traits.dataset.and_then(DatasetPlan::default_of);
        let Some(dataset) = dataset.filter(|_| !traits.replaces_its_table) else {
            return refuse(format!("the workload {} uses no part of a dataset", traits.name));
        };
        for (name, value) in &self.part {
            require!(dataset.size(name).is_some(), "the part of a dataset has no size \"{name}\"");
            at_least_one(&option(name), value.as_u64().unwrap_or(0))?;
        }
        Ok(())
    }
}

fn option(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CbcRun, LoadRun, OltpDataset, OltpRun};

    fn dataset() -> DatasetPlan {
        OltpDataset { tables: 10, table_size: 1_000, ..OltpDataset::default() }.into()
    }

    fn sizes(sizes: &[(&str, u64)]) -> Parameters {
        sizes.iter().map(|(name, size)| ((*name).to_owned(), (*size).into())).collect()
    }

    #[test]
    fn smaller_sizes_become_a_part_of_the_dataset() {
        let mut plan = Plan {
            work: OltpRun::default().into(),
            dataset: sizes(&[("tables", 10), ("table_size", 50)]),
            ..Plan::default()
        };
        plan.use_part_of(&dataset());
        assert_eq!(plan.part, sizes(&[("table_size", 50)]));
        assert_eq!(plan.dataset, sizes(&[("tables", 10), ("table_size", 1_000)]));
        assert_eq!(plan.validate(), Ok(()));
        let used = dataset().part(&plan.part).unwrap();
        assert!((used.share_of(&dataset()) - 0.05).abs() < 1e-12);
        // A larger size stays a requirement, which the dataset does not meet.
        plan.dataset = sizes(&[("tables", 11)]);
        plan.use_part_of(&dataset());
        assert_eq!(plan.dataset, sizes(&[("tables", 11)]));
    }

    #[test]
    fn a_plan_can_require_the_sizes_of_a_dataset() {
        let full_sizes = sizes(&[("tables", 10), ("table_size", 1_000)]);
        let mut plan = Plan {
            work: OltpRun::default().into(),
            dataset: full_sizes.clone(),
            ..Plan::default()
        };
        plan.require_sizes_of(&dataset());
        let mut on_larger = plan.clone();
        let larger = OltpDataset { tables: 20, table_size: 1_000, ..OltpDataset::default() };
        on_larger.use_part_of(&larger.into());
        assert_eq!(on_larger.dataset, full_sizes);
        plan.use_part_of(&dataset());
        assert_eq!((plan.dataset, plan.part), (full_sizes, Parameters::new()));
    }

    #[test]
    fn a_part_is_neither_larger_than_the_dataset_nor_empty() {
        let too_large = dataset().part(&sizes(&[("table_size", 1_001)])).unwrap_err().to_string();
        assert_eq!(too_large, "--table-size 1001 exceeds the 1000 of the dataset");
        let refused = |part: Parameters, plan: Plan| {
            Plan { part, ..plan }.validate().unwrap_err().to_string()
        };
        let oltp = || Plan { work: OltpRun::default().into(), ..Plan::default() };
        assert!(refused(sizes(&[("tables", 0)]), oltp()).contains("--tables must be at least 1"));
        assert!(refused(sizes(&[("seed", 1)]), oltp()).contains("no size \"seed\""));
        let rows = || sizes(&[("rows", 1)]);
        let load = LoadRun::default();
        let stop = crate::plan::Stop::Rows(crate::plan::LoadDataset::default().rows);
        let loading = Plan { work: load.into(), warmup_s: 0.0, stop, ..Plan::default() };
        assert!(refused(rows(), loading).contains("uses no part"));
        let cbc = CbcRun::default();
        let stop = crate::plan::Stop::DurationS(cbc.query_duration_s);
        let cbc = Plan { work: cbc.into(), warmup_s: 0.0, stop, ..Plan::default() };
        assert!(refused(rows(), cbc).contains("part"));
    }
}
