//! The runs of a cell or of a level, and the stages that all runs have.

use std::collections::BTreeMap;

use indexmap::{IndexMap, IndexSet};

use super::model::{
    FigureView, GroupView, NodeView, Reason, RunCounts, SourcesView, StageView, ThresholdView,
};
use crate::figure::Summary;
use crate::figure::{Estimate, Figure, node_cpus};
use crate::record::{Record, Sources, StageRecord, Status};
use crate::study::Finished;

/// A usable run with the number of its block.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) block: u32,
    pub(super) record: &'a Record,
}

/// The runs of a cell or of a level.
#[derive(Default)]
pub(super) struct Group<'a> {
    pub(super) runs: Vec<Run<'a>>,
    counts: RunCounts,
    reasons: IndexMap<String, u64>,
}

impl<'a> Group<'a> {
    pub(super) fn from_finished(finished: impl IntoIterator<Item = &'a Finished>) -> Self {
        let mut group = Self::default();
        for run in finished {
            if let Some(record) = run.usable() {
                group.counts.usable += 1;
                group.runs.push(Run { block: run.task.block, record });
                continue;
            }
            match &run.result {
                Ok(record) if record.status == Status::Failed => {
                    group.counts.failed += 1;
                    let text = record.failure.as_deref().unwrap_or("the run failed");
                    group.add_reason(text);
                }
                Ok(record) => {
                    group.counts.invalid += 1;
                    if record.status == Status::Interrupted {
                        group.add_reason("interrupted");
                    }
                    record.verdict.reasons.iter().for_each(|reason| group.add_reason(reason));
                }
                Err(error) => {
                    group.counts.failed += 1;
                    group.add_reason(error);
                }
            }
        }
        group
    }

    fn add_reason(&mut self, text: &str) {
        *self.reasons.entry(text.to_owned()).or_insert(0) += 1;
    }

    pub(super) fn records(&self) -> Vec<&'a Record> {
        self.runs.iter().map(|run| run.record).collect()
    }

    /// The runs with this stage. A usable run has all stages.
    pub(super) fn at(&self, slot: &Slot) -> Vec<Summary<'a>> {
        self.in_block(slot, None)
    }

    /// The same of one block; of all without a block.
    pub(super) fn in_block(&self, slot: &Slot, block: Option<u32>) -> Vec<Summary<'a>> {
        let runs = self.runs.iter().filter(|run| block.is_none_or(|block| run.block == block));
        let stage =
            |run: &Run<'a>| Some(Summary { record: run.record, stage: slot.stage_in(run.record)? });
        runs.filter_map(stage).collect()
    }

    pub(super) fn view(&self, slots: &[Slot]) -> GroupView {
        GroupView {
            runs: self.counts,
            reasons: self
                .reasons
                .iter()
                .map(|(text, &runs)| Reason { text: text.clone(), runs })
                .collect(),
            thresholds: self.thresholds(),
            stages: slots.iter().map(|slot| stage_view(&self.at(slot))).collect(),
        }
    }

    fn thresholds(&self) -> Vec<ThresholdView> {
        let mut tally: IndexMap<String, (u64, u64)> = IndexMap::new();
        for threshold in self.runs.iter().flat_map(|run| &run.record.thresholds) {
            let text = match &threshold.stage {
                Some(stage) => format!("{stage}: {}", threshold.threshold),
                None => threshold.threshold.to_string(),
            };
            let (met, total) = tally.entry(text).or_default();
            *met += u64::from(threshold.held);
            *total += 1;
        }
        let view = |(text, (met, total))| ThresholdView { text, met, of: total };
        tally.into_iter().map(view).collect()
    }
}

/// A stage that runs of several cells have in common.
pub(super) struct Slot {
    /// Its name; absent if the runs have only one stage.
    pub(super) name: Option<String>,
    key: Key,
}

enum Key {
    Position(usize),
    Name(String),
}

impl Slot {
    /// The stages of these runs: by position if all runs have the same number and kinds, otherwise by name. The name
    /// of a stage may contain the value of an axis.
    pub(super) fn of_all(records: &[&Record]) -> Vec<Self> {
        let kinds = |record: &&Record| -> Vec<bool> {
            record.stages.iter().map(StageRecord::is_timed).collect()
        };
        let Some(first) = records.first() else {
            return Vec::new();
        };
        let alike = records.iter().all(|record| kinds(record) == kinds(first));
        if alike {
            let is_single = first.stages.len() == 1;
            let name = |at: usize| {
                let names = records.iter().filter_map(|record| record.stages.get(at));
                common_words(&names.map(|stage| stage.name.as_str()).collect::<Vec<_>>())
            };
            return (0..first.stages.len())
                .map(|at| Self { name: (!is_single).then(|| name(at)), key: Key::Position(at) })
                .collect();
        }
        let stages = records.iter().flat_map(|record| &record.stages);
        let names: IndexSet<&String> = stages.map(|stage| &stage.name).collect();
        let slot = |name: &String| Self { name: Some(name.clone()), key: Key::Name(name.clone()) };
        names.into_iter().map(slot).collect()
    }

