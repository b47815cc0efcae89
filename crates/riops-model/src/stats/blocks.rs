//! Values of two groups of runs in blocks, prepared for the test and the interval: logarithms, and the unit
//! whose variation the error is computed from.

/// Runs below which the variation of a side is not estimated. Two values give an interval of ±12.7 standard
/// errors.
const RUNS_MIN: usize = 3;
/// Fewest blocks with which the block is the unit, whatever the number of its runs.
const BLOCKS_ENOUGH: usize = 6;
/// Differences and errors of logarithms up to this are rounding errors.
pub(super) const ZERO: f64 = 1e-12;

/// Values of the runs of A and B that were measured in one block, that is, close together. All are positive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// Values of A, in the order of the runs.
    pub a: Vec<f64>,
    /// Values of B.
    pub b: Vec<f64>,
}

/// Why two groups of runs have no comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Incomparable {
    /// A single run does not show how much runs vary.
    #[error(
        "cannot compare {a} runs with {b}: at least 2 runs of each are needed in rounds with both"
    )]
    TooFewRuns {
        /// Runs of A in blocks that have runs of both.
        a: usize,
        /// Runs of B in blocks that have runs of both.
        b: usize,
    },
    /// Ratios need positive values.
    #[error("cannot compare the value {0}: values must be positive")]
    NotPositive(f64),
}

/// The unit whose variation gives the standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Blocks: the standard error comes from the differences between blocks.
    Block,
    /// Runs: it comes from the runs of each side of each block.
    Run,
    /// None: too few blocks and runs.
    None,
}

/// A difference of mean logarithms, B minus A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// Mean of the differences in the blocks. All blocks have the same weight.
    pub(super) difference: f64,
    /// Standard error from the variation of the runs within each side (Welch), if the run is the unit.
    error: Option<f64>,
}

impl Estimate {
    /// Returns the estimate of blocks with this difference.
    pub(super) fn of_blocks(difference: f64) -> Self {
        Self { difference, error: None }
    }

    /// Returns the absolute difference, in standard errors if the run is the unit: the permutation test is then
    /// valid even if A and B vary differently (Janssen, Statistics & Probability Letters 36, 1997). Among blocks, a
    /// standard error from few, possibly equal differences would be close to 0 in some permutations.
    pub(super) fn statistic(self) -> f64 {
        let difference = self.difference.abs();
        match self.error {
            _ if difference <= ZERO => 0.0,
            None => difference,
            Some(error) if error > ZERO => difference / error,
            Some(_) => f64::INFINITY,
        }
    }
}

/// A group of values whose mean is part of the estimate, with the factor of the mean.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) factor: f64,
    pub(super) values: Vec<f64>,
}

/// One block: logarithms minus their mean, the runs of A first.
#[derive(Debug, Clone, PartialEq)]
struct Pooled {
    logs: Vec<f64>,
    runs_a: usize,
    /// The mean that was subtracted.
    level: f64,
}

/// The logarithms of all blocks that have runs of both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    blocks: Vec<Pooled>,
    pub(super) unit: Unit,
}

impl Sample {
    /// Takes the logarithms. A block without runs of one side has no difference and is ignored.
    ///
    /// # Errors
    /// Returns [`Incomparable`] for a value that is not positive, or fewer than two runs on a side.
    pub(super) fn new(blocks: &[Block]) -> Result<Self, Incomparable> {
        let both = blocks.iter().filter(|block| !block.a.is_empty() && !block.b.is_empty());
        let blocks: Vec<Pooled> = both.map(pooled).collect::<Result<_, _>>()?;
        let sample = Self { unit: unit(&blocks), blocks };
        let (a, b) = sample.runs();
        if a < 2 || b < 2 {
            return Err(Incomparable::TooFewRuns { a, b });
        }
        Ok(sample)
    }

    /// Returns the runs of A and of B in each block.
    pub(super) fn shape(&self) -> Vec<(usize, usize)> {
        self.blocks.iter().map(|block| (block.runs_a, block.logs.len() - block.runs_a)).collect()
    }

    /// Returns the number of runs of A and of B.
    pub(super) fn runs(&self) -> (usize, usize) {
        self.shape().iter().fold((0, 0), |(a, b), block| (a + block.0, b + block.1))
    }

    /// Returns the estimate if the runs for which `is_b` is true belonged to B. `is_b` has an entry for each run,
    /// in the order of the blocks.
    pub(super) fn estimate(&self, is_b: &[bool]) -> Estimate {
        self.estimate_of(self.sums(is_b))
    }

    /// Returns the sums of A and B in each block if `is_b` marked the runs of B.
    pub(super) fn sums<'a>(&'a self, is_b: &'a [bool]) -> impl Iterator<Item = Sums> + 'a {
        let mut rest = is_b;
        self.blocks.iter().map(move |block| {
            let (here, next) = rest.split_at(block.logs.len().min(rest.len()));
            rest = next;
            let mut sums = Sums::default();
            for (run, (log, is_b)) in block.logs.iter().zip(here).enumerate() {
                let side = if *is_b { &mut sums.b } else { &mut sums.a };
                side.add(*log, run >= block.runs_a);
            }
            sums
        })
    }

