//! The caches before a stage: without the dataset, or with as much of it as fits.
//!
//! Nothing stays behind: extensions that this needs are made in a transaction that is rolled back.
//! What is not permitted is said, and is no error: the figures are read with it.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;

use crate::server::{Connection, ConnectionError};

/// What was done to the caches, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheState {
    /// `cold` or `warm`.
    pub wanted: String,
    /// What became of shared buffers.
    pub shared_buffers: String,
    /// What became of the operating system's cache.
    pub page_cache: String,
    /// Whether both are as wanted.
    pub reached: bool,
}

/// Evicts these tables of the schema `riops` and their indexes from shared buffers and, where the
/// server's data folder is on this machine and may be read, from the page cache.
///
/// # Errors
/// [`ConnectionError`] where the connection breaks; what the server refuses is part of the answer.
pub fn cool(
    connection: &mut Connection,
    tables: &[String],
    local_data: Option<&Path>,
) -> Result<CacheState, ConnectionError> {
    // Dirty pages stay in both caches.
    let flushed = refusal(connection.execute("checkpoint"))?;
    let evicted = evict(connection, tables)?;
    let dropped = drop_pages(connection, tables, local_data)?;
    let because = |reason: String| match &flushed {
        Err(checkpoint) => format!("{reason} (no checkpoint before: {checkpoint})"),
        Ok(()) => reason,
    };
    Ok(CacheState {
        wanted: "cold".to_owned(),
        reached: evicted.is_ok() && dropped.is_ok() && flushed.is_ok(),
        shared_buffers: match evicted {
            Ok(blocks) => because(format!("{blocks} blocks evicted")),
            Err(reason) => format!("NOT evicted: {reason}"),
        },
        page_cache: match dropped {
            Ok(files) => because(format!("{files} files dropped")),
            Err(reason) => format!("NOT dropped: {reason}"),
        },
    })
}