    pub(super) fn stage_in<'a>(&self, record: &'a Record) -> Option<&'a StageRecord> {
        match &self.key {
            Key::Position(at) => record.stages.get(*at),
            Key::Name(name) => record.stages.iter().find(|stage| stage.name == *name),
        }
    }
}

/// The first words that all names have in common, without an option at the end: `t03-select-max` of
/// `t03-select-max -c 2` and `t03-select-max -c 4`.
fn common_words(names: &[&str]) -> String {
    let mut words: Vec<&str> =
        names.first().map_or_else(Vec::new, |name| name.split(' ').collect());
    for name in names {
        let common = words.iter().zip(name.split(' ')).take_while(|(one, other)| *one == other);
        let count = common.count();
        words.truncate(count);
    }
    let is_whole = names.iter().all(|name| name.split(' ').count() == words.len());
    while !is_whole && words.last().is_some_and(|word| word.starts_with('-')) {
        words.pop();
    }
    let name = words.join(" ");
    let name = name.trim_end_matches([',', ':']);
    if name.is_empty() { names.first().copied().unwrap_or_default() } else { name }.to_owned()
}

fn stage_view(runs: &[Summary<'_>]) -> StageView {
    let figures = Figure::ALL.into_iter().filter_map(|figure| {
        let estimate = figure.estimate(runs)?;
        Some(FigureView { figure, estimate, against_baseline: None })
    });
    let nodes = nodes(runs);
    StageView {
        figures: figures.collect(),
        bottleneck: bottleneck(runs),
        sources: sources(runs),
        imbalance: imbalance(&nodes),
        nodes,
    }
}

/// The bottleneck that most runs had.
fn bottleneck(runs: &[Summary<'_>]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        let word = run.bottleneck_word();
        if !word.is_empty() {
            *counts.entry(word).or_default() += 1;
        }
    }
    let (word, count) = counts.iter().max_by_key(|(_, count)| **count)?;
    let is_of_all = *count == runs.len();
    Some(if is_of_all { (*word).to_owned() } else { format!("{word} ({count} of {})", runs.len()) })
}

fn sources(runs: &[Summary<'_>]) -> Option<SourcesView> {
    let estimate = |pick: fn(&Sources) -> Option<f64>| -> Option<Estimate> {
        let share = |run: &Summary<'_>| pick(run.stage.io.as_ref()?.sources.as_ref()?);
        Estimate::arithmetic(&runs.iter().map(share).collect::<Option<Vec<_>>>()?)
    };
    Some(SourcesView {
        buffers: estimate(|sources| Some(sources.buffers_share))?,
        page_cache: estimate(|sources| sources.page_cache_share),
        device: estimate(|sources| sources.device_share),
    })
}

/// The nodes that all runs have, if there are several. Values are means of the runs.
fn nodes(runs: &[Summary<'_>]) -> Vec<NodeView> {
    let Some(Summary { stage: first, .. }) = runs.first() else {
        return Vec::new();
    };
    let count = runs.len() as f64;
    let of_node = |name: &str| -> Option<NodeView> {
        let node_of = |run: &Summary<'_>| {
            run.stage.session_loop.nodes.iter().find(|node| node.node == name).cloned()
        };
        let all = runs.iter().map(node_of).collect::<Option<Vec<_>>>()?;
        let cpus: Option<Vec<f64>> = all.iter().map(node_cpus).collect();
        Some(NodeView {
            node: name.to_owned(),
            cpus: cpus.map(|cpus| cpus.iter().sum::<f64>() / count),
            cpu_share: None,
            transactions_per_s: all.iter().map(|node| node.transactions_per_s).sum::<f64>() / count,
            transactions_share: all.iter().map(|node| node.share).sum::<f64>() / count,
        })
    };
    let names = first.session_loop.nodes.iter().map(|node| node.node.as_str());
    let mut nodes: Vec<NodeView> = names.filter_map(of_node).collect();
    if nodes.len() < 2 {
        return Vec::new();
    }
    let all_cpus: Option<Vec<f64>> = nodes.iter().map(|node| node.cpus).collect();
    if let Some(sum) = all_cpus.map(|all| all.iter().sum::<f64>()).filter(|sum| *sum > 0.0) {
        for node in &mut nodes {
            node.cpu_share = node.cpus.map(|cpus| cpus / sum);
        }
    }
    nodes
}

/// Load of the busiest node divided by the mean: of the CPU use if it is known, otherwise of the transactions.
fn imbalance(nodes: &[NodeView]) -> Option<f64> {
    let shares = nodes.iter().map(|node| node.cpu_share.unwrap_or(node.transactions_share));
    let largest = shares.reduce(f64::max)?;
    Some(largest * nodes.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_named_without_the_value_that_differs() {
        assert_eq!(common_words(&["t03-select-max -c 2", "t03-select-max -c 4"]), "t03-select-max");
        assert_eq!(common_words(&["load, copy", "load, insert"]), "load");
        assert_eq!(common_words(&["rows -x", "rows -x"]), "rows -x");
        assert_eq!(common_words(&["insert", "copy"]), "insert");
    }
}
