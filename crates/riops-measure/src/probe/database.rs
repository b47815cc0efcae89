//! The database's own counters around a stage: block accesses, WAL, checkpoints, row versions.
//!
//! A session's counters reach the server's statistics at most once per second, the counters of a server-side loop only
//! at its end, and all counters when the session ends. So the counters are read four times: before the sessions
//! connect, at both ends of the measurement, and after the sessions have disconnected. The outer two readings are
//! exact; the inner two are both up to one second late.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::async_io::{AsyncIo, workers};
use super::reading::{column, integers, since};
use super::relations::{self, Activity};
use super::scans::{self, Scans};
use super::statements::{Reading, Statements};
use crate::server::{Connection, ConnectionError};
use riops_model::record::{
    Checkpoints, ClientIo, DatabaseCounters, DatabaseUse, LockUse, OldestSnapshot, RelationRecord,
    RowVersions, Sizes, StatementUse, TableBlocks, Wal,
};
use riops_model::units::sql::literal;

const TABLES: &str = include_str!("../../sql/probe/tables.sql");
const ROWS: &str = include_str!("../../sql/probe/rows.sql");
const DATABASE: &str = include_str!("../../sql/probe/database.sql");
const IO: &str = include_str!("../../sql/probe/io.sql");
const IO_17: &str = include_str!("../../sql/probe/io_17.sql");
pub(super) const LOG_POSITION: &str = include_str!("../../sql/probe/log_position.sql");
const WAL: &str = include_str!("../../sql/probe/wal.sql");
const WAL_IMAGES: &str = include_str!("../../sql/probe/wal_images.sql");
const LOCKS: &str = include_str!("../../sql/probe/locks.sql");
const WAL_SYNCS: &str = include_str!("../../sql/probe/wal_syncs.sql");
const WAL_SYNCS_18: &str = include_str!("../../sql/probe/wal_syncs_18.sql");
const OLDEST_SNAPSHOT: &str = include_str!("../../sql/probe/oldest_snapshot.sql");
const CHECKPOINTS: &str = include_str!("../../sql/probe/checkpoints.sql");
const CHECKPOINTS_16: &str = include_str!("../../sql/probe/checkpoints_16.sql");

/// Time that the queries of one reading may take together. Counters that the server does not return in time
/// are absent.
const READING_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for the EXPLAIN statements that measure the blocks of a read.
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for disconnected sessions to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Before PostgreSQL 15, a session reports its counters within one second, and they become visible up
/// to half a second later.
const STATISTICS_DELAY: Duration = Duration::from_millis(1_600);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Names the columns of a row, in the order of the query.
macro_rules! named {
    ($type:ident { $($column:ident),+ $(,)? }) => {
        |[$($column),+]| $type { $($column),+ }
    };
}

/// All counters at one point in time, as rows of the queries.
#[derive(Debug, Clone, Default)]
struct Sample {
    at: Option<Instant>,
    blocks: Option<[u64; 4]>,
    database: Option<[u64; 10]>,
    client_io: Option<[u64; 8]>,
    log_position: Option<u64>,
    wal_syncs: Option<u64>,
    wal: Option<[u64; 3]>,
    wal_images: Option<[u64; 1]>,
    locks: Option<[u64; 3]>,
    checkpoints: Option<[u64; 3]>,
    rows: Option<[u64; 7]>,
    snapshot: Option<Snapshot>,
    scans: Option<Scans>,
    activity: Option<Activity>,
    statements: Option<Reading>,
}

impl Sample {
    fn database(&self) -> Option<DatabaseCounters> {
        self.database.map(named!(DatabaseCounters {
            blks_hit,
            blks_read,
            tup_returned,
            tup_fetched,
            tup_updated,
            xact_commit,
            xact_rollback,
            deadlocks,
            temp_files,
            temp_bytes,
        }))
    }

    fn blocks_since(&self, earlier: &Self) -> Option<TableBlocks> {
        change(earlier.blocks, self.blocks).map(named!(TableBlocks {
            heap_blks_hit,
            heap_blks_read,
            idx_blks_hit,
            idx_blks_read
        }))
    }
}

/// Number of transactions so far, and since the oldest snapshot, with its holder.
type Snapshot = (u64, u64, String);

