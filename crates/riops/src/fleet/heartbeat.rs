//! The heartbeats of an agent: a thread that shows the others that it lives, sends its last intervals, and learns whether the
//! fleet was interrupted. It never delays the run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::error::FleetError;
use super::meeting::Meeting;
use crate::engine::Breach;
use crate::host::Interrupt;
use crate::metrics::IntervalPart;
use crate::plan::{Plan, Schedule, Threshold};
use crate::record::{HistogramError, Point};
use crate::run::merged_point;
use crate::units::format::truncated;

const HEARTBEAT: &str = include_str!("../../sql/fleet/heartbeat.sql");
const INTERRUPT: &str = include_str!("../../sql/fleet/interrupt.sql");
const BREACH: &str = include_str!("../../sql/fleet/breach.sql");
const POINTS: &str = include_str!("../../sql/fleet/points.sql");

/// Heartbeats that an agent may miss, and the shortest time for that.
pub(super) const MISSED_MAX: u32 = 3;
const LOST_AFTER_MIN: Duration = Duration::from_secs(10);
/// The intervals of this number of heartbeats are sent with each of them: one may be late.
const HEARTBEATS_SENT: f64 = 3.0;
/// Number of intervals that no run reaches: the shortest ones for thirteen years.
const INTERVALS_MAX: u64 = 1 << 32;
/// A stop of the process is measured as shorter by up to this time.
const STOP_RESOLUTION: Duration = Duration::from_millis(200);
/// Heartbeats between two comparisons of the clocks.
const CLOCK_EVERY: u32 = 10;

/// Returns the time without a heartbeat after which an agent is lost.
pub(super) fn lost_after(every: Duration) -> Duration {
    (MISSED_MAX * every).max(LOST_AFTER_MIN)
}

/// What the threads of an agent share.
#[derive(Debug)]
pub(super) struct Shared {
    meeting: Mutex<Meeting>,
    points: Mutex<Points>,
    pulse: Pulse,
    /// Set when all agents together have breached a threshold that ends the run.
    pub(super) breach: Arc<OnceLock<Breach>>,
    /// Number of the last intervals that are sent with each heartbeat.
    sent: usize,
}

/// Intervals that the agents exchange.
#[derive(Debug, Default)]
struct Points {
    /// Last intervals of this agent.
    own: VecDeque<Point>,
    /// Number of intervals of this agent so far.
    seen: u64,
    /// Intervals by their number and agent, until all agents have sent them.
    of_all: BTreeMap<u64, BTreeMap<u32, Point>>,
    /// Merged intervals of all agents that were not shown yet.
    merged: Vec<Point>,
    /// Number of the first interval that was not merged yet.
    shown: u64,
    /// Thresholds of the merged intervals, if a breach ends the run.
    watch: Option<Watch>,
    /// Longest time for which the process did not run, in seconds.
    stopped_s: f64,
}

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    pub(super) shared: Arc<Shared>,
    threads: Vec<(Sender<()>, JoinHandle<()>)>,
}

/// Settings of the thread.
#[derive(Debug)]
pub(super) struct Pulse {
    pub(super) every: Duration,
    /// Whether this agent shows the intervals of all agents.
    pub(super) shows_all: bool,
    pub(super) plan: Plan,
    pub(super) interrupt: Interrupt,
}

impl Heartbeat {
    pub(super) fn start(meeting: Meeting, pulse: Pulse) -> Result<Self, FleetError> {
        let intervals_per_beat = pulse.every.as_secs_f64() / pulse.plan.interval_s;
        let sent = truncated((HEARTBEATS_SENT * intervals_per_beat.max(1.0)).ceil());
        let (meeting, points) = (Mutex::new(meeting), Mutex::default());
        let shared = Arc::new(Shared { meeting, points, pulse, breach: Arc::default(), sent });
        let mut heartbeat = Self { shared, threads: Vec::new() };
        heartbeat.spawn("riops-fleet", beat)?;
        // The first thread waits for the store, so only a second one knows that the process did not run.
        heartbeat.spawn("riops-fleet-late", measure_stops)?;
        Ok(heartbeat)
    }

