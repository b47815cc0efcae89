//! Opens the feed of a store by its location.

use super::files::{FileSink, FileSource};
use super::postgresql::{PostgresqlSink, PostgresqlSource};
use super::publisher::OpenSink;
use super::{LiveSource, live_directory};
use crate::host::Interrupt;
use crate::store::location::StoreLocation;

/// Returns what opens the sink of a run that is stored at this location.
#[must_use]
pub fn sink_of(location: &StoreLocation) -> OpenSink {
    match location {
        StoreLocation::File(path) => {
            let directory = live_directory(path);
            Box::new(move |run| Ok(Box::new(FileSink::create(&directory, run)?)))
        }
        StoreLocation::Postgresql(conninfo) => {
            let conninfo = conninfo.clone();
            Box::new(move |run| Ok(Box::new(PostgresqlSink::create(&conninfo, run)?)))
        }
    }
}

/// Returns the source of the runs in progress of a store.
#[must_use]
pub fn source_of(location: &StoreLocation, interrupt: &Interrupt) -> Box<dyn LiveSource> {
    match location {
        StoreLocation::File(path) => Box::new(FileSource::new(live_directory(path))),
        StoreLocation::Postgresql(conninfo) => {
            Box::new(PostgresqlSource::new(conninfo.as_ref().clone(), interrupt))
        }
    }
}