/// Reads the counters over a connection that has no other user during the stage.
#[derive(Debug)]
pub struct DatabaseProbe<'a> {
    connection: &'a mut Connection,
    /// Time that the queries of one reading may take together.
    pub timeout: Duration,
    /// Tables, as the text of an array.
    tables: String,
    /// Available from PostgreSQL 16 on.
    io: Option<&'static str>,
    /// How the server reads blocks outside of the sessions' processes.
    pub(super) async_io: Option<AsyncIo>,
    /// Available from PostgreSQL 14 on.
    wal: Option<&'static str>,
    /// The same from PostgreSQL 19 on.
    wal_images: Option<&'static str>,
    locks: Option<&'static str>,
    /// The query for the synchronizations of WAL files.
    wal_syncs: Option<&'static str>,
    /// Whether a session can flush its pending statistics on request.
    pub(super) can_flush: bool,
    checkpoints: &'static str,
    /// Settings, then EXPLAIN statements that measure the blocks of a read, after the stage: `explain (analyze, buffers,
    /// format json)`.
    pub read_explains: (Vec<String>, Vec<String>),
    blocks_per_read: Option<f64>,
    /// Whether the scans of all tables are counted, to compare them with the plans of statements.
    pub counts_scans: bool,
    statements: Option<Statements>,
    /// Application name of the sessions that end with the stage, if their process ids are unknown; `None`: they are
    /// known, and the sessions have the application name of the connection.
    pub observed: Option<String>,
    /// The tables that were read or changed during the stage.
    relations: Vec<RelationRecord>,
    /// The statements that were executed during the stage.
    executed: Vec<StatementUse>,
    opened: Sample,
    started: Sample,
    ended: Sample,
    closed: Sample,
}

impl<'a> DatabaseProbe<'a> {
    /// Creates a probe for these tables, given with their schemas.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if a query fails.
    pub fn new(connection: &'a mut Connection, tables: &[String]) -> Result<Self, ConnectionError> {
        let has_io = is_true(connection, &exists("pg_stat_io"))?;
        let has_wal = is_true(connection, &exists("pg_stat_wal"))?;
        let has_locks = is_true(connection, &exists("pg_stat_lock"))?;
        let mut has_column = |view: &str, column: &str| -> Result<bool, ConnectionError> {
            let sql = format!(
                "select 1 from pg_attribute where attname = '{column}'
                    and attrelid = to_regclass('pg_catalog.{view}')"
            );
            Ok(connection.query_value(&sql)?.is_some())
        };
        let counts_bytes = has_column("pg_stat_io", "read_bytes")?;
        let in_wal = has_column("pg_stat_wal", "wal_sync")?;
        let counts_images = has_column("pg_stat_wal", "wal_fpi_bytes")?;
        Ok(Self {
            io: has_io.then_some(if counts_bytes { IO } else { IO_17 }),
            async_io: AsyncIo::read(connection)?,
            wal: has_wal.then_some(WAL),
            wal_images: counts_images.then_some(WAL_IMAGES),
            locks: has_locks.then_some(LOCKS),
            wal_syncs: match (in_wal, counts_bytes) {
                (true, _) => Some(WAL_SYNCS),
                (false, true) => Some(WAL_SYNCS_18),
                (false, false) => None,
            },
            can_flush: is_true(
                connection,
                "select to_regproc('pg_stat_force_next_flush') is not null",
            )?,
            checkpoints: checkpoints_sql(connection)?,
            tables: tables.join(","),
            timeout: READING_TIMEOUT,
            connection,
            read_explains: (Vec::new(), Vec::new()),
            blocks_per_read: None,
            counts_scans: false,
            statements: None,
            observed: None,
            relations: Vec::new(),
            executed: Vec::new(),
            opened: Sample::default(),
            started: Sample::default(),
            ended: Sample::default(),
            closed: Sample::default(),
        })
    }

    /// Adds the statements that the server executes; `own` are the statements of the run. If the connection
    /// `is_dedicated`, its own queries are not counted.
    ///
    /// # Errors
    /// [`ConnectionError`] if the connection fails.
    pub fn with_statements(
        self,
        own: &BTreeSet<String>,
        is_dedicated: bool,
    ) -> Result<Self, ConnectionError> {
        Ok(Self { statements: Statements::new(self.connection, own, is_dedicated)?, ..self })
    }

