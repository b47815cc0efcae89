//! The intervals of a worker, which it sends to the main thread.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use super::super::window::Window;
use super::report::WorkerEvent;
use crate::metrics::{IntervalPart, Recorder};
use crate::units::Nanos;

/// The end of the current interval, and the channels through which completed ones are sent and their memory returns.
#[derive(Debug)]
pub(in crate::engine) struct Intervals {
    worker: usize,
    pub(in crate::engine) length: Nanos,
    events: SyncSender<(usize, WorkerEvent)>,
    spares: Receiver<Box<IntervalPart>>,
    /// Number of completed intervals.
    pub(in crate::engine) completed: usize,
    /// End of the current interval.
    pub(in crate::engine) end: Nanos,
    /// Intervals that are still to be sent because the channel was full, oldest first.
    pub(in crate::engine) unsent: VecDeque<Box<IntervalPart>>,
}

impl Intervals {
    /// Creates the intervals of a measurement from `start` on.
    pub(in crate::engine) fn new(
        worker: usize,
        (start, length): (Nanos, Nanos),
        events: SyncSender<(usize, WorkerEvent)>,
        spares: Receiver<Box<IntervalPart>>,
    ) -> Self {
        let (completed, end) = (0, start.after(length));
        Self { worker, length, events, spares, completed, end, unsent: VecDeque::new() }
    }

    /// Ends the current interval and sends it. Returns false if there is no memory for the next one.
    pub(in crate::engine) fn next(&mut self, recorder: &mut Recorder, open_loop: bool) -> bool {
        // The main thread returns the memory of merged intervals. An allocation is needed only if it is far
        // behind.
        let spare = self.spares.try_recv().ok();
        let Some(spare) = spare.or_else(|| IntervalPart::new(open_loop).ok().map(Box::new)) else {
            return false;
        };
        self.completed += 1;
        self.end = self.end.after(self.length);
        self.submit(recorder.next_interval(spare, self.completed));
        true
    }

    /// Sends a completed interval after those that are still to be sent. Never blocks: the time would be
    /// counted as service time. How many intervals wait is limited by the deadlines of everything that the
    /// supervising thread does.
    fn submit(&mut self, part: Box<IntervalPart>) {
        self.unsent.push_back(part);
        while let Some(part) = self.unsent.pop_front() {
            match self.events.try_send((self.worker, WorkerEvent::Interval(part))) {
                Ok(()) => {}
                Err(TrySendError::Full((_, WorkerEvent::Interval(part)))) => {
                    return self.unsent.push_front(part);
                }
                Err(_) => return,
            }
        }
    }

    /// Notifies the main thread that the last transaction of the worker has ended.
    pub(in crate::engine) fn finish_worker(&self, window: &Window) {
        window.finish_worker();
        // If the channel is full, the main thread is awake anyway.
        let _ = self.events.try_send((self.worker, WorkerEvent::Finished));
    }
}
