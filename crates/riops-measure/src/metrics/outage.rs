//! Outages: periods without a success, and the time until the previous rate was reached again.
//!
//! Each worker records its own periods without a success. The run had no success only while all workers
//! had none.

use riops_wire::sqlstate::SqlState;

use riops_model::record::Point;
use riops_model::units::Nanos;

/// Minimum length of a gap. Shorter gaps cannot be distinguished from transaction durations.
const GAP_MIN: Nanos = Nanos(10_000_000);
/// Maximum number of gaps stored per worker; the longest are stored.
const GAPS_MAX: usize = 256;
/// Errors of one kind at most this far apart form one burst.
const BURST: Nanos = Nanos(1_000_000_000);
/// Maximum number of bursts stored per kind; later errors extend the last burst.
const BURSTS_MAX: usize = 64;
/// Maximum number of error kinds whose times are stored.
const KINDS_MAX: usize = 64;
/// Number of intervals before an outage that determine the previous rate.
const BASELINE_INTERVALS: usize = 10;
/// Share of the previous rate at which the rate counts as recovered.
const RECOVERED_SHARE: f64 = 0.9;

/// Start and end of a period.
type Range = (Nanos, Nanos);

/// Periods without a success.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps {
    last_success: Nanos,
    ranges: Vec<Range>,
}

impl Gaps {
    /// Starts recording at `start`, without a success so far.
    pub fn begin(&mut self, start: Nanos) {
        self.last_success = start;
        self.ranges = Vec::with_capacity(GAPS_MAX + 1);
    }

    /// Records a success, or the end of the measurement.
    #[inline]
    pub fn success(&mut self, now: Nanos) {
        if now.since(self.last_success) >= GAP_MIN {
            self.store((self.last_success, now));
        }
        self.last_success = now;
    }

    fn store(&mut self, range: Range) {
        self.ranges.push(range);
        if self.ranges.len() > GAPS_MAX {
            let length = |range: &Range| range.1.since(range.0);
            let shortest = (0..self.ranges.len()).min_by_key(|&at| self.ranges.get(at).map(length));
            if let Some(shortest) = shortest {
                self.ranges.remove(shortest);
            }
        }
    }

    /// Returns the length of the longest period, in seconds, if any.
    pub fn longest_s(&self) -> Option<f64> {
        self.ranges.iter().map(|range| range.1.since(range.0)).max().map(Nanos::as_seconds)
    }

    /// Retains only the periods in which `other` had no success either.
    pub fn intersect(&mut self, other: &Self) {
        let mut both = Vec::new();
        for &(from, to) in &self.ranges {
            for &(start, end) in &other.ranges {
                let range = (from.max(start), to.min(end));
                if range.1.since(range.0) >= GAP_MIN {
                    both.push(range);
                }
            }
        }
        self.ranges = both;
    }
}

/// Times of errors, by SQLSTATE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorTimes(Vec<(SqlState, Vec<Range>)>);

impl ErrorTimes {
    /// Records an error at `now`.
    pub fn add(&mut self, sqlstate: SqlState, now: Nanos) {
        self.add_range(sqlstate, (now, now));
    }

    fn add_range(&mut self, sqlstate: SqlState, range: Range) {
        let known = self.0.iter().position(|(known, _)| *known == sqlstate);
        let Some((_, bursts)) = known.and_then(|position| self.0.get_mut(position)) else {
            if self.0.len() < KINDS_MAX {
                self.0.push((sqlstate, vec![range]));
            }
            return;
        };
        let full = bursts.len() == BURSTS_MAX;
        match bursts.last_mut() {
            Some(last) if full || range.0.since(last.1) <= BURST => {
                *last = (last.0.min(range.0), last.1.max(range.1));
            }
            _ => bursts.push(range),
        }
    }