    fn spawn(&mut self, name: &str, task: fn(&Shared, &Receiver<()>)) -> std::io::Result<()> {
        let (stop, stopped) = channel();
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || task(&shared, &stopped))?;
        self.threads.push((stop, thread));
        Ok(())
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        for (stop, thread) in self.threads.drain(..) {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Locks the meeting. A thread that panicked has not damaged it, because each use is complete.
    pub(super) fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn points(&self) -> MutexGuard<'_, Points> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an interval of this agent, to be sent with the next heartbeat. Returns the new merged intervals of all agents.
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

    /// Returns the last own intervals with their numbers, as JSON; `None` without any.
    pub(super) fn own_points(&self) -> Result<Option<String>, FleetError> {
        let points = self.points();
        let first = points.seen - points.own.len() as u64;
        let numbered: Vec<_> = (first..).zip(&points.own).collect();
        Ok((!numbered.is_empty()).then(|| serde_json::to_string(&numbered)).transpose()?)
    }

    /// Tells the others that the user has interrupted.
    pub(super) fn tell_interrupt(&self) -> Result<(), FleetError> {
        self.meeting().ask(INTERRUPT, &[]).map(drop)
    }

    /// Sends a heartbeat, and reads the intervals of all agents if they are shown.
    fn tell(&self, is_told: &mut bool) -> Result<(), FleetError> {
        let json = self.own_points()?;
        let interrupt = &self.pulse.interrupt;
        if interrupt.is_requested() && !*is_told {
            self.tell_interrupt()?;
            *is_told = true;
        }
        let mut meeting = self.meeting();
        let reply = meeting.tell(HEARTBEAT, &[json.as_deref()])?.unwrap_or_default();
        let [is_interrupted, threshold, end_s] = reply.as_slice() else { return Ok(()) };
        if is_interrupted.as_deref() == Some("t") && !interrupt.is_requested() {
            *is_told = true;
            interrupt.request();
        }
        if let (Some(threshold), Some(end_s)) = (threshold, end_s)
            && let (Ok(threshold), Ok(end_s)) = (threshold.parse(), end_s.parse())
        {
            let end = meeting.clock.instant_of("end", end_s)?;
            self.breach.get_or_init(|| Breach { threshold, end });
        }
        drop(meeting);
        if json.is_some() { self.read_points() } else { Ok(()) }
    }

    /// Reads the intervals of all agents if they are shown.
    fn read_points(&self) -> Result<(), FleetError> {
        if !self.pulse.shows_all {
            return Ok(());
        }
        let lost_after_s = lost_after(self.pulse.every).as_secs_f64().to_string();
        let rows = self.meeting().ask(POINTS, &[Some(&lost_after_s)])?;
        // The fleet was removed.
        if rows.is_empty() {
            return Ok(());
        }
        let (mut points, mut needed) = (self.points(), BTreeSet::new());
        for row in rows {
            let [Some(agent_text), json, Some(is_needed)] = row.as_slice() else { continue };
            let Ok(agent) = agent_text.parse() else { continue };
            if is_needed == "t" {
                needed.insert(agent);
            }
            let sent: Vec<(u64, Point)> = serde_json::from_str(json.as_deref().unwrap_or("[]"))?;
            points.receive(agent, sent);
        }
        let breached = points.merge(&needed, self.sent as u64, &self.pulse.plan)?;
        drop(points);
        if let Some(threshold) = breached {
            // All learn of it with their next heartbeat.
            let after_s = (2 * self.pulse.every).as_secs_f64().to_string();
            self.meeting().ask(BREACH, &[Some(&threshold.to_string()), Some(&after_s)])?;
        }
        Ok(())
    }

    /// Returns the intervals of all agents that were not shown. All agents have ended.
    pub(super) fn last_points(&self) -> Vec<Point> {
        // Without the store, they are missing on the screen only.
        let _ = self.read_points();
        std::mem::take(&mut self.points().merged)
    }

    /// Forgets the intervals of the stage before.
    pub(super) fn begin_stage(&self) -> Result<(), FleetError> {
        let (stopped_s, watch) = (self.stopped_s(), Watch::from_plan(&self.pulse.plan)?);
        *self.points() = Points { watch, stopped_s, ..Points::default() };
        Ok(())
    }
}

fn beat(shared: &Shared, stopped: &Receiver<()>) {
    let every = shared.pulse.every;
    let (mut is_told, mut beats) = (false, 0);
    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        // The run goes on without the store; what it says is needed at the end only.
        let _ = shared.tell(&mut is_told);
        beats += 1;
        if beats % CLOCK_EVERY == 0 {
            let _ = shared.meeting().read_clock_again();
        }
    }
}

