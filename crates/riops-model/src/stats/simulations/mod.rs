//! Simulations with a fixed seed: rates of false and of missed verdicts. docs/statistics.md quotes the printed
//! rates.

mod change;
mod comparison;
mod sequential;
mod verdicts;

use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns a normally distributed random number.
fn noise(rng: &mut Xoshiro256PlusPlus) -> f64 {
    StandardNormal.sample(rng)
}
