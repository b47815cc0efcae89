//! The latencies of an interval of a log: exact if there are few, otherwise counts of rounded ones, so that the memory does
//! not grow with the log.

use crate::units::format::truncated;

/// Number of latencies above which they are counted instead of listed.
const EXACT_MAX: usize = 1024;
/// Binary digits of a counted latency: an error of at most 0.4%.
const DIGITS: u32 = 8;

/// Latencies in microseconds, at most 71 minutes.
#[derive(Debug, Default)]
pub(super) struct Values {
    exact: Vec<u32>,
    /// In ascending order.
    counted: Vec<(u32, u64)>,
    max: u32,
}

impl Values {
    pub(super) fn add(&mut self, us: u64) {
        let us = u32::try_from(us).unwrap_or(u32::MAX);
        self.max = self.max.max(us);
        self.exact.push(us);
        if self.exact.len() >= EXACT_MAX {
            self.count();
        }
    }

    /// Counts the latencies that are stored one by one.
    fn count(&mut self) {
        let exact = std::mem::take(&mut self.exact);
        self.counted.extend(exact.into_iter().map(|us| (rounded(us), 1)));
        self.merge();
    }

    fn merge(&mut self) {
        self.counted.sort_unstable();
        self.counted.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        self.counted.shrink_to_fit();
    }

    /// Returns the latencies of several intervals in ascending order.
    pub(super) fn sorted<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for values in all {
            sum.max = sum.max.max(values.max);
            sum.counted.extend(values.counted.iter().copied());
            sum.counted.extend(values.exact.iter().map(|us| (*us, 1)));
        }
        sum.merge();
        sum
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.counted.is_empty()
    }

    /// Returns the number of sorted latencies.
    pub(super) fn len(&self) -> u64 {
        self.counted.iter().map(|(_, count)| count).sum()
    }

    /// Returns the smallest of the sorted latencies that a percentage does not exceed.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let mut rank = truncated((percent / 100.0 * self.len() as f64).ceil()).max(1) as u64;
        let (last, _) = *self.counted.last()?;
        for (us, count) in &self.counted {
            if rank <= *count {
                let us = if *us == last && rank == *count { self.max } else { *us };
                return Some(f64::from(us));
            }
            rank -= count;
        }
        None
    }

    #[cfg(test)]
    fn stored(&self) -> usize {
        self.exact.capacity() + self.counted.capacity()
    }
}

fn rounded(us: u32) -> u32 {
    let shift = (u32::BITS - us.leading_zeros()).saturating_sub(DIGITS);
    us >> shift << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_latencies_are_exact_and_many_are_counted() {
        let values = |count: u64| {
            let mut values = Values::default();
            (1..=count).for_each(|us| values.add(us * 7919 % (count + 1)));
            values
        };
        let few = Values::sorted([&values(100)].into_iter());
        assert_eq!([50.0, 99.0, 100.0].map(|at| few.percentile(at)), [50.0, 99.0, 100.0].map(Some));
        let many = values(100_000);
        assert!(many.stored() < 5_000, "{}", many.stored());
        let many = Values::sorted([&many].into_iter());
        assert_eq!((many.len(), many.percentile(100.0)), (100_000, Some(100_000.0)));
        let p99 = many.percentile(99.0).unwrap();
        assert!((98_000.0..=99_000.0).contains(&p99), "{p99}");
        assert_eq!(Values::sorted([].into_iter()).percentile(50.0), None);
    }
}
