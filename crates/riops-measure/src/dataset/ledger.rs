//! The ledger in the database, `riops.run`: the runs that changed a dataset, and what they changed; and the comparison of
//! these changes with the contents of the database.

use serde::{Deserialize, Serialize};

use super::catalog::change;
use super::error::{DatasetError, Result};
use super::registry::{Entry, Registry, State};
use crate::server::{ConnectionError, Feature};
use crate::workload::Workload;
use crate::workload::check::Ledger;
use crate::workload::effects::{EffectsByTable, UNATTRIBUTED};
use crate::workload::unknown::{Resolution, Unknown};
use riops_model::record::{Check, Effects};

/// Columns that the registries of older versions of riops lack.
const LATER_COLUMNS: [(&str, &str); 3] =
    [("riops.run", "effects"), ("riops.run", "changes"), ("riops.dataset", "fresh")];

/// The changes of one run. As JSON, what the column `changes` contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// Rows with acknowledged changes, or with changes that are proved by the rows.
    #[serde(skip)]
    pub rows: u64,
    /// Maximum number of additional rows that may have changed (unknown outcome).
    #[serde(skip)]
    pub rows_unknown: u64,
    /// Effects of these changes, for workloads that count effects.
    pub effects: EffectsByTable,
    /// Maximum additional effects of changes with an unknown outcome.
    pub effects_unknown: EffectsByTable,
    /// First and last id of the batches of a load with an unknown outcome, as far as they are known.
    pub batches_unknown: Vec<(i64, i64)>,
}

impl Changes {
    /// Adds the changes of another stage.
    pub fn add(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.rows_unknown = self.rows_unknown.saturating_add(other.rows_unknown);
        self.effects.merge(&other.effects);
        self.effects_unknown.merge(&other.effects_unknown);
        self.batches_unknown.extend(other.batches_unknown);
    }

    /// Moves a transaction whose outcome was found in the database out of those with an unknown outcome.
    /// With `counts_rows`, the rows of its operation are counted.
    pub fn resolve(&mut self, transaction: &Unknown, outcome: Resolution, counts_rows: bool) {
        if outcome == Resolution::Unresolved {
            return;
        }
        let rows = if counts_rows { transaction.rows } else { 0 };
        self.rows_unknown = self.rows_unknown.saturating_sub(rows);
        self.effects_unknown.remove(&transaction.effects);
        if outcome == Resolution::Applied {
            self.rows += rows;
            self.effects.add(&transaction.effects);
        }
    }
}

