//! The heartbeats of an agent: a thread that shows the others that it lives, sends its last intervals, and learns whether the
//! fleet was interrupted. It never delays the run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::error::FleetError;
use super::meeting::Meeting;
use crate::host::Interrupt;
use crate::plan::Plan;
use crate::record::Point;
use crate::run::merged_point;

const HEARTBEAT: &str = include_str!("../../sql/fleet/heartbeat.sql");
const INTERRUPT: &str = include_str!("../../sql/fleet/interrupt.sql");
const POINTS: &str = include_str!("../../sql/fleet/points.sql");

/// The intervals of this number of heartbeats are sent with each of them: one may be late.
const HEARTBEATS_SENT: f64 = 3.0;
/// Heartbeats between two comparisons of the clocks.
const CLOCK_EVERY: u32 = 10;

/// What the threads of an agent share.
#[derive(Debug)]
pub(super) struct Shared {
    meeting: Mutex<Meeting>,
    points: Mutex<Points>,
    /// Number of the last intervals that are sent with each heartbeat.
    sent: usize,
}

/// Intervals on their way.
#[derive(Debug, Default)]
struct Points {
    /// The last own ones.
    own: VecDeque<Point>,
    /// Number of the own ones.
    seen: u64,
    /// Those of all agents by number, until all have sent them.
    of_all: BTreeMap<u64, BTreeMap<u32, Point>>,
    /// Those of all agents together that were not shown.
    merged: Vec<Point>,
    /// Number of the last of them.
    shown: u64,
    /// Longest time for which the process did not run, in seconds.
    stopped_s: f64,
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    pub(super) shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread needs to know.
pub(super) struct Pulse {
    pub(super) every: Duration,
    /// Number of the agents whose intervals are merged; 0 if those of this agent are enough.
    pub(super) agents: u32,
    pub(super) plan: Plan,
    pub(super) interrupt: Interrupt,
}

impl Heartbeat {
    pub(super) fn start(meeting: Meeting, pulse: Pulse) -> Result<Self, FleetError> {
        let each = pulse.every.as_secs_f64() / pulse.plan.interval_s;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 30")]
        let sent = (HEARTBEATS_SENT * each.max(1.0)).ceil() as usize;
        let (meeting, points) = (Mutex::new(meeting), Mutex::default());
        let shared = Arc::new(Shared { meeting, points, sent });
        let (stop, stopped) = channel();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("riops-fleet".to_owned())
            .spawn(move || beat(&of_thread, &pulse, &stopped))?;
        Ok(Self { shared, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Each use is complete, so that what a thread left that has panicked is not damaged.
    pub(super) fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn points(&self) -> MutexGuard<'_, Points> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an own interval, to be sent with the next heartbeat. Returns those of all agents that became known.
    pub(super) fn exchange(&self, point: &Point) -> Vec<Point> {
        let mut points = self.points();
        points.seen += 1;
        points.own.push_back(point.clone());
        if points.own.len() > self.sent {
            points.own.pop_front();
        }
        std::mem::take(&mut points.merged)
    }

    /// Returns the longest time for which the process did not run, in seconds.
    pub(super) fn stopped_s(&self) -> f64 {
        self.points().stopped_s
    }

    /// Forgets the intervals of the stage before.
    pub(super) fn begin_stage(&self) {
        let stopped_s = self.stopped_s();
        *self.points() = Points { stopped_s, ..Points::default() };
    }
}

fn beat(shared: &Shared, pulse: &Pulse, stopped: &Receiver<()>) {
    let (mut is_told, mut beats) = (false, 0);
    loop {
        let planned = Instant::now() + pulse.every;
        match stopped.recv_timeout(pulse.every) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
        let late_s = planned.elapsed().as_secs_f64();
        let mut points = shared.points();
        points.stopped_s = points.stopped_s.max(late_s);
        drop(points);
        // The run goes on without the store; what it says is needed at the end only.
        let _ = tell(shared, pulse, &mut is_told);
        beats += 1;
        if beats % CLOCK_EVERY == 0 {
            let _ = shared.meeting().read_clock_again();
        }
    }
}

/// Sends a heartbeat, and reads those of the others if they are shown.
fn tell(shared: &Shared, pulse: &Pulse, is_told: &mut bool) -> Result<(), FleetError> {
    let numbered: Vec<(u64, Point)> = {
        let points = shared.points();
        let first = points.seen - points.own.len() as u64;
        (first..).zip(points.own.iter().cloned()).collect()
    };
    let json = (!numbered.is_empty()).then(|| serde_json::to_string(&numbered)).transpose()?;
    let mut meeting = shared.meeting();
    if pulse.interrupt.requested() && !*is_told {
        meeting.ask(INTERRUPT, &[])?;
        *is_told = true;
    }
    let reply = meeting.tell(HEARTBEAT, &[json.as_deref()])?;
    let is_interrupted = reply.and_then(|row| row.into_iter().next().flatten());
    if is_interrupted.as_deref() == Some("t") && !pulse.interrupt.requested() {
        *is_told = true;
        pulse.interrupt.request();
    }
    if pulse.agents == 0 || json.is_none() {
        return Ok(());
    }
    let rows = meeting.ask(POINTS, &[])?;
    drop(meeting);
    let mut points = shared.points();
    for row in rows {
        let mut values = row.into_iter();
        let number = values.next().flatten().and_then(|text| text.parse::<u32>().ok());
        if let (Some(agent), Some(json)) = (number, values.next().flatten()) {
            let sent: Vec<(u64, Point)> = serde_json::from_str(&json)?;
            let shown = points.shown;
            for (interval, point) in sent.into_iter().filter(|(of, _)| *of >= shown) {
                points.of_all.entry(interval).or_default().insert(agent, point);
            }
        }
    }
    points.merge(pulse, shared.sent as u64);
    Ok(())
}

impl Points {
    /// Merges the intervals that all agents have sent. One that an agent has not sent in time is left out.
    fn merge(&mut self, pulse: &Pulse, sent: u64) {
        while let Some(entry) = self.of_all.first_entry() {
            let is_complete = entry.get().len() >= pulse.agents as usize;
            if !is_complete && *entry.key() + sent > self.seen {
                return;
            }
            let (interval, parts) = entry.remove_entry();
            self.shown = interval + 1;
            if is_complete {
                let parts: Vec<&Point> = parts.values().collect();
                self.merged.extend(merged_point(&parts, &pulse.plan));
            }
        }
    }
}
