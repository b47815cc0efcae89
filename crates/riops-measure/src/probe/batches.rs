//! The uncertainty of shares that were sampled: batch means.
//!
//! The sessions of one sample are not independent, because one lock makes many wait, nor are samples that follow each other.
//! So samples are collected in batches, whose means vary as much as the share is uncertain. Source: Law, "Simulation Modeling
//! and Analysis", 9.5.3.

use riops_model::record::{SessionTime, TimePart};
use riops_model::stats::mean_reach;

/// Twice the smallest number of batches: when there are as many, two become one.
const BATCHES_MAX: usize = 64;
/// Fewer batches have no interval.
const BATCHES_MIN: usize = 4;

/// Number of sessions in each part, in one or more samples, and of all sessions.
type Counts = ([u64; TimePart::COUNT], u64);

/// Samples in batches of the same size.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Number of samples in a batch.
    size: u64,
    complete: Vec<Counts>,
    /// The last batch, and the number of its samples.
    open: (Counts, u64),
}

impl Batches {
    /// Adds a sample: the sessions in each part, of all sessions.
    pub(super) fn add(&mut self, sessions: u64, counts: &[u64; TimePart::COUNT]) {
        if sessions == 0 {
            return;
        }
        self.size = self.size.max(1);
        self.open.0 = sum(self.open.0, &(*counts, sessions));
        self.open.1 += 1;
        if self.open.1 == self.size {
            self.complete.push(std::mem::take(&mut self.open).0);
        }
        if self.complete.len() == BATCHES_MAX {
            self.size *= 2;
            let pairs = self.complete.chunks(2);
            self.complete = pairs.map(|pair| pair.iter().fold(Counts::default(), sum)).collect();
        }
    }

    /// Returns the parts that occurred with their shares.
    pub(super) fn shares(&self) -> Vec<SessionTime> {
        let batches = || self.complete.iter().chain([&self.open.0]);
        let all = batches().map(|(_, sessions)| sessions).sum::<u64>() as f64;
        let share = |(at, part): (usize, TimePart)| {
            let occurrences = |(counts, _): &Counts| counts.get(at).copied().unwrap_or_default();
            let count = batches().map(occurrences).sum::<u64>();
            let mean = |batch: &Counts| occurrences(batch) as f64 / batch.1 as f64;
            let means: Vec<f64> = self.complete.iter().map(mean).collect();
            let varies = mean_reach(&means, 0.05).filter(|_| means.len() >= BATCHES_MIN);
            (count > 0).then(|| SessionTime {
                part,
                share: count as f64 / all,
                reach: varies.map(|reach| reach.max(least_reach(count as f64, all))),
            })
        };
        TimePart::ALL.into_iter().enumerate().filter_map(share).collect()
    }
}

/// Returns the half-width of the confidence interval for independent samples: few batches of a rare part may be equal
/// by chance. Source: Agresti and Coull, "Approximate Is Better than 'Exact' for Interval Estimation of Binomial
/// Proportions" (1998).
fn least_reach(count: f64, all: f64) -> f64 {
    let (count, all) = (count + 2.0, all + 4.0);
    1.96 * (count / all * (1.0 - count / all) / all).sqrt()
}

fn sum(mut sum: Counts, counts: &Counts) -> Counts {
    for (sum, count) in sum.0.iter_mut().zip(counts.0) {
        *sum += count;
    }
    (sum.0, sum.1 + counts.1)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn counts(parts: &[(TimePart, u64)]) -> [u64; TimePart::COUNT] {
        let mut counts = [0; TimePart::COUNT];
        for &(part, count) in parts {
            counts[TimePart::ALL.iter().position(|known| *known == part).unwrap()] = count;
        }
        counts
    }

    #[test]
    fn computes_shares_over_all_samples_including_an_incomplete_batch() {
        let mut batches = Batches::default();
        for sample in 0..1_001_u64 {
            batches.add(4, &counts(&[(TimePart::Cpu, 1 + sample % 2), (TimePart::Lock, 2)]));
        }
        let shares = batches.shares();
        assert_eq!(
            shares.iter().map(|share| share.part).collect::<Vec<_>>(),
            [TimePart::Cpu, TimePart::Lock]
        );
        assert!((shares[0].share - 1_501.0 / 4_004.0).abs() < 1e-12);
        assert!((shares[1].share - 0.5).abs() < 1e-12);
        // Equal batches: no less uncertain than independent samples.
        assert!(shares[1].reach.unwrap() > 0.015 && shares[1].reach.unwrap() < 0.016);
        let mut few = Batches::default();
        few.add(4, &counts(&[(TimePart::Cpu, 4)]));
        assert_eq!(few.shares()[0].reach, None);
    }

    /// Eight sessions, all of which wait for a lock now and then for about 20 samples.
    #[test]
    fn intervals_cover_the_share_although_sessions_wait_together() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(41);
        let (repetitions, mut covered) = (400, 0);
        for _ in 0..repetitions {
            let (mut batches, mut is_locked) = (Batches::default(), false);
            for _ in 0..20_000 {
                // The locked share of the time is 1/80 / (1/80 + 1/20) = 0.2.
                is_locked =
                    if is_locked { rng.random_bool(0.95) } else { rng.random_bool(0.012_5) };
                let waiting = if is_locked { 7 } else { 0 };
                let busy = (waiting..8).filter(|_| rng.random_bool(0.5)).count() as u64;
                batches.add(8, &counts(&[(TimePart::Lock, waiting), (TimePart::Cpu, busy)]));
            }
            let lock =
                batches.shares().into_iter().find(|share| share.part == TimePart::Lock).unwrap();
            covered += u32::from((lock.share - 0.2 * 7.0 / 8.0).abs() <= lock.reach.unwrap());
        }
        assert!(covered * 100 >= repetitions * 93, "{covered} of {repetitions}");
    }
}