impl Registry<'_> {
    /// Enters a run before it changes rows.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn begin_run(&mut self, run: &str, dataset: &str) -> Result<()> {
        match self.add_later_columns() {
            // The role does not own the registry. The run is then stored without its tables.
            Ok(()) | Err(DatasetError::Connection(ConnectionError::Server(_))) => {}
            Err(error) => return Err(error),
        }
        let sql = "insert into riops.run (id, dataset) values ($1, $2)";
        self.connection.query_with(sql, &[Some(run), Some(dataset)])?;
        Ok(())
    }

    /// Adds the columns that registries of older versions of riops lack.
    pub(super) fn add_later_columns(&mut self) -> Result<()> {
        for (table, column) in LATER_COLUMNS {
            if !self.has_column(table, column)? {
                let sql = format!("alter table {table} add column if not exists {column} text");
                change(self.connection, &sql)?;
            }
        }
        Ok(())
    }

    fn has_column(&mut self, table: &str, column: &str) -> Result<bool> {
        let sql = "select 1 from pg_attribute
                    where attrelid = $1::text::regclass and attname = $2 and not attisdropped";
        Ok(!self.connection.query_with(sql, &[Some(table), Some(column)])?.is_empty())
    }

    /// Enters the changes of a run and closes its entry.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn end_run(&mut self, run: &str, changes: &Changes) -> Result<()> {
        let totals = [changes.effects.total(), changes.effects_unknown.total()];
        // Older versions of riops read only the totals.
        let columns = [
            ("effects", serde_json::to_string(&totals).unwrap_or_default()),
            ("changes", serde_json::to_string(changes).unwrap_or_default()),
        ];
        for (column, json) in columns {
            let is_needed = !totals.iter().all(Effects::is_none) || column == "changes";
            if is_needed && self.has_column("riops.run", column)? {
                let sql = format!("update riops.run set {column} = $2 where id = $1");
                self.connection.query_with(&sql, &[Some(run), Some(&json)])?;
            }
        }
        // Last, because this closes the entry.
        self.connection.query_with(
            "update riops.run set ended_at = now(), rows_changed = $2::bigint, rows_unknown = $3::bigint where id = $1",
            &[Some(run), Some(&changes.rows.to_string()), Some(&changes.rows_unknown.to_string())],
        )?;
        Ok(())
    }

    /// Deletes the entries of all runs on a dataset: of its load, by one client or several, whose changes are the dataset itself.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn forget_runs_on(&mut self, dataset: &str) -> Result<()> {
        let sql = "delete from riops.run where dataset = $1";
        self.connection.query_with(sql, &[Some(dataset)])?;
        Ok(())
    }

    /// Returns the ids of the runs on a dataset that have not reported their changes.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn open_runs(&mut self, dataset: &str) -> Result<Vec<String>> {
        let sql = "select id from riops.run where dataset = $1 and ended_at is null";
        let rows = self.connection.query_with(sql, &[Some(dataset)])?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// Returns whether no other run may have changed the dataset since this run began.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn is_only_writer(&mut self, run: &str, dataset: &str) -> Result<bool> {
        let others = self.connection.query_with(
            "select 1 from riops.run as other
              where dataset = $1 and id <> $2
                and (ended_at is null
                     or ended_at >= (select started_at from riops.run where id = $2))",
            &[Some(dataset), Some(run)],
        )?;
        Ok(others.is_empty())
    }

    /// Returns the sum of the changes of all runs on a dataset.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails or an entry is invalid.
    pub fn history(&mut self, dataset: &str) -> Result<Ledger> {
        // Registries of older versions of riops lack columns.
        let rows = self.connection.query_with(
            "select coalesce(rows_changed, 0), coalesce(rows_unknown, 0), ended_at is null,
                    to_jsonb(run) ->> 'changes', to_jsonb(run) ->> 'effects'
               from riops.run as run where dataset = $1",
            &[Some(dataset)],
        )?;
        let mut ledger = Ledger::default();
        for row in rows {
            let entry: Result<[Option<String>; 5], _> = row.try_into();
            let added = entry.ok().and_then(|entry| add_entry(&mut ledger, &entry));
            added.ok_or_else(|| {
                DatasetError::Damaged("invalid counts in table \"riops.run\"".to_owned())
            })?;
        }
        Ok(ledger)
    }
}

/// Reads the data and compares them with all changes acknowledged since the load.
///
/// # Errors
/// [`DatasetError`] if the data cannot be read, or if an incomplete dataset cannot be verified.
pub fn verify(
    registry: &mut Registry<'_>,
    workload: &dyn Workload,
    entry: &Entry,
) -> Result<Vec<Check>> {
    // One snapshot of data and ledger, so that runs of other riops processes do not interfere: a run that
    // is open in the snapshot may have changed more rows, a closed one has changed exactly what it
    // reported.
    registry.connection().execute("begin isolation level repeatable read, read only")?;
    let ledger = registry.history(&entry.id)?;
    let mut queries = workload.contents_sql();
    queries.extend(workload.ledger_sql(&ledger));
    let contents = contents_without_locks(registry, &queries)?;
    registry.connection().execute("commit")?;
    Ok(match entry.state {
        State::Complete => workload.checks(&contents, &entry.baseline, &ledger),
        State::Loading => workload
            .checks_of_incomplete_load(&contents, &ledger)
            .ok_or(DatasetError::Incomplete(registry.workload))?,
    })
}

/// Runs the contents queries of the workload in a transaction. Its snapshot remains, but the locks of each query are released:
/// many tables would need more than the server has.
fn contents_without_locks(
    registry: &mut Registry<'_>,
    queries: &[String],
) -> Result<Vec<Vec<i128>>> {
    if !registry.connection().dialect().has(Feature::Heap) {
        return registry.contents(queries);
    }
    registry.connection().execute("savepoint unlocked")?;
    let mut contents = Vec::new();
    for query in queries {
        contents.extend(registry.contents(std::slice::from_ref(query))?);
        registry.connection().execute("rollback to unlocked")?;
    }
    Ok(contents)
}

