//! How long nothing succeeded, and how long it took until the former rate was back.
//!
//! Each worker notes when it had no success; only when all workers had none had the run none.

use riops_wire::sqlstate::SqlState;

use super::point::Point;
use crate::units::Nanos;

/// A shorter time without a success is not told apart from the time that transactions take.
const GAP_MIN: Nanos = Nanos(10_000_000);
/// Gaps that one worker keeps: the longest.
const GAPS_MAX: usize = 256;
/// Errors of one kind that are no farther apart than this are one burst.
const BURST: Nanos = Nanos(1_000_000_000);
/// Bursts of one kind that are kept; later errors count as part of the last.
const BURSTS_MAX: usize = 64;
/// Kinds of errors whose times are kept.
const KINDS_MAX: usize = 64;
/// Intervals before an outage by which the former rate is judged.
const FORMER_INTERVALS: usize = 10;
/// The share of the former rate from which on it counts as back.
const RECOVERED: f64 = 0.9;

/// A time from, and to.
type Range = (Nanos, Nanos);

/// Times without a success.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps {
    last_success: Nanos,
    ranges: Vec<Range>,
}

impl Gaps {
    /// Begins at `start`, without a success so far.
    pub fn begin(&mut self, start: Nanos) {
        self.last_success = start;
        self.ranges = Vec::with_capacity(GAPS_MAX + 1);
    }

    /// Notes a success, or the end of the measurement.
    pub fn success(&mut self, now: Nanos) {
        if now.since(self.last_success) >= GAP_MIN {
            self.keep((self.last_success, now));
        }
        self.last_success = now;
    }

    fn keep(&mut self, range: Range) {
        self.ranges.push(range);
        if self.ranges.len() > GAPS_MAX {
            let length = |range: &Range| range.1.since(range.0);
            let shortest = (0..self.ranges.len()).min_by_key(|&at| self.ranges.get(at).map(length));
            if let Some(shortest) = shortest {
                self.ranges.remove(shortest);
            }
        }
    }

    /// The longest, in seconds, where there is any.
    #[must_use]
    pub fn longest_s(&self) -> Option<f64> {
        self.ranges.iter().map(|range| range.1.since(range.0)).max().map(Nanos::as_seconds)
    }

    /// Keeps the times in which `other` had no success either.
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

/// When errors occurred, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorTimes(Vec<(SqlState, Vec<Range>)>);

impl ErrorTimes {
    /// Notes an error of `now`.
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

    /// The kinds that occurred.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(sqlstate, _)| sqlstate.as_str())
    }

    fn of(&self, sqlstate: &str) -> &[Range] {
        self.0
            .iter()
            .find(|(known, _)| known.as_str() == sqlstate)
            .map_or(&[], |(_, bursts)| bursts.as_slice())
    }
}

/// Ranges in order, with those made one that are no farther apart than a burst.
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

/// The rate of one interval of the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The interval's end, in seconds since counting started.
    pub t_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Transactions per second.
    pub per_s: f64,
}

/// The rates of a run: of all nodes, or of the one of this number.
#[must_use]
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

/// What an error did to the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outage {
    /// The longest time around such an error in which nothing succeeded, in seconds.
    pub without_success_s: f64,
    /// Intervals from then on whose rate was below 90 % of the former one, until it was back or the
    /// end, in seconds.
    pub below_90_percent_s: Option<f64>,
    /// From its start to the end of the first interval with 90 % of the former rate, in seconds.
    pub until_90_percent_s: Option<f64>,
}

