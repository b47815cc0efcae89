//! Statistics of repeated runs: comparison of two groups, change over time, autocorrelation, summaries. Formulas,
//! sources and measured error rates are in docs/statistics.md.
//!
//! Pure: values in, values out. It must not read records, the store, a clock or an unseeded random number.

mod blocks;
mod change;
mod compare;
mod interval;
mod inversion;
mod levels;
mod permutation;
mod scaling;
mod sequential;
#[cfg(test)]
mod simulations;
mod student;
mod summary;
mod warm_up;

pub use blocks::{Block, Incomparable};
pub use change::{ChangePoint, ChangeSettings, change_points};
pub(crate) use compare::LowerBounds;
pub use compare::{Direction, Effect, Outcome, RatioInterval, Settings, compare, of_best};
pub use interval::Interval;
pub use levels::Noise;
pub use permutation::{Design, Needed};
pub use scaling::{
    CurvePoint, FittedValue, LEVELS_MIN, ResidualCheck, ScalingError, ScalingLaw, ScalingPoint,
    ScalingSettings, scaling_law,
};
pub use sequential::{Decision, Look, SequentialSettings, look};
pub use summary::{
    BEYOND_MIN, Difference, Summary, autocorrelation, difference, effective_sample_size,
    is_percentile_shown, mean_intervals, mean_reach, median, quartiles, summary,
};
pub use warm_up::{WarmUp, mean, mser_means, truncation_point, warm_up};