    /// The same for a run whose statements are unknown: all statements count as statements of the run.
    ///
    /// # Errors
    /// [`ConnectionError`] if the connection fails.
    pub fn with_all_statements(self, is_dedicated: bool) -> Result<Self, ConnectionError> {
        self.with_statements(&[String::new()].into(), is_dedicated)
    }

    /// Calls `read` with a deadline for all its queries.
    fn with_deadline<T>(&mut self, timeout: Duration, read: impl FnOnce(&mut Self) -> T) -> T {
        self.connection.set_deadline(Some(Instant::now() + timeout));
        let result = read(self);
        self.connection.set_deadline(None);
        result
    }

    /// Returns the processes of the I/O workers; empty without them, or if they are not visible.
    pub(super) fn io_workers(&mut self) -> Vec<i32> {
        match self.async_io {
            Some(AsyncIo { by_workers: true, .. }) => {
                self.with_deadline(self.timeout, |probe| workers(probe.connection))
            }
            _ => Vec::new(),
        }
    }

    /// Returns the backend processes of the sessions; empty if the query fails.
    pub fn processes(&mut self) -> Vec<i32> {
        let sql = "select pid from pg_stat_activity
                    where application_name = current_setting('application_name') and pid <> pg_backend_pid()
                    order by pid";
        column(
            self.with_deadline(self.timeout, |probe| probe.connection.query(sql))
                .unwrap_or_default(),
        )
    }

    /// Reads the counters before the sessions connect.
    pub fn open(&mut self) {
        // Flush this session's own statistics, so that they do not arrive during the measurement.
        if self.can_flush {
            let flush = "select pg_stat_force_next_flush()";
            let _ = self.with_deadline(self.timeout, |probe| probe.connection.execute(flush));
        } else {
            std::thread::sleep(STATISTICS_DELAY);
        }
        self.opened = self.with_deadline(self.timeout, |probe| probe.sample(true));
        self.opened.scans = self.read_scans();
        self.opened.activity = self.read_activity();
        self.opened.statements = self.read_statements();
    }

    fn read_statements(&mut self) -> Option<Reading> {
        self.with_deadline(self.timeout, |probe| probe.statements.as_ref()?.read(probe.connection))
    }

    fn read_activity(&mut self) -> Option<Activity> {
        self.with_deadline(self.timeout, |probe| relations::activity(probe.connection))
    }

    fn touched(&mut self) -> Option<Vec<RelationRecord>> {
        let (from, to) = (self.opened.activity.as_ref()?, self.closed.activity.as_ref()?);
        relations::touched(self.connection, from, to)
    }

    fn read_scans(&mut self) -> Option<Scans> {
        self.counts_scans
            .then(|| self.with_deadline(self.timeout, |probe| scans::read(probe.connection)))?
    }

    /// Reads the counters at the start of the measurement.
    pub fn start(&mut self) {
        self.started = self.with_deadline(self.timeout, |probe| probe.sample(false));
    }

    /// Reads the counters at the end of the measurement.
    pub fn end(&mut self) {
        self.ended = self.with_deadline(self.timeout, |probe| probe.sample(false));
    }

    /// Waits until the sessions have ended and their counters are visible; `processes` were their backends.
    pub(super) fn await_counters(&mut self, processes: &[i32]) {
        self.with_deadline(EXIT_TIMEOUT.min(self.timeout), |probe| probe.wait_for_exit(processes));
        if !self.can_flush {
            std::thread::sleep(STATISTICS_DELAY);
        }
    }

    /// Reads the counters after the sessions have ended.
    pub fn close(&mut self) {
        self.closed = self.with_deadline(self.timeout, |probe| probe.sample(true));
        self.closed.scans = self.read_scans();
        self.closed.activity = self.read_activity();
        self.closed.statements = self.read_statements();
        self.executed = self.with_deadline(self.timeout, Self::executed).unwrap_or_default();
        self.blocks_per_read = self.measure_reads();
        // Last: the sizes of a table wait for a session that has locked it.
        self.relations = self.with_deadline(self.timeout, Self::touched).unwrap_or_default();
    }

    fn executed(&mut self) -> Option<Vec<StatementUse>> {
        let (from, to) = (self.opened.statements.as_ref()?, self.closed.statements.as_ref()?);
        Some(self.statements.as_ref()?.between(self.connection, from, to))
    }

