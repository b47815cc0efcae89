//! The run of an agent of a fleet: it meets the others, and its record becomes a part of theirs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::exit::exit_code;
use super::outcome::{NotStored, Ran, Saved, SessionError};
use crate::fleet::{Finished, Fleet, FleetError};
use crate::record::{Events, Point, Record, RunEvent};
use crate::run::{Agreement, Coordination};

/// An agent during its run.
#[derive(Clone)]
pub(super) struct Agent {
    fleet: Arc<Mutex<Fleet>>,
    /// Receives the events of the run.
    events: Events,
}

fn locked(fleet: &Mutex<Fleet>) -> MutexGuard<'_, Fleet> {
    fleet.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send_points(events: &Events, points: Vec<Point>) {
    for point in points {
        events.send(&RunEvent::Point(Box::new(point)));
    }
}

impl Coordination for Agent {
    fn agree_start(&mut self) -> Result<Agreement, String> {
        locked(&self.fleet).agree_start().map_err(|error| error.to_string())
    }

    fn settled(&mut self) -> bool {
        locked(&self.fleet).settled().unwrap_or_else(|error| {
            self.events.notice(&format!("warning: {error}"));
            false
        })
    }
}

impl Agent {
    pub(super) fn new(fleet: Fleet, events: Events) -> Self {
        Self { fleet: Arc::new(Mutex::new(fleet)), events }
    }

    /// Returns the receiver of the events of its run. The first agent passes on the intervals of all, the others their own.
    pub(super) fn events(&self) -> Events {
        let (fleet, events) = (Arc::clone(&self.fleet), self.events.clone());
        Events::new(move |event| match event {
            RunEvent::Point(point) => {
                let (of_all, is_first) = {
                    let fleet = locked(&fleet);
                    (fleet.exchange(point), fleet.share().agent == 0)
                };
                if is_first {
                    send_points(&events, of_all);
                } else {
                    // They are for the first agent.
                    send_points(
                        &events,
                        vec![Point { histograms: None, ..point.as_ref().clone() }],
                    );
                }
            }
            RunEvent::Started { run, .. } => {
                locked(&fleet).started(run.id);
                events.send(event);
            }
            event => events.send(event),
        })
    }

    /// Tells the others that this agent has no record.
    pub(super) fn fail(&self, error: &str) {
        locked(&self.fleet).fail(error);
    }

    /// Passes the record on, and waits for the end of the fleet. The agent that conducts it saves and shows the record of all.
    pub(super) fn finish(
        &self,
        record: &Record,
        save: &dyn Fn(&Record) -> Saved,
        show: &mut dyn FnMut(&Record, &Saved),
    ) -> Result<Ran, SessionError> {
        let mut fleet = locked(&self.fleet);
        let finished = fleet.finish(record.clone());
        send_points(&self.events, fleet.last_points());
        match finished {
            Ok(Finished::Conducts(merged)) => {
                // Before it is shown: a reader of the output that waits must not keep the others waiting.
                let (code, saved) = (exit_code(&merged), save(&merged));
                let told = match &saved {
                    // The missing record matters more than whether the others know of it.
                    Saved::Failed(error) => {
                        let _ = fleet.end(&error.to_string());
                        Ok(())
                    }
                    Saved::No | Saved::In(_) => fleet.complete(code),
                };
                self.events.send(&RunEvent::completed(&merged));
                show(&merged, &saved);
                told?;
                let of_fleet = Some((merged.id.to_string(), code));
                Ok(Ran { record: *merged, saved, of_fleet })
            }
            Ok(Finished::Follows { run, code }) => {
                let text = format!("the run of the fleet is {run}: riops runs show {run}");
                self.events.notice(&text);
                let of_fleet = Some((run, code));
                Ok(Ran { record: record.clone(), saved: Saved::No, of_fleet })
            }
            Err(error @ FleetError::Interrupted) => {
                self.events.notice(&NotStored::keep(record, &error).to_string());
                Err(error.into())
            }
            Err(error) => Err(NotStored::keep(record, &error).into()),
        }
    }
}
