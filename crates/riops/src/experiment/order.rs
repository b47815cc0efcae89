//! The order of the runs of a sweep, and of the two variants of an A/B test.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::definition::{Experiment, Order};
use super::task::Task;

/// Runs of each variant in a block of an A/B test.
pub(super) const TURNS: u32 = 2;

/// Returns all runs of a sweep, in their order.
pub(super) fn of_sweep(experiment: &Experiment) -> Vec<Task> {
    let blocks = 1..=experiment.repeats;
    let task = |cell, block| Task { cell, level: None, block, turn: 1 };
    match experiment.order {
        Order::Interleaved => blocks
            .flat_map(|block| {
                let mut cells: Vec<usize> = (0..experiment.cells.len()).collect();
                cells.shuffle(&mut random(experiment.seed, block));
                cells.into_iter().map(move |cell| task(cell, block))
            })
            .collect(),
        Order::Sequential => (0..experiment.cells.len())
            .flat_map(|cell| blocks.clone().map(move |block| task(cell, block)))
            .collect(),
    }
}

/// Returns the runs of a block of an A/B test: A B B A or B A A B, so that a linear drift affects both alike.
pub(super) fn of_ab_block(experiment: &Experiment, block: u32) -> [Task; 4] {
    let first = usize::from(random(experiment.seed, block).random_bool(0.5));
    let task = |cell, turn| Task { cell, level: None, block, turn };
    [task(first, 1), task(1 - first, 1), task(1 - first, TURNS), task(first, TURNS)]
}

/// The random stream of a block.
fn random(seed: u64, block: u32) -> Xoshiro256PlusPlus {
    // SplitMix64, which expands the seed, distributes neighboring seeds independently.
    Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(block) << 32))
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn cells_of(tasks: &[Task], block: u32) -> Vec<usize> {
        tasks.iter().filter(|task| task.block == block).map(|task| task.cell).collect()
    }

    #[test]
    fn each_block_contains_every_cell_once_in_an_order_of_its_own() {
        let experiment = Experiment { repeats: 8, ..example::sweep(6) };
        let tasks = of_sweep(&experiment);
        assert_eq!(tasks.len(), 48);
        let orders: Vec<_> = (1..=8).map(|block| cells_of(&tasks, block)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        }
        assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
        assert_eq!(of_sweep(&experiment), tasks);
        assert_ne!(of_sweep(&Experiment { seed: 2, ..experiment }), tasks);
    }

    #[test]
    fn sequential_runs_are_ordered_by_cell() {
        let experiment = Experiment { repeats: 2, order: Order::Sequential, ..example::sweep(2) };
        let order: Vec<_> =
            of_sweep(&experiment).iter().map(|task| (task.cell, task.block)).collect();
        assert_eq!(order, [(0, 1), (0, 2), (1, 1), (1, 2)]);
    }

    #[test]
    fn a_block_of_two_variants_is_symmetric_and_starts_with_either() {
        let experiment = example::sweep(2);
        let mut firsts = [0; 2];
        for block in 1..=64 {
            let cells = of_ab_block(&experiment, block).map(|task| task.cell);
            assert_eq!((cells[0], cells[1]), (cells[3], cells[2]));
            assert_ne!(cells[0], cells[1]);
            firsts[cells[0]] += 1;
        }
        assert!(firsts.iter().all(|&count| count > 16), "{firsts:?}");
    }
}
