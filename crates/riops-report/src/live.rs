//! A stage in progress, as a terminal shows it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::document::Document;
use crate::interval::{NOTHING_FINISHED, counters, latencies, seconds};
use crate::render::text::TEXT_INDENT;
use crate::sections::bottleneck::{is_stable, speed_text};
use crate::sections::waits::named;
use crate::words;
use riops_model::figure::{FULL_SHARE, Figure, WAITING_SHARE};
use riops_model::plan::{ObserveRun, Plan, Stop};
use riops_model::record::{LiveTotals, MachineFacts, Point, ProbePoint, Sampled};
use riops_model::units::Span;
use riops_model::units::format::{count, joined, percent, rate, truncated};
use riops_model::units::text::shortened;

/// Intervals of the curve of the rate.
const CURVE_COLUMNS: usize = 24;
/// Heights of the curve, from low to high.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum number of wait events that are named.
const WAITS_MAX: usize = 4;
/// Maximum number of stored samples: the first ones, with which the CPU speed is compared, and the last one.
const SAMPLES_MAX: usize = 4;

/// The state of a stage in progress.
#[derive(Debug, Clone)]
pub struct LiveView {
    plan: Plan,
    /// Machine of the client, to which the samples refer.
    machine: MachineFacts,
    last: Option<Point>,
    totals: LiveTotals,
    /// Main rate of the last intervals.
    rates: VecDeque<f64>,
    sampled: Sampled,
}

impl LiveView {
    /// A stage of this plan that starts.
    pub fn new(plan: &Plan, machine: MachineFacts) -> Self {
        Self {
            plan: plan.clone(),
            machine,
            last: None,
            totals: LiveTotals::default(),
            rates: VecDeque::with_capacity(CURVE_COLUMNS),
            sampled: Sampled::default(),
        }
    }

    /// Adds an interval.
    pub fn add(&mut self, point: &Point) {
        self.totals.add(point);
        if self.rates.len() == CURVE_COLUMNS {
            self.rates.pop_front();
        }
        let counted = Figure::throughput_of(&self.plan.work).count_in(point);
        self.rates.push_back(counted as f64 / point.seconds.max(f64::MIN_POSITIVE));
        self.last = Some(point.clone());
    }

    /// Adds a sample of the counters.
    pub fn add_sample(&mut self, sample: &ProbePoint) {
        self.sampled.waits.clone_from(&sample.waits);
        let points = &mut self.sampled.points;
        if points.len() == SAMPLES_MAX {
            points.pop();
        }
        points.push(sample.clone());
    }

    /// Returns the completed share of the stage, from 0 to 1, and its text with the remaining time.
    pub fn progress(&self) -> (f64, String) {
        let t_s = self.last.as_ref().map_or(0.0, |point| point.t_s);
        // The end of an observed command is not known.
        if self.plan.work.get::<ObserveRun>().is_some_and(|run| !run.command.is_empty()) {
            return (0.0, format!("{} s", seconds(t_s, &self.plan, 0)));
        }
        let (done, all) = match self.plan.stop {
            Stop::DurationS(seconds) => (t_s, seconds),
            Stop::Transactions(count) => (self.totals.transactions as f64, count as f64),
            Stop::Rows(count) => (self.totals.rows as f64, count as f64),
        };
        let share = (done / all.max(f64::MIN_POSITIVE)).min(1.0);
        let text = match self.plan.stop {
            Stop::DurationS(all_s) => format!("{}/{all_s} s", seconds(t_s, &self.plan, 0)),
            Stop::Transactions(_) | Stop::Rows(_) => percent(share),
        };
        let left_s = (t_s / share - t_s).ceil();
        let left = Duration::try_from_secs_f64(left_s).ok().filter(|left| !left.is_zero());
        let left = left.map_or_else(String::new, |left| format!(" · {} left", Span(left)));
        (share, text + &left)
    }

    /// The last interval in parts of one line, the most important first.
    pub fn parts(&self) -> Vec<(u8, String)> {
        let (_, latencies) = self.latencies();
        let parts = [self.headline(), self.counts(), latencies];
        (1..).zip(parts).filter(|(_, text)| !text.is_empty()).collect()
    }

    fn headline(&self) -> String {
        let unit = words::for_work(&self.plan.work).measure().unit();
        format!("{} {unit}", rate(self.rates.back().copied().unwrap_or_default()))
    }

    fn latencies(&self) -> (&'static str, String) {
        let Some(point) = &self.last else {
            return ("latency", String::new());
        };
        let (label, parts) = latencies(point, &self.plan);
        (label, if parts.is_empty() { NOTHING_FINISHED.to_owned() } else { parts.join(" · ") })
    }

