//! The ledger in the database, `riops.run`: the runs that changed a dataset, and how many rows they changed.

use super::error::DatasetError;
use super::registry::{Registry, row_of_numbers};
use crate::workload::check::Ledger;
use crate::workload::transaction::Effects;

/// The changes of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows with acknowledged changes.
    pub rows: u64,
    /// Maximum number of additional rows that may have changed (unknown outcome).
    pub rows_unknown: u64,
    /// Effects of acknowledged changes, for workloads that count effects.
    pub effects: Effects,
    /// Maximum additional effects of changes with an unknown outcome.
    pub effects_unknown: Effects,
}

impl Changes {
    /// Returns the sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            rows_unknown: self.rows_unknown + other.rows_unknown,
            effects: self.effects.and(other.effects),
            effects_unknown: self.effects_unknown.and(other.effects_unknown),
        }
    }
}

impl Registry<'_> {
    /// Enters a run before it changes rows.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn begin_run(&mut self, run: &str, dataset: &str) -> Result<(), DatasetError> {
        self.connection().query_with(
            "insert into riops.run (id, dataset) values ($1, $2)",
            &[Some(run), Some(dataset)],
        )?;
        Ok(())
    }

    /// Enters the changes of a run and closes its entry.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn end_run(&mut self, run: &str, changes: &Changes) -> Result<(), DatasetError> {
        if !changes.effects.is_none() || !changes.effects_unknown.is_none() {
            let both = [changes.effects, changes.effects_unknown];
            let effects = serde_json::to_string(&both).unwrap_or_default();
            self.connection().query_with(
                "update riops.run set effects = $2 where id = $1",
                &[Some(run), Some(&effects)],
            )?;
        }
        // Last, because this closes the entry.
        self.connection().query_with(
            "update riops.run set ended_at = now(), rows_changed = $2::bigint, rows_unknown = $3::bigint where id = $1",
            &[Some(run), Some(&changes.rows.to_string()), Some(&changes.rows_unknown.to_string())],
        )?;
        Ok(())
    }

    /// Deletes the entry of a run whose changes are the dataset itself: its load.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn forget_run(&mut self, run: &str) -> Result<(), DatasetError> {
        self.connection().query_with("delete from riops.run where id = $1", &[Some(run)])?;
        Ok(())
    }

    /// Returns the ids of the runs on a dataset that have not reported their changes.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn open_runs(&mut self, dataset: &str) -> Result<Vec<String>, DatasetError> {
        let rows = self.connection().query_with(
            "select id from riops.run where dataset = $1 and ended_at is null",
            &[Some(dataset)],
        )?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }

    /// Returns the sum of the changes of all runs on a dataset.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails or an entry is invalid.
    pub fn history(&mut self, dataset: &str) -> Result<Ledger, DatasetError> {
        let rows = self.connection().query_with(
            "select coalesce(sum(rows_changed), 0), coalesce(sum(rows_unknown), 0),
                    count(*) filter (where ended_at is null)
               from riops.run where dataset = $1",
            &[Some(dataset)],
        )?;
        let numbers = rows.first().map(|row| row_of_numbers(row)).transpose()?.unwrap_or_default();
        let damaged = || DatasetError::Damaged("invalid counts in table \"riops.run\"".to_owned());
        let [rows_changed, rows_unknown, open_runs] = *numbers.as_slice() else {
            return Err(damaged());
        };
        let mut ledger = Ledger {
            rows_changed,
            rows_unknown,
            open_runs: u64::try_from(open_runs).unwrap_or(0),
            ..Ledger::default()
        };
        // Older versions of riops created the table without this column.
        let rows = self.connection().query_with(
            "select to_jsonb(run) ->> 'effects' from riops.run as run
              where dataset = $1 and to_jsonb(run) ->> 'effects' is not null",
            &[Some(dataset)],
        )?;
        for text in rows.into_iter().flatten().flatten() {
            let [done, unknown]: [Effects; 2] =
                serde_json::from_str(&text).map_err(|_| damaged())?;
            ledger.effects = ledger.effects.and(done);
            ledger.effects_unknown = ledger.effects_unknown.and(unknown);
        }
        Ok(ledger)
    }
}
