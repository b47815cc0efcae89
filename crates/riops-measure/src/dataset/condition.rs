//! The state of a dataset: size, dead rows and physical order, directly after its preparation and before each run.
//!
//! Updates move rows. PostgreSQL's own `pg_stats.correlation` describes the order at the last ANALYZE, and ANALYZE
//! would change what is measured. So the rows of a few hundred keys are located through the index. This reads as
//! many blocks of the table, which a run with the caches as found then has in shared buffers.

use super::catalog::unless_refused;
use super::error::Result;
use super::registry::{Registry, parsed};
use crate::server::{Connection, ConnectionError};
use crate::workload::keys::GOLDEN_GAMMA;
use crate::workload::{KeyColumn, Workload, fill};
use riops_model::record::{ConditionRecord, FreshCondition};

const STATE: &str = include_str!("../../sql/dataset/condition.sql");
const SAMPLE: &str = include_str!("../../sql/dataset/order_sample.sql");
const SETTINGS: &str = include_str!("../../sql/dataset/order_settings.sql");

/// Number of sampled keys over all tables. The keys are the same each time, so only moved rows change the result.
const KEYS: u64 = 400;
/// Maximum number of sampled tables.
const TABLES_MAX: usize = 8;
/// Maximum duration of the sampling, over all tables. A slow device gives no sample.
const TIMEOUT_MS: usize = 5_000;

impl Registry<'_> {
    /// Returns the state of the dataset now and after its preparation.
    ///
    /// # Errors
    /// [`DatasetError`](super::DatasetError) if the connection is lost. Values that the server refuses are absent.
    pub fn condition(&mut self, workload: &dyn Workload) -> Result<ConditionRecord> {
        let fresh = self.fresh()?;
        Ok(ConditionRecord { fresh, ..examine(self.connection, workload)? })
    }

    /// Stores order and size of a dataset directly after its preparation.
    ///
    /// # Errors
    /// [`DatasetError`](super::DatasetError) if a statement fails.
    pub fn note_fresh(&mut self, id: &str, workload: &dyn Workload) -> Result<()> {
        let ConditionRecord { order_correlation, neighbors_share, bytes, .. } =
            examine(self.connection, workload)?;
        let fresh = FreshCondition { order_correlation, neighbors_share, bytes };
        let json = serde_json::to_string(&fresh).unwrap_or_default();
        let sql = "update riops.dataset set fresh = $2 where id = $1";
        self.connection.query_with(sql, &[Some(id), Some(&json)])?;
        Ok(())
    }

    /// Returns what [`Self::note_fresh`] stored.
    fn fresh(&mut self) -> Result<Option<FreshCondition>> {
        // Tables of other programs are used without a registry too.
        if !self.exists()? {
            return Ok(None);
        }
        // Older versions of riops created the table without this column.
        let sql = "select to_jsonb(dataset) ->> 'fresh' from riops.dataset as dataset where workload = $1";
        let rows = unless_refused(self.connection.query_with(sql, &[Some(self.workload)]))?;
        let text = rows.into_iter().flatten().flatten().flatten().next();
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

/// Reads the state of the tables now.
fn examine(connection: &mut Connection, workload: &dyn Workload) -> Result<ConditionRecord> {
    let tables = workload.table_names();
    let state = unless_refused(connection.query(&fill(STATE, &[("tables", &tables.join(","))])))?;
    let mut condition = state.and_then(|rows| parsed_state(rows.first()?)).unwrap_or_default();
    if let Some(key) = workload.key_column() {
        // `rollback` reverts the settings.
        connection.execute("begin")?;
        let sampled = unless_refused(sample(connection, &tables, key));
        connection.execute("rollback")?;
        let order = mean_order(&sampled?.unwrap_or_default());
        condition.sampled_keys = order.keys;
        condition.order_correlation = order.correlation;
        condition.neighbors_share = order.neighbors_share;
    }
    Ok(condition)
}

fn parsed_state(row: &[Option<String>]) -> Option<ConditionRecord> {
    let [bytes, live, dead, updated, hot, vacuumed_at, analyzed_at] = row else {
        return None;
    };
    Some(ConditionRecord {
        bytes: parsed(bytes.as_ref()).filter(|&bytes| bytes > 0),
        live_rows: parsed(live.as_ref())?,
        dead_rows: parsed(dead.as_ref())?,
        updated_rows: Some(parsed(updated.as_ref())?),
        hot_updated_rows: Some(parsed(hot.as_ref())?),
        vacuumed_at: parsed(vacuumed_at.as_ref()),
        analyzed_at: parsed(analyzed_at.as_ref()),
        ..ConditionRecord::default()
    })
}

/// The order of one table, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Order {
    keys: u64,
    correlation: Option<f64>,
    neighbors_share: Option<f64>,
}

