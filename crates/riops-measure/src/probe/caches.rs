//! Prepares the caches before a stage: without the dataset, or with as much of it as fits.
//!
//! Leaves no objects behind: required extensions are created in a transaction that is rolled back. A
//! missing privilege is reported but is not an error: reports print the state of the caches next to the
//! results.

use std::fs::File;
use std::path::Path;

use super::reading::schema;
use crate::server::{Connection, ConnectionError, Feature};
use riops_model::record::CacheState;
use riops_model::units::sql::literal;

/// Evicts these tables of the schema `riops` and their indexes from shared buffers and, if the server's
/// data directory is on this machine and readable, from the page cache.
///
/// # Errors
/// Returns [`ConnectionError`] if the connection is lost; errors reported by the server are part of the
/// result.
pub fn cool(
    connection: &mut Connection,
    tables: &[String],
    local_data: Option<&Path>,
) -> Result<CacheState, ConnectionError> {
    // Dirty pages cannot be evicted from either cache.
    let flushed = server_errors_as_values(connection.execute("checkpoint"))?;
    let evicted = evict(connection, tables)?;
    let dropped = drop_pages(connection, tables, local_data)?;
    let with_checkpoint = |reason: String| match &flushed {
        Err(checkpoint) => format!("{reason} (checkpoint failed: {checkpoint})"),
        Ok(()) => reason,
    };
    Ok(CacheState {
        wanted: "cold".to_owned(),
        reached: evicted.is_ok() && dropped.is_ok() && flushed.is_ok(),
        shared_buffers: match evicted {
            Ok(blocks) => with_checkpoint(format!("{blocks} blocks evicted")),
            Err(reason) => format!("NOT evicted: {reason}"),
        },
        page_cache: match dropped {
            Ok(files) => with_checkpoint(format!("{files} files dropped")),
            Err(reason) => format!("NOT dropped: {reason}"),
        },
    })
}