fn measure_stops(shared: &Shared, stopped: &Receiver<()>) {
    let mut planned = Instant::now() + STOP_RESOLUTION;
    while stopped.recv_timeout(STOP_RESOLUTION) == Err(RecvTimeoutError::Timeout) {
        let mut points = shared.points();
        points.stopped_s = points.stopped_s.max(planned.elapsed().as_secs_f64());
        drop(points);
        planned = Instant::now() + STOP_RESOLUTION;
    }
}

impl Points {
    /// Adds the intervals that an agent has sent, except those that were shown, and numbers that no run has.
    fn receive(&mut self, agent: u32, sent: Vec<(u64, Point)>) {
        let expected = self.shown..INTERVALS_MAX;
        for (interval, point) in
            sent.into_iter().filter(|(interval, _)| expected.contains(interval))
        {
            self.of_all.entry(interval).or_default().insert(agent, point);
        }
    }

    /// Merges the intervals that all `needed` agents have sent, without intervals that an agent has not sent in time. Returns
    /// the threshold that the agents have breached together.
    fn merge(
        &mut self,
        needed: &BTreeSet<u32>,
        sent: u64,
        plan: &Plan,
    ) -> Result<Option<Threshold>, HistogramError> {
        let mut breached = None;
        let newest = self.of_all.last_key_value().map_or(0, |(newest, _)| *newest);
        while let Some(entry) = self.of_all.first_entry() {
            let is_complete = needed.iter().all(|agent| entry.get().contains_key(agent));
            if !is_complete && *entry.key() + sent > newest {
                break;
            }
            let (interval, parts) = entry.remove_entry();
            self.shown = interval + 1;
            if is_complete {
                let parts: Vec<&Point> = parts.values().collect();
                self.merged.extend(merged_point(&parts, plan));
                if let Some(watch) = &mut self.watch {
                    let now = watch.add(parts.into_iter())?.cloned();
                    breached = breached.or(now);
                }
            }
        }
        Ok(breached)
    }
}

/// The sum of the intervals so far.
#[derive(Debug)]
pub(super) struct Watch {
    thresholds: Vec<Threshold>,
    sum: IntervalPart,
    seconds: f64,
}

impl Watch {
    /// Returns the watch of a plan that ends with a breach; `None` for any other plan.
    pub(super) fn from_plan(plan: &Plan) -> Result<Option<Self>, HistogramError> {
        if !plan.abort_on_threshold {
            return Ok(None);
        }
        let sum = IntervalPart::new(plan.schedule != Schedule::Closed)?;
        Ok(Some(Self { thresholds: plan.thresholds.clone(), sum, seconds: 0.0 }))
    }