/// Adds the entry of a run: the rows changed and unknown, whether it is open, and the changes and effects as
/// JSON. Returns `None` if it is invalid.
fn add_entry(ledger: &mut Ledger, entry: &[Option<String>; 5]) -> Option<()> {
    let [rows, unknown, open, changes, effects] = entry;
    let rows: u64 = rows.as_ref()?.parse().ok()?;
    let unknown: u64 = unknown.as_ref()?.parse().ok()?;
    ledger.rows_changed += i128::from(rows);
    ledger.rows_unknown += i128::from(unknown);
    ledger.open_runs += u64::from(open.as_deref() == Some("t"));
    if let Some(changes) = changes {
        let stored: Changes = serde_json::from_str(changes).ok()?;
        ledger.effects.merge(&stored.effects);
        ledger.effects_unknown.merge(&stored.effects_unknown);
        ledger.batches_unknown.extend(stored.batches_unknown);
        return Some(());
    }
    // Older versions stored the effects on all tables together, or only the number of increments.
    let increments = |added| Effects { added, ..Effects::default() };
    let [done, in_doubt]: [Effects; 2] = match effects {
        Some(effects) => serde_json::from_str(effects).ok()?,
        None => [increments(rows), increments(unknown)],
    };
    ledger.effects.add_to(UNATTRIBUTED, done);
    ledger.effects_unknown.add_to(UNATTRIBUTED, in_doubt);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::effects::TransactionEffects;
    use crate::workload::unknown::TransactionId;

    fn added(added: u64) -> Effects {
        Effects { added, ..Effects::default() }
    }

    fn entry(values: [&str; 3], changes: Option<&str>, effects: Option<&str>) -> Option<Ledger> {
        let [rows, unknown, open] = values.map(|value| Some(value.to_owned()));
        let json = |text: Option<&str>| text.map(str::to_owned);
        let mut ledger = Ledger::default();
        add_entry(&mut ledger, &[rows, unknown, open, json(changes), json(effects)])?;
        Some(ledger)
    }

    #[test]
    fn reads_the_entries_of_every_version() {
        let changes = r#"{"effects":{"2":{"added":7}},"effects_unknown":{"1":{"added":3}},"batches_unknown":[[10,19]]}"#;
        let now = entry(["7", "3", "f"], Some(changes), None).unwrap();
        assert_eq!(
            (now.effects.on_table(2), now.effects_unknown.on_table(1)),
            (added(7), added(3))
        );
        assert_eq!((now.batches_unknown, now.open_runs), (vec![(10, 19)], 0));
        let effects = r#"[{"inserted":1,"added":7},{}]"#;
        let second = entry(["0", "0", "t"], None, Some(effects)).unwrap();
        assert_eq!((second.effects.on_table(UNATTRIBUTED).inserted, second.open_runs), (1, 1));
        let first = entry(["5", "2", "f"], None, None).unwrap();
        assert_eq!(first.effects.on_table(UNATTRIBUTED), added(5));
        assert_eq!(first.effects_unknown.on_table(UNATTRIBUTED), added(2));
        assert_eq!(entry(["-1", "0", "f"], None, None), None);
        assert_eq!(entry(["1", "0", "f"], Some("no JSON"), None), None);
    }

    #[test]
    fn resolved_transactions_leave_the_unknown_changes() {
        let transaction = Unknown {
            origin: TransactionId { stage: 0, session: 0, position: 0, step: None },
            operation: 1,
            rows: 10,
            effects: TransactionEffects::on_table(2, added(10)),
            has_exact_effects: true,
            marks: Vec::new(),
        };
        let before = || {
            let mut changes = Changes { rows: 100, rows_unknown: 30, ..Changes::default() };
            changes.effects_unknown.add_to(2, added(30));
            changes
        };
        let after = |outcome| {
            let mut changes = before();
            changes.resolve(&transaction, outcome, true);
            (
                changes.rows,
                changes.rows_unknown,
                changes.effects.on_table(2),
                changes.effects_unknown.on_table(2),
            )
        };
        assert_eq!(after(Resolution::Applied), (110, 20, added(10), added(20)));
        assert_eq!(after(Resolution::NotApplied), (100, 20, added(0), added(20)));
        assert_eq!(after(Resolution::Unresolved), (100, 30, added(0), added(30)));
    }
}
