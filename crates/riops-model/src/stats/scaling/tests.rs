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
    let agrees = |fitted: f64, published: f64| (fitted / published - 1.0).abs() < 2e-4;
    assert!(agrees(law.sigma.value, 0.026_715_91), "{law:?}");
    assert!(agrees(law.kappa.value, 7.690_945e-4), "{law:?}");
    assert!(agrees(law.lambda.value, 995.648_6), "{law:?}");
    assert!(agrees(law.maximum_per_s.unwrap().value, 12_341.745_4), "{law:?}");
    // The publication rounds 35.57 down.
    assert_eq!(law.peak_at.unwrap().value.floor(), 35.0);
    assert!(agrees(law.throughput_per_s(20.0), 11_063.633), "{law:?}");
    assert!(law.is_peak_extrapolated() && !law.is_knee_extrapolated());
    // The measurements differ from the law by 5 % at N = 1 and form waves around it.
    assert!(law.r_squared > 0.997 && matches!(law.residuals, ResidualCheck::Shape { .. }));
    let shown = |fitted: Option<FittedValue>| {
        let fitted = fitted.unwrap();
        format!("{:.1} ({:.1} to {:.1})", fitted.value, fitted.low, fitted.high.unwrap())
    };
    println!(
        "published data: N* {}, N90 {}, knee {};\n  {}",
        shown(law.peak_at),
        shown(law.n90),
        shown(law.knee),
        law.residuals
    );
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

/// Whether the interval of N* contains the true value, which is infinite without a peak.
fn contains_peak(law: &ScalingLaw, truth: f64) -> bool {
    let high = law.peak_at.and_then(|peak| peak.high);
    law.peak_at_least.is_none_or(|least| least <= truth) && high.is_none_or(|high| truth <= high)
}

/// Prints the shares of 300 fits whose intervals contain the true values. Returns the share for the knee, for N*,
/// the lowest share of the other figures, and the share of fits that pass the check of the residuals.
fn coverage(name: &str, design: Design) -> [f64; 4] {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    let curve = design.curve();
    let mut counts = [0_u32; 7];
    for seed in 0..300 {
        let points = design.measure(&mut rng);
        let law = scaling_law(&points, &ScalingSettings { resamples: 199, seed }).unwrap();
        let hits = [
            contains(law.knee, curve.knee().unwrap()),
            contains_peak(&law, curve.peak_at(64.0).unwrap_or(f64::INFINITY)),
            contains(law.n90, curve.reaches(0.9, 64.0).unwrap()),
            contains(Some(law.sigma), design.sigma),
            contains(Some(law.kappa), design.kappa),
            contains(Some(law.lambda), 1000.0),
            law.residuals.is_ok(),
        ];
        for (count, is_hit) in counts.iter_mut().zip(hits) {
            *count += u32::from(is_hit);
        }
    }
    let [knee, peak, n90, sigma, kappa, lambda, ok] = counts.map(|count| f64::from(count) / 300.0);
    println!(
        "{name}: knee {knee:.3}, N* {peak:.3}, N90 {n90:.3}, σ {sigma:.3}, κ {kappa:.3}, λ {lambda:.3}; check ok \
         {ok:.3}"
    );
    [knee, peak, n90.min(sigma).min(kappa).min(lambda), ok]
}

#[test]
fn intervals_contain_the_true_values_in_93_percent_of_the_fits() {
    let usual = Design { sigma: 0.03, kappa: 8e-4, levels: DOUBLING, repeats: 1, noise: 0.02 };
    let three = Design { repeats: 3, ..usual };
    for (name, design) in [
        ("7 levels, 1 run, noise 2 %", usual),
        ("7 levels, 1 run, noise 5 %", Design { noise: 0.05, ..usual }),
        ("7 levels, 3 runs, noise 2 %", three),
        ("7 levels, 3 runs, noise 5 %", Design { noise: 0.05, ..three }),
        ("12 levels, 1 run, noise 2 %", Design { levels: GRID, ..usual }),
        ("largest N 24, 3 runs, noise 2 %", Design { levels: BELOW_PEAK, ..three }),
        ("peak at 6, 3 runs, noise 2 %", Design { sigma: 0.2, kappa: 0.02, ..three }),
        ("no peak, 3 runs, noise 2 %", Design { sigma: 0.1, kappa: 0.0, ..three }),
    ] {
        let [knee, peak, others, ok] = coverage(name, design);
        assert!(knee >= 0.93 && peak >= 0.93 && others >= 0.92 && ok >= 0.93, "{name}");
    }
}

