//! The law fitted to published and to simulated measurements.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

/// Requests per second of a router with 1 to 32 threads, published by Schwartz ("Practical Scalability Analysis
/// with the Universal Scalability Law", 2015); the example of usl-rs.
const CISCO: [f64; 32] = [
    955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61,
    8278.71, 8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52,
    11151.43, 11518.63, 11806.0, 12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27,
    12118.04, 12140.4, 12074.39,
];

fn point(n: f64, throughput_per_s: f64) -> ScalingPoint {
    ScalingPoint { n, throughput_per_s }
}

#[test]
fn agrees_with_the_published_fit_of_the_published_data() {
    let points: Vec<ScalingPoint> =
        (1..).zip(CISCO).map(|(n, value)| point(f64::from(n), value)).collect();
    let law = scaling_law(&points, &ScalingSettings::default()).unwrap();
    let agrees = |found: f64, published: f64| (found / published - 1.0).abs() < 2e-4;
    assert!(agrees(law.sigma.value, 0.026_715_91), "{law:?}");
    assert!(agrees(law.kappa.value, 7.690_945e-4), "{law:?}");
    assert!(agrees(law.lambda.value, 995.648_6), "{law:?}");
    assert!(agrees(law.maximum_per_s.unwrap().value, 12_341.745_4), "{law:?}");
    // The publication rounds 35.57 down.
    assert_eq!(law.peak_at.unwrap().value.floor(), 35.0);
    assert!(agrees(law.throughput_per_s(20.0), 11_063.633), "{law:?}");
    assert!(law.peak_is_extrapolated() && !law.knee_is_extrapolated());
    println!("{law:#?}");
}

/// Simulated measurements.
#[derive(Clone, Copy)]
struct Design {
    sigma: f64,
    kappa: f64,
    levels: &'static [f64],
    repeats: usize,
    noise: f64,
}

impl Design {
    fn curve(&self) -> Curve {
        Curve { lambda: 1000.0, sigma: self.sigma, kappa: self.kappa }
    }

    fn measure(&self, rng: &mut Xoshiro256PlusPlus) -> Vec<ScalingPoint> {
        let curve = self.curve();
        let mut points = Vec::new();
        for _ in 0..self.repeats {
            for n in self.levels {
                let noise: f64 = StandardNormal.sample(rng);
                points.push(point(*n, curve.at(*n) * (self.noise * noise).exp()));
            }
        }
        points
    }
}

const DOUBLING: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
const GRID: &[f64] = &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0];
const BELOW_PEAK: &[f64] = &[1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0];

fn contains(fitted: Option<FittedValue>, truth: f64) -> bool {
    fitted.is_some_and(|fitted| fitted.low <= truth && fitted.high.is_none_or(|high| truth <= high))
}

#[test]
fn intervals_contain_the_true_values() {
    let usual = Design { sigma: 0.03, kappa: 8e-4, levels: DOUBLING, repeats: 1, noise: 0.02 };
    let designs = [
        ("7 levels, 1 run", usual),
        ("7 levels, 1 run, noise 5 %", Design { noise: 0.05, ..usual }),
        ("7 levels, 3 runs", Design { repeats: 3, ..usual }),
        ("7 levels, 3 runs, noise 5 %", Design { repeats: 3, noise: 0.05, ..usual }),
        ("12 levels, 1 run", Design { levels: GRID, ..usual }),
        ("12 levels, 3 runs, noise 1 %", Design { levels: GRID, repeats: 3, noise: 0.01, ..usual }),
        ("largest N 24, 3 runs", Design { levels: BELOW_PEAK, repeats: 3, ..usual }),
        ("peak at 6, 3 runs", Design { sigma: 0.2, kappa: 0.02, repeats: 3, ..usual }),
        ("no peak, 3 runs", Design { sigma: 0.1, kappa: 0.0, repeats: 3, ..usual }),
    ];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for (name, design) in designs {
        let curve = design.curve();
        let (mut knee, mut peak, mut sigma, mut kappa, mut lambda, mut ok) = (0, 0, 0, 0, 0, 0);
        let (mut maximum, mut n90) = (0, 0);
        for seed in 0..300 {
            let law =
                scaling_law(&design.measure(&mut rng), &ScalingSettings { resamples: 199, seed })
                    .unwrap();
            knee += u32::from(contains(law.knee, curve.knee().unwrap()));
            let peak_true = curve.peak_at(64.0).unwrap_or(f64::INFINITY);
            let within = law.peak_at_least.is_none_or(|least| least <= peak_true)
                && law.peak_at.and_then(|peak| peak.high).is_none_or(|high| peak_true <= high);
            peak += u32::from(within);
            maximum += u32::from(contains(law.maximum_per_s, curve.maximum_per_s(64.0).unwrap()));
            n90 += u32::from(contains(law.n90, curve.reaches(0.9, 64.0).unwrap()));
            sigma += u32::from(contains(Some(law.sigma), design.sigma));
            kappa += u32::from(contains(Some(law.kappa), design.kappa));
            lambda += u32::from(contains(Some(law.lambda), 1000.0));
            ok += u32::from(law.residuals.is_ok());
        }
        let [knee, peak, maximum, n90, sigma, kappa, lambda, ok] =
            [knee, peak, maximum, n90, sigma, kappa, lambda, ok]
                .map(|count| f64::from(count) / 300.0);
        println!(
            "{name}: knee {knee:.3}, N* {peak:.3}, max {maximum:.3}, n90 {n90:.3}, sigma {sigma:.3}, kappa {kappa:.3}, lambda {lambda:.3}; \
             residuals ok {ok:.3}"
        );
    }
}
