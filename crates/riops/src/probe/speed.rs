//! The speed of the processor: the CPU time of a fixed piece of work.
//!
//! A lower frequency, heat, a neighbor on the same core and steal time that is not exported make it longer; other threads on
//! the same processor do not, because it is the time of this thread.

use std::hint::black_box;

use super::cpu;

/// Rounds of the work: each takes about 10 µs, and the fastest counts, because interrupts make one longer.
const ROUNDS: usize = 5;
/// Steps of a round, each of which depends on the previous one.
const STEPS: u32 = 4_000;

/// Returns the CPU time of the work in microseconds. It takes about 50 µs.
pub(super) fn work_us() -> f64 {
    let round = |_| {
        let before_s = cpu::thread_seconds();
        black_box(work(black_box(1)));
        (cpu::thread_seconds() - before_s) * 1e6
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// A sequence of xorshift (Marsaglia, "Xorshift RNGs", 2003).
fn work(mut state: u64) -> u64 {
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_depends_on_its_input() {
        assert_ne!(work(1), work(2));
        assert!(work_us().is_finite());
    }
}
