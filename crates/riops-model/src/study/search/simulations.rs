//! Simulated searches. docs/statistics.md quotes the printed rates.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{grid, rate, sessions};

/// Number of simulated searches of one kind.
const SEARCHES: usize = 200;

/// A simulated server that follows the scalability law.
#[derive(Clone, Copy)]
struct Server {
    sigma: f64,
    kappa: f64,
    noise: f64,
    /// Number of cores, if throughput grows up to it and then stays the same, instead of the law.
    cores: Option<f64>,
}

impl Server {
    fn throughput_per_s(&self, level: u32, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let noise: f64 = StandardNormal.sample(rng);
        self.mean_per_s(level) * (self.noise * noise).exp()
    }

    fn mean_per_s(&self, level: u32) -> f64 {
        let n = f64::from(level);
        let law = 1000.0 * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0));
        self.cores.map_or(law, |cores| 1000.0 * n / (1.0 + (n / cores).powi(4)).powf(0.25))
    }

    /// Returns the saturation without noise, if all levels were measured.
    fn saturation(&self) -> u32 {
        let levels = grid::levels(1, 1024);
        let most = levels.iter().map(|level| self.mean_per_s(*level)).fold(0.0, f64::max);
        let is_saturated = |level: &u32| self.mean_per_s(*level) >= sessions::SATURATED * most;
        levels.into_iter().find(is_saturated).unwrap()
    }

    /// Measures until the search ends.
    fn search(
        &self,
        settings: &sessions::Settings,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Vec<sessions::MeasuredLevel> {
        let mut points = Vec::new();
        while let Some(level) = sessions::next(settings, &points) {
            let throughput_per_s = self.throughput_per_s(level, rng);
            points.push(sessions::MeasuredLevel { level, throughput_per_s, meets_threshold: None });
        }
        points
    }
}

/// Returns the most common answer, and the share of answers within one level of it.
fn agreement(answers: &[u32]) -> (u32, f64) {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for answer in answers {
        *counts.entry(*answer).or_default() += 1;
    }
    let mode = counts.iter().max_by_key(|(_, count)| **count).map(|(level, _)| *level).unwrap();
    let levels = grid::levels(1, 1024);
    let at = |level: u32| levels.iter().position(|one| *one == level).unwrap();
    let near = answers.iter().filter(|level| at(**level).abs_diff(at(mode)) <= 1).count();
    (mode, near as f64 / answers.len() as f64)
}

/// Prints and returns the share of searches whose saturation is within one level of the most common one, and the share of those
/// whose range has the saturation without noise.
fn sessions_agreement(name: &str, server: Server) -> (f64, f64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(19);
    // The law is not part of the answer.
    let settings = sessions::Settings { resamples: 1, ..sessions::Settings::default() };
    let mut answers = Vec::new();
    let mut runs = Vec::new();
    let mut covered = 0;
    for _ in 0..SEARCHES {
        let points = server.search(&settings, &mut rng);
        runs.push(points.len());
        let conclusion = sessions::conclude(&settings, &points).unwrap();
        answers.push(conclusion.saturation);
        let range = conclusion.saturation_range.unwrap();
        covered += usize::from((range.low..=range.high).contains(&server.saturation()));
    }
    let covered = covered as f64 / SEARCHES as f64;
    let (mode, share) = agreement(&answers);
    let (mean, most) = (runs.iter().sum::<usize>() as f64 / SEARCHES as f64, runs.iter().max());
    println!(
        "sessions, {name}: saturation {mode}, within one level {share:.3}, in its range {covered:.3}; runs {mean:.1}, at most {}",
        most.unwrap()
    );
    (share, covered)
}

#[test]
fn repeated_searches_find_the_same_sessions_within_one_level() {
    let law = |sigma, kappa, noise| Server { sigma, kappa, noise, cores: None };
    let cores = |cores, noise| Server { cores: Some(cores), ..law(0.0, 0.0, noise) };
    for (name, server) in [
        ("peak at 36, noise 2 %", law(0.027, 7.7e-4, 0.02)),
        ("peak at 36, noise 5 %", law(0.027, 7.7e-4, 0.05)),
        ("peak at 6, noise 3 %", law(0.2, 0.02, 0.03)),
        ("flat peak at 20, noise 3 %", law(0.3, 0.0017, 0.03)),
        ("4 cores and a plateau, noise 3 %", cores(4.0, 0.03)),
        ("6 cores and a plateau, noise 3 %", cores(6.0, 0.03)),
        ("no peak, contention 0.1, noise 1 %", law(0.1, 0.0, 0.01)),
    ] {
        let (share, covered) = sessions_agreement(name, server);
        assert!(share >= 0.95 && covered >= 0.95, "{share} {covered}");
    }
}

/// A limit of the method: throughput that approaches its limit slowly has no clear answer.
#[test]
fn repeated_searches_disagree_if_throughput_approaches_its_limit_slowly() {
    let server = Server { sigma: 0.1, kappa: 0.0, noise: 0.03, cores: None };
    let (share, _) = sessions_agreement("no peak, contention 0.1, noise 3 %", server);
    assert!(share < 0.95, "{share}");
}

/// Prints and returns the share of searches within 5 % of the median rate.
fn rate_agreement(name: &str, width: f64, boundary: f64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(19);
    let settings = rate::Settings::new(12_345.0);
    let boundary_per_s = boundary * settings.capacity_per_s;
    let mut rates = Vec::new();
    let mut runs = Vec::new();
    for _ in 0..SEARCHES {
        let mut points = Vec::new();
        while let Some(rate_per_s) = rate::next(&settings, &points) {
            let above = (rate_per_s / boundary_per_s).ln() / width;
            let sustained = rng.random::<f64>() < 1.0 / (1.0 + above.exp());
            points.push(rate::RatePoint { rate_per_s, sustained });
        }
        runs.push(points.len());
        let rate = rate::conclude(&settings, &points).unwrap().rate_per_s;
        rates.push(rate.unwrap_or(0.0) / boundary_per_s);
    }
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    let near = rates.iter().filter(|rate| (**rate / median - 1.0).abs() <= 0.05).count();
    let share = near as f64 / SEARCHES as f64;
    let (mean, most) = (runs.iter().sum::<usize>() as f64 / SEARCHES as f64, runs.iter().max());
    println!(
        "rate, {name}: median {median:.3} of the boundary, within 5 % of it {share:.3}; runs {mean:.1}, at most {}",
        most.unwrap()
    );
    share
}

#[test]
fn repeated_searches_find_the_same_rate_within_5_percent() {
    for (name, width, boundary) in [
        ("boundary 0.95, width 1 %", 0.01, 0.95),
        ("boundary 0.95, width 2 %", 0.02, 0.95),
        ("boundary 0.7, width 2 %", 0.02, 0.7),
        ("boundary 0.3, width 2 %", 0.02, 0.3),
        ("boundary 1.3, width 2 %", 0.02, 1.3),
        ("boundary 0.9, width 3 %", 0.03, 0.9),
    ] {
        let share = rate_agreement(name, width, boundary);
        assert!(share >= 0.95, "{share}");
    }
}