    /// Adds an interval of all agents. Returns a threshold that all intervals so far breach.
    pub(super) fn add<'a>(
        &mut self,
        points: impl Iterator<Item = &'a Point>,
    ) -> Result<Option<&Threshold>, HistogramError> {
        let mut seconds: f64 = 0.0;
        for point in points {
            self.sum.add_point(point)?;
            seconds = seconds.max(point.seconds);
        }
        self.seconds += seconds;
        Ok(self.sum.breached(self.seconds, &self.thresholds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Counter, Timeline};
    use crate::plan::Share;
    use crate::units::Nanos;

    #[test]
    fn an_interval_with_a_number_that_no_run_has_is_ignored() {
        let mut points = Points::default();
        points.receive(0, vec![(u64::MAX, Point::default()), (1, Point::default())]);
        points.receive(0, vec![(INTERVALS_MAX, Point::default())]);
        assert_eq!(points.of_all.keys().collect::<Vec<_>>(), [&1]);
        assert_eq!(points.merge(&BTreeSet::from([0]), 3, &Plan::default()).unwrap(), None);
        assert_eq!(points.shown, 2);
    }

    #[test]
    fn an_agent_that_has_ended_or_is_late_does_not_hold_the_others_up() {
        let of_all = |agents: &[u32]| {
            let all = agents.iter().map(|agent| (*agent, Point::default()));
            all.collect::<BTreeMap<_, _>>()
        };
        // Agent 0 has ended after two intervals.
        let points = || Points {
            of_all: (0..10)
                .map(|interval| (interval, of_all(if interval < 2 { &[0, 1] } else { &[1] })))
                .collect(),
            ..Points::default()
        };
        let shown = |needed: &[u32]| {
            let mut points = points();
            let needed = needed.iter().copied().collect();
            assert_eq!(points.merge(&needed, 3, &Plan::default()).unwrap(), None);
            (points.merged.len(), points.shown)
        };
        assert_eq!(shown(&[1]), (10, 10));
        // As long as it may be late, intervals wait for it until the third after them.
        assert_eq!(shown(&[0, 1]), (2, 7));
    }

    /// Returns an interval of one second with transactions of these latencies in milliseconds.
    fn point(latencies_ms: &[u64]) -> Point {
        let mut part = IntervalPart::new(false).unwrap();
        part.counters
            .add([(Counter::Transactions, latencies_ms.len() as u64), (Counter::Errors, 1)]);
        for latency in latencies_ms {
            part.service.record(Nanos(latency * 1_000_000));
        }
        let share = Some(Share { agent: 0, agents: 1 });
        let plan = Plan { share, percentile: 0.0, interval_s: 1.0, ..Plan::default() };
        let mut timeline = Timeline::new(1, &plan).unwrap();
        timeline.add(&part).unwrap().remove(0)
    }

    #[test]
    fn thresholds_apply_to_all_agents_since_the_start() {
        let breaches = |threshold: &str, intervals: &[&[Point]]| {
            let thresholds = vec![threshold.parse().unwrap()];
            let plan = Plan { thresholds, abort_on_threshold: true, ..Plan::default() };
            let mut watch = Watch::from_plan(&plan).unwrap().unwrap();
            let mut breached = |points: &&[Point]| watch.add(points.iter()).unwrap().is_some();
            intervals.iter().map(&mut breached).collect::<Vec<_>>()
        };
        let fast = || point(&[1, 1, 1]);
        // Each agent has 3 transactions per second and one error, all together twice as many.
        assert_eq!(breaches("tps>5", &[&[fast()], &[fast()]]), [true, true]);
        assert_eq!(breaches("tps>5", &[&[fast(), fast()], &[fast(), fast()]]), [false, false]);
        assert_eq!(breaches("errors<4", &[&[fast(), fast()], &[fast(), fast()]]), [false, true]);
        // The median of 3 times 1 ms and 5 times 9 ms is 9 ms; the mean of the agents' medians is 5 ms.
        assert_eq!(breaches("p50<8ms", &[&[fast(), fast()]]), [false]);
        assert_eq!(breaches("p50<8ms", &[&[fast(), point(&[9; 5])]]), [true]);
        assert!(Watch::from_plan(&Plan::default()).unwrap().is_none());
    }
}
