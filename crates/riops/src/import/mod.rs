//! Results of other tools, and records of other stores, as records.
//!
//! Reads texts and returns records; only `ybio` opens a connection, and only `storing` and `records` use a store. An
//! imported run never looks like one that riops measured: its workload is `imported`, and its verdict says that
//! nothing was verified. What the results do not contain is absent.

mod error;
mod format;
mod found;
mod input;
mod number;
mod objects;
mod pgbench;
mod records;
mod reports;
mod storing;
mod sysbench;
mod ybio;

use jiff::Timestamp;

pub use error::ImportError;
pub use format::{Column7, Format, Settings};
pub use found::Imports;
pub use input::Input;
pub use records::{is_store, store_runs};
pub use storing::{Stored, store};
pub use ybio::ybio_runs;

use found::{Found, ImportSource};
use pgbench::PgbenchReport;
use sysbench::SysbenchReport;

/// Reads the runs of all inputs. `now` is the time of the import.
///
/// # Errors
/// [`ImportError`] with the file, the line and the reason. Nothing is returned then, not even from the files
/// before.
pub fn read(
    inputs: Vec<Input>,
    settings: &Settings,
    now: Timestamp,
) -> Result<Imports, ImportError> {
    let mut imports = Imports::default();
    for (format, group) in input::groups(inputs, settings.format)? {
        let names = group.iter().map(|input| input.file_name().to_owned()).collect::<Vec<_>>();
        let modified = group.iter().filter_map(|input| input.modified).max();
        let origin = ImportSource { format, files: &names, modified, now };
        let found = match format {
            Format::Json => {
                for input in group {
                    imports.records.extend(records::read(input, settings)?);
                }
                continue;
            }
            Format::Ybio => each(group, ybio::read)?,
            Format::Pgbench => each(group, reports::read::<PgbenchReport>)?,
            Format::Sysbench => each(group, reports::read::<SysbenchReport>)?,
            Format::PgbenchLog => vec![pgbench::log(group, settings.column_7)?],
            Format::PgbenchAggregate => vec![pgbench::aggregate(group)?],
        };
        imports.add(found, &origin, settings)?;
    }
    if settings.started_at.is_some() {
        found::require_one_unknown_start(&imports.records)?;
    }
    Ok(imports)
}

/// Reads texts that may contain several runs.
fn each(
    group: Vec<Input>,
    read: impl Fn(&str, &str) -> Result<Vec<Found>, ImportError>,
) -> Result<Vec<Found>, ImportError> {
    let mut all = Vec::new();
    for input in group {
        let name = input.name.clone();
        let (text, is_replaced) = input.text()?;
        let mut found = read(&text, &name)?;
        if let Some(first) = found.first_mut().filter(|_| is_replaced) {
            first.notices.push(format!("{name}: bytes that are not UTF-8 were replaced"));
        }
        all.extend(found);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