/// Locates the rows of the sampled keys in each sampled table.
fn sample(
    connection: &mut Connection,
    tables: &[String],
    key: KeyColumn,
) -> Result<Vec<Order>, ConnectionError> {
    let step = tables.len().div_ceil(TABLES_MAX).max(1);
    let sampled: Vec<_> = tables.iter().step_by(step).collect();
    let timeout = format!("{}ms", TIMEOUT_MS / sampled.len().max(1));
    connection.query(&fill(SETTINGS, &[("timeout", &timeout)]))?;
    let keys = sampled_keys(key, KEYS / (sampled.len().max(1) as u64));
    let keys = keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let mut orders = Vec::new();
    for table in sampled {
        let values = [("keys", keys.as_str()), ("key", key.name), ("table", table)];
        let rows = connection.query(&fill(SAMPLE, &values))?;
        orders.extend(rows.first().and_then(|row| parsed_order(row)));
    }
    Ok(orders)
}

fn parsed_order(row: &[Option<String>]) -> Option<Order> {
    let [keys, correlation, neighbors] = row else {
        return None;
    };
    Some(Order {
        keys: parsed(keys.as_ref())?,
        correlation: parsed(correlation.as_ref()),
        neighbors_share: parsed(neighbors.as_ref()),
    })
}

/// Returns up to `count` keys, spread evenly over all but the last. Multiples of the golden ratio have no period in
/// common with the rows of a block.
fn sampled_keys(key: KeyColumn, count: u64) -> Vec<i128> {
    let pairs = u128::from(key.keys.saturating_sub(1));
    let key_of = |n: u64| {
        let position = (u128::from(n.wrapping_mul(GOLDEN_GAMMA)) * pairs) >> 64;
        i128::from(key.first) + position.cast_signed()
    };
    let mut keys: Vec<_> = (0..count).filter(|_| pairs > 0).map(key_of).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns the mean over several tables, weighted by their keys.
fn mean_order(orders: &[Order]) -> Order {
    let mean = |value: fn(&Order) -> Option<f64>| {
        let weighted = orders.iter().filter_map(|order| Some((value(order)?, order.keys as f64)));
        let (sum, keys) = weighted
            .fold((0.0, 0.0), |(sum, keys), (value, weight)| (sum + value * weight, keys + weight));
        (keys > 0.0).then(|| sum / keys)
    };
    Order {
        keys: orders.iter().map(|order| order.keys).sum(),
        correlation: mean(|order| order.correlation),
        neighbors_share: mean(|order| order.neighbors_share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_keys_are_spread_over_the_table_and_always_the_same() {
        let key = KeyColumn { name: "id", first: 1, keys: 1_000_000 };
        let keys = sampled_keys(key, 400);
        assert_eq!(keys.len(), 400);
        assert_eq!(keys, sampled_keys(key, 400));
        assert!(keys[0] >= 1 && *keys.last().unwrap() < 1_000_000);
        let widest = keys.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(widest < 2 * 1_000_000 / 400 + 1, "{widest}");
        // Not all at the same position in blocks of 50 rows.
        let positions: std::collections::BTreeSet<_> = keys.iter().map(|key| key % 50).collect();
        assert!(positions.len() > 40, "{positions:?}");
    }

    #[test]
    fn small_tables_have_fewer_keys_and_the_last_key_has_no_neighbor() {
        let key = |keys| KeyColumn { name: "id", first: 0, keys };
        assert_eq!(sampled_keys(key(3), 400), [0, 1]);
        assert!(sampled_keys(key(1), 400).is_empty() && sampled_keys(key(0), 400).is_empty());
    }

    #[test]
    fn the_order_of_several_tables_is_their_mean() {
        let order = |keys, correlation| Order { keys, correlation, neighbors_share: Some(0.5) };
        let mean = mean_order(&[order(100, Some(1.0)), order(300, Some(0.2)), order(1, None)]);
        assert_eq!((mean.keys, mean.neighbors_share), (401, Some(0.5)));
        assert!((mean.correlation.unwrap() - 0.4).abs() < 1e-12);
        assert_eq!(mean_order(&[]), Order::default());
    }

    #[test]
    fn parses_the_state_of_the_tables() {
        let row = ["8192", "10", "2", "5", "1", "2026-11-22T09:00:00Z"].map(|v| Some(v.to_owned()));
        let row = [&row[..], &[None]].concat();
        let state = parsed_state(&row).unwrap();
        assert_eq!((state.bytes, state.live_rows, state.dead_rows), (Some(8192), 10, 2));
        assert_eq!((state.updated_rows, state.hot_updated_rows), (Some(5), Some(1)));
        assert_eq!(
            state.vacuumed_at.map(|at| at.to_string()).as_deref(),
            Some("2026-11-22T09:00:00Z")
        );
        assert_eq!(state.analyzed_at, None);
        assert_eq!(parsed_state(&row[1..]), None);
    }
}
