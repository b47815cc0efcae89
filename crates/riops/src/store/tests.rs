//! Tests of the SQLite backend. Those that are the same for all backends are in [`contract`].

use std::path::Path;

use super::*;
use crate::host::Interrupt;
use crate::report::example_record;

fn open_file(path: &Path) -> Result<Box<dyn Store>, StoreError> {
    open(&StoreLocation::File(path.to_owned()), &Interrupt::new())
}

#[test]
fn saves_and_finds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let record = example_record();
    open_file(&path).unwrap().save(&record).unwrap();
    let store = open_file(&path).unwrap();
    assert_eq!(store.find("last").unwrap(), record);
    assert_eq!(store.list(&RunFilter::default()).unwrap().len(), 1);
}