    /// Adds the errors of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (sqlstate, bursts) in &other.0 {
            let kinds = self.0.len();
            match self.0.iter_mut().find(|(known, _)| known == sqlstate) {
                Some((_, mine)) => *mine = coalesced(mine.iter().chain(bursts).copied().collect()),
                None if kinds < KINDS_MAX => self.0.push((*sqlstate, bursts.clone())),
                None => {}
            }
        }
    }

    /// Returns the SQLSTATEs that occurred.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(sqlstate, _)| sqlstate.as_str())
    }

    fn bursts(&self, sqlstate: &str) -> &[Range] {
        self.0
            .iter()
            .find(|(known, _)| known.as_str() == sqlstate)
            .map_or(&[], |(_, bursts)| bursts.as_slice())
    }
}

/// Sorts periods and merges those that are at most [`BURST`] apart.
fn coalesced(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut bursts: Vec<Range> = Vec::new();
    for range in ranges {
        match bursts.last_mut() {
            Some(last) if range.0.since(last.1) <= BURST => last.1 = last.1.max(range.1),
            _ => bursts.push(range),
        }
    }
    bursts
}

/// Rate of one interval of the time series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// End of the interval, in seconds since counting started.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Transactions per second.
    pub per_s: f64,
}

/// Returns the rates of a run: of all nodes, or of one node.
pub fn rates(series: &[Point], node: Option<usize>) -> Vec<Rate> {
    series
        .iter()
        .map(|point| {
            let count = match node {
                None => point.transactions,
                Some(node) => point.nodes.get(node).copied().unwrap_or(0),
            };
            Rate { t_s: point.t_s, seconds: point.seconds, per_s: count as f64 / point.seconds }
        })
        .collect()
}

/// Effect of an error on the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outage {
    /// Longest period without a success that overlaps such an error, in seconds.
    pub without_success_s: f64,
    /// Total length of the intervals with a rate below 90 % of the previous rate, from the start of
    /// that period until recovery or the end of the run, in seconds.
    pub below_90_percent_s: Option<f64>,
    /// Time from the start of that period to the end of the first interval with 90 % of the previous
    /// rate, in seconds.
    pub until_90_percent_s: Option<f64>,
}

/// Returns the longest outage around errors of one kind. `None` if no error of this kind caused a
/// measurable gap. `start` is the time at which counting started.
pub fn outage(
    sqlstate: &str,
    times: &ErrorTimes,
    gaps: &Gaps,
    series: &[Rate],
    start: Nanos,
) -> Option<Outage> {
    let bursts = times.bursts(sqlstate);
    let touches = |gap: &&Range| bursts.iter().any(|burst| burst.0 <= gap.1 && gap.0 <= burst.1);
    let gap = gaps.ranges.iter().filter(touches).max_by_key(|gap| gap.1.since(gap.0))?;
    let from_s = gap.0.since(start).as_seconds();
    let to_s = gap.1.since(start).as_seconds();
    let recovered_rate = recovered_rate(series, from_s);
    // First interval after the outage with a recovered rate.
    let recovered_s = recovered_rate.and_then(|recovered_rate| {
        series
            .iter()
            .find(|rate| rate.t_s > to_s && rate.per_s >= recovered_rate)
            .map(|rate| rate.t_s)
    });
    let below = recovered_rate.map(|recovered_rate| {
        let until = recovered_s.unwrap_or(f64::INFINITY);
        let is_below =
            |rate: &&Rate| rate.t_s > from_s && rate.t_s <= until && rate.per_s < recovered_rate;
        // `fold` from 0.0: the sum of an empty iterator is a negative zero.
        series.iter().filter(is_below).fold(0.0, |sum, rate| sum + rate.seconds)
    });
    Some(Outage {
        without_success_s: to_s - from_s,
        below_90_percent_s: below,
        until_90_percent_s: recovered_s.map(|end_s| end_s - from_s),
    })
}

