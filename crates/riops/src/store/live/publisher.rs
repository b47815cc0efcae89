//! Opens the feed of a store by its location, and publishes a run from a separate thread, so that neither a slow disk nor
//! a slow database delays the run.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::files::{FileSink, FileSource};
use super::postgresql::{PostgresqlSink, PostgresqlSource};
use super::{LiveError, LiveSink, LiveSource, live_directory};
use crate::host::Interrupt;
use crate::record::{LiveRun, RunEvent};
use crate::store::location::StoreLocation;

/// Events that wait for the thread. A run has a few events per second; if the thread is stuck, further events are
/// dropped.
const EVENTS_WAITING_MAX: usize = 256;
/// Time between two heartbeats.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(3);
/// At the end of a run, how long the last events may take.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Publishes the events of one run.
#[derive(Debug)]
pub struct Publisher {
    events: Option<SyncSender<RunEvent>>,
    finished: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// Opens a sink and publishes the initial state of a run.
pub type OpenSink = Box<dyn FnOnce(&LiveRun) -> Result<Box<dyn LiveSink>, LiveError> + Send>;

impl Publisher {
    /// Starts the thread, which opens the sink: connecting to a database must not delay the run. `on_error` is
    /// called once if publishing fails. The run is then no longer published.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        run: LiveRun,
        open: OpenSink,
        on_error: impl FnOnce(LiveError) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (events, received) = sync_channel(EVENTS_WAITING_MAX);
        let (done, finished) = sync_channel(1);
        let thread =
            std::thread::Builder::new().name("riops-live".to_owned()).spawn(move || {
                if let Err(error) = publish_all(run, open, &received) {
                    on_error(error);
                }
                let _ = done.send(());
            })?;
        Ok(Self { events: Some(events), finished, thread: Some(thread) })
    }

    /// Publishes an event, or drops it if the thread is stuck. Never blocks.
    pub fn publish(&self, event: RunEvent) {
        if let Some(events) = &self.events {
            let _ = events.try_send(event);
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.events = None;
        // A thread that is stuck in a write ends with the process.
        if self.finished.recv_timeout(END_TIMEOUT) != Err(RecvTimeoutError::Timeout)
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn publish_all(
    mut run: LiveRun,
    open: OpenSink,
    received: &Receiver<RunEvent>,
) -> Result<(), LiveError> {
    let mut sink = open(&run)?;
    let mut heartbeat = Instant::now();
    loop {
        match received.recv_timeout(HEARTBEAT_EVERY) {
            Ok(event) => {
                run.apply(&event);
                sink.publish(&event, &run)?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if heartbeat.elapsed() >= HEARTBEAT_EVERY {
            heartbeat = Instant::now();
            sink.heartbeat()?;
        }
    }
}

/// Returns what opens the sink of a run that is stored at this location.
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
pub fn source_of(location: &StoreLocation, interrupt: &Interrupt) -> Box<dyn LiveSource> {
    match location {
        StoreLocation::File(path) => Box::new(FileSource::new(live_directory(path))),
        StoreLocation::Postgresql(conninfo) => {
            Box::new(PostgresqlSource::new(conninfo.as_ref().clone(), interrupt))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::plan::Plan;
    use crate::record::example_live_run;

    fn notice(text: &str) -> RunEvent {
        RunEvent::Notice { text: text.to_owned(), is_important: false }
    }

    struct Collected(Arc<Mutex<Vec<RunEvent>>>);

    impl LiveSink for Collected {
        fn publish(&mut self, event: &RunEvent, _: &LiveRun) -> Result<(), LiveError> {
            self.0.lock().unwrap().push(event.clone());
            Ok(())
        }
    }

    #[test]
    fn all_events_are_published_before_the_end() {
        let collected = Arc::new(Mutex::new(Vec::new()));
        let sink = Collected(Arc::clone(&collected));
        let run = example_live_run(&Plan::default());
        let open: OpenSink = Box::new(move |_| Ok(Box::new(sink)));
        let publisher = Publisher::start(run, open, |error| panic!("{error}")).unwrap();
        let sent = [notice("a"), notice("b"), RunEvent::Measuring];
        for event in &sent {
            publisher.publish(event.clone());
        }
        drop(publisher);
        assert_eq!(*collected.lock().unwrap(), sent);
    }

    #[test]
    fn a_stuck_sink_never_blocks_the_run() {
        let (release, stuck) = sync_channel::<()>(0);
        let open: OpenSink = Box::new(move |_| {
            let _ = stuck.recv();
            Err(LiveError::File { path: "x".into(), source: std::io::Error::other("stuck") })
        });
        let run = example_live_run(&Plan::default());
        let (failed, error) = sync_channel(1);
        let publisher =
            Publisher::start(run, open, move |error| failed.send(error).unwrap()).unwrap();
        for _ in 0..10 * EVENTS_WAITING_MAX {
            publisher.publish(RunEvent::Measuring);
        }
        drop(release);
        assert!(error.recv().unwrap().to_string().contains("stuck"));
    }
}
