//! One way of a run: a session runs a plan, alone or as an agent of a fleet, stores its record, and publishes it while it is in
//! progress. Every command and every experiment that measures uses it.
//!
//! It prints nothing: what happens is in the events, and the record is passed on as soon as it is stored.

mod agent;
mod exit;
mod feed;
mod outcome;
mod repeat;

use crate::fleet::{Fleet, Membership, Role};
use crate::host::Interrupt;
use crate::plan::Plan;
use crate::record::{Events, Note, Record, RunEvent};
use crate::run::{self, History, Hooks, NoHistory};
use crate::server::Server;
use crate::store::{Store, StoreLocation};
use agent::Agent;
pub use exit::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, exit_code};
use feed::feed;
pub use feed::published;
pub use outcome::{NotStored, Ran, Saved, SessionError};
pub use repeat::{REPEAT_TAG, Repeated, Repeats, worst_exit_code};

/// Where runs are stored, and who takes part.
pub struct Session<'a> {
    /// The open store; without it, it is opened to store a run.
    pub store: Option<&'a Store>,
    /// Where runs are stored and published; `None`: nowhere.
    pub location: Option<StoreLocation>,
    /// The earlier runs. A fleet uses none.
    pub history: &'a dyn History,
    /// A note that each record gets.
    pub note: Option<Note>,
    /// The fleet whose agent this is.
    pub membership: Option<Membership>,
    /// Receives the events: the first agent of a fleet has the intervals of all.
    pub events: Events,
    /// Ends the run.
    pub interrupt: &'a Interrupt,
}

impl Session<'_> {
    /// Runs the plan once. `show` receives the record when it is stored: the run cleans up afterwards, which may fail. In a
    /// fleet, only the agent that has stored the record shows it.
    ///
    /// # Errors
    /// [`SessionError`] if there is no record. A record that cannot be stored is not an error: see [`Ran::saved`].
    pub fn run(
        &self,
        plan: &Plan,
        server: &Server,
        role: Role,
        show: &mut dyn FnMut(&Record, &Saved),
    ) -> Result<Ran, SessionError> {
        let Some(membership) = &self.membership else {
            return self.run_alone(plan, server, show);
        };
        let mut notice = |text: &str| self.events.notice(text);
        let fleet = membership.join(plan, server, role, self.interrupt, &mut notice)?;
        let plan = fleet.plan()?;
        self.run_in_fleet(&plan, server, fleet, show)
    }

    fn run_alone(
        &self,
        plan: &Plan,
        server: &Server,
        show: &mut dyn FnMut(&Record, &Saved),
    ) -> Result<Ran, SessionError> {
        let events = self.events_of(plan);
        let mut saved = Saved::No;
        let mut complete = |record: &Record| {
            saved = self.save(record);
            events.send(&RunEvent::completed(record));
            show(record, &saved);
        };
        let hooks = Hooks {
            events: events.clone(),
            history: self.history,
            complete: Some(&mut complete),
            coordination: None,
        };
        let record = run::run(plan, server, self.interrupt, hooks).inspect_err(|error| {
            events.send(&RunEvent::Failed { error: error.to_string() });
        })?;
        Ok(Ran { record, saved, of_fleet: None })
    }

    fn run_in_fleet(
        &self,
        plan: &Plan,
        server: &Server,
        fleet: Fleet,
        show: &mut dyn FnMut(&Record, &Saved),
    ) -> Result<Ran, SessionError> {
        let events = self.events_of(plan);
        let mut agent = Agent::new(fleet, events.clone());
        let of_end = agent.clone();
        let mut outcome = None;
        let mut complete =
            |record: &Record| outcome = Some(of_end.finish(record, &|all| self.save(all), show));
        let hooks = Hooks {
            events: agent.events(),
            history: &NoHistory,
            complete: Some(&mut complete),
            coordination: Some(&mut agent),
        };
        let record = run::run(plan, server, self.interrupt, hooks).inspect_err(|error| {
            of_end.fail(&error.to_string());
            events.send(&RunEvent::Failed { error: error.to_string() });
        })?;
        outcome.unwrap_or(Ok(Ran { record, saved: Saved::No, of_fleet: None }))
    }

    /// Returns the receivers of the events: also other processes, to which the first client publishes the run.
    fn events_of(&self, plan: &Plan) -> Events {
        let location = self.location.as_ref().filter(|_| plan.is_first());
        let Some(location) = location else {
            return self.events.clone();
        };
        let (shown, live) = (self.events.clone(), feed(location, &self.events));
        let live = published(vec![live]);
        Events::new(move |event| {
            shown.send(event);
            live.send(event);
        })
    }

    /// Stores a record. If that fails, it is written to a file.
    fn save(&self, record: &Record) -> Saved {
        let Some(location) = &self.location else {
            return Saved::No;
        };
        let mut record = record.clone();
        record.notes.extend(self.note.clone());
        outcome::save(self.store, location, &record)
    }
}
