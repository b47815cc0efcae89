//! Results of other tools, and records of other stores, as records.
//!
//! Reads texts and returns records; only `ybio` opens a connection, and only `storing` and `records` use a store. An
//! imported run never looks like one that riops measured: its workload is `imported`, and its verdict says that
//! nothing was verified. Values that the results do not contain are absent.

mod error;
mod format;
mod input;
mod lines;
mod numbers;
mod objects;
mod pgbench;
mod prefix;
mod records;
mod reports;
mod results;
mod series;
mod storing;
mod sysbench;
mod ybio;

use jiff::Timestamp;

pub use error::ImportError;
pub use format::{Column7, Format, Settings};
pub use input::Input;
pub use records::{is_store, store_runs};
pub use results::Imports;
pub use storing::{Stored, store};
pub use ybio::ybio_runs;

use results::{ImportSource, RunResults};

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
        let origin = ImportSource { files: &names, modified, now };
        let runs = match format {
            Some(Format::Json) => {
                for input in group {
                    imports.records.extend(records::read(input, settings)?);
                }
                continue;
            }
            None | Some(Format::Pgbench | Format::Sysbench) => {
                let mut all = Vec::new();
                for input in group {
                    all.extend(reports::read(input, format)?);
                }
                all
            }
            Some(format @ Format::Ybio) => {
                let mut all = Vec::new();
                for input in group {
                    all.extend(tables(input)?.into_iter().map(|run| (format, run)));
                }
                all
            }
            Some(format @ Format::PgbenchLog) => {
                vec![(format, pgbench::log(group, settings.column_7)?)]
            }
            Some(format @ Format::PgbenchAggregate) => vec![(format, pgbench::aggregate(group)?)],
        };
        imports.add(runs, &origin, settings)?;
    }
    if settings.started_at.is_some() {
        results::require_one_unknown_start(&imports.records)?;
    }
    Ok(imports)
}

/// Reads a text with a table of ybio.
fn tables(input: Input) -> Result<Vec<RunResults>, ImportError> {
    let name = input.name.clone();
    let (text, is_replaced) = input.text()?;
    let mut runs = ybio::read(&text, &name)?;
    if let Some(first) = runs.first_mut().filter(|_| is_replaced) {
        first.notices.push(format!("{name}: bytes that are not UTF-8 were replaced"));
    }
    Ok(runs)
}

#[cfg(test)]
mod mixed_tests;
#[cfg(test)]
mod tests;