/// Reads these tables and their indexes into shared buffers, as far as they fit; the rest goes to the
/// page cache.
///
/// # Errors
/// Returns [`ConnectionError`] if the connection is lost; errors reported by the server are part of the
/// result.
pub fn warm(connection: &mut Connection, tables: &[String]) -> Result<CacheState, ConnectionError> {
    let relations = relations(connection, tables)?;
    let loaded = within_extension(connection, "pg_prewarm", |connection, schema| {
        // With all parameters: no other function of this name has the same ones.
        blocks(connection, &relations, |relation| {
            format!(
                "select {schema}.pg_prewarm({relation}::regclass, 'buffer'::text, 'main'::text, null::int8, null::int8)"
            )
        })
    })?;
    let read = match loaded {
        Ok(_) => Ok(()),
        // Fall back to the page cache.
        Err(_) => server_errors_as_values(tables.iter().try_for_each(|table| {
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

/// Returns the sum of the blocks that a query returns for each relation, given as a literal.
fn blocks(
    connection: &mut Connection,
    relations: &[String],
    query: impl Fn(&str) -> String,
) -> Result<u64, ConnectionError> {
    let mut blocks = 0;
    // Indexes last: if not everything fits, the indexes must remain.
    for relation in relations {
        let value = connection.query_value(&query(&literal(relation)))?;
        blocks += value.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(blocks)
}

/// Separates errors reported by the server from connection failures.
fn server_errors_as_values<T>(
    result: Result<T, ConnectionError>,
) -> Result<Result<T, String>, ConnectionError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(ConnectionError::Server(error)) => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}

/// Returns the qualified names of the tables, then of their indexes.
fn relations(
    connection: &mut Connection,
    tables: &[String],
) -> Result<Vec<String>, ConnectionError> {
    let list = tables.iter().map(|name| literal(name)).collect::<Vec<_>>().join(",");
    let sql = format!(
        "select to_regclass(name) from unnest(array[{list}]::text[]) as name
          union all
         select i.indexrelid::regclass from pg_index i
           join unnest(array[{list}]::text[]) as name on i.indrelid = to_regclass(name)"
    );
    Ok(connection.query(&sql)?.into_iter().flatten().flatten().collect())
}

/// Runs `work` with an extension. A missing extension is created and rolled back afterwards.
fn within_extension<T>(
    connection: &mut Connection,
    extension: &str,
    work: impl FnOnce(&mut Connection, &str) -> Result<T, ConnectionError>,
) -> Result<Result<T, String>, ConnectionError> {
    // There, CREATE EXTENSION cannot be rolled back, and the tables are not in shared buffers.
    if !connection.dialect().has(Feature::Heap) {
        let flavor = connection.dialect().flavor();
        return Ok(Err(format!("{flavor} does not cache tables in shared buffers")));
    }
    connection.execute("begin")?;
    let done = (|| {
        connection.execute(&format!("create extension if not exists {extension} schema riops"))?;
        let schema = schema(connection, extension)?;
        work(connection, &schema.unwrap_or_default())
    })();
    let result = server_errors_as_values(done);
    connection.execute("rollback")?;
    result
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
        // Available from PostgreSQL 18 on.
        let by_relation = has(connection, "pg_buffercache_evict_relation")?;
        if !by_relation && !has(connection, "pg_buffercache_evict")? {
            // Raised as a server error, to be handled like one.
            connection.execute(
                "do $$ begin raise 'requires PostgreSQL 17 or later, or a restart of the server'; end $$",
            )?;
        }
        blocks(connection, &relations, |relation| {
            if by_relation {
                return format!(
                    "select buffers_evicted from {schema}.pg_buffercache_evict_relation({relation}::regclass)"
                );
            }
            // OFFSET 0 prevents the planner from evicting before filtering.
            format!(
                "select count(*) from (
                       select bufferid from {schema}.pg_buffercache
                        where relfilenode = pg_relation_filenode({relation}::regclass)
                          and reldatabase = (select oid from pg_database where datname = current_database())
                       offset 0) as own
                      where {schema}.pg_buffercache_evict(bufferid)"
            )
        })
    })
}

/// Drops the pages of the relations' files from the page cache. Does not affect the rest of the
/// machine's cache, and needs no privilege to empty it.
fn drop_pages(
    connection: &mut Connection,
    tables: &[String],
    local_data: Option<&Path>,
) -> Result<Result<usize, String>, ConnectionError> {
    let Some(folder) = local_data else {
        return Ok(Err("the server's data directory is not accessible on this machine".to_owned()));
    };
    let mut files = 0;
    for relation in relations(connection, tables)? {
        let sql = format!("select pg_relation_filepath({}::regclass)", literal(&relation));
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

/// Drops the pages of a relation's first file, its further segments and its forks.
fn drop_pages_of(first: &Path) -> std::io::Result<usize> {
    let (Some(folder), Some(name)) =
        (first.parent(), first.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(0);
    };
    let mut files = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let file_name = entry.file_name();
        let rest = file_name.to_str().and_then(|file| file.strip_prefix(name));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_'])) {
            let file = File::open(entry.path())?;
            // Dirty pages cannot be dropped.
            file.sync_data()?;
            drop_pages_of_file(&file)?;
            files += 1;
        }
    }
    Ok(files)
}

#[cfg(target_os = "linux")]
fn drop_pages_of_file(file: &File) -> std::io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

#[cfg(not(target_os = "linux"))]
fn drop_pages_of_file(_: &File) -> std::io::Result<()> {
    let text = "dropping the pages of a file requires Linux";
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_segments_and_forks_of_a_relation_but_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["16384", "16384.1", "16384_vm", "16384_fsm", "163840", "16385"] {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        assert_eq!(drop_pages_of(&folder.path().join("16384")).unwrap(), 4);
        assert!(drop_pages_of(&folder.path().join("nowhere/16384")).is_err());
    }
}