    /// Returns the estimate of these sums, one for each block.
    pub(super) fn estimate_of(&self, sums: impl Iterator<Item = Sums>) -> Estimate {
        let (mut difference, mut variance) = (0.0, 0.0);
        for Sums { a, b } in sums {
            difference += b.mean() - a.mean();
            variance += a.variance_of_mean() + b.variance_of_mean();
        }
        let count = self.blocks.len() as f64;
        let error = (self.unit == Unit::Run).then(|| variance.sqrt() / count);
        Estimate { difference: difference / count, error }
    }

    /// Returns the geometric means of A and B. All blocks have the same weight, so that their quotient is the ratio.
    pub(super) fn means(&self) -> [f64; 2] {
        let count = self.blocks.len() as f64;
        let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
        let sides = self.blocks.iter().map(|block| {
            let (a, b) = block.logs.split_at(block.runs_a);
            [block.level + mean(a), block.level + mean(b)]
        });
        let sums = sides.fold([0.0; 2], |sums, side| [sums[0] + side[0], sums[1] + side[1]]);
        sums.map(|sum| (sum / count).exp())
    }

    /// Returns the groups of values that are resampled; `None` without a unit.
    pub(super) fn groups(&self) -> Option<Vec<Group>> {
        let sides = |block: &Pooled| {
            let (a, b) = block.logs.split_at(block.runs_a);
            (a.to_vec(), b.to_vec())
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        match self.unit {
            Unit::Block => {
                let differences = self.blocks.iter().map(|block| {
                    let (a, b) = sides(block);
                    mean(&b) - mean(&a)
                });
                Some(vec![Group { factor: 1.0, values: differences.collect() }])
            }
            Unit::Run => {
                let factor = 1.0 / self.blocks.len() as f64;
                let groups = self.blocks.iter().map(sides).flat_map(|(a, b)| {
                    let is_ordered = mean(&a) <= mean(&b);
                    let (a, b) =
                        (Group { factor: -factor, values: a }, Group { factor, values: b });
                    // Exchanging A and B must not exchange their random weights.
                    if is_ordered { [a, b] } else { [b, a] }
                });
                Some(groups.collect())
            }
            Unit::None => None,
        }
    }
}

/// Sums of the two sides of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    a: Side,
    b: Side,
}

impl Sums {
    /// Returns the sums with the values of the real B divided by this ratio, given as its logarithm.
    pub(super) fn shifted(self, log_ratio: f64) -> Self {
        Self { a: self.a.shifted(log_ratio), b: self.b.shifted(log_ratio) }
    }
}

/// Sums of one side of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    count: f64,
    sum: f64,
    squares: f64,
    /// Count and sum of the values on this side that are really B's.
    count_of_b: f64,
    sum_of_b: f64,
}

impl Side {
    fn add(&mut self, log: f64, is_of_b: bool) {
        self.count += 1.0;
        self.sum += log;
        self.squares += log * log;
        if is_of_b {
            self.count_of_b += 1.0;
            self.sum_of_b += log;
        }
    }

    fn shifted(self, by: f64) -> Self {
        Self {
            sum: self.sum - by * self.count_of_b,
            squares: self.squares - 2.0 * by * self.sum_of_b + by * by * self.count_of_b,
            sum_of_b: self.sum_of_b - by * self.count_of_b,
            ..self
        }
    }

    fn mean(self) -> f64 {
        self.sum / self.count
    }

    fn variance_of_mean(self) -> f64 {
        let mean = self.mean();
        (self.squares / self.count - mean * mean).max(0.0) / (self.count - 1.0).max(1.0)
    }
}

/// Takes the logarithms of a block and subtracts their mean: differences within the block are the same, and
/// sums of squares are accurate.
fn pooled(block: &Block) -> Result<Pooled, Incomparable> {
    let values = block.a.iter().chain(&block.b);
    if let Some(value) = values.clone().find(|value| !(value.is_finite() && **value > 0.0)) {
        return Err(Incomparable::NotPositive(*value));
    }
    let mut logs: Vec<f64> = values.map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    for log in &mut logs {
        *log -= mean;
    }
    Ok(Pooled { logs, runs_a: block.a.len(), level: mean })
}

/// The block is the unit, because an effect may differ between blocks. Few blocks with several runs are the
/// exception: their runs show more about the variation.
fn unit(blocks: &[Pooled]) -> Unit {
    let runs_enough =
        |block: &Pooled| block.runs_a.min(block.logs.len() - block.runs_a) >= RUNS_MIN;
    if blocks.len() < BLOCKS_ENOUGH && !blocks.is_empty() && blocks.iter().all(runs_enough) {
        Unit::Run
    } else if blocks.len() >= RUNS_MIN {
        Unit::Block
    } else {
        Unit::None
    }
}