    /// Errors, retries and late transactions so far, and those that wait.
    fn counts(&self) -> String {
        let backlog = self.last.as_ref().and_then(|point| point.backlog);
        let counters = counters(&self.totals, backlog).into_iter();
        let counters = counters.filter(|(value, _)| *value > 0);
        let texts = counters.map(|(value, name)| format!("{} {name}", count(value)));
        texts.collect::<Vec<_>>().join(" · ")
    }

    /// The last interval, the errors so far, the bottleneck so far, and what the server waits for: at most five lines of this width.
    pub fn document(&self, width: usize) -> Document {
        let mut document = Document::default();
        if self.last.is_none() {
            return document;
        }
        let measure = words::for_work(&self.plan.work).measure();
        let (label, latencies) = self.latencies();
        let lines = [
            (measure.name, format!("{}  {}", self.headline(), self.curve())),
            (label, latencies),
            ("counts", self.counts()),
            ("bottleneck", self.bottleneck()),
            ("wait events", named(&self.sampled.waits, WAITS_MAX)),
        ];
        for (label, text) in lines {
            document.known(label, shortened(&text, width.saturating_sub(TEXT_INDENT + 1)));
        }
        document
    }

    /// The bottleneck so far, by the last sample.
    fn bottleneck(&self) -> String {
        let Some(sample) = self.sampled.points.last() else {
            return String::new();
        };
        let busy = sample.machine_busy_share;
        let waits = sample.waits.iter().filter(|wait| wait.is_of_server());
        let wait = waits.max_by(|one, other| one.share.total_cmp(&other.share));
        let limit = if busy.is_some_and(|busy| busy >= FULL_SHARE) {
            "CPU so far".to_owned()
        } else if let Some(wait) = wait.filter(|wait| wait.share >= WAITING_SHARE) {
            format!("{} so far", wait.event)
        } else {
            "none found so far".to_owned()
        };
        let busy = busy.map(|busy| format!("CPU {}", self.machine.cpu_of_all_text(busy)));
        let speed = self.sampled.processor_speeds().last().copied();
        let speed = speed.filter(|speed| !is_stable(*speed)).map(speed_text);
        joined([Some(limit), busy, speed].into_iter().flatten(), " · ")
    }

    /// The rates of the last intervals as a line of bars, from zero to the highest one.
    fn curve(&self) -> String {
        let highest = self.rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let height = |rate: &f64| truncated((rate / highest * HEIGHTS.len() as f64).ceil());
        let bars = self.rates.iter().map(|rate| HEIGHTS.get(height(rate).saturating_sub(1)));
        bars.flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document_text, example_record};
    use riops_model::record::WaitShare;

    fn view(stop: Stop) -> LiveView {
        let record = example_record();
        let mut view = LiveView::new(&Plan { stop, ..record.plan.clone() }, record.client.machine);
        for (t_s, rows) in [(1.0, 1_200_000), (2.0, 600_000), (3.0, 0), (4.0, 912_000)] {
            let mut point = record.stages[0].session_loop.series[0].clone();
            point.rows = rows;
            (point.t_s, point.seconds, point.errors) = (t_s, 1.0, 2);
            view.add(&point);
        }
        for work_us in [10.0, 10.0, 10.0, 11.0, 20.0] {
            view.add_sample(&ProbePoint {
                machine_busy_share: Some(0.97),
                processor_work_us: Some(work_us),
                waits: vec![
                    WaitShare { event: "CPU".to_owned(), share: 0.9 },
                    WaitShare { event: "IO:DataFileRead".to_owned(), share: 0.1 },
                ],
                ..ProbePoint::default()
            });
        }
        view
    }

    #[test]
    fn shows_the_last_interval_the_errors_so_far_and_what_the_server_waits_for() {
        let view = view(Stop::DurationS(10.0));
        assert_eq!(view.progress(), (0.4, "4/10 s · 6s left".to_owned()));
        insta::assert_snapshot!(document_text(&view.document(60), 60));
    }

    #[test]
    fn the_time_that_is_left_follows_from_what_is_done() {
        let (share, text) = view(Stop::Rows(27_120_000)).progress();
        assert_eq!((share, text.as_str()), (0.1, "10% · 36s left"));
        let (share, text) = LiveView::new(&Plan::default(), MachineFacts::default()).progress();
        assert_eq!((share, text.as_str()), (0.0, "0/10 s"));
        let done = view(Stop::DurationS(4.0)).progress();
        assert_eq!(done, (1.0, "4/4 s".to_owned()));
        let observed =
            ObserveRun { command: vec!["true".to_owned()].into(), ..ObserveRun::default() };
        let plan = Plan { work: observed.into(), stop: Stop::Transactions(1), ..Plan::default() };
        assert_eq!(
            LiveView::new(&plan, MachineFacts::default()).progress(),
            (0.0, "0 s".to_owned())
        );
    }
}
