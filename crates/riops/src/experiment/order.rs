//! The order of the runs of a sweep, and of the two variants of an A/B test.

use rand::SeedableRng;
use rand::seq::SliceRandom;
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

/// Returns the runs of a block of an A/B test, in random order. All six orders are equally probable, as the test
/// assumes: no effect of the position in the block, such as a cache that the run before filled, affects its error
/// rate.
pub(super) fn of_ab_block(experiment: &Experiment, block: u32) -> [Task; 4] {
    let task = |cell, turn| Task { cell, level: None, block, turn };
    let mut tasks = [task(0, 1), task(0, TURNS), task(1, 1), task(1, TURNS)];
    tasks.shuffle(&mut random(experiment.seed, block));
    tasks
}

/// The random stream of a block.
fn random(seed: u64, block: u32) -> Xoshiro256PlusPlus {
    // SplitMix64, which expands the seed, distributes neighboring seeds independently.
    Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(block) << 32))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

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
    fn a_block_of_two_variants_has_two_runs_of_each_in_any_order() {
        let experiment = example::sweep(2);
        let mut orders: BTreeMap<[usize; 4], u32> = BTreeMap::new();
        for block in 1..=600 {
            let tasks = of_ab_block(&experiment, block);
            let runs: BTreeSet<_> = tasks.iter().map(|task| (task.cell, task.turn)).collect();
            assert_eq!(runs, BTreeSet::from([(0, 1), (0, TURNS), (1, 1), (1, TURNS)]));
            *orders.entry(tasks.map(|task| task.cell)).or_default() += 1;
        }
        assert_eq!(orders.len(), 6);
        assert!(orders.values().all(|count| (60..140).contains(count)), "{orders:?}");
    }
}