/// Returns the rate that counts as recovered after an outage at `from_s`.
fn recovered_rate(series: &[Rate], from_s: f64) -> Option<f64> {
    let before = series.iter().filter(|rate| rate.t_s <= from_s).map(|rate| rate.per_s);
    let last: Vec<f64> = before.rev().take(BASELINE_INTERVALS).collect();
    (!last.is_empty()).then(|| RECOVERED_SHARE * last.iter().sum::<f64>() / last.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * MS)
    }

    fn gaps(successes_ms: &[u64]) -> Gaps {
        let mut gaps = Gaps::default();
        gaps.begin(Nanos(0));
        for &at in successes_ms {
            gaps.success(ms(at));
        }
        gaps
    }

    fn series(rates: &[u64]) -> Vec<Rate> {
        let points: Vec<_> = (1..)
            .zip(rates)
            .map(|(second, &transactions)| Point {
                t_s: f64::from(second),
                seconds: 1.0,
                transactions,
                nodes: vec![0, transactions],
                ..Point::default()
            })
            .collect();
        assert_eq!(super::rates(&points, Some(1)), super::rates(&points, None));
        super::rates(&points, None)
    }

    #[test]
    fn intersects_the_gaps_of_all_workers() {
        let mut all = gaps(&[5, 1_000, 1_005, 2_000]);
        all.intersect(&gaps(&[400, 405, 1_500, 1_502, 3_000]));
        assert_eq!(
            all.ranges,
            [
                (ms(5), ms(400)),
                (ms(405), ms(1_000)),
                (ms(1_005), ms(1_500)),
                (ms(1_502), ms(2_000)),
            ]
        );
    }

    #[test]
    fn stores_the_longest_gaps() {
        let mut all = Gaps::default();
        all.begin(Nanos(0));
        let mut now = 0;
        for position in 0..1_000 {
            now += 20 + u64::from(position == 3) * 5_000;
            all.success(ms(now));
        }
        assert_eq!(all.ranges.len(), GAPS_MAX);
        assert!(all.ranges.iter().any(|range| range.1.since(range.0) == ms(5_020)));
    }

    #[test]
    fn measures_an_outage_between_successes_and_recovery_to_90_percent_of_the_previous_rate() {
        let broken = SqlState::CONNECTION_FAILURE;
        let mut times = ErrorTimes::default();
        times.add(broken, ms(3_100));
        times.add(broken, ms(3_300));
        times.add(SqlState::DEADLOCK_DETECTED, ms(1_000));
        let gaps = gaps(&[3_000, 4_500, 4_505, 4_900, 4_905, 9_000]);
        let series = series(&[100, 110, 90, 0, 40, 85, 95, 100, 100]);
        let observed = outage("08006", &times, &gaps, &series, Nanos(0)).unwrap();
        let expected = Outage {
            without_success_s: 1.5,
            // Intervals four to six; the rate recovered in the seventh (90 per second).
            below_90_percent_s: Some(3.0),
            until_90_percent_s: Some(4.0),
        };
        assert_eq!(observed, expected);
        // A gap without an error is not an outage.
        assert_eq!(outage("57P01", &times, &gaps, &series, Nanos(0)), None);
        let never = super::tests::series(&[100, 100, 100, 0, 5]);
        let observed = outage("08006", &times, &gaps, &never, Nanos(0)).unwrap();
        assert_eq!(observed.until_90_percent_s, None);
    }

    #[test]
    fn merging_keeps_bursts_separate() {
        let at = |seconds: [u64; 2]| {
            let mut times = ErrorTimes::default();
            for second in seconds {
                times.add(SqlState::DISK_FULL, ms(second * 1_000));
            }
            times
        };
        let mut both = at([10, 100]);
        both.merge(&at([10, 101]));
        let expected = [(ms(10_000), ms(10_000)), (ms(100_000), ms(101_000))];
        assert_eq!(both.bursts("53100"), expected);
    }

    #[test]
    fn limits_the_stored_times_of_errors() {
        let mut times = ErrorTimes::default();
        for second in 0..1_000 {
            times.add(SqlState::DISK_FULL, ms(second * 2_000));
        }
        let bursts = times.bursts("53100");
        assert_eq!(bursts.len(), BURSTS_MAX);
        assert_eq!(bursts.last().unwrap().1, ms(999 * 2_000));
    }
}