/// The longest outage around errors of one kind; `None` where no error of this kind stopped all
/// success for as long as can be told. `start` is when counting started.
#[must_use]
pub fn outage(
    sqlstate: &str,
    times: &ErrorTimes,
    gaps: &Gaps,
    series: &[Rate],
    start: Nanos,
) -> Option<Outage> {
    let bursts = times.of(sqlstate);
    let touches = |gap: &&Range| bursts.iter().any(|burst| burst.0 <= gap.1 && gap.0 <= burst.1);
    let gap = gaps.ranges.iter().filter(touches).max_by_key(|gap| gap.1.since(gap.0))?;
    let from_s = gap.0.since(start).as_seconds();
    let to_s = gap.1.since(start).as_seconds();
    let wanted = wanted(series, from_s);
    // The first interval that reached it after the outage.
    let back = wanted.and_then(|wanted| {
        series.iter().find(|rate| rate.t_s > to_s && rate.per_s >= wanted).map(|rate| rate.t_s)
    });
    let below = wanted.map(|wanted| {
        let until = back.unwrap_or(f64::INFINITY);
        let meant = |rate: &&Rate| rate.t_s > from_s && rate.t_s <= until && rate.per_s < wanted;
        // Not a sum of nothing, which is a negative zero.
        series.iter().filter(meant).fold(0.0, |sum, rate| sum + rate.seconds)
    });
    Some(Outage {
        without_success_s: to_s - from_s,
        below_90_percent_s: below,
        until_90_percent_s: back.map(|end_s| end_s - from_s),
    })
}

/// The rate from which on the former one counts as back.
fn wanted(series: &[Rate], from_s: f64) -> Option<f64> {
    let former = series.iter().filter(|rate| rate.t_s <= from_s).map(|rate| rate.per_s);
    let last: Vec<f64> = former.rev().take(FORMER_INTERVALS).collect();
    (!last.is_empty()).then(|| RECOVERED * last.iter().sum::<f64>() / last.len() as f64)
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
            .map(|(number, &transactions)| Point {
                t_s: f64::from(number),
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
    fn only_when_no_worker_had_a_success_had_the_run_none() {
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
    fn the_longest_gaps_are_kept() {
        let mut all = Gaps::default();
        all.begin(Nanos(0));
        let mut now = 0;
        for number in 0..1_000 {
            now += 20 + u64::from(number == 3) * 5_000;
            all.success(ms(now));
        }
        assert_eq!(all.ranges.len(), GAPS_MAX);
        assert!(all.ranges.iter().any(|range| range.1.since(range.0) == ms(5_020)));
    }

    #[test]
    fn an_outage_lasts_from_success_to_success_and_recovery_to_the_former_rate() {
        let broken = SqlState::CONNECTION_FAILURE;
        let mut times = ErrorTimes::default();
        times.add(broken, ms(3_100));
        times.add(broken, ms(3_300));
        times.add(SqlState::DEADLOCK_DETECTED, ms(1_000));
        let gaps = gaps(&[3_000, 4_500, 4_505, 4_900, 4_905, 9_000]);
        let series = series(&[100, 110, 90, 0, 40, 85, 95, 100, 100]);
        let found = outage("08006", &times, &gaps, &series, Nanos(0)).unwrap();
        let expected = Outage {
            without_success_s: 1.5,
            // The fourth to the sixth interval; the seventh reached 90.
            below_90_percent_s: Some(3.0),
            until_90_percent_s: Some(4.0),
        };
        assert_eq!(found, expected);
        // A gap at the end in which no error fell is no outage of any error.
        assert_eq!(outage("57P01", &times, &gaps, &series, Nanos(0)), None);
        let never = super::tests::series(&[100, 100, 100, 0, 5]);
        let found = outage("08006", &times, &gaps, &never, Nanos(0)).unwrap();
        assert_eq!(found.until_90_percent_s, None);
    }

    #[test]
    fn merged_bursts_stay_apart() {
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
        assert_eq!(both.of("53100"), expected);
    }

    #[test]
    fn the_times_of_errors_are_bounded() {
        let mut times = ErrorTimes::default();
        for second in 0..1_000 {
            times.add(SqlState::DISK_FULL, ms(second * 2_000));
        }
        let bursts = times.of("53100");
        assert_eq!(bursts.len(), BURSTS_MAX);
        assert_eq!(bursts.last().unwrap().1, ms(999 * 2_000));
    }
}
