//! The dataset of a run on what is there: found, or made first where that is wanted.

use anyhow::Result;
use riops::dataset::prepare::same_parameters;
use riops::dataset::{DatasetError, Entry, Registry, State};
use riops::server::Connection;
use riops::workload::Workload;
use serde_json::Value;

use super::super::prepare::{Order, prepare};
use super::{Setting, adopt};

/// A dataset that is to be measured.
pub(super) struct Wanted<'a> {
    /// Its name in the registry.
    pub(super) name: &'static str,
    /// The parameters that were given.
    pub(super) given: Value,
    /// The workload on a dataset with these parameters.
    pub(super) workload_on: &'a dyn Fn(Value) -> Found,
    /// What is to be made where it is missing, given what was interrupted; `None` where nothing is.
    pub(super) make: Option<&'a Make<'a>>,
}

/// What is to be made, given the parameters of what was interrupted.
type Make<'a> = dyn Fn(Option<Value>) -> Result<Box<dyn Workload>> + 'a;

/// The workload on a dataset that was found, where its parameters can be read.
pub(crate) type Found = Result<Box<dyn Workload>, DatasetError>;

/// The dataset that will be measured: prepared first where it is missing and that is wanted, and
/// locked against changes for as long as `control` lives; or `guard`, a session for nothing else.
pub(super) fn find_dataset(
    setting: &Setting<'_>,
    wanted: &Wanted<'_>,
    control: &mut Connection,
    guard: Option<&mut Connection>,
) -> Result<Entry> {
    let Setting { target, interrupt, ui, .. } = setting;
    let name = wanted.name;
    let mut registry = Registry::new(control, name);
    let entry = registry.entry()?;
    let complete = entry.as_ref().is_some_and(|entry| entry.state == State::Complete);
    if !complete {
        let Some(make) = wanted.make else {
            let error = match entry {
                Some(_) => DatasetError::Incomplete(name),
                None => {
                    DatasetError::Missing { workload: name, target: target.conninfo.to_string() }
                }
            };
            return Err(adopt::hint(&mut registry, error));
        };
        // What was interrupted is made as it was meant.
        let workload = make(entry.map(|entry| entry.parameters))?;
        let order = Order {
            workload: workload.as_ref(),
            compared: wanted.given.clone(),
            recreate: false,
            connections: None,
        };
        ui.notice(&prepare(target, &order, interrupt, *ui)?);
    }
    // Only what is there under the lock counts: somebody may have replaced it meanwhile.
    match guard {
        Some(guard) => Registry::new(guard, name).lock_in_transaction()?,
        None => registry.lock(false)?,
    }
    let entry = registry
        .entry()?
        .filter(|entry| entry.state == State::Complete)
        .ok_or(DatasetError::Incomplete(name))?;
    let workload = (wanted.workload_on)(entry.parameters.clone())?;
    same_parameters(workload.as_ref(), &entry, &wanted.given)?;
    Ok(entry)
}

/// The parameters of `all` whose options were given.
pub(super) fn only_given(all: Value, given: &[(&str, bool)]) -> Value {
    let Value::Object(mut parameters) = all else {
        return all;
    };
    parameters.retain(|name, _| given.iter().any(|(given, used)| given == name && *used));
    Value::Object(parameters)
}
