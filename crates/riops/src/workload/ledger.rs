//! The ledger in the target, `riops.run`: which runs changed a dataset, and how many rows of it.

use super::dataset::{DatasetError, Registry, row_of_numbers};

impl Registry<'_> {
    /// Notes that a run is about to change rows.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn begin_run(&mut self, run: &str, dataset: &str) -> Result<(), DatasetError> {
        self.connection().query_with(
            "insert into riops.run (id, dataset) values ($1, $2)",
            &[Some(run), Some(dataset)],
        )?;
        Ok(())
    }

    /// Notes what a run changed: `changed` rows acknowledged, up to `unknown` more.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn end_run(&mut self, run: &str, changed: u64, unknown: u64) -> Result<(), DatasetError> {
        self.connection().query_with(
            "update riops.run set ended_at = now(), rows_changed = $2::bigint, rows_unknown = $3::bigint where id = $1",
            &[Some(run), Some(&changed.to_string()), Some(&unknown.to_string())],
        )?;
        Ok(())
    }

    /// Forgets a run whose changes are part of the dataset itself: its load.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn forget_run(&mut self, run: &str) -> Result<(), DatasetError> {
        self.connection().query_with("delete from riops.run where id = $1", &[Some(run)])?;
        Ok(())
    }

    /// Ids of the runs on a dataset that never reported.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn open_runs(&mut self, dataset: &str) -> Result<Vec<String>, DatasetError> {
        let rows = self.connection().query_with(
            "select id from riops.run where dataset = $1 and ended_at is null",
            &[Some(dataset)],
        )?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }

    /// Acknowledged rows, unknown rows, and runs that never reported, over all runs on a dataset.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn history(&mut self, dataset: &str) -> Result<(i128, i128, u64), DatasetError> {
        let rows = self.connection().query_with(
            "select coalesce(sum(rows_changed), 0), coalesce(sum(rows_unknown), 0),
                    count(*) filter (where ended_at is null)
               from riops.run where dataset = $1",
            &[Some(dataset)],
        )?;
        let numbers = rows.first().map(|row| row_of_numbers(row)).transpose()?.unwrap_or_default();
        match *numbers.as_slice() {
            [changed, unknown, open] => Ok((changed, unknown, u64::try_from(open).unwrap_or(0))),
            _ => Err(DatasetError::Damaged("riops.run cannot be summed".to_owned())),
        }
    }
}
