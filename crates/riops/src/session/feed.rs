//! The events of a run for other processes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::record::{Events, RunEvent};
use crate::store::StoreLocation;
use crate::store::live::{Publisher, sink_of};

/// Time between two events about the progress of a preparation or a statement.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Returns a receiver for receivers that publish: without the events that only this process uses, and with a bounded number of
/// those about progress.
pub fn published(receivers: Vec<Events>) -> Events {
    let last = Mutex::new(None::<Instant>);
    Events::new(move |event| {
        let is_progress = match event {
            // The first one and the last one are always sent.
            RunEvent::Preparing { rows, total } => *rows > 0 && rows != total,
            RunEvent::StepProgress { .. } => true,
            event if event.is_local() => return,
            _ => false,
        };
        if is_progress {
            let Ok(mut last) = last.lock() else { return };
            if last.is_some_and(|last| last.elapsed() < PROGRESS_EVERY) {
                return;
            }
            *last = Some(Instant::now());
        }
        for receiver in &receivers {
            receiver.send(event);
        }
    })
}

/// Returns a receiver that publishes a run beside its store. A failure to publish is a notice, and does not fail the run.
pub(super) fn feed(location: &StoreLocation, shown: &Events) -> Events {
    let (location, shown) = (location.clone(), shown.clone());
    let publisher = Mutex::new(None::<Publisher>);
    Events::new(move |event| {
        let Ok(mut publisher) = publisher.lock() else { return };
        match (event, publisher.as_ref()) {
            (RunEvent::Started { run, .. }, _) => {
                let shown = shown.clone();
                let failed = move |error: &dyn std::error::Error| {
                    shown.notice(&format!("this run is not shown by `riops serve`: {error}"));
                };
                let on_error = failed.clone();
                let run = run.as_ref().clone();
                match Publisher::start(run, sink_of(&location), move |error| on_error(&error)) {
                    Ok(started) => *publisher = Some(started),
                    Err(error) => failed(&error),
                }
            }
            (event, Some(publisher)) => publisher.publish(event.clone()),
            (_, None) => {}
        }
    })
}