/// Reads these tables and their indexes into shared buffers, as far as they fit; what does not goes
/// to the page cache.
///
/// # Errors
/// [`ConnectionError`] where the connection breaks; what the server refuses is part of the answer.
pub fn warm(connection: &mut Connection, tables: &[String]) -> Result<CacheState, ConnectionError> {
    let relations = relations(connection, tables)?;
    let loaded = within_extension(connection, "pg_prewarm", |connection, schema| {
        let mut blocks = 0u64;
        // Indexes last: of what does not fit, they are to stay.
        for relation in &relations {
            let sql = format!("select {schema}.pg_prewarm('{relation}'::regclass)");
            blocks += connection.query_value(&sql)?.and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        Ok(blocks)
    })?;
    let read = match loaded {
        Ok(_) => Ok(()),
        // At least the page cache.
        Err(_) => refusal(tables.iter().try_for_each(|table| {
            connection.execute(&format!("select count(t.*) from {table} as t"))
        }))?,
    };
    Ok(CacheState {
        wanted: "warm".to_owned(),
        reached: loaded.is_ok(),
        shared_buffers: match loaded {
            Ok(blocks) => format!("{blocks} blocks read"),
            Err(reason) => format!("NOT prewarmed: {reason}"),
        },
        page_cache: match read {
            Ok(()) => "read".to_owned(),
            Err(reason) => format!("NOT read: {reason}"),
        },
    })
}

/// What the server refuses is an answer, what breaks the connection an error.
fn refusal<T>(answer: Result<T, ConnectionError>) -> Result<Result<T, String>, ConnectionError> {
    match answer {
        Ok(value) => Ok(Ok(value)),
        Err(ConnectionError::Server(error)) => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}

/// The tables, then their indexes, by their full names.
fn relations(
    connection: &mut Connection,
    tables: &[String],
) -> Result<Vec<String>, ConnectionError> {
    let list = tables.join(",");
    let sql = format!(
        "select to_regclass(name) from unnest('{{{list}}}'::text[]) as name
          union all
         select i.indexrelid::regclass from pg_index i
           join unnest('{{{list}}}'::text[]) as name on i.indrelid = to_regclass(name)"
    );
    Ok(connection.query(&sql)?.into_iter().flatten().flatten().collect())
}

/// Runs `work` with an extension, which is made for it where it is missing and gone afterwards.
fn within_extension<T>(
    connection: &mut Connection,
    extension: &str,
    work: impl FnOnce(&mut Connection, &str) -> Result<T, ConnectionError>,
) -> Result<Result<T, String>, ConnectionError> {
    connection.execute("begin")?;
    let done = (|| {
        connection.execute(&format!("create extension if not exists {extension} schema riops"))?;
        let schema = connection.query_value(&format!(
            "select quote_ident(nspname) from pg_extension join pg_namespace n on n.oid = extnamespace
              where extname = '{extension}'"
        ))?;
        work(connection, &schema.unwrap_or_default())
    })();
    let answer = refusal(done);
    connection.execute("rollback")?;
    answer
}

fn evict(
    connection: &mut Connection,
    tables: &[String],
) -> Result<Result<u64, String>, ConnectionError> {
    let relations = relations(connection, tables)?;
    within_extension(connection, "pg_buffercache", |connection, schema| {
        let has = |connection: &mut Connection, function: &str| -> Result<bool, ConnectionError> {
            let sql = format!("select 1 from pg_proc where proname = '{function}' limit 1");
            Ok(connection.query_value(&sql)?.is_some())
        };
        // From PostgreSQL 18 on.
        let by_relation = has(connection, "pg_buffercache_evict_relation")?;
        if !by_relation && !has(connection, "pg_buffercache_evict")? {
            // In the form of a refusal by the server.
            connection.execute(
                "do $$ begin raise 'that takes PostgreSQL 17 or later, or a restart of the server'; end $$",
            )?;
        }
        let mut blocks = 0u64;
        for relation in &relations {
            let sql = if by_relation {
                format!(
                    "select buffers_evicted from {schema}.pg_buffercache_evict_relation('{relation}')"
                )
            } else {
                format!(
                    // OFFSET 0: the planner would evict first and look afterwards.
                    "select count(*) from (
                       select bufferid from {schema}.pg_buffercache
                        where relfilenode = pg_relation_filenode('{relation}')
                          and reldatabase = (select oid from pg_database where datname = current_database())
                       offset 0) as own
                      where {schema}.pg_buffercache_evict(bufferid)"
                )
            };
            blocks += connection.query_value(&sql)?.and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        Ok(blocks)
    })
}

/// Asks the kernel to forget the pages of the relations' files: of these only, so that the rest of
/// the machine keeps its cache, and without the right to empty it.
fn drop_pages(
    connection: &mut Connection,
    tables: &[String],
    local_data: Option<&Path>,
) -> Result<Result<usize, String>, ConnectionError> {
    let Some(folder) = local_data else {
        return Ok(Err("the server's files cannot be reached from here".to_owned()));
    };
    let mut files = 0;
    for relation in relations(connection, tables)? {
        let sql = format!("select pg_relation_filepath('{relation}')");
        let Some(path) = connection.query_value(&sql)? else {
            continue;
        };
        match drop_pages_of(&folder.join(path)) {
            Ok(count) => files += count,
            Err(error) => {
                return Ok(Err(format!("{error} (run riops as root or as the server's user)")));
            }
        }
    }
    Ok(Ok(files))
}

/// The same for a relation's first file, its further segments and its forks.
fn drop_pages_of(first: &Path) -> std::io::Result<usize> {
    let (Some(folder), Some(name)) =
        (first.parent(), first.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(0);
    };
    let belongs = |path: &PathBuf| {
        path.file_name()
            .and_then(|found| found.to_str())
            .and_then(|found| found.strip_prefix(name))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']))
    };
    let mut files = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !belongs(&path) {
            continue;
        }
        let file = File::open(&path)?;
        // Dirty pages are not forgotten.
        file.sync_data()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        files += 1;
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_relation_are_its_segments_and_forks_and_no_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["16384", "16384.1", "16384_vm", "16384_fsm", "163840", "16385"] {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        assert_eq!(drop_pages_of(&folder.path().join("16384")).unwrap(), 4);
        assert!(drop_pages_of(&folder.path().join("nowhere/16384")).is_err());
    }
}