    fn wait_for_exit(&mut self, processes: &[i32]) {
        let list: Vec<_> = processes.iter().filter(|&&pid| pid > 0).map(i32::to_string).collect();
        let own = match &self.observed {
            Some(application) => format!("application_name = {}", literal(application)),
            None if list.is_empty() => return,
            None => format!(
                "pid in ({}) and application_name = current_setting('application_name')",
                list.join(", ")
            ),
        };
        let sql = format!("select count(*) from pg_stat_activity where {own}");
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while matches!(self.connection.query_value(&sql), Ok(Some(count)) if count != "0")
            && Instant::now() < deadline
        {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Reads all counters, or only those for both ends of the measurement.
    fn sample(&mut self, all: bool) -> Sample {
        // Without tables, nothing is counted: the sums would be 0.
        let tables = (!self.tables.is_empty()).then(|| self.tables.clone());
        let of_tables = |sql: &str| Some(sql.replace("{tables}", tables.as_deref()?));
        let blocks = of_tables(TABLES).and_then(|sql| self.numbers(&sql));
        let at = Some(Instant::now());
        let log_position = self.numbers(LOG_POSITION).map(|[bytes]| bytes);
        let wal_syncs = self.wal_syncs.and_then(|sql| self.numbers(sql)).map(|[syncs]| syncs);
        if !all {
            return Sample { at, blocks, log_position, wal_syncs, ..Sample::default() };
        }
        Sample {
            at,
            blocks,
            log_position,
            wal_syncs,
            wal: self.wal.and_then(|sql| self.numbers(sql)),
            wal_images: self.wal_images.and_then(|sql| self.numbers(sql)),
            locks: self.locks.and_then(|sql| self.numbers(sql)),
            client_io: self.io.and_then(|sql| self.numbers(sql)),
            database: self.numbers(DATABASE),
            snapshot: self.snapshot(),
            checkpoints: self.numbers(self.checkpoints),
            rows: of_tables(ROWS).and_then(|sql| self.numbers(&sql)),
            // In their own time.
            scans: None,
            activity: None,
            statements: None,
        }
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        match self.connection.query(OLDEST_SNAPSHOT).ok()?.into_iter().next()?.as_slice() {
            [Some(transactions), Some(since), Some(holder)] => {
                Some((transactions.parse().ok()?, since.parse().ok()?, holder.clone()))
            }
            _ => None,
        }
    }

    /// Reads a row of integers; `None` if the server does not provide them.
    fn numbers<const COUNT: usize>(&mut self, sql: &str) -> Option<[u64; COUNT]> {
        integers(self.connection.query(sql).ok()?)
    }

    fn measure_reads(&mut self) -> Option<f64> {
        let (settings, explains) = self.read_explains.clone();
        if explains.is_empty() {
            return None;
        }
        let blocks = self.with_deadline(EXPLAIN_TIMEOUT, |probe| {
            probe.connection.execute("begin").ok()?;
            probe.blocks_of_all(&settings, &explains)
        });
        if self.connection.awaits_reply() {
            let _ = self.connection.cancel();
        }
        // `rollback` reverts the settings for later uses of the connection.
        self.with_deadline(self.timeout, |probe| probe.connection.execute("rollback")).ok()?;
        blocks.map(|blocks| blocks / explains.len() as f64)
    }

    fn blocks_of_all(&mut self, settings: &[String], explains: &[String]) -> Option<f64> {
        for setting in settings {
            self.connection.execute(setting).ok()?;
        }
        let mut blocks = 0.0;
        for explain in explains {
            let lines = self.connection.query(explain).ok()?;
            blocks += blocks_of(&lines.into_iter().flatten().flatten().collect::<String>())?;
        }
        Some(blocks)
    }

    /// Returns the changes of all counters.
    pub fn usage(&self) -> DatabaseUse {
        let (opened, closed) = (&self.opened, &self.closed);
        let per_s = |pick: fn(&Sample) -> Option<u64>| {
            let (from, to) = (&self.started, &self.ended);
            let seconds = to.at?.checked_duration_since(from.at?)?.as_secs_f64();
            let change = pick(to)?.checked_sub(pick(from)?)?;
            (seconds > 0.0).then(|| change as f64 / seconds)
        };
        let rows = opened.rows.zip(closed.rows);
        let sizes = |[.., table_bytes, index_bytes]: [u64; 7]| Sizes { table_bytes, index_bytes };
        DatabaseUse {
            blocks: closed.blocks_since(opened),
            blocks_measured: self.ended.blocks_since(&self.started),
            before: opened.database(),
            after: closed.database(),
            client_io: change(opened.client_io, closed.client_io).map(named!(ClientIo {
                hits,
                reads,
                writes,
                extends,
                evictions,
                read_bytes,
                write_bytes,
                extend_bytes,
            })),
            locks: change(opened.locks, closed.locks).map(named!(LockUse {
                long_waits,
                long_waits_ms,
                beyond_fast_path
            })),
            wal: change(opened.wal, closed.wal).map(|[records, full_page_images, bytes]| Wal {
                records,
                full_page_images,
                bytes,
                full_page_bytes: change(opened.wal_images, closed.wal_images).map(|[bytes]| bytes),
            }),
            wal_bytes_per_s: per_s(|sample| sample.log_position),
            wal_syncs_per_s: per_s(|sample| sample.wal_syncs),
            checkpoints: change(opened.checkpoints, closed.checkpoints).map(named!(Checkpoints {
                timed,
                requested,
                buffers_written
            })),
            row_versions: rows.map(|(from, to)| {
                let [updated, hot_updated, _, vacuums, analyzes, ..] = since(to, from);
                // As estimated at the end.
                let [_, _, dead, ..] = to;
                RowVersions { updated, hot_updated, dead, vacuums, analyzes }
            }),
            sizes_before: rows.map(|(from, _)| sizes(from)),
            sizes_after: rows.map(|(_, to)| sizes(to)),
            oldest_snapshot: opened.snapshot.as_ref().zip(closed.snapshot.as_ref()).map(
                |(from, to)| {
                    let (transactions, holder) = (to.1, to.2.clone());
                    OldestSnapshot { transactions, of_stage: to.0.saturating_sub(from.0), holder }
                },
            ),
            blocks_per_read: self.blocks_per_read,
            scans: match (&opened.scans, &closed.scans) {
                (Some(from), Some(to)) => scans::between(from, to),
                _ => Vec::new(),
            },
            relations: self.relations.clone(),
            statements: self.executed.clone(),
        }
    }
}

/// Returns the query for the checkpoints of this server: timed, requested, buffers written.
///
/// # Errors
/// Returns [`ConnectionError`] if a query fails.
pub fn checkpoints_sql(connection: &mut Connection) -> Result<&'static str, ConnectionError> {
    let has_view = is_true(connection, &exists("pg_stat_checkpointer"))?;
    Ok(if has_view { CHECKPOINTS } else { CHECKPOINTS_16 })
}

/// Returns the query for whether a view exists.
fn exists(view: &str) -> String {
    format!("select to_regclass('pg_catalog.{view}') is not null")
}

fn is_true(connection: &mut Connection, sql: &str) -> Result<bool, ConnectionError> {
    Ok(connection.query_value(sql)?.as_deref() == Some("t"))
}

fn change<const COUNT: usize>(
    from: Option<[u64; COUNT]>,
    to: Option<[u64; COUNT]>,
) -> Option<[u64; COUNT]> {
    Some(since(to?, from?))
}

/// Returns the shared blocks accessed by a statement, from the output of `explain (analyze, buffers,
/// format json)`.
fn blocks_of(json: &str) -> Option<f64> {
    let document: serde_json::Value = serde_json::from_str(json).ok()?;
    let plan = document.get(0)?.get("Plan")?;
    let blocks = |label: &str| plan.get(label)?.as_f64();
    Some(blocks("Shared Hit Blocks")? + blocks("Shared Read Blocks")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_blocks_of_a_statement_from_its_top_plan_node() {
        let json = r#"[{"Plan": {"Shared Hit Blocks": 1003, "Shared Read Blocks": 20,
            "Plans": [{"Shared Hit Blocks": 1003, "Shared Read Blocks": 20}]}, "Planning": {"Shared Hit Blocks": 7}}]"#;
        assert_eq!(blocks_of(json), Some(1023.0));
        assert_eq!(blocks_of("[]"), None);
    }

    #[test]
    fn a_statistics_reset_does_not_give_negative_counts() {
        assert_eq!(change(Some([50, 0]), Some([10, 5])), Some([0, 5]));
        assert_eq!(change(None, Some([10, 5])), None);
    }
}