#[test]
fn measurements_of_another_shape_are_recognized() {
    let cores = |n: f64| 1000.0 * n.min(8.0);
    let points: Vec<ScalingPoint> = (0..3)
        .flat_map(|run| {
            GRID.iter().map(move |n| point(*n, cores(*n) * (1.0 + 0.01 * f64::from(run - 1))))
        })
        .collect();
    let law = scaling_law(&points, &ScalingSettings::default()).unwrap();
    let ResidualCheck::Shape { p, largest_share } = law.residuals else { panic!("{law:?}") };
    assert!(p < 0.01 && largest_share > 0.1, "{law:?}");
    assert!(law.residuals.to_string().starts_with("the measurements do not follow the law: they"));
}

#[test]
fn one_wild_measurement_is_named() {
    let design = Design { sigma: 0.03, kappa: 8e-4, levels: GRID, repeats: 3, noise: 0.01 };
    let mut points = design.measure(&mut Xoshiro256PlusPlus::seed_from_u64(1));
    points[5].throughput_per_s *= 0.8;
    let law = scaling_law(&points, &ScalingSettings::default()).unwrap();
    let ResidualCheck::Outlier { n, ratio } = law.residuals else { panic!("{law:?}") };
    assert!(n == 8.0 && (0.78..0.85).contains(&ratio), "{law:?}");
    let text = law.residuals.to_string();
    assert!(text.starts_with("one measurement at N = 8 is 1"), "{text}");
}

#[test]
fn measurements_without_noise_have_intervals_without_length() {
    let design = Design { sigma: 0.03, kappa: 8e-4, levels: DOUBLING, repeats: 1, noise: 0.0 };
    let law = scaling_law(
        &design.measure(&mut Xoshiro256PlusPlus::seed_from_u64(1)),
        &ScalingSettings::default(),
    );
    let law = law.unwrap();
    let peak = law.peak_at.unwrap();
    assert!(peak.high.unwrap() - peak.low < 0.001 && (peak.value - 34.82).abs() < 0.01, "{peak:?}");
    assert!(law.residuals.is_ok() && law.r_squared > 0.999_999);
}

#[test]
fn a_throughput_that_grows_without_limit_has_no_knee() {
    let points: Vec<ScalingPoint> = DOUBLING.iter().map(|n| point(*n, 1000.0 * n)).collect();
    let law = scaling_law(&points, &ScalingSettings::default()).unwrap();
    assert_eq!((law.peak_at, law.maximum_per_s, law.knee, law.n90), (None, None, None, None));
    assert!(law.is_peak_extrapolated() && law.is_knee_extrapolated() && law.residuals.is_ok());
}

#[test]
fn too_few_levels_and_impossible_values_are_errors() {
    let fit = |points: &[ScalingPoint]| scaling_law(points, &ScalingSettings::default());
    let three = [point(1.0, 1.0), point(2.0, 2.0), point(4.0, 3.0), point(4.0, 3.1)];
    let error = fit(&three).unwrap_err();
    assert_eq!(error, ScalingError::TooFewLevels { levels: 3 });
    assert_eq!(
        error.to_string(),
        "cannot fit the scalability law to 3 different levels: at least 4 are needed"
    );
    for (n, throughput_per_s) in [(0.5, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (2.0, f64::INFINITY)] {
        let error = fit(&[point(n, throughput_per_s)]).unwrap_err();
        assert!(matches!(error, ScalingError::NotPositive { .. }), "{error}");
    }
    let four = [point(1.0, 1.0), point(2.0, 2.0), point(4.0, 3.0), point(8.0, 3.1)];
    assert!(fit(&four).is_ok());
}
