//! Simulated series of runs.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::noise;
use crate::stats::{ChangeSettings, change_points};

/// Returns a series of runs with noise of 2 %, and a shift of 5 % from `shift` on.
fn runs(length: usize, shift: Option<usize>, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let level = |at| if shift.is_some_and(|shift| at >= shift) { 0.95 } else { 1.0 };
    (0..length).map(|at| 1000.0 * level(at) * (1.0 + 0.02 * noise(rng))).collect()
}

#[test]
fn a_shift_of_5_percent_is_found_within_two_runs_in_90_percent_of_the_series() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for length in [20, 40, 100] {
        let mut found = 0;
        let mut only = 0;
        for _ in 0..200 {
            // Anywhere in the middle half. A short series needs ten runs on each side.
            let middle = length / 4..=length * 3 / 4;
            let shift = if length == 20 { 10 } else { rng.random_range(middle) };
            let points =
                change_points(&runs(length, Some(shift), &mut rng), &ChangeSettings::default());
            let near = points.iter().filter(|point| point.index.abs_diff(shift) <= 2).count();
            found += u32::from(near > 0);
            only += u32::from(near > 0 && points.len() == 1);
        }
        println!(
            "shift of 5 % in {length} runs: found {found} of 200, without any other change {only}"
        );
        assert!(found >= 180, "{found} of 200 with {length} runs");
    }
}

#[test]
fn no_change_is_found_in_95_percent_of_the_series_without_a_shift() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for length in [20, 40, 100] {
        let none = |_: &usize| {
            change_points(&runs(length, None, &mut rng), &ChangeSettings::default()).is_empty()
        };
        let none = (0..200).filter(none).count();
        println!("no shift in {length} runs: no change in {none} of 200");
        assert!(none >= 190, "{none} of 200 with {length} runs");
    }
}

/// A limit of the method: runs whose level wanders have changes, but no cause.
#[test]
fn correlated_runs_have_many_change_points() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    let mut changed = 0;
    for _ in 0..200 {
        let mut deviation = 0.0;
        let mut run = || {
            deviation = 0.5 * deviation + 0.02 * 0.75_f64.sqrt() * noise(&mut rng);
            1000.0 * (1.0 + deviation)
        };
        let series: Vec<f64> = (0..40).map(|_| run()).collect();
        changed += u32::from(!change_points(&series, &ChangeSettings::default()).is_empty());
    }
    println!("no shift in 40 runs with a correlation of 0.5: a change in {changed} of 200");
    assert!(changed > 20, "{changed}");
}
