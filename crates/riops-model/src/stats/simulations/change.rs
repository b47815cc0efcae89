//! Simulated series of runs.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StudentT};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::noise;
use crate::stats::{ChangeSettings, Noise, change_points};

/// Returns a series of runs with noise of 2 %, and a shift of 5 % from `shift` on. With `outliers`, one run of 20 is slower by
/// 20 %.
fn runs(
    length: usize,
    shift: Option<usize>,
    outliers: bool,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<f64> {
    let level = |at| if shift.is_some_and(|shift| at >= shift) { 0.95 } else { 1.0 };
    let mut run = |at| {
        let outlier = if outliers && rng.random_range(0..20) == 0 { 0.8 } else { 1.0 };
        1000.0 * level(at) * outlier * (1.0 + 0.02 * noise(rng))
    };
    (0..length).map(&mut run).collect()
}

#[test]
fn a_shift_of_5_percent_is_found_in_80_percent_of_the_series_after_20_runs() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for (outliers, least) in [(false, 180), (true, 160)] {
        let mut detected = 0;
        for _ in 0..200 {
            let series = runs(40, Some(20), outliers, &mut rng);
            let points = change_points(&series, &ChangeSettings::default());
            detected += u32::from(points.iter().any(|point| point.index.abs_diff(20) <= 2));
        }
        println!("shift of 5 %, outliers {outliers}: found {detected} of 200 after 20 runs");
        assert!(detected >= least, "{detected} of 200, outliers: {outliers}");
    }
}

#[test]
fn a_step_of_a_few_nights_is_dated_within_its_range() {
    const BEFORE: usize = 40;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(57);
    for nights in [3, 4, 5, 6, 8] {
        let (mut detected, mut exact, mut within, mut narrow) = (0, 0, 0, 0);
        for _ in 0..100 {
            let level = |at| if at < BEFORE { 1.0 } else { 0.92 };
            let series: Vec<f64> = (0..BEFORE + nights)
                .map(|at| 1000.0 * level(at) * (1.0 + 0.015 * noise(&mut rng)))
                .collect();
            let points = change_points(&series, &ChangeSettings::default());
            let Some(point) = points.last() else {
                continue;
            };
            detected += 1;
            let (first, last) = point.range;
            exact += u32::from(point.index == BEFORE);
            within += u32::from((first..=last).contains(&BEFORE));
            narrow += u32::from(last - first < 4);
        }
        println!(
            "step of 8 % for {nights} nights: found in {detected} of 100, dated exactly {exact}, within the range {within}, which is at most 4 nights wide {narrow}"
        );
        assert!(within * 100 >= 95 * detected, "{within} of {detected}");
        // Three nights are seldom enough to be found, and rather if the night before was slow by chance, too.
        assert!(
            narrow * 100 >= detected * if nights == 3 { 85 } else { 95 },
            "{narrow} of {detected}"
        );
    }
}

/// How the runs of an unchanged series differ.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Independent,
    /// One run of 20 is slower by 20%.
    Outliers,
    /// Student's t distribution with 3 degrees of freedom.
    HeavyTailed,
    /// An autoregressive process: a machine that is slower on some days.
    Correlated,
}

fn unchanged(length: usize, kind: Kind, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let heavy = StudentT::new(3.0).unwrap();
    let mut deviation = 0.0;
    let mut run = |_| {
        deviation = match kind {
            Kind::Independent | Kind::Outliers => 0.02 * noise(rng),
            Kind::HeavyTailed => 0.01 * heavy.sample(rng),
            Kind::Correlated => 0.5 * deviation + 0.02 * 0.75_f64.sqrt() * noise(rng),
        };
        let is_outlier = matches!(kind, Kind::Outliers) && rng.random_range(0..20) == 0;
        1000.0 * (1.0 + deviation) * if is_outlier { 0.8 } else { 1.0 }
    };
    (0..length).map(&mut run).collect()
}

/// Whether a series has a change on any night.
fn is_red(series: &[f64], settings: &ChangeSettings) -> bool {
    (1..=series.len()).any(|night| !change_points(&series[..night], settings).is_empty())
}

#[test]
fn few_unchanged_series_have_a_change_in_100_nights() {
    const SHARE_MAX: f64 = 0.05;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    // Without an estimate of the correlation, half of the correlated ones had a change.
    for (kind, count) in [
        (Kind::Independent, 300),
        (Kind::Outliers, 300),
        (Kind::HeavyTailed, 300),
        (Kind::Correlated, 1_000),
    ] {
        let mut red = 0;
        for _ in 0..count {
            let series = unchanged(100, kind, &mut rng);
            red += u32::from(is_red(&series, &ChangeSettings::default()));
        }
        println!("no shift in 100 nights, {kind:?}: a change in {red} of {count}");
        assert!(f64::from(red) <= SHARE_MAX * f64::from(count), "{red} of {count}, {kind:?}");
    }
}

/// Runs before a level was accepted.
const EARLIER: usize = 40;

/// The settings for the values after these.
fn accepted_after(earlier: &[f64]) -> ChangeSettings {
    let settings = ChangeSettings::default();
    let changes: Vec<usize> =
        change_points(earlier, &settings).iter().map(|point| point.index).collect();
    ChangeSettings { accepted: Noise::around(earlier, &changes), ..settings }
}

#[test]
fn few_accepted_levels_have_a_change_in_the_next_30_nights() {
    const SERIES: u32 = 300;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(57);
    for kind in [Kind::Independent, Kind::Outliers, Kind::HeavyTailed, Kind::Correlated] {
        let mut red = 0;
        for _ in 0..SERIES {
            let series = unchanged(EARLIER + 30, kind, &mut rng);
            let (earlier, accepted) = series.split_at(EARLIER);
            red += u32::from(is_red(accepted, &accepted_after(earlier)));
        }
        println!(
            "no shift in 30 nights after an accepted one, {kind:?}: a change in {red} of {SERIES}"
        );
        assert!(red * 100 <= 5 * SERIES, "{red} of {SERIES}, {kind:?}");
    }
}

#[test]
fn a_shift_after_three_accepted_nights_is_found() {
    const SERIES: usize = 200;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(57);
    let mut detected = [0_u32; 6];
    let mut blind = 0;
    for _ in 0..SERIES {
        let level = |at| if at < EARLIER + 3 { 1.0 } else { 0.92 };
        let series: Vec<f64> = (0..EARLIER + 30)
            .map(|at| 1000.0 * level(at) * (1.0 + 0.015 * noise(&mut rng)))
            .collect();
        let (earlier, accepted) = series.split_at(EARLIER);
        let settings = accepted_after(earlier);
        for (count, nights) in detected.iter_mut().zip(3..) {
            let points = change_points(&accepted[..3 + nights], &settings);
            *count += u32::from(points.iter().any(|point| point.index.abs_diff(3) <= 1));
        }
        blind += u32::from(change_points(accepted, &settings).is_empty());
    }
    println!(
        "shift of 8 % after 3 accepted nights, found with the third to the eighth: {detected:?} of {SERIES}, never: {blind}"
    );
    // Without the earlier noise, the shift was never found in 197 series.
    assert!(
        detected[0] >= 160 && detected[3] >= 185 && blind <= 10,
        "{detected:?}, never: {blind}"
    );
}
